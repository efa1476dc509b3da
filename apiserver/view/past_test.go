package view_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/apiserver/view"
)

// deed is a change of one source.
type deed struct {
	object any
	isGone bool
}

// deeds returns a random history of clusters that belong to jobs, and of their pods, by source. Each has a
// resourceVersion of its own above 100.
func deeds(random *rand.Rand, count int) map[string][]deed {
	bySource := map[string][]deed{}
	for i := range count {
		rv := 101 + i
		owner := job("a", fmt.Sprint("j", random.IntN(2)), rv)
		own := ownedBy(cluster("a", fmt.Sprint("c", random.IntN(3)), rv), "ClusterJob", owner)
		own.UID = types.UID(fmt.Sprint(own.Name, "-", random.IntN(2)))
		one := deed{object: own, isGone: random.IntN(4) == 0}
		switch random.IntN(3) {
		case 0:
			one.object = owner
		case 1:
			one.object = pod(own, fmt.Sprint("p", random.IntN(4)), rv, random.IntN(3))
		}
		bySource[view.KindOf(one.object)] = append(bySource[view.KindOf(one.object)], one)
	}
	return bySource
}

// lines returns all lines of a view.
func lines(t *testing.T, v *view.View) map[view.Key]view.Line {
	t.Helper()
	found := map[view.Key]view.Line{}
	for _, line := range list(t, v, view.Query{Limit: 500}).Lines {
		found[line.Key] = *line
	}
	return found
}

// TestSince_IsWhatAnotherViewHad: two views read the same sources in different orders, and one knows what the other
// had.
func TestSince_IsWhatAnotherViewHad(t *testing.T) {
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 1))
		history := deeds(random, 30)
		one, other := filled(t), filled(t)
		next := map[*view.View]map[string]int{one: {}, other: {}}
		deliver := func(to *view.View, kind string) {
			if at := next[to][kind]; at < len(history[kind]) {
				next[to][kind]++
				if deed := history[kind][at]; deed.isGone {
					remove(t, to, deed.object)
				} else {
					update(t, to, deed.object)
				}
			}
		}
		kinds := []string{view.Clusters, view.Jobs, view.Pods}
		for range random.IntN(25) {
			deliver(one, kinds[random.IntN(3)])
		}
		_, at := one.Take()
		for _, kind := range kinds {
			for next[other][kind] < len(history[kind]) && (next[other][kind] < next[one][kind] || random.IntN(4) > 0) {
				deliver(other, kind)
			}
		}
		random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		then, err := other.Since(at)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		have := lines(t, other)
		for key, line := range then {
			if delete(have, key); line != nil {
				have[key] = *line
			}
		}
		if diff := cmp.Diff(lines(t, one), have); diff != "" {
			t.Fatalf("seed %d: - was, + is thought to have been:\n%s", seed, diff)
		}
	}
}

func TestSince_KnowsWhereItsMemoryEnds(t *testing.T) {
	v := filled(t)
	_, begin := v.Take()
	for i := range 9000 {
		update(t, v, cluster("a", "c", 101+i))
	}
	if _, err := v.Since(begin); !errors.Is(err, view.ErrGone) {
		t.Errorf("what is forgotten gives %v", err)
	}
	_, at := v.Take()
	update(t, v, cluster("a", "c", 9200))
	if then, err := v.Since(at); err != nil || len(then) != 1 {
		t.Errorf("what is remembered gives %v, %v", then, err)
	}
	_, late := v.Take()
	late[0]++
	if _, err := v.Since(late); !errors.Is(err, view.ErrAhead) {
		t.Errorf("the future gives %v", err)
	}
	if _, err := v.Since(late[1:]); !errors.Is(err, view.ErrForeign) {
		t.Errorf("a position of another form gives %v", err)
	}
	if err := v.Store(view.Clusters, "").Replace(nil, "9300"); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Since(at); !errors.Is(err, view.ErrGone) {
		t.Errorf("what was before a list gives %v", err)
	}
}

// TestSince_RemembersLessOfLargeLines: who may change one object can change all of its labels as often as they like.
func TestSince_RemembersLessOfLargeLines(t *testing.T) {
	for size, want := range map[int]error{1: nil, 50: view.ErrGone} {
		var namespaces []string // of which each has few steps
		for i := range 16 {
			namespaces = append(namespaces, fmt.Sprint("n", i))
		}
		v := view.New(namespaces...)
		store := v.Store(view.Clusters, "n0")
		if err := store.Replace(nil, "100"); err != nil {
			t.Fatal(err)
		}
		_, begin := v.Take()
		for i := range 400 {
			one := cluster("n0", "c", 101+i)
			one.Labels = map[string]string{}
			for label := range size {
				one.Labels[fmt.Sprintf("a%04d", label)] = strings.Repeat("v", 60)
			}
			if err := store.Update(one); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := v.Since(begin); !errors.Is(err, want) {
			t.Errorf("after 400 changes of an object with %d labels: %v, want %v", size, err, want)
		}
	}
}

// TestSince_DistrustsDisorder: where a source goes back, its past is not known.
func TestSince_DistrustsDisorder(t *testing.T) {
	v := filled(t, cluster("a", "c", 1))
	_, begin := v.Take()
	update(t, v, cluster("a", "c", 110), cluster("a", "d", 105))
	if _, err := v.Since(begin); !errors.Is(err, view.ErrGone) {
		t.Errorf("a past that is out of order gives %v", err)
	}
}

func TestMark_IsReadAsItWasWritten(t *testing.T) {
	v := filled(t, cluster("a", "c", 1))
	_, at := v.Take()
	update(t, v, cluster("a", "c", 300))
	_, later := v.Take()
	last := key(view.Clusters, "c")
	for _, mark := range []view.Mark{{}, {At: at, Scope: 7}, {At: later, Before: at, Last: &last, Scope: ^uint64(0)}} {
		text := view.JoinMark(v.Place(mark), mark.Scope)
		have, err := v.ParseMark(text)
		if diff := cmp.Diff(mark, have); err != nil || diff != "" {
			t.Errorf("%s is read as %v, %v", text, diff, err)
		}
		if other := view.New("b"); mark.At != nil {
			if _, err := other.ParseMark(text); !errors.Is(err, view.ErrForeign) {
				t.Errorf("a server of other namespaces says of %s: %v", text, err)
			}
		}
	}
	good := v.Place(view.Mark{At: at})
	broken := good[:3] + "\n" + good[3:]
	for _, text := range []string{"", "x", "AQ.1", "1.1", "!!.1", broken + ".1", good + "\r.1", good + ".01", good + ".A"} {
		var findings view.Findings
		if _, err := v.ParseMark(text); !errors.As(err, &findings) || findings[0].Remedy == "" {
			t.Errorf("%q is read: %v", text, err)
		}
	}
}

// TestMark_OfAnotherVersionIsForeign, whatever form it has: while servers are replaced, a watch goes on at one of another version
// with the full state, and is not refused.
func TestMark_OfAnotherVersionIsForeign(t *testing.T) {
	v := filled(t, cluster("a", "c", 1))
	for name, token := range map[string][]any{
		"one value more": {2, 7, []uint64{5, 0}, []uint64{5, 0}, nil, "new"}, "one less": {2, 7}, "of other types": {2, "seven", 3, 4, 5},
	} {
		content, err := cbor.Marshal(token)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.ParseMark(base64.RawURLEncoding.EncodeToString(content) + ".1"); !errors.Is(err, view.ErrForeign) {
			t.Errorf("%s: %v, want that it is foreign", name, err)
		}
	}
}
