// Package logs reads the outputs of jobs' drivers and replicas for any number of readers, byte for byte and by offset.
//
// In: a ClusterJob's attempt, one of Ray's own jobs or a replica of Serve, and where to begin. Out: events to a sink: parts of the output with
// their offsets, notices, and at last an end with the outcome. However many read an output, one request at a time goes to
// its head: what comes is kept in a file that all share, as long as somebody reads it.
//
// It must never end without saying why, let one reader slow another, hold more of an output in memory than a part, or
// keep more on disk than it was given. The cluster's own token never gets out: as many asterisks take its place.
package logs

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/portal/limits"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Jobs is where ClusterJobs are found: a cache.
type Jobs interface {
	FindJob(namespace, name string) (*v1beta1.ClusterJob, bool)
}

// Settings are what Logs are made of.
type Settings struct {
	Heads *heads.Heads
	Jobs  Jobs
	Clock clock.Clock
	// Directory is where outputs are kept while they are read. The file there has no name, so nothing is left behind.
	Directory string
	// Bytes is how much of that may be used; DefaultBytes where it is zero. Half of it is kept for outputs to begin
	// with, 2 MiB for each.
	Bytes int64
}

// DefaultBytes is how much is kept of all outputs together, where nobody says.
const DefaultBytes = 1 << 30

// Errors of a read that has not begun.
var (
	// ErrNotFound is that there is no such job, or no such attempt of it.
	ErrNotFound = errors.New("there is no such job or attempt")
	// ErrInvalid is that the options contradict each other.
	ErrInvalid = errors.New("an offset and a number of lines are 0 or more, and not both are given")
)

// Options say what is read of an output.
type Options struct {
	// Offset is the byte to begin at. Tail is how many lines of the end to begin with instead.
	Offset int64
	Tail   int
	// Follow goes on until the job is over. Without it the output ends where it is now.
	Follow bool
	// Reader is who reads it. One user has few outputs open at once, and so have all users together on one cluster.
	Reader limits.Holder
}

// errEnds is that the server ends.
var errEnds = errors.New("the server ends")

func (o Options) check() error {
	if o.Offset < 0 || o.Tail < 0 || o.Offset > 0 && o.Tail > 0 {
		return ErrInvalid
	}
	return nil
}

// Logs are all outputs that are read. They may be used by many goroutines.
type Logs struct {
	settings Settings
	spool    *spool
	life     context.Context //nolint:containedctx // the life of the goroutines that readers share
	end      context.CancelFunc
	upstream sync.WaitGroup

	mu      sync.Mutex
	outputs map[key][]*output
	failed  map[key]failure
	// searches are those for logs of processes, and searching has their places.
	searches  map[searched]*search
	searching *limits.Limiter
}

// key says whose output it is, and from which head.
type key struct {
	head heads.Head
	source
}

// source is an output of a head: that of a submission, or the log of a replica of Serve.
type source struct {
	id  string
	log headclient.Log
}

// failure is why an output could not be had, and until when that is taken for true: readers that come together do not
// each ask a head that does not answer.
type failure struct {
	err   error
	until time.Time
}

// Bounds of outputs that are read at once: by one user, and by the service accounts of one namespace or of one cluster.
const (
	maxOutputsEach = 64
	maxOutputsOf   = 128
)

const (
	failureHolds = time.Second
	// mostFailures is how many are remembered before those that are over are looked for.
	mostFailures = 1000
)

// New returns the outputs of the jobs in the settings. The caller closes it.
func New(settings Settings) *Logs {
	if settings.Bytes == 0 {
		settings.Bytes = DefaultBytes
	}
	l := &Logs{
		settings: settings, spool: newSpool(settings.Directory, settings.Bytes/blockSize),
		outputs: map[key][]*output{}, failed: map[key]failure{},
		searches: map[searched]*search{}, searching: limits.New(searchBounds),
	}
	l.life, l.end = context.WithCancel(context.Background())
	return l
}

// Close ends all readers, and waits until nothing is asked of a head any more.
func (l *Logs) Close() error {
	l.end()
	l.upstream.Wait()
	return l.spool.close()
}

