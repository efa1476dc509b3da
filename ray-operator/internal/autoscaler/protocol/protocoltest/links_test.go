package protocoltest_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/client"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/protocoltest"
)

// TestLinks behave as a client.Link does towards a controller.
func TestLinks(t *testing.T) {
	woken := 0
	links := protocoltest.NewLinks(func(types.NamespacedName) { woken++ })
	now := time.UnixMilli(1e12)
	expect := func(what string, head types.UID, want client.Answer, known bool) {
		t.Helper()
		got, ok := links.Last(cluster, head)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(client.Answer{}, "Err")); ok != known || diff != "" || headclient.KindOf(got.Err) != got.Failure {
			t.Errorf("%s: known: %v, %v, %s", what, ok, got.Err, diff)
		}
	}
	if links.Say(cluster, decision(1), now) || links.Connect(cluster) {
		t.Error("an autoscaler that nobody wants speaks")
	}
	links.Want(cluster, client.Target{Head: "head", Address: "a:1", Snapshot: snapshot(3)})
	if wanted, n := links.Wanted(cluster); n != 1 || wanted.Head != "head" || cmp.Diff(snapshot(3), wanted.Snapshot) != "" {
		t.Errorf("wanted %d times: %+v", n, wanted)
	}
	expect("before anything was said", "head", client.Answer{}, false)
	links.Connect(cluster)
	expect("connected", "head", client.Answer{Connected: true}, true)
	links.Say(cluster, decision(1), now)
	expect("a decision", "head", client.Answer{Decision: decision(1), At: now, Connected: true}, true)
	links.Break(cluster, headclient.Unavailable, now.Add(time.Second))
	links.Break(cluster, headclient.Timeout, now.Add(time.Minute))
	expect("broken", "head", client.Answer{Decision: decision(1), At: now, Failure: headclient.Timeout, FailingSince: now.Add(time.Second)}, true)
	links.Connect(cluster)
	expect("connected again", "head", client.Answer{Decision: decision(1), At: now, Connected: true}, true)
	other := decision(9)
	other.Head = "another"
	links.Say(cluster, other, now)
	expect("a decision about another head", "head", client.Answer{Decision: decision(1), At: now, Failure: headclient.Protocol, FailingSince: now}, true)
	if woken != 6 {
		t.Errorf("%d wakes for six changes", woken)
	}
	links.Want(cluster, client.Target{Head: "next", Address: "a:1"})
	expect("of the former head", "head", client.Answer{}, false)
	expect("of the next head", "next", client.Answer{}, false)
	links.Forget(cluster)
	if _, n := links.Wanted(cluster); n != 0 {
		t.Error("wanted after it was forgotten")
	}
}
