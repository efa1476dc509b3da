package validate

import (
	"fmt"
	"slices"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Limits that the schema has too, of which the operator must know.
const (
	maxReplicas            = 10000
	mostVariables          = 256
	mostContainerVariables = 512 // of the containers of a template: every pod holds them, and the operator builds many pods at once
	mostVariableText       = 256 << 10
)

// schemaRules are what the schema of the CRDs refuses, in the API server's own words.
var schemaRules = []Rule{
	{
		ID: "long-text", Field: "any text with a bound", By: Schema, Says: "may not be more than",
		Refused: "the text must not be longer than the field's limit", Remedy: "shorten it",
	},
	{
		ID: "long-list", Field: "any list or map with a bound", By: Schema, Says: "must have at most",
		Refused: "the number of entries must not be above the field's limit", Remedy: "remove some",
	},
	{
		ID: "unknown-word", Field: "any field that takes one of some words", By: Schema, Says: "supported values",
		Refused: "the value must be one that the field allows", Remedy: "use one that the reference lists",
	},
	{
		ID: "out-of-bounds", Field: "any number with bounds", By: Schema, Says: "should ",
		Refused: "the number, or the number of entries, must be within the field's limits", Remedy: "see the reference for them",
	},
	{
		ID: "required", Field: "any field that must be set", By: Schema, Says: "Required value",
		Refused: "the field is required", Remedy: "set it",
	},
	{
		ID: "duplicate", Field: "any list whose entries have names", By: Schema, Says: "Duplicate value",
		Refused: "names of entries must be unique", Remedy: "rename or remove one",
	},
	{
		ID: "quantity", Field: "any amount of a resource", By: Schema, Says: "should match",
		Refused: "the amount must be a quantity of Kubernetes", Remedy: "write a number, with a suffix if needed, such as 500m or 2Gi",
	},
	{
		ID: "port-name", Field: "spec.head.service.ports[*].name, spec.service.ports[*].name", By: Schema, Says: "should match",
		Refused: "the name of a port must be lower-case letters, digits and '-'", Remedy: "correct it",
	},
	{
		ID: "network-nobody", Field: "spec.network.allowFrom[*].from, spec.network.allowTo[*].to", By: Schema, Says: "Required value",
		Refused: "an entry must have from or to", Remedy: "add it; an empty list allows all",
	},
}

// Of jobs and of services alone.
var (
	jobSchemaRules = []Rule{{
		ID: "runtime-env-object", Field: "spec.runtimeEnv", By: Schema, Says: "must be of type object",
		Refused: "runtimeEnv must be an object", Remedy: "write its fields as YAML, not as a string",
	}}
	serviceSchemaRules = []Rule{
		{
			ID: "serve-missing", Field: "spec.serveConfig", By: Schema, Says: "Required value",
			Refused: "serveConfig must be set", Remedy: "set it with its applications",
		},
		{
			ID: "serve-no-object", Field: "spec.serveConfig", By: Schema, Says: "must be of type object",
			Refused: "serveConfig must be an object", Remedy: "write its fields as YAML, not as a string",
		},
	}
)

// checks are the functions of those rules of the CRDs that are asked in Go too, by ID. No CRD sees what they are asked about:
// the change that a service would make of its cluster, and what the chart's values put into all clusters.
func checks() map[string]Rule {
	all := map[string]Rule{
		"own-label": inDefaults(func(d *v1beta1.PodDefaults, bad report) { keys(bad, defaultsPath, "labels", d.Labels, isOwnLabel) }),
		"own-annotation": inDefaults(func(d *v1beta1.PodDefaults, bad report) {
			keys(bad, defaultsPath, "annotations", d.Annotations, isOwnKey)
		}),
		"object-name": inDefaults(badNames),
		"long-text":   inDefaults(longTexts),
		"long-list":   inDefaults(longLists),
		"duplicate": inDefaults(func(d *v1beta1.PodDefaults, bad report) {
			twice(bad, defaultsPath, "env", d.Env, func(e *corev1.EnvVar) string { return e.Name })
		}),

		"managed-by-fixed": {change: func(before, after *v1beta1.ComputeCluster, bad report) {
			if managedBy(before) != managedBy(after) {
				bad.at(field.NewPath("spec", "managedBy"), after.Spec.ManagedBy)
			}
		}},
		"scheduler-fixed": {change: func(before, after *v1beta1.ComputeCluster, bad report) {
			if !equality.Semantic.DeepEqual(before.Spec.Scheduler, after.Spec.Scheduler) {
				bad.at(field.NewPath("spec", "scheduler"), nil)
			}
		}},
		"encryption-fixed": {change: func(before, after *v1beta1.ComputeCluster, bad report) {
			if naming.EncryptionRequired(before) != naming.EncryptionRequired(after) {
				bad.at(field.NewPath("spec", "network", "encryption"), nil)
			}
		}},
		"hosts-fixed": {change: func(before, after *v1beta1.ComputeCluster, bad report) {
			for i := range after.Spec.WorkerGroups {
				group := &after.Spec.WorkerGroups[i]
				if was := naming.FindGroup(before, group.Name); was != nil && hosts(group) != hosts(was) {
					bad.at(field.NewPath("spec", "workerGroups").Index(i).Child("hostsPerReplica"), hosts(group))
				}
			}
		}},
		"headless-fixed":            {change: headlessChange},
		"ip-family-fixed":           {change: familyChange},
		"load-balancer-class-fixed": {change: classChange},

		"store-fixed":           {change: storeChange},
		"store-kind-fixed":      restored("", func(before, after *v1beta1.ControlStore) bool { return kinds(before) != kinds(after) }),
		"store-namespace-fixed": restored("redis.namespace", hasOtherNamespace),
		"store-volume-fixed":    {change: volumeChange},

		"shared-volume-class-fixed": sharedChange("storageClassName", hasOtherClass),
	}
	for _, size := range containerSizes {
		size.addChecks(all)
	}
	return all
}

// withChecks completes rules of the CRDs that are asked in Go too.
func withChecks(rules []Rule) []Rule {
	rules, in := slices.Clone(rules), checks()
	for i := range rules {
		check := in[rules[i].ID]
		rules[i].cluster, rules[i].change = check.cluster, check.change
	}
	return rules
}

var defaultsPath = field.NewPath("spec", "podDefaults")

// inDefaults asks only clusters with podDefaults.
func inDefaults(check func(d *v1beta1.PodDefaults, bad report)) Rule {
	return Rule{cluster: func(c *v1beta1.ComputeCluster, bad report) {
		if c.Spec.PodDefaults != nil {
			check(c.Spec.PodDefaults, bad)
		}
	}}
}

func badNames(d *v1beta1.PodDefaults, bad report) {
	for child, name := range defaultNames(d) {
		if name != "" && !isObjectName(name) {
			bad.at(defaultsPath.Child(child), name)
		}
	}
}

// defaultNames gives the names of objects in podDefaults, by their fields.
func defaultNames(d *v1beta1.PodDefaults) func(yield func(child, name string) bool) {
	return func(yield func(child, name string) bool) {
		_ = yield("serviceAccountName", d.ServiceAccountName) && yield("priorityClassName", d.PriorityClassName)
	}
}

// maxName is the longest name of an object.
const maxName = 253

func longTexts(d *v1beta1.PodDefaults, bad report) {
	for child, name := range defaultNames(d) {
		if len(name) > maxName && utf8.RuneCountInString(name) > maxName {
			bad.at(defaultsPath.Child(child), fmt.Sprintf("%.20s…", name))
		}
	}
}

func longLists(d *v1beta1.PodDefaults, bad report) {
	for _, list := range []struct {
		child      string
		have, most int
	}{
		{"imagePullSecrets", len(d.ImagePullSecrets), 16}, {"labels", len(d.Labels), 64}, {"annotations", len(d.Annotations), 64},
		{"env", len(d.Env), mostVariables}, {"envFrom", len(d.EnvFrom), 16}, {"nodeSelector", len(d.NodeSelector), 64},
		{"tolerations", len(d.Tolerations), 64},
	} {
		count(bad, defaultsPath, list.child, list.have, list.most)
	}
}

// managedBy is what the API server's default makes of it.
func managedBy(c *v1beta1.ComputeCluster) string {
	if c.Spec.ManagedBy == "" {
		return v1beta1.ManagedByOperator
	}
	return c.Spec.ManagedBy
}
