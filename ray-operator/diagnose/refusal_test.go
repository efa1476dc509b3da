package diagnose_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// answer is what the API server says, as client-go gives it.
func answer(code int32, why metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: why, Message: message}}
}

func forbidden(cause string) error {
	return answer(http.StatusForbidden, metav1.StatusReasonForbidden, `pods "a" is forbidden: `+cause)
}

func going(cause string) error {
	err := forbidden(cause)
	var status *apierrors.StatusError
	errors.As(err, &status)
	status.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}
	return err
}

// refusals are answers of the API server and what becomes of them.
var refusals = map[string]struct {
	err  error
	want string
}{
	"quota": {
		forbidden("exceeded quota: gpu, requested: requests.cpu=8,requests.nvidia.com/gpu=2, used: requests.cpu=0,requests.nvidia.com/gpu=0, " +
			"limited: requests.cpu=2,requests.nvidia.com/gpu=1"),
		"QuotaExceeded: worker a: cannot be created: ResourceQuota gpu: requests.cpu requested 8, used 0 of 2; " +
			"requests.nvidia.com/gpu requested 2, used 0 of 1. Request less, suspend another cluster, or raise the quota",
	},
	"quota of what has no size": {
		forbidden("failed quota: gpu: must specify requests.cpu for: ray"),
		"QuotaExceeded: worker a: cannot be created: ResourceQuota gpu: must specify requests.cpu for: ray. " +
			"Set cpu in size or the template's resources",
	},
	"quota of limits that the autoscaler does not have": {
		forbidden("failed quota: team: must specify limits.cpu for: autoscaler,ray; limits.memory for: log"),
		"QuotaExceeded: worker a: cannot be created: ResourceQuota team: must specify limits.cpu for: autoscaler,ray; limits.memory for: log. " +
			"Set limits.cpu in autoscaling.size, and in size or the template's resources; memory in the template's resources",
	},
	"quota of limits that encryption does not have": {
		forbidden("failed quota: team: must specify limits.cpu for: certificates,encryption"),
		"QuotaExceeded: worker a: cannot be created: ResourceQuota team: must specify limits.cpu for: certificates,encryption. " +
			"Set limits.cpu in network.encryptionSize",
	},
	"quota of limits that a managed Redis does not have": {
		forbidden("failed quota: team: must specify limits.cpu for: certificates,redis"),
		"QuotaExceeded: worker a: cannot be created: ResourceQuota team: must specify limits.cpu for: certificates,redis. " +
			"Set limits.cpu in controlStore.managedRedis.size",
	},
	"quota not counted": {
		forbidden("status unknown for quota: gpu, resources: pods"),
		"QuotaExceeded: worker a: cannot be created: ResourceQuota gpu: its use is not known yet. Wait; the quota's use is not counted yet",
	},
	"no quota covers it": {
		forbidden("insufficient quota to match these scopes: [{PriorityClass In [high]}]"),
		"QuotaExceeded: worker a: cannot be created: ResourceQuota of the namespace: " +
			"insufficient quota to match these scopes: [{PriorityClass In [high]}]. " +
			"Use another priorityClassName, or create a ResourceQuota that covers it",
	},
	"limit ranges": {
		forbidden("[minimum cpu usage per Container is 100m, but request is 50m, maximum memory usage per Container is 1Gi, but limit is 4Gi, " +
			"cpu max limit to request ratio per Container is 2, but provided ratio is 20.000000]"),
		"LimitRangeViolated: worker a: cannot be created: the namespace's LimitRange: minimum cpu usage per Container is 100m, but request is 50m, " +
			"maximum memory usage per Container is 1Gi, but limit is 4Gi, cpu max limit to request ratio per Container is 2, " +
			"but provided ratio is 20.000000. Change size or the template's resources to fit",
	},
	"one limit range": {
		forbidden("cpu max limit to request ratio per Container is 2, but provided ratio is 20.000000"),
		"LimitRangeViolated: worker a: cannot be created: the namespace's LimitRange: cpu max limit to request ratio per Container is 2, " +
			"but provided ratio is 20.000000. Change size or the template's resources to fit",
	},
	"pod security": {
		forbidden(`violates PodSecurity "restricted:latest": host namespaces (hostNetwork=true), privileged ` +
			`(container "ray" must not set securityContext.privileged=true)`),
		"PodSecurityDenied: worker a: cannot be created: pod security level restricted forbids host namespaces (hostNetwork=true), privileged " +
			`(container "ray" must not set securityContext.privileged=true). ` +
			"Correct the securityContext in the template, or relax the namespace's label pod-security.kubernetes.io/enforce",
	},
	"privileges": {
		forbidden(`ValidatingAdmissionPolicy 'heliostat-pods' with binding 'heliostat-pods' denied request: ` +
			`namespace team needs the label heliostat.dev/privileged=allowed for pods with host namespaces, nodeName`),
		"PrivilegesDenied: worker a: cannot be created: namespace team does not allow pods with host namespaces, nodeName. " +
			"Remove that from the template, or have an administrator run: kubectl label namespace team heliostat.dev/privileged=allowed",
	},
	"policy": {
		answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
			`pods "a" is invalid: : ValidatingAdmissionPolicy 'only-our-registry' with binding 'bind-registry' denied request: images must come from reg`),
		"AdmissionDenied: worker a: cannot be created: policy only-our-registry denies it: images must come from reg. " +
			"Change the cluster to satisfy the policy, or add an exception to the policy",
	},
	"webhook": {
		answer(http.StatusBadRequest, metav1.StatusReasonBadRequest,
			"admission webhook \"validate.kyverno.svc-fail\" denied the request: \n\nresource Pod/t/a was blocked due to the following policies \n\n"+
				"require-labels:\n  check: 'validation error: label team is required'\n"),
		"AdmissionDenied: worker a: cannot be created: webhook validate.kyverno.svc-fail denies it: resource Pod/t/a was blocked " +
			"due to the following policies require-labels: check: 'validation error: label team is required'. " +
			"Change the cluster to satisfy the policy, or add an exception to the policy",
	},
	"webhook that says nothing": {
		answer(http.StatusForbidden, metav1.StatusReasonForbidden, `admission webhook "a.example.com" denied the request without explanation`),
		"AdmissionDenied: worker a: cannot be created: webhook a.example.com denies it: without explanation. " +
			"Change the cluster to satisfy the policy, or add an exception to the policy",
	},
	"webhook is down": {
		answer(http.StatusInternalServerError, metav1.StatusReasonInternalError,
			`Internal error occurred: failed calling webhook "validate.kyverno.svc": failed to call webhook: `+
				`Post "https://127.0.0.1:1/x?timeout=2s": dial tcp 127.0.0.1:1: connect: connection refused`),
		"WebhookFailed: worker a: cannot be created: admission webhook validate.kyverno.svc cannot be called: connection refused. " +
			"Check that the webhook's server runs; the operator retries by itself",
	},
	"webhook that is not there": {
		answer(http.StatusInternalServerError, metav1.StatusReasonInternalError,
			`Internal error occurred: failed calling webhook "a.example.com": service "a" not found`),
		`WebhookFailed: worker a: cannot be created: admission webhook a.example.com cannot be called: service "a" not found. ` +
			"Check that the webhook's server runs; the operator retries by itself",
	},
	"missing right": {
		forbidden(`User "system:serviceaccount:heliostat-system:heliostat" cannot create resource "pods" in API group "" in the namespace "t"`),
		"CreateForbidden: worker a: cannot be written: ServiceAccount heliostat-system/heliostat may not create pods in namespace t. " +
			"Grant it that verb; the chart's roles contain all that is needed",
	},
	"missing right to make what has no name yet": {
		answer(http.StatusForbidden, metav1.StatusReasonForbidden, `pods is forbidden: User "eve" cannot create resource "pods" in API group "" in the namespace "t"`),
		"CreateForbidden: worker a: cannot be written: eve may not create pods in namespace t. " +
			"Grant it that verb; the chart's roles contain all that is needed",
	},
	"missing right everywhere": {
		forbidden(`User "eve" cannot patch resource "networkpolicies" in API group "networking.k8s.io" at the cluster scope`),
		"CreateForbidden: worker a: cannot be written: eve may not patch networkpolicies.networking.k8s.io in the whole cluster. " +
			"Grant it that verb; the chart's roles contain all that is needed",
	},
	"service account": {
		forbidden(`error looking up service account t/nobody: serviceaccount "nobody" not found`),
		"ReferenceMissing: worker a: cannot be created: ServiceAccount nobody does not exist. Create it, or correct podDefaults or the template",
	},
	"priority class": {
		forbidden("no PriorityClass with name none was found"),
		"ReferenceMissing: worker a: cannot be created: PriorityClass none does not exist. Create it, or correct podDefaults or the template",
	},
	"runtime class": {
		forbidden(`pod rejected: RuntimeClass "gvisor" not found`),
		"ReferenceMissing: worker a: cannot be created: RuntimeClass gvisor does not exist. Create it, or correct podDefaults or the template",
	},
	"namespace": {
		going("unable to create new content in namespace gone because it is being terminated"),
		"NamespaceTerminating: worker a: cannot be created: namespace gone is being deleted",
	},
	"namespace, in other words": {going("it ends"), "NamespaceTerminating: worker a: cannot be created: the namespace is being deleted"},
	"invalid": {
		answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
			`Pod "a" is invalid: spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`),
		`CreateRefused: worker a: the API server refuses it: Pod "a" is invalid: spec.containers[0].resources.requests: ` +
			`Invalid value: "2": must be less than or equal to cpu limit of 1. Change what it names; the operator retries by itself`,
	},
}

