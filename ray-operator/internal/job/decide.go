package job

import (
	"slices"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/jobs"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// Seen is all that a pass knows of the world.
type Seen struct {
	// Record is valid when RecordError is nil.
	Record      Record
	RecordError error
	// Cluster is the one that the job runs on, or is to: the one it refers to, or its own of
	// the record's number. Nil if there is none.
	Cluster *v1beta1.ComputeCluster
	// Former are the job's own clusters of other numbers; Remains is how many pods there are
	// of clusters that the job has no more use for, but those that are Stranded on lost nodes.
	Former   []*v1beta1.ComputeCluster
	Remains  int
	Stranded []*corev1.Pod
	// Head is the pod that the attempt is bound to, or where none is bound the cluster's
	// head. Nil if it is not there, or has ended. LastHead is that of the attempt before.
	Head, LastHead *corev1.Pod
	// Queue is the job's place in a queue of Kueue, and Alive whether a cluster or a pod of its own is there.
	Queue kueue.Seen
	Alive bool
	// Position is where the job stands among those that wait for the cluster.
	Position Position
	// Answer is what the head said last, if Heard.
	Answer jobs.Answer
	Heard  bool
	// PlaceLost: a worker of the bound gang's cluster is gone, or on its way, as the operator sees itself.
	PlaceLost bool
}

// Position is where a job stands among those that wait for a place on its cluster.
type Position struct {
	// Most is how many may run there, 0 without a bound; Running how many do.
	Most, Running int
	// Place in the queue, from 1.
	Place int
	// Gang is the job whose gang gathers its places there before that of this job, empty where none does. GangPlace is the
	// job's place among the gangs that wait, from 1.
	Gang      string
	GangPlace int
}

// planner is a plan in the making, with what it is made from.
type planner struct {
	Plan
	view
}

// steps are asked in turn. The first that reports true has decided.
var steps = []func(*planner) bool{
	rejectDamagedRecord, // nothing else is known of the job
	stopDeletedJob,
	cleanUpEndedJob,
	continueStop,       // of an attempt, whatever it was begun for
	followEndedAttempt, // with another one, or with the job's end
	stopOnRequest,
	rejectInvalidSpec,
	collectLastLines, // of the attempt before
	suspendJob,
	enforceDeadlines,
	runAttempt, // a cluster, its head, a place there, the submission
}

// Decide returns what to do about a job and what to say of it: the queue first, then the steps. It is pure and total.
func Decide(job *v1beta1.ClusterJob, seen Seen, now time.Time) Plan {
	had := slices.Contains(job.Finalizers, v1beta1.FinalizerRun)
	p := planner{view: view{job: job, seen: seen, record: seen.Record, now: now}, Plan: Plan{Finalizer: had}}
	p.lack = findLack(p.view)
	p.Queue = queueAnswer(p.view)
	p.wakeIn(queueRecheck(&seen))
	for _, step := range steps {
		if step(&p) {
			break
		}
	}
	planClaims(&p)
	if p.record.String() != recordedText(job, &seen) || p.Finalizer != had {
		p.Record = &p.record
	}
	return p.Plan
}

// planClaims plans changes of the claims of the job's shared volumes while no cluster is made: they follow the spec, and what the
// API server refused of that is tried again. While pods of the job's cluster cannot mount one, those that are missing are made.
func planClaims(p *planner) {
	claims, former := desired.JobClaims(p.job), meta.FindStatusCondition(p.job.Status.Conditions, v1beta1.ConditionUpToDate)
	if len(claims) == 0 {
		return
	}
	if former != nil {
		p.Unchanged = &reason.Finding{Code: former.Reason, Text: former.Message} // until it is tried again
	}
	if p.Make != nil || p.job.DeletionTimestamp != nil {
		return
	}
	p.Remake = lacksVolume(p.view)
	isEdited := p.job.Status.ObservedGeneration != p.job.Generation
	if !isEdited && !p.Remake && former == nil {
		return
	}
	p.Claims, p.IsRetry = claims, !isEdited
	if former != nil || p.Remake {
		p.wakeIn(reconcile.Recheck)
	}
}

// lacksVolume reports whether the job's own cluster is to have pods, and they cannot mount a shared volume.
func lacksVolume(v view) bool {
	cluster := v.seen.Cluster
	return v.hasOwnCluster() && v.record.Outcome.Phase == "" && cluster != nil && cluster.DeletionTimestamp == nil &&
		!ptr.Deref(cluster.Spec.Suspend, false) && meta.IsStatusConditionTrue(cluster.Status.Conditions, v1beta1.ConditionVolumeNotReady)
}

// recordedText returns the record that the annotation has. A record that was removed is written again, unless the
// job has not begun: else the next to lose its status would have lost everything.
func recordedText(job *v1beta1.ClusterJob, seen *Seen) string {
	if there, _ := writtenRecord(job); there == nil && seen.RecordError == nil {
		blank := newRecord()
		return blank.String()
	}
	return seen.Record.String()
}

// rejectDamagedRecord stalls a job whose record cannot be read.
func rejectDamagedRecord(p *planner) bool {
	if p.seen.RecordError == nil {
		return false
	}
	p.setPhase(p.job.Status.Phase, reason.RecordDamaged.Of(p.seen.RecordError))
	p.Stalled = true
	if p.job.DeletionTimestamp != nil {
		p.Finalizer = false // what to stop is not known, and a deletion is never kept from its end
	}
	return true
}

// rejectInvalidSpec stalls a job that is invalid, unless an attempt is under way.
func rejectInvalidSpec(p *planner) bool {
	errs := validate.Job(p.job).ErrorList()
	if len(errs) == 0 || p.isBound() {
		return false // what is under way was valid when it was bound
	}
	if p.Queue.Held && p.job.Spec.ClusterRef == nil {
		vacateCluster(p) // an error keeps no quota from others
	}
	p.setPhase(v1beta1.PhasePending, reason.InvalidSpec.Of(errs.ToAggregate()))
	p.Stalled = true
	return true
}
