package job

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"sync"
	"time"

	"k8s.io/utils/ptr"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
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

// Gathers reports whether a job's gang waits for its places: an attempt is bound and not being stopped, and its processes do not
// run.
func Gathers(job *v1beta1.ClusterJob) bool {
	record, err := recallRecord(job)
	return err == nil && gathers(job, record)
}

func gathers(job *v1beta1.ClusterJob, record Record) bool {
	isRunning := job.Status.Attempt == record.Attempt && job.Status.Phase == v1beta1.PhaseRunning
	return gangOf(&job.Spec) != nil && record.Bound.Head != "" && record.Ending == "" && !isRunning
}

// Holds reports whether a job has a place on its cluster: an attempt of it is bound.
func Holds(job *v1beta1.ClusterJob) bool {
	record, err := recallRecord(job)
	return err == nil && record.Bound.Head != "" && record.Outcome.Phase == ""
}

// WaitingJobs remembers what was read of jobs in the queues of clusters, so that each change of a job is read once. The
// zero value is ready.
type WaitingJobs struct {
	once  sync.Once
	known *lru.Cache
}

// mostKnown bounds how many jobs a WaitingJobs remembers. Others are read each time.
const mostKnown = 10_000

// queueEntry is what a job's place in the queue depends on, as of one version of the job.
type queueEntry struct {
	name    types.NamespacedName
	uid     types.UID
	version string
	created metav1.Time
	record  Record
	backoff time.Duration
	// holds: it has a place. ready: nothing but the pause after an attempt keeps it from the queue.
	holds, ready bool
	// gang is what the job's processes need, nil for a plain job. gathers: it has a place, and waits for those of its processes.
	gang    *v1beta1.Gang
	gathers bool
}

// entryOfJob reads a job. One that is invalid, as under the rules of a later operator, cannot go, and keeps nobody
// behind it.
func entryOfJob(job *v1beta1.ClusterJob) *queueEntry {
	s := &queueEntry{
		name: types.NamespacedName{Namespace: job.Namespace, Name: job.Name}, uid: job.UID, version: job.ResourceVersion, created: job.CreationTimestamp,
	}
	var err error
	if s.record, err = recallRecord(job); err != nil || s.record.Outcome.Phase != "" {
		return s
	}
	s.backoff, s.holds = retryDelay(job.Spec.Retry, s.record), s.record.Bound.Head != ""
	s.gang, s.gathers = gangOf(&job.Spec), gathers(job, s.record)
	s.ready = !s.holds && !ptr.Deref(job.Spec.Suspend, false) && !isStopAsked(job) && job.DeletionTimestamp == nil && IsManaged(job) && len(validate.Job(job)) == 0
	return s
}

// isWaiting reports whether the job stands in the queue of its cluster now.
func (s *queueEntry) isWaiting(now time.Time) bool {
	return s.ready && !now.Before(s.record.endedAt(now).Add(s.backoff)) && !s.isHolding(now)
}

// isHolding reports whether the job has a place now: also after an attempt whose processes may still run.
func (s *queueEntry) isHolding(now time.Time) bool {
	return s.holds || now.Before(time.Unix(s.record.Hold, 0)) && s.record.Outcome.Phase == ""
}

// compare orders jobs by their creation.
func (s *queueEntry) compare(other *queueEntry) int {
	return cmp.Or(s.created.Compare(other.created.Time), cmp.Compare(s.uid, other.uid))
}

// readEntry returns what a job's place in the queue depends on.
func (w *WaitingJobs) readEntry(job *v1beta1.ClusterJob) *queueEntry {
	w.once.Do(func() { w.known = lru.New(mostKnown) })
	if known, ok := w.known.Get(job.UID); ok {
		if s, is := known.(*queueEntry); is && s.version == job.ResourceVersion {
			return s
		}
	}
	s := entryOfJob(job)
	w.known.Add(job.UID, s)
	return s
}

