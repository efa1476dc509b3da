package headtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc/autoscaler"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// demandCases are what an autoscaler is told, and what it tells. They leave nothing that waits.
func demandCases() []Case {
	cases := []Case{
		{"a quiet head demands nothing, and all of its nodes is free", demandsNothing},
		{"tasks that find no room are demand", tasks},
		{"tasks that select nodes say so", selecting},
		{"actors that find no room are demand", actors},
		{"what waits for a placement group's bundle is no demand", bundled},
		{"a placement group may want to be in one place", within},
		{"a placement group that is placed labels its nodes", placed},
		{"a floor stays until it is taken back", floor},
		{"a report is what status tells, unless it is older", report},
		{"what never fits is told as it came", echo},
		{"which nodes there could be is kept", configure},
		{"where metrics are is kept", announce},
	}
	for _, strategy := range []headclient.Strategy{headclient.StrictSpread, headclient.StrictPack, headclient.Pack, headclient.Spread} {
		cases = append(cases, Case{"a placement group that is " + string(strategy) + " is a gang", gang(strategy)})
	}
	return cases
}

// tooBig is more than any node has.
const tooBig = 512

// demanded waits until a head's demand is as a condition wants it.
func demanded(t testing.TB, head Head, what string, condition func(headclient.Demand) bool) headclient.Demand {
	t.Helper()
	client := with(t, head)
	var demand headclient.Demand
	eventually(t, head, what, func(ctx context.Context) (err error) {
		if demand, err = client.Demand(ctx); err == nil && !condition(demand) {
			err = fmt.Errorf("the demand is %+v", demand)
		}
		return err
	})
	return demand
}

// wants makes a wish for a case, and waits at its end until nothing of it waits.
func wants(t testing.TB, head Head, wish Wish) (end func()) {
	t.Helper()
	stop := started(t, func() (func(), error) { return head.Want(wish) })
	return func() {
		stop()
		demanded(t, head, "a head on which nothing waits", calm)
	}
}

func calm(demand headclient.Demand) bool { return len(demand.Requests) == 0 && len(demand.Gangs) == 0 }

func demandsNothing(t testing.TB, head Head) {
	demand := demanded(t, head, "a calm head", calm)
	if demand.Version <= 0 || demand.Session == "" || len(demand.Floor) > 0 || demand.Odd != 0 {
		t.Errorf("the demand is %+v", demand)
	}
	for _, node := range demand.Nodes {
		if node.State == headclient.Idle && !maps.Equal(node.Available, node.Total) {
			t.Errorf("of %v only %v is free on an idle node", node.Total, node.Available)
		}
	}
	if next := demanded(t, head, "a calm head", calm); next.Version <= demand.Version || next.Session != demand.Session {
		t.Errorf("version %d of %q came after %d of %q", next.Version, next.Session, demand.Version, demand.Session)
	}
}

// one waits for one shape that waits, and compares it with what is wanted.
func one(t testing.TB, head Head, want headclient.Request) {
	t.Helper()
	demand := demanded(t, head, "one shape that waits", func(d headclient.Demand) bool {
		return len(d.Requests) == 1 && d.Requests[0].Count == want.Count
	})
	alike(t, want, demand.Requests[0])
}

func alike(t testing.TB, want, got headclient.Request) {
	t.Helper()
	got = headclient.Request{Shape: got.Shape, Selectors: got.Selectors, Constraints: got.Constraints, Count: got.Count}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(headclient.Request{}), cmp.Comparer(func(a, b *autoscaler.ResourceRequest) bool { return true })); diff != "" {
		t.Error(diff)
	}
}

func tasks(t testing.TB, head Head) {
	end := wants(t, head, Wish{Kind: Tasks, Shape: map[string]float64{"CPU": tooBig}, Count: 3})
	one(t, head, headclient.Request{Shape: map[string]float64{"CPU": tooBig}, Count: 3})
	end()
}

// spot is what bundles and tasks select that select.
var spot = headclient.Selector{{Label: "market", Values: []string{"spot"}}}

