package gang_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/gang"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// placed is a gang of a head, two workers of cpu and none of gpu.
func placed(name v1beta1.SchedulerKind, edits ...func(*v1beta1.ComputeClusterSpec)) gang.Gang {
	cluster := testkit.Cluster("demo",
		testkit.Sized(testkit.Group("cpu", 2), "cpu", "2", "memory", "2Gi"), testkit.Sized(testkit.Group("gpu", 0), "nvidia.com/gpu", "1"))
	cluster.Spec.Head.Size = testkit.Resources("cpu", "1", "memory", "4Gi")
	cluster.Spec.Scheduler = &v1beta1.Scheduler{Name: name}
	for _, edit := range edits {
		edit(&cluster.Spec)
	}
	return gang.Gang{Cluster: cluster, Members: map[string]int{"cpu": 2, "gpu": 0}}
}

// single is a gang with one worker alone.
func single(of gang.Gang) gang.Gang {
	of.Members = map[string]int{"cpu": 1}
	return of
}

// queued names a queue, another name of the scheduler, and a priority class.
func queued(s *v1beta1.ComputeClusterSpec) {
	s.Scheduler.Queue, s.Scheduler.SchedulerName = "team", "mine"
	s.PodDefaults = &v1beta1.PodDefaults{PriorityClassName: "high"}
}

// urgent is what the head's template says of its priority, before podDefaults.
func urgent(s *v1beta1.ComputeClusterSpec) {
	template := testkit.Template()
	template.Spec.PriorityClassName = "urgent"
	s.PodDefaults, s.Head.Template = &v1beta1.PodDefaults{PriorityClassName: "high"}, template
}

func TestObject_SaysTheGangToItsScheduler(t *testing.T) {
	sum := map[string]any{"cpu": "5", "memory": "8Gi"}
	tasks := map[string]any{"ray.head": int64(1), "cpu": int64(2)}
	gangOf := func(policy string) map[string]any {
		return map[string]any{"schedulingPolicy": map[string]any{policy: map[string]any{"minCount": int64(3)}}}
	}
	for name, test := range map[string]struct {
		gang    gang.Gang
		version string
		kind    string
		want    map[string]any
	}{
		"Volcano": {
			placed(v1beta1.SchedulerVolcano), "v1beta1", "scheduling.volcano.sh/v1beta1",
			map[string]any{"minMember": int64(3), "minTaskMember": tasks, "minResources": sum},
		},
		"Volcano with queue and priority": {
			placed(v1beta1.SchedulerVolcano, queued), "v1beta1", "scheduling.volcano.sh/v1beta1",
			map[string]any{"minMember": int64(3), "minTaskMember": tasks, "minResources": sum, "queue": "team", "priorityClassName": "high"},
		},
		"Volcano with one worker": {
			single(placed(v1beta1.SchedulerVolcano)), "v1beta1", "scheduling.volcano.sh/v1beta1",
			map[string]any{
				"minMember": int64(2), "minTaskMember": map[string]any{"ray.head": int64(1), "cpu": int64(1)},
				"minResources": map[string]any{"cpu": "3", "memory": "6Gi"},
			},
		},
		"KAI's default queue": {
			placed(v1beta1.SchedulerKAI), "v2alpha2", "scheduling.run.ai/v2alpha2",
			map[string]any{"minMember": int64(3), "queue": "default-queue"},
		},
		"KAI with the head's priority": {
			placed(v1beta1.SchedulerKAI, urgent), "v2alpha2", "scheduling.run.ai/v2alpha2",
			map[string]any{"minMember": int64(3), "queue": "default-queue", "priorityClassName": "urgent"},
		},
		"KAI with queue and priority": {
			placed(v1beta1.SchedulerKAI, queued), "v2alpha2", "scheduling.run.ai/v2alpha2",
			map[string]any{"minMember": int64(3), "queue": "team", "priorityClassName": "high"},
		},
		"scheduler-plugins": {
			placed(v1beta1.SchedulerPlugins), "v1alpha1", "scheduling.x-k8s.io/v1alpha1",
			map[string]any{"minMember": int64(3), "minResources": sum},
		},
		"Kubernetes": {placed(v1beta1.SchedulerKubernetes), "v1beta1", "scheduling.k8s.io/v1beta1", gangOf("gang")},
	} {
		t.Run(name, func(t *testing.T) {
			object := test.gang.Object(test.version)
			if owner := metav1.GetControllerOf(object); owner == nil || owner.Kind != "ComputeCluster" {
				t.Errorf("the object belongs to %+v", owner)
			}
			if object.GetAPIVersion() != test.kind || object.GetKind() != "PodGroup" || object.GetName() != "demo-gang" ||
				object.GetNamespace() != testkit.Namespace || object.GetLabels()[v1beta1.LabelCluster] != "demo" {
				t.Errorf("the object is %v", object.Object)
			}
			if diff := cmp.Diff(test.want, object.Object["spec"]); diff != "" {
				t.Errorf("the spec (- want, + have):\n%s", diff)
			}
		})
	}
}

