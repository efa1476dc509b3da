package linktest_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scalelink/linktest"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scalelink/steer"
)

// TestLinks behave as a steer.Link does towards a controller.
func TestLinks(t *testing.T) {
	woken := 0
	links := linktest.NewLinks(func(types.NamespacedName) { woken++ })
	now := time.UnixMilli(1e12)
	expect := func(what string, head types.UID, want steer.Answer, known bool) {
		t.Helper()
		got, ok := links.Last(cluster, head)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(steer.Answer{}, "Err")); ok != known || diff != "" || headclient.KindOf(got.Err) != got.Failure {
			t.Errorf("%s: known: %v, %v, %s", what, ok, got.Err, diff)
		}
	}
	if links.Say(cluster, word(1), now) || links.Connect(cluster) {
		t.Error("an autoscaler that nobody wants speaks")
	}
	links.Want(cluster, steer.Target{Head: "head", Address: "a:1", Orders: orders(3)})
	if wanted, n := links.Wanted(cluster); n != 1 || wanted.Head != "head" || cmp.Diff(orders(3), wanted.Orders) != "" {
		t.Errorf("wanted %d times: %+v", n, wanted)
	}
	expect("before anything was said", "head", steer.Answer{}, false)
	links.Connect(cluster)
	expect("connected", "head", steer.Answer{Connected: true}, true)
	links.Say(cluster, word(1), now)
	expect("a word", "head", steer.Answer{Word: word(1), At: now, Connected: true}, true)
	links.Break(cluster, headclient.Unavailable, now.Add(time.Second))
	links.Break(cluster, headclient.Timeout, now.Add(time.Minute))
	expect("broken", "head", steer.Answer{Word: word(1), At: now, Failure: headclient.Timeout, FailingSince: now.Add(time.Second)}, true)
	links.Connect(cluster)
	expect("connected again", "head", steer.Answer{Word: word(1), At: now, Connected: true}, true)
	other := word(9)
	other.Head = "another"
	links.Say(cluster, other, now)
	expect("a word about another head", "head", steer.Answer{Word: word(1), At: now, Failure: headclient.Protocol, FailingSince: now}, true)
	if woken != 6 {
		t.Errorf("%d wakes for six changes", woken)
	}
	links.Want(cluster, steer.Target{Head: "next", Address: "a:1"})
	expect("of the former head", "head", steer.Answer{}, false)
	expect("of the next head", "next", steer.Answer{}, false)
	links.Forget(cluster)
	if _, n := links.Wanted(cluster); n != 0 {
		t.Error("wanted after it was forgotten")
	}
}
