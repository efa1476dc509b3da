package services

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// wishes are what services want of a head: each its part, and all the rest.
type wishes struct {
	Want
	parts map[types.NamespacedName]*Config
}

// wanted wants the head at a:1 to be asked every 5 s.
func wanted(config *Config, probes ...Probe) wishes {
	parts := map[types.NamespacedName]*Config{}
	if config != nil {
		parts[us] = config
	}
	return of(parts, probes...)
}

// of wants the parts of several services at a:1.
func of(parts map[types.NamespacedName]*Config, probes ...Probe) wishes {
	return wishes{parts: parts, Want: Want{At: Place{Head: "head", Address: "a:1"}, Probes: probes, Every: 5 * time.Second}}
}

// wantOf is what a service wants: one application of a name, with a digest.
func wantOf(digest, application string, taken bool, drop ...string) Want {
	return Want{At: Place{Head: "head"}, Every: 3 * time.Second, Config: &Config{
		Digest: digest, Applications: map[string]json.RawMessage{application: json.RawMessage(`{}`)}, Options: json.RawMessage(`{"a":1}`), Taken: taken, Drop: drop,
	}}
}

func TestTogether_KeepsPartsApart(t *testing.T) {
	probe := Probe{Pod: "p", Address: "10.0.0.1:8000", Path: "/"}
	first, second := wantOf("1", "x", true, "y", "gone"), wantOf("2", "y", true)
	first.Probes, second.Probes, second.Every = []Probe{probe}, []Probe{probe}, time.Second
	want := Wants{Every: time.Second, Probes: []Probe{probe}, Parts: map[types.NamespacedName]*Config{
		us: wantOf("1", "x", true, "gone").Config, other: second.Config, // x gives up y, which the other asks for
	}}
	if diff := cmp.Diff(want, Together(map[types.NamespacedName]Want{us: first, other: second})); diff != "" {
		t.Errorf("(- want, + have):\n%s", diff)
	}
}

func TestTogether_OnlyOneIsAlone(t *testing.T) {
	own := wantOf("1", "x", false)
	own.Config.Alone = true
	if !Together(map[types.NamespacedName]Want{us: own}).Parts[us].Alone {
		t.Error("one that is alone is not")
	}
	if Together(map[types.NamespacedName]Want{us: own, other: {}}).Parts[us].Alone || !own.Config.Alone {
		t.Error("one of two is alone, or was changed")
	}
}

// TestTogether_ClosesByTheLatest: of what services of one cluster want closed, which costs no request, the latest is enough.
func TestTogether_ClosesByTheLatest(t *testing.T) {
	wants := map[types.NamespacedName]Want{}
	for _, c := range []struct{ service, id, want string }{
		{"a", "", ""}, {"b", "heliostat-close-1000", "heliostat-close-1000"}, {"a", "heliostat-close-1001", "heliostat-close-1001"},
		{"c", "heliostat-close-0999", "heliostat-close-1001"}, {"a", "", "heliostat-close-1000"},
	} {
		want := wantOf("1", c.service, true)
		want.Close = headclient.Closing{ID: c.id, Leaving: []string{"10.0.0." + c.service}}
		wants[service(c.service)] = want
		if have := Together(wants).Close.ID; have != c.want {
			t.Errorf("%s wants %q: %q is closed, want %q", c.service, c.id, have, c.want)
		}
	}
	if leaving := Together(wants).Close.Leaving; !slices.Equal(leaving, []string{"10.0.0.a", "10.0.0.b", "10.0.0.c"}) {
		t.Errorf("channels to %q end, want those to the pods that any of them names", leaving)
	}
}

// TestWatch_KeepsHeadsApart: a service that has not seen the next head yet neither keeps another from it nor is
// deployed there.
func TestWatch_KeepsHeadsApart(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		former, next := b.head("a:1"), b.head("b:1")
		want := wanted(nil).Want
		want.Config = config("d1", "a")
		b.Watch.Want(cluster, us, want)
		theirs := Want{At: Place{Head: "next", Address: "b:1"}, Config: config("e1", "b"), Every: want.Every}
		b.Watch.Want(cluster, other, theirs)
		b.Pass(10 * time.Second)
		for range 20 { // each says the same again, in turn
			b.Watch.Want(cluster, us, want)
			b.Watch.Want(cluster, other, theirs)
			b.Pass(time.Second)
		}
		answer, heard := b.Watch.Last(cluster, other, "next")
		if !heard || answer.Taken != "e1" || b.last().Taken != "d1" || former.Dialed != 1 || next.Dialed != 1 {
			t.Errorf("%+v, %+v over %d and %d connections", b.last().Outcome, answer.Outcome, former.Dialed, next.Dialed)
		}
		if diff := cmp.Diff([][]string{{"a"}, {"b"}}, [][]string{former.names(), next.names()}); diff != "" {
			t.Errorf("applications of the heads (- want, + have):\n%s", diff)
		}
	})
}

// TestWatch_ForgetsAService of all clusters but those that are kept, and no other service.
func TestWatch_ForgetsAService(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		b.head("a:1")
		second := service("second")
		for _, of := range []types.NamespacedName{cluster, second} {
			b.Watch.Want(of, us, wanted(nil).Want)
			b.Watch.Want(of, other, wanted(nil).Want)
		}
		b.Pass(2 * time.Second)
		b.Watch.Forget(us, second)
		for of, want := range map[key]bool{{cluster, us}: false, {second, us}: true, {cluster, other}: true, {second, other}: true} {
			if _, heard := b.Watch.Last(of.cluster, of.service, "head"); heard != want {
				t.Errorf("%v is known: %t, want %t", of, heard, want)
			}
		}
	})
}

// TestWatch_WakesOnlyWhoseNewsItIs: what came of the part of one service wakes that one alone.
func TestWatch_WakesOnlyWhoseNewsItIs(t *testing.T) {
	play(t, func(t *testing.T, b *bench) {
		b.head("a:1").set(refusing(`"bad":1`))
		b.Want(cluster, both(config("a1", "a"), config("b1", "b")))
		b.Pass(10 * time.Second)
		b.Wakes()
		bad := changed(config("b2"), func(c *Config) {
			c.Applications["b"] = json.RawMessage(`{"name":"b","route_prefix":"/b","bad":1}`)
		})
		b.Want(cluster, both(config("a1", "a"), bad))
		b.Pass(10 * time.Second)
		if b.lastOf(other).RefusedDigest != "b2" || b.last().Refused != "" || b.Wakes() != 1 {
			t.Errorf("%+v, %+v", b.last().Outcome, b.lastOf(other).Outcome)
		}
		next := wanted(nil).Want
		next.Config = config("b3", "b")
		b.Watch.Want(cluster, other, next)
		if answer := b.lastOf(other); answer.Refused != "" || answer.RefusedDigest != "" {
			t.Errorf("what is wanted now is refused for what was: %+v", answer.Outcome)
		}
	})
}
