package controlstore

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

const (
	// again is how often a store is asked that does not admit a head: somebody waits.
	again = time.Second
	// seldom is the longest pause where asking changes nothing: a person has to act.
	seldom = 30 * time.Second
	// thorough is how often a store that serves is asked for everything, as before its first head. In between it is
	// asked whether that still holds, which costs two commands and no connection.
	thorough = time.Minute
	// reading is how long it may take to read how a store is reached.
	reading = 10 * time.Second
)

// endpoint is a store and a claim, as poll has them.
type endpoint = poll.Endpoint[types.NamespacedName, key, Target, Verdict]

// asker asks the store of one cluster about one claim. It is its goroutine's own.
type asker struct {
	*endpoint
	watch *Watch
	// server is how the store is reached, nil while that must be read: a password may have
	// changed wherever something failed.
	server *Server
	// visitor asks that server, asked is when it was asked for everything, and last what it said then.
	visitor Visitor
	asked   time.Time
	last    Verdict
	// unread is why it could not be read, so that it is logged once.
	unread string
	// said is what came of the last question, empty if nothing. vain counts those in a row to which only a person can give
	// another answer, for the spec of this generation.
	said       string
	vain       int
	generation int64
}

// lasting are findings that stay until a person acts. To ask each second then would keep a server, the API server and
// the operator busy for nothing.
var lasting = map[string]bool{
	reason.StoreWrongPassword.Code: true, reason.StoreNotPermitted.Code: true, reason.StoreInUse.Code: true, reason.StoreUnsupported.Code: true,
	reason.StoreNotAllowed.Code: true, reason.StoreNotTrusted.Code: true, reason.StoreSecretMissing.Code: true, reason.CAMissing.Code: true,
}

// run asks until its context ends.
func (a *asker) run(ctx context.Context, news <-chan struct{}) {
	defer a.leave()
	for {
		target := a.Latest()
		a.said = ""
		admitted := a.ask(ctx, target)
		a.count(target)
		if ctx.Err() != nil || !a.wait(ctx, admitted, news) {
			return
		}
	}
}

// count counts what was asked in vain.
func (a *asker) count(target Target) {
	if !lasting[a.said] || a.generation != target.Generation {
		a.vain = 0
	}
	if lasting[a.said] {
		a.vain++
	}
	a.generation = target.Generation
}

// tell publishes a verdict.
func (a *asker) tell(verdict Verdict) {
	a.said = verdict.Finding.Code
	a.Publish(func(types.NamespacedName, Target, Verdict) Verdict { return verdict })
}

// pause returns how long to wait after a question. Where nothing was asked in vain yet somebody may wait.
func (a *asker) pause(admitted bool, shift float64) time.Duration {
	target := a.Latest()
	switch {
	case admitted:
		return max(again, time.Duration(shift*float64(target.Every)))
	case a.vain > 1 && a.generation == target.Generation:
		return poll.Double(again, a.vain, seldom)
	default:
		return again
	}
}

// ask asks once and reports whether the claim was admitted.
func (a *asker) ask(ctx context.Context, target Target) bool {
	if a.server == nil && !a.read(ctx, target) {
		return false
	}
	giveBack, err := a.watch.turns.Take(ctx, a.Key.cluster.Namespace, a.server.Address)
	if err != nil {
		return false // the context has ended
	}
	verdict := a.question(ctx, target.Claim)
	giveBack()
	if ctx.Err() != nil {
		return false
	}
	if !verdict.Admitted {
		a.leave()
	}
	a.tell(verdict)
	return verdict.Admitted
}

// question asks whether the last answer still holds where that is a recent one, and for everything otherwise.
func (a *asker) question(ctx context.Context, claim Claim) Verdict {
	now := a.watch.clock.Now()
	if a.visitor != nil && now.Sub(a.asked) < thorough && a.visitor.Confirm(ctx) {
		return a.last
	}
	if a.visitor == nil {
		a.visitor = a.watch.visit(*a.server, claim)
	}
	a.asked, a.last = now, a.visitor.Ask(ctx)
	return a.last
}

// leave forgets how the store is reached, and ends the visit.
func (a *asker) leave() {
	a.server = nil
	if a.visitor != nil {
		a.visitor.Close()
		a.visitor = nil
	}
}

// read finds out how the store is reached. What carries no finding is not about the store,
// so it changes nothing of what is known of it.
func (a *asker) read(ctx context.Context, target Target) bool {
	brief, cancel := context.WithTimeout(ctx, reading)
	defer cancel()
	server, err := target.Server(brief)
	if err == nil {
		a.server, a.unread = &server, ""
		return true
	}
	if ctx.Err() != nil {
		return false
	}
	if finding, found := fault.Finding(err); found {
		a.tell(Verdict{Finding: finding})
		return false
	}
	if a.unread != err.Error() {
		a.unread = err.Error()
		log.FromContext(ctx).Error(err, "Reading the connection settings of a control store", "cluster", a.Key.cluster)
	}
	return false
}

// wait waits until the store must be asked again: a tenth sooner or later where nobody
// waits, so that stores that were asked together are not for ever. It is false when the
// context has ended.
func (a *asker) wait(ctx context.Context, admitted bool, news <-chan struct{}) bool {
	asked, shift := a.watch.clock.Now(), 0.9+rand.Float64()/5
	for {
		said, err := a.Pause(ctx, max(0, a.pause(admitted, shift)-a.watch.clock.Since(asked)), news)
		if err != nil || !said {
			return err == nil
		}
	}
}
