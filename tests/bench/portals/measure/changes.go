package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// changesAtOnce is how many changes are under way at most: an API server that is slow gets no more.
const changesAtOnce = 64

// changes are those of clusters' statuses, at a constant rate.
type changes struct {
	*world
	names []types.NamespacedName

	mutex sync.Mutex
	next  int
	// sent is when each change was sent, by the resourceVersion that it made.
	sent map[uint64]time.Time
}

func (w *world) newChanges(ctx context.Context) (*changes, error) {
	clusters := &metav1.PartialObjectMetadataList{}
	clusters.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("ComputeClusterList"))
	if err := w.List(ctx, clusters); err != nil {
		return nil, fmt.Errorf("list the clusters: %w", err)
	}
	c := &changes{world: w, sent: map[uint64]time.Time{}}
	for i := range clusters.Items {
		c.names = append(c.names, types.NamespacedName{Namespace: clusters.Items[i].Namespace, Name: clusters.Items[i].Name})
	}
	return c, nil
}

// run makes changes for a time, one after the other object, and returns how many.
func (c *changes) run(ctx context.Context, rate int, during time.Duration) (int, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(changesAtOnce)
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	made := 0
	for end := time.Now().Add(during); time.Now().Before(end) && ctx.Err() == nil; made++ {
		<-ticker.C
		number := c.next
		c.next++
		group.Go(func() error { return c.change(ctx, number) })
	}
	return made, group.Wait()
}

func (c *changes) change(ctx context.Context, number int) error {
	name := c.names[number%len(c.names)]
	cluster := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	sent := time.Now() // no two changes are the same: the API server would make nothing of a second one
	patch := fmt.Appendf(nil, `{"status":{"summary":{"ready":"%d"}}}`, sent.UnixNano())
	if err := c.Status().Patch(ctx, cluster, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("change cluster %s: %w", name, err)
	}
	version, err := strconv.ParseUint(cluster.ResourceVersion, 10, 64)
	if err != nil {
		return fmt.Errorf("read a resourceVersion: %w", err)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.sent[version] = sent
	return nil
}

// delays returns how late changes came, in milliseconds.
func (c *changes) delays(arrivals []arrival) []float64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	var all []float64
	for _, one := range arrivals {
		if sent, is := c.sent[one.version]; is {
			all = append(all, ms(one.at.Sub(sent)))
		}
	}
	return all
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
