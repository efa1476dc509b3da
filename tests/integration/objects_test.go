package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// TestObjectsOfFixedNames follows the objects beside the pods: what the spec says of them
// is done to the very object that is there, what someone else does to them is undone as
// far as it is ours to say, and no pod is touched.
func TestObjectsOfFixedNames(t *testing.T) {
	t.Parallel()
	f := furnish(t)
	t.Run("an Ingress gets another host in place", f.ingress)
	t.Run("a NetworkPolicy goes and comes with isolation", f.policy)
	t.Run("a Service selects the head again", f.service)
	t.Run("a Service gets the IP families that the API server has", f.families)
	t.Run("a pod without its owner gets it back", f.owner)
	t.Run("a PodDisruptionBudget of a head at work is whole, and goes with the pods", f.budget)
}

// furnished is a cluster with its pods as they were at first.
type furnished struct {
	types.NamespacedName
	pods nameSet
}

const host, otherHost = "ray.example.com", "other.example.com"

func furnish(t *testing.T) *furnished {
	t.Helper()
	namespace := newNamespace(t)
	startOperator(t, "--watch-namespaces="+namespace)
	cluster := newCluster(namespace, "furnished", 1)
	cluster.Spec.Head.Ingress = &v1beta1.IngressSpec{Host: host}
	must(t, shared.Create(t.Context(), cluster))
	name := client.ObjectKeyFromObject(cluster)
	ready(t, name)
	return &furnished{name, podNames(podsOf(t, name, ""))}
}

// edit changes the spec; the cluster then is ready with the pods that it had.
func (f *furnished) edit(t *testing.T, change func(*v1beta1.ComputeClusterSpec)) {
	t.Helper()
	must(t, shared.Edit(t.Context(), f.NamespacedName, change))
	ready(t, f.NamespacedName)
	if now := podNames(podsOf(t, f.NamespacedName, "")); !maps.Equal(now, f.pods) {
		t.Errorf("there are the pods %v, there were %v", now, f.pods)
	}
}

// read reads the object that belongs to the cluster under a name.
func (f *furnished) read(t *testing.T, suffix string, into client.Object) {
	t.Helper()
	must(t, shared.Get(t.Context(), types.NamespacedName{Namespace: f.Namespace, Name: f.Name + suffix}, into))
}

// meddle is someone who changes an object and adds a label; the object as it is mended is
// the same one, with that label.
func meddle[O client.Object](t *testing.T, object O, change func(O), mended func(O) bool) {
	t.Helper()
	uid, seen := object.GetUID(), object.DeepCopyObject().(O)
	object.SetLabels(maps.Clone(object.GetLabels()))
	object.GetLabels()["mine"] = "yes"
	change(object)
	must(t, shared.Patch(t.Context(), object, client.MergeFrom(seen)))
	if mended(object) {
		t.Fatal("the edit changed nothing")
	}
	eventually(t, object.GetName()+" to be mended", func(ctx context.Context) error {
		err := shared.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil && !mended(object) {
			err = errors.New("it is as someone left it")
		}
		return err
	})
	if object.GetUID() != uid || object.GetLabels()["mine"] != "yes" {
		t.Errorf("the mended object has UID %s and labels %v, want %s and someone's label", object.GetUID(), object.GetLabels(), uid)
	}
}

func (f *furnished) ingress(t *testing.T) {
	var ingress networkingv1.Ingress
	f.read(t, "-dashboard", &ingress)
	uid := ingress.UID
	f.edit(t, func(spec *v1beta1.ComputeClusterSpec) { spec.Head.Ingress.Host = otherHost })
	leads := func(ingress *networkingv1.Ingress) bool {
		return len(ingress.Spec.Rules) == 1 && ingress.Spec.Rules[0].Host == otherHost
	}
	if f.read(t, "-dashboard", &ingress); ingress.UID != uid || !leads(&ingress) {
		t.Errorf("the Ingress %s leads to %+v, want %s to lead to %s alone", ingress.UID, ingress.Spec.Rules, uid, otherHost)
	}
	meddle(t, &ingress, func(ingress *networkingv1.Ingress) { ingress.Spec.Rules[0].Host = "someone.example.com" }, leads)
	meddle(t, &ingress, func(ingress *networkingv1.Ingress) {
		ingress.Spec.DefaultBackend = ingress.Spec.Rules[0].HTTP.Paths[0].Backend.DeepCopy()
	}, asItIs(&ingress.Spec, func(ingress *networkingv1.Ingress) *networkingv1.IngressSpec { return &ingress.Spec }))
}

// asItIs reports whether an object's spec is what it was.
func asItIs[O client.Object, S any](now *S, of func(O) *S) func(O) bool {
	was := *now
	return func(object O) bool { return equality.Semantic.DeepEqual(*of(object), was) }
}

