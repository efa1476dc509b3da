package cluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/archives"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// currentSite returns what the installation knows of itself now. The authority of archivers is known a moment after the operator has begun.
func (r *Reconciler) currentSite() desired.Site {
	site := r.Site
	if site.History != nil && r.Authority != nil {
		history := *site.History
		history.Authority = r.Authority()
		site.History = &history
	}
	return site
}

// refuseKeepFor returns a finding where the spec asks for more time than the installation's maximum, which admission refuses: the
// maximum was lowered since, or there is no admission.
func refuseKeepFor(s situation) *reason.Finding {
	own, history := s.cluster.Spec.History, s.site.History
	if own == nil || own.KeepFor == nil || history == nil || history.MaxKeepFor.Duration == 0 || own.KeepFor.Duration <= history.MaxKeepFor.Duration {
		return nil
	}
	finding := reason.SpecRefused.Of("spec.history.keepFor: files are kept for at most " + history.MaxKeepFor.Duration.String() + "; lower it")
	return &finding
}

// causes are the words for why bytes wait for the archive.
var causes = map[string]string{
	"Store": "the store does not take them", "Spool": "the archiver's spool is full", "Rate": "there are more than the installation's rates allow",
}

// judgeHistory returns whether the archive keeps what it is to keep, and why not: of several reasons that which is told first. It is
// nil where nobody asks for history, and where nobody knows yet.
func judgeHistory(s situation) *verdict {
	if s.site.History == nil {
		if s.cluster.Spec.History == nil {
			return nil
		}
		return &verdict{false, reason.HistoryOff.Of()}
	}
	if !keepsOutputs(s) {
		return &verdict{true, reason.HistoryKept.Of("records")}
	}
	collected, all := s.collected()
	blocked, known := s.blocked(collected)
	archive := s.seen.Archive
	switch {
	case len(blocked) > 0:
		return &verdict{false, reason.HistoryBlocked.Of(len(blocked), all, blocked[0].Name, naming.PortArchive)}
	case isLate(archive.Away, s.now):
		return &verdict{false, reason.HistoryBehind.In("Away").Of("no archiver answers")}
	case archive.Cause != "":
		return &verdict{false, reason.HistoryBehind.In(archive.Cause).Of(because(archive.Cause))}
	case archive.Displaced > 0:
		return &verdict{false, reason.HistoryLimited.Of(rounded(archive.Displaced))}
	case len(collected) < all:
		return &verdict{false, reason.HistoryPartly.Of(all-len(collected), all)}
	case !known:
		return s.formerHistory()
	default:
		return &verdict{true, reason.HistoryKept.Of("records, outputs and logs")}
	}
}

func because(cause string) string {
	if words, is := causes[cause]; is {
		return words
	}
	return "the archiver falls behind"
}

// rounded returns a number of bytes for people, rounded so that it rarely changes.
func rounded(bytes int64) string {
	unit := int64(1)
	for unit < bytes/16 {
		unit *= 2
	}
	return resource.NewQuantity((bytes+unit-1)/unit*unit, resource.BinarySI).String()
}

// isLate reports whether something that is so since a time is so for too long. It never is since the zero time.
func isLate(since, now time.Time) bool { return !since.IsZero() && now.Sub(since) >= archives.Late }

// collected returns the pods that stay and have a collector, and how many stay.
func (s situation) collected() (with []Pod, all int) {
	for _, p := range s.seen.Pods {
		if p.isTerminating() || p.hasFinished() {
			continue
		}
		if all++; pod.HasCollector(p.Pod) {
			with = append(with, p)
		}
	}
	return with, all
}

// blocked returns the pods whose collectors have had no stream for too long, and whether that is known at all.
func (s situation) blocked(pods []Pod) (blocked []Pod, known bool) {
	if s.seen.Archive.All.IsZero() {
		return nil, len(pods) == 0
	}
	for _, p := range pods {
		if since := s.withoutStream(p); isLate(since, s.now) {
			blocked = append(blocked, p)
		}
	}
	return blocked, true
}

// withoutStream returns since when a pod's collector runs and has no stream, zero where it has one or does not run.
func (s situation) withoutStream(p Pod) time.Time {
	started := collectorStarted(p.Pod)
	until, was := s.seen.Archive.Streams[p.UID]
	if started.IsZero() || was && until.IsZero() {
		return time.Time{}
	}
	return latest(latest(started, until), s.seen.Archive.All)
}

// collectorStarted returns when a pod's collector began to run, zero where it does not run.
func collectorStarted(p *corev1.Pod) time.Time {
	for i := range p.Status.InitContainerStatuses {
		status := &p.Status.InitContainerStatuses[i]
		if status.Name == v1beta1.ContainerHistory && status.State.Running != nil {
			return status.State.Running.StartedAt.Time
		}
	}
	return time.Time{}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// formerHistory returns what was told last: an operator that has just begun knows no better.
func (s situation) formerHistory() *verdict {
	told := meta.FindStatusCondition(s.cluster.Status.Conditions, v1beta1.ConditionHistoryReady)
	if told == nil || told.Reason == reason.HistoryOff.Code {
		return nil
	}
	return &verdict{told.Status == "True", reason.Finding{Code: told.Reason, Text: told.Message}}
}

// untilHistoryIsLate returns how soon what is missing may be missing for too long, 0 for never.
func untilHistoryIsLate(s situation) (wake time.Duration) {
	if !keepsOutputs(s) {
		return 0
	}
	due := func(since time.Time) {
		if !since.IsZero() && !isLate(since, s.now) {
			wake = reconcile.Soonest(wake, since.Add(archives.Late).Sub(s.now))
		}
	}
	due(s.seen.Archive.Away)
	pods, _ := s.collected()
	for _, p := range pods {
		if s.seen.Archive.All.IsZero() {
			break // who begins to answer wakes
		}
		due(s.withoutStream(p))
	}
	return wake
}

// reportHistory sets the condition.
func reportHistory(t *statusDraft) {
	judged := t.plan.History
	if judged == nil {
		t.say.SetWhile(v1beta1.ConditionHistoryReady, nil)
		return
	}
	t.say.Set(v1beta1.ConditionHistoryReady, judged.holds, judged.Finding)
}

// keepsOutputs reports whether an installation and a cluster together have outputs kept.
func keepsOutputs(s situation) bool {
	return ptr.Deref(s.site.History.Under(s.cluster).Spec.History, v1beta1.History{}).Keep == v1beta1.HistoryOutputs
}