// joined are what a pod got of a gang.
type joined struct {
	Scheduler, Group    string
	Labels, Annotations map[string]string
}

// join gives what a pod has beyond one of a cluster without a scheduler.
func join(of gang.Gang, build func(*v1beta1.ComputeCluster) *corev1.Pod) joined {
	plain, made := build(of.Cluster), build(of.Cluster)
	of.Join(made)
	more := func(before, after map[string]string) map[string]string {
		added := map[string]string{}
		for key, value := range after {
			if before[key] != value {
				added[key] = value
			}
		}
		return added
	}
	got := joined{made.Spec.SchedulerName, "", more(plain.Labels, made.Labels), more(plain.Annotations, made.Annotations)}
	if group := made.Spec.SchedulingGroup; group != nil {
		got.Group = *group.PodGroupName
	}
	return got
}

func head(cluster *v1beta1.ComputeCluster) *corev1.Pod { return pod.Head(cluster, 1) }

func worker(group int) func(*v1beta1.ComputeCluster) *corev1.Pod {
	return func(cluster *v1beta1.ComputeCluster) *corev1.Pod {
		return pod.Worker(cluster, &cluster.Spec.WorkerGroups[group], 0, 1)
	}
}

// stays are the tolerations that every pod of a cluster has.
const stays = `"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":60},` +
	`{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":60}]`

func TestJoin_SaysTheGangOnEachPod(t *testing.T) {
	none, app := map[string]string{}, "heliostat-demo-uid"
	groups := `[{"name":"ray.head","minMember":1,"minResource":{"cpu":"1","memory":"4Gi"},` + stays + `},` +
		`{"name":"cpu","minMember":2,"minResource":{"cpu":"2","memory":"2Gi"},` + stays + `}]`
	yuniKorn := func(more map[string]string) map[string]string {
		all := map[string]string{"yunikorn.apache.org/app-id": app}
		for key, value := range more {
			all["yunikorn.apache.org/"+key] = value
		}
		return all
	}
	volcano := func(task string) map[string]string {
		return map[string]string{"scheduling.k8s.io/group-name": "demo-gang", "volcano.sh/task-spec": task}
	}
	kai := map[string]string{"kai.scheduler/skip-podgrouper": "true", "pod-group-name": "demo-gang"}
	for name, test := range map[string]struct {
		gang  gang.Gang
		build func(*v1beta1.ComputeCluster) *corev1.Pod
		want  joined
	}{
		"Volcano's head":         {placed(v1beta1.SchedulerVolcano), head, joined{"volcano", "", none, volcano("ray.head")}},
		"a worker under Volcano": {placed(v1beta1.SchedulerVolcano, queued), worker(0), joined{"mine", "", none, volcano("cpu")}},
		"KAI":                    {placed(v1beta1.SchedulerKAI), head, joined{"kai-scheduler", "", none, kai}},
		"KAI with a queue":       {placed(v1beta1.SchedulerKAI, queued), head, joined{"mine", "", map[string]string{"kai.scheduler/queue": "team"}, kai}},
		"scheduler-plugins": {
			placed(v1beta1.SchedulerPlugins), head,
			joined{"scheduler-plugins-scheduler", "", map[string]string{"scheduling.x-k8s.io/pod-group": "demo-gang"}, none},
		},
		"Kubernetes": {placed(v1beta1.SchedulerKubernetes), worker(0), joined{"default-scheduler", "demo-gang", none, none}},
		"YuniKorn's head": {
			placed(v1beta1.SchedulerYuniKorn), head,
			joined{"yunikorn", "", yuniKorn(nil), yuniKorn(map[string]string{"task-groups": groups, "task-group-name": "ray.head"})},
		},
		"a worker under YuniKorn": {
			placed(v1beta1.SchedulerYuniKorn, queued), worker(0),
			joined{"mine", "", yuniKorn(map[string]string{"queue": "team"}), yuniKorn(map[string]string{"queue": "team", "task-groups": groups, "task-group-name": "cpu"})},
		},
		"the only worker under YuniKorn": {
			single(placed(v1beta1.SchedulerYuniKorn)), worker(0),
			joined{"yunikorn", "", yuniKorn(nil), yuniKorn(map[string]string{
				"task-groups": strings.Replace(groups, `"cpu","minMember":2`, `"cpu","minMember":1`, 1), "task-group-name": "cpu",
			})},
		},
		"a worker beyond YuniKorn's gang": {
			placed(v1beta1.SchedulerYuniKorn), worker(1), joined{"yunikorn", "", yuniKorn(nil), yuniKorn(map[string]string{"task-groups": groups})},
		},
		"no scheduler": {
			placed("", func(s *v1beta1.ComputeClusterSpec) { s.Scheduler = nil }), head, joined{"", "", none, none},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, join(test.gang, test.build)); diff != "" {
				t.Errorf("(- want, + have):\n%s", diff)
			}
		})
	}
}

