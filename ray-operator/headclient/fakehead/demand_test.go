package fakehead_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
)

func cpus(n float64) map[string]float64 { return map[string]float64{"CPU": n} }

// begun is a fake head with its own node, and a client for it.
func begun(t *testing.T) (*fakehead.Head, *headclient.Client) {
	t.Helper()
	head, err := fakehead.Start(clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(head.Close)
	head.Join(fakehead.Member{Instance: "head", Head: true})
	client, err := headclient.Dial(head.Address(), headclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return head, client
}

func demand(t *testing.T, client *headclient.Client) headclient.Demand {
	t.Helper()
	demand, err := client.Demand(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return demand
}

// waiting is how many requests and gangs wait.
func waiting(t *testing.T, client *headclient.Client) (requests, gangs int) {
	t.Helper()
	all := demand(t, client)
	for _, request := range all.Requests {
		requests += request.Count
	}
	return requests, len(all.Gangs)
}

// waits asks that so many tasks wait.
func waits(t *testing.T, client *headclient.Client, when string, want int) {
	t.Helper()
	if requests, _ := waiting(t, client); requests != want {
		t.Errorf("%s %d tasks wait instead of %d", when, requests, want)
	}
}

// leaves asks that a node may leave, or may not.
func leaves(t *testing.T, client *headclient.Client, node headclient.NodeID, want bool) {
	t.Helper()
	verdict, err := client.Drain(t.Context(), headclient.Drain{Node: node, Reason: headclient.IdleTermination})
	if err != nil || verdict.Accepted != want {
		t.Errorf("node %s is told %+v, %v", node, verdict, err)
	}
}

// TestDemandRunsWhereThereIsRoom: from nothing to four nodes and back.
func TestDemandRunsWhereThereIsRoom(t *testing.T) {
	head, client := begun(t)
	end := head.Want(fakehead.Ask{Shape: cpus(0.5), Count: 8})
	waits(t, client, "without a node", 8)
	var nodes []headclient.NodeID
	for i := range 4 {
		nodes = append(nodes, head.Join(fakehead.Member{Instance: fmt.Sprint(i), Total: cpus(1)}))
		waits(t, client, fmt.Sprintf("with %d more nodes", i), 6-2*i)
	}
	for _, node := range demand(t, client).Nodes {
		if !node.Head && (node.State != headclient.Running || node.Available["CPU"] != 0) {
			t.Errorf("a node that runs two tasks is %+v", node)
		}
	}
	leaves(t, client, nodes[0], false)
	head.Kill(nodes[1])
	waits(t, client, "after a node died", 2)
	end()
	waits(t, client, "after their end", 0)
	leaves(t, client, nodes[0], true)
	if left := len(demand(t, client).Nodes); left != 3 {
		t.Errorf("%d nodes are left", left)
	}
}

func TestGroupsAreAllOrNothing(t *testing.T) {
	for strategy, want := range map[headclient.Strategy]int{ // nodes of 2 CPUs for 4 bundles of one
		headclient.Pack: 2, headclient.Spread: 2, headclient.StrictSpread: 4,
	} {
		head, client := begun(t)
		end := head.Gather(fakehead.Group{Strategy: strategy, Bundles: []fakehead.Ask{{Shape: cpus(1), Count: 4}}})
		for joined := range want {
			if _, gangs := waiting(t, client); gangs != 1 {
				t.Fatalf("%s: with %d nodes %d gangs wait", strategy, joined, gangs)
			}
			for _, node := range demand(t, client).Nodes {
				if node.State != headclient.Idle {
					t.Errorf("%s: a part of the gang is placed", strategy)
				}
			}
			head.Join(fakehead.Member{Instance: fmt.Sprint(joined), Total: cpus(2)})
		}
		if _, gangs := waiting(t, client); gangs != 0 {
			t.Errorf("%s: with %d nodes %d gangs wait", strategy, want, gangs)
		}
		end()
		for _, node := range demand(t, client).Nodes {
			if node.State != headclient.Idle || node.Available["CPU"] != node.Total["CPU"] {
				t.Errorf("%s: after its end a node is %+v", strategy, node)
			}
		}
	}
}

// TestPartOfAGroupIsMissing: Ray tells of that part alone.
func TestPartOfAGroupIsMissing(t *testing.T) {
	head, client := begun(t)
	head.Gather(fakehead.Group{Strategy: headclient.StrictSpread, Bundles: []fakehead.Ask{{Shape: cpus(1), Count: 3}}})
	var last headclient.NodeID
	for i := range 3 {
		last = head.Join(fakehead.Member{Instance: fmt.Sprint(i), Total: cpus(2)})
	}
	if _, gangs := waiting(t, client); gangs != 0 {
		t.Fatalf("%d gangs wait", gangs)
	}
	head.Kill(last)
	gangs := demand(t, client).Gangs
	if len(gangs) != 1 || len(gangs[0].Bundles) != 1 || gangs[0].Bundles[0].Count != 1 {
		t.Fatalf("of a group of which one bundle is missing Ray tells %+v", gangs)
	}
	head.Join(fakehead.Member{Instance: "new", Total: cpus(1)})
	if _, gangs := waiting(t, client); gangs != 0 {
		t.Errorf("%d gangs wait", gangs)
	}
}

func TestGroupsObeyLabels(t *testing.T) {
	head, client := begun(t)
	head.Gather(fakehead.Group{
		Strategy: headclient.Pack, Locality: headclient.Locality{Label: "rack", Strategy: headclient.StrictPack},
		Bundles: []fakehead.Ask{{Shape: cpus(1), Count: 2, Selectors: []headclient.Selector{{{Label: "market", Values: []string{"spot"}}}}}},
	})
	for i, c := range []struct {
		rack, market string
		want         int
	}{{"a", "spot", 1}, {"b", "spot", 1}, {"a", "reserved", 1}, {"a", "spot", 0}} {
		head.Join(fakehead.Member{Instance: fmt.Sprint(i), Total: cpus(1), Labels: map[string]string{"rack": c.rack, "market": c.market}})
		if _, gangs := waiting(t, client); gangs != c.want {
			t.Errorf("with node %d of rack %s, %s, %d gangs wait", i, c.rack, c.market, gangs)
		}
	}
}

func TestARayletTellsOfAHundredShapes(t *testing.T) {
	head, client := begun(t)
	for i := range 150 {
		head.Want(fakehead.Ask{Shape: cpus(float64(i + 1)), Count: 1})
	}
	seen := map[float64]bool{}
	for range 20 {
		all := demand(t, client).Requests
		if len(all) != 100 {
			t.Fatalf("it tells of %d shapes", len(all))
		}
		for _, request := range all {
			seen[request.Shape["CPU"]] = true
		}
	}
	if len(seen) < 101 {
		t.Errorf("it tells of the same %d shapes each time", len(seen))
	}
}

// told is what of a head's demand is in its memory.
type told struct {
	Version                int64
	Session                string
	Nodes, Requests, Floor int
	Reported               bool
}

// TestRecover: what GCS alone forgets, and what it does not.
func TestRecover(t *testing.T) {
	head, client := begun(t)
	worker := head.Join(fakehead.Member{Instance: "worker", Total: cpus(1)})
	head.Want(fakehead.Ask{Shape: cpus(1), Count: 3})
	head.Floor(fakehead.Ask{Shape: cpus(1), Count: 2})
	if err := client.Report(t.Context(), headclient.Report{At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	session := head.Session()
	is := func(when string, want told) {
		t.Helper()
		all := demand(t, client)
		if got := (told{all.Version, all.Session, len(all.Nodes), len(all.Requests), len(all.Floor), head.Reported() != nil}); got != want {
			t.Errorf("%s it tells of %+v, want %+v", when, got, want)
		}
	}
	is("at first", told{1, session, 2, 1, 1, true})
	head.Recover()
	is("after a new start of GCS", told{1, session, 0, 0, 0, false})
	head.Rejoin(worker)
	is("with the worker", told{2, session, 1, 0, 0, false})
	head.Rejoin()
	is("with all nodes", told{3, session, 2, 1, 0, false})
	head.Restart()
	is("after a new start of all", told{1, head.Session(), 0, 0, 0, false})
	if head.Session() == session {
		t.Error("a new head has the session of the former")
	}
}

func TestWhatIsKept(t *testing.T) {
	head, client := begun(t)
	if head.Configured() != nil || head.Reported() != nil {
		t.Error("it keeps what nobody told")
	}
	if err := client.Configure(t.Context(), []headclient.Shape{{Name: "cpu", Max: -1}}); err != nil || head.Configured().GetNodeGroupConfigs()[0].GetMaxCount() != -1 {
		t.Errorf("%v, %v", head.Configured(), err)
	}
	if err := client.Announce(t.Context(), "10.0.0.7:44217"); err != nil {
		t.Error(err)
	}
	if value, there := head.Stored("", "AutoscalerMetricsAddress"); !there || value != "10.0.0.7:44217" {
		t.Errorf("it keeps %q", value)
	}
}
