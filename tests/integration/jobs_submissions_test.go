package integration

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/bench/jobs"
	"github.com/heliostat-dev/heliostat/tests/internal/faultproxy"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// How the jobs of TestSubmissions come, and what befalls their requests.
const (
	submissions = 70 // unless HELIOSTAT_SUBMISSIONS gives another number
	wave        = 50
	// leastDisasters is how many disasters strike, even if all jobs are made before.
	leastDisasters = 12
	// open is how many jobs may be on their way before another wave comes.
	open = 150
	// stormClusters have a head each; disturbed is the share of requests that something
	// befalls, and latest the longest delay. What hangs holds its head up for seconds, so
	// there is less of it.
	stormClusters = 8
	disturbed     = 0.06
	hanging       = 0.001
	latest        = 2 * time.Second
)

// storm is what jobs have to come through.
type storm struct {
	t         *testing.T
	namespace string
	clusters  []types.NamespacedName
	crew      *crew
	// jobs are as they were seen last, and ends how each was when it had first ended.
	jobs cache.Cache
	mu   sync.Mutex
	ends map[types.UID]string
	// counts are what befell operators, heads, clusters and jobs.
	counts map[string]int
}

// patience is against hanging alone: jobs wait for operators that are killed and heads that
// are lost again and again, beside whatever else the machine does.
const patience = 5 * time.Minute

// TestSubmissions sends jobs through a storm, and counts by effect what became of them: each
// attempt runs once and no more, whatever is lost, late, doubled, killed, wiped or replaced.
func TestSubmissions(t *testing.T) {
	t.Parallel()
	many := number(t, "HELIOSTAT_SUBMISSIONS", submissions)
	s := newStorm(t)
	began, made := time.Now(), make(chan struct{})
	go func() {
		defer close(made)
		s.submit(many)
	}()
	s.rage(made)
	t.Logf("all were made after %v", rounded(time.Since(began)))
	if err := live.Until(t.Context(), patience, "all jobs to end", func(context.Context) error {
		if left := many - s.ended(); left > 0 {
			return fmt.Errorf("%d of %d have not", left, many)
		}
		return nil
	}); err != nil {
		s.explain()
		t.Fatal(err)
	}
	result := s.judge(many)
	result.Seconds = time.Since(began).Seconds()
	t.Logf("%s\nwhat befell them:\n%show attempts ended:\n%show jobs did:\n%s",
		result, table(result.Faults), table(result.Attempts), table(result.Ends))
	must(t, jobs.Save(result))
	for _, wrong := range result.Wrong {
		t.Error(wrong)
	}
	if result.Doubled+result.Lost > 0 {
		t.Errorf("%d runs were doubled, %d lost", result.Doubled, result.Lost)
	}
}

func newStorm(t *testing.T) *storm {
	t.Helper()
	log.SetLogger(logr.Discard()) // else the cache complains that there is none
	s := &storm{t: t, namespace: newNamespace(t), ends: map[types.UID]string{}, counts: map[string]int{}}
	headsIn(t, s.namespace, func(one *head) {
		willing(one)
		rates := faultproxy.Even(disturbed)
		rates[faultproxy.Hang] = hanging
		one.proxy.Fail(rates, latest)
	})
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	var err error
	s.jobs, err = cache.New(shared.Config, cache.Options{Scheme: shared.Scheme(), DefaultNamespaces: map[string]cache.Config{s.namespace: {}}})
	must(t, err)
	informer, err := s.jobs.GetInformer(ctx, &v1beta1.ClusterJob{})
	must(t, err)
	_, err = informer.AddEventHandler(watched(s.see))
	must(t, err)
	go func() {
		if err := s.jobs.Start(ctx); err != nil {
			t.Errorf("watch the jobs: %v", err)
		}
	}()
	s.jobs.WaitForCacheSync(ctx)
	s.crew = hire(t, s.namespace)
	s.clusters = create(t, s.namespace, stormClusters, 0)
	return s
}

// see remembers how a job was when it had ended first: that is for good.
func (s *storm) see(job *v1beta1.ClusterJob) {
	if !live.Ended(job) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.ends[job.UID]; !known {
		s.ends[job.UID] = job.Status.Phase
	}
}

func (s *storm) ended() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ends)
}

func (s *storm) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
}

// submit makes jobs in waves, each when enough of the former ones have ended.
func (s *storm) submit(many int) {
	for i := range many {
		if i%wave == 0 {
			err := live.Until(s.t.Context(), patience, "jobs to end", func(context.Context) error {
				if left := i - s.ended(); left > open-wave {
					return fmt.Errorf("%d have not", left)
				}
				return nil
			})
			if err != nil {
				s.t.Error(err)
				return
			}
		}
		if err := shared.Create(s.t.Context(), s.job(i)); err != nil {
			s.t.Errorf("make a job: %v", err)
			return
		}
	}
}

