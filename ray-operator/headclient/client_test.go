package headclient_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
)

func start(t *testing.T) *fakehead.Head {
	t.Helper()
	head, err := fakehead.Start(clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		head.Close()
		if why := head.Died(); why != "" {
			t.Errorf("the client killed the head: %s", why)
		}
	})
	return head
}

func dial(t *testing.T, address string, options headclient.Options) *headclient.Client {
	t.Helper()
	client, err := headclient.Dial(address, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// calls are all that ask, so that each can be held to the same.
func calls(client *headclient.Client, node headclient.NodeID) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Alive":    func(ctx context.Context) error { _, err := client.Alive(ctx); return err },
		"State":    func(ctx context.Context) error { _, err := client.State(ctx); return err },
		"Deaths":   func(ctx context.Context) error { _, err := client.Deaths(ctx); return err },
		"Nodes":    func(ctx context.Context) error { _, err := client.Nodes(ctx); return err },
		"Activity": func(ctx context.Context) error { _, err := client.Activity(ctx); return err },
		"Drain": func(ctx context.Context) error {
			_, err := client.Drain(ctx, headclient.Drain{Node: node, Reason: headclient.Preemption})
			return err
		},
		"Demand": func(ctx context.Context) error { _, err := client.Demand(ctx); return err },
		"Report": func(ctx context.Context) error { return client.Report(ctx, headclient.Report{At: time.Unix(1, 0)}) },
		"Configure": func(ctx context.Context) error {
			return client.Configure(ctx, []headclient.Shape{{Name: "cpu", Max: 1}})
		},
		"Announce": func(ctx context.Context) error { return client.Announce(ctx, "10.0.0.7:44217") },
		"Value": func(ctx context.Context) error {
			if _, err := client.Value(ctx, "heliostat", "key", 1024); headclient.KindOf(err) != headclient.NotFound {
				return err
			}
			return nil
		},
		"DeleteValue": func(ctx context.Context) error { return client.DeleteValue(ctx, "heliostat", "key") },
		"Resize": func(ctx context.Context) error {
			_, err := client.Resize(ctx, node, map[string]float64{"CPU": 1})
			return err
		},
	}
}

