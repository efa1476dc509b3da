package services

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

func logOf(file string) headclient.Log { return headclient.Log{Node: "n", File: file} }

// ailing is an application of which a replica failed, with its log.
func ailing(name, file string) headclient.Application {
	return but(application(name, string(ask(name))), func(a *headclient.Application) {
		a.State = headclient.ApplicationUnhealthy
		a.Deployments = []headclient.Deployment{{Name: "d", State: "UNHEALTHY", Failed: logOf(file)}}
	})
}

func TestLogThatIsRead(t *testing.T) {
	part := func(name, state, file string) headclient.Deployment {
		one := headclient.Deployment{Name: name, State: state}
		if file != "" {
			one.Failed = logOf(file)
		}
		return one
	}
	for name, c := range map[string]struct {
		parts []headclient.Deployment
		want  headclient.Log
	}{
		"none":                    {},
		"no replica failed":       {parts: []headclient.Deployment{part("a", "UNHEALTHY", "")}},
		"one did, and all's well": {parts: []headclient.Deployment{part("a", "HEALTHY", "x")}, want: logOf("x")},
		"the first by name":       {parts: []headclient.Deployment{part("b", "UNHEALTHY", "x"), part("a", "UNHEALTHY", "y")}, want: logOf("y")},
		"the one that is ill":     {parts: []headclient.Deployment{part("a", "HEALTHY", "x"), part("b", "DEPLOY_FAILED", "y"), part("c", "UPDATING", "z")}, want: logOf("y")},
		"ill, then well":          {parts: []headclient.Deployment{part("b", "UNHEALTHY", "y"), part("a", "HEALTHY", "x")}, want: logOf("y")},
	} {
		if diff := cmp.Diff(c.want, failed(headclient.Application{Deployments: c.parts})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestLastLines: each log is read once, at most three in a turn, ours first; and one that is
// well again has none.
func TestLastLines(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.add(application("well", string(ask("well"))))
		want := map[string]string{}
		for i := range 5 {
			name := fmt.Sprint("t", i)
			head.add(ailing(name, name))
			head.lines[logOf(name)] = "end of " + name
			want[name] = "end of " + name
		}
		head.add(ailing("z", "z"))
		head.lines[logOf("z")] = "end of z"
		want["z"] = "end of z"
		b.Want(cluster, wanted(changed(config("d1", "z"), taken)))
		b.first()
		if diff := cmp.Diff(map[string]string{"z": "end of z", "t0": "end of t0", "t1": "end of t1"}, b.last().LastLines); diff != "" {
			t.Error(diff)
		}
		b.Pass(time.Minute)
		if diff := cmp.Diff(want, b.last().LastLines); diff != "" || head.counts()[read] != 6 {
			t.Error(diff)
		}
		b.Wakes()
		head.set(func(s *scripted) { s.lines[logOf("z2")] = "another end" })
		head.add(ailing("z", "z2"), application("t0", string(ask("t0"))))
		b.Pass(6 * time.Second)
		want["z"] = "another end"
		delete(want, "t0")
		if diff := cmp.Diff(want, b.last().LastLines); diff != "" || head.counts()[read] != 1 || b.Wakes() != 1 {
			t.Error(diff)
		}
	})
}

// TestLogThatCannotBeRead is no failure of the head, and is not tried for ever.
func TestLogThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		fault fault
		tried int
	}{
		"there is none": {fault{Err: failure(headclient.NotFound)}, 1},
		"it hangs":      {fault{Hung: true}, tries},
		"it breaks":     {fault{Lost: true}, tries},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				head := b.head("a:1")
				head.add(ailing("a", "x"), ailing("b", "x"))
				head.Always[read] = c.fault
				b.Want(cluster, wanted(nil))
				b.Pass(2 * time.Minute)
				answer := b.last()
				if c.fault.Err != nil && head.Dialed != 1 {
					t.Errorf("%d connections", head.Dialed)
				}
				if n := head.counts()[read]; n != 2*c.tried || len(answer.LastLines) > 0 || answer.Failure != "" || time.Since(answer.At) > 6*time.Second {
					t.Errorf("tried %d times: %+v", n, answer)
				}
			})
		})
	}
}