// TestRefusal: answers of a real API server 1.36.
func TestRefusal(t *testing.T) {
	for name, test := range refusals {
		t.Run(name, func(t *testing.T) {
			for form, err := range map[string]error{
				"plain": test.err, "wrapped": fmt.Errorf("create Pod a: %w", test.err), "joined": errors.Join(errors.New("x"), test.err),
			} {
				finding := diagnose.Refusal("worker a", err)
				if have := finding.Code + ": " + finding.Text; have != test.want {
					t.Errorf("%s, told as\n  %s\nwant\n  %s", form, have, test.want)
				}
			}
		})
	}
}

// full is a head with the operator's containers, whose user has given a limit of its CPU to a container of his own.
func full() *corev1.Pod {
	sized := func(name, requests, limits string) corev1.Container {
		container := corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: testkit.Resources("cpu", requests)}}
		if limits != "" {
			container.Resources.Limits = testkit.Resources("cpu", limits)
		}
		return container
	}
	return &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{sized("certificates", "10m", ""), sized("encryption", "20m", ""), sized("autoscaler", "100m", "400m")},
		Containers:     []corev1.Container{sized("ray", "1", ""), sized("own", "2", "4")},
	}}
}

// invalidPod is the API server's answer to a pod that is invalid for a cause.
func invalidPod(cause string) error {
	return answer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, `Pod "a" is invalid: `+cause)
}

