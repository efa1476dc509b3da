package job

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// nameGangEnd returns the finding for the end of a gang's driver that ended with an exit code. A report gives it words, and only
// one that was written last, before the driver ended.
func nameGangEnd(report *launcher.Report, job headclient.Job) reason.Finding {
	var last *launcher.End
	if report != nil && report.State == launcher.Ended {
		last = report.Last
	}
	switch {
	case *job.ExitCode == signalLost && last == nil:
		return reason.GangLost.Of("its launcher gave no details")
	case *job.ExitCode == signalLost:
		return reason.GangLost.Of(describeEnd(last))
	case last == nil || *job.ExitCode < 0:
		return reason.EntrypointFailed.Of(*exitCode(job), describeException(job))
	case last.Kind == launcher.MetricMissing:
		return reason.MetricMissing.Of(cmp.Or(last.Message, string(last.Kind)))
	case last.Kind == launcher.Trials, last.Kind == launcher.Study:
		return reason.TuningFailed.In(string(last.Kind)).Of(cmp.Or(last.Message, string(last.Kind)))
	default:
		return reason.ProcessFailed.In(string(last.Kind)).Of(cmp.Or(last.Process, "a process"), cmp.Or(last.Pod, "(unknown)"),
			*job.ExitCode, cmp.Or(last.Message, string(last.Kind)))
	}
}

// describeEnd returns why a round of a gang ended, with the process that was first.
func describeEnd(last *launcher.End) string {
	text := describeCause(last)
	if last.Process != "" {
		text = last.Process + ": " + text
	}
	return cutText(text)
}

// describeCause returns what ended a round of a gang, and in which pod.
func describeCause(last *launcher.End) string {
	text := cmp.Or(last.Message, string(last.Kind))
	if last.Pod != "" {
		text += fmt.Sprintf(" (pod %s)", last.Pod)
	}
	return cutText(text)
}

// namedByReport are the codes of the ends that only a report has words for.
var namedByReport = []string{reason.ProcessFailed.Code, reason.MetricMissing.Code, reason.TuningFailed.Code}

// judgeGang adds to the result of a gang that ended what only a report has: the last lines of the process that was first.
func judgeGang(v view, f result) result {
	switch report := v.report(); {
	case f.Code == reason.GangLost.Code:
		f.unseen, f.exit = !v.seen.PlaceLost, nil // the signal is the launcher's word, and no exit code
	case slices.Contains(namedByReport, f.Code) && len(report.Last.Lines) > 0:
		f.lines, f.log = lastOf(report.Last.Lines), v1beta1.LogComplete
	}
	return f
}

const (
	// seenWithin is how long after the end of a gang the operator looks for the worker that it lost: Kubernetes takes most of a
	// minute to find that a node does not answer. lookForLoss is how often it looks.
	seenWithin  = time.Minute
	lookForLoss = 5 * time.Second
)

// untilLossSeen returns for how long the end of a gang is not judged yet: it was lost, and the operator has not seen how.
func untilLossSeen(v view) time.Duration {
	job, report := v.seen.Answer.Job, v.report()
	isLost := v.isGang() && job.Status.Over() && job.ExitCode != nil && *job.ExitCode == signalLost
	if !isLost || v.seen.PlaceLost || v.record.Ending != "" || v.job.DeletionTimestamp != nil {
		return 0
	}
	if report != nil && report.Last != nil && report.Last.Kind != launcher.Lost {
		return 0
	}
	left := job.End.Add(seenWithin).Sub(v.now)
	if left > seenWithin { // the clock of the head is another
		return 0
	}
	return min(max(left, 0), lookForLoss)
}

// lossesInPlace returns how many losses a gang's restarts have used up within its attempt: no more than there were.
func lossesInPlace(v view) int32 {
	report := v.report()
	if report == nil {
		return 0
	}
	return min(report.Losses, lossesLeft(v.job.Spec.Retry, v.record))
}

