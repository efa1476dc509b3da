package testkit

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/job"
)

// jobsKnown is what a History knows of jobs.
type jobsKnown struct {
	// known are all jobs by their UIDs, those that are gone included.
	known map[types.UID]*jobKnown
	// moves are the changes of phase that were told.
	moves map[job.Move]bool
	// ownerOf tells whose own cluster one is, or was, by its UID.
	ownerOf map[types.UID]types.UID
}

// jobKnown is a job and what was said of it that cannot be taken back.
type jobKnown struct {
	*v1beta1.ClusterJob
	gone bool
	// phase was told last, attempt is the highest number of the record; ended is the outcome
	// that the record had first.
	phase   string
	attempt int32
	ended   job.Outcome
	// named is to what the record has bound each attempt, ran what began where.
	named map[int32]job.Bound
	ran   map[int32]Run
}

func newJobHistory() jobsKnown {
	return jobsKnown{known: map[types.UID]*jobKnown{}, moves: map[job.Move]bool{}, ownerOf: map[types.UID]types.UID{}}
}

// Moves are the changes of phase that jobs were told to have made.
func (h *History) Moves() []job.Move {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []job.Move
	for move := range h.jobs.moves {
		all = append(all, move)
	}
	return all
}

// job takes a revision of a job in.
func (h *History) job(event Event, obj *v1beta1.ClusterJob) {
	known := h.jobs.known[obj.UID]
	if known == nil {
		known = &jobKnown{named: map[int32]job.Bound{}, ran: map[int32]Run{}}
		h.jobs.known[obj.UID] = known
	} else if event.Own && known.Generation != obj.Generation {
		h.fault("the operator changed the spec of %s", obj.Name)
	}
	known.ClusterJob = obj
	if !event.Own {
		return // other writers may do what they like
	}
	if record, err := job.ParseRecord(obj.Annotations[v1beta1.AnnotationRecord]); err == nil {
		h.jobRecord(known, record)
	}
	h.jobStatus(known)
	h.checkPlaces(known)
}

// jobRecord checks what a record may not take back.
func (h *History) jobRecord(known *jobKnown, record job.Record) {
	if record.Attempt < known.attempt && record.Outcome.Phase == "" {
		h.fault("%s went back from attempt %d to %d", known.Name, known.attempt, record.Attempt)
	}
	known.attempt = max(known.attempt, record.Attempt)
	for i := 1; i < len(record.Past); i++ {
		if record.Past[i].Number <= record.Past[i-1].Number {
			h.fault("attempt %d of %s ended after attempt %d", record.Past[i-1].Number, known.Name, record.Past[i].Number)
		}
	}
	if record.Bound.Head != "" {
		h.jobBound(known, record)
	}
	if known.ended.Phase != "" && (record.Outcome.Phase != known.ended.Phase || record.Outcome.Reason != known.ended.Reason) {
		h.fault("the outcome of %s was %+v, and then %+v", known.Name, known.ended, record.Outcome)
	}
	if known.ended.Phase == "" {
		known.ended = record.Outcome
	}
}

// jobBound checks that what is bound is never unbound, and nothing is after the end.
func (h *History) jobBound(known *jobKnown, record job.Record) {
	bound := record.Bound
	before, named := known.named[record.Attempt]
	if named && (before.Head != bound.Head || before.Session != bound.Session || before.UID != bound.UID) {
		h.fault("attempt %d of %s was bound to %+v, and then to %+v", record.Attempt, known.Name, before, bound)
	}
	known.named[record.Attempt] = bound
	if known.ended.Phase != "" {
		h.fault("attempt %d of %s was bound after the end", record.Attempt, known.Name)
	}
}

// jobStatus checks what a status may not take back.
func (h *History) jobStatus(known *jobKnown) {
	status := &known.Status
	if status.Phase != "" && status.Phase != known.phase {
		move := job.Move{From: known.phase, To: status.Phase}
		h.jobs.moves[move] = true
		if !job.Reachable(known.phase, status.Phase) {
			h.fault("%s was %q and then %q, which is no way", known.Name, known.phase, status.Phase)
		}
		known.phase = status.Phase
	}
	if status.Phase == "" {
		return
	}
	complete := meta.IsStatusConditionTrue(status.Conditions, v1beta1.ConditionComplete)
	failed := meta.IsStatusConditionTrue(status.Conditions, v1beta1.ConditionFailed)
	over := slices.Contains([]string{v1beta1.PhaseSucceeded, v1beta1.PhaseFailed, v1beta1.PhaseStopped}, status.Phase)
	finished := meta.IsStatusConditionTrue(status.Conditions, v1beta1.ConditionFinished)
	switch {
	case complete && failed, finished != over, complete != (status.Phase == v1beta1.PhaseSucceeded), over != (complete || failed):
		h.fault("%s is %s and says Complete %v, Failed %v, Finished %v", known.Name, status.Phase, complete, failed, finished)
	case over && known.ended.Phase != status.Phase:
		h.fault("%s says %s, and its outcome is %+v", known.Name, status.Phase, known.ended)
	}
	if !slices.IsSortedFunc(status.Attempts, func(a, b v1beta1.JobAttempt) int {
		if a.Number < b.Number {
			return -1
		}
		return 1
	}) {
		h.fault("the attempts of %s are told out of order", known.Name)
	}
}

