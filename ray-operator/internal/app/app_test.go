package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestReads_WaitForNoWrite: an admission webhook that hangs in one namespace keeps nobody from reading in another.
func TestReads_WaitForNoWrite(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-end
		http.Error(w, "the webhook did not answer", http.StatusGatewayTimeout)
	}))
	defer api.Close()
	defer close(end)
	address := &rest.Config{Host: api.URL}
	options, _, err := Config{REST: address, MetricsAddress: "0", HealthAddress: "0"}.options()
	if err != nil {
		t.Fatal(err)
	}
	cached := informers(t)
	options.NewCache = func(*rest.Config, cache.Options) (cache.Cache, error) { return cached, nil }
	options.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
		known := meta.NewDefaultRESTMapper(nil)
		known.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
		return known, nil
	}
	manager, err := ctrl.NewManager(address, options)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		made := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "slow"}}
		_ = manager.GetClient().Create(context.Background(), made) // it fails when the test ends
	}()
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := manager.GetClient().List(ctx, &corev1.PodList{}, client.InNamespace("team-b")); err != nil {
		t.Errorf("a list waits for a write of another namespace: %v", err)
	}
}
