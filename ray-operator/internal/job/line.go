package job

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// Places remembers who has just taken a place on a cluster, as long as the cache may not
// show it. The zero value is ready.
type Places struct {
	mu    sync.Mutex
	taken map[types.NamespacedName]map[types.UID]time.Time
}

// unseenFor is how long a place that was taken counts though the cache does not show it.
const unseenFor = 30 * time.Second

// Take gives a job a place on a cluster that lets so many run, of which the holders are
// known; false where there is none left.
func (p *Places) Take(cluster types.NamespacedName, job types.UID, most int, holders []types.UID, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken == nil {
		p.taken = map[types.NamespacedName]map[types.UID]time.Time{}
	}
	for other := range p.taken {
		maps.DeleteFunc(p.taken[other], func(_ types.UID, at time.Time) bool { return now.Sub(at) > unseenFor })
		if len(p.taken[other]) == 0 {
			delete(p.taken, other)
		}
	}
	if p.taken[cluster] == nil {
		p.taken[cluster] = map[types.UID]time.Time{}
	}
	held := len(holders)
	for uid := range p.taken[cluster] {
		if uid != job && !slices.Contains(holders, uid) {
			held++
		}
	}
	if held >= most && !slices.Contains(holders, job) {
		return false
	}
	p.taken[cluster][job] = now
	return true
}

// Leave gives a place back, if it was taken and not seen.
func (p *Places) Leave(cluster types.NamespacedName, job types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.taken[cluster], job)
	if len(p.taken[cluster]) == 0 {
		delete(p.taken, cluster)
	}
}

// Holds reports whether a job has a place on its cluster: an attempt of it is bound.
func Holds(job *v1alpha1.ClusterJob) bool {
	record, err := recall(job)
	return err == nil && record.Bound.Head != "" && record.Outcome.Phase == ""
}

// waits reports whether a job stands in the queue for its cluster now. One that is invalid, as under
// the rules of a later operator, cannot go, and keeps nobody behind it.
func waits(job *v1alpha1.ClusterJob, now time.Time) bool {
	record, err := recall(job)
	if err != nil || record.Bound.Head != "" || record.Outcome.Phase != "" {
		return false
	}
	if job.Spec.Suspend || isStopAsked(job) || job.DeletionTimestamp != nil || !IsManaged(job) {
		return false
	}
	p := planner{job: job, record: record}
	return !now.Before(record.ended(now).Add(p.backoff())) && len(validate.Job(job)) == 0
}

// inLine sorts the jobs that wait by the order of their creation.
func inLine(jobs []v1alpha1.ClusterJob, now time.Time) []*v1alpha1.ClusterJob {
	var line []*v1alpha1.ClusterJob
	for i := range jobs {
		if waits(&jobs[i], now) {
			line = append(line, &jobs[i])
		}
	}
	slices.SortFunc(line, func(a, b *v1alpha1.ClusterJob) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	return line
}

// Next are the first of those that wait for a place on a cluster, of all its jobs.
func Next(jobs []v1alpha1.ClusterJob, now time.Time) []types.NamespacedName {
	var names []types.NamespacedName
	for _, job := range inLine(jobs, now) {
		names = append(names, types.NamespacedName{Namespace: job.Namespace, Name: job.Name})
	}
	return names[:min(len(names), nextAtOnce)]
}

// nextAtOnce is how many of those that wait are looked at when a place may have become
// free; each that takes one has the next looked at.
const nextAtOnce = 8
