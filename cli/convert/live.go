package convert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/convert"
	"github.com/heliostat-dev/heliostat/ray-operator/convert/document"
)

// page is how many objects one answer holds.
const page = 500

// source returns the kind that people call by a name: that of its resource or the kind's own, in the singular or the plural.
func source(name string) (convert.Kind, bool) {
	for _, kind := range convert.Sources() {
		if resource := kind.Resource(); kind.Group != "" && (name == resource || name+"s" == resource) {
			return kind, true
		}
	}
	return convert.Kind{}, false
}

// resources are those of the kinds that the API server can list.
func resources() []string {
	var names []string
	for _, kind := range convert.Sources() {
		if kind.Group != "" {
			names = append(names, kind.Resource())
		}
	}
	return names
}

// readResources reads a list of kinds.
func readResources(text string) ([]convert.Kind, error) {
	var all []convert.Kind
	for name := range strings.SplitSeq(text, ",") {
		plain, suffix, _ := strings.Cut(strings.ToLower(strings.TrimSpace(name)), ".")
		kind, has := source(plain)
		switch {
		case slices.Contains([]string{"yaml", "yml", "json"}, suffix):
			return nil, errors.New("a file is no kind; give it with -f")
		case !has:
			return nil, fmt.Errorf("no such kind is converted; %s", spelling.Remedy(plain, resources()))
		}
		if !slices.ContainsFunc(all, func(other convert.Kind) bool { return other.Name == kind.Name }) {
			all = append(all, kind)
		}
	}
	return all, nil
}

// list reads live objects.
func (r *request) list(ctx context.Context, access *genericclioptions.ConfigFlags) ([]input, error) {
	config, err := kube.ReadConfig(access)
	if err != nil {
		return nil, err
	}
	namespace, _, err := access.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("read the namespace of the kubeconfig: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	return r.listWith(ctx, client, namespace)
}

func (r *request) listWith(ctx context.Context, client dynamic.Interface, namespace string) ([]input, error) {
	if r.allNamespaces {
		namespace = metav1.NamespaceAll
	}
	var all []input
	for _, kind := range r.resources {
		items, err := listKind(ctx, client, &kind, namespace)
		if err != nil {
			return nil, whyNot(&kind, err)
		}
		if items, err = r.named(kind.Resource(), items); err != nil {
			return nil, err
		}
		if slices.Contains(kindsWithRuntimes, kind.Name) && len(r.options.Kubeflow.Runtimes) == 0 {
			r.readRuntimes(ctx, client, namespace)
		}
		for i := range items {
			all = append(all, input{Document: document.Document{Object: &items[i]}})
		}
	}
	return all, nil
}

// kindsWithRuntimes are the kinds whose objects refer to a runtime, by themselves or in their templates.
var kindsWithRuntimes = []string{"TrainJob", "OptimizationJob", "Experiment"}

// readRuntimes reads the runtimes that TrainJobs may refer to, as far as the user may list them. A job whose runtime is missing says
// so.
func (r *request) readRuntimes(ctx context.Context, client dynamic.Interface, namespace string) {
	for _, name := range []string{"trainingruntimes", "clustertrainingruntimes"} {
		kind, has := source(name)
		if !has {
			continue
		}
		at := namespace
		if strings.HasPrefix(name, "cluster") {
			at = metav1.NamespaceAll
		}
		items, err := listKind(ctx, client, &kind, at)
		if err != nil {
			continue
		}
		for i := range items {
			r.options.Kubeflow.AddRuntime(&items[i])
		}
	}
}

// listKind lists the objects of a kind, in the first version that the API server has.
func listKind(ctx context.Context, client dynamic.Interface, kind *convert.Kind, namespace string) ([]unstructured.Unstructured, error) {
	var items []unstructured.Unstructured
	var err error
	for _, version := range kind.Versions {
		resource := schema.GroupVersionResource{Group: kind.Group, Version: version, Resource: kind.Resource()}
		if items, err = listAll(ctx, client.Resource(resource).Namespace(namespace)); !apierrors.IsNotFound(err) {
			return items, err
		}
	}
	return nil, err
}

func listAll(ctx context.Context, of dynamic.ResourceInterface) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := of.List(ctx, options)
		if err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return all, nil
		}
	}
}

// named are the objects with the names that were asked for, all where none was.
func (r *request) named(resource string, items []unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	if len(r.names) == 0 {
		return items, nil
	}
	var names []string
	for i := range items {
		names = append(names, items[i].GetName())
	}
	var found []unstructured.Unstructured
	for _, name := range r.names {
		at := slices.Index(names, name)
		if at < 0 {
			return nil, &outcome.Error{Code: outcome.Usage, Err: fmt.Errorf("none of the %s has that name; %s", resource,
				spelling.Remedy(name, names))}
		}
		found = append(found, items[at])
	}
	return found, nil
}

// whyNot says why objects could not be listed, and what helps.
func whyNot(kind *convert.Kind, err error) error {
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return &outcome.Error{Code: outcome.Refused, Err: fmt.Errorf("list %s: %w; ask for the right to get and list them",
			kind.Resource(), err)}
	case apierrors.IsNotFound(err):
		return &outcome.Error{Code: outcome.Usage, Err: fmt.Errorf("list %s: the API server has no such kind in %s/%s; "+
			"choose another --context, or give -f FILE", kind.Resource(), kind.Group, strings.Join(kind.Versions, ", "))}
	default:
		return kube.Because(fmt.Errorf("list %s: %w", kind.Resource(), err))
	}
}
