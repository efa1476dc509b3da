package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// How many lines the driver and the tasks of a job print.
const driverLines, taskLines = 20_000, 100

// printingMuch prints lines in the driver and in tasks.
const printingMuch = `python -c "
import ray
ray.init(log_to_driver=False)
for i in range(%d):
    print('driver line', i)
@ray.remote
def task(i):
    print('task line', i)
ray.get([task.remote(i) for i in range(%d)])
print('the end')
"`

// withHistory installs history beside the server, with its archives on a claim, until the spec is over.
func withHistory(ctx context.Context) {
	GinkgoHelper()
	Expect(kubernetes.Apply(ctx, live.ReleaseNamespace, []byte(rendered("clusters/history-claim.yaml", nil)))).To(Succeed())
	settings := []string{"--set", "history.enabled=true,history.replicas=1,history.store.claimName=history,history.spool.size=1Gi"}
	Expect(live.Install(ctx, root, slices.Concat(settings, withServer)...)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(live.Install(ctx, root, withServer...)).To(Succeed()) }, NodeTimeout(limit))
}

var _ = Describe("a history", Label(localkubeLabel), func() {
	It("has the output, the files and the record of a job whose cluster and object are gone", func(ctx SpecContext) {
		withHistory(ctx)
		o := opened(ctx)
		p := newPortal(ctx, o.namespace)
		job := o.submit(ctx, "kept", "jobs/own.yaml", values{"Entrypoint": fmt.Sprintf(printingMuch, driverLines, taskLines)})
		job.is(ctx, v1beta1.PhaseRunning)
		whole, end := p.output(ctx, "/jobs/kept/log?follow=true")
		Expect(end).To(HavePrefix(v1beta1.PhaseSucceeded))
		Expect(strings.Count(string(whole), "driver line ")).To(Equal(driverLines))
		clusters := o.clusters(ctx)
		Expect(clusters).To(HaveLen(1))
		o.cleared(ctx)
		job.remove(ctx)
		job.gone(ctx)

		eventually(ctx, "the whole output in the archive", func(ctx context.Context) error {
			kept, end := p.output(ctx, "/jobs/kept/log")
			if string(kept) != string(whole) || !strings.HasPrefix(end, v1beta1.PhaseSucceeded) {
				return fmt.Errorf("it has %d bytes of %d, and ends with %q", len(kept), len(whole), end)
			}
			return nil
		})
		var record struct {
			Record struct{ Phase, Deleted string }
		}
		text, _ := p.send(ctx, http.MethodGet, "/jobs/kept/history", "")
		Expect(json.Unmarshal(text, &record)).To(Succeed())
		Expect(record.Record.Phase).To(Equal(v1beta1.PhaseSucceeded))
		Expect(record.Record.Deleted).NotTo(BeEmpty())

		p.token = tokenOf(ctx, o.namespace, "reader", "heliostat-dashboards-read")
		var list struct {
			Archives []struct{ State string }
			Files    []struct {
				Path, Pod string
				Missing   []any
			}
		}
		eventually(ctx, "a whole archive", func(ctx context.Context) error {
			text, _ := p.send(ctx, http.MethodGet, "/clusters/"+clusters[0]+"/files", "")
			if err := json.Unmarshal(text, &list); err != nil {
				return err
			}
			if len(list.Archives) != 1 || list.Archives[0].State != "Complete" {
				return fmt.Errorf("it is %+v", list.Archives)
			}
			return nil
		})
		var lines []string
		for _, file := range list.Files {
			Expect(file.Missing).To(BeEmpty(), file.Path)
			if strings.HasPrefix(file.Path, "worker-") && strings.HasSuffix(file.Path, ".out") {
				text, _ := p.send(ctx, http.MethodGet, "/clusters/"+clusters[0]+"/files/"+file.Path+"?pod="+file.Pod, "")
				lines = slices.AppendSeq(lines, strings.Lines(string(text)))
			}
		}
		for i := range taskLines {
			Expect(lines).To(ContainElement(fmt.Sprintf("task line %d\n", i)))
		}
	}, SpecTimeout(3*limit))
})

// clusters are the names of the clusters in the namespace.
func (o *office) clusters(ctx context.Context) []string {
	GinkgoHelper()
	var all v1beta1.ComputeClusterList
	Expect(kubernetes.List(ctx, &all, client.InNamespace(o.namespace))).To(Succeed())
	var names []string
	for _, one := range all.Items {
		names = append(names, one.Name)
	}
	return names
}
