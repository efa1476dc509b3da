package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// gangScheduler is a scheduler that the API server knows the PodGroups of. What places pods is a stand-in: it binds those of
// a gang once as many are there as the PodGroup says, and not before.
type gangScheduler struct {
	name    v1beta1.SchedulerKind
	runs    string
	version schema.GroupVersion
	// crd is the file with its CRD, and groupOf names the PodGroup of a pod.
	crd     string
	groupOf func(*corev1.Pod) string
}

func annotated(key string) func(*corev1.Pod) string {
	return func(pod *corev1.Pod) string { return pod.Annotations[key] }
}

var gangSchedulers = []gangScheduler{
	{
		v1beta1.SchedulerVolcano, "volcano", schema.GroupVersion{Group: "scheduling.volcano.sh", Version: "v1beta1"},
		"volcano", annotated("scheduling.k8s.io/group-name"),
	},
	{v1beta1.SchedulerKAI, "kai-scheduler", schema.GroupVersion{Group: "scheduling.run.ai", Version: "v2alpha2"}, "kai", annotated("pod-group-name")},
	{
		v1beta1.SchedulerPlugins, "scheduler-plugins-scheduler", schema.GroupVersion{Group: "scheduling.x-k8s.io", Version: "v1alpha1"},
		"scheduler-plugins", func(pod *corev1.Pod) string { return pod.Labels["scheduling.x-k8s.io/pod-group"] },
	},
}

// TestGangs_ArePlacedAsOne: for each scheduler whose CRD is installed while the operator runs, a gang is bound as one, takes
// another size, has its minimum under autoscaling, is forged by nobody, and leaves nothing.
func TestGangs_ArePlacedAsOne(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	policyInForce(t, namespace)
	startOperator(t, "--watch-namespaces="+namespace, "--autoscaler-image=fake")
	ana := tenant(t, namespace)
	for i := range gangSchedulers {
		s := &gangSchedulers[i]
		t.Run(string(s.name), func(t *testing.T) {
			t.Parallel()
			s.uninstall(t) // what a run before has left
			s.life(t, ana, types.NamespacedName{Namespace: namespace, Name: s.crd})
		})
	}
}

// life is that of a cluster with the scheduler, beside ana.
func (s *gangScheduler) life(t *testing.T, ana client.Client, name types.NamespacedName) {
	cluster := newCluster(name.Namespace, name.Name, 2)
	cluster.Spec.Scheduler = &v1beta1.Scheduler{Name: s.name}
	must(t, shared.Create(t.Context(), cluster))
	eventually(t, "the cluster to say that the scheduler is missing", says(name, "SchedulerMissing"))
	if pods := podsOf(t, name, ""); len(pods) > 0 {
		t.Fatalf("%d pods were made that nobody would place together", len(pods))
	}

	s.install(t)
	s.bind(t, name, 3)
	ready(t, name)
	made := s.empty()
	must(t, s.find(t.Context(), name, made))
	refuseCopies(t, ana, made, "podgroups")
	scaleTo(t, name, 4)
	s.bind(t, name, 5)
	ready(t, name)
	scaleTo(t, name, 1)
	s.sized(t, name, 2)

	edit(t, name, func(spec *v1beta1.ComputeClusterSpec) { spec.Suspend = new(true) })
	eventually(t, "a suspended cluster to hold no place", func(ctx context.Context) error { return absent(s.find(ctx, name, s.empty())) })
	least, most := int32(1), int32(4)
	edit(t, name, func(spec *v1beta1.ComputeClusterSpec) {
		spec.Suspend, spec.Autoscaling = nil, &v1beta1.Autoscaling{}
		spec.WorkerGroups[0].MinReplicas, spec.WorkerGroups[0].MaxReplicas = &least, &most
	})
	s.bind(t, name, 2)

	must(t, shared.Delete(t.Context(), cluster))
	eventually(t, "nothing to be left of the gang", func(ctx context.Context) error { return absent(s.find(ctx, name, s.empty())) })
}

