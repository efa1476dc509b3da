package job

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pass"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/stranded"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

const (
	// stopFor is how long the stop of a run on a shared cluster is tried.
	stopFor = 2 * time.Minute
	// freeAfter is how long a suspended job leaves its own cluster for the last lines, and
	// giveUpAfter how long a job that is over a deadline leaves it for the stop.
	freeAfter   = time.Second
	giveUpAfter = 30 * time.Second
	// freeFor is how long a cluster that is let go may take to be without pods.
	freeFor = 15 * time.Second
	// lookEvery is how often a head that is calm is asked about a run, and a little more.
	lookEvery = 4 * time.Second
)

// ending goes on with the end of an attempt that was begun.
func (p *planner) ending() bool {
	if p.record.Ending == "" || !p.bound() {
		return false
	}
	p.stopping()
	return true
}

// stopping stops the bound attempt, and ends it when it is over, or when it is no use to
// wait any longer: on the job's own cluster the work ends with that.
func (p *planner) stopping() {
	p.say(p.underway(), p.ask(p.endedBy().Text))
	if p.suspending() {
		p.Phase = v1alpha1.PhaseSuspending
	}
	if f, is := p.fate(); is {
		p.follow(f)
		return
	}
	patience := stopFor
	switch {
	case p.own() && p.suspending():
		patience = freeAfter
	case p.own():
		patience = giveUpAfter
	}
	left := time.Unix(p.record.Since, 0).Add(patience).Sub(p.now)
	if left > 0 {
		p.wakeIn(left)
		p.lookAgain()
		return
	}
	f := fate{Finding: p.endedBy(), log: v1alpha1.LogLost}
	if said := p.seen.Answer.Tail; p.seen.Heard && len(said.Lines) > 0 {
		f.lines, f.log = lines(said.Lines), v1alpha1.LogTruncated
	}
	if p.own() {
		p.record.Own++ // it goes, with all that may still run there
	} else if abandoned := p.abandon(); !p.suspending() || p.stops() {
		f.Finding = abandoned
	}
	p.follow(f)
}

// lookAgain wakes the job when it may be clear that its attempt never got to the head: that
// a head still does not know it is no news.
func (p *planner) lookAgain() {
	if p.seen.Heard && !p.seen.Answer.Known {
		p.wakeIn(max(p.settled().Sub(p.now), 0) + lookEvery)
	}
}

func (p *planner) suspending() bool {
	return p.record.Ending == reason.JobSuspended.Code || p.record.Ending == reason.JobPreempted.Code
}

// underway is the phase of a bound attempt.
func (p *planner) underway() string {
	if p.started().IsZero() {
		return v1alpha1.PhaseSubmitting
	}
	return v1alpha1.PhaseRunning
}

// suspend takes a suspended job off its cluster, and begins again when it is resumed.
func (p *planner) suspend() bool {
	switch {
	case p.job.Spec.Suspend && p.bound():
		p.end(reason.JobSuspended.Of())
	case p.held() && p.bound() && !p.own():
		return false // the label came later, and a job on a cluster that exists has no quota to lose
	case p.held() && p.bound():
		p.end(reason.JobPreempted.Of())
	case p.held():
		p.rest()
	case p.record.Suspended:
		p.record.Suspended, p.record.Began, p.record.Ran = false, p.now.Unix(), 0
		return false
	default:
		return false
	}
	return true
}

// rest is a suspended job without an attempt: its own cluster goes.
func (p *planner) rest() {
	if !p.record.Suspended && p.own() && p.seen.Cluster != nil {
		p.record.Own++
		p.seen.Former = append(p.seen.Former, p.seen.Cluster)
	}
	p.record.Suspended = true
	if p.discard() {
		p.say(v1alpha1.PhaseSuspending, reason.ClusterEnding.Of(p.leaving()))
		return
	}
	if p.job.Status.Phase == v1alpha1.PhaseSuspending {
		p.leaveBehind()
	}
	if p.job.Spec.Suspend {
		p.say(v1alpha1.PhaseSuspended, reason.JobSuspended.Of())
	} else {
		p.say(v1alpha1.PhasePending, p.queued())
	}
}

// discard lets the job's former clusters go, and reports whether they or their pods are still
// there.
func (p *planner) discard() bool {
	for _, cluster := range p.seen.Former {
		p.letGo(cluster)
	}
	if len(p.seen.Former) == 0 && p.seen.Remains > 0 {
		p.wakeIn(time.Second) // nobody tells of the pods of a cluster that is gone
	}
	return len(p.seen.Former) > 0 || p.seen.Remains > 0
}

// leaveBehind tells of pods that are not waited for any more.
func (p *planner) leaveBehind() {
	for _, pod := range p.seen.Stranded {
		p.tell(reason.PodStranded.Of(pod.Name, p.record.Last.Cluster, pod.Spec.NodeName, reason.Command(stranded.OffCommand(pod.Spec.NodeName))), "LeaveBehind")
	}
}

// letGo suspends a cluster of the job's own and deletes it when it has no pods any more: the
// garbage collector would give its workers their full grace, a suspension gives them a short
// one. One whose suspension does not come to its end is deleted all the same.
func (p *planner) letGo(cluster *v1alpha1.ComputeCluster) {
	if cluster.DeletionTimestamp != nil {
		return
	}
	since, err := time.Parse(time.RFC3339, cluster.Annotations[v1alpha1.AnnotationReleasedAt])
	left := since.Add(freeFor).Sub(p.now)
	switch {
	case err != nil || !cluster.Spec.Suspend:
		p.Free = append(p.Free, cluster)
	case left > 0 && !meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionSuspended):
		p.wakeIn(left)
	default:
		p.Discard = append(p.Discard, cluster)
	}
}

