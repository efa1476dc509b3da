package jobs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
)

// step is one thing that happens, some time after the one before.
type step struct {
	after time.Duration
	what  event
	job   int
	verb  verb
	fault fault
}

type event int

const (
	befall   event = iota // a fault waits for the next call of a verb
	replace               // another head takes the place
	restart               // the head refuses connections for a moment, and is the same
	succeed               // another operator takes over, who remembers nothing
	join                  // another operator comes, and the former does not know yet
	bind                  // the job's next attempt is bound to the session that answers
	renew                 // the job gets a permit of 5 s
	end                   // the job's attempt is to end
	forget                // the job is forgotten, and wanted again
	accepted              // the controller takes note that the submission was taken
	events
)

// forgotten is no call: from here on the operator does not remember that there was one.
const forgotten verb = "forgotten"

func steps() *rapid.Generator[[]step] {
	faults := []fault{
		{Lost: true}, {Unheard: true}, {Hung: true}, {Twice: true}, {Err: failure(headclient.Protocol)},
		{Late: time.Second}, {Late: timeout + time.Second}, {Late: timeout + 8*time.Second},
	}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			after: time.Duration(rapid.IntRange(0, 4000).Draw(t, "ms")) * time.Millisecond,
			what:  event(rapid.IntRange(0, int(events)-1).Draw(t, "what")),
			job:   rapid.IntRange(0, 2).Draw(t, "job"),
			verb:  rapid.SampledFrom([]verb{session, hasPackage, upload, upload, submit, submit, look, stop, kill, tail, report}).Draw(t, "verb"),
			fault: rapid.SampledFrom(faults).Draw(t, "fault"),
		}
	}), 5, 60)
}

// attempt is what a controller has recorded of a job.
type attempt struct {
	number      int
	session     string
	accepted    bool
	stop        bool
	stopped     time.Time
	stopper     int            // the first operator who knows that it is to end
	permits     [][2]time.Time // from when, until when
	job, prefix string
	gang        bool
}

func (a *attempt) id() string { return fmt.Sprintf("%s-%d", a.prefix, a.number) }

func (a *attempt) want() Want {
	want := wanted(a.job, func(w *Want) {
		w.ID, w.Session, w.Stop, w.Until = a.id(), a.session, a.stop, time.Time{}
		w.Submission.ID = a.id()
		if a.gang {
			gang(w)
		}
	})
	if n := len(a.permits); n > 0 {
		want.Until = a.permits[n-1][1]
	}
	if a.accepted {
		want.Submission = nil
	}
	return want
}

func (a *attempt) permit(d time.Duration) {
	a.permits = append(a.permits, [2]time.Time{time.Now(), time.Now().Add(d)})
}

// world is a head, its jobs, and the operators who manage them.
type world struct {
	*bench
	head  *scripted
	jobs  []*attempt
	all   []attempt // that were followed by others
	heads int
	// former are operators who do not know yet that they are followed.
	former []func()
}

func newWorld(t *testing.T) *world {
	w := &world{bench: &bench{t: t}, heads: 1}
	w.head = w.bench.head("a:1")
	w.start()
	for i := range 3 {
		job := &attempt{number: 1, session: "s1", job: fmt.Sprint("job", i), prefix: fmt.Sprint("run", i), gang: i > 0}
		job.permit(timeout)
		w.jobs = append(w.jobs, job)
	}
	return w
}

// say says what is wanted, to all who lead or think so.
func (w *world) say() {
	for _, job := range w.jobs {
		w.Want(name(job.job), job.want())
	}
}

func (w *world) happen(s step) {
	job := w.jobs[s.job]
	switch s.what {
	case befall:
		w.head.set(func(h *scripted) { h.Faults[s.verb] = append(h.Faults[s.verb], s.fault) })
	case replace:
		w.heads++
		w.head.replace(fmt.Sprint("s", w.heads))
	case restart:
		w.head.set(func(h *scripted) { h.Life++ })
	case succeed:
		w.bench.End()
		w.start()
	case join:
		w.former = append(w.former, w.bench.End)
		w.start()
	default:
		w.decide(s.what, job)
	}
	w.say()
}

// decide is what a controller, or its user, decides about a job.
func (w *world) decide(what event, job *attempt) {
	switch what {
	case bind:
		w.all = append(w.all, *job)
		*job = attempt{number: job.number + 1, session: w.head.session.Name, job: job.job, prefix: job.prefix, gang: job.gang}
		job.permit(timeout)
	case renew:
		job.permit(timeout)
	case end:
		if !job.stop {
			job.stop, job.stopped, job.stopper = true, time.Now(), w.number
		}
	case forget:
		w.Forget(name(job.job))
		synctest.Wait()
		w.head.set(func(h *scripted) { h.Calls = append(h.Calls, call{By: w.number, Verb: forgotten, ID: job.id()}) })
	case accepted:
		if answer, ok := w.Last(name(job.job), place("a:1").Head, job.id()); ok && !answer.Submitted.IsZero() {
			job.accepted = true
		}
	}
}

