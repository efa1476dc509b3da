package archiver

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/heliostat-dev/heliostat/history/archive"
	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/pack"
)

// The times of loops.
const (
	packEach  = time.Second
	packRetry = 5 * time.Second  // after a failure
	packTime  = 5 * time.Minute  // of all packs that are due
	passEach  = time.Minute      // of retention
	checkEach = 10 * time.Second // of the store, until it was right once
	logEach   = time.Minute      // of one failure
	trimEach  = time.Minute      // of what is known of pods
	endedFor  = 10 * time.Minute // after its end a pod's collector has ended, too
)

// run serves until the context ends or a part fails, and then comes to an end within the grace.
func (a *archiver) run(ctx context.Context) error {
	a.Log.Info("Keeping histories", "address", a.listener.Addr().String(), "replica", a.replica)
	group, working := errgroup.WithContext(ctx)
	group.Go(func() error { return a.records.Run(working) })
	group.Go(func() error { return a.lead(working, a.write) })
	for _, serve := range a.servers.all() {
		group.Go(serve)
	}
	group.Go(func() error { a.checkStore(working); return nil })
	group.Go(func() error { a.packs(working); return nil })
	<-working.Done()
	a.isEnding.Store(true)
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.Grace)
	defer cancel()
	a.servers.end(late)
	err := group.Wait()
	if a.Grace > 0 {
		if err := a.archive.PackAll(late); err != nil {
			a.Log.Warn("Some of the spool is not packed before the end; it stays on the volume", "err", firstLine(err))
		}
	}
	err = errors.Join(err, a.store.Close())
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// repeat calls something again and again, after the time that it returned, until the context ends.
func repeat(ctx context.Context, what func() (again time.Duration)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if ctx.Err() != nil {
			return
		}
		timer.Reset(what())
	}
}

// packs writes packs.
func (a *archiver) packs(ctx context.Context) {
	logged, trimmed := time.Time{}, a.Now()
	repeat(ctx, func() time.Duration {
		if now := a.Now(); now.Sub(trimmed) >= trimEach {
			trimmed = now
			if err := a.archive.Trim(a.hasEnded(now)); err != nil {
				a.Log.Warn("Cannot forget pods that have ended", "err", firstLine(err))
			}
		}
		pass, cancel := context.WithTimeout(ctx, packTime)
		defer cancel()
		err := a.archive.Pack(pass)
		if err == nil || ctx.Err() != nil {
			return packEach
		}
		if now := a.Now(); now.Sub(logged) >= logEach {
			a.Log.Warn("Cannot write packs; the spool keeps what they have", "err", firstLine(err))
			logged = now
		}
		return packRetry
	})
}

// hasEnded returns what reports whether a pod has ended at a time, and its collector with it.
func (a *archiver) hasEnded(now time.Time) func(archive.Key, pack.UID) bool {
	known := map[pack.UID]map[pack.UID]index.Ending{}
	return func(key archive.Key, pod pack.UID) bool {
		if known[key.Cluster] == nil {
			known[key.Cluster] = a.records.Endings(key.Cluster)
		}
		at := known[key.Cluster][pod].At
		return at > 0 && now.UnixMilli()-at >= endedFor.Milliseconds()
	}
}

// write does what the replica with the Lease does, until the context ends.
func (a *archiver) write(ctx context.Context) {
	a.isWriter.Store(true)
	defer a.isWriter.Store(false)
	a.Log.Info("Writing records and retention", "lease", a.Namespace+"/"+a.LeaseName)
	repeat(ctx, func() time.Duration {
		began := a.Now()
		err := a.keeping.pass(ctx, began)
		a.measures.passed(a.Now().Sub(began), err != nil && ctx.Err() == nil)
		if err != nil && ctx.Err() == nil {
			a.Log.Warn("Cannot do all that retention is due", "err", firstLine(err))
		}
		return passEach
	})
}

// checkStore writes to the store and reads from it until that went well, so that a wrong bucket or wrong credentials are seen before
// the first pack.
func (a *archiver) checkStore(ctx context.Context) {
	checked := a.storeName()
	working, done := context.WithCancel(ctx)
	defer done()
	repeat(working, func() time.Duration {
		err := a.bucket.check(ctx, a.replica)
		if err == nil {
			err = a.mark.keep(checked)
			a.bucket.failure.Store("")
			done()
		}
		if err != nil && ctx.Err() == nil {
			a.bucket.failure.Store(firstLine(err))
			a.Log.Warn("Cannot use the store: check its URL, its bucket and the credentials of the archiver", "err", firstLine(err))
		}
		return checkEach
	})
}

// unready returns why this replica should get no callers, or nothing. A store that is away is no reason: chunks are taken all the same.
// One that was never right is, as its settings may be wrong.
func (a *archiver) unready() string {
	failure, _ := a.bucket.failure.Load().(string)
	switch {
	case a.isEnding.Load():
		return "the archiver ends"
	case !a.records.IsSynced():
		return "the objects of Kubernetes are not known yet"
	case a.mark.checked() == a.storeName():
		return ""
	case failure != "":
		return "the store cannot be used: " + failure
	default:
		return "the store was not checked yet"
	}
}

// firstLine returns the first line of an error, which may be about many clusters.
func firstLine(err error) string {
	line, rest, _ := strings.Cut(err.Error(), "\n")
	if rest != "" {
		line += " (and others)"
	}
	return line
}
