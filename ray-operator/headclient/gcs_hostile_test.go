package headclient_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc/autoscaler"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// verbatim is a codec for a server that answers with bytes of its choice.
type verbatim struct{}

func (verbatim) Marshal(v any) ([]byte, error)   { return v.([]byte), nil }
func (verbatim) Unmarshal(_ []byte, _ any) error { return nil }
func (verbatim) Name() string                    { return "proto" }

// saying is a GCS that answers every call with the same bytes.
func saying(t *testing.T, answer []byte) (address string) {
	t.Helper()
	server := grpc.NewServer(grpc.ForceServerCodec(verbatim{}), grpc.MaxSendMsgSize(1<<30), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		var request []byte
		return errors.Join(stream.RecvMsg(&request), stream.SendMsg(answer))
	}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// field is a field of bytes on the wire.
func field(number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

func written(t *testing.T, state *autoscaler.ClusterResourceState) []byte {
	t.Helper()
	wire, err := proto.Marshal(&autoscaler.GetClusterResourceStateReply{ClusterResourceState: state})
	if err != nil {
		t.Fatal(err)
	}
	return wire
}

// TestHostileDemands: none takes memory or time beyond the limits, none panics, and none is
// taken for a cluster without nodes or demand.
func TestHostileDemands(t *testing.T) {
	node := func(id, name string, status autoscaler.NodeStatus) []byte {
		return written(t, &autoscaler.ClusterResourceState{NodeStates: []*autoscaler.NodeState{{NodeId: []byte(id), InstanceId: name, Status: status}}})
	}
	deep := []byte{}
	for range 10_000 { // groups within groups, which no message of Ray's has
		deep = protowire.AppendTag(deep, 1, protowire.StartGroupType)
	}
	id := strings.Repeat("a", 28)
	for name, answer := range map[string][]byte{
		"nothing":              {},
		"no message":           []byte("HTTP/1.1 200 OK"),
		"half a message":       node(id, "uid", autoscaler.NodeStatus_IDLE)[:20],
		"a node id of 27":      node(id[1:], "uid", autoscaler.NodeStatus_IDLE),
		"a node id of 0":       node("", "uid", autoscaler.NodeStatus_DEAD),
		"a node of no status":  node(id, "uid", autoscaler.NodeStatus_UNSPECIFIED),
		"a name of 7 MiB":      node(id, strings.Repeat("x", 7<<20), autoscaler.NodeStatus_IDLE),
		"9 MiB":                node(id, strings.Repeat("x", 9<<20), autoscaler.NodeStatus_IDLE),
		"a million nodes":      field(1, bytes.Repeat(field(3, nil), 1_000_000)),
		"a million requests":   field(1, bytes.Repeat(field(4, nil), 1_000_000)),
		"a million bundles":    field(1, field(5, bytes.Repeat(field(1, nil), 1_000_000))),
		"a million terms":      field(1, field(4, field(1, field(3, bytes.Repeat(field(1, nil), 1_000_000))))),
		"a million labels":     field(1, field(3, bytes.Repeat(field(6, nil), 1_000_000))),
		"a million floors":     field(1, bytes.Repeat(field(6, nil), 1_000_000)),
		"groups within groups": field(1, field(3, deep)),
	} {
		t.Run(name, func(t *testing.T) {
			client := dial(t, saying(t, answer), headclient.Options{Timeout: 20 * time.Second})
			before := allocated()
			if demand, err := client.Demand(t.Context()); headclient.KindOf(err) != headclient.Protocol || len(err.Error()) > 512 {
				t.Errorf("%d nodes, %v", len(demand.Nodes), err)
			}
			if grown := allocated() - before; grown > 128<<20 {
				t.Errorf("it took %d MiB", grown>>20)
			}
		})
	}
}

// TestLargeHeadsAreLetInWhereTheyMayBe: a sidecar reads what the operator does not.
func TestLargeHeadsAreLetInWhereTheyMayBe(t *testing.T) {
	state := &autoscaler.ClusterResourceState{}
	for i := range 10_000 {
		id := make([]byte, 28)
		id[0], id[1], id[2] = byte(i>>8), byte(i), 1
		resources := map[string]float64{}
		for _, name := range strings.Split(strings.Repeat("resource-", 20)+"x", "-") {
			resources[name+strings.Repeat(string(rune('a'+len(resources))), 30)] = 1
		}
		state.NodeStates = append(state.NodeStates, &autoscaler.NodeState{
			NodeId: id, Status: autoscaler.NodeStatus_RUNNING, TotalResources: resources, AvailableResources: resources,
		})
	}
	address := saying(t, written(t, state))
	ask := func(options headclient.Options) (headclient.Demand, error) {
		options.Timeout = 30 * time.Second
		return dial(t, address, options).Demand(t.Context())
	}
	if _, err := ask(headclient.Options{}); headclient.KindOf(err) != headclient.Protocol {
		t.Errorf("by default: %v", err)
	}
	if demand, err := ask(headclient.Options{MaxReply: headclient.RayMaxReply}); err != nil || len(demand.Nodes) != len(state.NodeStates) {
		t.Errorf("with Ray's own limit: %d nodes, %v", len(demand.Nodes), err)
	}
	if demand, err := ask(headclient.Options{MaxReply: 4 << 20}); headclient.KindOf(err) != headclient.Protocol {
		t.Errorf("with 4 MiB: %d nodes, %v", len(demand.Nodes), err)
	}
}

// TestStateCostsNoDemand: what the operator asks of many heads does not grow with what waits.
func TestStateCostsNoDemand(t *testing.T) {
	request := &autoscaler.ResourceRequest{ResourcesBundle: map[string]float64{"CPU": 1, "GPU": 1}}
	gang := &autoscaler.GangResourceRequest{}
	for range 100 {
		gang.Requests = append(gang.Requests, request)
	}
	gang.BundleSelectors = []*autoscaler.BundleSelector{{ResourceRequests: gang.Requests}}
	state := &autoscaler.ClusterResourceState{}
	for range 500 {
		state.PendingGangResourceRequests = append(state.PendingGangResourceRequests, gang)
		state.PendingResourceRequests = append(state.PendingResourceRequests, &autoscaler.ResourceRequestByCount{Request: request, Count: 2})
	}
	client := dial(t, saying(t, written(t, state)), headclient.Options{})
	ask := func(ctx context.Context) error { _, err := client.Demand(ctx); return err }
	if err := ask(t.Context()); headclient.KindOf(err) != headclient.Protocol {
		t.Errorf("a demand of 100,000 bundles within 8 MiB: %v", err)
	}
	if got, err := client.State(t.Context()); err != nil || got.Pending != 1000 || got.Gangs != 500 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestHostileValues: what any code on a cluster can write is read up to its limit.
func TestHostileValues(t *testing.T) {
	for name, c := range map[string]struct {
		answer []byte
		kind   headclient.Kind
	}{
		"as much as there may be": {field(2, bytes.Repeat([]byte{0}, 4096)), ""},
		"one byte more":           {field(2, bytes.Repeat([]byte{0}, 4097)), headclient.Protocol},
		"7 MiB":                   {field(2, bytes.Repeat([]byte{0}, 7<<20)), headclient.Protocol},
		"a million values":        {bytes.Repeat(field(2, nil), 1_000_000), headclient.Protocol},
		"no message":              {[]byte("HTTP/1.1 200 OK"), headclient.Protocol},
		"nothing":                 {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			client := dial(t, saying(t, c.answer), headclient.Options{})
			if value, err := client.Value(t.Context(), "heliostat", "gang/a", 4096); headclient.KindOf(err) != c.kind {
				t.Errorf("%d bytes, %v", len(value), err)
			}
		})
	}
}
