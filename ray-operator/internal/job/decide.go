package job

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/headwatch/runs"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pass"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
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
	Cluster *v1alpha1.ComputeCluster
	// Former are the job's own clusters of other numbers; Remains is how many pods there are
	// of clusters that the job has no more use for, but those that are Stranded on lost nodes.
	Former   []*v1alpha1.ComputeCluster
	Remains  int
	Stranded []*corev1.Pod
	// Head is the pod that the attempt is bound to, or where none is bound the cluster's
	// head. Nil if it is not there, or has ended. LastHead is that of the attempt before.
	Head, LastHead *corev1.Pod
	// Queue is the job's place in a queue of Kueue, and Alive whether a cluster or a pod of its own is there.
	Queue kueue.Seen
	Alive bool
	// Line is where the job stands among those that wait for the cluster.
	Line Line
	// Answer is what the head said last, if Heard.
	Answer runs.Answer
	Heard  bool
}

// Line is where a job stands among those that wait for a place on its cluster.
type Line struct {
	// Most is how many may run there, 0 without a bound; Running how many do.
	Most, Running int
	// Place in the queue, from 1.
	Place int
}

// planner is a plan in the making, with what it is made from.
type planner struct {
	Plan
	job    *v1alpha1.ClusterJob
	seen   Seen
	now    time.Time
	record Record
}

// guards are asked in turn until one has decided.
var guards = []func(*planner) bool{
	(*planner).unreadable, (*planner).going, (*planner).finished, (*planner).ending, (*planner).judged, (*planner).stop,
	(*planner).invalid, (*planner).settle, (*planner).suspend, (*planner).late, (*planner).step,
}

// Decide says what to do about a job and what to tell of it. It is pure and total.
func Decide(job *v1alpha1.ClusterJob, seen Seen, now time.Time) Plan {
	p := planner{job: job, seen: seen, now: now, record: seen.Record}
	p.Finalizer = isKept(job)
	p.queue()
	had := p.Finalizer
	for _, guard := range guards {
		if guard(&p) {
			break
		}
	}
	if p.record.String() != recorded(job, &seen) || p.Finalizer != had {
		p.Record = &p.record
	}
	return p.Plan
}

// recorded is what stands written. A record that was removed is written again, unless the
// job has not begun: else the next to lose its status would have lost everything.
func recorded(job *v1alpha1.ClusterJob, seen *Seen) string {
	if there, _ := written(job); there == nil && seen.RecordError == nil {
		blank := fresh()
		return blank.String()
	}
	return seen.Record.String()
}

func (p *planner) id() string { return naming.Submission(p.job.Name, p.job.UID, p.record.Attempt) }

// own reports whether the job has a cluster of its own.
func (p *planner) own() bool { return p.job.Spec.ClusterTemplate != nil }

// bound reports whether an attempt is bound to a head.
func (p *planner) bound() bool { return p.record.Bound.Head != "" }

// clusterName is the name of the cluster that the job runs on, or is to.
func (p *planner) clusterName() string { return clusterName(p.job, p.record) }

func clusterName(job *v1alpha1.ClusterJob, record Record) string {
	switch {
	case record.Bound.Head != "":
		return record.Bound.Cluster
	case job.Spec.ClusterRef != nil:
		return job.Spec.ClusterRef.Name
	default:
		return naming.JobCluster(job.Name, job.UID, record.Own)
	}
}

func (p *planner) unreadable() bool {
	if p.seen.RecordError == nil {
		return false
	}
	p.say(p.job.Status.Phase, reason.RecordDamaged.Of(p.seen.RecordError))
	p.Stalled = true
	if p.job.DeletionTimestamp != nil {
		p.Finalizer = false // what to stop is not known, and a deletion is never kept from its end
	}
	return true
}

