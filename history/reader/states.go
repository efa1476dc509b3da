package reader

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/heliostat-dev/heliostat/history/archive"
	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/wire"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

// Why a collector is behind, as the operator takes it.
const (
	causeStore = "Store"
	causeSpool = "Spool"
	causeRate  = "Rate"
)

const (
	// behindFrom is from which age on a byte is worth a message, and behindStep the steps in which the age is told on, both in
	// milliseconds.
	behindFrom, behindStep = 60_000, 10_000
	// starvedBelow is how much room is too little for a message.
	starvedBelow = 1 << 10
	// waitFor is how long a pod has to open another stream, in milliseconds, and maxWaits of how many that is noted.
	waitFor, maxWaits = 120_000, 10_000
	// maxLookups is how many clusters are looked up for their names at once.
	maxLookups = 100
)

// States is which pods have a stream, and how far they are behind. It stands between the streams and the archive.
type States struct {
	archive *archive.Archive
	// isStoreAway reports whether the store failed last.
	isStoreAway func() bool
	now         func() int64
	every       time.Duration
	ended       chan struct{}

	mutex    sync.Mutex
	streams  map[archive.Key]map[pack.UID]*intake
	names    map[archive.Key]name
	waiting  map[pack.UID]wait
	received int64
}

// wait is since when a pod waits whose stream broke, and when it did.
type wait struct{ since, at int64 }

// name is that of a cluster.
type name struct{ namespace, cluster string }

// NewStates returns the states of streams to an archive.
func NewStates(of *archive.Archive, isStoreAway func() bool, now func() int64) *States {
	return &States{
		archive: of, isStoreAway: isStoreAway, now: now, every: time.Second, ended: make(chan struct{}),
		streams: map[archive.Key]map[pack.UID]*intake{}, names: map[archive.Key]name{},
		waiting: map[pack.UID]wait{},
	}
}

// Close ends all watches. It is called once.
func (s *States) Close() { close(s.ended) }

// Totals are over all streams.
type Totals struct {
	Streams int
	// Received is how many bytes of files were kept.
	Received int64
	// Behind is the age of the oldest byte that a collector could send, in milliseconds.
	Behind int64
}

// Totals returns sums for metrics.
func (s *States) Totals() Totals {
	now := s.now()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	all := Totals{Received: s.received}
	for _, pods := range s.streams {
		all.Streams += len(pods)
		for _, one := range pods {
			all.Behind = max(all.Behind, one.behind(now))
		}
	}
	return all
}

// intake is a stream of which note is taken.
type intake struct {
	wire.Intake
	states *States
	key    archive.Key
	source wire.Source
	// Guarded by the mutex of states: since when the oldest byte waits in the pod, since when the collector has no room even to send
	// that, and why it has too little.
	since, starved int64
	cause          string
}

// behind returns how long the oldest byte waits.
func (i *intake) behind(now int64) int64 {
	behind := int64(0)
	for _, since := range []int64{i.since, i.starved} {
		if since > 0 {
			behind = max(behind, now-since)
		}
	}
	return behind
}

// Open begins the stream of a pod.
func (s *States) Open(ctx context.Context, source wire.Source) (wire.Intake, error) {
	inner, err := s.archive.Open(ctx, source)
	if err != nil {
		return nil, err
	}
	in := &intake{Intake: inner, states: s, key: archive.Key{Namespace: source.Namespace, Cluster: source.Cluster}, source: source}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	// Where the spool is full its stream can break again and again.
	if former, is := s.waiting[source.Pod]; is && s.now()-former.at < waitFor {
		in.starved = former.since
	}
	delete(s.waiting, source.Pod)
	if s.streams[in.key] == nil {
		s.streams[in.key] = map[pack.UID]*intake{}
	}
	s.streams[in.key][source.Pod] = in
	return in, nil
}

// Close ends the stream.
func (i *intake) Close() {
	i.Intake.Close()
	s := i.states
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now := s.now()
	maps.DeleteFunc(s.waiting, func(_ pack.UID, one wait) bool { return now-one.at >= waitFor })
	if behind := i.behind(now); behind > 0 && len(s.waiting) < maxWaits {
		s.waiting[i.source.Pod] = wait{now - behind, now}
	}
	if pods := s.streams[i.key]; pods[i.source.Pod] == i {
		delete(pods, i.source.Pod)
		if len(pods) == 0 {
			delete(s.streams, i.key)
		}
	}
}

// Append counts what was kept.
func (i *intake) Append(records []pack.Record) error {
	if err := i.Intake.Append(records); err != nil {
		return err
	}
	sum := 0
	for _, record := range records {
		if record.Chunk != nil {
			sum += len(record.Chunk.Data)
		}
	}
	i.states.mutex.Lock()
	defer i.states.mutex.Unlock()
	i.states.received += int64(sum)
	return nil
}