// TestGangs_OfYuniKornAreSaidOnPods: YuniKorn has no PodGroup. Each pod says how large the whole gang is, also of an autoscaled
// cluster, and a stand-in places them by that.
func TestGangs_OfYuniKornAreSaidOnPods(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, "--watch-namespaces="+namespace, "--autoscaler-image=fake")
	cluster := newCluster(namespace, "yunikorn", 2)
	cluster.Spec.Scheduler = &v1beta1.Scheduler{Name: v1beta1.SchedulerYuniKorn}
	must(t, shared.Create(t.Context(), cluster))
	name := client.ObjectKeyFromObject(cluster)
	gangOf := func(size int) func(*corev1.Pod) bool {
		return func(pod *corev1.Pod) bool {
			var groups []struct{ MinMember int }
			left := size
			err := json.Unmarshal([]byte(pod.Annotations["yunikorn.apache.org/task-groups"]), &groups)
			for _, group := range groups {
				left -= group.MinMember
			}
			return err == nil && left == 0 && pod.Spec.SchedulerName == "yunikorn" && pod.Labels["yunikorn.apache.org/app-id"] == "heliostat-"+string(cluster.UID)
		}
	}
	bindTogether(t, name, 3, gangOf(3))
	ready(t, name)

	edit(t, name, func(spec *v1beta1.ComputeClusterSpec) { spec.Suspend = new(true) })
	eventually(t, "a suspended cluster to have no pods", func(context.Context) error { return hasPods(t, namespace, 0) })
	edit(t, name, func(spec *v1beta1.ComputeClusterSpec) {
		spec.Suspend, spec.Autoscaling = nil, &v1beta1.Autoscaling{}
		spec.WorkerGroups[0].MinReplicas, spec.WorkerGroups[0].MaxReplicas = new(int32(1)), new(int32(4))
	})
	eventually(t, "the minimum of the autoscaled gang", func(context.Context) error {
		pods := podsOf(t, name, "")
		if !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return gangOf(2)(&pod) }) {
			return fmt.Errorf("none of %d pods says that the gang has two", len(pods))
		}
		return nil
	})
	must(t, shared.Delete(t.Context(), cluster))
	emptied(t, namespace)
}

// TestGangs_OfKubernetesAreAdmittedAsOne: the real scheduler binds no pod of a gang that does not fit as a whole, though its
// head would, and all of one that does; of an autoscaled cluster that is its minimum. The instance is up with --pod-groups.
func TestGangs_OfKubernetesAreAdmittedAsOne(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, "--watch-namespaces="+namespace, "--autoscaler-image=fake")
	large, small := types.NamespacedName{Namespace: namespace, Name: "large"}, types.NamespacedName{Namespace: namespace, Name: "small"}
	elastic := types.NamespacedName{Namespace: namespace, Name: "elastic"}
	build := func(name types.NamespacedName, workers int32, gpus string) *v1beta1.ComputeCluster { // the only node has 1000
		cluster := newCluster(namespace, name.Name, workers)
		cluster.Spec.Scheduler = &v1beta1.Scheduler{Name: v1beta1.SchedulerKubernetes}
		cluster.Spec.WorkerGroups[0].Size = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)}
		return cluster
	}
	must(t, shared.Create(t.Context(), build(large, 2, "600")))
	eventually(t, "the scheduler to look at the large gang", says(large, "Unschedulable"))
	must(t, shared.Create(t.Context(), build(small, 1, "600")))
	ready(t, small)
	placesMinimum(t, build(elastic, 1, "100"))
	for _, pod := range podsOf(t, large, "") {
		if pod.Spec.NodeName != "" {
			t.Errorf("pod %s of a gang that does not fit is on %s", pod.Name, pod.Spec.NodeName)
		}
	}
	edit(t, small, func(spec *v1beta1.ComputeClusterSpec) { spec.WorkerGroups[0].Replicas = new(int32) })
	eventually(t, "a smaller gang to be told of", func(ctx context.Context) error {
		var cluster v1beta1.ComputeCluster
		must(t, shared.Get(ctx, small, &cluster))
		if told := meta.FindStatusCondition(cluster.Status.Conditions, v1beta1.ConditionUpToDate); told == nil || told.Reason != "GangFixed" {
			return fmt.Errorf("it says %+v", told)
		}
		return nil
	})
	edit(t, large, func(spec *v1beta1.ComputeClusterSpec) { spec.Suspend = new(true) })
	native := gangScheduler{version: schema.GroupVersion{Group: "scheduling.k8s.io", Version: "v1alpha2"}}
	eventually(t, "a suspended cluster to hold no place", func(ctx context.Context) error { return absent(native.find(ctx, large, native.empty())) })
	for _, name := range []types.NamespacedName{large, small, elastic} {
		must(t, shared.Delete(t.Context(), &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name.Name}}))
		eventually(t, "nothing to be left of the gang", func(ctx context.Context) error { return absent(native.find(ctx, name, native.empty())) })
	}
}