func (f *furnished) policy(t *testing.T) {
	var policy networkingv1.NetworkPolicy
	f.read(t, "-network", &policy)
	meddle(t, &policy, func(policy *networkingv1.NetworkPolicy) { policy.Spec.Ingress = policy.Spec.Ingress[:1] },
		func(policy *networkingv1.NetworkPolicy) bool { return len(policy.Spec.Ingress) > 1 })
	rules := *policy.Spec.DeepCopy()
	whole := asItIs(&rules, func(policy *networkingv1.NetworkPolicy) *networkingv1.NetworkPolicySpec { return &policy.Spec })
	for _, add := range []func(*networkingv1.NetworkPolicy){
		func(policy *networkingv1.NetworkPolicy) {
			policy.Spec.Ingress = append(policy.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{})
		},
		func(policy *networkingv1.NetworkPolicy) { policy.Spec.PodSelector.MatchLabels["app"] = "x" },
		func(policy *networkingv1.NetworkPolicy) {
			everywhere := networkingv1.NetworkPolicyEgressRule{}
			policy.Spec.Egress = append(policy.Spec.Egress, everywhere)
		},
	} {
		meddle(t, &policy, add, whole)
	}

	f.edit(t, func(spec *v1beta1.ComputeClusterSpec) {
		spec.Network = &v1beta1.Network{Isolation: v1beta1.Disabled}
	})
	gone(t, &policy)
	f.edit(t, func(spec *v1beta1.ComputeClusterSpec) { spec.Network = nil })
	if f.read(t, "-network", &policy); !equality.Semantic.DeepEqual(policy.Spec, rules) {
		t.Errorf("the NetworkPolicy that came back says %+v, want %+v", policy.Spec, rules)
	}
}

func (f *furnished) service(t *testing.T) {
	var service corev1.Service
	f.read(t, "-head", &service)
	wanted := maps.Clone(service.Spec.Selector)
	meddle(t, &service, func(service *corev1.Service) { service.Spec.Selector = map[string]string{"app": "someone"} },
		func(service *corev1.Service) bool { return maps.Equal(service.Spec.Selector, wanted) })
	whole := asItIs(service.Spec.DeepCopy(), func(service *corev1.Service) *corev1.ServiceSpec { return &service.Spec })
	for _, add := range []func(*corev1.Service){
		func(service *corev1.Service) { service.Spec.Selector["app"] = "x" },
		func(service *corev1.Service) {
			service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: "zz", Port: 9999, TargetPort: intstr.FromInt32(22)})
		},
		func(service *corev1.Service) { service.Spec.ExternalIPs = []string{"192.0.2.1"} },
	} {
		meddle(t, &service, add, whole)
	}
}

// families: the policy of a Service's IP families is set in place, and set again. What the API server refuses is said, and
// taken back by another edit.
func (f *furnished) families(t *testing.T) {
	var service corev1.Service
	f.read(t, "-head", &service)
	uid, address, first := service.UID, service.Spec.ClusterIP, service.Spec.IPFamilies[:1]
	set := func(policy corev1.IPFamilyPolicy) func(*v1beta1.ComputeClusterSpec) {
		return func(spec *v1beta1.ComputeClusterSpec) {
			spec.Head.Service = &v1beta1.HeadServiceSpec{ServiceReach: v1beta1.ServiceReach{IPFamilies: first, IPFamilyPolicy: policy}}
		}
	}
	prefers := func(service *corev1.Service) bool {
		return *service.Spec.IPFamilyPolicy == corev1.IPFamilyPolicyPreferDualStack
	}
	f.edit(t, set(corev1.IPFamilyPolicyPreferDualStack))
	if f.read(t, "-head", &service); !prefers(&service) || service.UID != uid || service.Spec.ClusterIP != address {
		t.Errorf("the Service %s is %+v, want %s with %s and the policy", service.UID, service.Spec, uid, address)
	}
	meddle(t, &service, func(service *corev1.Service) { service.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack) }, prefers)

	must(t, shared.Edit(t.Context(), f.NamespacedName, set(corev1.IPFamilyPolicyRequireDualStack)))
	refused := func(name types.NamespacedName, words string) {
		t.Helper()
		eventually(t, name.Name+" to say what is "+words, func(ctx context.Context) error {
			var cluster v1beta1.ComputeCluster
			err := shared.Get(ctx, name, &cluster)
			is := meta.FindStatusCondition(cluster.Status.Conditions, v1beta1.ConditionReady)
			if err == nil && (is == nil || is.Reason != "CreateRefused" || !strings.Contains(is.Message, words)) {
				err = fmt.Errorf("it says %+v", is)
			}
			return err
		})
	}
	refused(f.NamespacedName, "not configured for dual-stack")
	six := lone(f.Namespace, "six", v1beta1.RoleHead)
	six.Spec.Head.Service = &v1beta1.HeadServiceSpec{ServiceReach: v1beta1.ServiceReach{
		IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol}, IPFamilyPolicy: corev1.IPFamilyPolicySingleStack,
	}}
	must(t, shared.Create(t.Context(), six))
	refused(client.ObjectKeyFromObject(six), `spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster`)
	must(t, shared.Delete(t.Context(), six))
	f.edit(t, set(""))
	if f.read(t, "-head", &service); !prefers(&service) {
		t.Errorf("without a policy the Service has the policy %s", *service.Spec.IPFamilyPolicy)
	}
}

