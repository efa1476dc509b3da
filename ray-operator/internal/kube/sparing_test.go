package kube_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
)

// TestSparing_ReadsMetadataOfWhatItCreates: the API server is asked for no more, and refusals stay what they are.
func TestSparing_ReadsMetadataOfWhatItCreates(t *testing.T) {
	made := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		UID: "u", ResourceVersion: "7", Generation: 1, CreationTimestamp: metav1.NewTime(time.Unix(1000, 0)),
	}}
	made.Kind, made.APIVersion = "PartialObjectMetadata", "meta.k8s.io/v1"
	refusal := apierrors.NewAlreadyExists(corev1.Resource("pods"), "taken").Status()
	refusal.Kind, refusal.APIVersion = "Status", "v1"
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/n/pods" || r.URL.Query().Get("fieldManager") != kube.FieldOwner ||
			!strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
			t.Errorf("%s %s asks for %s", r.Method, r.URL, r.Header.Get("Accept"))
		}
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		answer, code := runtime.Object(&made), http.StatusCreated
		if bytes.Contains(body.Bytes(), []byte("taken")) {
			answer, code = &refusal, int(refusal.Code)
		}
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		w.WriteHeader(code)
		if err := protobuf.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme).Encode(answer, w); err != nil {
			t.Error(err)
		}
	}))
	defer api.Close()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapped := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithRESTMapper(mapper).Build()
	c := kube.Sparing(mapped, &rest.Config{Host: api.URL}, api.Client())
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}, Spec: corev1.PodSpec{NodeName: "kept"}}
	if err := c.Create(t.Context(), pod, client.FieldOwner(kube.FieldOwner)); err != nil {
		t.Fatal(err)
	}
	if pod.UID != "u" || pod.ResourceVersion != "7" || pod.Generation != 1 || pod.CreationTimestamp.Unix() != 1000 || pod.Spec.NodeName != "kept" {
		t.Errorf("the pod is %+v", pod)
	}
	taken := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "taken"}}
	if err := c.Create(t.Context(), taken, client.FieldOwner(kube.FieldOwner)); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a name that is taken is refused with %v", err)
	}
}
