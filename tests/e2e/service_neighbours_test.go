package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// brokenNeighbour is a service that cannot serve on a cluster where another one does.
type brokenNeighbour struct {
	name string
	// breaks changes the echo so that it cannot serve.
	breaks func(app map[string]any)
	// why is the reason with which it says so.
	why reason.Reason
}

// spec is the service's in YAML, without its cluster.
func (b *brokenNeighbour) spec() string {
	GinkgoHelper()
	var spec v1beta1.ClusterServiceSpec
	Expect(yaml.Unmarshal([]byte(echoing("broken", "/broken")), &spec)).To(Succeed())
	Expect(application(b.breaks)(&spec)).To(Succeed())
	return fmt.Sprintf("serveConfig: %s\n", spec.ServeConfig.Raw)
}

// brokenNeighbours are one of each kind of fault.
func brokenNeighbours() []brokenNeighbour {
	environment := func(more map[string]any) func(app map[string]any) {
		return func(app map[string]any) { app["runtime_env"] = more }
	}
	code := func(module string) func(app map[string]any) {
		return func(app map[string]any) { app["import_path"] = module + ":app" }
	}
	return []brokenNeighbour{
		{"an import path that fails", code("nowhere"), reason.ApplicationFailed},
		{"an image that cannot be pulled", environment(map[string]any{"image_uri": "example.com/none:1"}), reason.ApplicationFailed},
		{"a configuration that Ray refuses", func(app map[string]any) {
			app["deployments"].([]any)[0].(map[string]any)["placement_group_bundles"] = []any{map[string]any{"CPU": "much"}}
		}, reason.ServeConfigRefused},
		{"a replica that dies", code("dies"), reason.ApplicationFailed},
		{"an application name that is taken", func(app map[string]any) { app["name"] = "steadfast" }, reason.ServeCollision},
	}
}

// A head that restarts deploys nothing by itself: the operator sends each service's part again, the broken ones too.
var _ = Describe("a service on a shared cluster, beside one that is broken", Ordered, ContinueOnFailure,
	Label(serviceLabel, localkubeLabel, live.AcceptLabel, live.ServeNeighboursLabel), func() {
		const onShelf = "clusterRef: {name: shelf}\n"
		var t *team
		var shelf *env
		var steadfast *service
		var clients *crowd
		var pids []string

		BeforeAll(func(ctx SpecContext) {
			t = serviced(ctx)
			shelf = &env{types.NamespacedName{Namespace: t.namespace, Name: "shelf"}}
			// Replicas on a head end with it, broken neighbours or not.
			shelf.apply(ctx, `head: {rayResources: {CPU: "0"}, size: {cpu: 500m, memory: 2560Mi}, `+withCode+"}\n"+codeWorkers+"\n"+
				"controlStore: {embedded: {storage: 100Mi}}\n")
			shelf.ready(ctx)
			steadfast = t.begins(ctx, "steadfast", echoing("steadfast", "/")+onShelf)
			pids = steadfast.processes(ctx, "/")
			clients = steadfast.crowd(ctx, quick...)
		}, NodeTimeout(servingTime))

		for _, one := range brokenNeighbours() {
			It("loses nothing through a restart of the head: "+one.name, func(ctx SpecContext) {
				before := shelf.ready(ctx)
				clients.phase("calm")
				clients.phase(one.name)
				broken := t.applies(ctx, "broken", one.spec()+onShelf)
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
