package polltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// Timeout is a call's, as long as that of real ones.
const Timeout = headclient.DefaultTimeout

// session is the verb by which a conversation begins.
const session = "Session"

// Fault is what befalls a call.
type Fault struct {
	// Lost: the call does not reach the head; Unheard: its reply does not reach us; Hung: neither, after the timeout; Twice:
	// it reaches the head twice.
	Lost, Unheard, Hung, Twice bool
	// Blind: the head does not find just then what it is asked for.
	Blind bool
	// Late is how long after the call the head begins with it, maybe when nobody waits.
	Late time.Duration
	// Err is the head's answer, without doing anything.
	Err error
}

// Call is one that reached a head's address, by the poller of a number.
type Call[V ~string] struct {
	At   time.Time
	By   int
	Verb V
	ID   string
}

// Script is a head's side of conversations. It has befall calls what a test says, and holds those who call to the rules of a
// conversation. Its lock guards all of a head.
type Script[V ~string] struct {
	sync.Mutex
	// Faults are of the next calls, Always of all others.
	Faults map[V][]Fault
	Always map[V]Fault
	// Life is another number for each head at the address. One that is Down answers nobody.
	Life int
	Down bool
	// IsAnswer reports whether a conversation goes on after an error. Where ReadsToken holds, each call reads the token.
	IsAnswer   func(error) bool
	ReadsToken bool

	Calls          []Call[V]
	Dialed, Closed int
	// Token is the one of the last conversation.
	Token headclient.Token
	// UnderWay is how many calls are under way, by the number of their poller.
	UnderWay map[int]int
	broken   []string // rules that were
}

// NewScript returns the script of a head that answers every call.
func NewScript[V ~string](isAnswer func(error) bool) Script[V] {
	return Script[V]{Faults: map[V][]Fault{}, Always: map[V]Fault{}, UnderWay: map[int]int{}, IsAnswer: isAnswer}
}

// Failure returns the error of a call.
func Failure(kind headclient.Kind) error {
	return &headclient.Error{Kind: kind, Act: "ask", Err: errors.New("because")}
}

// Break notes a rule that was broken. The lock is held.
func (s *Script[V]) Break(format string, args ...any) {
	s.broken = append(s.broken, fmt.Sprintf(format, args...))
}

// Problems implements Head.
func (s *Script[V]) Problems() []string {
	s.Lock()
	defer s.Unlock()
	if s.Dialed == s.Closed {
		return s.broken
	}
	return append(s.broken, fmt.Sprintf("%d connections, %d closed", s.Dialed, s.Closed))
}

// Count counts calls.
func (s *Script[V]) Count(verb V) (n int) {
	s.Lock()
	defer s.Unlock()
	for _, call := range s.Calls {
		if call.Verb == verb {
			n++
		}
	}
	return n
}

// Verbs returns the calls since they were last asked for.
func (s *Script[V]) Verbs() (all []V) {
	s.Lock()
	defer s.Unlock()
	for _, call := range s.Calls {
		all = append(all, call.Verb)
	}
	s.Calls = nil
	return all
}

// Talk is a conversation with a scripted head.
type Talk[V ~string] struct {
	script      *Script[V]
	by, life    int
	isOver, met bool
}

// Dial begins a conversation of the poller of a number. One without a number may have calls at once.
func (s *Script[V]) Dial(by int, token headclient.Token) *Talk[V] {
	s.Lock()
	defer s.Unlock()
	s.Dialed++
	s.Token = token
	return &Talk[V]{script: s, by: by, life: s.Life}
}

// Close ends the conversation.
func (c *Talk[V]) Close() error {
	c.script.Lock()
	defer c.script.Unlock()
	c.isOver = true
	c.script.Closed++
	return nil
}

// Over ends the conversation from the head's side. The lock is held.
func (c *Talk[V]) Over() { c.isOver = true }

// Do brings a call to the head, with what befalls it. What the head does is called with the lock held.
func (c *Talk[V]) Do(ctx context.Context, verb V, id string, process func(Fault) error) error {
	f, err := c.enter(ctx, verb, id)
	defer c.leave()
	if err != nil {
		return err
	}
	limited, stop := context.WithTimeout(ctx, Timeout)
	defer stop()
	switch {
	case f.Hung:
		<-limited.Done()
		return c.fail(headclient.Timeout)
	case f.Late > 0:
		done := make(chan error, 1)
		go func() {
			<-time.After(f.Late)
			done <- c.process(verb, f, process)
		}()
		select {
		case err := <-done:
			return err
		case <-limited.Done():
			return c.fail(headclient.Timeout)
		}
	case f.Lost:
		return c.fail(headclient.Unavailable)
	case f.Twice:
		_ = c.process(verb, f, process)
	case f.Err != nil:
		if !c.script.IsAnswer(f.Err) {
			_ = c.fail(headclient.Unavailable)
		}
		return f.Err
	}
	err = c.process(verb, f, process)
	if f.Unheard {
		return c.fail(headclient.Unavailable)
	}
	return err
}

// enter notes a call, and returns what befalls it.
func (c *Talk[V]) enter(ctx context.Context, verb V, id string) (Fault, error) {
	s := c.script
	s.Lock()
	defer s.Unlock()
	s.Calls = append(s.Calls, Call[V]{At: time.Now(), By: c.by, Verb: verb, ID: id})
	if s.UnderWay[c.by]++; c.by > 0 && s.UnderWay[c.by] > 1 {
		s.Break("two calls at once")
	}
	if c.isOver {
		s.Break("%s in a conversation that is over", verb)
	}
	if !c.met && verb != session {
		s.Break("%s before the session is known", verb)
	}
	if s.Down || c.life != s.Life {
		c.isOver = true
		return Fault{}, Failure(headclient.Unavailable)
	}
	f := s.Always[verb]
	if next := s.Faults[verb]; len(next) > 0 {
		f, s.Faults[verb] = next[0], next[1:]
	}
	if s.ReadsToken && s.Token != nil {
		if _, err := s.Token(ctx); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (c *Talk[V]) leave() {
	c.script.Lock()
	defer c.script.Unlock()
	c.script.UnderWay[c.by]--
}

// process does what was asked, if the head that was asked still lives.
func (c *Talk[V]) process(verb V, f Fault, what func(Fault) error) error {
	c.script.Lock()
	defer c.script.Unlock()
	if c.life != c.script.Life {
		c.isOver = true
		return Failure(headclient.Unavailable)
	}
	err := what(f)
	c.met = c.met || verb == session && err == nil
	return err
}

func (c *Talk[V]) fail(kind headclient.Kind) error {
	c.script.Lock()
	defer c.script.Unlock()
	c.isOver = true
	return Failure(kind)
}
