package job

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
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

func TestOrderOfTheQueue(t *testing.T) {
	retry := func(j *v1beta1.ClusterJob) { j.Spec.Retry = &v1beta1.Retry{Limit: 5, BackoffSeconds: number(60)} }
	failed := func(r *Record) {
		r.Bound, r.Attempt, r.Failures, r.Past = Bound{}, 2, 1, []Past{past(1, "EntrypointFailed", 30)}
	}
	all := map[string]*v1beta1.ClusterJob{
		"oldest": train(), "old": train(), "twin-a": train(), "twin-b": train(),
		"runs": train(), "over": train(), "suspended": train(suspend), "going": train(deleted(1)),
		"others": train(func(j *v1beta1.ClusterJob) { j.Spec.ManagedBy = "example.com/other" }), "damaged": train(),
		"invalid":   train(badVariable),
		"backs-off": train(retry), "backed-off": train(retry),
	}
	records := map[string]Record{
		"runs": bound(), "over": bound(outcome), "damaged": {},
		"backs-off": bound(failed), "backed-off": bound(failed, func(r *Record) { r.Past[0].End = ago(60) }),
	}
	created := map[string]int64{"oldest": 100, "old": 99, "twin-a": 50, "twin-b": 50, "backed-off": 10}
	var jobs []v1beta1.ClusterJob
	for name, job := range all {
		job.Name, job.UID = name, types.UID(name)
		if record, ok := records[name]; ok {
			recorded(record)(job)
		}
		if seconds, ok := created[name]; ok {
			job.CreationTimestamp = metav1.Unix(ago(seconds), 0)
		} else {
			job.CreationTimestamp = metav1.Unix(ago(1000), 0)
		}
		jobs = append(jobs, *job)
	}
	var names []string
	queued := new(WaitingJobs).sortWaiting(jobs, demo(), now)
	waiting, holders := queued.waiting, queued.holders
	for _, one := range waiting {
		names = append(names, one.name.Name)
	}
	if want := []string{"oldest", "old", "twin-a", "twin-b", "backed-off"}; !slices.Equal(names, want) {
		t.Errorf("the queue is %q, want %q", names, want)
	}
	if !slices.Equal(holders, []types.UID{"runs"}) {
		t.Errorf("%q hold places", holders)
	}
	for name, job := range all {
		if have := Holds(job); have != (name == "runs") {
			t.Errorf("%s holds a place: %v", name, have)
		}
	}
}

// TestNext: only so many are looked at for one place.
func TestNext(t *testing.T) {
	var jobs []v1beta1.ClusterJob
	for i := range 100 {
		job := train()
		job.Name, job.UID = fmt.Sprintf("job-%02d", i), types.UID(fmt.Sprintf("job-%02d", i))
		jobs = append(jobs, *job)
	}
	next := new(WaitingJobs).Next(jobs, limited(), now)
	if len(next) != nextAtOnce || next[0].Name != "job-00" || next[nextAtOnce-1].Name != fmt.Sprintf("job-%02d", nextAtOnce-1) {
		t.Errorf("next are %v", next)
	}
	if few := new(WaitingJobs).Next(jobs[:2], limited(), now); len(few) != 2 {
		t.Errorf("of two next are %v", few)
	}
}

// jobCache is a cache that holds the cluster demo and jobs, and counts the jobs that it gives.
type jobCache struct {
	client.Client
	jobs  []v1beta1.ClusterJob
	given int
}

func (s *jobCache) List(_ context.Context, into client.ObjectList, by ...client.ListOption) error {
	list, ok := into.(*v1beta1.ClusterJobList)
	if !ok {
		return fmt.Errorf("a list of %T is not expected", into)
	}
	var options client.ListOptions
	options.ApplyOptions(by)
	fields := index.Fields()
	for i := range s.jobs {
		for _, field := range fields {
			value, asked := options.FieldSelector.RequiresExactMatch(field.Name)
			if _, is := field.Kind.(*v1beta1.ClusterJob); is && asked && slices.Contains(field.Value(&s.jobs[i]), value) {
				list.Items = append(list.Items, s.jobs[i])
			}
		}
	}
	s.given += len(list.Items)
	return nil
}

// longQueue is a cluster on which 5,000 jobs have ended and 200 wait for two that run.
func longQueue() (*jobCache, Seen) {
	var cache jobCache
	add := func(format string, count int, edits ...edit) {
		for i := range count {
			named := func(job *v1beta1.ClusterJob) {
				job.Name, job.UID, job.ResourceVersion = fmt.Sprintf(format, i), types.UID(fmt.Sprintf(format, i)), fmt.Sprint(i+1)
			}
			cache.jobs = append(cache.jobs, *train(append([]edit{named}, edits...)...))
		}
	}
	add("ended-%d", 5000, recorded(bound(outcome)), func(j *v1beta1.ClusterJob) { j.Status.EndTime = &metav1.Time{Time: now} })
	add("runs-%d", 2, recorded(bound()))
	add("waits-%03d", 200)
	cluster := demo()
	cluster.Spec.MaxConcurrentJobs = number(2)
	return &cache, Seen{Record: newRecord(), Cluster: cluster}
}

