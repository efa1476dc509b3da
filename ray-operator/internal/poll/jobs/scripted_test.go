package jobs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/polltest"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
)

// verb is a call that a head can be asked to answer.
type verb string

const (
	session    verb = "Session"
	hasPackage verb = "HasPackage"
	upload     verb = "Upload"
	submit     verb = "Submit"
	look       verb = "Job"
	stop       verb = "Stop"
	kill       verb = "Kill"
	tail       verb = "Tail"
	report     verb = "Report"
	listAll    verb = "List"
	forgetOne  verb = "Forget"
)

type (
	fault = polltest.Fault
	call  = polltest.Call[verb]
)

// timeout is a call's.
const timeout = polltest.Timeout

// scripted is a head that answers as a test says, and does what Ray does.
type scripted struct {
	polltest.Script[verb]
	session headclient.Session
	pending bool // what is submitted stays PENDING
	dogged  bool // what is told to stop does not
	jobs    map[string]headclient.Job
	output  headclient.Tail
	garbled string         // about this run it says nonsense
	begun   map[string]int // runs by session and ID
	// packages are their archives by name, and reports what gangs said by ID.
	packages, reports map[string]string
}

func newHead() *scripted {
	return &scripted{
		Script: polltest.NewScript[verb](answers), session: headclient.Session{Name: "s1", Version: "2.60.0"},
		jobs: map[string]headclient.Job{}, begun: map[string]int{}, packages: map[string]string{}, reports: map[string]string{},
	}
}

func failure(kind headclient.Kind) error { return polltest.Failure(kind) }

// talk is a conversation with a scripted head.
type talk struct {
	*polltest.Talk[verb]
	head *scripted
}

// do brings a call to the head.
func (c *talk) do(ctx context.Context, verb verb, id string, process func() error) error {
	return c.Do(ctx, verb, id, func(fault) error { return process() })
}

func (c *talk) Session(ctx context.Context) (who headclient.Session, err error) {
	err = c.do(ctx, session, "", func() error {
		who = c.head.session
		return nil
	})
	return who, err
}

func (c *talk) Submit(ctx context.Context, s headclient.Submission) error {
	return c.do(ctx, submit, s.ID, func() error {
		h := c.head
		if _, used := h.jobs[s.ID]; used {
			return failure(headclient.Exists)
		}
		job := headclient.Job{ID: s.ID, Status: headclient.JobRunning, Metadata: maps.Clone(s.Metadata)}
		if h.pending {
			job.Status = headclient.JobPending
		}
		if name := packageOf(s); name != "" && h.packages[name] != "archive of "+s.ID {
			h.Break("%s begins without its package", s.ID)
		}
		h.jobs[s.ID] = job
		h.begun[h.session.Name+"/"+s.ID]++
		return nil
	})
}

func (c *talk) HasPackage(ctx context.Context, name string) (has bool, err error) {
	err = c.do(ctx, hasPackage, name, func() error {
		_, has = c.head.packages[name]
		return nil
	})
	return has, err
}

func (c *talk) Upload(ctx context.Context, name string, archive []byte) error {
	return c.do(ctx, upload, name, func() error {
		c.head.packages[name] = string(archive)
		return nil
	})
}

func (c *talk) Report(ctx context.Context, id string) (said []byte, err error) {
	err = c.do(ctx, report, id, func() error {
		text, known := c.head.reports[id]
		if !known {
			return failure(headclient.NotFound)
		}
		said = []byte(text)
		return nil
	})
	return said, err
}

func (c *talk) Job(ctx context.Context, id string) (job headclient.Job, err error) {
	err = c.do(ctx, look, id, func() error {
		if h := c.head; h.garbled == id {
			c.Over()
			return failure(headclient.Protocol)
		}
		var known bool
		if job, known = c.head.jobs[id]; !known {
			return failure(headclient.NotFound)
		}
		return nil
	})
	return job, err
}

// finish ends a run of a status.
func (c *talk) finish(ctx context.Context, verb verb, id string, of, as headclient.JobStatus) (done bool, err error) {
	err = c.do(ctx, verb, id, func() error {
		job, known := c.head.jobs[id]
		if !known && verb == stop {
			return failure(headclient.NotFound)
		}
		done = known && !job.Status.Over()
		if job.Status == of && !c.head.dogged {
			job.Status = as
			c.head.jobs[id] = job
		}
		return nil
	})
	return done, err
}