// going manages a job that is being deleted: what runs on a cluster of others is
// stopped, and what runs on its own goes with that.
func (p *planner) going() bool {
	if p.job.DeletionTimestamp == nil {
		return false
	}
	p.say(p.job.Status.Phase, p.ask("it is being deleted"))
	if !p.Finalizer || p.own() || !p.bound() || p.record.Outcome.Phase != "" {
		p.Finalizer, p.Ask = false, nil
		return true
	}
	f, is := p.fate()
	due := p.job.DeletionTimestamp.Add(stopFor)
	switch {
	case is:
		p.lose(f)
		p.Finalizer, p.Ask = false, nil
	case !p.now.Before(due):
		p.abandon()
		p.Finalizer, p.Ask = false, nil
	default:
		p.wakeIn(due.Sub(p.now))
		p.lookAgain()
	}
	return true
}

func (p *planner) invalid() bool {
	errs := validate.Job(p.job).ErrorList()
	if len(errs) == 0 || p.bound() {
		return false // what is under way was valid when it was bound
	}
	if p.Queue.Held && p.job.Spec.ClusterRef == nil {
		p.rest() // an error keeps no quota from others
	}
	p.say(v1alpha1.PhasePending, reason.InvalidSpec.Of(errs.ToAggregate()))
	p.Stalled = true
	return true
}

// judged ends an attempt that has come to its end by itself.
func (p *planner) judged() bool {
	if !p.bound() {
		return false
	}
	f, is := p.fate()
	if is {
		p.follow(f)
	}
	return is
}

// settle reads the last lines of an attempt again whose end was recorded and not told,
// and says that they are lost where its head is gone.
func (p *planner) settle() bool {
	if p.bound() || told(p.job, &p.record) {
		return false
	}
	p.collect()
	return true
}

// told reports whether the status has the last attempt with its lines.
func told(job *v1alpha1.ClusterJob, record *Record) bool {
	if len(record.Past) == 0 {
		return true
	}
	entry := attempt(job.Status.Attempts, record.Past[len(record.Past)-1].Number)
	return entry != nil && entry.LogState != ""
}

// collect is for an attempt that is over and whose lines are not in the status.
func (p *planner) collect() {
	past := p.record.Past[len(p.record.Past)-1]
	entry := entryOf(past)
	describe(&entry, p.record.Last)
	if former := attempt(p.job.Status.Attempts, past.Number); former != nil {
		entry.Message = former.Message
	}
	p.Done = &entry
	p.say(v1alpha1.PhaseRetrying, reason.Collecting.Of(past.Number))
	if p.held() {
		p.Phase = v1alpha1.PhaseSuspending
	}
	if p.seen.LastHead != nil && !untaken(past) { // until the status has them: what nobody asks for is forgotten
		p.Ask = &Ask{Head: p.seen.LastHead, ID: naming.Submission(p.job.Name, p.job.UID, past.Number), Session: p.record.Last.Session}
	}
	if entry.LastLines, entry.LogState = p.output(past); entry.LogState != "" {
		p.wakeIn(soon)
	} else {
		p.wakeIn(pass.Recheck)
	}
}

// untaken reports whether an attempt ended because Ray did not take it: what is there under its
// name, if anything, is somebody else's.
func untaken(past Past) bool {
	return past.Reason == reason.SubmissionForeign.Code || past.Reason == reason.SubmissionRefused.Code
}

// output is what there is of the last lines of an attempt that is over, with no state while
// they are being read.
func (p *planner) output(past Past) ([]string, v1alpha1.LogState) {
	answer := &p.seen.Answer
	switch {
	case untaken(past):
		return nil, v1alpha1.LogComplete
	case p.seen.LastHead == nil:
		return nil, v1alpha1.LogLost
	case !p.seen.Heard:
		return nil, ""
	case answer.Tailed:
		f := p.ended(answer.Job)
		return f.lines, f.log
	case p.silent(), answer.Session.Name != "" && answer.Session.Name != p.record.Last.Session:
		return nil, v1alpha1.LogLost
	case !answer.Asked.IsZero() && !answer.Job.Status.Over(): // it is not there, or was given up
		return nil, v1alpha1.LogLost
	default:
		return nil, ""
	}
}

// soon is when to look again for what only the status was waiting for.
const soon = 100 * time.Millisecond

