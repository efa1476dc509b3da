package integration

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// former is the commit of the last operator that knew nothing of suspension, policies and
// planned exits.
const former = "b9f22b9"

// TestANewOperatorTouchesNoRunningPod: clusters made by a former operator are taken over by
// today's, with new objects around them and every pod as it was.
func TestANewOperatorTouchesNoRunningPod(t *testing.T) {
	namespace := newNamespace(t)
	first := startProgram(t, formerOperator(t))
	var names []types.NamespacedName
	for i, edit := range formerSpecs() {
		cluster := newCluster(namespace, fmt.Sprintf("c%d", i), 2)
		cluster.Spec.WorkerGroups[0].DrainSeconds = nil
		edit(&cluster.Spec)
		must(t, shared.Create(t.Context(), cluster))
		names = append(names, client.ObjectKeyFromObject(cluster))
	}
	before := map[types.UID]bool{}
	for _, name := range names {
		ready(t, name)
		for _, pod := range podsOf(t, name, "") {
			before[pod.UID] = true
		}
	}
	first.quiet()
	first.stop(syscall.SIGTERM)

	startOperator(t).quiet()
	after := 0
	for _, name := range names {
		cluster := ready(t, name)
		for _, pod := range podsOf(t, name, "") {
			after++
			if !before[pod.UID] || pod.DeletionTimestamp != nil {
				t.Errorf("pod %s of %s is new or on its way out", pod.Name, name)
			}
		}
		if !meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionUpToDate) || cluster.Status.Epoch != 1 {
			t.Errorf("%s is in epoch %d with conditions %+v", name, cluster.Status.Epoch, cluster.Status.Conditions)
		}
	}
	if after != len(before) || after == 0 {
		t.Errorf("there were %d pods, and are %d", len(before), after)
	}
}

// formerSpecs are specs that a former operator knew, each of another kind.
func formerSpecs() []func(*v1alpha1.ComputeClusterSpec) {
	return []func(*v1alpha1.ComputeClusterSpec){
		func(*v1alpha1.ComputeClusterSpec) {},
		func(s *v1alpha1.ComputeClusterSpec) { s.WorkerGroups = nil },
		func(s *v1alpha1.ComputeClusterSpec) {
			s.Image, s.ImagePullPolicy = "example.com/ray:mine", corev1.PullIfNotPresent
			s.Head.Size, s.Head.Labels = amounts("cpu", "2", "memory", "6Gi"), map[string]string{"tier": "system"}
			s.WorkerGroups[0].Size = amounts("cpu", "500m", "memory", "1Gi", "nvidia.com/gpu", "1")
			s.WorkerGroups[0].RayResources = map[string]resource.Quantity{"reader": resource.MustParse("4")}
			s.WorkerGroups[0].RayStartParams = map[string]string{"min-worker-port": "11000"}
		},
		func(s *v1alpha1.ComputeClusterSpec) {
			s.WorkerGroups[0].Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "ray", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}, {Name: "side", Image: "example.com/side:1"}},
			}}
		},
	}
}

// formerOperator builds the former operator from this repository's history, in a place where the next run finds it.
func formerOperator(t *testing.T) string {
	t.Helper()
	tree := filepath.Join(t.TempDir(), "tree")
	run := func(dir, program string, args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), program, args...)
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v: %s: in a shallow clone, git fetch --unshallow helps", program, args, err, out)
		}
	}
	run("../..", "git", "worktree", "add", "--detach", tree, former)
	t.Cleanup(func() {
		remove := exec.CommandContext(context.WithoutCancel(t.Context()), "git", "worktree", "remove", "--force", tree)
		remove.Dir = "../.."
		if out, err := remove.CombinedOutput(); err != nil {
			t.Errorf("remove the tree of the former operator: %v: %s", err, out)
		}
	})
	program, err := filepath.Abs("../../.state/former-operator-" + former)
	must(t, err)
	run(tree, "go", "build", "-o", program, "./ray-operator/cmd/operator")
	return program
}

// amounts are resources, given as names and amounts in turn.
func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}
