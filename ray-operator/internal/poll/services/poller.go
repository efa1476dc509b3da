package services

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll"
)

// How often a head is asked.
const (
	// shortest is about how often Serve's controller looks at its proxies and replicas.
	shortest = time.Second
	// longest is the most that failures in a row put off the next try, unless the head is
	// asked less often anyway and nothing waits to be deployed.
	longest = 5 * time.Second
	// kept is up to which pause a connection is kept, as for other questions to heads.
	kept = 15 * time.Second
)

// poller manages Serve on one cluster. Only what its two loops tell each other is shared.
type poller struct {
	*endpoint
	watch *Watch
	// pressing reports that Serve is about to change, and failing that a proxy does not answer as it should.
	pressing, failing atomic.Bool

	// answer is what was heard of the head last, and outcomes what came of each service's part.
	answer   Answer
	outcomes map[types.NamespacedName]Outcome
	head     Head // nil while there is no conversation
	session  string
	failures int
	// free is from when on there may be another turn.
	free time.Time
	life
	// lines are the last lines that were read, by application.
	lines map[string]logLine
}

// run takes turn after turn until its context ends.
func (l *poller) run(ctx context.Context, news <-chan struct{}) {
	defer l.hangUp(ctx)
	var pause time.Duration
	if !slices.ContainsFunc(slices.Collect(maps.Values(l.wanted().Parts)), func(part *Config) bool { return !part.Taken }) {
		pause = l.Spread(shortest)
	}
	for l.wait(ctx, pause, news, l.free) {
		want := l.wanted()
		l.answer = l.turn(ctx, want)
		if ctx.Err() != nil {
			return
		}
		next, hurries := l.pause(want, l.answer)
		pause = next
		l.publish(hurries)
		l.free = l.watch.clock.Now().Add(shortest)
		if pause > kept {
			l.hangUp(ctx)
		}
	}
}

// publish gives each service what was heard, with what came of its part and the last replies of its proxies.
func (l *poller) publish(pressing bool) {
	if before := l.pressing.Swap(pressing); pressing && !before {
		l.Rouse()
	}
	l.Publish(func(of key, _ Want, before Answer) Answer {
		answer := l.answer
		answer.Outcome, answer.Probes = l.outcomes[of.service], before.Probes
		return answer
	})
}

// wait waits for the next turn: until the pause is over, or until something new is wanted
// and those who are asked had their rest. It is false when the context has ended.
func (l *poller) wait(ctx context.Context, pause time.Duration, news <-chan struct{}, free time.Time) bool {
	for {
		said, err := l.Pause(ctx, pause, news)
		if err != nil || !said {
			return err == nil
		}
		pause = max(0, free.Sub(l.watch.clock.Now()))
	}
}

// wanted returns what all services want of the head.
func (l *poller) wanted() Wants {
	services := map[types.NamespacedName]Want{}
	for of, want := range l.Wants() {
		services[of.service] = want
	}
	return Together(services)
}

// pause is how long to wait before the next turn, and whether that is because Serve is about to change.
func (l *poller) pause(want Wants, answer Answer) (time.Duration, bool) {
	every, hurries := max(want.Every, shortest), false
	switch {
	case answer.Failure != "":
		most := max(longest, every)
		if l.owes(want.Parts) {
			most = longest
		}
		every = poll.Double(shortest, l.failures, most)
	case l.underWay(want.Parts, answer) || l.waits(l.watch.clock.Now()) || mustClose(want, answer):
		every, hurries = shortest, true
	case l.failing.Load():
		every = shortest
	}
	return poll.Jitter(every), hurries
}

// mustClose reports whether connections are yet to be closed. What was closed before, for another
// reason, on a cluster that stays is done with.
func mustClose(want Wants, answer Answer) bool {
	return want.Close.ID != "" && want.Close.ID != answer.Closed
}

// underWay reports whether an application has yet to become what some service wants. One that
// is missing because the head would not take it has not.
func (l *poller) underWay(parts map[types.NamespacedName]*Config, answer Answer) bool {
	for service, config := range parts {
		refused := l.outcomes[service].RefusedDigest == config.Digest
		for name := range config.Applications {
			application, there := answer.Serving.Applications[name]
			if there && application.State != headclient.ApplicationRunning || !there && !refused {
				return true
			}
		}
		for _, name := range config.Drop {
			if application, there := answer.Serving.Applications[name]; there && application.Declarative && !refused {
				return true
			}
		}
	}
	return false
}