func (f *furnished) owner(t *testing.T) {
	for _, pod := range podsOf(t, f.NamespacedName, "") {
		seen := pod.DeepCopy()
		pod.OwnerReferences = nil
		must(t, shared.Patch(t.Context(), &pod, client.MergeFrom(seen)))
		eventually(t, pod.Name+" to be the cluster's again", func(ctx context.Context) error {
			err := shared.Get(ctx, client.ObjectKeyFromObject(&pod), &pod)
			if err == nil && !equality.Semantic.DeepEqual(pod.OwnerReferences, seen.OwnerReferences) {
				err = fmt.Errorf("its owners are %+v", pod.OwnerReferences)
			}
			return err
		})
	}
	f.edit(t, func(*v1beta1.ComputeClusterSpec) {}) // which sees that no pod was replaced
}

func (f *furnished) budget(t *testing.T) {
	var budget policyv1.PodDisruptionBudget
	eventually(t, "the head to have been at work for long enough", func(ctx context.Context) error {
		return shared.Get(ctx, types.NamespacedName{Namespace: f.Namespace, Name: f.Name + "-head"}, &budget)
	})
	head := podsOf(t, f.NamespacedName, v1beta1.RoleHead)[0]
	since := slices.IndexFunc(head.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	if age := budget.CreationTimestamp.Sub(head.Status.Conditions[since].LastTransitionTime.Time); age < 59*time.Second {
		t.Errorf("the budget was made when the head had been ready for %v, want a minute", age) // both are whole seconds
	}
	meddle(t, &budget, func(budget *policyv1.PodDisruptionBudget) { budget.Spec.MinAvailable.IntVal = 0 },
		func(budget *policyv1.PodDisruptionBudget) bool { return budget.Spec.MinAvailable.IntValue() == 1 })

	must(t, shared.Edit(t.Context(), f.NamespacedName, func(spec *v1beta1.ComputeClusterSpec) { spec.Suspend = new(true) }))
	gone(t, &budget)
	eventually(t, "the cluster to be suspended", func(ctx context.Context) error {
		cluster, err := shared.Find(ctx, f.NamespacedName)
		if err == nil && !meta.IsStatusConditionTrue(cluster.Status.Conditions, v1beta1.ConditionSuspended) {
			err = fmt.Errorf("it says %+v", cluster.Status.Conditions)
		}
		return err
	})
}

// gone waits until an object is not there any more.
func gone(t *testing.T, object client.Object) {
	t.Helper()
	eventually(t, object.GetName()+" to be gone", func(ctx context.Context) error {
		err := shared.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			return errors.New("it is there")
		}
		return client.IgnoreNotFound(err)
	})
}

// TestWorkersThatFailAtOnceAreEventsApart: each is told of by an event of its own, which names its pod.
func TestWorkersThatFailAtOnceAreEventsApart(t *testing.T) {
	t.Parallel()
	const workers = 2
	namespace := newNamespace(t)
	watching := "--watch-namespaces=" + namespace
	first := startOperator(t, watching)
	name := create(t, namespace, 1, workers)[0]
	failed := podsOfReady(t, name)
	first.stop(syscall.SIGTERM)
	for i := range failed {
		seen := failed[i].DeepCopy()
		failed[i].Status.Phase, failed[i].Status.Reason = corev1.PodFailed, "Evicted"
		must(t, shared.Status().Patch(t.Context(), &failed[i], client.MergeFrom(seen)))
	}
	after(t, time.Until(failed[workers-1].CreationTimestamp.Add(12*time.Second))) // younger ones are replaced later, each in its time
	startOperator(t, watching)
	for i := range failed {
		replaced(t, name, failed[i])
	}
	eventually(t, "an event of each", func(ctx context.Context) error {
		var list eventsv1.EventList
		if err := shared.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		var told []string
		for _, event := range list.Items {
			if event.Reason == "WorkerFailed" && event.Regarding.Name == name.Name && event.Related != nil && strings.Contains(event.Note, "is replaced") {
				told = append(told, event.Related.Name)
			}
		}
		slices.Sort(told)
		if wanted := []string{failed[0].Name, failed[1].Name}; !slices.Equal(told, slices.Sorted(slices.Values(wanted))) {
			return fmt.Errorf("there are events about %v, want %v", told, wanted)
		}
		return nil
	})
}
