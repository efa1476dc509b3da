package testkit

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
)

// state is a world's end: every object as JSON, without what differs between two runs
// that mean the same, such as UIDs and times. Slots and replicas of a group are counted
// again from 0: which of them are taken depends on how long the pods before them took to go.
type state map[string]string

func (w *World) state() state {
	objects := w.all()
	ranked := ranks(objects)
	end := state{}
	for _, obj := range objects {
		if _, is := obj.(*discoveryv1.EndpointSlice); is { // it follows from Services and pods
			continue
		}
		ranked.renumber(obj)
		normalise(obj)
		text, err := json.Marshal(obj)
		w.Must(err)
		name := fmt.Sprintf("%s %s/%s", kindOf(obj), obj.GetNamespace(), obj.GetName())
		end[ranked.names.Replace(name)] = ranked.names.Replace(string(text))
	}
	return end
}

// rank gives numbers of a group their place in its order.
type rank struct {
	slots, replicas map[string]map[string]int
	// names gives what is named after a slot the name of its place.
	names *strings.Replacer
}

func groupOf(obj client.Object) string {
	labels := obj.GetLabels()
	return fmt.Sprintf("%s/%s epoch %s", labels[v1beta1.LabelCluster], labels[v1beta1.LabelGroup], labels[v1beta1.LabelEpoch])
}

func ranks(objects []client.Object) rank {
	r := rank{slots: map[string]map[string]int{}, replicas: map[string]map[string]int{}}
	for label, numbers := range map[string]map[string]map[string]int{v1beta1.LabelSlot: r.slots, v1beta1.LabelReplica: r.replicas} {
		seen := map[string][]int{}
		for _, obj := range objects {
			if number, err := strconv.Atoi(obj.GetLabels()[label]); err == nil {
				seen[groupOf(obj)] = append(seen[groupOf(obj)], number)
			}
		}
		for group, all := range seen {
			slices.Sort(all)
			numbers[group] = map[string]int{}
			for i, number := range slices.Compact(all) {
				numbers[group][strconv.Itoa(number)] = i
			}
		}
	}
	var names []string
	for _, obj := range objects {
		if obj.GetLabels()[v1beta1.LabelRole] == v1beta1.RoleHead {
			names = append(names, obj.GetName(), "(head of "+groupOf(obj)+" )")
		}
		if place, ok := r.slots[groupOf(obj)][obj.GetLabels()[v1beta1.LabelSlot]]; ok {
			names = append(names, obj.GetName(), fmt.Sprintf("(%s %d of %s )", kindOf(obj), place, groupOf(obj)))
		}
	}
	r.names = strings.NewReplacer(names...)
	return r
}

// renumber puts the places into the labels.
func (r rank) renumber(obj client.Object) {
	labels, group := obj.GetLabels(), groupOf(obj)
	for label, numbers := range map[string]map[string]map[string]int{v1beta1.LabelSlot: r.slots, v1beta1.LabelReplica: r.replicas} {
		if place, ok := numbers[group][labels[label]]; ok {
			labels[label] = strconv.Itoa(place)
		}
	}
	if pod, ok := obj.(*corev1.Pod); ok && labels[v1beta1.LabelReplica] != "" {
		for i := range pod.Spec.Containers {
			for j, env := range pod.Spec.Containers[i].Env {
				if env.Name == replicaIndex {
					pod.Spec.Containers[i].Env[j].Value = labels[v1beta1.LabelReplica]
				}
			}
		}
	}
}

// replicaIndex tells the programs in a pod the number of its replica.
const replicaIndex = "HELIOSTAT_REPLICA_INDEX"

// epochs are numbers of epochs, and what is hashed of objects that hold one.
var epochs = regexp.MustCompile(`(heliostat.dev/epoch":"|epoch\\?":|epoch |heliostat.dev/applied":"|--redis-username=head-)[^",}\\]+`)

// withoutEpochs is the state with every epoch taken for the same.
func (s state) withoutEpochs() state {
	same := state{}
	for name, text := range s {
		same[epochs.ReplaceAllString(name, "${1}")] = epochs.ReplaceAllString(text, "${1}")
	}
	return same
}

// output is what a job's status tells of the output of attempts.
var output = regexp.MustCompile(`,"lastLines":\[[^]]*\]|,"logState":"[A-Za-z]+"`)

// wasSuspended is what the status of a job that was suspended and is not any more says of that.
var wasSuspended = regexp.MustCompile(`,?\{"type":"Suspended","status":"False"[^}]*\}`)

// withoutOutput is the state without the output of attempts, and what else a status alone tells.
func (s state) withoutOutput() state {
	same := state{}
	for name, text := range s {
		same[name] = wasSuspended.ReplaceAllString(output.ReplaceAllString(text, ""), "")
	}
	return same
}

// withoutLosses returns the state with all losses replaced by one marker.
func (s state) withoutLosses() state {
	same := state{}
	for name, text := range s {
		same[name] = strings.ReplaceAll(text, `"ClusterGone"`, `"HeadLost"`)
	}
	return same
}

