package e2e

import (
	"context"
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Causes for which the API server makes no pod.
var _ = Describe("why the API server makes no pod", Ordered, ContinueOnFailure, Label("reasons"), func() {
	at := map[string][]inspection{}

	BeforeAll(func(ctx SpecContext) {
		for i := range refusedCauses {
			at[refusedCauses[i].name] = refusedCauses[i].inspect(ctx)
		}
	}, NodeTimeout(limit))

	for i := range refusedCauses {
		c := &refusedCauses[i]
		It("is told where "+c.name, func(ctx SpecContext) {
			for _, inspection := range at[c.name] {
				inspection.await(ctx)
			}
		}, SpecTimeout(limit))
	}

	It("goes on by itself when a quota is raised", func(ctx SpecContext) {
		namespace := at[overQuota][0].namespace
		var quota corev1.ResourceQuota
		Expect(kubernetes.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "small"}, &quota)).To(Succeed())
		quota.Spec.Hard[corev1.ResourceRequestsCPU] = resource.MustParse("64")
		begin := time.Now()
		Expect(kubernetes.Update(ctx, &quota)).To(Succeed())
		for _, of := range []string{v1alpha1.RoleHead, v1alpha1.RoleWorker} {
			made := types.NamespacedName{Namespace: namespace, Name: clusterName(of)}
			eventually(ctx, "the "+of+"'s pod that the quota lets in", func(ctx context.Context) error {
				pods, err := kubernetes.PodsOf(ctx, made, of)
				if err == nil && len(pods) != 1 {
					err = fmt.Errorf("there are %d", len(pods))
				}
				return err
			})
			told("quota raised to the "+of+"'s pod made", begin)
		}
	}, SpecTimeout(limit))
})

const (
	overQuota = "a ResourceQuota is used up"
	// marked is a label by which policies and webhooks of these tests know what to refuse.
	marked = "example.com/refuse"
)

var refusedCauses = []cause{
	{
		name:   overQuota,
		reason: reason.QuotaExceeded, words: "ResourceQuota small: requests.cpu requested 1, used ",
		prepare: makes(func(namespace string) client.Object {
			return &corev1.ResourceQuota{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "small"},
				Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("500m")}},
			}
		}, nil),
		// When the quota lets it in, it is to be kept off all nodes.
		spoil: func(node *v1alpha1.NodeSpec) { node.Size = size("1", "1536Mi"); keepOff(node) },
	},
	{
		name:   "a LimitRange allows less",
		reason: reason.LimitRangeViolated, words: "maximum memory usage per Container is 2Gi, but limit is 3Gi. Change size",
		prepare: makes(func(namespace string) client.Object {
			most := corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}}
			return &corev1.LimitRange{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "small"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{most}},
			}
		}, nil),
		spoil: func(node *v1alpha1.NodeSpec) { node.Size = size("10m", "3Gi") },
	},
	{
		name:   "the namespace enforces a pod security level",
		reason: reason.PodSecurityDenied, words: "pod security level restricted forbids privileged (container \"ray\" must not set securityContext.privileged=true)",
		prepare: restrict,
		spoil: func(node *v1alpha1.NodeSpec) {
			yes := true
			_, ray := template(node)
			ray.SecurityContext = &corev1.SecurityContext{Privileged: &yes}
		},
	},
	{
		name:   "a ValidatingAdmissionPolicy says no",
		reason: reason.AdmissionDenied, words: "denies it: this team's pods are not welcome. Change the cluster",
		prepare: makes(policy, policyBinding), spoil: mark,
	},
	{
		name:   "an admission webhook is down",
		reason: reason.WebhookFailed, words: "admission webhook pods.example.com cannot be called: service \"nobody\" not found. See whether",
		prepare: makes(webhook, nil), spoil: mark,
	},
	{
		name:   "the ServiceAccount is missing",
		reason: reason.ReferenceMissing, words: "ServiceAccount gone does not exist. Create it",
		spoil: func(node *v1alpha1.NodeSpec) {
			pod, _ := template(node)
			pod.Spec.ServiceAccountName = "gone"
		},
	},
	{
		name:   "the PriorityClass is missing",
		reason: reason.ReferenceMissing, words: "PriorityClass gone does not exist. Create it",
		spoil: func(node *v1alpha1.NodeSpec) {
			pod, _ := template(node)
			pod.Spec.PriorityClassName = "gone"
		},
	},
}

func mark(node *v1alpha1.NodeSpec) {
	pod, _ := template(node)
	pod.Labels = map[string]string{marked: "yes"}
}

// makes prepares a namespace by an object, or two, and waits until a pod that is marked
// is refused there where the object is not one of the namespace: such rules take effect
// only some time after they were made.
func makes(first, second func(namespace string) client.Object) func(context.Context, string) {
	return func(ctx context.Context, namespace string) {
		GinkgoHelper()
		for _, object := range []func(string) client.Object{first, second} {
			if object == nil {
				continue
			}
			made := object(namespace)
			Expect(kubernetes.Create(ctx, made)).To(Succeed())
			if made.GetNamespace() != "" {
				return
			}
			DeferCleanup(func(ctx SpecContext) { Expect(kubernetes.Delete(ctx, made)).To(Succeed()) }, NodeTimeout(limit))
		}
		eventually(ctx, "marked pods to be refused", func(ctx context.Context) error {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "try-", Labels: map[string]string{marked: "yes"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: rayImage}}},
			}
			if err := kubernetes.Create(ctx, pod, client.DryRunAll); err == nil {
				return errors.New("one was let in")
			}
			return nil
		})
	}
}

func restrict(ctx context.Context, namespace string) {
	GinkgoHelper()
	var object corev1.Namespace
	Expect(kubernetes.Get(ctx, types.NamespacedName{Name: namespace}, &object)).To(Succeed())
	seen := object.DeepCopy()
	object.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	Expect(kubernetes.Patch(ctx, &object, client.MergeFrom(seen))).To(Succeed())
}

// only selects a namespace.
func only(namespace string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
}

func marker() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{marked: "yes"}}
}

var creationOfPods = admissionv1.RuleWithOperations{
	Operations: []admissionv1.OperationType{admissionv1.Create},
	Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
}

func policy(namespace string) client.Object {
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: only(namespace), ObjectSelector: marker(),
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: creationOfPods}},
			},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "this team's pods are not welcome"}},
		},
	}
}

func policyBinding(namespace string) client.Object {
	return &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
}

// webhook is one for marked pods of a namespace, which nobody serves.
func webhook(namespace string) client.Object {
	none := admissionv1.SideEffectClassNone
	return &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "pods.example.com", NamespaceSelector: only(namespace), ObjectSelector: marker(),
			Rules: []admissionv1.RuleWithOperations{creationOfPods}, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: namespace, Name: "nobody"}},
		}},
	}
}
