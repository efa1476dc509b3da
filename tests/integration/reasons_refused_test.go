package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// refusedPod is a cause for which the API server makes no pod, made to happen on purpose.
type refusedPod struct {
	name string
	// reason is what the status must give, with these words in its message.
	reason reason.Reason
	words  string
	// prepare makes what has to be in the namespace first.
	prepare func(t *testing.T, namespace string)
	// spoil makes it happen to a head or to the workers of a group.
	spoil func(*v1beta1.NodeSpec)
	// lift ends it, where the cluster then has to go on.
	lift func(t *testing.T, namespace string)
}

// marked is a label by which policies and webhooks of these tests know what to refuse.
const marked = "example.com/refuse"

var refusals = []refusedPod{
	{
		name:   "a ResourceQuota is used up",
		reason: reason.QuotaExceeded, words: "ResourceQuota small: requests.cpu requested 1, used ",
		prepare: makes(func(namespace string) client.Object {
			return &corev1.ResourceQuota{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "small"},
				Spec: corev1.ResourceQuotaSpec{
					Hard: corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("500m")},
				},
			}
		}, nil),
		// When the quota lets it in, it is kept off all nodes.
		spoil: func(node *v1beta1.NodeSpec) { node.Size = size("1", "1536Mi"); keepOff(node) },
		lift:  raiseQuota,
	},
	{
		name:   "a LimitRange allows less",
		reason: reason.LimitRangeViolated, words: "maximum memory usage per Container is 2Gi, but limit is 3Gi. Change size",
		prepare: makes(func(namespace string) client.Object {
			return limitRange(namespace, corev1.LimitRangeItem{
				Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")},
			})
		}, nil),
		spoil: func(node *v1beta1.NodeSpec) { node.Size = size("10m", "3Gi") },
	},
	{
		name:   "a LimitRange's default limit is below size",
		reason: reason.LimitRangeViolated,
		words:  "its default limit of cpu is 500m, below the request of 1 of container ray. Set limits.cpu in size",
		prepare: makes(func(namespace string) client.Object {
			return limitRange(namespace, corev1.LimitRangeItem{
				Type: corev1.LimitTypeContainer, Default: size("500m", "512Mi"), DefaultRequest: size("100m", "128Mi"),
			})
		}, nil),
		spoil: func(node *v1beta1.NodeSpec) { node.Size = size("1", "1Gi") },
	},
	{
		name:   "the namespace enforces a pod security level",
		reason: reason.PodSecurityDenied,
		words: "pod security level restricted forbids privileged " +
			"(container \"ray\" must not set securityContext.privileged=true)",
		prepare: restrict,
		spoil: func(node *v1beta1.NodeSpec) {
			yes := true
			_, ray := template(node)
			ray.SecurityContext = &corev1.SecurityContext{Privileged: &yes}
		},
	},
	{
		name:   "no administrator allows privileges",
		reason: reason.PrivilegesDenied, words: "does not allow pods with hostPath volumes, privileged containers. Remove that",
		spoil: func(node *v1beta1.NodeSpec) {
			pod, ray := template(node)
			pod.Spec.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
			ray.SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		},
	},
	{
		name:   "a ValidatingAdmissionPolicy says no",
		reason: reason.AdmissionDenied, words: "denies it: this team's pods are not welcome. Change the cluster",
		prepare: makes(policy, policyBinding), spoil: mark,
	},
	{
		name:    "an admission webhook is down",
		reason:  reason.WebhookFailed,
		words:   "admission webhook pods.example.com cannot be called: service \"nobody\" not found. Check that",
		prepare: makes(webhook, nil), spoil: mark,
	},
	{
		name:   "the ServiceAccount is missing",
		reason: reason.ReferenceMissing, words: "ServiceAccount gone does not exist. Create it",
		spoil: func(node *v1beta1.NodeSpec) {
			pod, _ := template(node)
			pod.Spec.ServiceAccountName = "gone"
		},
	},
	{
		name:   "the PriorityClass is missing",
		reason: reason.ReferenceMissing, words: "PriorityClass gone does not exist. Create it",
		spoil: func(node *v1beta1.NodeSpec) {
			pod, _ := template(node)
			pod.Spec.PriorityClassName = "gone"
		},
	},
}

