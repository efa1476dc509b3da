package job

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// gangStatus returns the state of a job's gang in its current or last attempt, nil before its first report, and for a job that is
// none. What was told of an attempt stays until there is more.
func gangStatus(job *v1beta1.ClusterJob, seen *Seen, record Record) *v1beta1.GangStatus {
	number := currentAttempt(record)
	if gangOf(&job.Spec) == nil || number == 0 {
		return nil
	}
	former := job.Status.Gang.DeepCopy()
	switch hasEnded := record.Outcome.Phase != ""; {
	case job.Status.Attempt != number:
		former = nil
	case former != nil && hasEnded:
		former.Page = nil
	}
	report := reportOf(job, seen.Answer, seen.Heard)
	if report == nil || record.Attempt != number && seen.Record.Attempt != number {
		return former
	}
	status := &v1beta1.GangStatus{Restarts: restartsOf(report), Replicas: report.Replicas, Ready: report.Ready}
	if former != nil {
		status.Restarts, status.LastRestart = max(former.Restarts, status.Restarts), former.LastRestart
	}
	if report.State == launcher.Ended {
		status.Ready = 0
	}
	if page := report.Page; page != nil && report.State == launcher.Running {
		status.Page = &v1beta1.GangPage{PodName: page.Pod, Port: page.Port}
	}
	if last := report.Last; last != nil {
		status.LastRestart = &v1beta1.GangRestart{
			Replica: shorten(last.Process), Reason: string(last.Kind), Message: describeCause(last),
		}
		if !last.Time.IsZero() {
			at := metav1.Unix(last.Time.Unix(), 0)
			status.LastRestart.RestartTime = &at
		}
	}
	return status
}

// longestName is how many bytes of the name of a process a status takes.
const longestName = 128

func shorten(name string) string {
	if len(name) > longestName {
		return ""
	}
	return name
}

// restartsOf returns how often all processes of a gang started again.
func restartsOf(report *launcher.Report) int32 { return max(0, report.Round-1) }

// gangEvents returns the events about a bound gang that the status has not told of: that it is placed, and its restarts.
func gangEvents(v view, phase string) []telemetry.Event {
	report := v.report()
	if report == nil {
		return nil
	}
	told := int32(0)
	if gang := v.job.Status.Gang; gang != nil && v.job.Status.Attempt == v.record.Attempt {
		told = gang.Restarts
	}
	var events []telemetry.Event
	if phase == v1beta1.PhaseRunning && report.Round == 1 && !v.isTold(v1beta1.PhaseRunning) {
		events = append(events, eventOf(reason.GangPlaced.Of(v.record.Attempt, report.Replicas, v.clusterName()), "Start"))
	}
	if restartsOf(report) > told && report.Last != nil {
		events = append(events, eventOf(reason.GangRestarted.Of(v.record.Attempt, report.Round, describeEnd(report.Last)), "Restart"))
	}
	return events
}

// untilUnreported returns after how long a gang without a report counts as running, 0 where it has one or does.
func untilUnreported(v view) time.Duration {
	if v.report() != nil || v.startedAt().IsZero() {
		return 0
	}
	return max(0, v.startedAt().Add(reportWithin).Sub(v.now))
}
