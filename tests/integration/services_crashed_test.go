package integration

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/tests/bench/jobs"
	"github.com/heliostat-dev/heliostat/tests/internal/loadgen"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// How much TestUpgradesWhileTheOperatorIsKilled does, unless HELIOSTAT_UPGRADES and
// HELIOSTAT_REQUESTS give other numbers: it ends when both are reached. From many upgrades on it
// also goes on until operators were killed after each write of each sort of change.
const (
	someUpgrades = 5
	someRequests = 2_000
	many         = 50
	// How many services there are at a time.
	someLanes, manyLanes = 2, 4
)

// TestUpgradesWhileTheOperatorIsKilled: services are changed in each way again and again, each
// time their operator is killed after one write more, and no request is lost. It goes through
// what carries requests on a node: the EndpointSlices that Kubernetes' own controller makes, and
// proxies that end with their pods.
func TestUpgradesWhileTheOperatorIsKilled(t *testing.T) {
	c := newCourse(t, number(t, "HELIOSTAT_UPGRADES", someUpgrades), number(t, "HELIOSTAT_REQUESTS", someRequests))
	lanes := someLanes
	if c.upgrades >= many {
		lanes = manyLanes
	}
	began := shared.audit.now(t)
	for i := range lanes {
		c.lanes = append(c.lanes, newLane(t, c, i))
	}
	c.start()
	c.judge()
	for _, why := range shared.audit.refused(t, began) {
		t.Error(why)
	}
}

// number is what a variable of the environment says, or else a number.
func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	given, err := strconv.Atoi(text)
	must(t, err)
	return given
}

// course is what all lanes go through together.
type course struct {
	t                  *testing.T
	upgrades, requests int
	where              *land
	lanes              []*lane
	ledger             *loadgen.Ledger

	mu      sync.Mutex
	changed int
	crashes int
	turns   map[string]*turns
	steps   map[string]map[int]int
}

// turns are those of one sort of change: after which write the operator is killed next, and the
// first one that no change of the sort came to.
type turns struct{ next, last int }

func newCourse(t *testing.T, upgrades, requests int) *course {
	t.Helper()
	c := &course{
		t: t, upgrades: upgrades, requests: requests, where: newLand(t), ledger: loadgen.NewLedger(time.Now()),
		turns: map[string]*turns{}, steps: map[string]map[int]int{},
	}
	for _, change := range changes() {
		first := 1
		if upgrades < many {
			first = change.early
		}
		c.turns[change.name], c.steps[change.name] = &turns{next: first, last: math.MaxInt}, map[int]int{}
	}
	return c
}

// turn is after which write an operator must be killed in the next change of a sort: one
// later each time, and the first again after one that came to its end before that.
func (c *course) turn(change string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.turns[change]
	if of.next > of.last {
		of.next = 1
	}
	of.next++
	return of.next - 1
}

// passed notes a change that has come to its end, in which an operator was killed or not.
func (c *course) passed(change string, step int, killed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed++
	if !killed {
		c.turns[change].last = min(c.turns[change].last, step)
		return
	}
	c.crashes++
	c.steps[change][step]++
}

// pick chooses a sort of change, one after the other; where there are many changes those first in
// which operators were not yet killed after each write. all tells that there is none.
func (c *course) pick(number int) (picked change, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sorts := changes()
	for i := range sorts {
		one := sorts[(number+i)%len(sorts)]
		if c.upgrades < many || c.turns[one.name].last == math.MaxInt {
			return one, c.upgrades < many
		}
	}
	return sorts[number%len(sorts)], true
}

// over reports whether there were enough changes and requests.
func (c *course) over() bool {
	_, all := c.pick(0)
	c.mu.Lock()
	changed := c.changed
	c.mu.Unlock()
	report := c.ledger.Report(time.Now())
	sent, _, _ := report.Total()
	return all && changed >= c.upgrades && sent >= c.requests
}

