// Package fakehead is a Ray head without Ray: its GCS, its job API and its Serve API, which
// are what headclient speaks to, in process, for tests. The proxies of Serve are not there;
// Proxied tells what one would lead to.
//
// In: what a test wants to be so (nodes, what runs and what waits for room, how the head
// behaves). Out: servers on loopback that answer as Ray 2.60 was seen to, its traps among
// them: it dies of a node id that has not 28 bytes and of a state version above its own, it
// drops reports that are older than the last, and what it was asked to run it runs, also
// when nobody waits for the answer any more.
//
// It must never be kinder than Ray: what kills a real GCS kills this one, and Died says of
// what. It must never be part of what users run.
package fakehead

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc/autoscaler"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// Version is the Ray that it says to be.
const Version = "2.60.0"

// Python is the version of Python that it runs in.
const Python = "3.11.2"

// Head is a fake head, in parts that share one lock. Its methods may be called at any time.
type Head struct {
	*shared
	gate
	cluster
	scaling
	activity
	jobs
	serving

	address string
	server  *grpc.Server
	web     *web
	ended   sync.WaitGroup
}

// shared is what all parts of a head have.
type shared struct {
	clock clock.Clock
	// mu is the lock of all parts: every method with a capital letter takes it.
	mu      sync.Mutex
	session session
	made    int // ids that were made
}

// session is one life of a head.
type session struct {
	name  string
	since time.Time
}

// begin is a new session. Ray's names are of the time and the process; so that no two are
// the same here, they are of chance.
func begin(now time.Time) session {
	return session{name: fmt.Sprintf("session_%s_%06d_%d", now.UTC().Format("2006-01-02_15-04-05"), rand.IntN(1e6), rand.Uint32()), since: now}
}

// Start makes a head that listens on loopback, without a token and without nodes.
func Start(clock clock.Clock) (*Head, error) { return StartAt(clock, "127.0.0.1:0", "127.0.0.1:0") }

// StartAt makes a head whose GCS and whose job API listen at addresses of the caller's
// choice, without a token and without nodes.
func StartAt(clock clock.Clock, gcs, jobAPI string) (*Head, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", gcs)
	if err != nil {
		return nil, fmt.Errorf("listen for the GCS of a fake head: %w", err)
	}
	second, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", jobAPI)
	if err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("listen for the job API of a fake head: %w", err)
	}
	return StartOn(clock, listener, second), nil
}

// StartOn makes a head whose GCS and whose job API listen where the caller does, without a token and without nodes.
func StartOn(clock clock.Clock, gcs, jobAPI net.Listener) *Head {
	all := &shared{clock: clock, session: begin(clock.Now())}
	h := &Head{shared: all, address: gcs.Addr().String()}
	h.gate = gate{shared: all, turned: make(chan struct{}), calls: map[string]int{}}
	h.cluster = cluster{shared: all, own: &node{Member: Member{Instance: "head", Head: true}, id: headclient.NodeID{1}}}
	h.scaling = scaling{shared: all, gate: &h.gate, cluster: &h.cluster}
	h.jobs = jobs{shared: all, cluster: &h.cluster, known: map[string]*job{}, packages: newPackages(), startDelay: StartDelay}
	h.activity = activity{shared: all, jobs: &h.jobs}
	h.serving = newServing(all, &h.cluster)
	h.server = grpc.NewServer(grpc.UnaryInterceptor(h.meet))
	autoscaler.RegisterAutoscalerStateServiceServer(h.server, &h.scaling)
	rpc.RegisterNodeInfoGcsServiceServer(h.server, &h.cluster)
	rpc.RegisterJobInfoGcsServiceServer(h.server, &h.activity)
	rpc.RegisterActorInfoGcsServiceServer(h.server, &h.activity)
	rpc.RegisterInternalKVGcsServiceServer(h.server, &h.scaling)
	h.web = newWeb(h, jobAPI)
	h.ended.Go(func() { _ = h.server.Serve(gcs) }) // it ends by Close, or the test sees no answer
	h.ended.Go(func() { _ = h.web.server.Serve(jobAPI) })
	return h
}

// Close stops the head and waits until nothing of it runs.
func (h *Head) Close() {
	h.Behave(Away)
	h.server.Stop()
	h.mu.Lock()
	h.web.closed = true
	h.mu.Unlock()
	_ = h.web.server.Close()
	h.web.open.Wait()
	h.ended.Wait()
}

// Address is the host:port of its GCS.
func (h *Head) Address() string { return h.address }

// JobsAddress is the host:port of its job API, and of its Serve API.
func (h *Head) JobsAddress() string { return h.web.address }

// Session is the name of the head's session.
func (h *Head) Session() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.session.name
}

// Restart is a new head at the same addresses, with nothing in its memory. Its session has
// another name, and connections to the job API of the former one break.
func (h *Head) Restart() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.jobs.settle()
	h.session, h.died, h.known, h.live = begin(h.clock.Now()), "", map[string]*job{}, nil
	h.packages = newPackages()
	h.nodes, h.asks, h.groups, h.pending, h.drivers, h.actors = nil, nil, nil, 0, nil, nil
	h.version, h.reported, h.floor, h.stored = 0, nil, nil, nil
	h.serving = h.serving.restart()
}

// Recover is a new start of GCS alone, over a store that lasts: the session is the same and
// everything runs on, but the state version begins again, reports and the floor are gone, and
// no node is known until it joins again.
func (h *Head) Recover() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cluster.settle()
	h.version, h.died, h.floor, h.reported = 0, "", nil, nil
	for _, one := range h.nodes {
		one.away = !one.dead
	}
}