func TestMoodsAreToldApart(t *testing.T) {
	for _, c := range []struct {
		name string
		mood fakehead.Mood
		want headclient.Kind
		// timeout is short where every call runs into it.
		timeout time.Duration
	}{
		{"hung", fakehead.Hung, headclient.Timeout, 100 * time.Millisecond},
		{"garbled", fakehead.Garbled, headclient.Protocol, time.Minute},
		{"passive", fakehead.Passive, headclient.Refused, time.Minute},
		{"away", fakehead.Away, headclient.Unavailable, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			head := start(t)
			node := head.Join(fakehead.Member{Instance: "uid"})
			head.Occupy(node) // so that a drain does not end it
			client := dial(t, head.Address(), headclient.Options{Timeout: c.timeout})
			head.Behave(c.mood)
			for name, call := range calls(client, node) {
				err := call(t.Context())
				var failure *headclient.Error
				if !errors.As(err, &failure) || failure.Kind != c.want || !strings.Contains(err.Error(), head.Address()) {
					t.Errorf("%s: %v, want %s and the address", name, err, c.want)
				}
			}
			head.Behave(fakehead.Well)
			for name, call := range calls(client, node) {
				err := call(t.Context())
				for tries := 1; headclient.KindOf(err) == headclient.Timeout && tries < 20; tries++ {
					err = call(t.Context()) // a busy machine can take longer than the client's timeout
				}
				if err != nil {
					t.Errorf("%s after it: %v", name, err)
				}
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	client := dial(t, address, headclient.Options{})
	if _, err := client.Alive(t.Context()); headclient.KindOf(err) != headclient.Unavailable {
		t.Errorf("%v, want Unavailable", err)
	}
}

func TestCallIsMadeOnce(t *testing.T) {
	head := start(t)
	node := head.Join(fakehead.Member{Instance: "uid"})
	client := dial(t, head.Address(), headclient.Options{})
	head.Behave(fakehead.Away)
	for range 3 {
		if _, err := client.Drain(t.Context(), headclient.Drain{Node: node, Reason: headclient.Preemption}); err == nil {
			t.Error("a drain succeeds without a head")
		}
	}
	if n := head.Calls("DrainNode"); n != 3 {
		t.Errorf("3 calls were sent as %d", n)
	}
}

func TestCallersEndIsNotAHeadsFault(t *testing.T) {
	head := start(t)
	head.Behave(fakehead.Hung)
	client := dial(t, head.Address(), headclient.Options{})
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if _, err := client.State(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v does not tell that the caller's time was over", err)
	}
}

// TestSlowHeadIsWaitedFor: a head that answers within the timeout has answered.
func TestSlowHeadIsWaitedFor(t *testing.T) {
	head := start(t)
	head.Delay(50 * time.Millisecond)
	client := dial(t, head.Address(), headclient.Options{Timeout: 10 * time.Second})
	if _, err := client.Alive(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTokenIsReadForEachCall(t *testing.T) {
	head := start(t)
	head.SetToken("second")
	token := "first"
	client := dial(t, head.Address(), headclient.Options{Token: func(context.Context) (string, error) { return token, nil }})
	if _, err := client.Alive(t.Context()); headclient.KindOf(err) != headclient.Unauthenticated {
		t.Errorf("with the former token: %v", err)
	}
	token = "second"
	if _, err := client.Alive(t.Context()); err != nil {
		t.Errorf("with the new token: %v", err)
	}
}

func TestTokensThatCannotBeSent(t *testing.T) {
	head := start(t)
	for _, bad := range []string{"", "two words", "line\nfeed", "Ümlaut", strings.Repeat("x", 1<<20)} {
		client := dial(t, head.Address(), headclient.Options{Token: func(context.Context) (string, error) { return bad, nil }})
		_, err := client.Alive(t.Context())
		if headclient.KindOf(err) != headclient.Unauthenticated || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("a token of %d bytes: %v", len(bad), err)
		}
	}
	if n := head.Calls("CheckAlive"); n != 0 {
		t.Errorf("%d calls were sent", n)
	}
}

func TestWhatMustNotBeSentIsNot(t *testing.T) {
	head := start(t)
	node := head.Join(fakehead.Member{Instance: "uid"})
	client := dial(t, head.Address(), headclient.Options{})
	drain := func(wish headclient.Drain) error { _, err := client.Drain(t.Context(), wish); return err }
	resize := func(id headclient.NodeID, resources map[string]float64) error {
		_, err := client.Resize(t.Context(), id, resources)
		return err
	}
	report := func(report headclient.Report) error { return client.Report(t.Context(), report) }
	configure := func(shape headclient.Shape) error { return client.Configure(t.Context(), []headclient.Shape{shape}) }
	at, made := time.Unix(1, 0), headclient.Request{Count: 1}
	inf := math.Inf(1)
	for name, err := range map[string]error{
		"no node to drain":         drain(headclient.Drain{Reason: headclient.Preemption}),
		"no reason":                drain(headclient.Drain{Node: node}),
		"a reason of one's own":    drain(headclient.Drain{Node: node, Reason: "WHIM"}),
		"a deadline before 1970":   drain(headclient.Drain{Node: node, Reason: headclient.Preemption, Deadline: time.Unix(-1, 0)}),
		"no node to resize":        resize(headclient.NodeID{}, map[string]float64{"CPU": 1}),
		"nothing to resize":        resize(node, nil),
		"less than nothing":        resize(node, map[string]float64{"CPU": -1}),
		"without end":              resize(node, map[string]float64{"CPU": inf}),
		"not a number":             resize(node, map[string]float64{"CPU": math.NaN()}),
		"a resource without name":  resize(node, map[string]float64{"": 1}),
		"a resource with a novel":  resize(node, map[string]float64{strings.Repeat("x", 254): 1}),
		"a report without time":    report(headclient.Report{}),
		"workers below zero":       report(headclient.Report{At: at, Wanted: []headclient.Wanted{{Count: -1}}}),
		"too many failed workers":  report(headclient.Report{At: at, Failed: []headclient.Failed{{Count: math.MaxInt32 + 1}}}),
		"a request of one's own":   report(headclient.Report{At: at, Requests: []headclient.Request{made}}),
		"a gang of one's own":      report(headclient.Report{At: at, Gangs: []headclient.Gang{{}}}),
		"a floor of one's own":     report(headclient.Report{At: at, Floor: []headclient.Request{made}}),
		"nodes below zero":         configure(headclient.Shape{Min: -1}),
		"too many nodes at least":  configure(headclient.Shape{Min: math.MaxInt32 + 1}),
		"too many nodes at most":   configure(headclient.Shape{Max: math.MaxInt32 + 1}),
		"nodes of no number":       configure(headclient.Shape{Resources: map[string]float64{"CPU": math.NaN()}}),
		"metrics without port":     client.Announce(t.Context(), "10.0.0.1"),
		"an address without port":  second(headclient.Dial("10.0.0.1", headclient.Options{})),
		"an address without host":  second(headclient.Dial(":6379", headclient.Options{})),
		"an address that is a URL": second(headclient.Dial("dns:///head:6379/x", headclient.Options{})),
	} {
		if headclient.KindOf(err) != headclient.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := head.Calls("DrainNode") + head.Calls("ResizeRayletResourceInstances") + head.Calls("ReportAutoscalingState") +
		head.Calls("ReportClusterConfig") + head.Calls("InternalKVPut"); n != 0 {
		t.Errorf("%d calls were sent", n)
	}
}

func second(_ *headclient.Client, err error) error { return err }

func TestNodeIDIsReadBack(t *testing.T) {
	id := headclient.NodeID{1, 2, 27: 3}
	if got, err := headclient.ParseNodeID(id.String()); err != nil || got != id {
		t.Errorf("%s reads back as %s, %v", id, got, err)
	}
	for _, bad := range []string{"", "zz", id.String()[2:], id.String() + "00", strings.Repeat("0", 56)} {
		if _, err := headclient.ParseNodeID(bad); err == nil {
			t.Errorf("%q is an id", bad)
		}
	}
}

// TestManyTombstones: a cluster with much coming and going lists about a thousand dead.
func TestManyTombstones(t *testing.T) {
	head := start(t)
	for i := range 1500 {
		head.Kill(head.Join(fakehead.Member{Instance: fmt.Sprintf("uid-%d", i), Type: "cpu"}))
	}
	alive := head.Join(fakehead.Member{Instance: "alive", Type: "cpu"})
	client := dial(t, head.Address(), headclient.Options{})
	nodes, err := client.Nodes(t.Context())
	if err != nil || len(nodes) != 1001 {
		t.Fatalf("%d nodes, %v", len(nodes), err)
	}
	for _, node := range nodes {
		want := headclient.Dead
		if node.ID == alive {
			want = headclient.Idle
		}
		if node.State != want || (want == headclient.Dead) != (node.Death.Reason == headclient.Unexpected) {
			t.Fatalf("node %+v", node)
		}
	}
}

func TestManyActorsAreNotNone(t *testing.T) {
	head := start(t)
	for i := range 10_001 {
		head.Detach("_train_state_actor", fmt.Sprintf("actor-%d", i))
	}
	client := dial(t, head.Address(), headclient.Options{})
	if activity, err := client.Activity(t.Context()); err != nil || activity.Actors != 0 || !activity.Any() {
		t.Errorf("%+v, %v: of what was not looked at nothing is known", activity, err)
	}
}

// TestCodesAreSorted holds every code of gRPC to a kind.
func TestCodesAreSorted(t *testing.T) {
	var code codes.Code
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		return status.Error(code, strings.Repeat("long \x00 ", 1000))
	}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	client := dial(t, listener.Addr().String(), headclient.Options{})
	want := map[codes.Code]headclient.Kind{
		codes.Unauthenticated: headclient.Unauthenticated, codes.PermissionDenied: headclient.Unauthenticated,
		codes.Unavailable: headclient.Unavailable, codes.Canceled: headclient.Unavailable,
		codes.DeadlineExceeded: headclient.Timeout, codes.Unimplemented: headclient.Unsupported,
		codes.Aborted: headclient.Refused, codes.InvalidArgument: headclient.Refused,
		codes.NotFound: headclient.Refused, codes.FailedPrecondition: headclient.Refused,
	}
	for code = codes.OK; code <= codes.Unauthenticated; code++ {
		kind, known := want[code]
		if !known {
			kind = headclient.Protocol
		}
		_, err := client.Alive(t.Context())
		if headclient.KindOf(err) != kind {
			t.Errorf("%s: %v, want %s", code, err, kind)
		}
		if len(err.Error()) > 512 || strings.ContainsRune(err.Error(), 0) {
			t.Errorf("%s: an error of %d bytes", code, len(err.Error()))
		}
	}
}

// replying is a GCS that gives one reply to CheckAlive.
type replying struct {
	rpc.UnimplementedNodeInfoGcsServiceServer
	reply *rpc.CheckAliveReply
}

func (r replying) CheckAlive(context.Context, *rpc.CheckAliveRequest) (*rpc.CheckAliveReply, error) {
	return r.reply, nil
}

// TestRepliesThatAreRefusals: gRPC says that all is well, and the reply that it is not.
func TestRepliesThatAreRefusals(t *testing.T) {
	no := false
	for name, c := range map[string]struct {
		reply *rpc.CheckAliveReply
		want  headclient.Kind
	}{
		"a status within":   {&rpc.CheckAliveReply{Status: &rpc.GcsStatus{Code: 38, Message: []byte("GcsPassive")}}, headclient.Refused},
		"it does not lead":  {&rpc.CheckAliveReply{RayVersion: "2.60.0", IsLeader: &no}, headclient.Refused},
		"a version of 1 KB": {&rpc.CheckAliveReply{RayVersion: strings.Repeat("2", 1024)}, headclient.Protocol},
		"all is well":       {&rpc.CheckAliveReply{RayVersion: "2.52.0"}, ""},
	} {
		server := grpc.NewServer()
		rpc.RegisterNodeInfoGcsServiceServer(server, replying{reply: c.reply})
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(server.Stop)
		if _, err := dial(t, listener.Addr().String(), headclient.Options{}).Alive(t.Context()); headclient.KindOf(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
