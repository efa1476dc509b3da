package runs

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
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
		{lost: true}, {unheard: true}, {hung: true}, {twice: true}, {err: failure(headclient.Protocol)},
		{late: time.Second}, {late: timeout + time.Second}, {late: timeout + 8*time.Second},
	}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			after: time.Duration(rapid.IntRange(0, 4000).Draw(t, "ms")) * time.Millisecond,
			what:  event(rapid.IntRange(0, int(events)-1).Draw(t, "what")),
			job:   rapid.IntRange(0, 2).Draw(t, "job"),
			verb:  rapid.SampledFrom([]verb{session, submit, submit, look, stop, kill, tail}).Draw(t, "verb"),
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
}

func (a *attempt) id() string { return fmt.Sprintf("%s-%d", a.prefix, a.number) }

func (a *attempt) want() Want {
	want := wanted(a.job, func(w *Want) {
		w.ID, w.Session, w.Stop, w.Until = a.id(), a.session, a.stop, time.Time{}
		w.Submission.ID = a.id()
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

// world is a head, its jobs, and the operators who look after them.
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
	w := &world{bench: &bench{t: t, heads: map[string]*scripted{}}, heads: 1}
	w.head = w.bench.head("a:1")
	w.start()
	for i := range 3 {
		job := &attempt{number: 1, session: "s1", job: fmt.Sprint("job", i), prefix: fmt.Sprint("run", i)}
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
		w.head.set(func(h *scripted) { h.faults[s.verb] = append(h.faults[s.verb], s.fault) })
	case replace:
		w.heads++
		w.head.replace(fmt.Sprint("s", w.heads))
	case restart:
		w.head.set(func(h *scripted) { h.life++ })
	case succeed:
		w.bench.end()
		w.start()
	case join:
		w.former = append(w.former, w.bench.end)
		w.start()
	case bind:
		w.all = append(w.all, *job)
		*job = attempt{number: job.number + 1, session: w.head.session.Name, job: job.job, prefix: job.prefix}
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
		w.head.set(func(h *scripted) { h.calls = append(h.calls, call{by: w.number, verb: forgotten, id: job.id()}) })
	case accepted:
		if answer, ok := w.Last(name(job.job), place("a:1").Head, job.id()); ok && !answer.Submitted.IsZero() {
			job.accepted = true
		}
	}
	w.say()
}

// settle ends all faults, and gives what is wanted the time it takes.
func (w *world) settle() {
	for _, end := range w.former {
		end()
	}
	w.head.set(func(h *scripted) { clear(h.faults) })
	for range 20 {
		for _, job := range w.jobs {
			job.permit(timeout)
		}
		w.say()
		w.pass(3 * time.Second)
	}
}

// judge tells what is not as it must be.
func (w *world) judge() (problems []string) {
	wrong := func(format string, values ...any) { problems = append(problems, fmt.Sprintf(format, values...)) }
	known := map[string]*attempt{}
	for i := range w.all {
		known[w.all[i].id()] = &w.all[i]
	}
	for _, job := range w.jobs {
		known[job.id()] = job
		answer := w.last(job.job)
		current := w.head.session.Name == job.session
		switch {
		case !answer.done() && (answer.Failure != "" || answer.Session != w.head.session):
			wrong("%s is still asked, without success: %+v", job.id(), answer)
		case current && !job.stop && (!answer.Known || answer.Submitted.IsZero() && !job.accepted || w.head.begun[job.session+"/"+job.id()] != 1):
			wrong("%s was not submitted: %+v", job.id(), answer)
		case current && job.stop && (answer.Asked.IsZero() || answer.Known && !(answer.Job.Status == headclient.JobStopped && answer.Tailed)):
			wrong("%s was not stopped: %+v", job.id(), answer)
		}
	}
	for where, n := range w.head.begun {
		if n > 1 {
			wrong("%s runs %d times", where, n)
		}
	}
	for id, job := range known {
		for i := 1; i <= w.heads; i++ {
			if session := fmt.Sprint("s", i); session != job.session && w.head.begun[session+"/"+id] > 0 {
				wrong("%s, bound to %s, runs in %s", id, job.session, session)
			}
		}
	}
	return append(problems, w.submissions(known)...)
}

// submissions tells which calls were wrong, whatever became of them.
func (w *world) submissions(known map[string]*attempt) (problems []string) {
	type who struct {
		by int
		id string
	}
	unsure := map[who]bool{}
	for _, call := range w.head.calls {
		this := who{call.by, call.id}
		if call.verb == look || call.verb == forgotten {
			unsure[this] = false
		}
		if call.verb != submit {
			continue
		}
		if unsure[this] {
			problems = append(problems, call.id+" is submitted again before anyone looked")
		}
		unsure[this] = true
		job := known[call.id]
		permitted := false
		for _, permit := range job.permits {
			permitted = permitted || !call.at.Before(permit[0]) && call.at.Before(permit[1])
		}
		if !permitted {
			problems = append(problems, call.id+" is submitted without a permit")
		}
		if job.stop && call.by >= job.stopper && call.at.After(job.stopped) {
			problems = append(problems, call.id+" is submitted though it is to end")
		}
	}
	return problems
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
				w.pass(step.after)
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
