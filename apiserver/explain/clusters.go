package explain

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// isOver reports whether an object waits for nothing any more: a job that came to its end.
func isOver(object runtime.Object) bool {
	job, ok := object.(*v1beta1.ClusterJob)
	if !ok {
		return false
	}
	for _, condition := range job.Status.Conditions {
		isEnd := condition.Type == v1beta1.ConditionComplete || condition.Type == v1beta1.ConditionFailed
		if isEnd && condition.Status == metav1.ConditionTrue {
			return true
		}
	}
	return job.Status.EndTime != nil
}

// claim says which clusters an object uses: by name, in the order in which they are told, and by ownership.
type claim struct {
	object *metav1.ObjectMeta
	names  []string
	// retired are clusters that the object does not wait for any more.
	retired []string
}

// claimOf is false for what uses no clusters.
func claimOf(object runtime.Object) (claim, bool) {
	switch o := object.(type) {
	case *v1beta1.ClusterJob:
		return claim{&o.ObjectMeta, []string{o.Status.ClusterName, nameOf(o.Spec.ClusterRef)}, nil}, true
	case *v1beta1.ClusterService:
		var names []string
		for _, version := range []*v1beta1.ServiceVersion{o.Status.Active, o.Status.Candidate} {
			if version != nil {
				names = append(names, version.ClusterName)
			}
		}
		return claim{&o.ObjectMeta, append(names, nameOf(o.Spec.ClusterRef)), o.Status.Retiring}, true
	default:
		return claim{}, false
	}
}

func nameOf(reference *v1beta1.ClusterReference) string {
	if reference == nil {
		return ""
	}
	return reference.Name
}

// place is where a cluster comes among those of the object; -1 is that it is none of them.
func (c claim) place(cluster *v1beta1.ComputeCluster) int {
	if cluster == nil || cluster.Name == "" || cluster.Namespace != c.object.Namespace {
		return -1
	}
	if at := slices.Index(c.names, cluster.Name); at >= 0 {
		return at
	}
	if isOwnedBy(cluster.OwnerReferences, c.object.UID) && !slices.Contains(c.retired, cluster.Name) {
		return len(c.names)
	}
	return -1
}

// clustersOf are the clusters that an object uses, the one that the status speaks of first.
func clustersOf(in Input) []*v1beta1.ComputeCluster {
	uses, ok := claimOf(in.Object)
	if !ok {
		return nil
	}
	var all []*v1beta1.ComputeCluster
	for _, cluster := range in.Clusters {
		if uses.place(cluster) >= 0 {
			all = append(all, cluster)
		}
	}
	slices.SortStableFunc(all, func(a, b *v1beta1.ComputeCluster) int {
		return cmp.Or(cmp.Compare(uses.place(a), uses.place(b)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return all
}

func isOwnedBy(owners []metav1.OwnerReference, uid types.UID) bool {
	return uid != "" && slices.ContainsFunc(owners, func(owner metav1.OwnerReference) bool {
		return owner.Controller != nil && *owner.Controller && owner.UID == uid
	})
}

// member is a pod of a cluster that is not as it should be.
type member struct {
	pod     *corev1.Pod
	isHead  bool
	group   string
	epoch   int64
	finding reason.Finding
}

// membersOf are a cluster's pods that are not as they should be, heads first, the newest in front.
func (c *chain) membersOf(cluster *v1beta1.ComputeCluster) []member {
	var all []member
	for _, pod := range c.pods {
		if pod == nil || pod.Namespace != cluster.Namespace || !isOwnedBy(pod.OwnerReferences, cluster.UID) {
			continue
		}
		if finding, found := diagnose.Pod(pod, nil, c.now); found {
			epoch, _ := strconv.ParseInt(pod.Labels[v1beta1.LabelEpoch], 10, 64) // 0 without one
			isHead := pod.Labels[v1beta1.LabelRole] == v1beta1.RoleHead
			all = append(all, member{pod, isHead, pod.Labels[v1beta1.LabelGroup], epoch, finding})
		}
	}
	first := func(isIt bool) int {
		if isIt {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b member) int {
		return cmp.Or(
			cmp.Compare(first(a.isHead), first(b.isHead)), -cmp.Compare(a.epoch, b.epoch),
			cmp.Compare(a.group, b.group), cmp.Compare(a.pod.Name, b.pod.Name), cmp.Compare(a.pod.UID, b.pod.UID),
		)
	})
	return all
}

// addPods adds the pods that a cluster waits for: one for each cause of the head and of each group. What is on its way
// by itself is told of the current head, and of workers once the head is ready: they wait for it.
func (c *chain) addPods(cluster *v1beta1.ComputeCluster, isReady bool) {
	type kind struct {
		isHead      bool
		group, code string
	}
	told := map[kind]bool{}
	all, heads := c.membersOf(cluster), 0
	count := countWorkers(all)
	for i, m := range all {
		isCurrent := m.isHead && i == 0
		if m.isHead {
			heads++
		}
		finding := m.finding
		if isCurrent || !m.isHead {
			finding = better(cluster, m, count[m.group])
		}
		isDue := isWarning(finding.Code) || !isReady && (isCurrent || heads == 0)
		same := kind{m.isHead, m.group, finding.Code}
		if !isDue || told[same] {
			continue
		}
		told[same] = true
		message, remedy := reason.Split(finding.Code, finding.Text)
		since := diagnose.Since(m.pod, c.now)
		c.add(Cause{KindPod, m.pod.Namespace, m.pod.Name, cut(finding.Code), cut(message), cut(remedy), since})
	}
}

// countWorkers counts, for each group, the workers that are not as they should be.
func countWorkers(all []member) map[string]int {
	count := map[string]int{}
	for _, m := range all {
		if !m.isHead {
			count[m.group]++
		}
	}
	return count
}

// better is what the cluster's status says of a pod, where it is certain that it speaks of this one and says no less:
// the operator knows the pod's events and its node too. So many workers of the group are not as they should be.
func better(cluster *v1beta1.ComputeCluster, m member, count int) reason.Finding {
	told, ok := toldOfGroup(cluster, m.group)
	isCertain := count == 1
	if m.isHead {
		told, ok = toldOfHead(cluster, m.pod.Name)
		isCertain = true
	}
	unschedulable := reason.Unschedulable.Code // to a scheduler all pods of a group are alike
	isSame := told.Code == unschedulable && m.finding.Code == unschedulable
	if ok && (isSame || isCertain && told.Severity() >= m.finding.Severity()) {
		return told
	}
	return m.finding
}

// toldOfHead is what the status says of a head, without its name in front.
func toldOfHead(cluster *v1beta1.ComputeCluster, name string) (reason.Finding, bool) {
	about, _ := subjectOf(cluster)
	condition := about.condition(v1beta1.ConditionHeadReady)
	if condition == nil || condition.Status == metav1.ConditionTrue {
		return reason.Finding{}, false
	}
	text, ok := strings.CutPrefix(condition.Message, "head pod "+name+": ")
	return reason.Finding{Code: condition.Reason, Text: text}, ok && condition.Reason != ""
}

// toldOfGroup is what the status says of workers, without their number in front.
func toldOfGroup(cluster *v1beta1.ComputeCluster, name string) (reason.Finding, bool) {
	for i := range cluster.Status.Groups {
		if group := &cluster.Status.Groups[i]; group.Name == name && group.Reason != "" {
			_, text, ok := strings.Cut(group.Message, " workers of "+name+": ")
			return reason.Finding{Code: group.Reason, Text: text}, ok
		}
	}
	return reason.Finding{}, false
}
