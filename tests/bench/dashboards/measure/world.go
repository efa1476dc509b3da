package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/tests/bench/beside"
)

const (
	namespace = "team-a"
	cluster   = "demo"
	headIP    = "10.1.0.1"
	headToken = "a-token-of-the-cluster-demo-0123456789"
	// objects is how many clusters the API lists.
	objects = 500
)

// world is a Kubernetes with the chart installed and a cluster whose head runs, two callers, and the two ends.
type world struct {
	*beside.World
	tokens [2]string
	// head runs as long as the world.
	head *beside.Process
}

func openWorld(ctx context.Context) (*world, error) {
	opened, err := beside.Open(ctx, map[string]string{"server": "./apiserver/cmd/server"}, namespace)
	if err != nil {
		return nil, err
	}
	w := &world{World: opened}
	for _, step := range []func(context.Context) error{w.makeCallers, w.makeObjects, w.startHead} {
		if err := step(ctx); err != nil {
			opened.Close()
			return nil, err
		}
	}
	return w, nil
}

// end ends what runs as long as the world.
func (w *world) end() {
	_ = w.head.Stop()
	w.Close()
}

// makeCallers makes two accounts that can open everything in the namespace.
func (w *world) makeCallers(ctx context.Context) (err error) {
	for i := range w.tokens {
		name := fmt.Sprintf("caller-%d", i)
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}},
		}
		if err := w.Ensure(ctx, binding); err != nil {
			return err
		}
		if w.tokens[i], err = w.TokenOf(ctx, namespace, name); err != nil {
			return err
		}
	}
	return nil
}

// makeObjects makes the cluster with its head, and many others without.
func (w *world) makeObjects(ctx context.Context) error {
	for i := range objects {
		name := cluster
		if i > 0 {
			name = fmt.Sprintf("other-%d", i)
		}
		one := &v1beta1.ComputeCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       v1beta1.ComputeClusterSpec{RayVersion: "2.60.0"},
		}
		if err := w.Ensure(ctx, one); err != nil {
			return err
		}
		if i > 0 || one.UID == "" { // it is there from a former run
			continue
		}
		if err := w.makeHead(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// makeHead makes the pod and the token of a cluster's head. No scheduler takes the pod, and so no kubelet is missed.
func (w *world) makeHead(ctx context.Context, of *v1beta1.ComputeCluster) error {
	owned := []metav1.OwnerReference{*metav1.NewControllerRef(of, v1beta1.GroupVersion.WithKind("ComputeCluster"))}
	at := naming.Place{Epoch: 1}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: naming.TokenSecret(of.Name), OwnerReferences: owned},
		Data:       map[string][]byte{v1beta1.TokenKey: []byte(headToken)},
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: naming.Pod(of.Name, of.UID, at), Labels: naming.PodLabels(of.Name, at), OwnerReferences: owned,
			Annotations: map[string]string{v1beta1.AnnotationToken: naming.TokenHash(headToken)},
		},
		Spec: corev1.PodSpec{SchedulerName: "none", Containers: []corev1.Container{{Name: v1beta1.ContainerRay, Image: "ray"}}},
	}
	if err := errors.Join(w.Create(ctx, secret), w.Create(ctx, pod)); err != nil {
		return fmt.Errorf("make the head: %w", err)
	}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: headIP, PodIPs: []corev1.PodIP{{IP: headIP}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: v1beta1.ContainerRay, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}},
	}
	if err := w.Status().Update(ctx, pod); err != nil {
		return fmt.Errorf("have the head run: %w", err)
	}
	of.Status.Phase, of.Status.Epoch = "Ready", 1
	if err := w.Status().Update(ctx, of); err != nil {
		return fmt.Errorf("have the cluster be ready: %w", err)
	}
	return nil
}
