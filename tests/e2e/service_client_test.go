package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/internal/loadgen"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// crowd are clients of a service, one on each node, so that the requests go by way of each
// kube-proxy.
type crowd struct {
	clients []*live.Client
	ended   bool
}

// Loads of a client: all sorts of requests, and those alone that are answered at once.
var (
	allSorts = []string{"-fresh", "5", "-kept", "5", "-long", "0.2", "-stream", "0.1", "-websocket", "0.1"}
	// fewOfAll is what make test sends.
	fewOfAll = []string{"-fresh", "2", "-kept", "2", "-long", "0.2", "-stream", "0.1", "-websocket", "0.1"}
	// moreOfAll is for full counts: of two clients, the 50 requests/s that the peer was measured under.
	moreOfAll = []string{"-fresh", "12.5", "-kept", "12.5", "-long", "0.4", "-stream", "0.2", "-websocket", "0.2"}
	quick     = []string{"-fresh", "5", "-kept", "5"}
)

// clientFlags are those of a client with a load.
func clientFlags(url string, rates []string) []string {
	most := fmt.Sprintf("%ds", longest())
	return append([]string{"-url", url, "-longest", most, "-session", most}, rates...)
}

// crowd begins to send requests to a service, until the specs of the container have run.
func (s *service) crowd(ctx context.Context, rates ...string) *crowd {
	GinkgoHelper()
	networks, err := live.Networks(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(networks).NotTo(BeEmpty())
	return s.crowdOn(ctx, networks, rates...)
}

// crowdOn is a crowd on some nodes, with their networks.
func (s *service) crowdOn(ctx context.Context, networks map[string]string, rates ...string) *crowd {
	GinkgoHelper()
	program, err := live.BuildClient(ctx, root, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	c := &crowd{}
	DeferCleanup(func() {
		if !c.ended {
			_, _ = c.end() // a spec has failed already, or has seen what it wanted
		}
	})
	for _, node := range slices.Sorted(maps.Keys(networks)) {
		client, err := live.StartClient(node, live.Inside(networks[node]), program, append(clientFlags(s.address, rates), "-host", s.Name)...)
		Expect(err).NotTo(HaveOccurred())
		c.clients = append(c.clients, client)
	}
	return c
}

// phase begins one for all clients.
func (c *crowd) phase(name string) {
	GinkgoHelper()
	for _, client := range c.clients {
		Expect(client.Phase(name)).To(Succeed())
	}
}

// reports are those of all clients, in the order of the clients.
func (c *crowd) reports() []loadgen.Report {
	GinkgoHelper()
	reports := make([]loadgen.Report, 0, len(c.clients))
	for _, client := range c.clients {
		report, err := client.Report()
		Expect(err).NotTo(HaveOccurred())
		reports = append(reports, report)
	}
	return reports
}

// end waits until all requests have ended.
func (c *crowd) end() ([]loadgen.Report, error) {
	c.ended = true
	var reports []loadgen.Report
	var failed error
	for _, client := range c.clients {
		report, err := client.End()
		reports, failed = append(reports, report), errors.Join(failed, err)
	}
	return reports, failed
}

// settled waits until each request that was sent in a phase was answered or has failed, and
// gives what all clients saw of it and of the phase before.
func (c *crowd) settled(ctx context.Context, calm, during string) []live.NodeLoad {
	GinkgoHelper()
	var all []live.NodeLoad
	eventually(ctx, "all requests of "+during+" to end", func(context.Context) error {
		all = nil
		open := 0
		for i, report := range c.reports() {
			seen := live.NodeLoad{Node: c.clients[i].Node, Calm: phaseOf(report, calm), During: phaseOf(report, during)}
			for _, count := range seen.During.Sorts {
				open += count.Sent - count.Answered - count.Failed
			}
			all = append(all, seen)
		}
		if open > 0 {
			return fmt.Errorf("%d are under way", open)
		}
		return nil
	})
	return all
}

func phaseOf(report loadgen.Report, name string) loadgen.Phase {
	GinkgoHelper()
	phase, err := report.Phase(name)
	Expect(err).NotTo(HaveOccurred())
	return phase
}

// counted is how many requests were sent in a phase, and how many of them failed, with what
// the first ones said.
func counted(loads []live.NodeLoad) (sent, failed int, said []loadgen.Failure) {
	for _, node := range loads {
		for _, count := range node.During.Sorts {
			sent, failed, said = sent+count.Sent, failed+count.Failed, append(said, count.Failures...)
		}
	}
	return sent, failed, said
}

// census is how many clusters a service had at most, when it had two first, and when it had
// one of them again.
type census struct {
	most            int
	doubled, single time.Time
}

// census begins to count the clusters of a service, of which there is one, and gives what ends
// it and tells.
func (s *service) census(ctx context.Context) func() census {
	GinkgoHelper()
	labels := client.MatchingLabels{v1beta1.LabelService: s.Name}
	changes, err := kubernetes.Watch(ctx, &v1beta1.ComputeClusterList{}, client.InNamespace(s.Namespace), labels)
	Expect(err).NotTo(HaveOccurred())
	var seen census
	done := make(chan struct{})
	go func() {
		defer close(done)
		there := map[string]bool{}
		for change := range changes.ResultChan() {
			cluster, ok := change.Object.(*v1beta1.ComputeCluster)
			if !ok {
				continue
			}
			there[cluster.Name] = true
			if change.Type == apiwatch.Deleted {
				delete(there, cluster.Name)
			}
			seen.most = max(seen.most, len(there))
			switch {
			case len(there) > 1 && seen.doubled.IsZero():
				seen.doubled = time.Now()
			case len(there) == 1 && !seen.doubled.IsZero():
				seen.single = time.Now()
			}
		}
	}()
	return func() census {
		changes.Stop()
		<-done
		return seen
	}
}

// sorted are the keys of a set in their order.
func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
