package reason

// Why the API server refuses what the operator asks for. The texts say nothing of which
// object: Finding.About does.
var (
	QuotaExceeded = Reason{
		"QuotaExceeded", Warning, "A ResourceQuota of the namespace is used up, or asks for sizes that the pod does not have.",
		"cannot be made: ResourceQuota %s: %s", "Ask for less, suspend another cluster, or raise the quota",
		[]Case{
			{"unsized", "Set what it names in size or in the template's resources"},
			{"uncounted", "Wait; the quota's use is not counted yet"},
			{"uncovered", "Use another priorityClassName, or have a ResourceQuota made that covers it"},
		},
	}
	LimitRangeViolated = Reason{
		"LimitRangeViolated", Warning, "A LimitRange of the namespace does not allow the pod's sizes.",
		"cannot be made: the namespace's LimitRange: %s", "Change size or the template's resources to fit", nil,
	}
	PodSecurityDenied = Reason{
		"PodSecurityDenied", Warning, "The namespace enforces a pod security level that the template breaks.",
		"cannot be made: pod security level %s forbids %s", "Correct the securityContext in the template, or relax the namespace's label pod-security.kubernetes.io/enforce", nil,
	}
	AdmissionDenied = Reason{
		"AdmissionDenied", Warning, "An admission webhook or a ValidatingAdmissionPolicy says no.",
		"cannot be made: %s %s denies it: %s", "Change the cluster to what the policy asks for, or have it make an exception", nil,
	}
	WebhookFailed = Reason{
		"WebhookFailed", Warning, "An admission webhook does not answer, and the API server makes nothing without it.",
		"cannot be made: admission webhook %s cannot be called: %s", "See whether what serves the webhook runs; it is tried again by itself", nil,
	}
	CreateForbidden = Reason{
		"CreateForbidden", Warning, "The operator's ServiceAccount lacks a right.",
		"cannot be written: %s may not %s %s in %s", "Grant it that verb; the chart's roles hold all that is needed", nil,
	}
	ReferenceMissing = Reason{
		"ReferenceMissing", Warning, "The pod names a ServiceAccount, a PriorityClass or a RuntimeClass that does not exist.",
		"cannot be made: %s %s does not exist", "Create it, or correct podDefaults or the template", nil,
	}
	NamespaceTerminating = Reason{
		"NamespaceTerminating", Progress, "The namespace is being deleted, and nothing new is made in it.",
		"cannot be made: %s is being deleted", "", nil,
	}
	CreateRefused = Reason{
		"CreateRefused", Warning, "The API server refuses a request for a reason that is none of the others.",
		"the API server refuses it: %s", "Change what it names; the operator tries again by itself", nil,
	}
)

func refusals() Section {
	return Section{"Why the API server refuses", []Reason{
		CreateForbidden, ReferenceMissing, PodSecurityDenied, AdmissionDenied, WebhookFailed, LimitRangeViolated, QuotaExceeded, CreateRefused, NamespaceTerminating,
	}}
}
