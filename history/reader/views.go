package reader

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/heliostat-dev/heliostat/history/archive"
	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/pack"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

const (
	// freshFor is how long a view answers, in milliseconds: one costs a list of the store.
	freshFor = 1000
	// maxViews is how many are kept at once. One has a place for each run of its archive.
	maxViews = 8
	// within bounds how long a view takes, which no caller may cancel.
	within = 30 * time.Second
)

// views are those of archives that were read a moment ago.
type views struct {
	Config
	mutex sync.Mutex
	rows  map[archive.Key]*view
}

// view is what is known of an archive at a time. Once it is made nobody changes it.
type view struct {
	made chan struct{} // closed once the rest is there
	at   int64
	err  error

	*archive.View
	files   []pack.File
	endings map[pack.UID]index.Ending
	pods    map[pack.UID]string
	state   string
	isKnown bool // a record or a file is there
}

func newViews(cfg Config) *views { return &views{Config: cfg, rows: map[archive.Key]*view{}} }

// get returns a view of an archive that is at most a moment old. Callers that come together share one.
func (v *views) get(ctx context.Context, key archive.Key) (*view, error) {
	now := v.Now()
	v.mutex.Lock()
	one := v.rows[key]
	if one == nil || now-one.at >= freshFor || now < one.at {
		one = &view{made: make(chan struct{}), at: now}
		v.makeRoom(now)
		v.rows[key] = one
		// It is made for all who wait, so none of them can cancel it.
		go v.fill(context.WithoutCancel(ctx), one, key)
	}
	v.mutex.Unlock()
	select {
	case <-one.made:
		return one, one.err
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// makeRoom drops views that are old, and any of those that are not where there are too many.
func (v *views) makeRoom(now int64) {
	for key, one := range v.rows {
		if now-one.at >= freshFor || now < one.at {
			delete(v.rows, key)
		}
	}
	for key := range v.rows {
		if len(v.rows) < maxViews {
			return
		}
		delete(v.rows, key)
	}
}

// drop forgets views of a cluster.
func (v *views) drop(cluster pack.UID) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	for key := range v.rows {
		if key.Cluster == cluster {
			delete(v.rows, key)
		}
	}
}

// fill makes a view.
func (v *views) fill(ctx context.Context, one *view, key archive.Key) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if one.err = v.read(ctx, one, key); one.err != nil {
		v.mutex.Lock()
		if v.rows[key] == one { // a failure is not kept
			delete(v.rows, key)
		}
		v.mutex.Unlock()
	}
	close(one.made)
}

// read reads an archive and the records of its pods.
func (v *views) read(ctx context.Context, one *view, key archive.Key) error {
	// The endings come first: what a pod sent before its end is in a view that is made after it.
	one.endings = v.endings(key.Cluster)
	one.pods = map[pack.UID]string{}
	answer, err := v.Records.Get(ctx, &pb.GetRecordRequest{
		NamespaceUid: key.Namespace.String(), Kind: kinds[0], Uid: key.Cluster.String(),
	})
	if err != nil && status.Code(err) != codes.NotFound {
		return fmt.Errorf("read the record of cluster %s: %w", key.Cluster, err)
	}
	for _, pod := range answer.GetPods() {
		if id, err := pack.ParseUID(pod.GetUid()); err == nil {
			one.pods[id] = pod.GetName()
		}
	}
	if one.View, err = v.Archive.View(ctx, key); err != nil {
		return fmt.Errorf("read the archive of cluster %s: %w", key.Cluster, err)
	}
	if len(one.Damaged) > 0 {
		v.Log.Warn("Objects of an archive cannot be read: what they had is missing", "cluster", key.Cluster.String(), "objects", len(one.Damaged))
	}
	one.files = one.Files()
	one.isKnown = answer != nil || len(one.files) > 0
	switch state := answer.GetRecord().GetArchiveState(); index.State(state) {
	case index.Expired, index.Deleted:
		one.state = state
	default:
		one.state = string(one.State(one.endings, one.at))
	}
	return nil
}

// endings returns how pods ended. Those whose last packs can still come count as living.
func (v *views) endings(cluster pack.UID) map[pack.UID]index.Ending {
	now, all := v.Now(), map[pack.UID]index.Ending{}
	for pod, ending := range v.Records.Endings(cluster) {
		if ending.At > 0 && now < ending.At+index.ListWait {
			ending = index.Ending{}
		}
		all[pod] = ending
	}
	return all
}

// isEnded reports whether no more bytes of a file are expected.
func (v *view) isEnded(key pack.FileKey) bool { return v.endings[key.Pod].At > 0 || v.IsListed(key) }
