package sidecar

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/decision"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

// Head is what a round asks of the head's GCS: a headclient.Client.
type Head interface {
	Demand(ctx context.Context) (headclient.Demand, error)
	Drain(ctx context.Context, drain headclient.Drain) (headclient.Verdict, error)
	Report(ctx context.Context, report headclient.Report) error
	Configure(ctx context.Context, shapes []headclient.Shape) error
	Announce(ctx context.Context, address string) error
	Close() error
}

// Link is the stream to the operator: a server.Server.
type Link interface {
	Snapshot() (protocol.Snapshot, bool)
	Changed() <-chan struct{}
	Say(decision protocol.Decision) error
}

// The pace of rounds.
const (
	// pause is between rounds, hurried while a node drains: one that idles was seen dead after
	// 20 ms.
	pause, hurried = 250 * time.Millisecond, 200 * time.Millisecond
	// share is how many times as long as GCS takes to answer it is left alone: it answers in
	// the same queue in which it starts actors.
	share = 20
	// slowest is the longest pause.
	slowest = 5 * time.Second
	// afterFailure is the pause after a head did not answer, soonest the one before orders
	// that changed are obeyed: however fast they change, there is time between rounds.
	afterFailure, soonest = 500 * time.Millisecond, 20 * time.Millisecond
	// mute is for how long a head may give no answer before the operator is told.
	mute = 10 * time.Second
	// neverPause is between words that differ in nothing but what can never fit.
	neverPause = 30 * time.Second
	// cut is how long drains and reports of a round may take together.
	cut = 4 * time.Second
)

// Loop makes rounds.
type Loop struct {
	// Dial prepares a connection to the head's GCS.
	Dial  func() (Head, error)
	Link  Link
	Clock clock.Clock
	Log   *slog.Logger
	// Metrics is told of each round; Address is where they can be had, for Ray to know. It
	// is told nothing where that is empty.
	Metrics *Metrics
	Address string

	memory *Memory
	head   Head
	// snapshot is the last one, also when nobody listens any more.
	snapshot protocol.Snapshot
	ordered  bool
	// decision is what was said last, neverSaid when that was.
	decision  protocol.Decision
	neverSaid time.Time
	// heard is when the head answered last, at first when the process began; trouble is the
	// same while it gives no answer.
	heard, trouble time.Time
	told           told
}

// told is what Ray was told.
type told struct {
	report    report
	at        time.Time
	shapes    []headclient.Shape
	shaped    bool
	announced bool
	// failing is what could not be told.
	failing map[string]bool
}

// Run makes rounds until its context ends.
func (l *Loop) Run(ctx context.Context) {
	l.heard = l.Clock.Now()
	defer l.hangUp()
	for wait := time.Duration(0); ; {
		if !l.sleep(ctx, wait) {
			return
		}
		wait = l.round(ctx)
	}
}

// sleep waits for the next round, and is false when there is none. Snapshot that change end
// it.
func (l *Loop) sleep(ctx context.Context, wait time.Duration) bool {
	timer := l.Clock.NewTimer(min(wait, soonest))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
	}
	rest := l.Clock.NewTimer(max(0, wait-soonest))
	defer rest.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-l.Link.Changed():
	case <-rest.C():
	}
	return true
}

// round makes one round, and gives the pause after it.
func (l *Loop) round(ctx context.Context) time.Duration {
	if l.memory == nil {
		l.memory = NewMemory()
	}
	began := l.Clock.Now()
	demand, err := l.ask(ctx)
	took := l.Clock.Since(began)
	if err != nil {
		l.fail(ctx, err)
		return afterFailure
	}
	l.answered()
	snapshot, listening := l.Link.Snapshot()
	if listening {
		l.snapshot, l.ordered = snapshot, true
	}
	next := pause
	if l.ordered {
		seen := look(Seen{Snapshot: l.snapshot, Listening: listening, Demand: demand, Now: l.Clock.Now()})
		l.decide(ctx, seen)
		if l.memory.leaving.draining() {
			next = hurried
		}
	}
	l.Metrics.round(l.Clock.Since(began))
	return min(max(next, share*took), slowest)
}

// ask asks the head, over a connection that is new where the former call failed: one may be
// dead without knowing.
func (l *Loop) ask(ctx context.Context) (headclient.Demand, error) {
	if l.head == nil {
		head, err := l.Dial()
		if err != nil {
			return headclient.Demand{}, err
		}
		l.head = head
	}
	return l.head.Demand(ctx)
}

func (l *Loop) hangUp() {
	if l.head == nil {
		return
	}
	if err := l.head.Close(); err != nil {
		l.Log.Error("Closing the connection to the head failed", "error", err)
	}
	l.head = nil
}

// fail keeps the last decision, and says after a while that it is old.
func (l *Loop) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	l.hangUp()
	l.memory.Failed()
	l.Metrics.failed()
	now := l.Clock.Now()
	if l.trouble.IsZero() {
		l.trouble = l.heard
		l.Log.Info("The head does not answer", "error", err)
	}
	if snapshot, listening := l.Link.Snapshot(); listening {
		l.snapshot, l.ordered = snapshot, true
	}
	if now.Sub(l.trouble) >= mute && l.ordered {
		decision := l.decision
		decision.Head, decision.Error = l.snapshot.Head, troubles(headclient.KindOf(err))
		l.say(decision)
	}
}

// troubles are words for why a head gives no answer, the same for the same.
func troubles(kind headclient.Kind) string {
	const silent = "the head's GCS gives no answer"
	words := map[headclient.Kind]string{
		headclient.Unauthenticated: "the head refuses the cluster's token",
		headclient.Unavailable:     silent, // a process that hangs is taken for this or that
		headclient.Timeout:         silent,
		headclient.Refused:         "the head's GCS refuses to tell what waits",
		headclient.Unsupported:     "the head's Ray is too old to tell what waits",
	}[kind]
	if words == "" {
		return "what the head's GCS answers is not what Ray says"
	}
	return words
}

