package service_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// gate has a service use a gateway.
func gate(s *v1beta1.ClusterService) {
	s.Spec.UpgradeStrategy = &v1beta1.ServiceUpgradeStrategy{Gateway: &v1beta1.ServiceGateway{
		ParentRef: v1beta1.GatewayReference{Name: "public", Namespace: "infra"}, Hostnames: []string{"text.example.com"},
	}}
}

// gated is a world with a service behind a gateway that lags by so much, asked through it and
// through the Service at each moment.
func gated(w *testkit.World, lag time.Duration, edits ...func(*v1beta1.ClusterService)) {
	w.Helper()
	w.Gateway.Lag, w.Gateway.Slices = lag, time.Second
	own(w, append([]func(*v1beta1.ClusterService){gate}, edits...)...)
	programmed(w)
	under(w)
	w.Gateway.Demand("text")
}

// hasty has clusters go as soon as may be: that a gateway is late is then all that there is to wait
// for.
func hasty(s *v1beta1.ClusterService) {
	soon := int32(2)
	s.Spec.UpgradeStrategy.DrainSeconds, s.Spec.UpgradeStrategy.RetireAfterSeconds = &soon, &soon
}

func programmed(w *testkit.World) {
	w.Helper()
	w.ExpectService("text", "Ready", "Ready=True", "GatewayProgrammed=True GatewayProgrammed")
}

// shares are those of the Services that the route names, in its order.
func shares(w *testkit.World) []int32 {
	w.Helper()
	route := w.Route("text")
	if route == nil {
		return nil
	}
	var all []int32
	for _, ref := range route.Spec.Rules[0].BackendRefs {
		all = append(all, *ref.Weight)
	}
	return all
}

// nothingLed asserts that nothing is left of a gateway: no route, no Service of a version, no
// label.
func nothingLed(w *testkit.World) {
	w.Helper()
	if w.Route("text") != nil {
		w.Fatalf("the route is there")
	}
	var services corev1.ServiceList
	w.Must(w.Client.List(w.Ctx, &services, client.InNamespace(testkit.Namespace)))
	for i := range services.Items {
		if strings.HasSuffix(services.Items[i].Name, "-serve") {
			w.Fatalf("Service %s is there", services.Items[i].Name)
		}
	}
	var pods corev1.PodList
	w.Must(w.Client.List(w.Ctx, &pods, client.HasLabels{naming.RouteLabel("text")}))
	if len(pods.Items) > 0 {
		w.Fatalf("%d pods have the label", len(pods.Items))
	}
}

// TestGateway: requests through a gateway go over in exact steps, however late the gateway is,
// and none is lost.
func TestGateway(t *testing.T) {
	testkit.Play(t,
		testkit.Scenario{Name: "upgrade", Run: func(w *testkit.World) {
			gated(w, 0)
			w.EditService("text", image("ray:new"))
			w.After(4 * time.Minute)
			serving(w, 2)
			programmed(w)
			if want := []int32{0, 20, 40, 60, 80, 100}; !subsequence(w.Gateway.Shares, want) || w.Gateway.Shares[len(w.Gateway.Shares)-1] != 100 {
				w.Fatalf("the new version had %v of the requests, want of %v", w.Gateway.Shares, want)
			}
		}},
		testkit.Scenario{Name: "late", Run: func(w *testkit.World) {
			gated(w, 30*time.Second, hasty)
			w.EditService("text", image("ray:new"))
			w.After(6 * time.Minute)
			serving(w, 2)
			programmed(w)
			if !subsequence(w.Gateway.Shares, []int32{0, 20, 40, 60, 80, 100}) {
				w.Fatalf("the new version had %v of the requests", w.Gateway.Shares)
			}
		}},
		testkit.Scenario{Name: "there-and-back", Run: func(w *testkit.World) {
			gated(w, 20*time.Second, hasty)
			former := w.Service("text").Spec.ClusterTemplate.Spec.Image
			w.EditService("text", image("ray:new"))
			w.During(100 * time.Second)
			w.EditService("text", image(former))
			w.After(5 * time.Minute)
			serving(w, 1)
			programmed(w)
		}},
		testkit.Scenario{Name: "no-more", Run: func(w *testkit.World) {
			gated(w, 5*time.Second)
			w.EditService("text", image("ray:new"))
			w.During(60 * time.Second)
			w.Gateway.Demand("")
			w.EditService("text", func(s *v1beta1.ClusterService) { s.Spec.UpgradeStrategy.Gateway = nil })
			w.After(4 * time.Minute)
			serving(w, 2)
			w.ExpectService("text", "Ready", "GatewayProgrammed=absent")
			nothingLed(w)
		}},
	)
}

// subsequence reports whether all of some numbers are among others, in their order.
func subsequence(some, of []int32) bool {
	for _, n := range some {
		at := slices.Index(of, n)
		if at < 0 {
			return false
		}
		of = of[at:]
	}
	return true
}

