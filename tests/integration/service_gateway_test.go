package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

const (
	repository = "../.."
	// unlearning is a generous limit for the API server to give up kinds: when two parts of it
	// write to a CRD at the same moment, it looks again only after two minutes.
	unlearning = 5 * time.Minute
)

// TestAServiceBehindAGateway: the operator runs where Gateway API is absent, and picks it up and
// lets it go without a restart; the route is as the API server's own schema has it, is mended, and
// goes with what asked for it. make accept shows on real Ray how a gateway divides requests.
func TestAServiceBehindAGateway(t *testing.T) {
	t.Parallel()
	must(t, shared.RemoveGatewayAPI(t.Context(), repository, unlearning)) // what a run before has left
	t.Cleanup(func() {
		if err := shared.RemoveGatewayAPI(context.WithoutCancel(t.Context()), repository, unlearning); err != nil {
			t.Error(err)
		}
	})
	namespace := newNamespace(t)
	startOperator(t, "--watch-namespaces="+namespace)
	g := gated{types.NamespacedName{Namespace: namespace, Name: "echo"}}
	must(t, shared.Create(t.Context(), g.service()))
	g.says(t, metav1.ConditionFalse, "GatewayAPIMissing")

	must(t, shared.InstallGatewayAPI(t.Context(), repository, limit))
	g.says(t, metav1.ConditionFalse, "GatewayPending")
	g.leads(t)
	must(t, shared.TakeRoute(t.Context(), g.route(t)))
	g.says(t, metav1.ConditionTrue, "GatewayProgrammed")

	meddle(t, g.route(t), func(route *gatewayv1.HTTPRoute) {
		route.Spec.Rules[0].BackendRefs[0].Weight = new(int32(0))
	}, func(route *gatewayv1.HTTPRoute) bool { return *route.Spec.Rules[0].BackendRefs[0].Weight == 100 })
	must(t, shared.TakeRoute(t.Context(), g.route(t)))
	g.says(t, metav1.ConditionTrue, "GatewayProgrammed")

	t.Run("no gateway, and one again", g.withdrawn)
	t.Run("no Gateway API, and again", g.removed)

	route := g.route(t)
	must(t, shared.DropServices(t.Context(), namespace, limit))
	eventually(t, "the route to be gone", func(ctx context.Context) error {
		return absent(shared.Get(ctx, client.ObjectKeyFromObject(route), route))
	})
}

// gated is a service behind a gateway.
type gated struct{ types.NamespacedName }

func (g gated) gateway() *v1beta1.ServiceGateway {
	return &v1beta1.ServiceGateway{
		ParentRef: v1beta1.GatewayReference{Name: "public", Namespace: "infra", SectionName: "http"}, Hostnames: []string{"echo.example.com", "*.example.org"},
	}
}

func (g gated) service() *v1beta1.ClusterService {
	return &v1beta1.ClusterService{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name},
		Spec: v1beta1.ClusterServiceSpec{
			ServeConfig: echo(0), UpgradeStrategy: &v1beta1.ServiceUpgradeStrategy{Gateway: g.gateway()},
			ClusterTemplate: &v1beta1.ClusterTemplate{Spec: v1beta1.ComputeClusterSpec{
				RayVersion: "2.60.0", WorkerGroups: []v1beta1.WorkerGroup{{Name: "cpu", Replicas: new(int32(1))}},
			}},
		},
	}
}

// says waits until the condition about the gateway is so.
func (g gated) says(t *testing.T, status metav1.ConditionStatus, why string) {
	t.Helper()
	eventually(t, fmt.Sprintf("GatewayProgrammed to be %s for %s", status, why), func(ctx context.Context) error {
		found, err := shared.FindService(ctx, g.NamespacedName)
		if err != nil {
			return err
		}
		told := meta.FindStatusCondition(found.Status.Conditions, v1beta1.ConditionGatewayProgrammed)
		if told == nil || told.Status != status || told.Reason != why || told.Message == "" {
			return fmt.Errorf("it is %s", live.SaysOfService(found))
		}
		return nil
	})
}

// route waits until the service has its route, and gives it.
func (g gated) route(t *testing.T) *gatewayv1.HTTPRoute {
	t.Helper()
	route := &gatewayv1.HTTPRoute{}
	eventually(t, "the route", func(ctx context.Context) error { return shared.Get(ctx, g.NamespacedName, route) })
	return route
}

// leads checks that the route leads to a Service of the version.
func (g gated) leads(t *testing.T) {
	t.Helper()
	route := g.route(t)
	refs := route.Spec.Rules[0].BackendRefs
	if len(refs) != 1 || *refs[0].Weight != 100 || string(route.Spec.Hostnames[1]) != "*.example.org" || string(*route.Spec.ParentRefs[0].Namespace) != "infra" {
		t.Fatalf("the route is %+v", route.Spec)
	}
	var version corev1.Service
	must(t, shared.Get(t.Context(), types.NamespacedName{Namespace: g.Namespace, Name: string(refs[0].Name)}, &version))
	if version.Spec.Selector["route.heliostat.dev/"+g.Name] != "true" || version.Spec.Ports[0].Port != *refs[0].Port {
		t.Fatalf("its Service is %+v", version.Spec)
	}
}

// withdrawn takes the gateway from the spec and gives it back.
func (g gated) withdrawn(t *testing.T) {
	route := g.route(t)
	version := types.NamespacedName{Namespace: g.Namespace, Name: string(route.Spec.Rules[0].BackendRefs[0].Name)}
	set := func(gateway *v1beta1.ServiceGateway) {
		must(t, shared.EditService(t.Context(), g.NamespacedName, func(spec *v1beta1.ClusterServiceSpec) error {
			spec.UpgradeStrategy.Gateway = gateway
			return nil
		}))
	}
	set(nil)
	eventually(t, "route and Service to be gone", func(ctx context.Context) error {
		return errors.Join(absent(shared.Get(ctx, g.NamespacedName, &gatewayv1.HTTPRoute{})), absent(shared.Get(ctx, version, &corev1.Service{})))
	})
	set(g.gateway())
	g.leads(t)
}

// removed takes Gateway API away while there is a route, and gives it back.
func (g gated) removed(t *testing.T) {
	must(t, shared.RemoveGatewayAPI(t.Context(), repository, unlearning))
	g.says(t, metav1.ConditionFalse, "GatewayAPIMissing")
	must(t, shared.InstallGatewayAPI(t.Context(), repository, limit))
	g.leads(t)
}

// absent tells by nil that a read found nothing.
func absent(err error) error {
	switch {
	case err == nil:
		return errors.New("it is there")
	case apierrors.IsNotFound(err):
		return nil
	default:
		return err
	}
}
