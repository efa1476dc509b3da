package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// subject is the kind of cluster that a contender manages.
type subject struct {
	// make gives a cluster of a head and three workers.
	make func(types.NamespacedName) client.Object
	// ready reports whether a cluster's status says that all that it asks for is ready.
	ready func(client.Object) bool
	// grow asks for one more worker.
	grow func(context.Context, *controlPlane, types.NamespacedName) error
}

// computeClusters are those that the operator and the floor manage.
func computeClusters() subject {
	return subject{
		make: func(name types.NamespacedName) client.Object { return newCluster(name) },
		ready: func(obj client.Object) bool {
			cluster, ok := obj.(*v1beta1.ComputeCluster)
			return ok && live.IsReady(cluster) == nil
		},
		grow: func(ctx context.Context, cp *controlPlane, name types.NamespacedName) error {
			return cp.Edit(ctx, name, func(spec *v1beta1.ComputeClusterSpec) { *spec.WorkerGroups[0].Replicas++ })
		},
	}
}

// subject is what a contender of a name manages.
func (b *bench) subject(contender string) subject {
	if b.other != nil && contender == b.other.Name {
		return b.other.subject()
	}
	return computeClusters()
}

// install prepares the control plane for a contender, and gives its kubeconfig.
func (b *bench) install(ctx context.Context, cp *controlPlane, contender string) (string, error) {
	if b.other != nil && contender == b.other.Name {
		return cp.installOther(ctx, b.other)
	}
	return cp.install(ctx, b.chart)
}

// start starts a contender.
func (b *bench) start(cp *controlPlane, kubeconfig, name string) (*contender, error) {
	c, err := b.launch(cp, kubeconfig, name)
	if c != nil {
		c.asks = b.heads
	}
	return c, err
}

func (b *bench) launch(cp *controlPlane, kubeconfig, name string) (*contender, error) {
	p := program{name: name, path: b.program(name)}
	switch {
	case name == Floor:
		p.args = []string{"--objects=" + b.mould}
		return cp.startFloor(b.chart, p, kubeconfig)
	case name == Operator:
		return cp.startOperator(b.chart, p, kubeconfig)
	case b.other != nil && name == b.other.Name:
		return cp.startOther(b.other, kubeconfig)
	}
	return nil, fmt.Errorf("start %s: nothing is known of it", name)
}
