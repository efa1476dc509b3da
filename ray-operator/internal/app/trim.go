package app

import (
	"maps"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
)

// sharedValues is how many different values of a sort are remembered. Beyond that it begins again: objects of one cluster
// come one after the other, and it is they that are most alike.
const sharedValues = 1024

// shared has values that many objects have alike, by what tells them apart.
type shared[T any] map[string]T

// of returns the value that is kept once for a key.
func (s shared[T]) of(key string, value T) T {
	if known, is := s[key]; is {
		return known
	}
	if len(s) >= sharedValues {
		clear(s)
	}
	s[key] = value
	return value
}

// trimmer keeps of objects what somebody here reads: of thousands of pods the start commands, variables, mounts and volumes
// are most of what the operator would hold. What many have alike it keeps once, as nobody changes what the cache has.
type trimmer struct {
	mu    sync.Mutex
	texts shared[string]
	specs shared[corev1.PodSpec]
	rules shared[networkingv1.NetworkPolicyIngressRule]
}

func newTrimmer() *trimmer {
	return &trimmer{texts: shared[string]{}, specs: shared[corev1.PodSpec]{}, rules: shared[networkingv1.NetworkPolicyIngressRule]{}}
}

// trim is a transform of the cache. It takes markers of deletions that were missed as well, and leaves them.
func (t *trimmer) trim(obj any) (any, error) {
	object, is := obj.(client.Object)
	if !is {
		return obj, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch kind := obj.(type) {
	case *corev1.Pod:
		t.pod(kind)
	case *networkingv1.NetworkPolicy:
		t.policy(kind)
	case *discoveryv1.EndpointSlice:
		trimSlice(kind)
	}
	t.metadata(object)
	return obj, nil
}

// trimSlice keeps of an EndpointSlice which pods it lists.
func trimSlice(slice *discoveryv1.EndpointSlice) {
	slice.OwnerReferences, slice.Annotations, slice.Ports = nil, nil, nil
	for i, endpoint := range slice.Endpoints {
		kept := discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{Ready: endpoint.Conditions.Ready}}
		if endpoint.TargetRef != nil {
			kept.TargetRef = &corev1.ObjectReference{UID: endpoint.TargetRef.UID}
		}
		slice.Endpoints[i] = kept
	}
}

func (t *trimmer) text(of string) string { return t.texts.of(of, of) }

// metadata drops who wrote which field, and keeps names once.
func (t *trimmer) metadata(object client.Object) {
	object.SetManagedFields(nil)
	object.SetNamespace(t.text(object.GetNamespace()))
	object.SetLabels(t.pairs(object.GetLabels()))
	object.SetAnnotations(t.pairs(object.GetAnnotations()))
	owners := object.GetOwnerReferences()
	for i := range owners {
		owner := &owners[i]
		owner.APIVersion, owner.Kind, owner.Name = t.text(owner.APIVersion), t.text(owner.Kind), t.text(owner.Name)
		owner.UID = types.UID(t.text(string(owner.UID)))
	}
	object.SetOwnerReferences(owners)
}

// pairs keeps labels or annotations. Long values, such as records, are of one object alone.
func (t *trimmer) pairs(all map[string]string) map[string]string {
	if len(all) == 0 {
		return all
	}
	kept := make(map[string]string, len(all))
	for key, value := range all {
		if len(value) <= validation.LabelValueMaxLength {
			value = t.text(value)
		}
		kept[t.text(key)] = value
	}
	return kept
}