// checkPlaces looks for a cluster on which more jobs hold a place than may. An operator that
// sees the past is kept from that by nothing but its memory.
func (h *History) checkPlaces(changed *jobKnown) {
	for _, cluster := range h.clusters {
		if h.past || cluster.jobs == 0 || !changed.holds(cluster.Name) {
			continue
		}
		count := int32(0)
		for _, other := range h.jobs.known {
			if other.holds(cluster.Name) {
				count++
			}
		}
		if count > cluster.jobs {
			h.fault("%d jobs hold places on %s, which has %d", count, cluster.Name, cluster.jobs)
		}
	}
}

// holds reports whether a job has a place on a cluster that is not its own.
func (k *jobKnown) holds(cluster string) bool {
	return !k.gone && k.Spec.ClusterRef != nil && k.Spec.ClusterRef.Name == cluster && job.Holds(k.ClusterJob)
}

// Submitted is told that a head took a submission: the record must name that head and session
// for the attempt, and the job must not have ended.
func (h *History) Submitted(run Run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.jobs.known[run.Job]
	if known == nil {
		h.fault("%s is of no job", run.ID)
		return
	}
	if bound := known.named[run.Attempt]; bound.Head != run.Head || bound.Session != run.Session {
		h.fault("attempt %d of %s was submitted to %s in %s, and is bound to %+v", run.Attempt, known.Name, run.Head, run.Session, bound)
	}
	if known.ended.Phase != "" {
		h.fault("attempt %d of %s was submitted after the end", run.Attempt, known.Name)
	}
}

// Began is told that a run began: it must be the first of its attempt.
func (h *History) Began(run Run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.jobs.known[run.Job]
	if known == nil {
		return // someone else's
	}
	if before, twice := known.ran[run.Attempt]; twice {
		h.fault("attempt %d of %s ran on %s in %s, and again on %s in %s", run.Attempt, known.Name, before.Head, before.Session, run.Head, run.Session)
	}
	known.ran[run.Attempt] = run
}

// checkOwn looks at a cluster that a job just made for itself: none of the job's others may be
// there, nor any pod of theirs. One that someone deleted is made again under its name.
func (h *History) checkOwn(event Event, made *v1beta1.ComputeCluster) {
	owner := metav1.GetControllerOf(made)
	if owner == nil || owner.Kind != jobKind || made.Labels[v1beta1.LabelJob] == "" || event.Type != watch.Added {
		return // without the label it is somebody else's
	}
	h.jobs.ownerOf[made.UID] = owner.UID
	if h.past {
		return
	}
	for uid, other := range h.clusters {
		if uid != made.UID && h.jobs.ownerOf[uid] == owner.UID {
			h.fault("%s was made though %s of the same job is there", made.Name, other.Name)
		}
	}
	for _, pod := range h.pods {
		ref := metav1.GetControllerOf(pod)
		if ref != nil && ref.Name != made.Name && h.jobs.ownerOf[ref.UID] == owner.UID && h.holdsUp(pod) {
			h.fault("%s was made though pod %s of the job's former cluster is there", made.Name, pod.Name)
		}
	}
}

// mayChange reports whether the operator may change a cluster's spec as it did: one that a job
// made for itself is suspended, or its workers are; one that a service made follows its template.
func mayChange(before, after *v1beta1.ComputeCluster) bool {
	owner := metav1.GetControllerOf(after)
	if owner != nil && owner.Kind == serviceKind {
		return true
	}
	if owner == nil || owner.Kind != jobKind || after.Labels[v1beta1.LabelJob] != owner.Name {
		return false
	}
	whole, workers := before.DeepCopy(), before.DeepCopy()
	whole.Spec.Suspend = new(true)
	for i := range workers.Spec.WorkerGroups {
		workers.Spec.WorkerGroups[i].Suspend = new(true)
	}
	return equality.Semantic.DeepEqual(after.Spec, whole.Spec) || equality.Semantic.DeepEqual(after.Spec, workers.Spec)
}
