package jobs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// timeout is a call's, as long as that of real ones.
const timeout = headclient.DefaultTimeout

// verb is a call that a head can be asked to answer.
type verb string

const (
	session   verb = "Session"
	submit    verb = "Submit"
	look      verb = "Job"
	stop      verb = "Stop"
	kill      verb = "Kill"
	tail      verb = "Tail"
	listAll   verb = "List"
	forgetOne verb = "Forget"
)

// fault is what befalls a call.
type fault struct {
	// lost: the call does not reach the head; unheard: its reply does not reach us; hung:
	// neither, after the timeout; twice: it reaches the head twice.
	lost, unheard, hung, twice bool
	// late is how long after the call the head begins with it, maybe when nobody waits.
	late time.Duration
	// err is the head's answer, without doing anything.
	err error
}

// call is one that reached a head's address, by the Watch of a number.
type call struct {
	at   time.Time
	by   int
	verb verb
	id   string
}

// scripted is a head that answers as a test says, does what Ray does, and holds those who
// call to the rules of a conversation.
type scripted struct {
	mu      sync.Mutex
	session headclient.Session
	down    bool
	pending bool // what is submitted stays PENDING
	dogged  bool // what is told to stop does not
	jobs    map[string]headclient.Job
	output  headclient.Tail
	faults  map[verb][]fault // of the next calls
	always  map[verb]fault
	garbled string // about this run it says nonsense

	calls    []call
	begun    map[string]int // runs by session and ID
	life     int
	underWay map[int]int
	dialed   int
	closed   int
	token    headclient.Token
	broken   []string // rules that were
}

func newHead() *scripted {
	return &scripted{
		session: headclient.Session{Name: "s1", Version: "2.60.0"},
		jobs:    map[string]headclient.Job{}, faults: map[verb][]fault{}, always: map[verb]fault{}, begun: map[string]int{}, underWay: map[int]int{},
	}
}

func failure(kind headclient.Kind) error {
	return &headclient.Error{Kind: kind, Act: "ask", Err: errors.New("because")}
}

// talk is a conversation with a scripted head.
type talk struct {
	by      int
	head    *scripted
	life    int
	over    bool
	session string
}

// do brings a call to the head, with what befalls it.
func (c *talk) do(ctx context.Context, verb verb, id string, process func() error) error {
	f, err := c.enter(verb, id)
	defer c.leave()
	if err != nil {
		return err
	}
	limited, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	switch {
	case f.hung:
		<-limited.Done()
		return c.end(headclient.Timeout)
	case f.late > 0:
		done := make(chan error, 1)
		go func() {
			<-time.After(f.late)
			done <- c.process(process)
		}()
		select {
		case err := <-done:
			return err
		case <-limited.Done():
			return c.end(headclient.Timeout)
		}
	case f.lost:
		return c.end(headclient.Unavailable)
	case f.twice:
		_ = c.process(process)
	case f.err != nil:
		if !answers(f.err) {
			_ = c.end(headclient.Unavailable)
		}
		return f.err
	}
	err = c.process(process)
	if f.unheard {
		return c.end(headclient.Unavailable)
	}
	return err
}

func (c *talk) enter(verb verb, id string) (fault, error) {
	h := c.head
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, call{at: time.Now(), by: c.by, verb: verb, id: id})
	if h.underWay[c.by]++; h.underWay[c.by] > 1 {
		h.broken = append(h.broken, "two calls at once")
	}
	if c.over {
		h.broken = append(h.broken, string(verb)+" in a conversation that is over")
	}
	if c.session == "" && verb != session {
		h.broken = append(h.broken, string(verb)+" before the session is known")
	}
	if h.down || c.life != h.life {
		c.over = true
		return fault{}, failure(headclient.Unavailable)
	}
	if next := h.faults[verb]; len(next) > 0 {
		h.faults[verb] = next[1:]
		return next[0], nil
	}
	return h.always[verb], nil
}

func (c *talk) leave() {
	c.head.mu.Lock()
	defer c.head.mu.Unlock()
	c.head.underWay[c.by]--
}

// process does what was asked, if the head that was asked still lives.
func (c *talk) process(what func() error) error {
	c.head.mu.Lock()
	defer c.head.mu.Unlock()
	if c.life != c.head.life {
		c.over = true
		return failure(headclient.Unavailable)
	}
	return what()
}

func (c *talk) end(kind headclient.Kind) error {
	c.head.mu.Lock()
	defer c.head.mu.Unlock()
	c.over = true
	return failure(kind)
}