// pod keeps what tells how a pod is, and of its labels and annotations ours.
func (t *trimmer) pod(whole *corev1.Pod) {
	others := func(key, _ string) bool { return !strings.Contains(key, v1beta1.GroupVersion.Group+"/") }
	maps.DeleteFunc(whole.Labels, others)
	maps.DeleteFunc(whole.Annotations, others)
	whole.Spec = t.spec(whole.Spec)
	status := whole.Status
	whole.Status = corev1.PodStatus{
		Phase: status.Phase, Reason: status.Reason, Message: status.Message, PodIP: status.PodIP, StartTime: status.StartTime,
		Conditions: t.conditions(status.Conditions), NominatedNodeName: status.NominatedNodeName,
		InitContainerStatuses: t.statuses(status.InitContainerStatuses), ContainerStatuses: t.statuses(status.ContainerStatuses),
	}
}

// policy keeps of others' policies what they are about, and not what they say.
func (t *trimmer) policy(policy *networkingv1.NetworkPolicy) {
	if policy.Labels[v1beta1.LabelCluster] == "" && policy.Labels[v1beta1.LabelService] == "" {
		policy.Annotations = nil
		policy.Spec.Ingress, policy.Spec.Egress = nil, nil
	}
	for i := range policy.Spec.Ingress {
		if key, err := policy.Spec.Ingress[i].Marshal(); err == nil {
			policy.Spec.Ingress[i] = t.rules.of(string(key), policy.Spec.Ingress[i])
		}
	}
}

// spec returns what is kept of a spec, which is the same for pods that are alike.
func (t *trimmer) spec(whole corev1.PodSpec) corev1.PodSpec {
	kept := corev1.PodSpec{
		SchedulerName: whole.SchedulerName, ReadinessGates: whole.ReadinessGates, SchedulingGates: whole.SchedulingGates,
		InitContainers: trimContainers(whole.InitContainers), Containers: trimContainers(whole.Containers),
	}
	if architecture, selects := whole.NodeSelector[corev1.LabelArchStable]; selects {
		kept.NodeSelector = map[string]string{corev1.LabelArchStable: architecture}
	}
	if key, err := kept.Marshal(); err == nil {
		kept = t.specs.of(string(key), kept)
	}
	kept.NodeName = t.text(whole.NodeName)
	return kept
}

// conditions returns all but those that nobody here reads. Any other may be a readiness gate's.
func (t *trimmer) conditions(all []corev1.PodCondition) []corev1.PodCondition {
	kept := make([]corev1.PodCondition, 0, len(all))
	for _, one := range all {
		if one.Type == corev1.PodInitialized || one.Type == corev1.PodReadyToStartContainers {
			continue
		}
		one.Type = corev1.PodConditionType(t.text(string(one.Type)))
		one.Status = corev1.ConditionStatus(t.text(string(one.Status)))
		one.LastProbeTime = metav1.Time{}
		kept = append(kept, one)
	}
	return kept
}

func (t *trimmer) statuses(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	kept := make([]corev1.ContainerStatus, 0, len(all))
	for i := range all {
		kept = append(kept, corev1.ContainerStatus{
			Name: t.text(all[i].Name), Image: t.text(all[i].Image), State: all[i].State, LastTerminationState: all[i].LastTerminationState,
			Ready: all[i].Ready, Started: all[i].Started, RestartCount: all[i].RestartCount, Resources: all[i].Resources,
		})
	}
	return kept
}

func trimContainers(all []corev1.Container) []corev1.Container {
	kept := make([]corev1.Container, 0, len(all))
	for i := range all {
		kept = append(kept, corev1.Container{
			Name: all[i].Name, Image: all[i].Image, RestartPolicy: all[i].RestartPolicy, Resources: all[i].Resources,
			StartupProbe: trimProbe(all[i].StartupProbe), ReadinessProbe: trimProbe(all[i].ReadinessProbe), Args: pod.StartedWith(all[i].Args),
		})
	}
	return kept
}

// trimProbe keeps of a probe which path it asks.
func trimProbe(whole *corev1.Probe) *corev1.Probe {
	if whole == nil || whole.HTTPGet == nil {
		return whole
	}
	asks := &corev1.HTTPGetAction{Path: whole.HTTPGet.Path, Port: whole.HTTPGet.Port}
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: asks}}
}