// queued are the jobs of a cluster that have not ended, by how they stand.
type queued struct {
	// waiting are those that wait, in the order of their creation.
	waiting []*queueEntry
	// holders have a place.
	holders []types.UID
	// gangs are those that wait for a place or for those of their processes, in the order of their creation; working are those
	// whose processes run.
	gangs, working []*queueEntry
	// room is what the cluster can have.
	room func() room
}

// sortWaiting sorts the jobs of a cluster that have not ended. A gang that the cluster can never hold is in no queue.
func (w *WaitingJobs) sortWaiting(jobs []v1beta1.ClusterJob, cluster *v1beta1.ComputeCluster, now time.Time) queued {
	all := queued{room: sync.OnceValue(func() room { return roomOf(cluster) })}
	isJudged := isJudgeable(cluster, false)
	for i := range jobs {
		s := w.readEntry(&jobs[i])
		switch {
		case s.isHolding(now):
			all.holders = append(all.holders, s.uid)
		case !s.isWaiting(now), isJudged && s.gang != nil && all.room().lacks(s.gang) != "":
			continue
		default:
			all.waiting = append(all.waiting, s)
		}
		switch {
		case s.gang == nil:
		case s.gathers, !s.isHolding(now):
			all.gangs = append(all.gangs, s)
		default:
			all.working = append(all.working, s)
		}
	}
	slices.SortFunc(all.waiting, (*queueEntry).compare)
	slices.SortFunc(all.gangs, (*queueEntry).compare)
	return all
}

// placeOf returns the place of a job among those that wait, from 1; 0 where it does not. A gang that waits for an older one takes
// no place from those behind it.
func (q queued) placeOf(job types.UID) int {
	blocked, place := q.gangs[q.firstBlocked():], 1
	for _, s := range q.waiting {
		switch {
		case s.uid == job:
			return place
		case s.gang == nil || len(blocked) == 0 || s.compare(blocked[0]) < 0:
			place++
		}
	}
	return 0
}

// gangBefore returns the job whose gang gathers before that of a job that waits, and the place of that among the gangs that wait,
// from 1; nothing where it is the first, or the cluster can hold it beside all gangs that run or come before it.
func (q queued) gangBefore(job types.UID) (string, int) {
	at := slices.IndexFunc(q.gangs, func(s *queueEntry) bool { return s.uid == job })
	if at < q.firstBlocked() {
		return "", 0
	}
	place := 1
	for _, s := range q.gangs[:at] {
		if !s.gathers {
			place++
		}
	}
	return q.gangs[0].name.Name, place
}

// firstBlocked returns the index of the first gang that the cluster may not hold beside all that run, gather or are older. It cannot
// hold those after it either.
func (q queued) firstBlocked() int {
	return sort.Search(len(q.gangs), func(at int) bool {
		if at == 0 {
			return false
		}
		var together []*v1beta1.Gang
		for i, s := range q.gangs {
			if i <= at || s.gathers {
				together = append(together, s.gang)
			}
		}
		for _, s := range q.working {
			together = append(together, s.gang)
		}
		return !q.room().holdsTogether(together)
	})
}

// Next are the first of those that wait for a cluster, of all its jobs that have not ended: for a place, where it has a maximum,
// and else for the places of their gangs.
func (w *WaitingJobs) Next(jobs []v1beta1.ClusterJob, cluster *v1beta1.ComputeCluster, now time.Time) []types.NamespacedName {
	waiting := w.sortWaiting(jobs, cluster, now).waiting
	if cluster.Spec.MaxConcurrentJobs == nil {
		waiting = slices.DeleteFunc(waiting, func(s *queueEntry) bool { return s.gang == nil })
	}
	var names []types.NamespacedName
	for _, s := range waiting[:min(len(waiting), nextAtOnce)] {
		names = append(names, s.name)
	}
	return names
}

// nextAtOnce is how many of those that wait are looked at when a place may have become
// free; each that takes one has the next looked at.
const nextAtOnce = 8

// recheckAfter is after how long a job that waits at a place looks again by itself. Next wakes the first ones in time, so the
// others only keep the place right that they tell of, the more rarely the further behind they are.
func recheckAfter(place int) time.Duration {
	return reconcile.Recheck * time.Duration(1+(place-1)/nextAtOnce)
}
