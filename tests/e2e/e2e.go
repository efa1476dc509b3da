// Package e2e tests what a user gets: real kubelets, real containers, real Ray, and the
// operator as its chart installs it.
//
// In: the environment variables KUBECONFIG of a localkube up --nodes 2 --gpus 2 that has
// the images of Ray and the operator, HELM, and LOCALKUBE and LOCALKUBE_NAME to cut a node
// off. Flags: -rounds, -full. Out: verdicts, and how long things took.
// At most six Ray pods run at once. It must never leave a namespace behind, and it ends
// with the operator installed.
package e2e
