package kube

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Wrote is told of a write once it was answered: of which kind, with "/" and the
// subresource behind it where there is one, by which verb of the API, with what outcome,
// and after how many seconds.
type Wrote func(kind, verb string, err error, seconds float64)

// Metered gives a client that does as c does and tells of each write.
func Metered(c client.Client, clock clock.PassiveClock, wrote Wrote) client.Client {
	return &metered{Client: c, meter: meter{scheme: c.Scheme(), clock: clock, wrote: wrote}}
}

type metered struct {
	client.Client
	meter
}

type meter struct {
	scheme *runtime.Scheme
	clock  clock.PassiveClock
	wrote  Wrote
}

func (m meter) measure(kind, verb string, write func() error) error {
	begin := m.clock.Now()
	err := write()
	m.wrote(kind, verb, err, m.clock.Since(begin).Seconds())
	return err
}

// kind names the kind of an object.
func (m meter) kind(obj runtime.Object) string {
	gvk, err := apiutil.GVKForObject(obj, m.scheme)
	if err != nil {
		return "unknown"
	}
	return gvk.Kind
}

// appliedKind names the kind of an apply configuration.
func appliedKind(config runtime.ApplyConfiguration) string {
	if named, ok := config.(interface{ GetKind() *string }); ok && named.GetKind() != nil {
		return *named.GetKind()
	}
	if named, ok := config.(interface{ GetKind() string }); ok {
		return named.GetKind()
	}
	return "unknown"
}

// Create as client.Writer says.
func (m *metered) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return m.measure(m.kind(obj), "create", func() error { return m.Client.Create(ctx, obj, opts...) })
}

// Delete as client.Writer says.
func (m *metered) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return m.measure(m.kind(obj), "delete", func() error { return m.Client.Delete(ctx, obj, opts...) })
}

// Update as client.Writer says.
func (m *metered) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return m.measure(m.kind(obj), "update", func() error { return m.Client.Update(ctx, obj, opts...) })
}

// Patch as client.Writer says.
func (m *metered) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return m.measure(m.kind(obj), "patch", func() error { return m.Client.Patch(ctx, obj, patch, opts...) })
}

// Apply as client.Writer says; the API calls it a patch.
func (m *metered) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return m.measure(appliedKind(config), "patch", func() error { return m.Client.Apply(ctx, config, opts...) })
}

// DeleteAllOf as client.Writer says.
func (m *metered) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	return m.measure(m.kind(obj), "deletecollection", func() error { return m.Client.DeleteAllOf(ctx, obj, opts...) })
}

// Status as client.StatusClient says.
func (m *metered) Status() client.SubResourceWriter { return m.SubResource("status") }

// SubResource as client.SubResourceClientConstructor says.
func (m *metered) SubResource(name string) client.SubResourceClient {
	return &meteredPart{SubResourceClient: m.Client.SubResource(name), meter: m.meter, name: "/" + name}
}

// meteredPart is a client of one subresource.
type meteredPart struct {
	client.SubResourceClient
	meter
	name string
}

// Create as client.SubResourceWriter says.
func (m *meteredPart) Create(ctx context.Context, obj, part client.Object, opts ...client.SubResourceCreateOption) error {
	return m.measure(m.kind(obj)+m.name, "create", func() error { return m.SubResourceClient.Create(ctx, obj, part, opts...) })
}

// Update as client.SubResourceWriter says.
func (m *meteredPart) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return m.measure(m.kind(obj)+m.name, "update", func() error { return m.SubResourceClient.Update(ctx, obj, opts...) })
}

// Patch as client.SubResourceWriter says.
func (m *meteredPart) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return m.measure(m.kind(obj)+m.name, "patch", func() error { return m.SubResourceClient.Patch(ctx, obj, patch, opts...) })
}

// Apply as client.SubResourceWriter says; the API calls it a patch.
func (m *meteredPart) Apply(ctx context.Context, config runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	return m.measure(appliedKind(config)+m.name, "patch", func() error { return m.SubResourceClient.Apply(ctx, config, opts...) })
}