func (c *talk) Session(ctx context.Context) (who headclient.Session, err error) {
	err = c.do(ctx, session, "", func() error {
		who, c.session = c.head.session, c.head.session.Name
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
		h.jobs[s.ID] = job
		h.begun[h.session.Name+"/"+s.ID]++
		return nil
	})
}

func (c *talk) Job(ctx context.Context, id string) (job headclient.Job, err error) {
	err = c.do(ctx, look, id, func() error {
		if h := c.head; h.garbled == id {
			c.over = true
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

func (c *talk) Close() error {
	c.head.mu.Lock()
	defer c.head.mu.Unlock()
	c.over = true
	c.head.closed++
	return nil
}

// set changes the head.
func (s *scripted) set(change func(*scripted)) {
	s.mu.Lock()
	defer s.mu.Unlock()
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

// replace puts another head in its place, which knows nothing.
func (s *scripted) replace(name string) {
	s.set(func(s *scripted) {
		s.life++
		s.session.Name, s.jobs = name, map[string]headclient.Job{}
	})
}

// count counts calls.
func (s *scripted) count(verb verb) (n int) {
	s.set(func(s *scripted) {
		for _, call := range s.calls {
			if call.verb == verb {
				n++
			}
		}
	})
	return n
}

// verbs are the calls since they were last asked for.
func (s *scripted) verbs() (all []verb) {
	s.set(func(s *scripted) {
		for _, call := range s.calls {
			all = append(all, call.verb)
		}
		s.calls = nil
	})
	return all
}

// bench is a running Watch over scripted heads by the addresses of their job API.
type bench struct {
	*Watch
	t     *testing.T
	lock  sync.Mutex // of heads
	heads map[string]*scripted
	// number is that of the Watch, from 1.
	number int
	// abandoned judges submissions; nil has none forgotten.
	abandoned Abandoned
	queue     workqueue.TypedRateLimitingInterface[reconcile.Request]
	end       func()
}

// play runs a test in a bubble of time with a started Watch, and holds it to leave no
// goroutine and no connection, and to break no rule of a conversation.
func play(t *testing.T, test func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, heads: map[string]*scripted{}}
		b.start()
		test(t, b)
		for _, problem := range b.close() {
			t.Error(problem)
		}
	})
}

// close ends the Watch, and tells what is left of it and which rules were broken.
func (b *bench) close() (problems []string) {
	b.end()
	b.pass(time.Minute) // for what is late
	for address, head := range b.heads {
		if head.dialed != head.closed {
			problems = append(problems, fmt.Sprintf("%s: %d connections, %d closed", address, head.dialed, head.closed))
		}
		for _, rule := range head.broken {
			problems = append(problems, address+": "+rule)
		}
	}
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
	number := b.number
	b.Watch = New(func(at Place) (Head, error) { return b.dialHead(at, number) }, b.abandoned, clock.RealClock{})
	b.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	queue, watch := b.queue, b.Watch
	ctx, stop := context.WithCancel(b.t.Context())
	if err := b.Changes().Start(ctx, queue); err != nil {
		b.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := watch.Start(ctx); err != nil {
			b.t.Error(err)
		}
	}()
	b.end = sync.OnceFunc(func() {
		stop()
		<-ended
		queue.ShutDown()
	})
	synctest.Wait()
}

func (b *bench) dialHead(at Place, number int) (Head, error) {
	b.lock.Lock()
	head := b.heads[at.Jobs]
	b.lock.Unlock()
	if head == nil {
		return nil, &headclient.Error{Kind: headclient.Unavailable, Act: "dial", Err: errors.New("nobody is there")}
	}
	head.mu.Lock()
	defer head.mu.Unlock()
	head.dialed++
	head.token = at.Token
	return &talk{by: number, head: head, life: head.life}, nil
}

// head adds a head at an address.
func (b *bench) head(address string) *scripted {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.heads[address] = newHead()
	return b.heads[address]
}

// conversations counts those that go on.
func (b *bench) conversations() (n int) {
	for _, head := range b.heads {
		head.set(func(h *scripted) { n += h.dialed - h.closed })
	}
	return n
}

// pass lets time go by.
func (b *bench) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// wakes counts the wakes of each job since they were last asked for.
func (b *bench) wakes() map[string]int {
	all := map[string]int{}
	for range b.queue.Len() {
		request, _ := b.queue.Get()
		b.queue.Done(request)
		all[request.Name]++
	}
	return all
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