// settle ends all faults, and gives what is wanted the time it takes.
func (w *world) settle() {
	for _, end := range w.former {
		end()
	}
	w.head.set(func(h *scripted) { clear(h.Faults) })
	for _, job := range w.jobs {
		w.head.says(job.id(), launcher.Running, 1)
	}
	for range 20 {
		for _, job := range w.jobs {
			job.permit(timeout)
		}
		w.say()
		w.Pass(3 * time.Second)
	}
}

// judge tells what is not as it must be.
func (w *world) judge() []string {
	known := map[string]*attempt{}
	for i := range w.all {
		known[w.all[i].id()] = &w.all[i]
	}
	var problems []string
	for _, job := range w.jobs {
		known[job.id()] = job
		if problem := w.outcome(job); problem != "" {
			problems = append(problems, fmt.Sprintf("%s %s: %+v", job.id(), problem, w.last(job.job)))
		}
	}
	for where, n := range w.head.begun {
		session, id, _ := strings.Cut(where, "/")
		if n > 1 || session != known[id].session {
			problems = append(problems, fmt.Sprintf("%s, bound to %s, runs %d times in %s", id, known[id].session, n, session))
		}
	}
	return append(problems, w.submissions(known)...)
}

// outcome tells what is wrong with what became of a job, when all has been well for long.
func (w *world) outcome(job *attempt) string {
	answer := w.last(job.job)
	switch {
	case !answer.done() && (answer.Failure != "" || answer.Session != w.head.session):
		return "is still asked about, without success"
	case w.head.session.Name != job.session: // it is lost
	case job.stop && !stopped(answer):
		return "was not stopped"
	case !job.stop && !(answer.Known && w.head.begun[job.session+"/"+job.id()] == 1):
		return "was not submitted"
	case !job.stop && answer.Reported != job.gang:
		return "has a report where it is no gang, or none where it is one"
	}
	return ""
}

// stopped reports whether it never ran, or was stopped and its output read.
func stopped(a Answer) bool {
	return !a.Asked.IsZero() && (!a.Known || a.Job.Status == headclient.JobStopped && a.Tailed)
}

// submissions tells which calls were wrong, whatever became of them.
func (w *world) submissions(known map[string]*attempt) (problems []string) {
	type who struct {
		by int
		id string
	}
	unsure, before := map[who]bool{}, map[int]call{}
	for _, call := range w.head.Calls {
		this, former := who{call.By, call.ID}, before[call.By]
		if call.Verb != forgotten {
			before[call.By] = call
		}
		switch call.Verb {
		case look, forgotten:
			unsure[this] = false
		case upload:
			if why := known[inPackage(call.ID)].forbids(call); why != "" {
				problems = append(problems, call.ID+" is uploaded "+why)
			}
		case submit:
			if unsure[this] {
				problems = append(problems, call.ID+" is submitted again before anyone looked")
			}
			unsure[this] = true
			if why := known[call.ID].forbids(call); why != "" {
				problems = append(problems, call.ID+" is submitted "+why)
			}
			if known[call.ID].gang && inPackage(former.ID) != call.ID {
				problems = append(problems, fmt.Sprintf("%s is submitted right after %+v, and not after its package", call.ID, former))
			}
		}
	}
	return problems
}

// inPackage returns whose package a name is, the name itself where it is none.
func inPackage(name string) string {
	return strings.TrimSuffix(strings.TrimPrefix(name, "package-of-"), ".zip")
}

// forbids tells why a submission was not to be made.
func (a *attempt) forbids(call call) string {
	if a.stop && call.By >= a.stopper && call.At.After(a.stopped) {
		return "though it is to end"
	}
	if !slices.ContainsFunc(a.permits, func(p [2]time.Time) bool { return !call.At.Before(p[0]) && call.At.Before(p[1]) }) {
		return "without a permit"
	}
	return ""
}

// TestExactlyOnce: whatever befalls calls, heads and operators, no run begins twice or in a
// session that it is not bound to, nothing is submitted without a permit or before it is
// known what became of the last time; and when all is well again, what is wanted is done.
func TestExactlyOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		plan := steps().Draw(rt, "steps")
		var problems []string
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.say()
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