// Room notes why the collector gets less than it could use.
func (i *intake) Room(want int) (int, time.Duration) {
	isFull := i.states.archive.Left(i.source.Namespace) < int64(want)
	granted, again := i.Intake.Room(want)
	now := i.states.now()
	i.states.mutex.Lock()
	defer i.states.mutex.Unlock()
	switch {
	case granted > 0 || want < wire.NarrowRoom-starvedBelow:
		i.starved = 0
	case i.starved == 0:
		i.starved = now
	}
	switch {
	case granted >= want:
	case !isFull:
		i.cause = causeRate
	case i.states.isStoreAway():
		i.cause = causeStore
	default:
		i.cause = causeSpool
	}
	return granted, again
}

// Behind takes how old the oldest byte is that the collector could send.
func (i *intake) Behind(bytes int64, age time.Duration) {
	i.Intake.Behind(bytes, age)
	now := i.states.now()
	i.states.mutex.Lock()
	defer i.states.mutex.Unlock()
	if bytes == 0 {
		i.since, i.cause = 0, ""
		return
	}
	i.since = max(now-age.Milliseconds(), 1)
}

// snapshot returns the states of all clusters that have one.
func (s *States) snapshot(displaced map[archive.Key]int64) map[archive.Key]*pb.WatchStatesResponse {
	now, all := s.now(), map[archive.Key]*pb.WatchStatesResponse{}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	row := func(key archive.Key) *pb.WatchStatesResponse {
		if all[key] == nil {
			known := s.names[key]
			all[key] = &pb.WatchStatesResponse{Namespace: known.namespace, Cluster: known.cluster, ClusterUid: key.Cluster.String()}
		}
		return all[key]
	}
	for key, pods := range s.streams {
		to, oldest := row(key), int64(0)
		for _, pod := range slices.SortedFunc(maps.Keys(pods), func(a, b pack.UID) int { return slices.Compare(a[:], b[:]) }) {
			to.Streams = append(to.Streams, pod.String())
			one := pods[pod]
			if behind := one.behind(now); behind > oldest {
				oldest = behind
				to.Cause = cmp.Or(one.cause, causeRate)
			}
		}
		if oldest < behindFrom {
			to.Cause = ""
			continue
		}
		to.Behind = oldest - oldest%behindStep
	}
	for key, bytes := range displaced {
		if bytes > 0 {
			row(key).Displaced = bytes
		}
	}
	return all
}

// watch sends all states, and then at most once a second those that changed. A caller that takes them slowly gets the last state of
// each, so nothing queues up.
func (s *States) watch(ctx context.Context, records Records, keeper Keeper, send func(*pb.WatchStatesResponse) error) error {
	sent := map[archive.Key]*pb.WatchStatesResponse{}
	ticker := time.NewTicker(s.every)
	defer ticker.Stop()
	for isFirst := true; ; isFirst = false {
		displaced := keeper.Displaced()
		s.lookup(ctx, records, displaced)
		if err := sendChanges(sent, s.snapshot(displaced), send); err != nil {
			return err
		}
		if isFirst {
			if err := send(&pb.WatchStatesResponse{Complete: true}); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-s.ended:
			return status.Error(codes.Unavailable, "the archiver ends")
		case <-ticker.C:
		}
	}
}

// sendChanges sends what differs from what was sent. A cluster without a state any more is sent once, without streams.
func sendChanges(sent, now map[archive.Key]*pb.WatchStatesResponse, send func(*pb.WatchStatesResponse) error) error {
	for key, state := range now {
		if proto.Equal(sent[key], state) {
			continue
		}
		if err := send(state); err != nil {
			return err
		}
		sent[key] = state
	}
	for key, state := range sent {
		if now[key] != nil {
			continue
		}
		gone := &pb.WatchStatesResponse{Namespace: state.GetNamespace(), Cluster: state.GetCluster(), ClusterUid: state.GetClusterUid()}
		if err := send(gone); err != nil {
			return err
		}
		delete(sent, key)
	}
	return nil
}

// lookup finds the names of clusters that have a state, and forgets those that have none any more.
func (s *States) lookup(ctx context.Context, records Records, displaced map[archive.Key]int64) {
	s.mutex.Lock()
	var unknown []archive.Key
	for key := range s.names {
		if s.streams[key] == nil && displaced[key] == 0 {
			delete(s.names, key)
		}
	}
	for _, keys := range []func(func(archive.Key) bool){maps.Keys(s.streams), maps.Keys(displaced)} {
		for key := range keys {
			if _, is := s.names[key]; !is && len(unknown) < maxLookups {
				unknown = append(unknown, key)
			}
		}
	}
	s.mutex.Unlock()
	for _, key := range unknown {
		answer, err := records.Get(ctx, &pb.GetRecordRequest{
			NamespaceUid: key.Namespace.String(), Kind: kinds[0], Uid: key.Cluster.String(),
		})
		if err != nil {
			continue // its record comes later
		}
		s.mutex.Lock()
		s.names[key] = name{answer.GetRecord().GetNamespace(), answer.GetRecord().GetName()}
		s.mutex.Unlock()
	}
}
