package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// leaving are the namespaces whose specs have run.
var leaving = &departures{going: map[string]chan struct{}{}}

// departures are namespaces that are removed while the next specs run.
type departures struct {
	mutex sync.Mutex
	// going has a channel for each namespace, which is closed when it was removed.
	going  map[string]chan struct{}
	failed error
}

// drop begins to remove a namespace with all that is in it: services and jobs first, as they make clusters.
func (d *departures) drop(namespace string) {
	d.begin(namespace, func(ctx context.Context) error {
		return errors.Join(kubernetes.DropServices(ctx, namespace, limit), kubernetes.DropJobs(ctx, namespace, limit), kubernetes.Drop(ctx, namespace))
	})
}

// dropLast begins to remove a namespace once those before it are gone, whose clusters need what is in it.
func (d *departures) dropLast(namespace string) {
	before := d.all()
	d.begin(namespace, func(ctx context.Context) error {
		return errors.Join(wait(ctx, before), kubernetes.Drop(ctx, namespace))
	})
}

func (d *departures) begin(namespace string, remove func(context.Context) error) {
	gone := make(chan struct{})
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.going[namespace] = gone
	go func() {
		ctx, stop := context.WithTimeout(context.Background(), 2*limit)
		defer stop()
		err := remove(ctx)
		d.mutex.Lock()
		defer d.mutex.Unlock()
		delete(d.going, namespace)
		d.failed = errors.Join(d.failed, err)
		close(gone)
	}()
}

// all are the channels of those that go.
func (d *departures) all() map[string]chan struct{} {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return maps.Clone(d.going)
}

// wait waits until all of some namespaces are gone.
func wait(ctx context.Context, going map[string]chan struct{}) error {
	for name, gone := range going {
		select {
		case <-gone:
		case <-ctx.Done():
			return fmt.Errorf("wait for namespace %s to go: %w", name, context.Cause(ctx))
		}
	}
	return nil
}

// untilTerminating waits until every Ray pod of the namespaces that go is terminating: it has ended its work
// then, and leaves its place to the next ones within seconds.
func (d *departures) untilTerminating(ctx context.Context) error {
	return live.Until(ctx, limit, "the pods of former specs to be terminating", func(ctx context.Context) error {
		for _, namespace := range slices.Collect(maps.Keys(d.all())) {
			pods, err := kubernetes.RayPods(ctx, namespace)
			if err != nil {
				return err
			}
			for i := range pods {
				if pods[i].DeletionTimestamp == nil {
					return fmt.Errorf("%s of %s is not", pods[i].Name, namespace)
				}
			}
		}
		return nil
	})
}

// untilGone waits until there is none left, and fails where one could not be removed.
func (d *departures) untilGone(ctx context.Context) error {
	err := wait(ctx, d.all())
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return errors.Join(err, d.failed)
}

// leastSecrets is how many of the operator's secrets a whole suite sees at least.
const leastSecrets = 10

var _ = AfterSuite(func(ctx SpecContext) {
	begin := time.Now()
	Expect(leaving.untilGone(ctx)).To(Succeed())
	told("the last specs to no namespace left", begin)
	if canaries == nil {
		return // the suite did not begin
	}
	for _, end := range canaries.Ends() {
		AddReportEntry("an operator ended by itself", end)
		Expect(end).NotTo(Or(ContainSubstring("OOMKilled"), ContainSubstring("exit code 2,")), "a panic ends with 2")
	}
	leaks, secrets, looked, err := canaries.Leaks(ctx)
	Expect(err).NotTo(HaveOccurred())
	GinkgoWriter.Printf("%d secrets were sought in%s\n", secrets, looked)
	// One spec, or one scenario of make accept, has few of them.
	if suite, _ := GinkgoConfiguration(); len(suite.FocusStrings) == 0 && strings.Contains(suite.LabelFilter, "!"+live.AcceptLabel) {
		Expect(secrets).To(BeNumerically(">=", leastSecrets), "secrets to look for")
	}
	Expect(leaks).To(BeEmpty(), "secrets of the operator's are where others read them")
	cpu.report()
}, NodeTimeout(3*limit))