// TestGatewayInTrouble: what a gateway does or does not keeps no upgrade from its end, and a sick
// version from its way back.
func TestGatewayInTrouble(t *testing.T) {
	testkit.Play(t,
		testkit.Scenario{Name: "absent", Run: func(w *testkit.World) {
			w.Gateway.Absent = true
			own(w, gate)
			w.ExpectService("text", "Ready", "Ready=True", "GatewayProgrammed=False GatewayAPIMissing")
			under(w)
			w.EditService("text", image("ray:new"))
			w.After(3 * time.Minute)
			serving(w, 2)
			w.Gateway.Absent = false
			w.After(time.Minute)
			programmed(w)
			w.Gateway.Demand("text")
			w.During(10 * time.Second)
			w.Gateway.Demand("")
			w.Gateway.Remove()
			w.After(time.Minute)
			w.ExpectService("text", "Ready", "Ready=True", "GatewayProgrammed=False GatewayAPIMissing")
		}},
		testkit.Scenario{Name: "refused", Run: func(w *testkit.World) {
			w.Gateway.Refuses = "no listener allows routes of this namespace"
			own(w, gate)
			w.After(time.Minute)
			w.ExpectService("text", "Ready", "Ready=True", "GatewayProgrammed=False GatewayNotAccepted")
			under(w)
			w.EditService("text", image("ray:new"))
			w.After(3 * time.Minute)
			serving(w, 2)
		}},
		testkit.Scenario{Name: "not-allowed", Run: func(w *testkit.World) {
			w.Refuse(func(obj client.Object) error {
				if _, is := obj.(*gatewayv1.HTTPRoute); is {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "httproutes"}, obj.GetName(), errors.New("admission webhook says no"))
				}
				return nil
			})
			service := testkit.OwnService("text", testkit.Group("cpu", 2))
			gate(service)
			w.Create(service)
			w.SettleRefused()
			w.ExpectService("text", "Ready", "Ready=True", "Stalled=False", "GatewayProgrammed=False CreateRefused")
			w.Refuse(nil)
			w.After(time.Minute)
			programmed(w)
		}},
		testkit.Scenario{Name: "nobody", Run: func(w *testkit.World) {
			w.Gateway.Deaf = true
			own(w, gate)
			w.EditService("text", image("ray:new"))
			w.After(3 * time.Minute)
			serving(w, 2)
			w.ExpectService("text", "Ready", "Ready=True", "GatewayProgrammed=False GatewayPending")
		}},
	)
}

// TestGatewayThatWasWell: an upgrade waits for a gateway that has taken the route before, and the
// way back from a sick version waits for nobody.
func TestGatewayThatWasWell(t *testing.T) {
	testkit.Play(t,
		testkit.Scenario{Name: "stops", Run: func(w *testkit.World) {
			gated(w, 0, func(s *v1beta1.ClusterService) {
				s.Spec.UpgradeStrategy.HealthyDeadlineSeconds = new(int32(60))
			})
			w.EditService("text", image("ray:new"))
			w.During(30 * time.Second)
			w.Gateway.Deaf = true
			w.During(80 * time.Second) // longer than a new version may take to become healthy, and than any drain
			w.ExpectService("text", "Upgrading", "Ready=True", "Upgrading=True UpgradeRouting", "GatewayProgrammed=False GatewayPending")
			w.Gateway.Deaf = false
			w.After(4 * time.Minute)
			serving(w, 2)
			programmed(w)
		}},
		testkit.Scenario{Name: "sickens", Run: func(w *testkit.World) {
			w.Gateway.Lag = 30 * time.Second
			own(w, gate)
			w.After(time.Minute)
			w.Serving.Program = func(testkit.Application) testkit.Deployed {
				return testkit.Deployed{Takes: 3 * time.Second, Sickens: 100 * time.Second}
			}
			w.EditService("text", image("ray:new"))
			w.During(2 * time.Minute)
			if have := shares(w); have[0] != 100 {
				w.Fatalf("seconds after it sickened the route divides %v", have)
			}
			w.After(6 * time.Minute)
			w.ExpectService("text", "Ready", "RolledBack=True UpgradeRolledBack", "GatewayProgrammed=True")
			serving(w, 1)
		}},
		testkit.Scenario{Name: "meddled-with", Run: func(w *testkit.World) {
			gated(w, 0)
			w.Gateway.Demand("")
			route := w.Route("text").DeepCopy()
			route.Spec.Rules[0].BackendRefs[0].Weight = new(int32(0))
			w.Must(w.Client.Update(w.Ctx, route))
			w.After(time.Minute)
			programmed(w)
			if have := shares(w); !slices.Equal(have, []int32{100}) {
				w.Fatalf("the route divides %v", have)
			}
		}},
	)
}

// TestLeaveGateway: what a suspended service leaves is a route to nobody, and a deleted one
// leaves nothing.
func TestLeaveGateway(t *testing.T) {
	testkit.Play(t,
		testkit.Scenario{Name: "suspended", Run: func(w *testkit.World) {
			gated(w, 0)
			w.Gateway.Demand("")
			under(w)
			w.Serving.Demand("")
			w.EditService("text", suspended(true))
			w.After(3 * time.Minute)
			w.ExpectService("text", "Suspended", "Suspended=True", "GatewayProgrammed=True")
			if have := shares(w); !slices.Equal(have, []int32{100}) {
				w.Fatalf("the route divides %v", have)
			}
			w.EditService("text", suspended(false))
			w.After(3 * time.Minute)
			programmed(w)
			w.Gateway.Demand("text")
			w.After(10 * time.Second)
		}},
		testkit.Scenario{Name: "deleted", Run: func(w *testkit.World) {
			gated(w, 0)
			w.Gateway.Demand("")
			w.Serving.Demand("")
			w.Must(w.Client.Delete(w.Ctx, w.Service("text")))
			w.After(5 * time.Minute)
			if w.HasService("text") {
				w.Fatalf("it is there")
			}
			nothingLed(w)
		}},
	)
}
