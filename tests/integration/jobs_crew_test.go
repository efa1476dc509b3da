package integration

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// crew are a leader and a standby, of which any may be lost: there are always two.
type crew struct {
	t               *testing.T
	lease           types.NamespacedName
	flags           []string
	began           live.Mark
	leader, standby *operator
	// former was paused, and may not have seen yet that it leads no more.
	former *operator
	// all are those that were ever hired.
	all []*operator
}

// hire starts two operators for a namespace, with a Lease there.
func hire(t *testing.T, namespace string) *crew {
	t.Helper()
	c := &crew{t: t, lease: leaseIn(t, namespace), began: shared.audit.now(t)}
	c.flags = append(electing(c.lease), "--watch-namespaces="+namespace)
	t.Cleanup(c.dismiss)
	c.leader = c.one()
	c.leader.leads(time.Now())
	c.standby = c.one()
	return c
}

// one starts an operator more. What it was refused is looked at when all are dismissed.
func (c *crew) one() *operator {
	o := &operator{t: c.t, metrics: freeAddress(c.t)}
	must(c.t, o.start(append([]string{
		"--kubeconfig=" + shared.kubeconfig, "--metrics-bind-address=" + o.metrics, "--health-probe-bind-address=0",
	}, c.flags...)))
	c.all = append(c.all, o)
	return o
}

// succeed lets the standby lead, as if the Lease had run out, and hires another. One that was
// paused before would take the Lease too.
func (c *crew) succeed() {
	if c.former != nil {
		c.former.end.Do(c.former.kill)
	}
	expire(c.t, c.lease)
	c.standby.leads(time.Now())
	c.leader, c.standby = c.standby, c.one()
}

// kill ends the leader in the middle of whatever it does.
func (c *crew) kill() {
	c.leader.stop(syscall.SIGKILL)
	c.succeed()
}

// pause stops the leader in the middle of whatever it does, and lets it go on when another
// leads: until it sees that, both believe that they do.
func (c *crew) pause() {
	paused := c.leader
	must(c.t, paused.command.Process.Signal(syscall.SIGSTOP))
	c.succeed()
	must(c.t, paused.command.Process.Signal(syscall.SIGCONT))
	c.former = paused
}

// dismiss ends all, those too that were paused and have not ended by themselves yet.
func (c *crew) dismiss() {
	for _, o := range c.all {
		o.end.Do(o.kill)
	}
	for _, why := range shared.audit.refused(c.t, c.began) {
		c.t.Error(why)
	}
}

// kill ends an operator that may have ended by itself.
func (o *operator) kill() {
	_ = o.command.Process.Kill()
	_ = o.command.Wait()
}

// told are the lines of all logs about something, the last of them.
func (c *crew) told(about string) string {
	var lines []string
	for i, o := range c.all {
		for line := range strings.Lines(o.log.String()) {
			if strings.Contains(line, about) {
				lines = append(lines, fmt.Sprintf("operator %d: %s", i, line))
			}
		}
	}
	return strings.Join(lines[max(0, len(lines)-40):], "")
}
