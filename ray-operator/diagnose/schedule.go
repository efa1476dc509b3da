package diagnose

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// unscheduled is why a pod has no node.
func unscheduled(pod *corev1.Pod, now time.Time) reason.Finding {
	verdict := condition(pod, corev1.PodScheduled)
	switch {
	case len(pod.Spec.SchedulingGates) > 0:
		return reason.SchedulingGated.Of(clean(pod.Spec.SchedulingGates[0].Name, nameLength))
	case verdict == nil || verdict.Status != corev1.ConditionFalse:
		if now.Sub(pod.CreationTimestamp.Time) < schedulerAfter {
			return reason.Scheduling.Of()
		}
		scheduler := cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName)
		return reason.Unschedulable.In("scheduler").Of("scheduler "+scheduler+" has not looked at it", scheduler)
	case pod.Status.NominatedNodeName != "":
		return reason.Preempting.Of(pod.Status.NominatedNodeName)
	default:
		return verdictOf(verdict.Message, resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}))
	}
}

// The scheduler's words: so many nodes, then either one cause for all, or per cause the
// number of nodes that have it; then, after a dot, what it thinks of preemption.
var (
	verdictForm    = regexp.MustCompile(`^0/(\d{1,7}) nodes are available: (.*)$`)
	countForm      = regexp.MustCompile(`^(\d{1,7}) (.+)$`)
	claimForm      = regexp.MustCompile(`persistentvolumeclaim "([^"]+)" (?:not found|is being deleted)`)
	taintForm      = regexp.MustCompile(`^node\(s\) had untolerated taint \{([^:}]*)(?:: ?([^}]*))?\}$`)
	lackForm       = regexp.MustCompile(`^Insufficient (\S+)$`)
	systemTaints   = []string{"node-role.kubernetes.io/", "node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "ToBeDeletedBy", "karpenter.sh/"}
	scalarResource = []string{"cpu", "memory", "ephemeral-storage"}
)

// shortfall is a cause that so many nodes have.
type shortfall struct {
	nodes int
	// kind of reason.Unschedulable, empty for what has no remedy of its own.
	kind string
	// words for it, and the value that the remedy names.
	words, value string
}

// shortfalls by the scheduler's words for them, other than those with values.
var shortfalls = map[string]shortfall{
	"Too many pods":                                              {kind: "pods", words: "are full of pods"},
	"node(s) had untolerated taint(s)":                           {kind: "taints", words: "have a taint that it does not tolerate"},
	"node(s) didn't match Pod's node affinity/selector":          {kind: "selector", words: "do not match its nodeSelector or node affinity"},
	"node(s) were unschedulable":                                 {kind: "cordoned", words: "are cordoned"},
	"node(s) didn't have free ports for the requested pod ports": {kind: "ports", words: "have its host ports taken"},
	"node(s) didn't match pod affinity rules":                    {kind: "affinity", words: "do not match its pod affinity"},
	"node(s) didn't match pod anti-affinity rules":               {kind: "affinity", words: "are ruled out by its pod anti-affinity"},
	"node(s) didn't satisfy existing pods anti-affinity rules":   {kind: "affinity", words: "are ruled out by other pods' anti-affinity"},
	"node(s) didn't match pod topology spread constraints":       {kind: "affinity", words: "do not match its topology spread"},
	"node(s) didn't find available persistent volumes to bind":   {kind: "volume", words: "have no volume for its claims"},
	"node(s) didn't match PersistentVolume's node affinity":      {kind: "volume", words: "do not reach its volume"},
	"node(s) had volume node affinity conflict":                  {kind: "volume", words: "do not reach its volume"},
	"node(s) had no available volume zone":                       {kind: "volume", words: "are in another zone than its volume"},
	"node(s) exceed max volume count":                            {kind: "volume", words: "are full of volumes"},
	"node(s) did not have enough free storage":                   {kind: "volume", words: "have too little storage for its claims"},
	"node(s) had no available disk":                              {kind: "volume", words: "have its disk in use"},
	"node(s) didn't match pod topology spread constraints (missing required label)": {
		kind: "affinity", words: "lack the label of its topology spread",
	},
	"node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)": {kind: "volume", words: "cannot have its volume, which is gone"},
	"node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod": {
		kind: "volume", words: "cannot have its claim, which another pod uses",
	},
}

// shown is how many causes a text names at most.
const shown = 4

// verdictOf boils the scheduler's message down. Asked is what the pod requests.
func verdictOf(message string, asked corev1.ResourceList) reason.Finding {
	if strings.HasPrefix(message, "no nodes available") {
		return reason.Unschedulable.Of("there are no nodes")
	}
	message = strings.ReplaceAll(message[:min(len(message), longest)], "\n", " ")
	form := verdictForm.FindStringSubmatch(message)
	if form == nil {
		return reason.Unschedulable.Of(clean(message, wordLength))
	}
	causes, _, _ := strings.Cut(form[2], ". ")
	causes = strings.TrimSuffix(causes, ".")
	if first, _, _ := strings.Cut(causes, ", "); countForm.FindString(first) == "" {
		return ofAll(form[1], causes)
	}
	found := parseShortfalls(causes, asked)
	words := make([]string, 0, shown+1)
	for _, s := range found[:min(len(found), shown)] {
		words = append(words, fmt.Sprintf("%d %s", s.nodes, s.words))
	}
	if more := len(found) - shown; more > 0 {
		words = append(words, fmt.Sprintf("%d further causes", more))
	}
	text := fmt.Sprintf("0/%s nodes fit: %s", form[1], strings.Join(words, ", "))
	main := dominating(found)
	values := []any{text}
	if main.value != "" {
		values = append(values, main.value)
	}
	return reason.Unschedulable.In(main.kind).Of(values...)
}

// ofAll is a cause that the scheduler finds before it looks at any node.
func ofAll(nodes, cause string) reason.Finding {
	if claim := claimForm.FindStringSubmatch(cause); claim != nil {
		name := clean(claim[1], nameLength)
		return reason.VolumeNotReady.In("missing").Of("PersistentVolumeClaim "+name+" does not exist", "PersistentVolumeClaim "+name)
	}
	if strings.Contains(cause, "unbound immediate PersistentVolumeClaims") {
		return reason.VolumeNotReady.In("unbound").Of("its PersistentVolumeClaims are not bound")
	}
	return reason.Unschedulable.Of(fmt.Sprintf("0/%s nodes fit: %s", nodes, clean(cause, wordLength)))
}

// parseShortfalls reads "1 this, 2 that", and puts those of most nodes first.
func parseShortfalls(causes string, asked corev1.ResourceList) []shortfall {
	var parts []string
	for part := range strings.SplitSeq(causes, ", ") {
		if len(parts) > 0 && countForm.FindString(part) == "" {
			parts[len(parts)-1] += ", " + part
		} else {
			parts = append(parts, part)
		}
	}
	var all []shortfall
	for _, part := range parts {
		form := countForm.FindStringSubmatch(part)
		found := parseShortfall(form[2], asked)
		found.nodes, _ = strconv.Atoi(form[1]) // at most seven digits
		all = append(all, found)
	}
	slices.SortStableFunc(all, func(a, b shortfall) int {
		return cmp.Or(-cmp.Compare(a.nodes, b.nodes), cmp.Compare(a.background(), b.background()), cmp.Compare(a.words, b.words))
	})
	return all
}

// background grows with how little a cause has to do with the pod: of causes that
// equally many nodes have, those of the pod's own demands come first.
func (s shortfall) background() int {
	return 1 + slices.Index([]string{"taint", "taints", "cordoned", ""}, s.kind)
}

func parseShortfall(cause string, asked corev1.ResourceList) shortfall {
	if known, ok := shortfalls[cause]; ok {
		return known
	}
	if taint := taintForm.FindStringSubmatch(cause); taint != nil {
		name := clean(taint[1]+after("=", taint[2]), nameLength)
		if slices.ContainsFunc(systemTaints, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			return shortfall{words: "have taint " + name}
		}
		return shortfall{kind: "taint", words: "have taint " + name, value: name}
	}
	if lack := lackForm.FindStringSubmatch(cause); lack != nil {
		name, amount := clean(lack[1], nameLength), "few"
		if slices.Contains(scalarResource, name) {
			amount = "little"
		}
		words := fmt.Sprintf("too %s %s", amount, name)
		if quantity, ok := asked[corev1.ResourceName(lack[1])]; ok {
			words += fmt.Sprintf(" (it asks for %s)", quantity.String())
		}
		return shortfall{kind: "resources", words: words, value: name}
	}
	return shortfall{words: clean(strings.TrimPrefix(cause, "node(s) "), nameLength)}
}

// dominating is the cause whose remedy is given: the one of most nodes. Nodes that lack
// a device and are many say little where others have it and keep it behind a taint of
// their own; what Kubernetes itself taints is never meant to be tolerated.
func dominating(found []shortfall) shortfall {
	var best shortfall
	device := slices.ContainsFunc(found, func(s shortfall) bool {
		return s.kind == "resources" && !slices.Contains(scalarResource, s.value)
	})
	for _, s := range found {
		switch {
		case device && s.kind == "taint":
			return s
		case best.kind == "" || best.kind == "cordoned" && s.kind != "": // a cordoned node may be empty or not
			best = s
		}
	}
	return best
}
