package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

const (
	// pythonClient is Kubernetes' own, of PyPI.
	pythonClient = "kubernetes==37.0.2"
	// changeLabel is what a change of the watched cluster sets.
	changeLabel = "example.com/change"
)

// Kubernetes' own clients, with the server for an API server.
var _ = Describe("the server for portals", Label(localkubeLabel), func() {
	It("is an API server to kubectl and to Python's client: they list, apply and watch", Label(live.PortalWatchesLabel, live.AcceptLabel), func(ctx SpecContext) {
		v := visit(ctx, fresh(ctx))
		apply := v.kubectl(ctx, "apply", "--server-side", "-f", "-")
		apply.Stdin = strings.NewReader(rendered("clusters/watched.yaml", values{"Name": "by-kubectl"}))
		out, err := apply.Output()
		Expect(err).NotTo(HaveOccurred())
		Expect(string(out)).To(Equal("computecluster.heliostat.dev/by-kubectl serverside-applied\n"))

		python := v.command(ctx, v.url(), filepath.Join(v.python(ctx, pythonClient), "python"), "-c", rendered("programs/watch.py", values{"Label": changeLabel}))
		watchers := map[string]*sightings{"python": observe(python, fromLine), "kubectl": observe(v.kubectl(ctx, "get", "cc", "-w", "-o", "json"), fromObjects)}
		Eventually(ctx, watchers["python"].has("ready"), limit).Should(BeTrue())
		out, err = v.kubectl(ctx, "get", "cc", "-o", "name").Output()
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Fields(string(out))).To(ConsistOf("computecluster.heliostat.dev/by-kubectl", "computecluster.heliostat.dev/by-python"))

		watched := live.Watched{Seen: map[string]int{}}
		begin := time.Now()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for ; time.Since(begin) < watchTime(); watched.Made++ {
			setChange(ctx, types.NamespacedName{Namespace: v.namespace, Name: "by-kubectl"}, watched.Made)
			<-tick.C
		}
		watched.Seconds = time.Since(begin).Seconds()
		for name, seen := range watchers {
			Eventually(ctx, seen.has(fmt.Sprint(watched.Made-1)), limit).Should(BeTrue(), "%s: %v", name, seen)
			watched.Seen[name] = seen.count(watched.Made)
		}
		GinkgoWriter.Println(watched)
		AddReportEntry(live.WatchedEntry, watched, ReportEntryVisibilityAlways)
		Expect(watched.Seen).To(Equal(map[string]int{"python": watched.Made, "kubectl": watched.Made}))
	}, SpecTimeout(10*time.Minute+3*limit))
})

// watchTime is for how long clients watch.
func watchTime() time.Duration {
	if *full {
		return 10 * time.Minute
	}
	return 10 * time.Second
}

// setChange makes a change of a cluster.
func setChange(ctx context.Context, name types.NamespacedName, number int) {
	GinkgoHelper()
	cluster := &v1beta1.ComputeCluster{}
	cluster.Namespace, cluster.Name = name.Namespace, name.Name
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:"%d"}}}`, changeLabel, number))
	Expect(kubernetes.Patch(ctx, cluster, patch)).To(Succeed())
}

// sightings are the values of the label that a watcher has seen.
type sightings struct {
	mutex sync.Mutex
	seen  map[string]bool
	err   error
}

// observe starts a program that watches, and reads what it sees until the spec is over.
func observe(c *osexec.Cmd, read func(io.Reader, func(string)) error) *sightings {
	GinkgoHelper()
	all := &sightings{seen: map[string]bool{}}
	out, err := c.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(c.Start()).To(Succeed())
	go func() {
		err := read(out, all.note)
		all.mutex.Lock()
		defer all.mutex.Unlock()
		all.err = errors.Join(err, c.Wait())
	}()
	DeferCleanup(func() { _ = c.Process.Kill() }) // it goes on for ever
	return all
}

// fromLine reads a value from each line.
func fromLine(from io.Reader, note func(string)) error {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		note(lines.Text())
	}
	return lines.Err()
}

// fromObjects reads objects of Kubernetes one after the other.
func fromObjects(from io.Reader, note func(string)) error {
	for decoder := json.NewDecoder(from); ; {
		var object struct {
			Metadata struct{ Labels map[string]string }
		}
		if err := decoder.Decode(&object); err != nil {
			return err
		}
		note(object.Metadata.Labels[changeLabel])
	}
}

func (c *sightings) note(value string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.seen[value] = true
}

// has returns what reports whether a value was seen.
func (c *sightings) has(value string) func() bool {
	return func() bool {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		return c.seen[value]
	}
}

// count returns how many of the first changes were seen.
func (c *sightings) count(of int) int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	count := 0
	for number := range of {
		if c.seen[fmt.Sprint(number)] {
			count++
		}
	}
	return count
}

// String says what was seen, and how the watcher ended.
func (c *sightings) String() string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return fmt.Sprintf("%d values, %v", len(c.seen), c.err)
}
