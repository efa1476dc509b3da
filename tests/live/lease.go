package live

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ExpireLease releases a Lease, as if its time had run out, even while its holder renews it. A caller that
// has killed the holder waits until that process is gone: it could still take the Lease back.
func (c *Cluster) ExpireLease(ctx context.Context, namespace, name string) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	nobody := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"holderIdentity":"","leaseDurationSeconds":1}}`))
	if err := c.Patch(ctx, lease, nobody); err != nil {
		return fmt.Errorf("expire Lease %s/%s: %w", namespace, name, err)
	}
	return nil
}