// refused gives a cause to a head and to a worker, and waits until the status names it everywhere.
func (r *reasons) refused(t *testing.T, namespace string, c *refusedPod) {
	if c.prepare != nil {
		c.prepare(t, namespace)
	}
	for _, of := range []string{v1beta1.RoleHead, v1beta1.RoleWorker} {
		cluster, kind := lone(namespace, of, of), v1beta1.ConditionHeadReady
		spoilt := &cluster.Spec.Head.NodeSpec
		if of == v1beta1.RoleWorker {
			spoilt, kind = &cluster.Spec.WorkerGroups[0].NodeSpec, v1beta1.ConditionWorkersReady
		}
		c.spoil(spoilt)
		wait := sight(t, namespace, func(seen *v1beta1.ComputeCluster) bool {
			return seen.Name == of && c.isNamed(seen, of)
		})
		begin := time.Now()
		must(t, shared.Create(t.Context(), cluster))
		seen, at := wait(fmt.Sprintf("the status to say %s with %q, as the %s has: %s", c.reason.Code, c.words, of, c.name))
		condition, _ := isFalse(seen, kind)
		r.tell(t, live.Told{
			Cause: c.name, Of: of, Reason: condition.Reason, Message: condition.Message, Seconds: at.Sub(begin).Seconds(),
		})
	}
	if c.lift == nil {
		return
	}
	c.lift(t, namespace)
	for _, of := range []string{v1beta1.RoleHead, v1beta1.RoleWorker} {
		podsLeft(t, types.NamespacedName{Namespace: namespace, Name: of}, of, 1)
	}
}

// isNamed reports whether a cluster's status names the cause, everywhere it has to.
func (c *refusedPod) isNamed(cluster *v1beta1.ComputeCluster, of string) bool {
	if of == v1beta1.RoleHead {
		return c.isIn(cluster, v1beta1.ConditionReady) && c.isIn(cluster, v1beta1.ConditionHeadReady)
	}
	groups := cluster.Status.Groups
	return c.isIn(cluster, v1beta1.ConditionWorkersReady) && len(groups) == 1 && groups[0].Reason == c.reason.Code
}

func (c *refusedPod) isIn(cluster *v1beta1.ComputeCluster, kind string) bool {
	condition, no := isFalse(cluster, kind)
	return no && condition.Reason == c.reason.Code && strings.Contains(condition.Message, c.words)
}

func limitRange(namespace string, item corev1.LimitRangeItem) *corev1.LimitRange {
	return &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "small"},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}},
	}
}

// sizesAsked is what a namespace asks of the sizes of containers, those that the operator adds among them.
type sizesAsked struct {
	name   string
	reason reason.Reason
	rule   func(namespace string) client.Object
	// size is that of the operator's containers at first, their default where it is nil.
	size corev1.ResourceList
	// head and redis are what is said of the head, with the autoscaler and encryption, and of the pod of a managed Redis.
	head, redis []string
}

const (
	headLimits  = "Set limits.cpu in autoscaling.size, and in network.encryptionSize"
	headChange  = "Change network.encryptionSize, and autoscaling.size to fit"
	redisChange = "Change controlStore.managedRedis.size to fit"
	atMostTwice = "cpu max limit to request ratio per Container is 2, but "
)