// TestJoin_DescribesPlaceholders: YuniKorn holds places with pods of its own, which must fit where ours will.
func TestJoin_DescribesPlaceholders(t *testing.T) {
	of := placed(v1beta1.SchedulerYuniKorn, func(s *v1beta1.ComputeClusterSpec) {
		s.PodDefaults, s.Head.Template = &v1beta1.PodDefaults{NodeSelector: map[string]string{"pool": "a"}}, testkit.Template()
		s.Head.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	})
	of.Members = nil
	made := head(of.Cluster)
	of.Join(made)
	want := `[{"name":"ray.head","minMember":1,"minResource":{"cpu":"1","memory":"4Gi"},"nodeSelector":{"pool":"a"},` + stays + `,"affinity":{"nodeAffinity":{}}}]`
	if have := made.Annotations["yunikorn.apache.org/task-groups"]; have != want {
		t.Errorf("%s, want %s", have, want)
	}
}

func TestKindOf_IsThatOfTheScheduler(t *testing.T) {
	native, needed := gang.KindOf(placed(v1beta1.SchedulerKubernetes).Cluster)
	if !needed || native.CanResize("v1alpha2") || !native.CanResize("v1alpha3") || !native.CanResize("v1beta1") {
		t.Errorf("Kubernetes needs an object: %v; of 1.36 it keeps its size, and of 1.37 not", needed)
	}
	if volcano, _ := gang.KindOf(placed(v1beta1.SchedulerVolcano).Cluster); !volcano.CanResize("v1beta1") {
		t.Error("Volcano's gangs keep their size")
	}
	if _, needed := gang.KindOf(placed(v1beta1.SchedulerYuniKorn).Cluster); needed {
		t.Error("YuniKorn needs an object")
	}
	if _, needed := gang.KindOf(testkit.Cluster("demo")); needed {
		t.Error("a cluster without a scheduler needs an object")
	}
}

// TestKindOf_PrefersTheLatestVersion: of those that the API server may have.
func TestKindOf_PrefersTheLatestVersion(t *testing.T) {
	for name, want := range map[v1beta1.SchedulerKind][]string{
		v1beta1.SchedulerVolcano: {"v1beta1"}, v1beta1.SchedulerKAI: {"v2alpha2"}, v1beta1.SchedulerPlugins: {"v1alpha1"},
		v1beta1.SchedulerKubernetes: {"v1beta1", "v1alpha3", "v1alpha2"},
	} {
		kind, _ := gang.KindOf(placed(name).Cluster)
		if diff := cmp.Diff(want, kind.Versions); diff != "" {
			t.Errorf("%s (- want, + have):\n%s", name, diff)
		}
	}
}

func TestHolds_IsFalseOfAnotherSize(t *testing.T) {
	of := placed(v1beta1.SchedulerPlugins)
	seen := of.Object("v1alpha1")
	seen.Object["spec"].(map[string]any)["scheduleTimeoutSeconds"] = int64(10)
	if !gang.Holds(seen, of.Object("v1alpha1")) {
		t.Error("what others added counts")
	}
	of.Members["cpu"] = 3
	if gang.Holds(seen, of.Object("v1alpha1")) {
		t.Error("another size does not count")
	}
}
