package diagnose

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// explained is an error that carries its finding, such as that a name is taken.
type explained interface{ Cause() reason.Finding }

// Refusal is why the API server refuses a request about an object. Of several errors
// joined, it is the worst finding among those of the API server.
func Refusal(object string, err error) reason.Finding {
	var findings []reason.Finding
	var known explained
	if errors.As(err, &known) {
		findings = append(findings, known.Cause()) // the name is taken, which the API server did not refuse
	}
	for _, answer := range answers(err, nil) {
		findings = append(findings, refusal(answer))
	}
	finding, ok := Worst(findings...)
	if !ok {
		finding = reason.CreateRefused.Of(clean(err.Error(), listLength))
	}
	return finding.About(object)
}

// ofPod is an error about a pod.
type ofPod struct {
	error
	pod *corev1.Pod
}

// Unwrap returns the error alone.
func (e ofPod) Unwrap() error { return e.error }

// OfPod returns an error of the API server about a pod, and nil for none. Refusal then names the fields that set the sizes of
// the containers that it is about.
func OfPod(pod *corev1.Pod, err error) error {
	if err == nil {
		return nil
	}
	return ofPod{err, pod}
}

// answer is one of the API server, with the pod that it is about, nil where that is not known.
type answer struct {
	apierrors.APIStatus
	pod *corev1.Pod
}

// answers are the API server's answers in a tree of errors about a pod.
func answers(err error, about *corev1.Pod) []answer {
	switch e := err.(type) { //nolint:errorlint // walks the tree by hand: errors.As finds the first, not all
	case nil:
		return nil
	case apierrors.APIStatus:
		return []answer{{e, about}}
	case ofPod:
		return answers(e.error, e.pod)
	case interface{ Unwrap() []error }:
		var all []answer
		for _, part := range e.Unwrap() {
			all = append(all, answers(part, about)...)
		}
		return all
	default:
		return answers(errors.Unwrap(err), about)
	}
}

// parsers each read one kind of refusal, in the order in which they are tried; ok is false when the message is of another kind.
var parsers = []func(message string) (finding reason.Finding, ok bool){parseRights, parsePodSecurity, parseWebhook, parsePrivileges, parsePolicy, parseReference}

// sizeParsers read refusals of the sizes of a pod, which is nil where it is not known.
var sizeParsers = []func(message string, about *corev1.Pod) (finding reason.Finding, ok bool){parseQuota, parseLimitRange, parseDefaultLimit}

// forbidden is what the API server puts before the cause; it leaves out the name where it
// did not get so far as to read it.
var forbidden = regexp.MustCompile(`^\S+(?: "[^"]*")? is (?:forbidden|invalid): (?:: )?`)

func refusal(answer answer) reason.Finding {
	status := answer.Status()
	message := strings.ReplaceAll(status.Message[:min(len(status.Message), longest)], "\n", " ")
	if err, ok := answer.APIStatus.(error); ok && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return reason.NamespaceTerminating.Of(goingNamespace(message))
	}
	cause := forbidden.ReplaceAllString(message, "")
	for _, parse := range parsers {
		if finding, ok := parse(cause); ok {
			return finding
		}
	}
	for _, parse := range sizeParsers {
		if finding, ok := parse(cause, answer.pod); ok {
			return finding
		}
	}
	return reason.CreateRefused.Of(clean(message, listLength))
}

var goingForm = regexp.MustCompile(`in namespace (\S+) because`)

func goingNamespace(message string) string {
	if form := goingForm.FindStringSubmatch(message); form != nil {
		return "namespace " + clean(form[1], nameLength)
	}
	return "the namespace"
}

var rightsForm = regexp.MustCompile(`^User "([^"]+)" cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?`)

func parseRights(message string) (reason.Finding, bool) {
	form := rightsForm.FindStringSubmatch(message)
	if form == nil {
		return reason.Finding{}, false
	}
	user, verb, resource, place := clean(form[1], nameLength), clean(form[2], nameLength), clean(form[3], nameLength), "the whole cluster"
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		user = "ServiceAccount " + strings.Replace(account, ":", "/", 1)
	}
	if form[4] != "" {
		resource += "." + clean(form[4], nameLength)
	}
	if form[5] != "" {
		place = "namespace " + clean(form[5], nameLength)
	}
	return reason.CreateForbidden.Of(user, verb, resource, place), true
}

var (
	exceededForm  = regexp.MustCompile(`^exceeded quota: ([^,\s]+), requested: (\S+), used: (\S+), limited: (\S+)`)
	unsizedForm   = regexp.MustCompile(`^failed quota: ([^:\s]+): (must specify .*)$`)
	uncountedForm = regexp.MustCompile(`^status unknown for quota: ([^,\s]+), (.*)$`)
)

