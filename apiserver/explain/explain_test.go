package explain_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

var (
	born = time.Date(2026, 11, 21, 15, 30, 0, 0, time.UTC)
	now  = born.Add(time.Hour)
)

// at is some minutes after everything was made.
func at(minutes int) metav1.Time {
	return metav1.NewTime(born.Add(time.Duration(minutes) * time.Minute))
}

func objectMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name + "-uid"), CreationTimestamp: at(0)}
}

// condition has a finding, and has been as it is for so many minutes after everything was made.
func condition(kind string, status metav1.ConditionStatus, finding reason.Finding, minutes int) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: finding.Code, Message: finding.Text, LastTransitionTime: at(minutes)}
}

func unready(finding reason.Finding) metav1.Condition {
	return condition(v1beta1.ConditionReady, metav1.ConditionFalse, finding, 1)
}

func clusterOf(name string, conditions ...metav1.Condition) *v1beta1.ComputeCluster {
	cluster := &v1beta1.ComputeCluster{ObjectMeta: objectMeta(name)}
	cluster.Status.Conditions = conditions
	return cluster
}

func jobOf(name string, conditions ...metav1.Condition) *v1beta1.ClusterJob {
	job := &v1beta1.ClusterJob{ObjectMeta: objectMeta(name)}
	job.Status.Conditions = conditions
	return job
}

func serviceOf(name string, conditions ...metav1.Condition) *v1beta1.ClusterService {
	service := &v1beta1.ClusterService{ObjectMeta: objectMeta(name)}
	service.Status.Conditions = conditions
	return service
}

// podOf is a pod of a cluster; without a group it is its head.
func podOf(cluster *v1beta1.ComputeCluster, name, group string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: objectMeta(name)}
	pod.Labels = map[string]string{v1beta1.LabelRole: v1beta1.RoleHead, v1beta1.LabelEpoch: "1"}
	if group != "" {
		pod.Labels = map[string]string{v1beta1.LabelRole: v1beta1.RoleWorker, v1beta1.LabelGroup: group, v1beta1.LabelEpoch: "1"}
	}
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: explain.KindCluster, Name: cluster.Name, UID: cluster.UID, Controller: new(true)}}
	pod.Spec.Containers = []corev1.Container{{Name: v1beta1.ContainerRay, Image: "ray:1"}}
	return pod
}

// unschedulable is a pod that the scheduler has no node for.
func unschedulable(pod *corev1.Pod) *corev1.Pod {
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: at(2),
		Message: "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 2 No preemption victims found.",
	}}
	return pod
}

// starting is a pod whose container runs and does not answer yet.
func starting(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.NodeName = "node1"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: v1beta1.ContainerRay, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}},
	}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: at(3)}}
	return pod
}

func ready(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.NodeName = "node1"
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at(3)}}
	return pod
}

// lines are a chain as a person reads it.
func lines(causes []explain.Cause) []string {
	var all []string
	for _, cause := range causes {
		all = append(all, fmt.Sprintf("%s %s/%s %s: %s (%s)", cause.Kind, cause.Namespace, cause.Name, cause.Code, cause.Message, cause.Remedy))
	}
	return all
}

// values fill the formats of a reason.
func values(entry reason.Reason) []any {
	var all []any
	text := entry.Message + entry.Remedy
	for i := range len(text) - 1 {
		switch text[i : i+2] {
		case "%s":
			all = append(all, fmt.Sprintf("word%d", len(all)))
		case "%d":
			all = append(all, len(all))
		}
	}
	return all
}

// TestHeadline_IsTheStatus: for every reason of the catalogue, on every kind, the first link is what the status says.
func TestHeadline_IsTheStatus(t *testing.T) {
	for _, entry := range reason.Catalogue() {
		for _, c := range append([]reason.Case{{}}, entry.Cases...) {
			finding := entry.In(c.Kind).Of(values(entry.In(c.Kind))...)
			for _, subject := range []string{"", "head pod demo-head-a: ", "3 of 8 workers of gpu: "} {
				text := reason.Finding{Code: finding.Code, Text: subject + finding.Text}
				message, remedy := reason.Split(text.Code, text.Text)
				for _, object := range []runtime.Object{
					clusterOf("demo", unready(text)), jobOf("demo", unready(text)), serviceOf("demo", unready(text)),
				} {
					want := explain.Cause{Namespace: "team", Name: "demo", Code: text.Code, Message: message, Remedy: remedy, Since: at(1).Time}
					have := explain.Headline(object)
					want.Kind = have.Kind
					if diff := cmp.Diff(want, have); diff != "" {
						t.Errorf("%s: %s", text.Text, diff)
					}
					if chain := explain.Explain(explain.Input{Object: object, Now: now}); len(chain) == 0 || chain[0] != have {
						t.Errorf("%s: the chain is %v", text.Text, lines(chain))
					}
				}
			}
		}
	}
}