// leaving is the name of a cluster that is on its way out.
func (p *planner) leaving() string {
	if len(p.seen.Former) > 0 {
		return p.seen.Former[0].Name
	}
	return p.record.Last.Cluster
}

// follow ends the bound attempt as its fate is, and decides what follows.
func (p *planner) follow(f fate) {
	stops := p.stops()
	p.lose(f)
	p.finish(f)
	kind := class(f.Code)
	suspended := kind == neutral && f.Code != reason.StopAbandoned.Code
	again := (kind == failure || kind == loss) && p.again(kind, f)
	switch {
	case stops && (suspended || again || kind == loss):
		p.close(reason.Stopped.Of())
	case suspended:
		p.record.Attempt++
		p.say(v1alpha1.PhaseSuspending, f.Finding)
	case again:
		p.retry(f)
	default:
		p.close(f.Finding)
	}
	p.wakeIn(soon)
}

// finish puts the bound attempt among the past ones.
func (p *planner) finish(f fate) {
	record := &p.record
	start, end := p.started(), f.end
	if end.IsZero() {
		end = p.now
	}
	past := Past{
		Number: record.Attempt, Cluster: record.Bound.Cluster, Head: record.Bound.Head, Reason: f.Code, Exit: f.exit, End: end.Unix(),
	}
	if !start.IsZero() {
		past.Start = start.Unix()
		if record.Ran == 0 { // deadlines count from it, and the clock of the head may be another
			record.Ran = min(max(past.Start, record.Bound.At), p.now.Unix())
		}
	}
	entry := entryOf(past)
	describe(&entry, record.Bound)
	entry.Message, entry.LastLines, entry.LogState = f.Text, f.lines, f.log
	p.Done, p.Ask = &entry, nil
	record.keep(past)
	record.Ended = p.now.Unix()
	record.Last, record.Bound, record.Ending, record.Since = record.Bound, Bound{}, "", 0
}

// again counts an end and reports whether another attempt follows.
func (p *planner) again(kind kind, f fate) bool {
	retry, record := p.job.Spec.Retry, &p.record
	if kind == failure {
		record.Failures++
	} else {
		record.Losses++
	}
	switch {
	case retry == nil:
		return false
	case kind == loss && retry.InfrastructureLimit != nil:
		return record.Losses <= *retry.InfrastructureLimit
	case kind == failure && !matches(retry.OnExitCodes, f.exit):
		return false
	case retry.InfrastructureLimit != nil:
		return record.Failures <= retry.Limit
	default:
		return record.Failures+record.Losses <= retry.Limit
	}
}

// matches reports whether a failure with an exit code is one to retry. One without an exit
// code is not among those that are named.
func matches(codes *v1alpha1.ExitCodes, exit *int32) bool {
	switch {
	case codes == nil:
		return true
	case len(codes.In) > 0:
		return exit != nil && slices.Contains(codes.In, *exit)
	default:
		return exit == nil || !slices.Contains(codes.NotIn, *exit)
	}
}

// retry lets another attempt follow.
func (p *planner) retry(f fate) {
	number := p.record.Attempt
	p.record.Attempt++
	if p.own() && (p.job.Spec.Retry.Scope == v1alpha1.RetryCluster || f.Code == reason.ClusterGone.Code) {
		p.record.Own++
	}
	p.tell(reason.AttemptEnded.Of(number, f.Code, f.Text), "Retry")
	p.Events[len(p.Events)-1].Warning = true
	p.say(v1alpha1.PhaseRetrying, reason.Retrying.Of(number, f.Code, pass.Stamp(p.record.ended(p.now).Add(p.backoff()))))
}

// backoff is how long to wait after the last attempt before the next.
func (p *planner) backoff() time.Duration {
	retry, count := p.job.Spec.Retry, int(p.record.Failures+p.record.Losses)
	if retry == nil || count == 0 || len(p.record.Past) == 0 {
		return 0
	}
	if kind := class(p.record.Past[len(p.record.Past)-1].Reason); kind != failure && kind != loss {
		return 0
	}
	wait, most := inSeconds(retry.BackoffSeconds, 10), inSeconds(retry.MaxBackoffSeconds, 360)
	for range count - 1 {
		if wait < most {
			wait *= 2
		}
	}
	return min(wait, most)
}

// inSeconds is a time that is given in seconds, or otherwise the default.
func inSeconds(given *int32, otherwise int32) time.Duration {
	if given == nil {
		given = &otherwise
	}
	return time.Duration(*given) * time.Second
}

// close ends the job, for good.
func (p *planner) close(finding reason.Finding) {
	phase := v1alpha1.PhaseFailed
	switch finding.Code {
	case reason.JobSucceeded.Code:
		phase = v1alpha1.PhaseSucceeded
	case reason.Stopped.Code, reason.StoppedInRay.Code:
		phase = v1alpha1.PhaseStopped
	}
	p.record.Outcome = Outcome{Phase: phase, Reason: finding.Code, Text: finding.Text, At: p.now.Unix()}
	p.Finalizer, p.Ask = false, nil
	p.say(phase, finding)
	p.tell(finding, "End")
}
