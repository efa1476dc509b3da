package services

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// changed is a configuration with differences.
func changed(config *Config, changes ...func(*Config)) *Config {
	for _, change := range changes {
		change(config)
	}
	return config
}

func taken(c *Config) { c.Taken = true }
func alone(c *Config) { c.Alone = true }

// TestWhenToDeploy: what is deployed within a minute, by what is there at first.
func TestWhenToDeploy(t *testing.T) {
	theirs := application("theirs", string(ask("theirs")))
	ours := application("a", string(ask("a")))
	for name, c := range map[string]struct {
		config *Config
		change func(*scripted)
		there  []headclient.Application
		puts   int
		names  []string
		taken  string
	}{
		"only looked at":                   {there: []headclient.Application{theirs}, names: []string{"theirs"}},
		"new":                              {config: config("d1", "a"), there: []headclient.Application{theirs}, puts: 1, names: []string{"a", "theirs"}, taken: "d1"},
		"new, no Serve there":              {config: config("d1", "a"), puts: 1, names: []string{"a"}, taken: "d1"},
		"new, to take away":                {config: changed(config("d1"), func(c *Config) { c.Drop = []string{"a"} }), there: []headclient.Application{ours, theirs}, puts: 1, names: []string{"theirs"}, taken: "d1"},
		"nothing, no Serve there":          {config: config("d1"), taken: "d1"},
		"taken, says the record":           {config: changed(config("d1", "a"), taken), there: []headclient.Application{ours, theirs}, names: []string{"a", "theirs"}},
		"taken and missing":                {config: changed(config("d1", "a"), taken), there: []headclient.Application{theirs}, puts: 1, names: []string{"a", "theirs"}, taken: "d1"},
		"taken and going":                  {config: changed(config("d1", "a"), taken), there: []headclient.Application{but(ours, deleting), theirs}, puts: 1, names: []string{"a", "theirs"}, taken: "d1"},
		"taken, no Serve there":            {config: changed(config("d1", "a"), taken), puts: 1, names: []string{"a"}, taken: "d1"},
		"taken, to go and still there":     {config: changed(config("d1"), func(c *Config) { c.Taken, c.Drop = true, []string{"a"} }), there: []headclient.Application{ours, theirs}, puts: 1, names: []string{"theirs"}, taken: "d1"},
		"taken, to go and going":           {config: changed(config("d1"), func(c *Config) { c.Taken, c.Drop = true, []string{"a"} }), there: []headclient.Application{but(ours, deleting), theirs}, names: []string{"theirs"}},
		"taken, to go, came otherwise":     {config: changed(config("d1"), func(c *Config) { c.Taken, c.Drop = true, []string{"a"} }), there: []headclient.Application{but(ours, imperative)}, names: []string{"a"}},
		"no reply to the first":            {config: config("d1", "a"), change: func(s *scripted) { s.Faults[deploy] = []fault{{Unheard: true}} }, there: []headclient.Application{theirs}, puts: 2, names: []string{"a", "theirs"}, taken: "d1"},
		"the first does not arrive":        {config: config("d1", "a"), change: func(s *scripted) { s.Faults[deploy] = []fault{{Lost: true}, {Hung: true}} }, there: []headclient.Application{theirs}, puts: 1, names: []string{"a", "theirs"}, taken: "d1"},
		"the head is sorry for a moment":   {config: config("d1", "a"), change: func(s *scripted) { s.Faults[deploy] = []fault{{Err: failure(headclient.Unsupported)}} }, there: []headclient.Application{theirs}, puts: 1, names: []string{"a", "theirs"}, taken: "d1"},
		"it is not known what came of it":  {config: config("d1", "a"), change: func(s *scripted) { s.Faults[serving] = []fault{{}, {Lost: true}} }, there: []headclient.Application{theirs}, puts: 1, names: []string{"a", "theirs"}, taken: "d1"},
		"the head does not say who it is":  {config: config("d1", "a"), change: func(s *scripted) { s.Always[session] = fault{Err: failure(headclient.Unsupported)} }, there: []headclient.Application{theirs}, names: []string{"theirs"}},
		"nobody knows what Serve does":     {config: config("d1", "a"), change: func(s *scripted) { s.Always[serving] = fault{Err: failure(headclient.Protocol)} }, there: []headclient.Application{theirs}, names: []string{"theirs"}},
		"the controller is not found once": {config: config("d1", "a"), change: func(s *scripted) { s.Faults[serving] = []fault{{Blind: true}, {Blind: true}} }, there: []headclient.Application{theirs}, puts: 1, names: []string{"a", "theirs"}, taken: "d1"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				head := b.head("a:1")
				if len(c.there) > 0 {
					head.add(c.there...)
				}
				if c.change != nil {
					head.set(c.change)
				}
				b.Want(cluster, wanted(c.config))
				b.Pass(time.Minute)
				if diff := cmp.Diff(c.names, head.names()); diff != "" || len(head.puts) != c.puts {
					t.Errorf("deployed %q: %s", head.puts, diff)
				}
				if answer := b.last(); answer.Taken != c.taken || answer.Refused != "" {
					t.Errorf("%+v", answer)
				}
			})
		})
	}
}

