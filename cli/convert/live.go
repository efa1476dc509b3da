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
	"github.com/heliostat-dev/heliostat/ray-operator/convert/document"
)

// page is how many objects one answer holds.
const page = 500

// known are the resources of ray.io, by what people call them.
var known = map[string]string{
	"raycluster": "rayclusters", "rayclusters": "rayclusters", "rayjob": "rayjobs", "rayjobs": "rayjobs",
	"rayservice": "rayservices", "rayservices": "rayservices", "raycronjob": "raycronjobs", "raycronjobs": "raycronjobs",
}

// readResources reads a list of kinds.
func readResources(text string) ([]string, error) {
	var all []string
	for name := range strings.SplitSeq(text, ",") {
		plain, suffix, _ := strings.Cut(strings.ToLower(strings.TrimSpace(name)), ".")
		resource, has := known[plain]
		switch {
		case slices.Contains([]string{"yaml", "yml", "json"}, suffix):
			return nil, errors.New("a file is no kind; give it with -f")
		case !has:
			return nil, fmt.Errorf("ray.io has no such kind; %s", spelling.Remedy(plain, []string{"rayclusters", "rayjobs",
				"rayservices", "raycronjobs"}))
		}
		if !slices.Contains(all, resource) {
			all = append(all, resource)
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
	for _, resource := range r.resources {
		of := client.Resource(schema.GroupVersionResource{Group: "ray.io", Version: "v1",
			Resource: resource}).Namespace(namespace)
		items, err := listAll(ctx, of)
		if err != nil {
			return nil, whyNot(resource, err)
		}
		if items, err = r.named(resource, items); err != nil {
			return nil, err
		}
		for i := range items {
			all = append(all, input{Document: document.Document{Object: &items[i]}})
		}
	}
	return all, nil
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
func whyNot(resource string, err error) error {
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return &outcome.Error{Code: outcome.Refused, Err: fmt.Errorf("list %s: %w; ask for the right to get and list them",
			resource, err)}
	case apierrors.IsNotFound(err):
		return &outcome.Error{Code: outcome.Usage, Err: fmt.Errorf("list %s: the API server has no such kind in ray.io/v1; "+
			"choose another --context, or give -f FILE", resource)}
	default:
		return kube.Because(fmt.Errorf("list %s: %w", resource, err))
	}
}
