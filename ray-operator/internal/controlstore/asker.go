package controlstore

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
)

const (
	// again is how often a store is asked that does not admit a head: somebody waits.
	again = time.Second
	// reading is how long it may take to read how a store is reached.
	reading = 10 * time.Second
)

// asker asks the store of one cluster about one claim. Its first fields are guarded by the
// Watch's lock, the others are its goroutine's own.
type asker struct {
	watch    *Watch
	cluster  types.NamespacedName
	target   Target
	verdict  Verdict
	answered bool
	stop     context.CancelFunc
	// news holds something while the target has changed since it was last looked at.
	news chan struct{}

	// server is how the store is reached, nil while that is to be read: a password may have
	// changed wherever something failed.
	server *Server
	// unread is why it could not be read, so that it is logged once.
	unread string
}

// run asks until its context ends.
func (a *asker) run(ctx context.Context) {
	for {
		admitted := a.ask(ctx)
		if ctx.Err() != nil || !a.wait(ctx, admitted) {
			return
		}
	}
}

// ask asks once and tells whether the claim was admitted.
func (a *asker) ask(ctx context.Context) bool {
	target := a.wanted()
	if a.server == nil && !a.read(ctx, target) {
		return false
	}
	giveBack, err := a.watch.turns.Take(ctx, a.cluster.Namespace, a.server.Address)
	if err != nil {
		return false // the context has ended
	}
	verdict := a.watch.ask(ctx, *a.server, target.Claim)
	giveBack()
	if ctx.Err() != nil {
		return false
	}
	if !verdict.Admitted {
		a.server = nil
	}
	a.watch.publish(a, verdict)
	return verdict.Admitted
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
		a.watch.publish(a, Verdict{Finding: finding})
		return false
	}
	if a.unread != err.Error() {
		a.unread = err.Error()
		log.FromContext(ctx).Error(err, "reading how a control store is reached", "cluster", a.cluster)
	}
	return false
}

func (a *asker) wanted() Target {
	a.watch.mu.Lock()
	defer a.watch.mu.Unlock()
	return a.target
}

// wait waits until the store is to be asked again: a tenth sooner or later where nobody
// waits, so that stores that were asked together are not for ever. It is false when the
// context has ended.
func (a *asker) wait(ctx context.Context, admitted bool) bool {
	asked, shift := a.watch.clock.Now(), 0.9+rand.Float64()/5
	for {
		pause := again
		if admitted {
			pause = max(again, time.Duration(shift*float64(a.wanted().Every)))
		}
		timer := a.watch.clock.NewTimer(pause - a.watch.clock.Since(asked))
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-a.news:
			timer.Stop()
		case <-timer.C():
			return true
		}
	}
}