// TestEmptyAnswerProvesNothing until it was given three times in a row, unless there is
// nothing of others to lose.
func TestEmptyAnswerProvesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		config *Config
		faults []fault
		reads  int // before it is deployed
	}{
		"new":                     {config: config("d1", "a"), reads: 3},
		"taken":                   {config: changed(config("d1", "a"), taken), reads: 3},
		"alone":                   {config: changed(config("d1", "a"), alone), reads: 1},
		"alone, and taken":        {config: changed(changed(config("d1", "a"), alone), taken), reads: 3},
		"a failure between":       {config: config("d1", "a"), faults: []fault{{}, {}, {Lost: true}}, reads: 5},
		"and not without a cause": {config: config("d1", "a"), faults: []fault{{}, {Err: failure(headclient.Protocol)}}, reads: 4},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				head := b.head("a:1")
				head.Faults[serving] = c.faults
				b.Want(cluster, wanted(c.config))
				reads, puts := head.asked()
				for ; reads < c.reads; reads, puts = head.asked() {
					if puts > 0 {
						t.Fatalf("deployed after %d reads", reads)
					}
					b.Pass(50 * time.Millisecond)
				}
				if puts != 1 {
					t.Errorf("not deployed after %d reads", reads)
				}
			})
		})
	}
}

// TestEmptyAnswersAreCountedAnew once something was deployed because of them.
func TestEmptyAnswersAreCountedAnew(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.Faults[serving] = []fault{{}, {}, {}, {}, {Blind: true}, {Blind: true}} // the fourth is after it
		b.Want(cluster, wanted(config("d1", "a")))
		for _, puts := head.asked(); puts == 0; _, puts = head.asked() {
			b.Pass(50 * time.Millisecond)
		}
		head.add(application("theirs", string(ask("theirs"))))
		head.set(func(s *scripted) { delete(s.apps, "a") })
		b.Pass(20 * time.Second)
		if diff := cmp.Diff([]string{"a", "theirs"}, head.names()); diff != "" || len(head.puts) != 2 {
			t.Errorf("deployed %q: %s", head.puts, diff)
		}
	})
}

// TestTakenIsToldWithWhatCameOfIt: before that Serve speaks of what was there.
func TestTakenIsToldWithWhatCameOfIt(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		b.Want(cluster, wanted(changed(config("d1", "a"), alone)))
		b.Pass(time.Second)
		if answer := b.last(); answer.Taken != "d1" || answer.Serving.Applications["a"].State != headclient.ApplicationRunning {
			t.Errorf("%+v", answer)
		}
		head.set(func(s *scripted) { s.Faults[serving] = []fault{{}, {Lost: true}} })
		b.Want(cluster, wanted(config("d2", "a", "b")))
		b.Pass(500 * time.Millisecond)
		if answer := b.last(); answer.Taken != "d1" || len(answer.Serving.Applications) != 1 || answer.Failure != headclient.Unavailable {
			t.Errorf("after what came of it was not heard: %+v", answer)
		}
		b.Pass(5 * time.Second)
		if answer := b.last(); answer.Taken != "d2" || len(answer.Serving.Applications) != 2 || len(head.puts) != 2 {
			t.Errorf("%+v", answer)
		}
	})
}

