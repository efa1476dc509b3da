package reason

// Why the API server refuses what the operator asks for. The texts say nothing of which
// object: Finding.About does.
var (
	QuotaExceeded = Reason{
		"QuotaExceeded", Warning, "A ResourceQuota of the namespace is exhausted, or requires sizes that the pod does not have.",
		"cannot be created: ResourceQuota %s: %s", "Request less, suspend another cluster, or raise the quota",
		[]Case{
			{"unsized", "Set %s"},
			{"uncounted", "Wait; the quota's use is not counted yet"},
			{"uncovered", "Use another priorityClassName, or create a ResourceQuota that covers it"},
		},
	}
	LimitRangeViolated = Reason{
		"LimitRangeViolated", Warning, "A LimitRange of the namespace does not allow the pod's sizes.",
		"cannot be created: the namespace's LimitRange: %s", "Change %s to fit",
		[]Case{{"default", "Set %s, or change the LimitRange"}},
	}
	PodSecurityDenied = Reason{
		"PodSecurityDenied", Warning, "The namespace enforces a pod security level that the template breaks.",
		"cannot be created: pod security level %s forbids %s", "Correct the securityContext in the template, or relax the namespace's label pod-security.kubernetes.io/enforce", nil,
	}
	PrivilegesDenied = Reason{
		"PrivilegesDenied", Warning, "The namespace lacks the label by which an administrator allows pods that reach the node or other namespaces.",
		"cannot be created: namespace %s does not allow pods with %s", "Remove that from the template, or have an administrator run: %s", nil,
	}
	AdmissionDenied = Reason{
		"AdmissionDenied", Warning, "An admission webhook or a ValidatingAdmissionPolicy denies the request.",
		"cannot be created: %s %s denies it: %s", "Change the cluster to satisfy the policy, or add an exception to the policy", nil,
	}
	WebhookFailed = Reason{
		"WebhookFailed", Warning, "An admission webhook does not answer, and the API server creates nothing without it.",
		"cannot be created: admission webhook %s cannot be called: %s", "Check that the webhook's server runs; the operator retries by itself", nil,
	}
	CreateForbidden = Reason{
		"CreateForbidden", Warning, "The operator's ServiceAccount lacks a right.",
		"cannot be written: %s may not %s %s in %s", "Grant it that verb; the chart's roles contain all that is needed", nil,
	}
	ReferenceMissing = Reason{
		"ReferenceMissing", Warning, "The pod names a ServiceAccount, a PriorityClass or a RuntimeClass that does not exist.",
		"cannot be created: %s %s does not exist", "Create it, or correct podDefaults or the template", nil,
	}
	NamespaceTerminating = Reason{
		"NamespaceTerminating", Progress, "The namespace is being deleted, and nothing can be created in it.",
		"cannot be created: %s is being deleted", "", nil,
	}
	CreateRefused = Reason{
		"CreateRefused", Warning, "The API server refuses a request for another reason.",
		"the API server refuses it: %s", "Change what it names; the operator retries by itself", nil,
	}
)

func refusals() Section {
	return Section{"Why the API server refuses", []Reason{
		CreateForbidden, ReferenceMissing, PodSecurityDenied, PrivilegesDenied, AdmissionDenied, WebhookFailed, LimitRangeViolated, QuotaExceeded, CreateRefused, NamespaceTerminating,
	}}
}
