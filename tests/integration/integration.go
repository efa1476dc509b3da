// Package integration tests the operator against a real API server, controller manager
// and scheduler, with a kubelet that only says that pods run.
//
// In: the environment variables KUBECONFIG and LOCALKUBE_AUDIT_LOG of a
// localkube up --control-plane-only, and HELM, which renders the chart. Out: verdicts,
// and the numbers of requests, read from the API server's audit log. The operator runs
// as its built program with the rights that the chart grants, and no test passes in
// which it was refused one. It must never leave a namespace behind.
package integration