// recorded is what a status was seen to say in the acceptance of clusters, on real kubelets and API servers.
type recorded struct {
	Cause, Of, Reason, Message string
}

// statusOf is a cluster with a cause, as the operator tells of it: of the head in HeadReady, of workers in their group.
func (r recorded) statusOf() *v1beta1.ComputeCluster {
	finding := reason.Finding{Code: r.Reason, Text: r.Message}
	cluster := clusterOf("solo", unready(finding), condition(v1beta1.ConditionReconciling, metav1.ConditionTrue, finding, 1))
	add := func(kind string, finding reason.Finding) {
		cluster.Status.Conditions = append(cluster.Status.Conditions, condition(kind, metav1.ConditionFalse, finding, 1))
	}
	switch r.Of {
	case v1beta1.RoleHead:
		add(v1beta1.ConditionHeadReady, finding)
		add(v1beta1.ConditionWorkersReady, reason.WorkersStarting.Of(0, 1))
	case v1beta1.RoleWorker:
		add(v1beta1.ConditionWorkersReady, finding)
		cluster.Status.Groups = []v1beta1.GroupStatus{{Name: "cpu", Reason: r.Reason, Message: r.Message}}
	}
	return cluster
}

// podOf is the pod that a cause is of, if there is one yet, as a kubelet that says nothing has it.
func (r recorded) podOf(cluster *v1beta1.ComputeCluster) *corev1.Pod {
	switch name, _, ok := strings.Cut(strings.TrimPrefix(r.Message, "head pod "), ": "); {
	case strings.HasPrefix(r.Message, "head pod ") && ok:
		return starting(podOf(cluster, name, ""))
	case strings.HasPrefix(r.Message, "1 of 1 workers of cpu: "):
		return starting(podOf(cluster, "solo-cpu-0", "cpu"))
	default:
		return nil
	}
}

// TestExplain_RecordedCauses: the chain of each of the 68 causes begins as the status does, and leads to the pod.
func TestExplain_RecordedCauses(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("testdata", "causes.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []recorded
	if err := json.Unmarshal(content, &all); err != nil || len(all) != 68 {
		t.Fatalf("%d causes, %v", len(all), err)
	}
	for _, r := range all {
		t.Run(r.Cause+" of the "+r.Of, func(t *testing.T) {
			cluster := r.statusOf()
			pod := r.podOf(cluster)
			chain := explain.Explain(explain.Input{Object: cluster, Pods: []*corev1.Pod{pod}, Now: now})
			message, remedy := reason.Split(r.Reason, r.Message)
			first := explain.Cause{
				Kind: explain.KindCluster, Namespace: "team", Name: "solo", Code: r.Reason, Message: message, Remedy: remedy, Since: at(1).Time,
			}
			if chain[0] != first {
				t.Errorf("begins with %v, want %v", chain[0], first)
			}
			if pod == nil {
				return
			}
			_, words, _ := strings.Cut(message, ": ")
			last := explain.Cause{Kind: explain.KindPod, Namespace: "team", Name: pod.Name, Code: r.Reason, Message: words, Remedy: remedy, Since: at(3).Time}
			if diff := cmp.Diff([]explain.Cause{first, last}, chain); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestExplain_TellsOfPodsAsTheOperatorDoes: of pods of real kubelets, as far as the server holds them and before the status says
// anything of them.
func TestExplain_TellsOfPodsAsTheOperatorDoes(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "ray-operator", "diagnose", "testdata", "kubelet", "*.yaml"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d recordings: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var recording struct{ Pod corev1.Pod }
			if err := yaml.Unmarshal(content, &recording); err != nil {
				t.Fatal(err)
			}
			pod, cluster := &recording.Pod, clusterOf("solo", unready(reason.HeadMissing.Of()))
			head := podOf(cluster, "head", "")
			pod.Name, pod.Namespace, pod.Labels, pod.OwnerReferences = head.Name, head.Namespace, head.Labels, head.OwnerReferences
			seen := pod.CreationTimestamp.Add(3 * time.Minute)
			finding, found := diagnose.Pod(pod, nil, seen)
			if !found {
				t.Fatal("it is ready")
			}
			message, remedy := reason.Split(finding.Code, finding.Text)
			want := explain.Cause{Kind: explain.KindPod, Namespace: "team", Name: "head", Code: finding.Code, Message: message, Remedy: remedy,
				Since: diagnose.Since(pod, seen)}
			view.Trim(pod)
			chain := explain.Explain(explain.Input{Object: cluster, Pods: []*corev1.Pod{pod}, Now: seen})
			if diff := cmp.Diff([]explain.Cause{want}, chain[1:]); diff != "" {
				t.Error(diff)
			}
		})
	}
}
