package kube_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// TestCreateUnowned: a name that is taken is no error and nothing is judged of it.
func TestCreateUnowned(t *testing.T) {
	w, writer, _ := started(t)
	note := func(text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: testkit.Namespace, Name: "n"}, Data: map[string]string{"a": text}}
	}
	if made, err := writer.CreateUnowned(w.Ctx, note("1")); !made || err != nil {
		t.Fatalf("made %v, %v", made, err)
	}
	if made, err := writer.CreateUnowned(w.Ctx, note("2")); made || err != nil {
		t.Errorf("made a second one: %v, %v", made, err)
	}
	var there corev1.ConfigMap
	w.Must(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(note("")), &there))
	if there.Data["a"] != "1" {
		t.Errorf("what was there is changed: %v", there.Data)
	}
	cause := errors.New("the server is away")
	below, ok := w.Client.(client.WithWatch)
	if !ok {
		t.Fatal("the world's client cannot watch")
	}
	writer = &kube.Writer{Live: w.Client, Client: interceptor.NewClient(below, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return cause },
	})}
	if made, err := writer.CreateUnowned(w.Ctx, note("3")); made || !errors.Is(err, cause) {
		t.Errorf("made %v, %v", made, err)
	}
}