// explain tells of some jobs that have not ended what is known of them.
func (s *storm) explain() {
	var list v1beta1.ClusterJobList
	must(s.t, s.jobs.List(s.t.Context(), &list, client.InNamespace(s.namespace)))
	left := slices.DeleteFunc(list.Items, func(job v1beta1.ClusterJob) bool { return live.Ended(&job) })
	for i := range left[:min(len(left), 4)] {
		job := &left[i]
		s.t.Logf("%s: %s\nrecord %s\n%s", job.Name, live.SaysOf(job), job.Annotations[v1beta1.AnnotationRecord], s.crew.told(job.Name+`"`))
	}
	for _, one := range shared.heads.of(s.namespace) {
		if one.lives() {
			s.t.Logf("head of %s at %s in session %s: %v", one.cluster, one.address, one.fake.Session(), one.proxy.Counts())
		}
	}
}

// job is one of some sorts: most succeed, some fail, some succeed when they are tried again,
// and some are tried again when they are lost. A quarter are gangs.
func (s *storm) job(i int) *v1beta1.ClusterJob {
	codes, limit, losses, soon := "0", int32(0), int32(0), int32(1)
	switch i % 8 {
	case 0:
		codes = "1"
	case 1:
		codes, limit = "1,0", 2
	case 2:
		codes, limit, losses = "1,1,0", 2, 3
	case 3, 4:
		losses = 3
	}
	job := jobOn(s.clusters[i%len(s.clusters)], fmt.Sprintf("j%d", i), fmt.Sprintf("work %d %s", 100+rand.IntN(900), codes))
	if limit+losses > 0 {
		job.Spec.Retry = &v1beta1.Retry{Limit: limit, BackoffSeconds: &soon}
		if losses > 0 {
			job.Spec.Retry.InfrastructureLimit = &losses
		}
	}
	if i%8 == 2 || i%8 == 5 {
		return gangOf(job)
	}
	return job
}

// disaster is something that befalls more than one request.
type disaster struct {
	what string
	// times is how often it comes among the others.
	times  int
	strike func() error
}

func (s *storm) disasters() []disaster {
	return []disaster{
		{"leader killed", 2, func() error { s.crew.kill(); return nil }},
		{"leader paused, another took over", 1, func() error { s.crew.pause(); return nil }},
		{wiped, 6, func() error { return s.some(s.wipe) }},
		{forgotten, 6, func() error { return s.some(s.forget) }},
		{"head's pod deleted", 2, s.behead},
		{trapped, 3, s.trap},
		{"Ray's container began anew", 2, s.restart},
		{"cluster deleted and made again", 1, s.remake},
	}
}

// rage lets disasters strike, all sorts of them by turns in an order of chance, until all jobs
// are made and there were enough disasters.
func (s *storm) rage(made <-chan struct{}) {
	var next []disaster
	for struck := 0; ; struck++ {
		if len(next) == 0 {
			for _, d := range s.disasters() {
				next = append(next, slices.Repeat([]disaster{d}, d.times)...)
			}
			rand.Shuffle(len(next), func(i, j int) { next[i], next[j] = next[j], next[i] })
		}
		pause := time.After(time.Duration(100+rand.IntN(400)) * time.Millisecond)
		stop := made
		if struck < leastDisasters {
			stop = nil
		}
		select {
		case <-stop:
			return
		case <-pause:
		}
		if err := client.IgnoreNotFound(next[0].strike()); err != nil {
			s.t.Errorf("%s: %v", next[0].what, err)
		}
		if !slices.Contains([]string{wiped, forgotten, trapped}, next[0].what) {
			s.count(next[0].what)
		}
		next = next[1:]
	}
}

// some does something to a few jobs.
func (s *storm) some(do func(job *v1beta1.ClusterJob) error) error {
	var list v1beta1.ClusterJobList
	if err := s.jobs.List(s.t.Context(), &list, client.InNamespace(s.namespace)); err != nil {
		return fmt.Errorf("list the jobs: %w", err)
	}
	// Those that are on their way are the interesting ones.
	slices.SortFunc(list.Items, func(a, b v1beta1.ClusterJob) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	for range min(3, len(list.Items)) {
		if err := do(&list.Items[rand.IntN(min(len(list.Items), open))]); err != nil {
			return err
		}
	}
	return nil
}

// table makes lines of counts.
func table(counts map[string]int) string {
	var lines strings.Builder
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&lines, "%7d  %s\n", counts[what], what)
	}
	return lines.String()
}

// one gives a head that lives, of any of the clusters; nil if there is none at the moment.
func (s *storm) one() *head {
	alive := slices.DeleteFunc(shared.heads.of(s.namespace), func(one *head) bool { return !one.lives() })
	if len(alive) == 0 {
		return nil
	}
	return alive[rand.IntN(len(alive))]
}

// remake deletes a cluster, and makes it again under its name as soon as that is free.
func (s *storm) remake() error {
	name := s.clusters[rand.IntN(len(s.clusters))]
	if err := shared.Delete(s.t.Context(), &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}); err != nil {
		return fmt.Errorf("delete ComputeCluster %s: %w", name, err)
	}
	return live.Until(s.t.Context(), limit, "ComputeCluster "+name.Name+" to be made again", func(ctx context.Context) error {
		return shared.Create(ctx, newCluster(name.Namespace, name.Name, 0))
	})
}