// TestSeeLine_ReadsEachChangeOnce: a pass over one that waits takes none that has ended, and parses what has changed.
func TestSeeLine_ReadsEachChangeOnce(t *testing.T) {
	cache, seen := longQueue()
	r := &Reconciler{Client: cache, Clock: clocktesting.NewFakePassiveClock(now)}
	last := &cache.jobs[len(cache.jobs)-1]
	look := func() {
		if holders, err := r.seePosition(t.Context(), last, &seen, now); err != nil || len(holders) != 2 {
			t.Fatalf("%d run, %v", len(holders), err)
		}
	}
	look()
	if want := (Position{Most: 2, Running: 2, Place: 200}); seen.Position != want || cache.given != 202 {
		t.Errorf("it stands at %+v, of %d jobs, want %+v of 202", seen.Position, cache.given, want)
	}
	unended := slices.Clone(cache.jobs[5000:])
	if each := testing.AllocsPerRun(10, func() { r.Waiting.sortWaiting(unended, limited(), now) }); each > 20 { // validating one takes more
		t.Errorf("one more look at the queue allocates %.0f times", each)
	}
	cache.jobs[5002].Spec.Suspend, cache.jobs[5002].ResourceVersion = new(true), "changed"
	if look(); seen.Position.Place != 199 {
		t.Errorf("behind one that was suspended it stands at %d", seen.Position.Place)
	}
}

func BenchmarkWaiting(b *testing.B) {
	cache, _ := longQueue()
	unended, waiting := cache.jobs[5000:], new(WaitingJobs)
	for b.Loop() {
		waiting.sortWaiting(unended, limited(), now)
	}
}

// TestQueued_LooksAgain: the first ones soon, others the later the further behind they are.
func TestQueued_LooksAgain(t *testing.T) {
	for place, want := range map[int]time.Duration{1: 15 * time.Second, 8: 15 * time.Second, 9: 30 * time.Second, 16: 30 * time.Second, 200: 375 * time.Second} {
		if plan := decide(train(), seen(newRecord(), line(2, 2, place))); plan.Wake != want {
			t.Errorf("place %d: after %s, want %s", place, plan.Wake, want)
		}
	}
}

// TestPermits: what was given is known until long after it is over.
func TestPermits(t *testing.T) {
	var p permits
	p.keepUntil("a", now)
	p.keepUntil("b", now.Add(permitFor))
	if !p.lastUntil("a").Equal(now) || !p.lastUntil("b").Equal(now.Add(permitFor)) || !p.lastUntil("c").IsZero() {
		t.Errorf("permits %v", p.until)
	}
	p.keepUntil("c", now.Add(permitFor+2*reconcile.Recheck))
	if len(p.until) != 1 {
		t.Errorf("%v are kept", p.until)
	}
}

// limited is the cluster, on which one job may run at a time.
func limited() *v1beta1.ComputeCluster {
	cluster := demo()
	cluster.Spec.MaxConcurrentJobs = number(1)
	return cluster
}

// TestGangQueue: gangs gather in the order of their creation; plain jobs, and gangs that run or wait for a time, stand in no way.
func TestGangQueue(t *testing.T) {
	at := func(name string, seconds int64, edits ...edit) v1beta1.ClusterJob {
		job := train(append([]edit{gang}, edits...)...)
		job.Name, job.UID, job.CreationTimestamp = name, types.UID(name), metav1.Unix(ago(seconds), 0)
		return *job
	}
	holds := func(phase string, edits ...func(*Record)) edit {
		return func(j *v1beta1.ClusterJob) {
			j.UID = types.UID(j.Name)
			recorded(bound(edits...))(j)
			j.Status.Attempt, j.Status.Phase = 1, phase
		}
	}
	named := func(name string, seconds int64, phase string, edits ...func(*Record)) v1beta1.ClusterJob {
		job := at(name, seconds)
		holds(phase, edits...)(&job)
		return job
	}
	jobs := []v1beta1.ClusterJob{
		named("runs", 900, v1beta1.PhaseRunning), named("is-stopped", 800, v1beta1.PhaseGathering, ending(reason.Stopped, 5)),
		named("gathers", 500, v1beta1.PhaseGathering), at("suspended", 700, suspend),
		at("too-large", 650, func(j *v1beta1.ClusterJob) { j.Spec.Gang.Roles[0].Resources = cpus("64") }),
		at("first", 600), at("second", 400), at("third", 300), at("plain", 1000, func(j *v1beta1.ClusterJob) { j.Spec.Gang = nil }),
	}
	queued := new(WaitingJobs).sortWaiting(jobs, demo(), now)
	for name, want := range map[types.UID]struct {
		before string
		place  int
	}{"first": {"", 0}, "second": {"first", 2}, "third": {"first", 3}, "plain": {"", 0}, "too-large": {"", 0}} {
		if before, place := queued.gangBefore(name); before != want.before || place != want.place {
			t.Errorf("%s waits for %q at place %d, want %q at %d", name, before, place, want.before, want.place)
		}
	}
	if place := queued.placeOf("third"); place != 3 { // behind plain and first: second takes no place meanwhile
		t.Errorf("third waits at place %d, want 3", place)
	}
	larger := demo()
	larger.Spec.WorkerGroups[0].Replicas = number(5) // those that run, gather or are stopped, and two more
	queued = new(WaitingJobs).sortWaiting(jobs, larger, now)
	for name, want := range map[types.UID]string{"first": "", "second": "", "third": "first"} {
		if before, _ := queued.gangBefore(name); before != want {
			t.Errorf("where there is room for more, %s waits for %q, want %q", name, before, want)
		}
	}
	if next := new(WaitingJobs).Next(jobs, demo(), now); len(next) != 3 {
		t.Errorf("woken are %v", next)
	}
	plan := decide(train(gang), seen(newRecord(), func(s *Seen) { s.Position = Position{Gang: "first", GangPlace: 2} }))
	if have := gist(plan); have != "Pending GangQueued ask" || plan.Wake == 0 {
		t.Errorf("behind another gang: %s, again after %s", have, plan.Wake)
	}
}