func selecting(t testing.TB, head Head) {
	shape := map[string]float64{"CPU": tooBig, "GPU": 0.5}
	end := wants(t, head, Wish{Kind: Tasks, Shape: shape, Labels: map[string]string{"market": "spot"}, Count: 2})
	one(t, head, headclient.Request{Shape: shape, Selectors: []headclient.Selector{spot}, Count: 2})
	end()
}

func actors(t testing.TB, head Head) {
	shape := map[string]float64{"nobody-has-it": 1}
	end := wants(t, head, Wish{Kind: Actors, Shape: shape, Count: 2})
	one(t, head, headclient.Request{Shape: shape, Count: 2})
	end()
}

func gang(strategy headclient.Strategy) func(testing.TB, Head) {
	return func(t testing.TB, head Head) {
		end := wants(t, head, Wish{
			Kind: Group, Strategy: strategy, Shape: map[string]float64{"CPU": tooBig}, Labels: map[string]string{"market": "spot"}, Count: 4,
		})
		demand := demanded(t, head, "a gang", func(d headclient.Demand) bool { return len(d.Gangs) == 1 })
		got := demand.Gangs[0]
		if got.Strategy != strategy || len(got.Group) != 36 || len(got.Bundles) != 1 || got.Locality.Label != "" {
			t.Fatalf("the gang is %+v", got)
		}
		want := headclient.Request{Shape: map[string]float64{"CPU": tooBig}, Selectors: []headclient.Selector{spot}, Count: 4}
		if strategy == headclient.StrictSpread || strategy == headclient.StrictPack {
			want.Constraints = []headclient.Constraint{{Label: "_PG_" + got.Group, Apart: strategy == headclient.StrictSpread}}
		}
		alike(t, want, got.Bundles[0])
		end()
	}
}

func bundled(t testing.TB, head Head) {
	end := wants(t, head, Wish{Kind: Group, Strategy: headclient.Pack, Shape: map[string]float64{"CPU": tooBig}, Count: 2, Inside: 2})
	eventually(t, head, "a task that waits for a bundle", func(context.Context) error {
		if tasks, _ := listed(t, head); len(tasks) == 0 {
			return errors.New("nothing waits")
		}
		return nil
	})
	demanded(t, head, "a gang, and no request", func(d headclient.Demand) bool { return len(d.Gangs) == 1 && len(d.Requests) == 0 && d.Odd == 0 })
	end()
}

func within(t testing.TB, head Head) {
	end := wants(t, head, Wish{Kind: Group, Within: "rack", Strategy: headclient.Pack, Shape: map[string]float64{"CPU": tooBig}, Count: 2})
	demand := demanded(t, head, "a gang", func(d headclient.Demand) bool { return len(d.Gangs) == 1 })
	want := headclient.Locality{Label: "rack", Strategy: headclient.StrictPack}
	if diff := cmp.Diff(want, demand.Gangs[0].Locality); diff != "" || demand.Gangs[0].Strategy != headclient.Pack {
		t.Errorf("the gang is %s: %s", demand.Gangs[0].Strategy, diff)
	}
	end()
}

// hosts are the nodes that have bundles.
func hosts(demand headclient.Demand) []headclient.Node {
	return slices.DeleteFunc(slices.Clone(demand.Nodes), func(node headclient.Node) bool { return !begins(node.Labels, "_PG_") })
}

// begins reports whether a name begins with a text.
func begins(labels map[string]string, text string) bool {
	for name := range labels {
		if strings.HasPrefix(name, text) {
			return true
		}
	}
	return false
}

func busyOne(node headclient.Node) bool { return node.State != headclient.Idle && !node.Head }

func placed(t testing.TB, head Head) {
	end := wants(t, head, Wish{Kind: Group, Strategy: headclient.StrictSpread, Shape: map[string]float64{"CPU": 1}, Count: 2})
	demand := demanded(t, head, "two nodes with a bundle each, which are busy", func(d headclient.Demand) bool {
		return len(hosts(d)) == 2 && !slices.ContainsFunc(hosts(d), func(node headclient.Node) bool { return node.State != headclient.Running })
	})
	for _, node := range hosts(demand) {
		if node.Total["CPU"] != 1 || node.Available["CPU"] != 0 || node.Labels["ray.io/node-id"] != node.ID.String() {
			t.Errorf("a node with a bundle is %+v", node)
		}
		for name := range node.Total {
			if strings.Contains(name, "_group_") {
				t.Errorf("it has resource %s, which is its placement group's", name)
			}
		}
	}
	end()
	demanded(t, head, "idle workers", func(d headclient.Demand) bool {
		return len(hosts(d)) == 0 && !slices.ContainsFunc(d.Nodes, busyOne)
	})
}