// TestNothingCountsInAnotherSession: what was taken, and what the record says was, nor what
// was refused.
func TestNothingCountsInAnotherSession(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.add(application("a", string(ask("a"))))
		b.Want(cluster, wanted(changed(config("d1", "a"), taken)))
		b.Pass(20 * time.Second)
		if len(head.puts) != 0 {
			t.Errorf("deployed %q", head.puts)
		}
		head.replace("s2")
		head.add(application("a", `{"name":"a"}`)) // as it may come from a store
		b.Pass(20 * time.Second)
		if len(head.puts) != 1 || b.last().Taken != "d1" {
			t.Errorf("deployed %q: %+v", head.puts, b.last())
		}
		b.Want(cluster, wanted(config("d2", "a")))
		head.set(func(s *scripted) { s.Faults[deploy] = []fault{{Err: failure(headclient.Refused)}} })
		b.Pass(20 * time.Second)
		if answer := b.last(); answer.RefusedDigest != "d2" || answer.Refused != "because" || answer.Taken != "" && answer.Taken != "d1" {
			t.Errorf("%+v", answer)
		}
		head.replace("s3")
		b.Pass(20 * time.Second)
		if answer := b.last(); answer.Taken != "d2" || answer.Refused != "" || answer.RefusedDigest != "" {
			t.Errorf("%+v", answer)
		}
	})
}

// TestSameSessionGoesOn: a broken connection alone makes nothing be deployed again.
func TestSameSessionGoesOn(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		b.Want(cluster, wanted(config("d1", "a")))
		b.Pass(20 * time.Second)
		head.set(func(s *scripted) { s.Life++ })
		b.Pass(20 * time.Second)
		if answer := b.last(); len(head.puts) != 1 || answer.Taken != "d1" || answer.Failure != "" || head.Dialed != 2 {
			t.Errorf("deployed %q over %d connections: %+v", head.puts, head.Dialed, answer)
		}
	})
}

// TestRefusedIsNotSentAgain until something else was wanted.
func TestRefusedIsNotSentAgain(t *testing.T) {
	for _, kind := range []headclient.Kind{headclient.Refused, headclient.Invalid} {
		play(t, func(t *testing.T, b *bench) {
			head := b.head("a:1")
			head.add(application("theirs", string(ask("theirs"))))
			head.Always[deploy] = fault{Err: failure(kind)}
			b.Want(cluster, wanted(config("d1", "a")))
			b.Pass(time.Minute)
			if answer := b.last(); head.counts()[deploy] != 1 || answer.RefusedDigest != "d1" || answer.Refused != "because" || answer.Failure != "" {
				t.Errorf("%+v", answer)
			}
			if b.Wakes() != 1 || head.Dialed != 1 {
				t.Errorf("%d connections", head.Dialed)
			}
		})
	}
}

// TestRefusalEnds when something else is wanted, or nothing.
func TestRefusalEnds(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.add(application("theirs", string(ask("theirs"))))
		head.Always[deploy] = fault{Err: failure(headclient.Refused)}
		for _, digest := range []string{"d1", "d2", "d1"} {
			b.Want(cluster, wanted(config(digest, "a")))
			b.Pass(10 * time.Second)
			if answer := b.last(); head.counts()[deploy] != 1 || answer.RefusedDigest != digest {
				t.Errorf("%s: %+v", digest, answer)
			}
		}
		b.Want(cluster, wanted(nil))
		b.Pass(10 * time.Second)
		if answer := b.last(); answer.Refused != "" || answer.RefusedDigest != "" {
			t.Errorf("%+v", answer)
		}
		head.set(func(s *scripted) { clear(s.Always) })
		b.Want(cluster, wanted(config("d1", "a")))
		b.Pass(10 * time.Second)
		if answer := b.last(); answer.Taken != "d1" || answer.Refused != "" {
			t.Errorf("%+v", answer)
		}
	})
}

// TestForeignWins: nothing is deployed while an application of somebody else is in the way,
// and what is wanted comes when it is gone.
func TestForeignWins(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.add(application("theirs", `{"name":"theirs","route_prefix":"/a"}`))
		b.Want(cluster, wanted(config("d1", "a")))
		b.Pass(20 * time.Second)
		const why = `application "theirs" of somebody else has the route /a`
		if answer := b.last(); answer.Refused != why || answer.RefusedDigest != "d1" || len(head.puts) != 0 || answer.Failure != "" {
			t.Errorf("%+v", answer)
		}
		head.set(func(s *scripted) { delete(s.apps, "theirs") })
		b.Pass(6 * time.Second)
		if answer := b.last(); answer.Refused != "" || answer.RefusedDigest != "" || answer.Taken != "d1" {
			t.Errorf("%+v", answer)
		}
		head.add(but(application("a", string(ask("a"))), imperative)) // somebody takes its name
		b.Pass(12 * time.Second)
		if answer := b.last(); answer.Refused == "" || len(head.puts) != 1 {
			t.Errorf("%+v", answer)
		}
		head.add(application("a", string(ask("a"))))
		b.Pass(6 * time.Second)
		if answer := b.last(); answer.Refused != "" || len(head.puts) != 1 {
			t.Errorf("%+v", answer)
		}
	})
}

