// Package realtest holds tests of what the nodes of a local cluster do on their
// own: enforce network policies and offer fake devices, seen from real pods.
//
// In comes an instance with two nodes and at least one fake GPU on each: the one
// whose kubeconfig LOCALKUBE_KUBECONFIG names, or else one that the tests bring
// up and take down themselves. Out go verdicts. It must never leave a namespace
// in an instance that it was given.
package realtest
