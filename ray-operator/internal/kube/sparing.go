package kube

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// metadataAlone has the API server answer with no more than the metadata of an object. A refusal comes by the second form:
// without one the API server's audit log would have its code alone.
const metadataAlone = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/vnd.kubernetes.protobuf"

// Sparing gives a client that does as c does, but reads no more than the metadata of an object of Kubernetes' own kinds
// that it has created: to decode a whole pod takes longer than to write it. An object has its UID, version and time
// afterwards, and what the API server has filled in elsewhere is not in it.
func Sparing(c client.Client, config *rest.Config, through *http.Client) client.Client {
	return &sparing{
		Client: c, config: config, http: through, codecs: serializer.NewCodecFactory(c.Scheme()),
		parameters: runtime.NewParameterCodec(c.Scheme()), resources: map[schema.GroupVersionKind]resource{},
	}
}

type sparing struct {
	client.Client
	config     *rest.Config
	http       *http.Client
	codecs     serializer.CodecFactory
	parameters runtime.ParameterCodec

	mu        sync.Mutex
	resources map[schema.GroupVersionKind]resource
}

// resource is where objects of a kind are created.
type resource struct {
	rest.Interface
	name       string
	namespaced bool
}

// Create as client.Writer says, but for the answer.
func (s *sparing) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	gvk, err := apiutil.GVKForObject(obj, s.Scheme())
	if _, untyped := obj.(runtime.Unstructured); err != nil || untyped || !clientgoscheme.Scheme.Recognizes(gvk) {
		return s.Client.Create(ctx, obj, opts...)
	}
	at, err := s.resourceOf(gvk)
	if err != nil {
		return err
	}
	var options client.CreateOptions
	options.ApplyOptions(opts)
	var made metav1.PartialObjectMetadata
	err = at.Post().
		NamespaceIfScoped(obj.GetNamespace(), at.namespaced).
		Resource(at.name).
		VersionedParams(options.AsCreateOptions(), s.parameters).
		SetHeader("Accept", metadataAlone).
		Body(obj).
		Do(ctx).
		Into(&made)
	if err != nil {
		return err //nolint:wrapcheck // as of any client: the caller says what it wanted
	}
	obj.SetUID(made.UID)
	obj.SetResourceVersion(made.ResourceVersion)
	obj.SetGeneration(made.Generation)
	obj.SetCreationTimestamp(made.CreationTimestamp)
	return nil
}

// resourceOf returns the resource of a kind. To look it up costs as much as to decode what was created.
func (s *sparing) resourceOf(gvk schema.GroupVersionKind) (resource, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, is := s.resources[gvk]; is {
		return known, nil
	}
	mapping, err := s.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return resource{}, fmt.Errorf("find the resource of %s: %w", gvk.Kind, err)
	}
	through, err := apiutil.RESTClientForGVK(gvk, false, false, s.config, s.codecs, s.http)
	if err != nil {
		return resource{}, fmt.Errorf("make a client for %s: %w", gvk.Kind, err)
	}
	made := resource{through, mapping.Resource.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace}
	s.resources[gvk] = made
	return made, nil
}