const (
	ranged = "LimitRangeViolated: worker a: cannot be created: the namespace's LimitRange: "
	above  = ".resources.requests: Invalid value: %q: must be less than or equal to cpu limit of 500m"
)

var redisPod = &corev1.Pod{Spec: corev1.PodSpec{
	InitContainers: []corev1.Container{{Name: "certificates"}}, Containers: []corev1.Container{{Name: "redis"}},
}}

// refusalsOfPods are refusals by an API server, and what is told of them.
var refusalsOfPods = map[string]struct {
	pod  *corev1.Pod
	err  error
	want string
}{
	"a default limit": {
		full(), invalidPod(fmt.Sprintf("spec.containers[0]"+above, "1")),
		ranged + "its default limit of cpu is 500m, below the request of 1 of container ray. " +
			"Set limits.cpu in size or the template's resources, or change the LimitRange",
	},
	"default limits of two containers": {
		full(), invalidPod("[" + fmt.Sprintf("spec.initContainers[1]"+above+", spec.containers[0]"+above, "600m", "1") + "]"),
		ranged + "its default limit of cpu is 500m, below the request of 600m of container encryption; " +
			"its default limit of cpu is 500m, below the request of 1 of container ray. " +
			"Set limits.cpu in network.encryptionSize; limits.cpu in size or the template's resources, or change the LimitRange",
	},
	"the user's own limit": {
		full(), invalidPod(fmt.Sprintf("spec.containers[1]"+above, "2")),
		`CreateRefused: worker a: the API server refuses it: Pod "a" is invalid: ` + fmt.Sprintf("spec.containers[1]"+above, "2") +
			". Change what it names; the operator retries by itself",
	},
	"no such container": {
		full(), invalidPod(fmt.Sprintf("spec.containers[7]"+above, "2")),
		`CreateRefused: worker a: the API server refuses it: Pod "a" is invalid: ` + fmt.Sprintf("spec.containers[7]"+above, "2") +
			". Change what it names; the operator retries by itself",
	},
	"a least request": {
		full(), forbidden("minimum cpu usage per Container is 50m, but request is 20m"),
		ranged + "minimum cpu usage per Container is 50m, but request is 20m. Change network.encryptionSize to fit",
	},
	"a least limit": {
		full(), forbidden("[minimum cpu usage per Container is 500m, but request is 100m, minimum cpu usage per Container is 500m, but limit is 400m]"),
		ranged + "minimum cpu usage per Container is 500m, but request is 100m, minimum cpu usage per Container is 500m, but limit is 400m. " +
			"Change autoscaling.size to fit",
	},
	"a ratio": {
		full(), forbidden("cpu max limit to request ratio per Container is 1, but provided ratio is 2.000000"),
		ranged + "cpu max limit to request ratio per Container is 1, but provided ratio is 2.000000. " +
			"Change the template's resources to fit",
	},
	"a ratio of a default limit": {
		full(), forbidden("[cpu max limit to request ratio per Container is 2, but provided ratio is 100.000000, " +
			"cpu max limit to request ratio per Container is 2, but provided ratio is 50.000000]"),
		ranged + "with its default limit, cpu max limit to request ratio per Container is 2, but provided ratio is 100.000000, " +
			"cpu max limit to request ratio per Container is 2, but provided ratio is 50.000000. " +
			"Set limits.cpu in network.encryptionSize; limits.cpu in size or the template's resources, or change the LimitRange",
	},
	"a ratio of a default limit and one of the user's own": {
		full(), forbidden("[cpu max limit to request ratio per Container is 1, but provided ratio is 100.000000, " +
			"cpu max limit to request ratio per Container is 1, but provided ratio is 4.000000]"),
		ranged + "cpu max limit to request ratio per Container is 1, but provided ratio is 100.000000, " +
			"cpu max limit to request ratio per Container is 1, but provided ratio is 4.000000. " +
			"Change network.encryptionSize, and autoscaling.size, and size or the template's resources to fit",
	},
	"no limit": {
		full(), forbidden("maximum cpu usage per Container is 2.  No limit is specified"),
		ranged + "maximum cpu usage per Container is 2. No limit is specified. Change network.encryptionSize, and size or the template's resources to fit",
	},
	"too much in all": {
		full(), forbidden("maximum cpu usage per Pod is 2, but limit is 4"),
		ranged + "maximum cpu usage per Pod is 2, but limit is 4. " +
			"Change network.encryptionSize, and autoscaling.size, and the template's resources, and size or the template's resources to fit",
	},
	"a Redis": {
		redisPod, forbidden("minimum cpu usage per Container is 50m.  No request is specified"),
		ranged + "minimum cpu usage per Container is 50m. No request is specified. Change controlStore.managedRedis.size to fit",
	},
}