// attach lets a reader read an output from a head, together with all that read it there already.
func (l *Logs) attach(k key, r *reader) (*output, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life.Err() != nil {
		return nil, errEnds
	}
	if known, is := l.failed[k]; is && l.settings.Clock.Now().Before(known.until) {
		return nil, known.err
	}
	for _, o := range l.outputs[k] {
		if o.join(r) {
			return o, nil
		}
	}
	if err := l.admit(r.who, k.head.Cluster.UID); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(l.life)
	o := &output{
		logs: l, key: k, stop: stop, readers: map[*reader]bool{},
		changed: make(chan struct{}), wake: make(chan struct{}, 1), moved: make(chan struct{}, 1),
	}
	o.join(r)
	l.outputs[k] = append(l.outputs[k], o)
	l.upstream.Go(func() { readHead(ctx, o) })
	return o, nil
}

// admit promises room to a new output of a cluster, for one who reads it. The caller holds the lock.
func (l *Logs) admit(who limits.Holder, cluster types.UID) error {
	ofUser, ofNamespace, ofCluster := 0, 0, 0
	for k, outputs := range l.outputs {
		for _, o := range outputs {
			isUsers, isNamespaces := o.isReadBy(who)
			ofUser += count(isUsers)
			ofNamespace += count(isNamespaces)
			ofCluster += count(k.head.Cluster.UID == cluster)
		}
	}
	switch {
	case ofUser >= maxOutputsEach:
		return busy(limits.ErrCallerFull)
	case ofNamespace >= maxOutputsOf:
		return busy(limits.ErrNamespaceFull)
	case ofCluster >= maxOutputsOf:
		return busy(limits.ErrTargetFull)
	case !l.spool.admit(int64(1 + max(ofUser, ofNamespace))):
		return l.crowded()
	}
	return nil
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

func (l *Logs) crowded() error {
	found := reason.OutputsCrowded.Of(l.spool.most / 2 / promised)
	message, remedy := reason.Split(found.Code, found.Text)
	return &heads.Unavailable{Code: found.Code, Message: message, Remedy: remedy, Temporary: true, RetryAfter: 5 * time.Second}
}

// busy is that a reader reads no further output while others are read.
func busy(why error) error {
	return &heads.Unavailable{Code: reason.OutputsCrowded.Code, Message: "no further output can be read now: " + why.Error(),
		Remedy: reason.OutputsCrowded.Remedy, Temporary: true, RetryAfter: 5 * time.Second}
}

// detach takes a reader from an output. With the last one the output is forgotten.
func (l *Logs) detach(o *output, r *reader) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o.leave(r) {
		o.stop()
		l.remove(o)
	}
}

// remove drops an output from those that can be joined. The caller holds the lock.
func (l *Logs) remove(o *output) {
	var left []*output
	for _, other := range l.outputs[o.key] {
		if other != o {
			left = append(left, other)
		}
	}
	if l.outputs[o.key] = left; len(left) == 0 {
		delete(l.outputs, o.key)
	}
}

// settle keeps how an output came to its end, or why no more of it can be had from this head.
func (l *Logs) settle(ctx context.Context, o *output, v verdict) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v.err != nil {
		l.remove(o)
		if ctx.Err() == nil {
			l.remember(o.key, v.err)
		}
	}
	o.finish(v)
}

func (l *Logs) remember(k key, err error) {
	now := l.settings.Clock.Now()
	if len(l.failed) >= mostFailures {
		for other, known := range l.failed {
			if !now.Before(known.until) {
				delete(l.failed, other)
			}
		}
	}
	l.failed[k] = failure{err, now.Add(failureHolds)}
}

// reclaim takes from all outputs what nobody needs: it is kept for readers that come later.
func (l *Logs) reclaim() {
	l.mu.Lock()
	var all []*output
	for _, outputs := range l.outputs {
		all = append(all, outputs...)
	}
	l.mu.Unlock()
	for _, o := range all {
		o.trim()
	}
}

// wait waits for a while, or until a context ends.
func (l *Logs) wait(ctx context.Context, pause time.Duration) error {
	timer := l.settings.Clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C():
		return nil
	}
}
