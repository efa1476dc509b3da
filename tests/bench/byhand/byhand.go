// Package byhand measures what the operator adds to a Ray cluster's start: the same
// pods applied by hand and made from a ComputeCluster, in turn, on the same nodes.
//
// In: a local Kubernetes of two nodes with the images of Ray and the operator; the
// manifests in this directory, which run.sh applies without any of this. Out: for each
// round the seconds from apply until Ray's global control service lists head and
// workers, and until they are ready. Both sides are watched alike. It must never leave
// its namespace behind.
package byhand

import (
	"context"
	_ "embed" // the manifests
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

var (
	//go:embed manifests.yaml
	manifests []byte
	//go:embed cluster.yaml
	cluster []byte
)

// Namespace is that of the manifests; nodes is how many they give Ray.
const (
	Namespace = "byhand"
	nodes     = 3
	limit     = 3 * time.Minute
)

var name = types.NamespacedName{Namespace: Namespace, Name: "demo"}

// Sample is one start: seconds since apply.
type Sample struct {
	// Unlisted is when the head was last asked and did not list head and workers yet;
	// Listed is when its answer was there that listed them as alive.
	Unlisted float64 `json:"unlisted"`
	Listed   float64 `json:"listed"`
	// Ready is when all pods were Ready, by hand, or the ComputeCluster was.
	Ready float64 `json:"ready"`
}

// Round is a start by hand and one by the operator after it.
type Round struct {
	ByHand   Sample `json:"byHand"`
	Operator Sample `json:"operator"`
}

// Promises, in seconds: how much later than by hand Ray lists all nodes, and how long
// after that the ComputeCluster is Ready.
const (
	PromisedListed = 1.0
	PromisedReady  = 1.5
)

// Medians are those of several rounds, in seconds.
type Medians struct {
	// ByHand and Operator are when Ray listed all nodes.
	ByHand, Operator float64
	// Ready is how long after that the ComputeCluster was Ready.
	Ready float64
	// TooEarly tells that in a round Ray, asked after it was Ready, did not list all.
	TooEarly bool
}

// Later is how much later than by hand Ray listed all nodes.
func (m Medians) Later() float64 { return m.Operator - m.ByHand }

// Kept reports whether the promises were.
func (m Medians) Kept() bool {
	return m.Later() <= PromisedListed && m.Ready <= PromisedReady && !m.TooEarly
}

// Summarise takes the medians of at least one round.
func Summarise(rounds []Round) Medians {
	median := func(of func(Round) float64) float64 {
		values := make([]float64, 0, len(rounds))
		for _, round := range rounds {
			values = append(values, of(round))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return Medians{
		ByHand:   median(func(r Round) float64 { return r.ByHand.Listed }),
		Operator: median(func(r Round) float64 { return r.Operator.Listed }),
		Ready:    median(func(r Round) float64 { return r.Operator.Ready - r.Operator.Listed }),
		TooEarly: slices.ContainsFunc(rounds, func(r Round) bool { return r.Operator.Ready < r.Operator.Unlisted }),
	}
}

// side is one way to start the cluster.
type side struct {
	apply, ready, remove func(context.Context) error
}

// bench runs rounds.
type bench struct {
	*live.Cluster
	// pods by place, as each side had them.
	byHand, operator map[string]corev1.PodSpec
}

// round starts and removes the cluster by hand and then by the operator.
func (b *bench) round(ctx context.Context) (r Round, err error) {
	sides := []struct {
		side
		into *Sample
		pods *map[string]corev1.PodSpec
	}{
		{b.hand(), &r.ByHand, &b.byHand},
		{b.operatorSide(), &r.Operator, &b.operator},
	}
	for _, s := range sides {
		if *s.into, err = b.start(ctx, s.side); err != nil {
			return r, err
		}
		if *s.pods, err = b.specs(ctx); err != nil {
			return r, err
		}
		if err = s.remove(ctx); err != nil {
			return r, err
		}
		if err = b.UntilGone(ctx, name, limit); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (b *bench) hand() side {
	return side{
		apply: func(ctx context.Context) error { return b.Apply(ctx, Namespace, manifests) },
		ready: b.podsReady,
		remove: func(ctx context.Context) error {
			grace := client.GracePeriodSeconds(5) // what the operator gives pods whose cluster is gone
			labels := client.MatchingLabels{v1beta1.LabelCluster: name.Name}
			var errs []error
			for _, kind := range []client.Object{&corev1.Pod{}, &corev1.Service{}, &corev1.Secret{}} {
				errs = append(errs, b.DeleteAllOf(ctx, kind, client.InNamespace(Namespace), labels, grace))
			}
			return errors.Join(errs...)
		},
	}
}

func (b *bench) operatorSide() side {
	return side{
		apply: func(ctx context.Context) error { return b.Apply(ctx, Namespace, cluster) },
		ready: func(ctx context.Context) error {
			found, err := b.Find(ctx, name)
			if err != nil {
				return err
			}
			return live.IsReady(found)
		},
		remove: func(ctx context.Context) error {
			return b.DeleteAllOf(ctx, &v1beta1.ComputeCluster{}, client.InNamespace(Namespace))
		},
	}
}

// start applies a side and watches, at the same time, what Ray and Kubernetes say.
func (b *bench) start(ctx context.Context, s side) (Sample, error) {
	var sample Sample
	begin := time.Now()
	if err := s.apply(ctx); err != nil {
		return sample, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		unlisted, err := b.untilListed(ctx)
		sample.Unlisted, sample.Listed = unlisted.Sub(begin).Seconds(), time.Since(begin).Seconds()
		return err
	})
	group.Go(func() error {
		err := live.Until(ctx, limit, "everything to be ready", s.ready)
		sample.Ready = time.Since(begin).Seconds()
		return err
	})
	return sample, group.Wait()
}

// untilListed waits until the head lists all nodes, and gives when it was last asked
// and answered that it did not. It asks the head's pod itself.
func (b *bench) untilListed(ctx context.Context) (unlisted time.Time, err error) {
	unlisted = time.Now()
	gcs, err := b.dial(ctx)
	if err != nil {
		return unlisted, err
	}
	defer func() { _ = gcs.Close() }()
	err = live.Until(ctx, limit, "the head to list all nodes", func(ctx context.Context) error {
		asked := time.Now()
		alive, err := gcs.Alive(ctx)
		if err == nil && alive != nodes {
			unlisted = asked
			err = fmt.Errorf("it lists %d", alive)
		}
		return err
	})
	return unlisted, err
}

// dial waits until the head has an address, and prepares to ask there.
func (b *bench) dial(ctx context.Context) (*live.GCS, error) {
	var head corev1.Pod
	err := live.Until(ctx, limit, "the head to have an address", func(ctx context.Context) error {
		pods, err := b.PodsOf(ctx, name, v1beta1.RoleHead)
		if err != nil {
			return err
		}
		if len(pods) != 1 || pods[0].Status.PodIP == "" {
			return fmt.Errorf("there are %d head pods, or no address yet", len(pods))
		}
		head = pods[0]
		return nil
	})
	if err != nil {
		return nil, err
	}
	token, err := b.token(ctx)
	if err != nil {
		return nil, err
	}
	return live.DialGCS(head.Status.PodIP, token, nil)
}

func (b *bench) token(ctx context.Context) (string, error) {
	var secret corev1.Secret
	if err := b.Get(ctx, types.NamespacedName{Namespace: Namespace, Name: name.Name + "-token"}, &secret); err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	return string(secret.Data[v1beta1.TokenKey]), nil
}

func (b *bench) podsReady(ctx context.Context) error {
	pods, err := b.PodsOf(ctx, name, "")
	if err != nil {
		return err
	}
	ready := 0
	for _, pod := range pods {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	if ready != nodes {
		return fmt.Errorf("%d pods are ready", ready)
	}
	return nil
}

// specs are the pods' specs by role and slot, without the node that the scheduler chose.
func (b *bench) specs(ctx context.Context) (map[string]corev1.PodSpec, error) {
	pods, err := b.PodsOf(ctx, name, "")
	specs := map[string]corev1.PodSpec{}
	for _, pod := range pods {
		pod.Spec.NodeName = ""
		specs[pod.Labels[v1beta1.LabelRole]+pod.Labels[v1beta1.LabelSlot]] = pod.Spec
	}
	return specs, err
}
