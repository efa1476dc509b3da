package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// longIdle is longer than any run: a policy that is watched and never acts.
const longIdle = int32(24 * 60 * 60)

// share is how many of n clusters have an idle policy, and how many services there are beside them.
func share(n int) int { return n * 2 / 5 }

// mixed are the objects of a fleet beside its clusters: a job that runs on each, and services with a cluster of their
// own each, whose names begin with ServiceName.
func (f *fleet) mixed() []client.Object {
	var all []client.Object
	for i, name := range f.names {
		all = append(all, &v1beta1.ClusterJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: fmt.Sprintf("job-%d", i)},
			Spec:       v1beta1.ClusterJobSpec{ClusterRef: &v1beta1.ClusterReference{Name: name.Name}, Entrypoint: "hang"},
		})
	}
	for i, name := range f.names[:share(len(f.names))] {
		all = append(all, &v1beta1.ClusterService{
			ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: fmt.Sprintf("service-%d", i)},
			Spec: v1beta1.ClusterServiceSpec{
				ServeConfig: runtime.RawExtension{Raw: []byte(`{"applications":[{"name":"echo","route_prefix":"/","import_path":"echo:app",` +
					`"deployments":[{"name":"Echo","num_replicas":1}]}]}`)},
				ClusterTemplate: &v1beta1.ClusterTemplate{Spec: v1beta1.ComputeClusterSpec{
					RayVersion: "2.60.0", WorkerGroups: []v1beta1.WorkerGroup{{Name: "cpu", Replicas: new(int32(1))}},
				}},
			},
		})
	}
	return all
}

// withPolicies is of clusters of which some have an idle policy.
func withPolicies(of subject, names []types.NamespacedName) subject {
	watched := map[types.NamespacedName]bool{}
	for _, name := range names[:share(len(names))] {
		watched[name] = true
	}
	plain := of.make
	of.make = func(name types.NamespacedName) client.Object {
		made := plain(name)
		if cluster, ok := made.(*v1beta1.ComputeCluster); ok && watched[name] {
			cluster.Spec.IdlePolicy = &v1beta1.IdlePolicy{AfterSeconds: longIdle, Action: v1beta1.IdleSuspend}
		}
		return made
	}
	return of
}

// untilMixed waits until all jobs run and all services serve.
func (f *fleet) untilMixed(ctx context.Context) error {
	var jobs v1beta1.ClusterJobList
	var services v1beta1.ClusterServiceList
	return live.Until(ctx, limit, "jobs to run and services to serve", func(ctx context.Context) error {
		if err := pass(ctx, time.Second); err != nil { // for a list costs the API server much
			return err
		}
		if err := errors.Join(f.List(ctx, &jobs), f.List(ctx, &services)); err != nil {
			return err
		}
		for i := range jobs.Items {
			if job := &jobs.Items[i]; job.Status.Phase != v1beta1.PhaseRunning {
				return fmt.Errorf("job %s is %s", job.Name, live.SaysOf(job))
			}
		}
		for i := range services.Items {
			if err := live.IsServing(&services.Items[i]); err != nil {
				return fmt.Errorf("service %s: %w", services.Items[i].Name, err)
			}
		}
		return nil
	})
}