func floor(t testing.TB, head Head) {
	end := wants(t, head, Wish{Kind: Floor, Shape: map[string]float64{"CPU": 2}, Count: 3})
	end()
	demand := demanded(t, head, "a floor", func(d headclient.Demand) bool { return len(d.Floor) > 0 })
	if len(demand.Floor) != 1 {
		t.Fatalf("the floor is %+v", demand.Floor)
	}
	alike(t, headclient.Request{Shape: map[string]float64{"CPU": 2}, Count: 3}, demand.Floor[0])
	autoscaling, _, ctx := raw(t, head)
	nothing := &autoscaler.RequestClusterResourceConstraintRequest{ClusterResourceConstraint: &autoscaler.ClusterResourceConstraint{}}
	if _, err := autoscaling.RequestClusterResourceConstraint(ctx, nothing); err != nil {
		t.Fatal(err)
	}
	demanded(t, head, "no floor", func(d headclient.Demand) bool { return len(d.Floor) == 0 })
}

// raw dials a head for what headclient never asks.
func raw(t testing.TB, head Head) (autoscaler.AutoscalerStateServiceClient, rpc.InternalKVGcsServiceClient, context.Context) {
	t.Helper()
	connection, err := grpc.NewClient("passthrough:///"+head.Address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+head.Token)
	return autoscaler.NewAutoscalerStateServiceClient(connection), rpc.NewInternalKVGcsServiceClient(connection), ctx
}