func parseQuota(message string, about *corev1.Pod) (reason.Finding, bool) {
	if form := exceededForm.FindStringSubmatch(message); form != nil {
		return reason.QuotaExceeded.Of(clean(form[1], nameLength), clean(quotas(form[2], form[3], form[4]), listLength)), true
	}
	if form := unsizedForm.FindStringSubmatch(message); form != nil {
		return reason.QuotaExceeded.In("unsized").Of(clean(form[1], nameLength), clean(form[2], wordLength), unsized(form[2], about)), true
	}
	if form := uncountedForm.FindStringSubmatch(message); form != nil {
		return reason.QuotaExceeded.In("uncounted").Of(clean(form[1], nameLength), "its use is not known yet"), true
	}
	if strings.HasPrefix(message, "insufficient quota to ") {
		return reason.QuotaExceeded.In("uncovered").Of("of the namespace", clean(message, wordLength)), true
	}
	return reason.Finding{}, false
}

// quotas puts what belongs to one resource together.
func quotas(requested, used, limited string) string {
	have, most := pairs(used), pairs(limited)
	var all []string
	for pair := range strings.SplitSeq(requested, ",") {
		name, quantity, _ := strings.Cut(pair, "=")
		all = append(all, fmt.Sprintf("%s requested %s, used %s of %s", name, quantity, have[name], most[name]))
	}
	return strings.Join(all, "; ")
}

func pairs(list string) map[string]string {
	all := map[string]string{}
	for pair := range strings.SplitSeq(list, ",") {
		name, quantity, _ := strings.Cut(pair, "=")
		all[name] = quantity
	}
	return all
}

var securityForm = regexp.MustCompile(`^violates PodSecurity "([^":]+)(?::[^"]*)?": (.*)$`)

func parsePodSecurity(message string) (reason.Finding, bool) {
	form := securityForm.FindStringSubmatch(message)
	if form == nil {
		return reason.Finding{}, false
	}
	return reason.PodSecurityDenied.Of(clean(form[1], nameLength), clean(form[2], listLength)), true
}

var (
	webhookForm = regexp.MustCompile(`admission webhook "([^"]+)" denied the request(?:: | )(.*)$`)
	failedForm  = regexp.MustCompile(`failed calling webhook "([^"]+)": (.*)$`)
)

func parseWebhook(message string) (reason.Finding, bool) {
	if form := webhookForm.FindStringSubmatch(message); form != nil {
		return reason.AdmissionDenied.Of("webhook", clean(form[1], nameLength), clean(form[2], listLength)), true
	}
	if form := failedForm.FindStringSubmatch(message); form != nil {
		return reason.WebhookFailed.Of(clean(form[1], nameLength), clean(lastPart(form[2]), wordLength)), true
	}
	return reason.Finding{}, false
}

// lastPart is the end of a chain of errors, without addresses that differ with each try.
func lastPart(chain string) string {
	if at := strings.LastIndex(chain, ": "); at >= 0 {
		return chain[at+2:]
	}
	return chain
}

// privilegesForm is what the chart's policy of pods answers the operator.
var privilegesForm = regexp.MustCompile(`^ValidatingAdmissionPolicy '[^']+' (?:with binding '[^']*' )?denied request: ` +
	`namespace (\S+) needs the label ` + regexp.QuoteMeta(v1beta1.LabelPrivileged+"="+v1beta1.PrivilegedAllowed) + ` for pods with (.*)$`)

func parsePrivileges(message string) (reason.Finding, bool) {
	form := privilegesForm.FindStringSubmatch(message)
	if form == nil {
		return reason.Finding{}, false
	}
	namespace := clean(form[1], nameLength)
	command := fmt.Sprintf("kubectl label namespace %s %s=%s", namespace, v1beta1.LabelPrivileged, v1beta1.PrivilegedAllowed)
	return reason.PrivilegesDenied.Of(namespace, clean(form[2], wordLength), reason.Command(command)), true
}

var policyForm = regexp.MustCompile(`^ValidatingAdmissionPolicy '([^']+)' (?:with binding '[^']*' )?denied request: (.*)$`)

func parsePolicy(message string) (reason.Finding, bool) {
	form := policyForm.FindStringSubmatch(message)
	if form == nil {
		return reason.Finding{}, false
	}
	return reason.AdmissionDenied.Of("policy", clean(form[1], nameLength), clean(form[2], listLength)), true
}

// references are what a pod names and what the API server says when it is not there.
var references = []struct {
	kind string
	form *regexp.Regexp
}{
	{"ServiceAccount", regexp.MustCompile(`serviceaccount "([^"]+)" not found`)},
	{"PriorityClass", regexp.MustCompile(`^no PriorityClass with name (\S+) was found`)},
	{"RuntimeClass", regexp.MustCompile(`RuntimeClass "([^"]+)" not found`)},
}

func parseReference(message string) (reason.Finding, bool) {
	for _, reference := range references {
		if found := reference.form.FindStringSubmatch(message); found != nil {
			return reason.ReferenceMissing.Of(reference.kind, clean(found[1], nameLength)), true
		}
	}
	return reason.Finding{}, false
}