// placesMinimum makes a cluster autoscaled, creates it and waits until its head and one worker are placed.
func placesMinimum(t *testing.T, cluster *v1beta1.ComputeCluster) {
	t.Helper()
	cluster.Spec.Autoscaling = &v1beta1.Autoscaling{}
	cluster.Spec.WorkerGroups[0].MinReplicas, cluster.Spec.WorkerGroups[0].MaxReplicas = new(int32(1)), new(int32(9))
	must(t, shared.Create(t.Context(), cluster))
	eventually(t, "the minimum of an autoscaled gang to be placed", func(context.Context) error {
		pods := podsOf(t, client.ObjectKeyFromObject(cluster), "")
		if placed := slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return pod.Spec.NodeName == "" }); len(placed) != 2 {
			return fmt.Errorf("%d pods are placed", len(placed))
		}
		return nil
	})
}

func edit(t *testing.T, name types.NamespacedName, change func(*v1beta1.ComputeClusterSpec)) {
	t.Helper()
	must(t, shared.Edit(t.Context(), name, change))
}

// says asks whether a cluster's Ready names a reason.
func says(name types.NamespacedName, why string) func(context.Context) error {
	return func(ctx context.Context) error {
		var cluster v1beta1.ComputeCluster
		if err := shared.Get(ctx, name, &cluster); err != nil {
			return err
		}
		if told := meta.FindStatusCondition(cluster.Status.Conditions, v1beta1.ConditionReady); told == nil || told.Reason != why {
			return fmt.Errorf("it says %+v", told)
		}
		return nil
	}
}

func (s *gangScheduler) empty() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(s.version.WithKind("PodGroup"))
	return object
}

func (s *gangScheduler) find(ctx context.Context, of types.NamespacedName, into *unstructured.Unstructured) error {
	return shared.Get(ctx, types.NamespacedName{Namespace: of.Namespace, Name: of.Name + "-gang"}, into)
}

// sized waits until the gang has a size.
func (s *gangScheduler) sized(t *testing.T, of types.NamespacedName, size int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("a gang of %d", size), func(ctx context.Context) error {
		object := s.empty()
		if err := s.find(ctx, of, object); err != nil {
			return err
		}
		if have, _, err := unstructured.NestedInt64(object.Object, "spec", "minMember"); err != nil || have != size {
			return errors.Join(fmt.Errorf("it is %d", have), err)
		}
		return nil
	})
}

// bind stands in for the scheduler: it waits for the whole gang, of a size, and then binds what waits.
func (s *gangScheduler) bind(t *testing.T, of types.NamespacedName, size int) {
	t.Helper()
	s.sized(t, of, int64(size))
	bindTogether(t, of, size, func(pod *corev1.Pod) bool {
		return pod.Spec.SchedulerName == s.runs && s.groupOf(pod) == of.Name+"-gang"
	})
}

// bindTogether waits for as many pods of a gang, and then binds those that wait.
func bindTogether(t *testing.T, of types.NamespacedName, size int, belongs func(*corev1.Pod) bool) {
	t.Helper()
	eventually(t, fmt.Sprintf("the %d pods of the gang", size), func(ctx context.Context) error {
		pods, err := shared.PodsOf(ctx, of, "")
		if err != nil {
			return err
		}
		pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil || !belongs(&pod) })
		if len(pods) != size {
			return fmt.Errorf("%d of them are there", len(pods))
		}
		for i := range pods {
			if pods[i].Spec.NodeName != "" {
				continue
			}
			binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "integration"}}
			if err := shared.SubResource("binding").Create(ctx, &pods[i], binding); err != nil {
				return err
			}
		}
		return nil
	})
}

// kind is the CRD.
func (s *gangScheduler) kind(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile("testdata/podgroups/" + s.crd + ".yaml")
	must(t, err)
	objects, err := live.Decode(text)
	must(t, err)
	return objects[0]
}

// install adds the kind, until the test ends.
func (s *gangScheduler) install(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(shared.Delete(context.WithoutCancel(t.Context()), s.kind(t))); err != nil {
			t.Error(err)
		}
	})
	must(t, shared.ApplyObject(t.Context(), s.kind(t)))
	eventually(t, "the kind to be served", func(ctx context.Context) error {
		return shared.List(ctx, listOf(s.version), client.InNamespace(metav1.NamespaceDefault))
	})
}

// uninstall waits until the API server does not know the kind.
func (s *gangScheduler) uninstall(t *testing.T) {
	t.Helper()
	kind := s.kind(t)
	must(t, client.IgnoreNotFound(shared.Delete(t.Context(), kind)))
	must(t, live.Until(t.Context(), unlearning, "the kind to be gone", func(ctx context.Context) error {
		err := shared.List(ctx, listOf(s.version), client.InNamespace(metav1.NamespaceDefault))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is served"), err)
	}))
}

func listOf(version schema.GroupVersion) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(version.WithKind("PodGroupList"))
	return list
}
