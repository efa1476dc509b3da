// Package integration tests the operator against a real API server, controller manager
// and scheduler, with a kubelet that only says that pods run, and with heads that stand in
// for Ray's where a test wants them.
//
// In: the environment variables KUBECONFIG and LOCALKUBE_AUDIT_LOG of a
// localkube up --control-plane-only, HELM, which renders the chart, and KUBECTL. Out:
// verdicts, the numbers of requests, read from the API server's audit log, and figures
// where HELIOSTAT_RESULTS names a file. The operator runs as its built program with the
// rights that the chart grants, and no test passes in which it was refused one. It must
// never leave a namespace behind, and never judge a duration without the flag -judge.
//
// Tests run side by side: each has namespaces of its own, and an operator that watches these alone. A test is serial
// where its operator watches all namespaces, where it counts writes that depend on how fast pods come, where it times
// requests, or where it keeps the API server busy for seconds.
package integration
