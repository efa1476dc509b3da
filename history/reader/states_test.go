package reader

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/heliostat-dev/heliostat/history/archive"
	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/wire"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

var source = wire.Source{Namespace: key.Namespace, Cluster: key.Cluster, Pod: pod}

// watched runs a watch, and returns what it sent since the last call, a second later.
func watched(t *testing.T, b *bed) func() []*pb.WatchStatesResponse {
	t.Helper()
	var sent []*pb.WatchStatesResponse
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- b.states.watch(ctx, b.table, b.keeper, func(m *pb.WatchStatesResponse) error { sent = append(sent, m); return nil })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; status.Code(err) != codes.Canceled {
			t.Errorf("the watch ended with %v", err)
		}
	})
	synctest.Wait()
	return func() []*pb.WatchStatesResponse {
		all := sent
		sent = nil
		<-time.After(b.states.every)
		synctest.Wait()
		return all
	}
}

func TestWatchStates_SendsAllAndThenWhatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBedWithoutServer(t)
		in, err := b.states.Open(t.Context(), source)
		b.must(err)
		isStoreAway := false
		b.states.isStoreAway = func() bool { return isStoreAway }
		next := watched(t, b)
		of := func(change func(*pb.WatchStatesResponse)) *pb.WatchStatesResponse {
			m := &pb.WatchStatesResponse{
				Namespace: "team", Cluster: "demo", ClusterUid: key.Cluster.String(), Streams: []string{pod.String()},
			}
			change(m)
			return m
		}
		expect := func(when string, want ...*pb.WatchStatesResponse) {
			t.Helper()
			if diff := cmp.Diff(want, next(), protocmp.Transform()); diff != "" {
				t.Errorf("%s: %s", when, diff)
			}
		}
		expect("first", of(func(*pb.WatchStatesResponse) {}), &pb.WatchStatesResponse{Complete: true})
		in.Behind(100, 50*time.Second)
		next()
		expect("behind for 50 s")
		b.now += 15_000
		next()
		expect("behind for 65 s", of(func(m *pb.WatchStatesResponse) { m.Behind, m.Cause = 60_000, "Rate" }))
		b.now += 3_000
		next()
		expect("behind for 68 s")
		in.Behind(0, 0)
		next()
		expect("all was sent", of(func(*pb.WatchStatesResponse) {}))
		// A spool without room: the collector cannot even report how far it is behind.
		fill(t, b, in)
		in.Room(wire.NarrowRoom)
		b.now += 60_000
		isStoreAway = true
		in.Room(wire.NarrowRoom)
		next()
		expect("starved", of(func(m *pb.WatchStatesResponse) { m.Behind, m.Cause = 60_000, "Store" }))
		if got := b.states.Totals(); got.Streams != 1 || got.Behind != 60_000 || got.Received < 16<<20-wire.WideRoom {
			t.Errorf("totals are %+v", got)
		}
		// A stream that breaks does not make the bytes younger.
		in.Close()
		in, err = b.states.Open(t.Context(), source)
		b.must(err)
		if got := b.states.Totals(); got.Behind != 60_000 {
			t.Errorf("a stream that began again is %d ms behind", got.Behind)
		}
		b.keeper.displaced = map[archive.Key]int64{key: 7}
		in.Close()
		next()
		expect("displaced, without a stream", of(func(m *pb.WatchStatesResponse) { m.Streams, m.Displaced = nil, 7 }))
		b.keeper.displaced = nil
		next()
		expect("nothing is left", of(func(m *pb.WatchStatesResponse) { m.Streams = nil }))
		if len(b.states.names) > 0 {
			t.Error("a name is kept of a cluster without a state")
		}
	})
}

// fill fills the quarter of the spool that a namespace has.
func fill(t *testing.T, b *bed, in wire.Intake) {
	t.Helper()
	data := make([]byte, pack.MaxRun)
	for offset := int64(0); ; offset += int64(len(data)) {
		record := b.chunk(fileOf(1, "a"), offset, data)
		record.Cluster = key.Cluster
		if err := in.Append([]pack.Record{record}); errors.Is(err, archive.ErrFull) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	small := pack.Record{Cluster: key.Cluster, Chunk: &pack.Chunk{File: fileOf(1, "a"), Data: make([]byte, 1000)}}
	for in.Append([]pack.Record{small}) == nil {
	}
}

func TestWatchStates_EndsWithTheArchiver(t *testing.T) {
	b := newBed(t)
	stream, err := b.client.WatchStates(t.Context(), &pb.WatchStatesRequest{})
	b.must(err)
	first, err := stream.Recv()
	b.must(err)
	if !first.GetComplete() {
		t.Errorf("without archives a watch begins with %v", first)
	}
	b.states.Close()
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("a watch ended with %v", err)
	}
}

func TestGate_GivesACallerHalfOfItsTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(4)
		one, err := g.enter(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err = g.enter(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := g.enter(t.Context(), "a"); status.Code(err) != codes.ResourceExhausted || time.Since(began) != maxWait {
			t.Errorf("a third call of a caller, after %s: %v", time.Since(began), err)
		}
		if _, err := g.enter(t.Context(), "b"); err != nil {
			t.Errorf("a first call of another one: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.enter(ctx, "a"); status.Code(err) != codes.Canceled {
			t.Errorf("a call whose caller went: %v", err)
		}
		waiting := make(chan error, 1)
		go func() { _, err := g.enter(t.Context(), "a"); waiting <- err }()
		synctest.Wait()
		one()
		if err := <-waiting; err != nil {
			t.Errorf("a call that waited for a turn: %v", err)
		}
		if g.callers["a"].calls != 2 || g.callers["b"].calls != 1 {
			t.Errorf("calls are counted as %d and %d", g.callers["a"].calls, g.callers["b"].calls)
		}
	})
}
