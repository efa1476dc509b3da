package serving

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
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

// lookout manages Serve on one cluster. Its first fields are guarded by the Watch's
// lock, the others are its goroutine's own.
type lookout struct {
	watch    *Watch
	cluster  types.NamespacedName
	want     Wants
	answer   Answer
	answered bool
	stop     context.CancelFunc
	// replies are those of proxies, which are asked beside the head. pressing reports that Serve is about to change.
	replies  map[Probe]Reply
	pressing bool
	// news and stir hold something while the want has changed since it was last looked at, for the head and for proxies.
	news, stir chan struct{}

	head     Head // nil while there is no conversation
	token    *headclient.Remembered
	session  string
	failures int
	// free is from when on there may be another turn.
	free time.Time
	life
	// lines are the last lines that were read, by application.
	lines map[string]line
}

// run takes turn after turn until its context ends.
func (l *lookout) run(ctx context.Context) {
	defer l.hangUp(ctx)
	var pause time.Duration
	if !slices.ContainsFunc(slices.Collect(maps.Values(l.wanted().Parts)), func(part *Config) bool { return !part.Taken }) {
		pause = rand.N(shortest) // an operator that starts does not ask all heads at once
	}
	for l.wait(ctx, pause, l.news, l.free) {
		want := l.wanted()
		answer := l.turn(ctx, want)
		if ctx.Err() != nil {
			return
		}
		next, hurries := l.pause(want, answer)
		pause = next
		l.watch.publish(l, answer, hurries)
		l.free = l.watch.clock.Now().Add(shortest)
		if pause > kept {
			l.hangUp(ctx)
		}
	}
}

// wait waits for the next turn: until the pause is over, or until something new is wanted
// and those who are asked had their rest. It is false when the context has ended.
func (l *lookout) wait(ctx context.Context, pause time.Duration, news <-chan struct{}, free time.Time) bool {
	timer := l.watch.clock.NewTimer(pause)
	defer func() { timer.Stop() }()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C():
			return true
		case <-news:
			timer.Stop()
			timer = l.watch.clock.NewTimer(max(0, free.Sub(l.watch.clock.Now())))
		}
	}
}

func (l *lookout) wanted() Wants {
	l.watch.mu.Lock()
	defer l.watch.mu.Unlock()
	return l.want
}

func (l *lookout) known() Answer {
	l.watch.mu.Lock()
	defer l.watch.mu.Unlock()
	return l.answer
}

// pause is how long to wait before the next turn, and whether that is because Serve is about to change: a tenth more or
// less, so that heads that were asked together are not for ever.
func (l *lookout) pause(want Wants, answer Answer) (time.Duration, bool) {
	every, hurries := max(want.Every, shortest), false
	switch {
	case answer.Failure != "":
		most := max(longest, every)
		if l.owes(want.Parts) {
			most = longest
		}
		every = min(shortest<<min(l.failures-1, 10), most)
	case underWay(want.Parts, answer) || l.waits(l.watch.clock.Now()) || mustClose(want, answer):
		every, hurries = shortest, true
	case failing(answer.Probes):
		every = shortest
	}
	return every - every/10 + rand.N(every/5), hurries
}

// mustClose reports whether connections are yet to be closed. What was closed before, for another
// reason, on a cluster that stays is done with.
func mustClose(want Wants, answer Answer) bool {
	return want.Close.ID != "" && want.Close.ID != answer.Closed
}

// underWay reports whether an application has yet to become what some service wants. One that
// is missing because the head would not take it has not.
func underWay(parts map[types.NamespacedName]*Config, answer Answer) bool {
	for service, config := range parts {
		refused := answer.Parts[service].RefusedDigest == config.Digest
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
func (l *lookout) turn(ctx context.Context, want Wants) Answer {
	answer := l.known()
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
func (l *lookout) closeKept(ctx context.Context, closing headclient.Closing, answer *Answer) {
	done, err := l.head.CloseKept(ctx, closing)
	if err != nil {
		log.FromContext(ctx).Info("cannot close kept connections", "cluster", l.cluster, "why", err.Error())
		l.heard(ctx, err)
	} else if done {
		answer.Closed, answer.ClosedAt = closing.ID, l.watch.clock.Now()
	}
}

// attend looks what Serve does, and deploys what is wanted, one part after another. What was
// deployed is told only together with what Serve says after it: before that it speaks of what
// was there.
func (l *lookout) attend(ctx context.Context, wanted map[types.NamespacedName]*Config, answer *Answer) error {
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
	answer.Parts = l.outcomes(l.watch.clock.Now())
	return nil
}

// look asks what Serve does. It gives the applications with their configurations, which are
// left out of the answer.
func (l *lookout) look(ctx context.Context, answer *Answer) (map[string]headclient.Application, error) {
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
	answer.At, answer.Serving, answer.Parts = now, serving, l.outcomes(now)
	return full, nil
}

// converse ensures that there is a conversation with a head whose session is known. What
// another session was told counts no more.
func (l *lookout) converse(ctx context.Context) error {
	if l.head != nil {
		return nil
	}
	at := l.wanted().At
	if l.token == nil && at.Token != nil { // a lookout is asked for one always or never
		l.token = headclient.Remember(func(ctx context.Context) (string, error) { return l.wanted().At.Token(ctx) })
	}
	at.Token = l.token.Token()
	head, err := l.watch.dial(at)
	if err != nil {
		return err
	}
	l.head = head
	session, err := head.Session(ctx)
	if err != nil {
		l.token.Heard(err)
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
func (l *lookout) heard(ctx context.Context, err error) {
	l.token.Heard(err)
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

func (l *lookout) hangUp(ctx context.Context) {
	if l.head == nil {
		return
	}
	if err := l.head.Close(); err != nil {
		log.FromContext(ctx).Error(err, "closing the connection to a head", "cluster", l.cluster)
	}
	l.head = nil
}