// turn asks once for all that must be known, and deploys what must be. What nobody
// answered stays as it was.
func (l *poller) turn(ctx context.Context, want Wants) Answer {
	answer := l.answer
	err := l.attend(ctx, want.Parts, &answer)
	if err == nil {
		answer.Failure, answer.Err, answer.FailingSince = "", nil, time.Time{}
		l.failures = 0
	} else {
		if l.failures++; answer.Failure == "" {
			answer.FailingSince = l.watch.clock.Now()
		}
		answer.Failure, answer.Err = headclient.KindOf(err), err
	}
	if err == nil {
		answer.LastLines = l.lastLines(ctx, want.Parts, answer.Serving)
	}
	if l.head != nil && err == nil && mustClose(want, answer) {
		l.closeKept(ctx, want.Close, &answer)
	}
	return answer
}

// closeKept has connections closed that clients keep. A failure is no failure of the head: it
// is tried again with the next turn.
func (l *poller) closeKept(ctx context.Context, closing headclient.Closing, answer *Answer) {
	done, err := l.head.CloseKept(ctx, closing)
	if err != nil {
		log.FromContext(ctx).Info("Cannot close idle connections", "cluster", l.Key.cluster, "why", err.Error())
		l.heard(ctx, err)
	} else if done {
		answer.Closed, answer.ClosedAt = closing.ID, l.watch.clock.Now()
	}
}

// attend looks what Serve does, and deploys what is wanted, one part after another. What was
// deployed is told only together with what Serve says after it: before that it speaks of what
// was there.
func (l *poller) attend(ctx context.Context, wanted map[types.NamespacedName]*Config, answer *Answer) error {
	silent := l.silent
	l.silent = 0
	if err := l.converse(ctx); err != nil {
		return err
	}
	l.update(wanted)
	applications, err := l.look(ctx, answer)
	if err != nil {
		return err
	}
	if !answer.Serving.Running {
		l.silent = silent + 1
	}
	for range wanted {
		sent, err := l.deploy(ctx, wanted, headclient.Serving{Running: answer.Serving.Running, Applications: applications})
		if err != nil {
			return err
		}
		if !sent {
			break
		}
		if applications, err = l.look(ctx, answer); err != nil {
			return err
		}
	}
	l.outcomes = l.judge(l.watch.clock.Now())
	return nil
}

// look asks what Serve does. It gives the applications with their configurations, which are
// left out of the answer.
func (l *poller) look(ctx context.Context, answer *Answer) (map[string]headclient.Application, error) {
	serving, err := l.head.Serving(ctx)
	if err != nil {
		l.heard(ctx, err)
		return nil, err
	}
	full := serving.Applications
	serving.Applications = make(map[string]headclient.Application, len(full))
	for name, application := range full {
		application.Deployed = nil
		serving.Applications[name] = application
	}
	now := l.watch.clock.Now()
	answer.At, answer.Serving, l.outcomes = now, serving, l.judge(now)
	return full, nil
}

// converse ensures that there is a conversation with a head whose session is known. What
// another session was told counts no more.
func (l *poller) converse(ctx context.Context) error {
	if l.head != nil {
		return nil
	}
	at := l.Latest().At
	at.Token = l.Token.Token()
	head, err := l.watch.dial(at)
	if err != nil {
		return err
	}
	l.head = head
	session, err := head.Session(ctx)
	if err != nil {
		l.Token.Heard(err)
		l.hangUp(ctx) // it is not known which server answers so
		return err
	}
	if l.session != "" && l.session != session.Name {
		l.life = life{reborn: true}
	}
	l.session = session.Name
	return nil
}

// heard ends a conversation in which anything but a plain answer was heard: the next one
// begins with the session.
func (l *poller) heard(ctx context.Context, err error) {
	l.Token.Heard(err)
	if !answers(err) {
		l.hangUp(ctx)
	}
}

// answers reports whether a call has brought an answer, be it a no.
func answers(err error) bool {
	switch headclient.KindOf(err) {
	case "", headclient.NotFound, headclient.Refused, headclient.Unsupported, headclient.Invalid:
		return true
	default:
		return false
	}
}

func (l *poller) hangUp(ctx context.Context) {
	if l.head == nil {
		return
	}
	if err := l.head.Close(); err != nil {
		log.FromContext(ctx).Error(err, "Closing the connection to a head failed", "cluster", l.Key.cluster)
	}
	l.head = nil
}
