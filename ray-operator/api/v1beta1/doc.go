// Package v1beta1 holds the kinds of the group heliostat.dev: what users write
// and what they read back, with the labels, annotations and condition types that
// other programs may rely on.
//
// It imports apimachinery and Kubernetes' core types only, so that any Go program
// can import it. It holds no behaviour: defaults, rules and names live with the
// operator.
//
// +kubebuilder:object:generate=true
// +groupName=heliostat.dev
package v1beta1