// seeLostPlaces looks for what the launcher of a bound gang says with its end: a worker that is gone.
func (r *Reconciler) seeLostPlaces(ctx context.Context, job *v1beta1.ClusterJob, seen *Seen) error {
	end := seen.Answer.Job
	if gangOf(&job.Spec) == nil || end.ExitCode == nil || *end.ExitCode != signalLost {
		return nil
	}
	if seen.PlaceLost = seen.Cluster == nil; seen.PlaceLost {
		return nil
	}
	var pods corev1.PodList
	err := r.Client.List(ctx, &pods, client.InNamespace(job.Namespace), client.MatchingFields{index.Owner: string(seen.Record.Bound.UID)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list the cluster's pods: %w", err)
	}
	look := lossSearch{cluster: seen.Cluster, since: end.End, there: map[string]bool{}, epochs: map[int64]bool{}}
	if report := reportOf(job, seen.Answer, seen.Heard); report != nil {
		look.named = slices.Clone(report.Lost)
		if report.Last != nil {
			look.named = append(look.named, report.Last.Pod)
			look.since = noticedAt(report.Last.Time, end.End, view{job: job, record: seen.Record}.grace())
		}
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		isLost, err := reconcile.IsOnLostNode(ctx, r.Nodes, pod)
		if err != nil {
			return err
		}
		look.add(pod, isLost || diagnose.RayEnded(pod).After(time.Unix(seen.Record.Bound.At, 0)))
	}
	seen.PlaceLost = look.isFound()
	return nil
}

// lossSearch looks for a worker that was lost, among those that a report names if it names any.
type lossSearch struct {
	cluster *v1beta1.ComputeCluster
	named   []string
	// since is when the loss was noticed at the latest.
	since time.Time
	found bool
	// there are the workers by name, workers how many there are; epochs are those of all pods.
	there   map[string]bool
	workers int
	epochs  map[int64]bool
}

// replacedWithin is how long before a loss is noticed the successor of a worker may have been created.
const replacedWithin = 30 * time.Second

// add looks at a pod of the cluster.
func (l *lossSearch) add(pod *corev1.Pod, isLost bool) {
	l.epochs[reconcile.Epoch(pod)] = true
	if pod.Labels[v1beta1.LabelRole] != v1beta1.RoleWorker {
		return
	}
	l.there[pod.Name] = true
	l.workers++
	isEnding := pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	isSuccessor := pod.CreationTimestamp.After(l.since.Add(-replacedWithin))
	name := pod.Name
	if pod.Spec.HostNetwork { // its host's name is what a program finds there
		name = pod.Spec.NodeName
	}
	if len(l.named) == 0 || slices.Contains(l.named, name) {
		l.found = l.found || isLost || isEnding || isSuccessor
	}
}

// isFound reports whether a worker was lost: one that the report names, or without a name any. One that is not there counts where
// the cluster must have it.
func (l *lossSearch) isFound() bool {
	if l.found {
		return true
	}
	missing := 0
	for _, group := range l.cluster.Status.Groups {
		missing += int(group.Desired)
		for slot := range int(group.Desired) {
			for epoch := range l.epochs {
				name := naming.Pod(l.cluster.Name, l.cluster.UID, naming.Place{Group: group.Name, Slot: slot, Epoch: epoch})
				if slices.Contains(l.named, name) && !l.there[name] {
					return true
				}
			}
		}
	}
	return len(l.named) == 0 && missing > l.workers
}

// noticedAt returns when a loss was noticed at the latest: when a report says, which is no later than the driver's end, and no
// earlier than that end could follow on a loss. Else all workers would be successors of one that was lost.
func noticedAt(told, end time.Time, grace time.Duration) time.Time {
	least := end.Add(-grace - seenWithin)
	switch {
	case told.IsZero() || told.After(end):
		return end
	case told.Before(least):
		return least
	default:
		return told
	}
}