// TestBackAndForth: a configuration that may have been taken is one that may be there.
func TestBackAndForth(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.add(application("a", string(ask("a"))))
		first := changed(config("d1", "a"), taken)
		b.Want(cluster, wanted(first))
		b.Pass(10 * time.Second)
		for range 2 { // after the record's word, and after its own
			head.set(func(s *scripted) { s.Always[deploy] = fault{Unheard: true} })
			b.Want(cluster, wanted(&Config{Digest: "d2", Applications: map[string]json.RawMessage{"a": json.RawMessage(`{"name":"a","args":{"v":2}}`)}}))
			b.Pass(10 * time.Second)
			head.set(func(s *scripted) { clear(s.Always) })
			b.Want(cluster, wanted(first))
			b.Pass(10 * time.Second)
			if now := string(head.apps["a"].Deployed); now != string(ask("a")) || b.last().Taken != "d1" {
				t.Errorf("%s: %+v", now, b.last())
			}
		}
	})
}

// TestWhatIsTakenAwayComesBack, and not without end as fast as it goes.
func TestWhatIsTakenAwayComesBack(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		head.add(application("theirs", string(ask("theirs"))))
		b.Want(cluster, wanted(config("d1", "a")))
		b.Pass(10 * time.Second)
		for range 6 { // now and then it is there again at once
			head.set(func(s *scripted) { delete(s.apps, "a") })
			b.Pass(6 * time.Second)
			if _, there := head.apps["a"]; !there {
				t.Error("it did not come back")
			}
			b.Pass(6 * time.Second)
		}
		head.set(func(s *scripted) {
			s.puts, s.more = nil, func(said *headclient.Serving) { delete(said.Applications, "a") }
		})
		b.Pass(10 * time.Minute)
		if n := len(head.puts); n < 15 || n > 30 {
			t.Errorf("deployed %d times in 10 min", n)
		}
	})
}

// TestReplaced_ComesBack: what somebody else deploys under the same names is put back, at most twice a minute.
func TestReplaced_ComesBack(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		b.Want(cluster, wanted(config("d1", "a")))
		b.Pass(time.Minute)
		replace := func(s *scripted) { s.apps["a"] = application("a", `{"name":"a","args":{"v":"theirs"}}`) }
		head.set(replace)
		b.Pass(5 * time.Second)
		if now := string(head.apps["a"].Deployed); now != string(ask("a")) || len(head.puts) != 2 {
			t.Fatalf("%s after %d deployments", now, len(head.puts))
		}
		b.Pass(10 * time.Minute)
		if len(head.puts) != 2 {
			t.Errorf("what is unchanged was deployed %d times more", len(head.puts)-2)
		}
		head.set(func(s *scripted) {
			s.puts, s.more = nil, func(said *headclient.Serving) {
				one := said.Applications["a"]
				one.Deployed = fmt.Appendf(nil, `{"name":"a","args":{"v":%d}}`, len(s.times))
				said.Applications["a"] = one
			}
		})
		b.Pass(10 * time.Minute)
		if n := len(head.puts); n < 15 || n > 21 {
			t.Errorf("deployed %d times in 10 min", n)
		}
	})
}

// other is a second service on the cluster, after ours by name.
var other = service("demo-b")

// both wants a part of ours and one of the other service.
func both(ours, theirs *Config) wishes {
	return of(map[types.NamespacedName]*Config{us: ours, other: theirs})
}

// refusing has a head refuse whatever configuration holds a word.
func refusing(word string) func(*scripted) {
	return func(s *scripted) { s.refuses = word }
}

