// Package clienttest has archivers in the process of a test, which answer calls of history.v1.Read from what the test puts into them.
//
// In: records, and bytes of files that one replica or each of them has. Out: a client, and what both replicas answer to it, also while
// one of them is away.
//
// It must never have more than a test put into it. It is for tests alone.
package clienttest

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/heliostat-dev/heliostat/history/client"
	"github.com/heliostat-dev/heliostat/history/replica"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

// Archivers are two replicas.
type Archivers struct {
	mutex    sync.Mutex
	records  []*pb.GetRecordResponse
	replicas map[string]*fake
	// leader is the address of the replica that writes.
	leader  string
	deleted []*pb.DeleteHistoryRequest
	states  map[string]string
}

// addresses are those of the replicas.
func addresses() []string { return []string{"archiver-0:1", "archiver-1:1"} }

// Start returns replicas that serve until the test ends, and a client of them.
func Start(t testing.TB) (*Archivers, *client.Client) {
	t.Helper()
	a := &Archivers{replicas: map[string]*fake{}, states: map[string]string{}, leader: addresses()[0]}
	for _, address := range addresses() {
		one := &fake{all: a, address: address, listener: bufconn.Listen(1 << 20), files: map[string][]*File{}}
		server := grpc.NewServer()
		pb.RegisterReadServer(server, one)
		go func() { _ = server.Serve(one.listener) }() // ends with Stop
		t.Cleanup(server.Stop)
		a.replicas[address] = one
	}
	made, err := client.New(addresses(), insecure.NewCredentials(), grpc.WithContextDialer(a.dial))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close() })
	return a, made
}

// errAway is that a replica is away.
var errAway = errors.New("the archiver is away")

func (a *Archivers) dial(ctx context.Context, address string) (net.Conn, error) {
	a.mutex.Lock()
	one := a.replicas[address]
	a.mutex.Unlock()
	return one.listener.DialContext(ctx)
}

// Order returns the replicas as a cluster prefers them.
func Order(cluster string) []string { return replica.Order(cluster, addresses()) }

// Put adds a record, or replaces that of the same object.
func (a *Archivers) Put(record *pb.GetRecordResponse) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.records = slices.DeleteFunc(a.records, func(one *pb.GetRecordResponse) bool { return one.GetRecord().GetUid() == record.GetRecord().GetUid() })
	a.records = append(a.records, record)
}

// File is a file of an archive, as one replica has it.
type File struct {
	Pod, PodUID, ID, Path string
	Ended                 bool
	Last                  int64
	Parts                 []Part
}

// Part is a part of a file: bytes, or a range that is missing for a reason.
type Part struct {
	Offset, Length int64
	Data, Reason   string
}

// end is where a part ends. One without a length has no end.
func (p Part) end() int64 {
	switch {
	case p.Reason == "":
		return p.Offset + int64(len(p.Data))
	case p.Length == 0:
		return 1 << 62
	default:
		return p.Offset + p.Length
	}
}

// Write puts a file into the archive of a cluster at replicas, by default at all of them. A file of the same pod and ID is replaced.
func (a *Archivers) Write(cluster string, file File, replicas ...string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if len(replicas) == 0 {
		replicas = addresses()
	}
	for _, address := range replicas {
		one := a.replicas[address]
		kept := slices.DeleteFunc(one.files[cluster], func(other *File) bool { return other.PodUID == file.PodUID && other.ID == file.ID })
		kept = append(kept, &file)
		slices.SortFunc(kept, func(x, y *File) int {
			return cmp.Or(strings.Compare(x.PodUID, y.PodUID), strings.Compare(x.Path, y.Path), strings.Compare(x.ID, y.ID))
		})
		one.files[cluster] = kept
	}
}

// SetState is the state of the archive of a cluster.
func (a *Archivers) SetState(cluster, state string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.states[cluster] = state
}

// SetAway has a replica answer nothing, or answer again.
func (a *Archivers) SetAway(address string, isAway bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.replicas[address].isAway = isAway
}

// SetLeader names the replica that writes.
func (a *Archivers) SetLeader(address string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.leader = address
}

// Deleted returns what was deleted.
func (a *Archivers) Deleted() []*pb.DeleteHistoryRequest {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return slices.Clone(a.deleted)
}

