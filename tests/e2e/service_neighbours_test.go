package e2e

import (
	"context"
	"errors"
	"slices"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// brokenNeighbour is a service that cannot serve on a cluster where another one does.
type brokenNeighbour struct {
	name string
	// breaks are the values of a service that cannot serve.
	breaks values
	// why is the reason with which it says so.
	why reason.Reason
}

// brokenNeighbours are one of each kind of fault.
func brokenNeighbours() []brokenNeighbour {
	return []brokenNeighbour{
		{"an import path that fails", values{"Module": "nowhere"}, reason.ApplicationFailed},
		{"an image that cannot be pulled", values{"Image": "example.com/none:1"}, reason.ApplicationFailed},
		{"a configuration that Ray refuses", values{"BundleCPU": "much"}, reason.ServeConfigRefused},
		{"a replica that dies", values{"Module": "dies"}, reason.ApplicationFailed},
		{"an application name that is taken", values{"Application": "steadfast"}, reason.ServeCollision},
	}
}

// A head that restarts deploys nothing by itself: the operator sends each service's part again, the broken ones too.
var _ = Describe("a service on a shared cluster, beside one that is broken", Ordered, ContinueOnFailure,
	Label(serviceLabel, localkubeLabel, live.AcceptLabel, live.ServeNeighboursLabel), func() {
		var t *team
		var shelf *env
		var steadfast *service
		var clients *crowd
		var pids []string

		BeforeAll(func(ctx SpecContext) {
			t = serviced(ctx)
			shelf = &env{types.NamespacedName{Namespace: t.namespace, Name: "shelf"}}
			// Replicas on a head end with it, broken neighbours or not.
			shelf.apply(ctx, "clusters/shelf.yaml", values{"Apart": true, "Store": embedded})
			shelf.ready(ctx)
			steadfast = t.begins(ctx, "steadfast", "services/shared.yaml", values{"Route": "/"})
			pids = steadfast.processes(ctx, "/")
			clients = steadfast.crowd(ctx, quick...)
		}, NodeTimeout(servingTime))

		for _, one := range brokenNeighbours() {
			It("loses nothing through a restart of the head: "+one.name, func(ctx SpecContext) {
				before := shelf.ready(ctx)
				clients.phase("calm")
				clients.phase(one.name)
				broken := t.applies(ctx, "broken", "services/shared.yaml", one.breaks)
				DeferCleanup(func(ctx SpecContext) { broken.remove(ctx) }, NodeTimeout(servingTime))
				isBroken := has(v1beta1.ConditionReady, metav1.ConditionFalse, one.why.Code)
				broken.becomes(ctx, "say why it does not serve", isBroken)

				heads := shelf.pods(ctx, v1beta1.RoleHead)
				Expect(heads).To(HaveLen(1))
				signal(syscall.SIGKILL, "gcs_server", string(heads[0].UID))
				eventually(ctx, "the head to have restarted", func(ctx context.Context) error {
					now, err := kubernetes.Find(ctx, shelf.NamespacedName)
					switch {
					case err != nil:
						return err
					case now.Status.Head == nil || now.Status.Head.Restarts == before.Status.Head.Restarts:
						return errors.New("it has not")
					}
					return live.IsReady(now)
				})
				steadfast.serves(ctx)
				broken.becomes(ctx, "say why it does not serve, on the next head too", isBroken)
				clients.phase("after")
				sent, failed, failures := counted(clients.settled(ctx, "calm", one.name))
				GinkgoWriter.Printf("%s: %d of %d requests failed\n", one.name, failed, sent)
				Expect(failed).To(BeZero(), "%v", failures)
				Expect(sent).To(BeNumerically(">", 0))
				Expect(slices.Equal(steadfast.processes(ctx, "/"), pids)).To(BeTrue(), "the same processes serve")
			}, SpecTimeout(2*servingTime))
		}
	})
