package archiver

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/heliostat-dev/heliostat/history/archive"
	"github.com/heliostat-dev/heliostat/history/keeper"
	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/retain"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

// kindCluster is the kind whose history is an archive. That of the others is a record.
const kindCluster = "ComputeCluster"

// keeping removes what is too old or too much, and what a user deletes.
type keeping struct {
	*keeper.Keeper
	records  Records
	isWriter func() bool
	now      func() int64
}

// newKeeping returns what removes archives of a store.
func newKeeping(needs Needs, records Records, now func() int64) (*keeping, error) {
	first, err := random()
	if err != nil {
		return nil, err
	}
	keep := needs.Config.Retention
	made, err := keeper.New(keeper.Settings{
		Limits: retain.Limits{
			Cluster: keep.ClusterBytes, Namespace: keep.NamespaceBytes, Objects: keep.NamespaceObjects,
			AfterNamespace: keep.AfterNamespace.Milliseconds(),
		},
		MaxKeepFor: keep.MaxKeepFor.Milliseconds(), First: first,
	}, needs.Store, records)
	return &keeping{made, records, needs.IsWriter, now}, err
}

// pass does what is due.
func (k *keeping) pass(ctx context.Context, now time.Time) error { return k.Pass(ctx, now.UnixMilli()) }

// Displaced returns how many bytes limits displaced, of the archives where they did.
func (k *keeping) Displaced() map[archive.Key]int64 {
	if counts, is := any(k.Keeper).(interface{ Displaced() map[archive.Key]int64 }); is {
		return counts.Displaced()
	}
	return nil
}

// DeleteHistory removes what is kept of an object, where this replica has the Lease.
func (k *keeping) DeleteHistory(ctx context.Context, request *pb.DeleteHistoryRequest) error {
	if !k.isWriter() {
		return status.Error(codes.FailedPrecondition, "this replica does not write: ask the other one")
	}
	if request.GetKind() != kindCluster {
		return k.records.Delete(ctx, request)
	}
	var key archive.Key
	var errs [2]error
	key.Namespace, errs[0] = pack.ParseUID(request.GetNamespaceUid())
	key.Cluster, errs[1] = pack.ParseUID(request.GetUid())
	if err := errors.Join(errs[:]...); err != nil {
		return status.Error(codes.InvalidArgument, "namespace_uid and uid must be UIDs")
	}
	err := k.Keeper.DeleteHistory(ctx, key, request.GetUser(), k.now())
	if errors.Is(err, keeper.ErrLives) {
		return status.Error(codes.Aborted, "the cluster has not ended, or there is no record of it: delete the cluster first")
	}
	return err
}
