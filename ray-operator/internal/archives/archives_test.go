package archives

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	historyv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki/pkitest"
)

// archiver says what a test puts into its channel.
type archiver struct {
	historyv1.UnimplementedReadServer
	says    chan *historyv1.WatchStatesResponse
	address string
	stop    func()
}

// WatchStates implements historyv1.ReadServer.
func (a *archiver) WatchStates(_ *historyv1.WatchStatesRequest, stream grpc.ServerStreamingServer[historyv1.WatchStatesResponse]) error {
	for {
		select {
		case said := <-a.says:
			if err := stream.Send(said); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return status.Error(codes.Canceled, "the caller has gone")
		}
	}
}

// serve runs an archiver that only a client of the authority may call.
func serve(t *testing.T, authority *pki.Authority) *archiver {
	t.Helper()
	certificate, key, err := authority.IssueServer(nil, []netip.Addr{netip.MustParseAddr("127.0.0.1")}, time.Now(), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := authority.ClientConfig(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: client.RootCAs, MinVersion: tls.VersionTLS13,
	})))
	a := &archiver{says: make(chan *historyv1.WatchStatesResponse), address: listener.Addr().String(), stop: server.Stop}
	historyv1.RegisterReadServer(server, a)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return a
}

// say has an archiver say something, and waits until it is known by what the state is then.
func say(t *testing.T, a *archiver, said *historyv1.WatchStatesResponse) {
	t.Helper()
	select {
	case a.says <- said:
	case <-time.After(20 * time.Second):
		t.Fatal("nobody listens to the archiver")
	}
}

// until returns the state of a cluster once it is as a test says.
func until(t *testing.T, s *Set, what string, is func(State) bool) State {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		if now := s.State("u"); is(now) {
			return now
		}
		select {
		case <-deadline:
			t.Fatalf("it never is so: %s; it is %+v", what, s.State("u"))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// TestSet_FollowsBothReplicas: a stream to either will do, nothing is missing before both have said all, and one that is lost counts
// from then on.
func TestSet_FollowsBothReplicas(t *testing.T) {
	authority := pkitest.New(t, time.Now())
	first, second := serve(t, authority), serve(t, authority)
	s := New([]string{first.address, second.address}, func() (*tls.Config, error) { return authority.ClientConfig(time.Now()) }, clock.RealClock{})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	ctx, cancel := context.WithCancel(t.Context())
	if err := s.Changes().Start(ctx, queue); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	until(t, s, "away", func(now State) bool { return !now.Away.IsZero() })

	of := func(behind int64, cause string, streams ...string) *historyv1.WatchStatesResponse {
		return &historyv1.WatchStatesResponse{Namespace: "ns", Cluster: "demo", ClusterUid: "u", Behind: behind, Cause: cause, Streams: streams}
	}
	say(t, first, of(0, "", "a"))
	say(t, first, &historyv1.WatchStatesResponse{Complete: true})
	until(t, s, "one answers", func(now State) bool { return now.Away.IsZero() && now.All.IsZero() && len(now.Streams) == 1 })
	say(t, second, of(Late.Milliseconds(), "Store", "b"))
	say(t, second, &historyv1.WatchStatesResponse{Complete: true})
	both := until(t, s, "both answer", func(now State) bool { return !now.All.IsZero() })
	if both.Cause != "Store" || !both.Streams["a"].IsZero() || !both.Streams["b"].IsZero() || len(both.Streams) != 2 {
		t.Errorf("of both is known %+v", both)
	}
	say(t, second, of(0, ""))
	lost := until(t, s, "nothing is late", func(now State) bool { return now.Cause == "" })
	if lost.Streams["b"].IsZero() || !lost.Streams["a"].IsZero() {
		t.Errorf("of streams is known %v", lost.Streams)
	}
	request, _ := queue.Get()
	if want := (types.NamespacedName{Namespace: "ns", Name: "demo"}); request.NamespacedName != want {
		t.Errorf("it wakes %v", request)
	}
	first.stop()
	until(t, s, "one is lost", func(now State) bool { return now.All.IsZero() && now.Away.IsZero() && !now.Streams["a"].IsZero() })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestReplica_ForgetsWhatMeansNothing: states of clusters that are gone do not add up.
func TestReplica_ForgetsWhatMeansNothing(t *testing.T) {
	s := New([]string{"one"}, nil, clock.RealClock{})
	for i := range 10 * leastSweep {
		s.take(s.replicas[0], &historyv1.WatchStatesResponse{ClusterUid: fmt.Sprint(i)})
	}
	s.take(s.replicas[0], &historyv1.WatchStatesResponse{ClusterUid: "u", Displaced: 5})
	if known := len(s.replicas[0].states); known > 2*leastSweep || s.State("u").Displaced != 5 {
		t.Errorf("%d states are kept, and of one %+v", known, s.State("u"))
	}
}
