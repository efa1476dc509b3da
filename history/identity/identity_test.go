package identity

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// UIDs of the objects.
const (
	ofNamespace = "11111111-1111-4111-8111-111111111111"
	ofCluster   = "22222222-2222-4222-8222-222222222222"
	ofPod       = "33333333-3333-4333-8333-333333333333"
	ofOther     = "44444444-4444-4444-8444-444444444444"
)

// world is what Kubernetes has, and what it says of a token.
type world struct {
	pod       *corev1.Pod
	cluster   *v1beta1.ComputeCluster
	namespace *corev1.Namespace
	review    authenticationv1.TokenReviewStatus
	err       error
	token     string
	reviews   int
}

func (w *world) Pod(context.Context, string, string) (*corev1.Pod, error) { return w.pod, w.err }

func (w *world) Cluster(context.Context, string, string) (*v1beta1.ComputeCluster, error) {
	return w.cluster, w.err
}

func (w *world) Namespace(context.Context, string) (*corev1.Namespace, error) {
	return w.namespace, w.err
}

func tokenFor(audience string) string {
	return "h." + base64.RawURLEncoding.EncodeToString([]byte(`{"aud":["`+audience+`"]}`)) + ".s"
}

func newWorld() *world {
	return &world{
		pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "demo-head", UID: ofPod, Labels: map[string]string{v1beta1.LabelCluster: "demo"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "heliostat.dev/v1beta1", Kind: "ComputeCluster", Name: "demo", UID: ofCluster, Controller: new(true)}},
		}},
		cluster:   &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "demo", UID: ofCluster}},
		namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: ofNamespace}},
		review: authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: []string{Audience}, User: authenticationv1.UserInfo{
			Username: "system:serviceaccount:team:default",
			Extra:    map[string]authenticationv1.ExtraValue{extraPodName: {"demo-head"}, extraPodUID: {ofPod}},
		}},
		token: "Bearer " + tokenFor(Audience),
	}
}

func TestFind_BelievesPodsOfClustersAlone(t *testing.T) {
	for name, test := range map[string]struct {
		edit    func(*world)
		code    codes.Code
		reviews int
	}{
		"pod of a cluster":                 {func(*world) {}, codes.OK, 1},
		"no token":                         {func(w *world) { w.token = "" }, codes.Unauthenticated, 0},
		"no bearer token":                  {func(w *world) { w.token = "Basic " + tokenFor(Audience) }, codes.Unauthenticated, 0},
		"no JWT":                           {func(w *world) { w.token = "Bearer abc" }, codes.Unauthenticated, 0},
		"token of megabytes":               {func(w *world) { w.token += strings.Repeat("x", 1<<20) }, codes.Unauthenticated, 0},
		"token for the API server":         {func(w *world) { w.token = "Bearer " + tokenFor("https://kubernetes.default.svc") }, codes.Unauthenticated, 0},
		"forged token":                     {func(w *world) { w.review.Authenticated = false }, codes.Unauthenticated, 1},
		"token that is reviewed otherwise": {func(w *world) { w.review.Audiences = []string{"api"} }, codes.Unauthenticated, 1},
		"token of a person":                {func(w *world) { w.review.User.Username = "ana" }, codes.Unauthenticated, 1},
		"token that is bound to no pod":    {func(w *world) { w.review.User.Extra = nil }, codes.Unauthenticated, 1},
		"API server is away":               {func(w *world) { w.err = errors.New("away") }, codes.Unavailable, 1},
		"pod that is not known":            {func(w *world) { w.pod = nil }, codes.Unavailable, 1},
		"pod of that name before":          {func(w *world) { w.pod.UID = ofOther }, codes.Unavailable, 1},
		"pod without the label":            {func(w *world) { w.pod.Labels = nil }, codes.PermissionDenied, 1},
		"pod without a controller":         {func(w *world) { w.pod.OwnerReferences = nil }, codes.PermissionDenied, 1},
		"pod of another kind":              {func(w *world) { w.pod.OwnerReferences[0].Kind = "ReplicaSet" }, codes.PermissionDenied, 1},
		"pod of another group":             {func(w *world) { w.pod.OwnerReferences[0].APIVersion = "ray.io/v1" }, codes.PermissionDenied, 1},
		"pod of another cluster":           {func(w *world) { w.pod.OwnerReferences[0].Name = "other" }, codes.PermissionDenied, 1},
		"cluster that is gone":             {func(w *world) { w.cluster = nil }, codes.Unavailable, 1},
		"cluster of that name before":      {func(w *world) { w.cluster.UID = ofOther }, codes.Unavailable, 1},
		"namespace that is gone":           {func(w *world) { w.namespace = nil }, codes.Unavailable, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			test.edit(w)
			ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", w.token))
			finder := New(func(_ context.Context, token string) (authenticationv1.TokenReviewStatus, error) {
				w.reviews++
				if "Bearer "+token != w.token {
					t.Errorf("token %q was reviewed", token)
				}
				return w.review, w.err
			}, w)
			source, err := finder.Find(ctx)
			if status.Code(err) != test.code || w.reviews != test.reviews {
				t.Fatalf("it is %v after %d reviews, want %v after %d", err, w.reviews, test.code, test.reviews)
			}
			if err == nil && (source.Namespace.String() != ofNamespace || source.Cluster.String() != ofCluster || types.UID(source.Pod.String()) != ofPod) {
				t.Errorf("it comes from %v", source)
			}
		})
	}
}
