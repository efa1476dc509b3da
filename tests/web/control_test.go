package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// control is what the tests in the browser's language ask the bed for, as the operator or an administrator would do it.
func (b *bed) control() {
	b.t.Helper()
	mux := http.NewServeMux()
	for path, do := range map[string]func(r *http.Request) error{
		"/drop": func(*http.Request) error { b.door.drop(); return nil },
		"/put": func(r *http.Request) error {
			object := &unstructured.Unstructured{}
			if err := json.NewDecoder(r.Body).Decode(&object.Object); err != nil {
				return err
			}
			return b.put(r.Context(), object)
		},
		"/status": b.setStatus,
		"/run": func(r *http.Request) error {
			return b.run(r.Context(), r.URL.Query().Get("job"), r.URL.Query().Get("entrypoint"))
		},
		"/many": func(r *http.Request) error { return b.makeMany(r.Context(), number(r, "count")) },
		"/churn": func(r *http.Request) error {
			return b.churn(r.Context(), number(r, "count"), number(r, "rate"), number(r, "seconds"))
		},
	} {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			if err := do(r); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
	}
	listener, err := b.island.Listen(controlAddress)
	must(b.t, err)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	b.t.Cleanup(func() { _ = server.Close() })
}

func number(r *http.Request, name string) int {
	value, _ := strconv.Atoi(r.URL.Query().Get(name)) // none is zero
	return value
}

// setStatus merges into the status of an object.
func (b *bed) setStatus(r *http.Request) error {
	query := r.URL.Query()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(v1beta1.GroupVersion.String())
	object.SetKind(query.Get("kind"))
	object.SetNamespace(b.namespace)
	object.SetName(query.Get("name"))
	var status map[string]any
	if err := json.NewDecoder(r.Body).Decode(&status); err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	return b.Status().Patch(r.Context(), object, client.RawPatch(types.MergePatchType, patch))
}

func manyName(i int) string { return fmt.Sprintf("load-%04d", i) }

// atOnce is how many requests are under way.
const atOnce = 8

// each calls a function for numbers below a count, some at once.
func each(count int, do func(i int) error) error {
	var wait sync.WaitGroup
	errs := make(chan error, count)
	numbers := make(chan int)
	for range atOnce {
		wait.Go(func() {
			for i := range numbers {
				if err := do(i); err != nil {
					errs <- err
				}
			}
		})
	}
	for i := range count {
		numbers <- i
	}
	close(numbers)
	wait.Wait()
	close(errs)
	return <-errs
}

// makeMany makes so many clusters that are ready.
func (b *bed) makeMany(ctx context.Context, count int) error {
	return each(count, func(i int) error {
		cluster := &v1beta1.ComputeCluster{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: b.namespace, Name: manyName(i),
				Annotations: map[string]string{v1beta1.AnnotationOwner: fmt.Sprintf("user-%d@example.com", i%40)},
			},
			Spec: v1beta1.ComputeClusterSpec{RayVersion: "2.60.0"},
		}
		if err := b.Create(ctx, cluster); err != nil {
			return err
		}
		return b.change(ctx, i, "head and 0 of 0 workers are ready")
	})
}

// change gives one of the many a message.
func (b *bed) change(ctx context.Context, i int, message string) error {
	cluster := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: manyName(i)}}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"phase": "Ready", "conditions": []metav1.Condition{{
		Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue, Reason: "AllReady", Message: message,
		LastTransitionTime: metav1.Now(),
	}}}})
	if err != nil {
		return err
	}
	return b.Status().Patch(ctx, cluster, client.RawPatch(types.MergePatchType, patch))
}

// churn changes so many of the many each second, for some seconds. A message is the time at which it was written.
func (b *bed) churn(ctx context.Context, count, rate, seconds int) error {
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	var wait sync.WaitGroup
	defer wait.Wait()
	slots := make(chan struct{}, 4*atOnce)
	for i := range rate * seconds {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			_ = b.change(ctx, i%count, fmt.Sprintf("at %d", time.Now().UnixMilli())) // one that fails is not measured
		})
	}
	return nil
}
