// Package identity finds out which pod a collector sends from.
//
// In: the token of a call, a review of it by the API server, and the pods, clusters and namespaces that the archiver has in its cache.
// Out: the UIDs of namespace, cluster and pod, or a status of gRPC.
//
// It must never believe a pod that is not of a cluster: only the operator can set the label that a pod of a cluster has. Nor must a
// caller without a token for the archive cost the API server a review.
package identity

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/wire"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Audience is the audience of a collector's token. The API server refuses a token with it.
const Audience = "history.heliostat.dev"

// The bounds of what a caller sends.
const (
	maxToken   = 8 << 10 // bytes; one of a service account has about 1 KiB
	maxReviews = 16      // reviews at once
)

// What a review says of a pod.
const (
	extraPodName = "authentication.kubernetes.io/pod-name"
	extraPodUID  = "authentication.kubernetes.io/pod-uid"
	userPrefix   = "system:serviceaccount:"
)

// Objects are the objects of Kubernetes in the archiver's cache. Each method returns nil for an object that does not exist.
type Objects interface {
	Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	Cluster(ctx context.Context, namespace, name string) (*v1beta1.ComputeCluster, error)
	Namespace(ctx context.Context, name string) (*corev1.Namespace, error)
}

// Finder finds the pod of a caller.
type Finder struct {
	// Review has the API server review a token for the audience.
	Review  func(ctx context.Context, token string) (authenticationv1.TokenReviewStatus, error)
	Objects Objects
	turns   chan struct{}
}

// New returns a finder.
func New(review func(ctx context.Context, token string) (authenticationv1.TokenReviewStatus, error), objects Objects) *Finder {
	return &Finder{review, objects, make(chan struct{}, maxReviews)}
}

// Find returns the pod that calls. Its errors are statuses: Unauthenticated for a token that is not one of a pod of a cluster, and
// Unavailable where the API server cannot be asked, or the pod is not known yet.
func (f *Finder) Find(ctx context.Context) (wire.Source, error) {
	token, err := tokenOf(ctx)
	if err != nil {
		return wire.Source{}, err
	}
	select {
	case f.turns <- struct{}{}:
		defer func() { <-f.turns }()
	case <-ctx.Done():
		return wire.Source{}, status.Error(codes.Unavailable, "too many calls begin at once")
	}
	reviewed, err := f.Review(ctx, token)
	if err != nil {
		return wire.Source{}, status.Error(codes.Unavailable, "the API server does not review the token")
	}
	caller, err := callerOf(reviewed)
	if err != nil {
		return wire.Source{}, err
	}
	return f.source(ctx, caller)
}

// caller is the pod that a token is bound to.
type caller struct{ namespace, name, uid string }

// tokenOf returns the token of a call that may be one for the archive.
func tokenOf(ctx context.Context) (string, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	values := md.Get("authorization")
	if len(values) != 1 {
		return "", status.Error(codes.Unauthenticated, "the call has no token")
	}
	token, is := strings.CutPrefix(values[0], "Bearer ")
	if !is || len(token) > maxToken || !slices.Contains(audiencesOf(token), Audience) {
		return "", status.Error(codes.Unauthenticated, "the token is not for "+Audience)
	}
	return token, nil
}

// audiencesOf returns the audiences that a token claims. It only saves a review: the claims are not trusted.
func audiencesOf(token string) []string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil
	}
	var claims struct {
		Audience []string `json:"aud"`
	}
	if json.Unmarshal(text, &claims) != nil {
		return nil
	}
	return claims.Audience
}

// callerOf returns the pod that a reviewed token is bound to.
func callerOf(reviewed authenticationv1.TokenReviewStatus) (caller, error) {
	refused := status.Error(codes.Unauthenticated, "the token is not one of a pod")
	if !reviewed.Authenticated || !slices.Contains(reviewed.Audiences, Audience) {
		return caller{}, refused
	}
	account, is := strings.CutPrefix(reviewed.User.Username, userPrefix)
	namespace, _, hasName := strings.Cut(account, ":")
	names, uids := reviewed.User.Extra[extraPodName], reviewed.User.Extra[extraPodUID]
	if !is || !hasName || len(names) != 1 || len(uids) != 1 {
		return caller{}, refused
	}
	return caller{namespace, names[0], uids[0]}, nil
}

// source returns the UIDs of a pod, which must be of a cluster.
func (f *Finder) source(ctx context.Context, of caller) (wire.Source, error) {
	pod, err := f.Objects.Pod(ctx, of.namespace, of.name)
	if err != nil || pod == nil || string(pod.UID) != of.uid { // the cache may be behind
		return wire.Source{}, status.Error(codes.Unavailable, "the pod is not known yet")
	}
	owner := metav1.GetControllerOf(pod)
	name := pod.Labels[v1beta1.LabelCluster]
	if name == "" || owner == nil || owner.Kind != "ComputeCluster" || owner.Name != name || !isOurs(owner.APIVersion) {
		return wire.Source{}, status.Error(codes.PermissionDenied, "the pod is not one of a ComputeCluster")
	}
	cluster, err := f.Objects.Cluster(ctx, of.namespace, name)
	if err != nil || cluster == nil || cluster.UID != owner.UID {
		return wire.Source{}, status.Error(codes.Unavailable, "the cluster of the pod is not known")
	}
	namespace, err := f.Objects.Namespace(ctx, of.namespace)
	if err != nil || namespace == nil {
		return wire.Source{}, status.Error(codes.Unavailable, "the namespace of the pod is not known")
	}
	return parse(string(namespace.UID), string(cluster.UID), of.uid)
}

func isOurs(apiVersion string) bool {
	group, _, _ := strings.Cut(apiVersion, "/")
	return group == v1beta1.GroupVersion.Group
}

func parse(namespace, cluster, pod string) (source wire.Source, err error) {
	for text, into := range map[string]*pack.UID{namespace: &source.Namespace, cluster: &source.Cluster, pod: &source.Pod} {
		if *into, err = pack.ParseUID(text); err != nil {
			return wire.Source{}, status.Error(codes.Internal, fmt.Sprintf("read a UID: %v", err))
		}
	}
	return source, nil
}
