package gang

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// scheduler is what one sort of scheduler wants to be told.
type scheduler struct {
	// runs is the name under which it runs by default.
	runs string
	// kind is of the object by which it knows a gang, empty where it needs none.
	kind Kind
	// join writes on a pod to which gang it belongs.
	join func(g Gang, made *corev1.Pod)
	// spec is that of the object.
	spec func(g Gang) map[string]any
}

// kubernetes is the kind of Kubernetes' own gangs.
var kubernetes = schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PodGroup"}

// schedulers is every scheduler that is known.
var schedulers = map[v1beta1.SchedulerKind]scheduler{
	v1beta1.SchedulerVolcano: {
		runs: "volcano", join: joinVolcano, spec: ofVolcano,
		kind: Kind{schema.GroupKind{Group: "scheduling.volcano.sh", Kind: "PodGroup"}, []string{"v1beta1"}},
	},
	v1beta1.SchedulerYuniKorn: {runs: "yunikorn", join: joinYuniKorn},
	v1beta1.SchedulerKAI: {
		runs: "kai-scheduler", join: joinKAI, spec: ofKAI,
		kind: Kind{schema.GroupKind{Group: "scheduling.run.ai", Kind: "PodGroup"}, []string{"v2alpha2"}},
	},
	v1beta1.SchedulerPlugins: {
		runs: "scheduler-plugins-scheduler", join: joinPlugins, spec: ofPlugins,
		kind: Kind{schema.GroupKind{Group: "scheduling.x-k8s.io", Kind: "PodGroup"}, []string{"v1alpha1"}},
	},
	v1beta1.SchedulerKubernetes: {
		runs: corev1.DefaultSchedulerName, join: joinKubernetes, spec: ofKubernetes,
		kind: Kind{kubernetes, []string{"v1beta1", "v1alpha3", "v1alpha2"}},
	},
}

// headTask is what the head is called among the groups, whose names are DNS labels: none has a dot.
const headTask = "ray.head"

// taskOf names the group of a pod.
func taskOf(made *corev1.Pod) string {
	if group := made.Labels[v1beta1.LabelGroup]; group != "" {
		return group
	}
	return headTask
}

func joinVolcano(g Gang, made *corev1.Pod) {
	made.Annotations["scheduling.k8s.io/group-name"] = naming.Gang(g.Cluster.Name)
	made.Annotations["volcano.sh/task-spec"] = taskOf(made)
}

// ofVolcano has a minimum for each group too: workers beyond the minimum of one must not stand in for those of another.
func ofVolcano(g Gang) map[string]any {
	tasks := map[string]any{headTask: int64(1)}
	for group, count := range g.Members {
		if count > 0 {
			tasks[group] = int64(count)
		}
	}
	spec := map[string]any{"minMember": int64(g.Size()), "minTaskMember": tasks, "minResources": asText(g.requests())}
	g.setQueue(spec)
	g.setPriority(spec)
	return spec
}

// joinKAI keeps KAI's own grouper from making another gang of the pods, of one member.
func joinKAI(g Gang, made *corev1.Pod) {
	made.Annotations["kai.scheduler/skip-podgrouper"] = "true"
	made.Annotations["pod-group-name"] = naming.Gang(g.Cluster.Name)
	if queue := g.Cluster.Spec.Scheduler.Queue; queue != "" {
		made.Labels["kai.scheduler/queue"] = queue
	}
}

func ofKAI(g Gang) map[string]any {
	spec := map[string]any{"minMember": int64(g.Size()), "queue": "default-queue"}
	g.setQueue(spec)
	g.setPriority(spec)
	return spec
}

func joinPlugins(g Gang, made *corev1.Pod) {
	made.Labels["scheduling.x-k8s.io/pod-group"] = naming.Gang(g.Cluster.Name)
}

func ofPlugins(g Gang) map[string]any {
	return map[string]any{"minMember": int64(g.Size()), "minResources": asText(g.requests())}
}

func joinKubernetes(g Gang, made *corev1.Pod) {
	name := naming.Gang(g.Cluster.Name)
	made.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
}

func ofKubernetes(g Gang) map[string]any {
	return map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(g.Size())}}}
}

func (g Gang) setQueue(spec map[string]any) {
	if queue := g.Cluster.Spec.Scheduler.Queue; queue != "" {
		spec["queue"] = queue
	}
}

func (g Gang) setPriority(spec map[string]any) {
	if class := g.priority(); class != "" {
		spec["priorityClassName"] = class
	}
}

// taskGroup is YuniKorn's form of a group of a gang.
type taskGroup struct {
	Name         string              `json:"name"`
	MinMember    int                 `json:"minMember"`
	MinResource  map[string]any      `json:"minResource"`
	NodeSelector map[string]string   `json:"nodeSelector,omitempty"`
	Tolerations  []corev1.Toleration `json:"tolerations,omitempty"`
	Affinity     *corev1.Affinity    `json:"affinity,omitempty"`
}

const yuniKorn = "yunikorn.apache.org/"

// joinYuniKorn says the whole gang on each pod: YuniKorn reads it from whichever it sees first. A group without a member
// has no place held, so its pods name none.
func joinYuniKorn(g Gang, made *corev1.Pod) {
	said := map[string]string{"app-id": "heliostat-" + string(g.Cluster.UID)}
	if queue := g.Cluster.Spec.Scheduler.Queue; queue != "" {
		said["queue"] = queue
	}
	for key, value := range said {
		made.Labels[yuniKorn+key], made.Annotations[yuniKorn+key] = value, value
	}
	groups, _ := json.Marshal(g.taskGroups()) // API types always marshal: they came from JSON
	made.Annotations[yuniKorn+"task-groups"] = string(groups)
	if group := made.Labels[v1beta1.LabelGroup]; group == "" || g.Members[group] > 0 {
		made.Annotations[yuniKorn+"task-group-name"] = taskOf(made)
	}
}

func (g Gang) taskGroups() []taskGroup {
	all := []taskGroup{g.taskGroup(headTask, 1, pod.Head(g.Cluster, 1))}
	for _, name := range slices.Sorted(maps.Keys(g.Members)) {
		if group := naming.FindGroup(g.Cluster, name); group != nil && g.Members[name] > 0 {
			all = append(all, g.taskGroup(name, g.Members[name], pod.Worker(g.Cluster, group, 0, 1)))
		}
	}
	return all
}

// taskGroup describes a group by one of its pods.
func (g Gang) taskGroup(name string, count int, like *corev1.Pod) taskGroup {
	return taskGroup{
		Name: name, MinMember: count, MinResource: asText(pod.Requests(g.Cluster, like.Labels[v1beta1.LabelGroup])),
		NodeSelector: like.Spec.NodeSelector, Tolerations: like.Spec.Tolerations, Affinity: like.Spec.Affinity,
	}
}
