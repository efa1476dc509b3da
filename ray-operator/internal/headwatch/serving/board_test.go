package serving

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// keeper is a Source that keeps what is wanted, and gives a made-up answer.
type keeper struct {
	wants  map[types.NamespacedName]Wants
	answer Answer
}

func (k *keeper) Want(cluster types.NamespacedName, want Wants) { k.wants[cluster] = want }
func (k *keeper) Forget(cluster types.NamespacedName)           { delete(k.wants, cluster) }
func (k *keeper) Last(_ types.NamespacedName, head types.UID) (Answer, bool) {
	return k.answer, head == "head"
}

func clusterNamed(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

// wantOf is what a service wants: one application of a name, with a digest.
func wantOf(digest, application string, taken bool, drop ...string) Want {
	return Want{At: Place{Head: "head"}, Every: 3 * time.Second, Config: &Config{
		Digest: digest, Applications: map[string]json.RawMessage{application: json.RawMessage(`{}`)}, Options: json.RawMessage(`{"a":1}`), Taken: taken, Drop: drop,
	}}
}

func TestBoard_KeepsPartsApart(t *testing.T) {
	source := &keeper{wants: map[types.NamespacedName]Wants{}}
	board := NewBoard(source)
	demo, a, b := clusterNamed("demo"), clusterNamed("a"), clusterNamed("b")
	probe := Probe{Pod: "p", Address: "10.0.0.1:8000", Path: "/"}
	first := wantOf("1", "x", true, "y", "gone")
	first.Probes = []Probe{probe}
	board.Want(demo, a, first)
	second := wantOf("2", "y", true)
	second.Probes, second.Every = []Probe{probe}, time.Second
	board.Want(demo, b, second)
	want := Wants{At: Place{Head: "head"}, Every: time.Second, Probes: []Probe{probe}, Parts: map[types.NamespacedName]*Config{
		a: wantOf("1", "x", true, "gone").Config, b: second.Config, // x gives up y, which the other asks for
	}}
	if diff := cmp.Diff(want, source.wants[demo]); diff != "" {
		t.Errorf("(- wanted, + stated):\n%s", diff)
	}
	if diff := cmp.Diff([]types.NamespacedName{a, b}, board.Services(demo)); diff != "" {
		t.Errorf("services (- wanted, + have):\n%s", diff)
	}
	board.Want(demo, b, wantOf("3", "y", false))
	if have := source.wants[demo].Parts; !have[a].Taken || have[b].Taken || have[b].Digest != "3" {
		t.Errorf("a change of one concerns the other: %v, %v", have[a], have[b])
	}
	board.Forget(b)
	if have := source.wants[demo]; len(have.Parts) != 2 { // until the other speaks
		t.Errorf("a service that goes changes what is deployed: %v", have.Parts)
	}
	board.Want(demo, a, first)
	if have := source.wants[demo]; len(have.Parts) != 1 {
		t.Errorf("%v are wanted of one that is alone", have.Parts)
	}
	board.Forget(a, demo)
	if _, wanted := source.wants[demo]; !wanted {
		t.Error("what is kept is forgotten")
	}
	board.Forget(a)
	if _, wanted := source.wants[demo]; wanted {
		t.Error("what nobody wants is not forgotten")
	}
}

func TestAnotherHeadHasTakenNothing(t *testing.T) {
	source := &keeper{wants: map[types.NamespacedName]Wants{}}
	board := NewBoard(source)
	former := wantOf("1", "x", true)
	former.At.Head = "former"
	board.Want(clusterNamed("demo"), clusterNamed("a"), former)
	board.Want(clusterNamed("demo"), clusterNamed("b"), wantOf("2", "y", true))
	if source.wants[clusterNamed("demo")].Parts[clusterNamed("a")].Taken {
		t.Error("what a former head took counts for the next one")
	}
}

func TestOnlyOneIsAlone(t *testing.T) {
	source := &keeper{wants: map[types.NamespacedName]Wants{}}
	board := NewBoard(source)
	own := wantOf("1", "x", false)
	own.Config.Alone = true
	board.Want(clusterNamed("demo"), clusterNamed("a"), own)
	if !source.wants[clusterNamed("demo")].Parts[clusterNamed("a")].Alone {
		t.Error("one that is alone is not")
	}
	board.Want(clusterNamed("demo"), clusterNamed("b"), own)
	if source.wants[clusterNamed("demo")].Parts[clusterNamed("a")].Alone {
		t.Error("one of two is alone")
	}
}

func TestAnswersAreOfTheService(t *testing.T) {
	demo, a, b := clusterNamed("demo"), clusterNamed("a"), clusterNamed("b")
	source := &keeper{wants: map[types.NamespacedName]Wants{}, answer: Answer{Parts: map[types.NamespacedName]Outcome{
		a: {Taken: "1", Refused: "never", RefusedDigest: "9"}, b: {Taken: "2", Refused: "no", RefusedDigest: "3"},
	}}}
	board := NewBoard(source)
	board.Want(demo, a, wantOf("1", "x", false))
	board.Want(demo, b, wantOf("3", "y", false))
	for name, want := range map[string]Answer{
		"a": {Outcome: Outcome{Taken: "1"}}, "b": {Outcome: Outcome{Taken: "2", Refused: "no", RefusedDigest: "3"}}, "c": {},
	} {
		have, heard := board.Last(demo, clusterNamed(name), "head")
		if diff := cmp.Diff(want, have); diff != "" || !heard {
			t.Errorf("%s (- wanted, + heard):\n%s", name, diff)
		}
	}
	if _, heard := board.Last(demo, clusterNamed("a"), "another"); heard {
		t.Error("another head was heard")
	}
}

// TestBoard_ClosesByTheLatest: of what services of one cluster want closed, which costs no request, the latest is enough.
func TestBoard_ClosesByTheLatest(t *testing.T) {
	source := &keeper{wants: map[types.NamespacedName]Wants{}}
	board := NewBoard(source)
	for _, c := range []struct{ service, id, want string }{
		{"a", "", ""}, {"b", "heliostat-close-1000", "heliostat-close-1000"}, {"a", "heliostat-close-1001", "heliostat-close-1001"},
		{"c", "heliostat-close-0999", "heliostat-close-1001"}, {"a", "", "heliostat-close-1000"},
	} {
		want := wantOf("1", c.service, true)
		want.Close.ID = c.id
		board.Want(clusterNamed("demo"), clusterNamed(c.service), want)
		if have := source.wants[clusterNamed("demo")].Close.ID; have != c.want {
			t.Errorf("%s wants %q: it is to close %q, want %q", c.service, c.id, have, c.want)
		}
	}
}