// diff tells in which objects two ends differ, empty if in none.
func (s state) diff(other state) string {
	if maps.Equal(s, other) {
		return ""
	}
	var differences []string
	names := slices.Sorted(maps.Keys(s))
	for name := range other {
		if _, ok := s[name]; !ok {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if s[name] != other[name] {
			differences = append(differences, name+":\n"+cmp.Diff(lines(s[name]), lines(other[name])))
		}
	}
	return strings.Join(differences, "\n")
}

func lines(text string) []string {
	readable, err := yaml.JSONToYAML([]byte(text))
	if err != nil {
		return []string{text}
	}
	return strings.Split(string(readable), "\n")
}

func normalise(obj client.Object) {
	obj.SetUID("")
	obj.SetResourceVersion("")
	obj.SetCreationTimestamp(metav1.Time{})
	switch obj := obj.(type) {
	case *v1beta1.ComputeCluster:
		normaliseCluster(obj)
	case *v1beta1.ClusterJob:
		normaliseJob(obj)
	case *v1beta1.ClusterService:
		normaliseService(obj)
	case *gatewayv1.HTTPRoute:
		obj.Generation, obj.Status = 0, gatewayv1.HTTPRouteStatus{}
	case *corev1.Pod:
		normalisePod(obj)
	case *corev1.Node:
		for i := range obj.Spec.Taints {
			obj.Spec.Taints[i].TimeAdded = nil
		}
		for i := range obj.Status.Conditions {
			obj.Status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
	case *corev1.Secret:
		for name := range obj.Data {
			obj.Data[name] = nil
		}
	}
}

func normalisePod(obj *corev1.Pod) {
	delete(obj.Annotations, v1beta1.AnnotationClosed) // what it was for is done in the end
	for _, unsteady := range []string{v1beta1.AnnotationDrain, v1beta1.AnnotationToken} {
		if obj.Annotations[unsteady] != "" {
			obj.Annotations[unsteady] = "some"
		}
	}
	if obj.DeletionTimestamp != nil {
		obj.DeletionTimestamp, obj.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Unix(0, 0)}, nil
	}
	for i := range obj.Status.Conditions {
		obj.Status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	for i := range obj.Status.ContainerStatuses {
		obj.Status.ContainerStatuses[i].State, obj.Status.ContainerStatuses[i].LastTerminationState = corev1.ContainerState{}, corev1.ContainerState{}
	}
}

// times are those in messages.
var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// normaliseJob keeps of what the operator says of a job what does not depend on when it saw
// what: phase, conditions, and how each attempt ended.
func normaliseJob(obj *v1beta1.ClusterJob) {
	delete(obj.Annotations, v1beta1.AnnotationRecord)
	status := v1beta1.ClusterJobStatus{Phase: obj.Status.Phase, Attempt: obj.Status.Attempt, ClusterName: obj.Status.ClusterName}
	for i := range obj.Status.Conditions {
		told := &obj.Status.Conditions[i]
		status.Conditions = append(status.Conditions, metav1.Condition{Type: told.Type, Status: told.Status, Reason: told.Reason})
	}
	slices.SortFunc(status.Conditions, byType)
	for i := range obj.Status.Attempts {
		told := &obj.Status.Attempts[i]
		status.Attempts = append(status.Attempts, v1beta1.JobAttempt{
			Number: told.Number, ClusterName: told.ClusterName, Reason: told.Reason, ExitCode: told.ExitCode, LogState: told.LogState,
			LastLines: told.LastLines,
		})
	}
	obj.Status = status
	if obj.DeletionTimestamp != nil {
		obj.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
	}
}

// normaliseService keeps of what the operator says of a service what does not depend on when
// it saw what: phase, conditions, and the versions that there are.
func normaliseService(obj *v1beta1.ClusterService) {
	delete(obj.Annotations, v1beta1.AnnotationRecord)
	status := v1beta1.ClusterServiceStatus{Phase: obj.Status.Phase, Summary: obj.Status.Summary, Active: obj.Status.Active, Candidate: obj.Status.Candidate, URL: obj.Status.URL}
	for i := range obj.Status.Conditions {
		told := &obj.Status.Conditions[i]
		status.Conditions = append(status.Conditions, metav1.Condition{Type: told.Type, Status: told.Status, Reason: told.Reason})
	}
	slices.SortFunc(status.Conditions, byType)
	obj.Status = status
	if obj.DeletionTimestamp != nil {
		obj.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
	}
}

func byType(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) }

func normaliseCluster(obj *v1beta1.ComputeCluster) {
	if kept, ok := obj.Annotations[v1beta1.AnnotationRetainedBy]; ok {
		obj.Annotations[v1beta1.AnnotationRetainedBy] = times.ReplaceAllString(kept, "then")
	}
	if record, err := cluster.ParseRecord(obj.Annotations[v1beta1.AnnotationRecord]); err == nil {
		if record.HeadUID != "" {
			record.HeadUID = "known"
			if record.Volume != "" {
				record.Volume = "known"
			}
		}
		record.Suspended.Since, record.Policy.Since = 0, 0
		obj.Annotations[v1beta1.AnnotationRecord] = record.String()
		if record.String() == (cluster.Record{Version: record.Version, Of: record.Of, Epoch: 1, HeadUID: record.HeadUID}).String() {
			delete(obj.Annotations, v1beta1.AnnotationRecord) // a first epoch may have one or none, by the path
		}
	}
	if head := obj.Status.Head; head != nil {
		head.CreationTime = nil
		if head.UID != "" {
			head.UID = "known"
		}
	}
	if scaled := obj.Status.Autoscaling; scaled != nil {
		scaled.HeadUID = ""
		for i := range scaled.Retiring {
			scaled.Retiring[i].UID = ""
		}
	}
	for i := range obj.Status.Conditions {
		obj.Status.Conditions[i].LastTransitionTime = metav1.Time{}
		obj.Status.Conditions[i].Message = times.ReplaceAllString(obj.Status.Conditions[i].Message, "then")
	}
	for i := range obj.Status.Groups {
		obj.Status.Groups[i].Message = times.ReplaceAllString(obj.Status.Groups[i].Message, "then")
	}
	slices.SortFunc(obj.Status.Conditions, byType)
}