var sizes = []sizesAsked{
	{
		name: "limits, by a quota", reason: reason.QuotaExceeded,
		rule: func(namespace string) client.Object {
			hard := corev1.ResourceList{}
			for name, quantity := range map[corev1.ResourceName]string{
				corev1.ResourceRequestsCPU: "8", corev1.ResourceRequestsMemory: "16Gi",
				corev1.ResourceLimitsCPU: "8", corev1.ResourceLimitsMemory: "16Gi",
			} {
				hard[name] = resource.MustParse(quantity)
			}
			return &corev1.ResourceQuota{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "team"}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
			}
		},
		head:  []string{"must specify limits.cpu for: autoscaler,certificates,encryption. " + headLimits},
		redis: []string{"must specify limits.cpu for: certificates,redis. Set limits.cpu in controlStore.managedRedis.size"},
	},
	{
		name: "no more than default limits", reason: reason.LimitRangeViolated, rule: ranges(corev1.LimitRangeItem{Default: cpus("5m")}),
		head: []string{
			"its default limit of cpu is 5m, below the request of 10m of container certificates", "of 20m of container encryption",
			"of 50m of container autoscaler",
			"Set limits.cpu in network.encryptionSize; limits.cpu in autoscaling.size, or change the LimitRange",
		},
		redis: []string{
			"its default limit of cpu is 5m, below the request of 10m of container certificates", "of 50m of container redis",
			"Set limits.cpu in controlStore.managedRedis.size, or change the LimitRange",
		},
	},
	{
		name: "minima", reason: reason.LimitRangeViolated, rule: ranges(corev1.LimitRangeItem{Min: cpus("200m")}),
		head: []string{
			"minimum cpu usage per Container is 200m, but request is 10m", "but request is 20m", "but request is 50m", headChange,
		},
		redis: []string{"minimum cpu usage per Container is 200m, but request is 10m", "but request is 50m", redisChange},
	},
	{
		name: "a ratio, of who has no limit", reason: reason.LimitRangeViolated,
		rule:  ranges(corev1.LimitRangeItem{MaxLimitRequestRatio: cpus("2")}),
		head:  []string{atMostTwice + "no limit is specified", headChange},
		redis: []string{atMostTwice + "no limit is specified", redisChange},
	},
	{
		name: "a ratio, of default limits", reason: reason.LimitRangeViolated,
		rule: ranges(corev1.LimitRangeItem{Default: cpus("1"), MaxLimitRequestRatio: cpus("2")}),
		head: []string{
			"with its default limit, " + atMostTwice + "provided ratio is ", "ratio is 100", "ratio is 50", "ratio is 20",
			"Set limits.cpu in network.encryptionSize; limits.cpu in autoscaling.size, or change the LimitRange",
		},
		redis: []string{
			"with its default limit, " + atMostTwice + "provided ratio is ", "ratio is 100", "ratio is 20",
			"Set limits.cpu in controlStore.managedRedis.size, or change the LimitRange",
		},
	},
	{
		name: "a ratio, of limits of the user's own", reason: reason.LimitRangeViolated,
		rule:  ranges(corev1.LimitRangeItem{Default: cpus("1"), MaxLimitRequestRatio: cpus("2")}),
		size:  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceLimitsCPU: resource.MustParse("400m")},
		head:  []string{"the namespace's LimitRange: " + atMostTwice + "provided ratio is 4", headChange},
		redis: []string{"the namespace's LimitRange: " + atMostTwice + "provided ratio is 4", redisChange},
	},
}