// late ends what took too long.
func (p *planner) late() bool {
	spec := &p.job.Spec
	began := p.job.CreationTimestamp.Time
	if p.record.Began > 0 {
		began = time.Unix(p.record.Began, 0)
	}
	ran := p.ran()
	switch {
	case ran.IsZero() && p.over(spec.StartDeadlineSeconds, began):
		p.end(reason.StartDeadlineExceeded.Of(*spec.StartDeadlineSeconds, p.waited()))
	case !ran.IsZero() && p.over(spec.ActiveDeadlineSeconds, ran):
		p.end(reason.DeadlineExceeded.Of(*spec.ActiveDeadlineSeconds))
	case spec.Retry != nil && p.bound() && !p.started().IsZero() && p.over(spec.Retry.AttemptDeadlineSeconds, p.started()):
		p.end(reason.AttemptDeadlineExceeded.Of(*spec.Retry.AttemptDeadlineSeconds))
	default:
		return false
	}
	return true
}

// over reports whether a time that counts from a moment is over, and wakes the job when not.
func (p *planner) over(limit *int32, from time.Time) bool {
	if limit == nil {
		return false
	}
	left := from.Add(time.Duration(*limit) * time.Second).Sub(p.now)
	p.wakeIn(left)
	return left <= 0
}

// waited is what the job was waiting for when its deadline was over.
func (p *planner) waited() string {
	before := p.now.Add(-time.Nanosecond)
	trial := planner{job: p.job, seen: p.seen, now: before, record: p.record}
	if trial.bound() {
		trial.attend()
	} else {
		trial.step()
	}
	return trial.Finding.Text
}

// started is when the bound attempt was first seen to run, ran when the job first was,
// since it was resumed last. Zero if it was not. What Ray calls the start of a job is its
// submission, so that counts only for one that was over before anyone looked.
func (p *planner) started() time.Time {
	if entry := attempt(p.job.Status.Attempts, p.record.Attempt); entry != nil && entry.StartTime != nil {
		return entry.StartTime.Time
	}
	switch job := &p.seen.Answer.Job; {
	case !p.seen.Heard || !p.seen.Answer.Known || job.Status == headclient.JobPending:
		return time.Time{}
	case job.Status.Over() && job.ExitCode == nil && supervised(*job): // Ray never got to it
		return time.Time{}
	case job.Status.Over():
		return job.Start
	default:
		return p.now
	}
}

func (p *planner) ran() time.Time {
	if p.record.Ran > 0 {
		return time.Unix(p.record.Ran, 0)
	}
	if p.bound() {
		return p.started()
	}
	return time.Time{}
}

// end begins the end of the bound attempt, or ends the job where none is bound.
func (p *planner) end(finding reason.Finding) {
	if !p.bound() {
		p.close(finding)
		return
	}
	p.record.Ending, p.record.Since = finding.Code, p.now.Unix()
	p.stopping()
}

// ask is the finding while an attempt is being stopped, and asks for it.
func (p *planner) ask(why string) reason.Finding {
	if p.bound() && p.seen.Head != nil {
		p.Ask = &Ask{Head: p.seen.Head, ID: p.id(), Session: p.record.Bound.Session, Stop: true}
	}
	return reason.Stopping.Of(p.record.Attempt, why)
}

// lose marks a fate that was told by the absence of a head for a look past the cache.
func (p *planner) lose(f fate) {
	if f.gone {
		p.Lost = p.record.Bound
	}
}

// abandon gives the stopping of a run on a shared cluster up.
func (p *planner) abandon() reason.Finding {
	why := "its head does not answer"
	if p.seen.Heard && p.seen.Answer.Err == nil {
		why = fmt.Sprintf("Ray still says %s", p.seen.Answer.Job.Status)
	}
	finding := reason.StopAbandoned.Of(p.job.Name, p.record.Bound.Cluster, why, p.id())
	p.tell(finding, "Stop")
	p.Events[len(p.Events)-1].Cluster = p.seen.Cluster
	return finding
}
