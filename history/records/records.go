// Package records keeps what is left of objects of Kubernetes: of clusters, jobs and services their last state, their events, and how
// their pods ended.
//
// In: watches of the API server, which replica has the Lease, a store, the time. Out: a table on the volume, which answers lists;
// journals in the store, from which a replica with an empty volume makes its table again; what callers are, for history/identity.
//
// It must never write to Kubernetes, delay a deletion there, or keep in memory what grows with the number of records. Only the replica
// with the Lease writes to the store. What a volume lost comes back from the store, and what the store lost is gone.
package records

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/keeper"
	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/retain"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// How often what is due is done.
const (
	saveEach  = time.Second      // changes reach the table
	writeEach = 10 * time.Second // and the store
	tendEach  = time.Minute      // what another replica wrote is read, and what is due goes
)

// Store has the journals.
type Store interface {
	Write(ctx context.Context, key string, data []byte) error
	Read(ctx context.Context, key string, offset, length int64) ([]byte, error)
	Delete(ctx context.Context, key string) error
	// List calls each with the keys that begin with a prefix, in their order, their sizes and when they were written.
	List(ctx context.Context, prefix string, each func(key string, size, at int64) error) error
}

// Settings are what records are made with.
type Settings struct {
	// Directory is on the volume of this replica.
	Directory string
	Store     Store
	// Replica is the number of this one, and First a random number, from which its journals are counted.
	Replica int
	First   uint64
	// KeepFor is how long what is left of an object is kept where its spec does not say, and MaxKeepFor the longest time that it may say.
	KeepFor, MaxKeepFor time.Duration
	// AfterNamespace is how long records outlive their namespace. 0 is no limit.
	AfterNamespace time.Duration
	// Objects is how many records a namespace has. 0 is no limit.
	Objects int
	// Namespaces are those that are watched. None is all.
	Namespaces []string
	Kubernetes *rest.Config
	// IsWriter reports whether this replica has the Lease.
	IsWriter func() bool
	Now      func() time.Time
	Log      *slog.Logger
}

// Records are those of one replica.
type Records struct {
	settings Settings
	table    *table
	journal  *journal
	pending  *pending
	watch    *watch
	isSynced atomic.Bool
	// writing is held while rows go to the store.
	writing   sync.Mutex
	wasWriter bool
	// owesEnds is that the records of objects that went while nobody watched still have to be ended.
	owesEnds bool
}

// Open returns the records that a former run left on the volume. Close ends their use.
func Open(settings Settings) (*Records, error) {
	opened, err := openTable(filepath.Join(settings.Directory, "records.db"))
	if err != nil {
		return nil, err
	}
	r := &Records{settings: settings, table: opened, pending: newPending()}
	if r.journal, err = newJournal(settings.Store, settings.Replica, settings.First); err != nil {
		return nil, errors.Join(err, opened.close())
	}
	if settings.Kubernetes != nil {
		if r.watch, err = newWatch(settings, r.pending); err != nil {
			return nil, errors.Join(err, opened.close())
		}
	}
	return r, nil
}

// Close ends the use of the volume.
func (r *Records) Close() error { return r.table.close() }

// IsSynced reports whether all objects are known.
func (r *Records) IsSynced() bool { return r.isSynced.Load() }

// Run watches until the context ends, and writes to the store while this replica has the Lease.
func (r *Records) Run(ctx context.Context) error {
	watching := make(chan error, 1)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { watching <- r.watch.run(ctx) }()
	if err := r.begin(ctx); err != nil {
		if ctx.Err() != nil {
			return errors.Join(<-watching, r.Close())
		}
		stop()
		return errors.Join(err, <-watching, r.Close())
	}
	r.isSynced.Store(true)
	save, write, tend := time.NewTicker(saveEach), time.NewTicker(writeEach), time.NewTicker(tendEach)
	defer save.Stop()
	defer write.Stop()
	defer tend.Stop()
	for {
		var err error
		select {
		case err = <-watching:
			return errors.Join(err, r.save(), r.Close())
		case <-save.C:
			err = r.save()
		case <-write.C:
			err = r.write(ctx)
		case <-tend.C:
			if err = r.read(ctx); err == nil { // what was not read must not be replaced
				err = errors.Join(r.endOwed(ctx), r.tend(ctx))
			}
		}
		if err != nil && ctx.Err() == nil {
			r.settings.Log.Error("Keeping records failed", "error", err)
		}
	}
}

// begin waits for all objects, reads what the store has, and ends the records of objects that went while nobody watched.
func (r *Records) begin(ctx context.Context) error {
	if err := r.watch.wait(ctx); err != nil {
		return err
	}
	if err := r.save(); err != nil {
		return err
	}
	r.owesEnds = true
	if err := r.read(ctx); err != nil {
		// Without the store, objects that went keep their last state until it is back.
		r.settings.Log.Error("Reading records from the store failed", "error", err)
		return nil
	}
	return r.endOwed(ctx)
}

// endOwed ends the records of objects that went while nobody watched, once after the start.
func (r *Records) endOwed(ctx context.Context) error {
	if !r.owesEnds {
		return nil
	}
	living, err := r.watch.living(ctx)
	if err != nil {
		return err
	}
	if err := r.endUnknown(living); err != nil {
		return err
	}
	r.owesEnds = false
	return nil
}