func cpus(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

// ranges makes a LimitRange of containers.
func ranges(item corev1.LimitRangeItem) func(namespace string) client.Object {
	item.Type = corev1.LimitTypeContainer
	return func(namespace string) client.Object { return limitRange(namespace, item) }
}

// asked has clusters with all containers that the operator adds in a namespace with a rule, and pod security "restricted". The
// refusals name the fields of those containers, and what is given there lets the pods in.
func (s *sizesAsked) asked(t *testing.T, namespace string) {
	t.Parallel()
	restrict(t, namespace)
	must(t, shared.Create(t.Context(), s.rule(namespace)))
	head, redis := lone(namespace, "head", v1beta1.RoleWorker), lone(namespace, "redis", v1beta1.RoleHead)
	head.Spec.WorkerGroups[0].MinReplicas, head.Spec.WorkerGroups[0].MaxReplicas = new(int32(1)), new(int32(1))
	for _, node := range []*v1beta1.NodeSpec{&head.Spec.Head.NodeSpec, &head.Spec.WorkerGroups[0].NodeSpec, &redis.Spec.Head.NodeSpec} {
		node.Size = size("500m", "1Gi")
		node.Size[corev1.ResourceLimitsCPU] = resource.MustParse("500m")
	}
	give := func(given corev1.ResourceList) func(*v1beta1.ComputeClusterSpec) {
		return func(spec *v1beta1.ComputeClusterSpec) {
			if spec.ControlStore != nil {
				spec.ControlStore.ManagedRedis.Size = given
				return
			}
			spec.Autoscaling.Size, spec.Network.EncryptionSize = given, given
		}
	}
	head.Spec.Autoscaling, head.Spec.Network = &v1beta1.Autoscaling{Image: "none"}, &v1beta1.Network{Encryption: v1beta1.Enabled}
	redis.Spec.ControlStore = &v1beta1.ControlStore{ManagedRedis: &v1beta1.ManagedRedis{}}
	waits := map[*v1beta1.ComputeCluster]sighting{}
	for cluster, words := range map[*v1beta1.ComputeCluster][]string{head: s.head, redis: s.redis} {
		give(s.size)(&cluster.Spec)
		waits[cluster] = sight(t, namespace, func(seen *v1beta1.ComputeCluster) bool {
			return seen.Name == cluster.Name && s.isNamed(seen, words)
		})
		must(t, shared.Create(t.Context(), cluster))
	}
	for cluster, wait := range waits {
		wait(fmt.Sprintf("the status of %s to name %q", cluster.Name, append(s.head, s.redis...)))
		fits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m"), corev1.ResourceLimitsCPU: resource.MustParse("400m")}
		must(t, shared.Edit(t.Context(), client.ObjectKeyFromObject(cluster), give(fits)))
	}
	for _, of := range []string{v1beta1.RoleHead, v1beta1.RoleWorker} {
		podsLeft(t, client.ObjectKeyFromObject(head), of, 1)
	}
	redisMade(t, namespace, redis.Name)
}

// isNamed reports whether a cluster's status says all words, of the head or of its managed Redis.
func (s *sizesAsked) isNamed(cluster *v1beta1.ComputeCluster, words []string) bool {
	kind := v1beta1.ConditionHeadReady
	if cluster.Spec.ControlStore != nil {
		kind = v1beta1.ConditionControlStoreReady
	}
	for _, word := range words {
		wanted := &refusedPod{reason: s.reason, words: word}
		if !wanted.isIn(cluster, v1beta1.ConditionReady) || !wanted.isIn(cluster, kind) {
			return false
		}
	}
	return true
}

// raiseQuota lets in what a quota kept out.
func raiseQuota(t *testing.T, namespace string) {
	t.Helper()
	var quota corev1.ResourceQuota
	must(t, shared.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "small"}, &quota))
	quota.Spec.Hard[corev1.ResourceRequestsCPU] = resource.MustParse("64")
	must(t, shared.Update(t.Context(), &quota))
}

func mark(node *v1beta1.NodeSpec) {
	pod, _ := template(node)
	pod.Labels = map[string]string{marked: "yes"}
}

// makes prepares a namespace by an object, or two, and waits until a pod that is marked
// is refused there where the object is not one of the namespace: such rules take effect
// only some time after they were made.
func makes(first, second func(namespace string) client.Object) func(*testing.T, string) {
	return func(t *testing.T, namespace string) {
		t.Helper()
		for _, object := range []func(string) client.Object{first, second} {
			if object == nil {
				continue
			}
			made := object(namespace)
			must(t, shared.Create(t.Context(), made))
			if made.GetNamespace() != "" {
				return
			}
			t.Cleanup(func() { must(t, shared.Delete(context.WithoutCancel(t.Context()), made)) })
		}
		eventually(t, "marked pods to be refused", func(ctx context.Context) error {
			if err := shared.Create(ctx, podWith(namespace, map[string]string{marked: "yes"}), client.DryRunAll); err == nil {
				return errors.New("one was let in")
			}
			return nil
		})
	}
}

func restrict(t *testing.T, namespace string) {
	t.Helper()
	var object corev1.Namespace
	must(t, shared.Get(t.Context(), types.NamespacedName{Name: namespace}, &object))
	seen := object.DeepCopy()
	object.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	must(t, shared.Patch(t.Context(), &object, client.MergeFrom(seen)))
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
			ClientConfig: admissionv1.WebhookClientConfig{
				Service: &admissionv1.ServiceReference{Namespace: namespace, Name: "nobody"},
			},
		}},
	}
}