func (l *Loop) answered() {
	if !l.trouble.IsZero() {
		l.Log.Info("The head answers again", "after", l.Clock.Since(l.trouble).Round(time.Millisecond).String())
	}
	l.heard, l.trouble = l.Clock.Now(), time.Time{}
}

// decide makes a decision of what is seen, and does what follows from it: first nodes are
// told to go, so that the decision and Ray hear of it.
func (l *Loop) decide(ctx context.Context, s *sight) {
	renewed := l.memory.settling.renewed(s)
	l.memory.learn(s)
	in := l.memory.input(s)
	began := l.Clock.Now()
	result := decision.Decide(in)
	deciding := l.Clock.Since(began)
	limited, stop := context.WithTimeout(ctx, cut)
	defer stop()
	l.drain(limited, s, result)
	changed := l.say(l.memory.decision(s, in, result))
	l.Metrics.decided(deciding, changed)
	l.Metrics.show(l.memory.tally(s, in))
	if renewed {
		l.told = told{}
	}
	l.tell(limited, s, l.memory.report(s, in, result))
}

// drain tells idle workers to go, a replica after the other. A host that would not go keeps
// those of its replica that were not told yet.
func (l *Loop) drain(ctx context.Context, s *sight, result decision.Result) {
	for _, hosts := range l.memory.victims(s, result) {
		if _, listening := l.Link.Snapshot(); !listening {
			return
		}
		for _, v := range hosts {
			l.Log.Info("Draining an idle node", "pod", v.pod, "node", v.node.String(), "idle", v.idle.Round(time.Millisecond).String())
			verdict, err := l.head.Drain(ctx, headclient.Drain{
				Node: v.node, Reason: headclient.IdleTermination, Message: "idle for " + v.idle.Round(time.Second).String(),
			})
			if err != nil {
				l.memory.leaving.took(v, s.Now) // it may have been heard
				l.Log.Info("No answer to the drain request of a node", "pod", v.pod, "error", err)
				return
			}
			if !verdict.Accepted {
				l.memory.leaving.balked(v, s.Now)
				l.Log.Info("The node stays", "pod", v.pod, "reason", verdict.Why)
				break
			}
			l.memory.leaving.took(v, s.Now)
		}
	}
}

// say tells the operator the decision.
func (l *Loop) say(decision protocol.Decision) (changed bool) {
	never := slices.Equal(decision.Infeasible, l.decision.Infeasible)
	if !never && len(decision.Infeasible) > 0 && len(l.decision.Infeasible) > 0 {
		never = l.Clock.Since(l.neverSaid) < neverPause
	}
	if decision.Head == l.decision.Head && decision.Error == l.decision.Error && slices.Equal(decision.Targets, l.decision.Targets) &&
		slices.Equal(decision.Removals, l.decision.Removals) && never {
		return false
	}
	l.neverSaid = l.Clock.Now()
	l.note(decision)
	l.decision = decision // what cannot be said is not tried again until it is another
	if err := l.Link.Say(decision); err != nil {
		l.Log.Error("Sending a decision failed", "error", err)
	}
	return true
}

// note logs what is new in a decision.
func (l *Loop) note(decision protocol.Decision) {
	former := map[string]protocol.Target{}
	for _, target := range l.decision.Targets {
		former[target.Group] = target
	}
	for _, target := range decision.Targets {
		if was, known := former[target.Group]; !known || was != target {
			l.Log.Info("Target sizes", "group", target.Group, "replicas", target.Replicas, "before", was.Replicas, "reason", target.Reason)
		}
	}
	for _, never := range decision.Infeasible {
		if !slices.ContainsFunc(l.decision.Infeasible, func(n protocol.Infeasible) bool { return n.Shape == never.Shape && n.Reason == never.Reason }) {
			l.Log.Info("Infeasible demand", "shape", never.Shape, "count", never.Count, "reason", never.Reason)
		}
	}
	if decision.Error != l.decision.Error && decision.Error != "" {
		l.Log.Info("Decision failed", "reason", decision.Error)
	}
}

// tell tells Ray what it does not know yet. What fails is said again in the next round.
func (l *Loop) tell(ctx context.Context, s *sight, r report) {
	if could := shapes(s.Snapshot); !l.told.shaped || !slices.EqualFunc(could, l.told.shapes, equalShapes) {
		if l.try("kinds of nodes", l.head.Configure(ctx, could)) {
			l.told.shapes, l.told.shaped = could, true
		}
	}
	if !l.told.announced && l.Address != "" {
		l.told.announced = l.try("the address of metrics", l.head.Announce(ctx, l.Address))
	}
	if l.told.at.IsZero() || !r.same(l.told.report) || s.Now.Sub(l.told.at) >= often {
		if l.try("what is done", l.head.Report(ctx, r.Report)) {
			l.told.report, l.told.at = r, s.Now
		}
	}
}

// try reports whether Ray was told something, and logs it once where it could not be. What
// this Ray does not know how to be told it need not be told again.
func (l *Loop) try(what string, err error) bool {
	if err == nil {
		delete(l.told.failing, what)
		return true
	}
	if !l.told.failing[what] {
		l.Log.Info("Ray could not be told of "+what, "error", err)
	}
	if l.told.failing == nil {
		l.told.failing = map[string]bool{}
	}
	l.told.failing[what] = true
	return headclient.KindOf(err) == headclient.Unsupported
}

func equalShapes(a, b headclient.Shape) bool {
	return a.Name == b.Name && a.Min == b.Min && a.Max == b.Max && maps.Equal(a.Resources, b.Resources)
}