// save puts what was seen into the table.
func (r *Records) save() error {
	changes := r.pending.take()
	if err := r.table.apply(changes); err != nil {
		r.pending.giveBack(changes)
		return err
	}
	return nil
}

// write puts into the store what it does not have, while this replica has the Lease.
func (r *Records) write(ctx context.Context) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	isWriter := r.settings.IsWriter()
	if isWriter && !r.wasWriter { // what the former writer did not come to
		if err := r.table.markUnwritten(); err != nil {
			return err
		}
	}
	r.wasWriter = isWriter
	if !isWriter {
		return nil
	}
	if err := r.save(); err != nil {
		return err
	}
	return r.table.eachUnwritten(func(namespace string, lines []line) error {
		return r.journal.write(ctx, r.table, namespace, lines, r.now())
	})
}

// read takes what the store has and the table does not.
func (r *Records) read(ctx context.Context) error {
	return r.journal.read(ctx, r.table, r.now())
}

// tend removes what is due, and replaces old journals by one of each namespace.
func (r *Records) tend(ctx context.Context) error {
	if !r.settings.IsWriter() {
		return r.table.forget(r.now())
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	now := r.now()
	limits := retain.Limits{Objects: r.settings.Objects, AfterNamespace: r.settings.AfterNamespace.Milliseconds()}
	if err := r.table.expire(limits, r.settings.KeepFor.Milliseconds(), r.settings.MaxKeepFor.Milliseconds(), now); err != nil {
		return err
	}
	return errors.Join(r.table.forget(now), r.journal.compact(ctx, r.table, now))
}

// endUnknown ends what the table has as living and Kubernetes has not.
func (r *Records) endUnknown(living living) error {
	return r.table.endAbsent(living, r.now(), r.settings.Namespaces)
}

func (r *Records) now() int64 { return r.settings.Now().UnixMilli() }

// Pod returns a pod of a cluster, and nil where there is none.
func (r *Records) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return r.watch.Pod(ctx, namespace, name)
}

// Cluster returns a cluster, and nil where there is none.
func (r *Records) Cluster(ctx context.Context, namespace, name string) (*v1beta1.ComputeCluster, error) {
	return r.watch.Cluster(ctx, namespace, name)
}

// Namespace returns a namespace, and nil where there is none.
func (r *Records) Namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	return r.watch.Namespace(ctx, name)
}

// List returns a page of rows.
func (r *Records) List(_ context.Context, request *pb.ListRecordsRequest) (*pb.ListRecordsResponse, error) {
	asked, err := parseQuery(request)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	page, next, err := r.table.list(asked)
	if err != nil {
		return nil, fmt.Errorf("list records: %w", err)
	}
	answer := &pb.ListRecordsResponse{Next: next}
	for i := range page {
		answer.Records = append(answer.Records, page[i].message())
	}
	return answer, nil
}

// Get returns all that is kept of an object.
func (r *Records) Get(_ context.Context, request *pb.GetRecordRequest) (*pb.GetRecordResponse, error) {
	found, pods, err := r.table.find(request)
	if err != nil {
		return nil, fmt.Errorf("get a record: %w", err)
	}
	if found == nil {
		return nil, status.Error(codes.NotFound, "there is no record of this object")
	}
	answer := &pb.GetRecordResponse{Record: found.message(), Object: found.Object}
	for _, one := range found.Events {
		answer.Events = append(answer.Events, one.message())
	}
	for _, one := range pods {
		answer.Pods = append(answer.Pods, one.message())
	}
	return answer, nil
}

// Endings returns how the pods of a cluster ended. One that is not among them lives.
func (r *Records) Endings(cluster pack.UID) map[pack.UID]index.Ending {
	endings, err := r.table.endings(cluster)
	if err != nil {
		r.settings.Log.Error("Reading the ends of pods failed", "error", err)
	}
	return endings
}

// Archives returns all clusters that have a record.
func (r *Records) Archives() []keeper.Archive {
	all, err := r.table.archives(r.settings.KeepFor.Milliseconds(), r.settings.MaxKeepFor.Milliseconds())
	if err != nil {
		r.settings.Log.Error("Reading the records of clusters failed", "error", err)
	}
	return all
}

// Mark notes that an archive is Expired or Deleted.
func (r *Records) Mark(cluster pack.UID, state index.State, at int64, by string) error {
	return r.table.change(cluster.String(), r.now(), func(one *row) error {
		one.State, one.Marked, one.MarkedBy = string(state), at, by
		return nil
	})
}

// Delete removes the record of a job or service that is gone.
func (r *Records) Delete(_ context.Context, request *pb.DeleteHistoryRequest) error {
	is := false
	err := r.table.change(request.GetUid(), r.now(), func(one *row) error {
		if one.NamespaceUID != request.GetNamespaceUid() || one.Kind != request.GetKind() {
			return nil
		}
		if one.Deleted == 0 {
			return status.Error(codes.Aborted, "the object is still there: delete it first")
		}
		is = true
		one.State, one.Marked, one.MarkedBy = string(index.Deleted), r.now(), request.GetUser()
		one.Object, one.Events, one.Message = nil, nil, ""
		return nil
	})
	if err == nil && !is {
		return status.Error(codes.NotFound, "there is no record of this object")
	}
	return err
}
