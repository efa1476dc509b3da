package service

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// silentAfter is for how long a head that says nothing is not told of: it may have just come back.
const silentAfter = 20 * time.Second

// assessment says how the two versions are.
type assessment struct{ active, candidate Health }

// Health is how a version is on its cluster.
type Health struct {
	// Well: all applications run with all their replicas, and the proxies answer.
	Well bool
	// Ready is how much of its capacity is up, in percent; 0 where it is sick.
	Ready int
	// Failed: it will not get well by itself.
	Failed bool
	// Told: the head said what its applications do, since it took what is asked of it. Silent:
	// it has not answered for so long that what it said before counts no more.
	Told, Silent bool
	// Assumed: nothing is known of it, and it was well before. Ready is then what its proxies make likely.
	Assumed bool
	// Asked: a proxy has answered, or not often enough. Answers: one does, and no deployment that
	// Serve tells of is without a replica, whatever becomes of what was deployed last.
	Asked, Answers bool
	// Finding is the first thing that is wrong or waited for, empty while it is well.
	Finding reason.Finding
	// Applications as the status tells of them.
	Applications []v1beta1.ApplicationStatus
	// Open are pods that may get requests.
	Open []*corev1.Pod
	// Wake is after how long it may be another though nothing happens, 0 for never.
	Wake time.Duration
}

// expected is what a version is judged by.
type expected struct {
	// clusterName names its cluster, also one that is not there.
	clusterName string
	revision    Revision
	// requires says what its deployments have to run.
	requires requirement
	// taken: its head has what is asked of it. proven: all was well before.
	taken, proven bool
}

// assess judges the versions that the record names, while they run. It only reads.
func assess(f followed) assessed {
	if f.course != courseServe {
		return assessed{followed: f}
	}
	return assessed{followed: f, assessment: assessVersions(f.view)}
}

// assessVersions judges the versions of a record.
func assessVersions(v view) assessment {
	states := v.states()
	p := proxiesOf(v, states)
	versions := assessment{active: assessVersion(v, p, states.active, states.active.Good != "")}
	if states.candidate != nil {
		versions.candidate = assessVersion(v, p, *states.candidate, v.record.Shift.Proven)
	}
	return versions
}

// assessVersion judges a version; proven says that all was well before.
func assessVersion(v view, p proxies, version versionState, proven bool) Health {
	cluster := version.cluster
	taken := cluster != nil && cluster.Head != nil && version.Took == version.configured.ID && version.Head == string(cluster.Head.UID)
	h := judgeVersion(v, p, cluster, expected{
		clusterName: version.clusterName, revision: version.configured, requires: v.record.requirementOf(version), taken: taken, proven: proven,
	})
	return assumeHealth(p, h, cluster, proven)
}

// judgeVersion judges a version by what its head and its proxies say.
func judgeVersion(v view, p proxies, cluster *Cluster, version expected) Health {
	h := Health{Applications: listApplications(cluster, version.revision)}
	if !canBeAsked(cluster) {
		h.Finding, h.Open = explainNoHead(v.service, v.seen.Clusters[0], cluster, version.clusterName), p.stillHaving(cluster, p.hasRequests)
		return h
	}
	h.Open = p.eligiblePods(cluster)
	if cluster.Heard && cluster.Answer.Refused != "" {
		h.Finding, h.Failed = reason.ServeConfigRefused.Of(cluster.Name, cluster.Answer.Refused), true
		return h
	}
	h.Finding, h.Silent, h.Wake = explainSilence(cluster, v.now)
	if cluster.Heard && !cluster.Answer.At.IsZero() && version.taken && !(version.proven && lacksController(p, cluster, h.Open)) {
		h.Told = true
		judgeApplications(&h, p, cluster, version)
	} else if h.Finding.Code == "" {
		h.Finding = explainStart(cluster, cluster.Name)
	}
	return h
}

// assumeHealth returns the health of a version that was well and of which nothing is known now: no data is not zero.
// While its head says nothing its proxies count, which answer without a head.
func assumeHealth(p proxies, h Health, cluster *Cluster, proven bool) Health {
	if !proven || h.Failed || h.Told && !h.Silent || len(h.Open) == 0 {
		return h
	}
	if answering, failed, _ := countAnswers(p, cluster, h.Open); answering > 0 || failed == 0 {
		h.Ready, h.Assumed = 100, true
	}
	return h
}