func (c *talk) Stop(ctx context.Context, id string) (bool, error) {
	return c.finish(ctx, stop, id, headclient.JobRunning, headclient.JobStopped)
}

func (c *talk) Kill(ctx context.Context, id string) (bool, error) {
	return c.finish(ctx, kill, id, headclient.JobPending, headclient.JobFailed)
}

func (c *talk) List(ctx context.Context) (all []headclient.Job, err error) {
	err = c.do(ctx, listAll, "", func() error {
		all = slices.Collect(maps.Values(c.head.jobs))
		return nil
	})
	return all, err
}

func (c *talk) Forget(ctx context.Context, id string) error {
	return c.do(ctx, forgetOne, id, func() error {
		if !c.head.jobs[id].Status.Over() {
			return failure(headclient.Refused)
		}
		delete(c.head.jobs, id)
		delete(c.head.reports, id)
		return nil
	})
}

func (c *talk) Tail(ctx context.Context, id string, lines int) (end headclient.Tail, err error) {
	err = c.do(ctx, tail, id, func() error {
		if _, known := c.head.jobs[id]; !known {
			return failure(headclient.NotFound)
		}
		end = c.head.output
		end.Lines = end.Lines[max(0, len(end.Lines)-lines):]
		return nil
	})
	return end, err
}

// set changes the head.
func (s *scripted) set(change func(*scripted)) {
	s.Lock()
	defer s.Unlock()
	change(s)
}

// job sets the status of a run.
func (s *scripted) job(id string, status headclient.JobStatus) {
	s.set(func(s *scripted) {
		job := s.jobs[id]
		job.ID, job.Status = id, status
		s.jobs[id] = job
	})
}

// says has the launcher of a gang report a state and a round.
func (s *scripted) says(id string, state launcher.State, round int) {
	s.set(func(s *scripted) { s.reports[id] = reportOf(state, round) })
}

// replace puts another head in its place, which knows nothing.
func (s *scripted) replace(name string) {
	s.set(func(s *scripted) {
		s.Life++
		s.session.Name, s.jobs = name, map[string]headclient.Job{}
		clear(s.packages)
		clear(s.reports)
	})
}

// bench is a running Watch over scripted heads by the addresses of their job API.
type bench struct {
	*Watch
	*polltest.Bench
	t     *testing.T
	heads polltest.Heads[*scripted]
	// number is that of the Watch, from 1.
	number int
	// abandoned judges submissions; nil has none forgotten.
	abandoned Abandoned
}

// play runs a test in a bubble of time with a started Watch, and holds it to leave no
// goroutine and no connection, and to break no rule of a conversation.
func play(t *testing.T, test func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t}
		b.start()
		test(t, b)
		for _, problem := range b.close() {
			t.Error(problem)
		}
	})
}

// close ends the Watch, and tells what is left of it and which rules were broken.
func (b *bench) close() []string {
	b.End()
	b.Pass(time.Minute) // for what is late
	problems := b.heads.Problems()
	if n := b.underWay(); n > 0 {
		problems = append(problems, fmt.Sprintf("%d slots are left", n))
	}
	return problems
}

// underWay is how many slots are taken.
func (b *bench) underWay() int {
	n := len(b.quick)
	for _, slow := range b.slow {
		n += len(slow)
	}
	return n
}

// start starts a Watch that knows nothing: an operator that has just come.
func (b *bench) start() {
	b.number++
	b.Watch = New(b.dialBy(b.number), b.abandoned, clock.RealClock{})
	b.Bench = polltest.Start(b.t, b.Watch)
}

// dialBy returns what dials heads for the Watch of a number.
func (b *bench) dialBy(number int) func(Place) (Head, error) {
	return func(at Place) (Head, error) {
		head, err := b.heads.At(at.Jobs)
		if err != nil {
			return nil, err
		}
		return &talk{head.Dial(number, at.Token), head}, nil
	}
}

// head adds a head at an address.
func (b *bench) head(address string) *scripted { return b.heads.Put(address, newHead()) }

// conversations counts those that go on.
func (b *bench) conversations() (n int) {
	for _, head := range b.heads.All() {
		head.set(func(h *scripted) { n += h.Dialed - h.Closed })
	}
	return n
}

// last is what is known of a job's run.
func (b *bench) last(job string) Answer {
	b.t.Helper()
	want, _, ok := b.Set.Last(name(job))
	answer, heard := b.Last(name(job), want.At.Head, want.ID)
	if !ok || !heard {
		b.t.Fatalf("nothing is known of %s", job)
	}
	return answer
}