// reported is the report that counts.
func reported(t testing.TB, head Head) *autoscaler.AutoscalingState {
	t.Helper()
	autoscaling, _, ctx := raw(t, head)
	reply, err := autoscaling.GetClusterStatus(ctx, &autoscaler.GetClusterStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return reply.GetAutoscalingState()
}

func report(t testing.TB, head Head) {
	now := head.Now()
	say := func(client *headclient.Client, report headclient.Report) {
		t.Helper()
		if err := client.Report(t.Context(), report); err != nil {
			t.Fatal(err)
		}
	}
	client := with(t, head)
	say(client, headclient.Report{
		At:     now,
		Wanted: []headclient.Wanted{{Type: "cpu", Count: 2, Since: time.Unix(1_795_000_000, 0)}},
		Coming: []headclient.Coming{{Type: "cpu", Instance: "pod-uid", Address: "10.0.0.7", Details: "waits for a machine"}},
		Failed: []headclient.Failed{{Type: "gpu", Count: 1, Reason: "no capacity", Since: time.Unix(1_795_000_000, 0), Until: time.Unix(1_795_000_060, 0)}},
	})
	want := &autoscaler.AutoscalingState{
		AutoscalerStateVersion:  now.UnixNano(),
		PendingInstanceRequests: []*autoscaler.PendingInstanceRequest{{InstanceTypeName: "cpu", RayNodeTypeName: "cpu", Count: 2, RequestTs: 1_795_000_000}},
		PendingInstances: []*autoscaler.PendingInstance{{
			InstanceTypeName: "cpu", RayNodeTypeName: "cpu", InstanceId: "pod-uid", IpAddress: "10.0.0.7", Details: "waits for a machine",
		}},
		FailedInstanceRequests: []*autoscaler.FailedInstanceRequest{{
			InstanceTypeName: "gpu", RayNodeTypeName: "gpu", Count: 1, Reason: "no capacity", StartTs: 1_795_000_000, FailedTs: 1_795_000_060,
		}},
	}
	if got := reported(t, head); !proto.Equal(want, got) {
		t.Errorf("status tells %v, want %v", got, want)
	}
	stale := headclient.Report{At: now.Add(-time.Hour)}
	say(with(t, head), stale)
	if got := reported(t, head); !proto.Equal(want, got) {
		t.Errorf("an older report took the place of a newer one: %v", got)
	}
	say(client, stale)
	if got := reported(t, head).GetAutoscalerStateVersion(); got != now.UnixNano()+1 {
		t.Errorf("a client's next report has version %d, which is not one more than %d", got, now.UnixNano())
	}
}

func echo(t testing.TB, head Head) {
	endTasks := started(t, func() (func(), error) {
		return head.Want(Wish{Kind: Tasks, Shape: map[string]float64{"CPU": tooBig}, Labels: map[string]string{"market": "spot"}, Count: 3})
	})
	endGroup := wants(t, head, Wish{Kind: Group, Strategy: headclient.StrictPack, Shape: map[string]float64{"CPU": tooBig}, Count: 2})
	demand := demanded(t, head, "a task and a gang that wait", func(d headclient.Demand) bool { return len(d.Requests) == 1 && len(d.Gangs) == 1 })
	tasks, gangs := listed(t, head)
	never := headclient.Report{At: head.Now(), Requests: demand.Requests, Gangs: demand.Gangs, Floor: demand.Requests}
	if err := with(t, head).Report(t.Context(), never); err != nil {
		t.Fatal(err)
	}
	want := &autoscaler.AutoscalingState{
		InfeasibleGangResourceRequests:       gangs,
		InfeasibleClusterResourceConstraints: []*autoscaler.ClusterResourceConstraint{{ResourceRequests: tasks}},
	}
	for _, one := range tasks {
		want.InfeasibleResourceRequests = append(want.InfeasibleResourceRequests, one.GetRequest())
	}
	got := reported(t, head)
	if got.AutoscalerStateVersion = 0; !proto.Equal(want, got) {
		t.Errorf("status tells %v, want %v", got, want)
	}
	endTasks()
	endGroup()
}

// listed is what waits in Ray's own words, without groups that wait for nothing.
func listed(t testing.TB, head Head) ([]*autoscaler.ResourceRequestByCount, []*autoscaler.GangResourceRequest) {
	t.Helper()
	autoscaling, _, ctx := raw(t, head)
	reply, err := autoscaling.GetClusterResourceState(ctx, &autoscaler.GetClusterResourceStateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	gangs := slices.DeleteFunc(reply.GetClusterResourceState().GetPendingGangResourceRequests(),
		func(gang *autoscaler.GangResourceRequest) bool { return len(gang.GetRequests()) == 0 })
	return reply.GetClusterResourceState().GetPendingResourceRequests(), gangs
}

// stored reads a value of the key-value store.
func stored(t testing.TB, head Head, namespace, key string) []byte {
	t.Helper()
	value, err := with(t, head).Value(t.Context(), namespace, key, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func configure(t testing.TB, head Head) {
	shapes := []headclient.Shape{
		{Name: "cpu", Resources: map[string]float64{"CPU": 4, "memory": 8 << 30, "lens": 0.5}, Max: 8},
		{Name: "gpu", Resources: map[string]float64{"CPU": 7.5, "GPU": 1}, Min: 2, Max: -1},
	}
	if err := with(t, head).Configure(t.Context(), shapes); err != nil {
		t.Fatal(err)
	}
	want := &autoscaler.ClusterConfig{NodeGroupConfigs: []*autoscaler.NodeGroupConfig{
		{Name: "cpu", Resources: map[string]uint64{"CPU": 4, "memory": 8 << 30}, MaxCount: 8},
		{Name: "gpu", Resources: map[string]uint64{"CPU": 7, "GPU": 1}, MinCount: 2, MaxCount: -1},
	}}
	got := &autoscaler.ClusterConfig{}
	if err := proto.Unmarshal(stored(t, head, "__autoscaler", "__autoscaler_cluster_config"), got); err != nil || !proto.Equal(want, got) {
		t.Errorf("it keeps %v, %v, want %v", got, err, want)
	}
}

func announce(t testing.TB, head Head) {
	for _, address := range []string{"10.0.0.7:44217", "10.0.0.8:44217"} {
		if err := with(t, head).Announce(t.Context(), address); err != nil {
			t.Fatal(err)
		}
		if got := string(stored(t, head, "", "AutoscalerMetricsAddress")); got != address {
			t.Errorf("it keeps %q, want %s", got, address)
		}
	}
}
