// Package integration tests the operator against a real API server, controller manager
// and scheduler, with a kubelet that only says that pods run, and with heads that stand in
// for Ray's where a test wants them.
//
// In: the environment variables KUBECONFIG and LOCALKUBE_AUDIT_LOG of a
// localkube up --control-plane-only, HELM, which renders the chart, and KUBECTL. Out:
// verdicts, the numbers of requests, read from the API server's audit log, and figures
// where HELIOSTAT_RESULTS names a file. The operator runs as its built program with the
// rights that the chart grants, and no test passes in which it was refused one. It must
// never leave a namespace behind.
package integration
