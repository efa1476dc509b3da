package services

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// step is one thing that happens, some time after the one before.
type step struct {
	after time.Duration
	what  event
	verb  verb
	fault fault
	// which applications are wanted, or come, from now on.
	which []string
}

type event int

const (
	befall  event = iota // a fault waits for the next call of a verb
	replace              // another head takes the place, and knows nothing
	restart              // the head breaks all connections, and is the same
	succeed              // another operator takes over, who knows what was recorded
	come                 // somebody else deploys, beside what is there
	leave                // somebody else takes theirs away
	upset                // somebody else takes ours away
	change               // other applications of ours are wanted
	look                 // nothing is wanted but to look
	events
)

func steps() *rapid.Generator[[]step] {
	faults := []fault{
		{Lost: true}, {Unheard: true}, {Hung: true}, {Err: failure(headclient.Protocol)},
		{Err: failure(headclient.Unsupported)}, {Blind: true}, {Blind: true},
	}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			after: time.Duration(rapid.IntRange(0, 4000).Draw(t, "ms")) * time.Millisecond,
			what:  event(rapid.IntRange(0, int(events)-1).Draw(t, "what")),
			verb:  rapid.SampledFrom([]verb{session, serving, serving, deploy, deploy, read}).Draw(t, "verb"),
			fault: rapid.SampledFrom(faults).Draw(t, "fault"),
			which: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID[string]).Draw(t, "which"),
		}
	}), 5, 60)
}

// world is a head, who else deploys there, and a controller with its record.
type world struct {
	*bench
	head    *scripted
	theirs  map[string]bool // by the names that somebody else wants to be there
	config  *Config
	version int
	// ever are our names so far, recorded the digest that was seen to be taken.
	ever     map[string]bool
	recorded string
}

func newWorld(t *testing.T) *world {
	w := &world{bench: newBench(t), theirs: map[string]bool{}, ever: map[string]bool{}}
	w.head = w.bench.head("a:1")
	w.start()
	w.want([]string{"a"})
	return w
}

// want wants applications of ours in a new version.
func (w *world) want(names []string) {
	w.version++
	w.config = config(fmt.Sprint("d", w.version))
	for _, name := range names {
		w.ever[name] = true
		w.config.Applications[name] = []byte(fmt.Sprintf(`{"name":%q,"route_prefix":"/%s","args":{"v":%d}}`, name, name, w.version))
	}
	for name := range w.ever {
		if w.config.Applications[name] == nil {
			w.config.Drop = append(w.config.Drop, name)
		}
	}
	slices.Sort(w.config.Drop)
}

// say records what was taken, and says what is wanted, or that it is only to be looked.
func (w *world) say(onlyLook bool) {
	if answer, ok := w.Last(cluster, "head"); ok && answer.Taken != "" {
		w.recorded = answer.Taken
	}
	if onlyLook {
		w.Want(cluster, wanted(nil))
		return
	}
	config := *w.config
	config.Taken = w.recorded == config.Digest
	w.Want(cluster, wanted(&config))
}

func (w *world) happen(s step) {
	theirs := func(name string) string { return "t" + name }
	switch s.what {
	case befall:
		w.head.set(func(h *scripted) { h.Faults[s.verb] = append(h.Faults[s.verb], s.fault) })
	case replace:
		w.head.replace(fmt.Sprint("s", len(w.head.times)))
		clear(w.theirs)
	case restart:
		w.head.set(func(h *scripted) { h.Life++ })
	case succeed:
		w.bench.End()
		w.start()
	case come:
		for _, name := range s.which {
			w.theirs[theirs(name)] = true
			w.head.add(application(theirs(name), string(ask(theirs(name)))))
		}
	case leave:
		for _, name := range s.which {
			delete(w.theirs, theirs(name))
			w.head.set(func(h *scripted) { delete(h.apps, theirs(name)) })
		}
	case upset:
		w.head.set(func(h *scripted) {
			for _, name := range s.which {
				delete(h.apps, name)
			}
		})
	case change:
		w.want(s.which)
	}
	w.say(s.what == look)
}

// settle ends all faults, and gives what is wanted the time it takes.
func (w *world) settle() {
	w.head.set(func(h *scripted) { clear(h.Faults) })
	for range 10 {
		w.say(false)
		w.Pass(10 * time.Second)
	}
}

// judge tells what is not as it must be, when all has been well for long.
func (w *world) judge() []string {
	want := map[string]string{}
	for name, form := range w.config.Applications {
		want[name] = string(form)
	}
	for name := range w.theirs {
		want[name] = string(ask(name))
	}
	got := map[string]string{}
	for name, app := range w.head.apps {
		got[name] = string(app.Deployed)
	}
	var problems []string
	if diff := cmp.Diff(want, got); diff != "" {
		problems = append(problems, "what is there: "+diff)
	}
	answer := w.last()
	if answer.Failure != "" || answer.Refused != "" || w.recorded != w.config.Digest {
		problems = append(problems, fmt.Sprintf("what is known, while %s is recorded: %+v", w.recorded, answer))
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(answer.Serving.Applications))); diff != "" {
		problems = append(problems, "what is told: "+diff)
	}
	return problems
}

// TestOursAndTheirs: whatever befalls calls, heads and operators, nothing is deployed without
// all that others were seen to have just before; and when all is well again, there is exactly
// what is wanted, and what others deployed.
func TestOursAndTheirs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		plan := steps().Draw(rt, "steps")
		var problems []string
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.say(false)
			for _, step := range plan {
				w.Pass(step.after)
				w.happen(step)
			}
			w.settle()
			problems = w.judge()
			problems = append(problems, w.close()...)
		})
		for _, problem := range problems {
			rt.Error(problem)
		}
	})
}
