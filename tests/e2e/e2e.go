// Package e2e tests what a user gets: real kubelets, real containers, real Ray, and the
// operator as its chart installs it.
//
// In: KUBECONFIG, of any Kubernetes with two nodes, HELM, and HELIOSTAT_IMAGE where nodes pull the operator
// from a registry, as they do Ray (rayproject/ray:2.60.0) and redis:7. Specs with the label localkube need a
// localkube up --nodes 2 --gpus 2 with these images, KUBECTL, LOCALKUBE and LOCALKUBE_NAME; elsewhere a filter
// of labels leaves them out. LOCALKUBE_CPU_STAT names a file to count CPU time by. Labels: service and store
// are of the second lane, accept of what make accept alone plays, contract of what holds the fake head against
// a real one. Clients of the server for portals (label portal-...) also need node, python3 with venv, and PyPI. Flags: -rounds, -full, -judge. Out: verdicts, how long things took, and CPU time.
// At most six Ray pods run at once, beside those that are terminating. It must never leave a namespace behind,
// and it ends with the operator installed.
package e2e
