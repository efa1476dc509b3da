// Package reader answers what the server for portals and the operator ask an archiver: records, files, bytes, and which archives are
// behind.
//
// In: calls of history.v1.Read by callers whose role was judged before; the archives of one replica; the table of records. Out: pages
// and streams within bounds, whatever a call asks for.
//
// It must never hold a whole file in memory, take a page token for more than a place in a list, or read for one caller so much that
// others wait. It judges no user: its caller has.
package reader

import (
	"context"
	"log/slog"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/heliostat-dev/heliostat/history/archive"
	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/pack"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

// Records is the table of records of one replica. Its errors are statuses, or failures of the volume.
type Records interface {
	List(ctx context.Context, request *pb.ListRecordsRequest) (*pb.ListRecordsResponse, error)
	Get(ctx context.Context, request *pb.GetRecordRequest) (*pb.GetRecordResponse, error)
	// Endings returns how the pods of a cluster ended. One that is not among them lives.
	Endings(cluster pack.UID) map[pack.UID]index.Ending
}

// Keeper removes what is kept.
type Keeper interface {
	// DeleteHistory removes what is kept of an object. FailedPrecondition is that this replica does not write.
	DeleteHistory(ctx context.Context, request *pb.DeleteHistoryRequest) error
	// Displaced returns how many bytes limits displaced, of the archives where they did.
	Displaced() map[archive.Key]int64
}

// Config is what a server needs.
type Config struct {
	Archive *archive.Archive
	Records Records
	Keeper  Keeper
	States  *States
	// Caller names who calls, for bounds of each.
	Caller func(context.Context) string
	// Reads is how many calls read files at once. One caller has at most half of them.
	Reads int
	// Now returns the time in milliseconds of Unix time.
	Now func() int64
	Log *slog.Logger
}

// Server implements history.v1.Read.
type Server struct {
	pb.UnimplementedReadServer
	Config
	views                 *views
	files, table, watches *gate
}

// How many calls there are at once beside those that read files.
const (
	tableCalls = 32
	watchCalls = 16
)

// New returns a server.
func New(cfg Config) *Server {
	return &Server{
		Config: cfg, views: newViews(cfg),
		files: newGate(cfg.Reads), table: newGate(tableCalls), watches: newGate(watchCalls),
	}
}

// enter takes a turn at a gate for the caller of a call.
func (s *Server) enter(ctx context.Context, at *gate) (leave func(), err error) {
	return at.enter(ctx, s.Caller(ctx))
}

// ListRecords returns a page of records.
func (s *Server) ListRecords(ctx context.Context, request *pb.ListRecordsRequest) (*pb.ListRecordsResponse, error) {
	if err := checkListRecords(request); err != nil {
		return nil, err
	}
	leave, err := s.enter(ctx, s.table)
	if err != nil {
		return nil, err
	}
	defer leave()
	if request.Limit == 0 {
		request.Limit = defaultRecords
	}
	answer, err := s.Records.List(ctx, request)
	return answer, s.failed(err, "list records")
}

// GetRecord returns all that is kept of an object.
func (s *Server) GetRecord(ctx context.Context, request *pb.GetRecordRequest) (*pb.GetRecordResponse, error) {
	if err := checkGetRecord(request); err != nil {
		return nil, err
	}
	leave, err := s.enter(ctx, s.table)
	if err != nil {
		return nil, err
	}
	defer leave()
	answer, err := s.Records.Get(ctx, request)
	return answer, s.failed(err, "read a record")
}

// DeleteHistory removes what is kept of an object.
func (s *Server) DeleteHistory(ctx context.Context, request *pb.DeleteHistoryRequest) (*pb.DeleteHistoryResponse, error) {
	if err := checkDelete(request); err != nil {
		return nil, err
	}
	leave, err := s.enter(ctx, s.table)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := s.Keeper.DeleteHistory(ctx, request); err != nil {
		return nil, s.failed(err, "delete a history")
	}
	if cluster, err := pack.ParseUID(request.GetUid()); err == nil {
		s.views.drop(cluster)
	}
	return &pb.DeleteHistoryResponse{}, nil
}

// WatchStates sends the states of archives until the caller goes.
func (s *Server) WatchStates(_ *pb.WatchStatesRequest, stream pb.Read_WatchStatesServer) error {
	leave, err := s.enter(stream.Context(), s.watches)
	if err != nil {
		return err
	}
	defer leave()
	return s.States.watch(stream.Context(), s.Records, s.Keeper, stream.Send)
}

// failed returns the status of a failure. What is none is logged, and not shown to the caller.
func (s *Server) failed(err error, what string) error {
	if err == nil {
		return nil
	}
	if _, is := status.FromError(err); is {
		return err
	}
	if isCancelled(err) {
		return status.FromContextError(err).Err()
	}
	s.Log.Warn("Cannot answer a call", "call", what, "err", err)
	return status.Error(codes.Unavailable, "the archiver cannot "+what+" now")
}