// start has all lanes serve, and then changes them under load until it is over.
func (c *course) start() {
	for _, lane := range c.lanes {
		must(c.t, lane.serves(lane.version))
	}
	const name = "upgrades"
	began := time.Now()
	c.ledger.Phase(name, began)
	ctx, stop := context.WithCancel(c.t.Context())
	defer stop()
	var loads, changing sync.WaitGroup
	for _, lane := range c.lanes {
		plan := lane.load()
		must(c.t, plan.Check())
		loads.Go(func() {
			if err := plan.Run(ctx, c.ledger); err != nil {
				c.t.Error(err)
			}
		})
		changing.Go(lane.run)
	}
	changing.Wait()
	stop()
	loads.Wait()
	report := c.ledger.Report(time.Now())
	phase, err := report.Phase(name)
	must(c.t, err)
	c.save(live.Crashed{Seconds: time.Since(began).Seconds(), Load: phase})
}

// save tells what came of it.
func (c *course) save(crashed live.Crashed) {
	c.mu.Lock()
	crashed.Changes, crashed.Crashes, crashed.Steps = c.changed, c.crashes, maps.Clone(c.steps)
	c.mu.Unlock()
	c.t.Logf("%s\n%s", crashed, crashed.Table())
	must(c.t, jobs.Save(crashed))
	if sent, failed := crashed.Count(); failed > 0 || sent < c.requests {
		c.t.Errorf("%d of %d requests are lost", failed, sent)
	}
	for sort, count := range crashed.Load.Sorts {
		for _, failure := range count.Failures {
			c.t.Errorf("lost: %s: %+v", sort, failure)
		}
	}
}

// judge looks at how often operators were killed.
func (c *course) judge() {
	if c.crashes < 2 {
		c.t.Errorf("in %d changes operators were killed %d times", c.changed, c.crashes)
	}
}

// change is one sort of change of a service.
type change struct {
	name string
	// early is the write after which an operator is killed where there are few changes.
	early int
	// play makes the change, and gives the version that is to serve in the end.
	play func(*lane) (int, error)
}

// changes are all sorts.
func changes() []change {
	return []change{
		{"another image", 12, func(l *lane) (int, error) { return l.edit(true) }},
		{"in place", 3, func(l *lane) (int, error) { return l.edit(false) }},
		{"another image, taken back at once", 9, func(l *lane) (int, error) { return l.back(0) }},
		{"another image, taken back at half of the requests", 20, func(l *lane) (int, error) { return l.back(50) }},
		{"another image, and a third one once that has all requests", 30, (*lane).third},
	}
}

// back changes a service, and sets the former spec again when the candidate has a share of the
// requests, in percent.
func (l *lane) back(share int32) (int, error) {
	former, err := shared.FindService(l.t.Context(), l.name)
	if err != nil {
		return 0, err
	}
	version := l.serving
	if _, err := l.edit(true); err != nil {
		return 0, err
	}
	if err := l.underWay(share); err != nil {
		return 0, err
	}
	return version, l.set(former.Spec)
}

// third changes a service, and once more when the candidate has all requests.
func (l *lane) third() (int, error) {
	if _, err := l.edit(true); err != nil {
		return 0, err
	}
	if err := l.underWay(100); err != nil {
		return 0, err
	}
	return l.edit(true)
}

// underWay waits until the candidate has a share of the requests, in percent, or the change has
// come to its end.
func (l *lane) underWay(share int32) error {
	return live.Until(l.t.Context(), limit, fmt.Sprintf("a candidate with %d %% of the requests", share), func(ctx context.Context) error {
		service, err := shared.FindService(ctx, l.name)
		if err != nil {
			return err
		}
		candidate := service.Status.Candidate
		if candidate != nil && candidate.TrafficPercent >= share || live.IsServing(service) == nil {
			return nil
		}
		return fmt.Errorf("it is %s", live.SaysOfService(service))
	})
}
