package job

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// TestNeverMoreThanMost: in whatever order jobs ask for places, and whenever the cache shows who has one,
// there are never more holders than places.
func TestNeverMoreThanMost(t *testing.T) {
	for seed := range uint64(200) {
		chance := rand.New(rand.NewPCG(seed, 1))
		var places Places
		cluster := types.NamespacedName{Namespace: "default", Name: "demo"}
		most, at := 1+chance.IntN(3), now
		holds, shown := map[types.UID]bool{}, []types.UID{} // as it is, and as the cache shows it
		for range 200 {
			at = at.Add(time.Duration(chance.IntN(3000)) * time.Millisecond)
			uid := types.UID(fmt.Sprint(chance.IntN(8)))
			switch chance.IntN(4) {
			case 0, 1:
				if places.Take(cluster, uid, most, shown, at) {
					if holds[uid] = true; chance.IntN(5) == 0 { // its write failed
						holds[uid] = slices.Contains(shown, uid)
						places.Leave(cluster, uid)
					}
				}
			case 2:
				shown = holding(holds)
			case 3:
				if i := slices.Index(shown, uid); i >= 0 { // what ends was seen to run
					holds[uid], shown = false, slices.Delete(slices.Clone(shown), i, i+1)
				}
			}
			if count := len(holding(holds)); count > most {
				t.Fatalf("seed %d: %d hold one of %d places", seed, count, most)
			}
		}
	}
}

func holding(of map[types.UID]bool) []types.UID {
	var all []types.UID
	for uid, is := range of {
		if is {
			all = append(all, uid)
		}
	}
	return all
}

// TestPlacesAreForgotten: one that was taken and never seen is free after a while, and nothing is
// kept of it.
func TestPlacesAreForgotten(t *testing.T) {
	var places Places
	a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	if !places.Take(a, "first", 1, nil, now) || places.Take(a, "second", 1, nil, now.Add(unseenFor)) {
		t.Fatalf("a place that was taken is not kept for %s", unseenFor)
	}
	if !places.Take(b, "third", 1, nil, now.Add(unseenFor+time.Second)) || len(places.taken) != 1 {
		t.Errorf("%v are kept", places.taken)
	}
	if !places.Take(a, "second", 1, nil, now.Add(unseenFor+time.Second)) {
		t.Errorf("a place that nobody holds is not given")
	}
	if !places.Take(a, "second", 1, []types.UID{"second"}, now.Add(unseenFor+2*time.Second)) {
		t.Errorf("who holds a place cannot take it again")
	}
}

func TestOrderOfTheLine(t *testing.T) {
	retry := func(j *v1alpha1.ClusterJob) { j.Spec.Retry = &v1alpha1.Retry{Limit: 5, BackoffSeconds: number(60)} }
	with := func(record Record) edit {
		return func(j *v1alpha1.ClusterJob) {
			j.Annotations = map[string]string{v1alpha1.AnnotationRecord: record.String()}
		}
	}
	failed := func(r *Record) {
		r.Bound, r.Attempt, r.Failures, r.Past = Bound{}, 2, 1, []Past{past(1, "EntrypointFailed", 30)}
	}
	all := map[string]*v1alpha1.ClusterJob{
		"oldest": train(), "old": train(), "twin-a": train(), "twin-b": train(),
		"runs": train(with(bound())), "over": train(with(bound(outcome))), "suspended": train(suspend), "going": train(deleted(1)),
		"others": train(func(j *v1alpha1.ClusterJob) { j.Spec.ManagedBy = "example.com/other" }), "damaged": train(with(Record{})),
		"invalid":   train(func(j *v1alpha1.ClusterJob) { j.Spec.Entrypoint = "" }),
		"backs-off": train(retry, with(bound(failed))), "backed-off": train(retry, with(bound(failed, func(r *Record) { r.Past[0].End = ago(60) }))),
	}
	created := map[string]int64{"oldest": 100, "old": 99, "twin-a": 50, "twin-b": 50, "backed-off": 10}
	var jobs []v1alpha1.ClusterJob
	for name, job := range all {
		job.Name, job.UID = name, types.UID(name)
		if seconds, ok := created[name]; ok {
			job.CreationTimestamp = metav1.Unix(ago(seconds), 0)
		} else {
			job.CreationTimestamp = metav1.Unix(ago(1000), 0)
		}
		jobs = append(jobs, *job)
	}
	var names []string
	for _, job := range inLine(jobs, now) {
		names = append(names, job.Name)
	}
	if want := []string{"oldest", "old", "twin-a", "twin-b", "backed-off"}; !slices.Equal(names, want) {
		t.Errorf("the line is %q, want %q", names, want)
	}
	for name, job := range all {
		if have := Holds(job); have != (name == "runs") {
			t.Errorf("%s holds a place: %v", name, have)
		}
	}
}

// TestNext: only so many are looked at for one place.
func TestNext(t *testing.T) {
	var jobs []v1alpha1.ClusterJob
	for i := range 100 {
		job := train()
		job.Name, job.UID = fmt.Sprintf("job-%02d", i), types.UID(fmt.Sprintf("job-%02d", i))
		jobs = append(jobs, *job)
	}
	next := Next(jobs, now)
	if len(next) != nextAtOnce || next[0].Name != "job-00" || next[nextAtOnce-1].Name != fmt.Sprintf("job-%02d", nextAtOnce-1) {
		t.Errorf("next are %v", next)
	}
	if few := Next(jobs[:2], now); len(few) != 2 {
		t.Errorf("of two next are %v", few)
	}
}

// TestPermits: what was given is known until long after it is over.
func TestPermits(t *testing.T) {
	var p permits
	p.give("a", now)
	p.give("b", now.Add(permitFor))
	if !p.last("a").Equal(now) || !p.last("b").Equal(now.Add(permitFor)) || !p.last("c").IsZero() {
		t.Errorf("permits %v", p.until)
	}
	p.give("c", now.Add(3*permitFor))
	if len(p.until) != 1 {
		t.Errorf("%v are kept", p.until)
	}
}
