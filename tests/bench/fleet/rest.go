package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Idle is what a contender does while nothing happens.
type Idle struct {
	Seconds float64 `json:"seconds"`
	// Calls are those of the whole fleet in that time.
	Calls Calls `json:"calls"`
	// CPU is in ms per second.
	CPU float64 `json:"cpu"`
}

// Deletion is what a contender does when all clusters are deleted at once.
type Deletion struct {
	// Seconds from the first deletion until neither clusters nor pods are left.
	Seconds float64 `json:"seconds"`
	Calls   Calls   `json:"calls"`
	// CPU and ServerCPU are in ms per cluster, until the contender is calm.
	CPU       float64 `json:"cpu"`
	ServerCPU float64 `json:"serverCPU"`
}

// pass waits for as long.
func pass(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(wait):
		return nil
	}
}

// rest looks at what the contender does for a while in which nothing happens.
func (s *Sample) rest(ctx context.Context, f *fleet, c *contender, during time.Duration) error {
	before, err := read(ctx, f.controlPlane, c)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := pass(ctx, during); err != nil {
		return err
	}
	now, err := read(ctx, f.controlPlane, c)
	if err != nil {
		return err
	}
	seconds := time.Since(begin).Seconds()
	s.Idle = &Idle{Seconds: seconds, CPU: ms(now.cpu-before.cpu) / seconds}
	s.Idle.Calls, err = f.audit.since(before.log)
	return err
}

// delete deletes the whole fleet, as kubectl delete does, and waits until nothing of it is left.
func (s *Sample) delete(ctx context.Context, f *fleet, c *contender) error {
	before, err := read(ctx, f.controlPlane, c)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := f.deleteAll(ctx); err != nil {
		return err
	}
	if err := live.Until(ctx, limit, "the fleet to be gone", f.gone); err != nil {
		return err
	}
	s.Deletion = &Deletion{Seconds: time.Since(begin).Seconds()}
	if _, err := c.untilCalm(ctx); err != nil {
		return err
	}
	now, err := read(ctx, f.controlPlane, c)
	if err != nil {
		return err
	}
	s.Deletion.CPU, s.Deletion.ServerCPU = ms(now.cpu-before.cpu)/float64(s.Clusters), ms(now.server-before.server)/float64(s.Clusters)
	s.Deletion.Calls, err = f.audit.since(before.log)
	return err
}

// deleteAll deletes all clusters and what is beside them as fast as the API server takes it.
func (f *fleet) deleteAll(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, name := range f.names {
		group.Go(func() error {
			if err := f.Delete(ctx, f.make(name), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				return fmt.Errorf("delete cluster %s: %w", name, err)
			}
			return nil
		})
	}
	for _, object := range f.beside {
		group.Go(func() error {
			if err := f.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				return fmt.Errorf("delete %T %s: %w", object, object.GetName(), err)
			}
			return nil
		})
	}
	return group.Wait()
}

// gone reports by nil that neither clusters nor pods are left, but for the first cluster. It costs the API server little.
func (f *fleet) gone(ctx context.Context) error {
	kind, err := apiutil.GVKForObject(f.make(types.NamespacedName{}), f.Scheme())
	if err != nil {
		return fmt.Errorf("find the kind of the clusters: %w", err)
	}
	kinds := []metav1.TypeMeta{
		{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind + "List"}, {APIVersion: corev1.SchemeGroupVersion.String(), Kind: "PodList"},
	}
	if len(f.beside) > 0 {
		for _, kind := range []string{"ClusterJobList", "ClusterServiceList"} {
			kinds = append(kinds, metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: kind})
		}
	}
	for _, kind := range kinds {
		left := metav1.PartialObjectMetadataList{TypeMeta: kind}
		err := f.List(ctx, &left, client.Limit(1), client.MatchingFieldsSelector{
			Selector: fields.OneTermNotEqualSelector("metadata.namespace", mouldNamespace),
		})
		if err == nil && len(left.Items) > 0 {
			err = errors.New("some of the " + kind.Kind + " is left, such as " + left.Items[0].Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