// fake is one replica.
type fake struct {
	pb.UnimplementedReadServer
	all      *Archivers
	address  string
	listener *bufconn.Listener
	files    map[string][]*File
	isAway   bool
	// breaksAt ends a reading at this offset, once, where it is not 0.
	breaksAt int64
}

// Break has a replica end the next reading of a file at an offset, as one does that goes away.
func (a *Archivers) Break(address string, at int64) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.replicas[address].breaksAt = at
}

// enter takes the lock for a call, and returns why there is no answer.
func (f *fake) enter() (leave func(), err error) {
	f.all.mutex.Lock()
	if f.isAway {
		f.all.mutex.Unlock()
		return nil, status.Error(codes.Unavailable, errAway.Error())
	}
	return f.all.mutex.Unlock, nil
}

// ListRecords implements pb.ReadServer.
func (f *fake) ListRecords(_ context.Context, r *pb.ListRecordsRequest) (*pb.ListRecordsResponse, error) {
	leave, err := f.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	found := []*pb.Record{}
	for _, one := range f.all.records {
		if matches(one.GetRecord(), r) {
			found = append(found, one.GetRecord())
		}
	}
	slices.SortFunc(found, func(x, y *pb.Record) int {
		return cmp.Or(-cmp.Compare(endOf(x), endOf(y)), strings.Compare(x.GetUid(), y.GetUid()))
	})
	begin, _ := strconv.Atoi(r.GetAfter())
	end := min(begin+cmp.Or(int(r.GetLimit()), 100), len(found))
	answer := &pb.ListRecordsResponse{Records: found[min(begin, end):end]}
	if end < len(found) {
		answer.Next = strconv.Itoa(end)
	}
	return answer, nil
}

// endOf is when an object ended; one that goes on is later than all others.
func endOf(one *pb.Record) int64 { return cmp.Or(one.GetEnded(), 1<<62) }

func matches(one *pb.Record, r *pb.ListRecordsRequest) bool {
	is := func(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
	isOf := func(wanted, value string) bool { return wanted == "" || wanted == value }
	isIn := r.GetAllNamespaces() || slices.Contains(r.GetNamespaceUids(), one.GetNamespaceUid())
	isThen := (r.GetSince() == 0 || endOf(one) >= r.GetSince()) && (r.GetUntil() == 0 || one.GetCreated() <= r.GetUntil())
	isNamed := isOf(r.GetName(), one.GetName()) && isOf(r.GetOwner(), one.GetOwner())
	return isIn && isThen && isNamed && is(r.GetKinds(), one.GetKind()) && is(r.GetPhases(), one.GetPhase()) && hasEnded(one, r)
}

func hasEnded(one *pb.Record, r *pb.ListRecordsRequest) bool {
	return (!r.GetFailed() || one.GetPhase() == "Failed") && (!r.GetEnded() || one.GetEnded() > 0)
}

// GetRecord implements pb.ReadServer.
func (f *fake) GetRecord(_ context.Context, r *pb.GetRecordRequest) (*pb.GetRecordResponse, error) {
	leave, err := f.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	var newest *pb.GetRecordResponse
	for _, one := range f.all.records {
		its := one.GetRecord()
		isIn := r.GetNamespaceUid() != "" && its.GetNamespaceUid() == r.GetNamespaceUid() || r.GetNamespace() != "" && its.GetNamespace() == r.GetNamespace()
		isIt := r.GetUid() == "" && its.GetName() == r.GetName() || r.GetUid() != "" && its.GetUid() == r.GetUid()
		if isIn && isIt && its.GetKind() == r.GetKind() && (newest == nil || its.GetCreated() > newest.GetRecord().GetCreated()) {
			newest = one
		}
	}
	if newest == nil {
		return nil, status.Error(codes.NotFound, "no such record")
	}
	return newest, nil
}

// DeleteHistory implements pb.ReadServer.
func (f *fake) DeleteHistory(_ context.Context, r *pb.DeleteHistoryRequest) (*pb.DeleteHistoryResponse, error) {
	leave, err := f.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	if f.all.leader != f.address {
		return nil, status.Error(codes.FailedPrecondition, "this replica does not write")
	}
	f.all.deleted = append(f.all.deleted, r)
	return &pb.DeleteHistoryResponse{}, nil
}
