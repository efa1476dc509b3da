package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/bench/beside"
	"github.com/heliostat-dev/heliostat/tests/live"
)

const (
	// callersNamespace has the accounts of callers, all of which may view everything.
	callersNamespace = "callers"
	// atOnce is how many requests prepare a Kubernetes at the same time.
	atOnce = 16
)

// world is a Kubernetes with the chart installed, and its API server as a process of this machine.
type world struct {
	*beside.World
	apiServer int
}

// openWorld connects to the local Kubernetes that KUBECONFIG and LOCALKUBE_NAME name, and lets all callers view everything.
func openWorld(ctx context.Context) (*world, error) {
	apiServer, err := live.Process("kube-apiserver", "localkube/"+os.Getenv("LOCALKUBE_NAME")+".")
	if err != nil {
		return nil, err
	}
	programs := map[string]string{"server": "./apiserver/cmd/server", "informers": "./tests/bench/portals/informers"}
	opened, err := beside.Open(ctx, programs, callersNamespace)
	if err != nil {
		return nil, err
	}
	viewers := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: callersNamespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:serviceaccounts:" + callersNamespace}},
	}
	return &world{opened, apiServer}, opened.Ensure(ctx, viewers)
}

// tokens returns tokens of as many callers.
func (w *world) tokens(ctx context.Context, count int) ([]string, error) {
	all := make([]string, count)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range all {
		group.Go(func() (err error) {
			all[i], err = w.TokenOf(ctx, callersNamespace, fmt.Sprintf("caller-%d", i))
			return err
		})
	}
	return all, group.Wait()
}

// fill makes objects until there are as many. Of ten, four are clusters with two pods each, five are jobs and one is a service.
func (w *world) fill(ctx context.Context, count int) error {
	for i := range namespaces {
		if err := w.Ensure(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(i)}}); err != nil {
			return err
		}
	}
	for i := range namespaces {
		if err := live.Until(ctx, beside.StartLimit, "the account of "+namespaceOf(i), w.HasAccount(namespaceOf(i))); err != nil {
			return err
		}
	}
	made, err := w.made(ctx)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range count {
		if object, _ := newObject(i); !made[object.GetName()] {
			group.Go(func() error { return w.make(ctx, i) })
		}
	}
	return group.Wait()
}

// made returns the names of objects that are there already: a Kubernetes is filled once for several measurements.
func (w *world) made(ctx context.Context) (map[string]bool, error) {
	names := map[string]bool{}
	for _, kind := range []string{"ComputeClusterList", "ClusterJobList", "ClusterServiceList"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind))
		if err := w.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list what is there: %w", err)
		}
		for i := range list.Items {
			names[list.Items[i].Name] = true
		}
	}
	return names, nil
}

// make makes one object with its status, and its pods.
func (w *world) make(ctx context.Context, i int) error {
	object, setStatus := newObject(i)
	if err := w.Create(ctx, object); err != nil {
		return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
	}
	setStatus()
	if err := w.Status().Update(ctx, object); err != nil {
		return fmt.Errorf("write the status of %s: %w", object.GetName(), err)
	}
	cluster, is := object.(*v1beta1.ComputeCluster)
	if !is {
		return nil
	}
	return errors.Join(w.Create(ctx, newPod(cluster, v1beta1.RoleHead)), w.Create(ctx, newPod(cluster, v1beta1.RoleWorker)))
}