// TestRefusal_IsOfOneService: the part of one service that Ray refuses keeps no other from being
// taken, changed, or taken by the next head.
func TestRefusal_IsOfOneService(t *testing.T) {
	bad := func(digest, name string) *Config {
		return changed(config(digest), func(c *Config) {
			c.Applications[name] = json.RawMessage(fmt.Sprintf(`{"name":%q,"route_prefix":"/%s","bad":1}`, name, name))
		})
	}
	for name, owners := range map[string][2]types.NamespacedName{"the first by name is bad": {other, us}, "the last is": {us, other}} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				head := b.head("a:1")
				head.set(refusing(`"bad":1`))
				good, wrong := owners[0], owners[1]
				say := func(ours, theirs *Config) {
					b.Want(cluster, of(map[types.NamespacedName]*Config{good: ours, wrong: theirs}))
				}
				hold := func(when, digest, refused string, apps ...string) {
					b.Pass(20 * time.Second)
					well, ill := b.lastOf(good), b.lastOf(wrong)
					if well.Taken != digest || well.Refused != "" || ill.RefusedDigest != refused {
						t.Errorf("%s: %+v, %+v", when, well.Outcome, ill.Outcome)
					}
					if diff := cmp.Diff(apps, head.names()); diff != "" {
						t.Errorf("%s: %s", when, diff)
					}
				}
				say(config("g1", "g"), bad("w1", "w"))
				hold("from the start", "g1", "w1", "g")
				say(config("g2", "g", "h"), bad("w1", "w"))
				hold("one changes", "g2", "w1", "g", "h")
				head.replace("s2")
				hold("on the next head", "g2", "w1", "g", "h")
				say(config("g2", "g", "h"), config("w2", "w"))
				hold("it is corrected", "g2", "", "g", "h", "w")
				say(config("g2", "g", "h"), bad("w3", "w"))
				hold("and wrong again", "g2", "w3", "g", "h", "w")
				say(changed(config("g3", "g"), func(c *Config) { c.Drop = []string{"h"} }), bad("w3", "w"))
				hold("which keeps what was taken", "g3", "w3", "g", "w")
			})
		})
	}
}

// TestParts_GoOneByOne: each with what the others had taken last, whatever they want now.
func TestParts_GoOneByOne(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		head := b.head("a:1")
		b.Want(cluster, both(config("a1", "a"), config("b1", "b")))
		b.Pass(10 * time.Second)
		if len(head.puts) != 2 || b.lastOf(us).Taken != "a1" || b.lastOf(other).Taken != "b1" {
			t.Fatalf("deployed %q", head.puts)
		}
		b.Want(cluster, both(config("a2", "a", "c"), config("b2", "b", "d")))
		b.Pass(10 * time.Second)
		if len(head.puts) != 4 || strings.Contains(head.puts[2], `"d"`) || !strings.Contains(head.puts[3], `"d"`) {
			t.Errorf("deployed %q", head.puts[2:])
		}
		b.Pass(time.Minute)
		if len(head.puts) != 4 {
			t.Errorf("deployed again: %q", head.puts[4:])
		}
	})
}

// TestNeighbour_KeepsItsNameAndRoute until it gives them up. For a moment that is no refusal: it
// may be about to.
func TestNeighbour_KeepsItsNameAndRoute(t *testing.T) {
	route := func(digest, name, route string) *Config {
		return changed(config(digest), func(c *Config) {
			c.Applications[name] = json.RawMessage(fmt.Sprintf(`{"name":%q,"route_prefix":%q}`, name, route))
		})
	}
	for name, c := range map[string]struct {
		clash, freed *Config
		why          string
	}{
		"a name": {
			clash: changed(route("b2", "a", "/b"), func(c *Config) { c.Drop = []string{"b"} }), freed: changed(route("a2", "c", "/c"), func(c *Config) { c.Drop = []string{"a"} }),
			why: `application "a" of ClusterService demo-a has this name`,
		},
		"a route": {
			clash: route("b2", "b", "/a"), freed: route("a2", "a", "/c"),
			why: `application "a" of ClusterService demo-a has the route /a`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, b *bench) {
				b.head("a:1")
				b.Want(cluster, both(route("a1", "a", "/a"), route("b1", "b", "/b")))
				b.Pass(10 * time.Second)
				b.Want(cluster, both(route("a1", "a", "/a"), c.clash))
				b.Pass(3 * time.Second)
				if answer := b.lastOf(other); answer.Refused != "" {
					t.Errorf("told at once: %s", answer.Refused)
				}
				b.Pass(10 * time.Second)
				if answer := b.lastOf(other); answer.Refused != c.why || b.last().Refused != "" {
					t.Errorf("%s: %+v", c.why, answer.Outcome)
				}
				b.Want(cluster, both(c.freed, c.clash))
				b.Pass(10 * time.Second)
				if answer := b.lastOf(other); answer.Taken != "b2" || answer.Refused != "" || b.last().Taken != "a2" {
					t.Errorf("%+v", answer.Outcome)
				}
			})
		})
	}
}
