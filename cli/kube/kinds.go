// Package kube reads and writes objects of ours as the user of a kubeconfig.
//
// In: the kubeconfig's flags; names as people type them. Out: objects, with the clusters and pods around one; errors that
// say which user lacks which right and which role has it, or which name was probably meant, each with its exit code.
//
// It must never ask for more than a command needs, or print anything.
package kube

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Kind is one of our kinds.
type Kind struct {
	// Word is what commands call an object of the kind.
	Word string
	// Name and Resource are those of Kubernetes, and Short is its short name.
	Name, Resource, Short string

	object func() verbs.Object
	list   func() client.ObjectList
}

// Our kinds.
var (
	Cluster = Kind{"cluster", "ComputeCluster", "computeclusters", "cc",
		func() verbs.Object { return &v1beta1.ComputeCluster{} },
		func() client.ObjectList { return &v1beta1.ComputeClusterList{} }}
	Job = Kind{"job", "ClusterJob", "clusterjobs", "cjob",
		func() verbs.Object { return &v1beta1.ClusterJob{} },
		func() client.ObjectList { return &v1beta1.ClusterJobList{} }}
	Service = Kind{"service", "ClusterService", "clusterservices", "csvc",
		func() verbs.Object { return &v1beta1.ClusterService{} },
		func() client.ObjectList { return &v1beta1.ClusterServiceList{} }}
	Schedule = Kind{"schedule", "ClusterJobSchedule", "clusterjobschedules", "cjs",
		func() verbs.Object { return &v1beta1.ClusterJobSchedule{} },
		func() client.ObjectList { return &v1beta1.ClusterJobScheduleList{} }}
)

// Kinds returns the kinds that every command knows.
func Kinds() []Kind { return []Kind{Cluster, Job, Service, Schedule} }

// KindOf returns the kind of an object.
func KindOf(object verbs.Object) Kind {
	switch object.(type) {
	case *v1beta1.ClusterJob:
		return Job
	case *v1beta1.ClusterService:
		return Service
	case *v1beta1.ClusterJobSchedule:
		return Schedule
	default:
		return Cluster
	}
}

// names are all that people call a kind.
func (k Kind) names() []string {
	return []string{k.Word, k.Word + "s", strings.ToLower(k.Name), k.Resource, k.Short}
}

// ParseKind returns the kind that people call by a name.
func ParseKind(text string) (Kind, error) {
	plain, _, _ := strings.Cut(strings.ToLower(text), ".")
	var known []string
	for _, kind := range Kinds() {
		if slices.Contains(kind.names(), plain) {
			return kind, nil
		}
		known = append(known, kind.Word)
	}
	return Kind{}, outcome.Errorf(outcome.Usage, "there is no such kind; %s", spelling.Remedy(plain, known))
}

// Target names an object in the namespace of the command.
type Target struct {
	Kind Kind
	Name string
}

// TargetOf returns the name of an object.
func TargetOf(object verbs.Object) Target { return Target{KindOf(object), object.GetName()} }

// String returns the target as commands take it.
func (t Target) String() string { return t.Kind.Word + "/" + t.Name }

// ParseTarget reads KIND/NAME. A name without a kind is of the kind that is given, if one is.
func ParseTarget(text string, of ...Kind) (Target, error) {
	word, name, hasKind := strings.Cut(text, "/")
	if !hasKind {
		if len(of) != 1 {
			return Target{}, outcome.Errorf(outcome.Usage, "%q lacks its kind; write it as cluster/%s, job/%s, service/%s or schedule/%s",
				text, text, text, text, text)
		}
		return Target{of[0], text}, checkName(text, "NAME")
	}
	kind, err := ParseKind(word)
	if err != nil {
		return Target{}, err
	}
	if len(of) > 0 && !slices.ContainsFunc(of, func(one Kind) bool { return one.Word == kind.Word }) {
		return Target{}, outcome.Errorf(outcome.Usage, "%s is a %s; give a %s", text, kind.Word, words(of))
	}
	return Target{kind, name}, checkName(name, "KIND/NAME")
}

func words(of []Kind) string {
	var all []string
	for _, kind := range of {
		all = append(all, kind.Word)
	}
	if last := len(all) - 1; last > 0 {
		return strings.Join(all[:last], ", ") + " or " + all[last]
	}
	return strings.Join(all, "")
}

// checkName refuses what cannot be the name of an object, and says how to write one.
func checkName(name, how string) error {
	if name == "" || strings.ContainsAny(name, "/ ") {
		return outcome.Errorf(outcome.Usage, "%q is no name of an object; write %s", name, how)
	}
	return nil
}

// Where says in which namespaces a command looks, for people.
func Where(namespace string) string {
	if namespace == metav1.NamespaceAll {
		return "in all namespaces"
	}
	return fmt.Sprintf("in namespace %q", namespace)
}