// TestRefusalOfPod_NamesTheFieldThatHelps: by the containers of the pod that break a LimitRange's rule, and a LimitRange's
// default limit apart from the user's own.
func TestRefusalOfPod_NamesTheFieldThatHelps(t *testing.T) {
	for name, test := range refusalsOfPods {
		for form, err := range map[string]error{
			"plain": diagnose.OfPod(test.pod, test.err), "wrapped": fmt.Errorf("3 failed: %w", diagnose.OfPod(test.pod, fmt.Errorf("create: %w", test.err))),
		} {
			finding := diagnose.Refusal("worker a", err)
			if have := finding.Code + ": " + finding.Text; have != test.want {
				t.Errorf("%s, %s, told as\n  %s\nwant\n  %s", name, form, have, test.want)
			}
		}
	}
	if diagnose.OfPod(full(), nil) != nil {
		t.Error("no error is one of a pod")
	}
}

// TestRefusalOfMany: of several answers the worst is told, whatever their order.
func TestRefusalOfMany(t *testing.T) {
	right, quota := forbidden(`User "a" cannot create resource "pods" in API group "" in the namespace "t"`), forbidden("failed quota: q: must specify pods for: ray")
	for _, err := range []error{errors.Join(right, quota), errors.Join(quota, right), fmt.Errorf("both: %w", errors.Join(quota, fmt.Errorf("a: %w", right)))} {
		if finding := diagnose.Refusal("pods", err); finding.Code != "CreateForbidden" {
			t.Errorf("%v told as %s: %s", err, finding.Code, finding.Text)
		}
	}
}

func TestRefusalOfOthers(t *testing.T) {
	finding := diagnose.Refusal("worker a", errors.New("no route\nto host."))
	want := "worker a: the API server refuses it: no route to host. Change what it names; the operator retries by itself"
	if finding.Code != "CreateRefused" || finding.Text != want {
		t.Errorf("told as %s: %s", finding.Code, finding.Text)
	}
}
