package integration

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/bench/jobs"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// denying begins the names of namespaces in which admission denies pods on purpose. Tests run side by side, and each
// looks whether an operator was refused anything anywhere.
const denying = "denying"

// TestReasons_PodsThatAreNotMade checks that a status names the cause for which a pod is not made, and that the cluster
// goes on once the cause is gone. What keeps a pod that is there from running is shown on real kubelets.
func TestReasons_PodsThatAreNotMade(t *testing.T) {
	t.Parallel()
	r := &reasons{}
	names := newNamespace(t)
	namespaces := []string{names}
	for range refusals {
		namespaces = append(namespaces, newNamespaceOf(t, denying))
	}
	for range sizes {
		namespaces = append(namespaces, newNamespaceOf(t, denying))
	}
	startOperator(t, "--namespace="+live.ReleaseNamespace, "--watch-namespaces="+strings.Join(namespaces, ","), "--autoscaler-image=none")
	t.Run("all", func(t *testing.T) {
		for i := range refusals {
			t.Run(refusals[i].name, func(t *testing.T) {
				t.Parallel()
				r.refused(t, namespaces[i+1], &refusals[i])
			})
		}
		for kind, foreign := range foreigners(names) {
			t.Run("the name of its "+kind+" is taken", func(t *testing.T) {
				t.Parallel()
				r.nameTaken(t, kind, foreign)
			})
		}
		for i := range sizes {
			t.Run("a namespace asks for "+sizes[i].name, func(t *testing.T) { sizes[i].asked(t, namespaces[1+len(refusals)+i]) })
		}
		t.Run("the name of a worker is taken", func(t *testing.T) {
			t.Parallel()
			r.workerNameTaken(t, names)
		})
	})
	must(t, jobs.Save(r.told))
}

// reasons collects how causes were told of.
type reasons struct {
	mu   sync.Mutex
	told []live.Told
}

// tell notes when a cause was shown; make accept holds the times against what is promised.
func (r *reasons) tell(t *testing.T, told live.Told) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, told)
	t.Log(told)
}

// sighting waits for a cluster that a watch looks for, and gives it with the time.
type sighting func(what string) (*v1beta1.ComputeCluster, time.Time)

// sight watches the clusters of a namespace from now on for one that matches.
func sight(t *testing.T, namespace string, match func(*v1beta1.ComputeCluster) bool) sighting {
	t.Helper()
	wait, err := shared.Sight(t.Context(), namespace, &v1beta1.ComputeClusterList{}, func(object client.Object) bool {
		cluster, ok := object.(*v1beta1.ComputeCluster)
		return ok && match(cluster)
	})
	must(t, err)
	return func(what string) (*v1beta1.ComputeCluster, time.Time) {
		t.Helper()
		seen, err := wait(t.Context(), limit, what)
		must(t, err)
		return seen.Object.(*v1beta1.ComputeCluster), seen.At
	}
}

// lone is a cluster of small pods: of a head, where of is its role, or of a head that no node takes and one worker.
func lone(namespace, name, of string) *v1beta1.ComputeCluster {
	cluster := &v1beta1.ComputeCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1beta1.ComputeClusterSpec{RayVersion: "2.60.0"},
	}
	cluster.Spec.Head.Size = size("10m", "1536Mi")
	if of == v1beta1.RoleWorker {
		keepOff(&cluster.Spec.Head.NodeSpec)
		cluster.Spec.WorkerGroups = []v1beta1.WorkerGroup{{
			Name: "cpu", NodeSpec: v1beta1.NodeSpec{Size: size("10m", "512Mi")},
		}}
	}
	return cluster
}

func size(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}
}

// template is the node's, with its ray container, made where there is none yet.
func template(node *v1beta1.NodeSpec) (*corev1.PodTemplateSpec, *corev1.Container) {
	if node.Template == nil {
		ray := []corev1.Container{{Name: v1beta1.ContainerRay}}
		node.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: ray}}
	}
	return node.Template, &node.Template.Spec.Containers[0]
}

// keepOff keeps a pod off all nodes.
func keepOff(node *v1beta1.NodeSpec) {
	pod, _ := template(node)
	pod.Spec.NodeSelector = map[string]string{"example.com/disk": "none"}
}

// isFalse reports whether a condition of a cluster is False.
func isFalse(cluster *v1beta1.ComputeCluster, kind string) (*metav1.Condition, bool) {
	condition := meta.FindStatusCondition(cluster.Status.Conditions, kind)
	return condition, condition != nil && condition.Status == metav1.ConditionFalse
}

// podsLeft waits until a cluster has as many pods of a role, and gives them.
func podsLeft(t *testing.T, name types.NamespacedName, role string, n int) (pods []corev1.Pod) {
	t.Helper()
	eventually(t, name.Name+" to have its pods", func(ctx context.Context) (err error) {
		if pods, err = shared.PodsOf(ctx, name, role); err == nil && len(pods) != n {
			err = fmt.Errorf("there are %d", len(pods))
		}
		return err
	})
	return pods
}
