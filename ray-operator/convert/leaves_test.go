package convert_test

import (
	"encoding/json"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/heliostat-dev/heliostat/ray-operator/convert"
	"github.com/heliostat-dev/heliostat/tests/rayio"
)

// ruleOf returns the rule about a leaf, and whether there is exactly one.
func ruleOf(leaf rayio.Leaf) (convert.Rule, bool) {
	path, kind := leaf.Path, leaf.Kind
	if below, is := strings.CutPrefix(path, rayio.ClusterAt(kind)+"."); is && !strings.HasPrefix(path,
		"spec.jobTemplate.") {
		path, kind = below, ""
		if found, has := find(path, kind); has {
			return found, true
		}
		path, kind = leaf.Path, leaf.Kind // of a job or service beside its cluster
	}
	return find(path, kind)
}

// everyRule returns all rules.
var everyRule = sync.OnceValue(convert.Rules)

// convertOnce converts an object without choices, and one that is equal to a former one not again.
func convertOnce(object *unstructured.Unstructured) convert.Result {
	key := text(object)
	result, has := converted.Load(key)
	if !has {
		result = convert.Object(object, convert.Options{})
		converted.Store(key, result)
	}
	return result.(convert.Result)
}

var converted sync.Map

// TestMain has the collector of garbage run seldom: a conversion leaves much of it, and nothing else.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

func find(path, kind string) (convert.Rule, bool) {
	var found []convert.Rule
	for _, rule := range everyRule() {
		rest, is := strings.CutPrefix(path, rule.Path)
		below := rest != "" && strings.ContainsRune(".[{", rune(rest[0]))
		if is && rule.Kind == kind && (rest == "" || rule.Whole && below) {
			found = append(found, rule)
		}
	}
	if len(found) != 1 {
		return convert.Rule{}, false
	}
	return found[0], true
}

func TestRules_HoldForEveryLeaf(t *testing.T) {
	used := map[string]bool{}
	for _, leaf := range rayio.Leaves() {
		rule, has := ruleOf(leaf)
		if !has {
			t.Errorf("no rule, or more than one, is about %s %s: add one to the table", leaf.Kind, leaf.Path)
		}
		used[rule.Kind+rule.Path] = true
	}
	for _, rule := range everyRule() {
		if isOfRay(&rule) && !used[rule.Kind+rule.Path] && !strings.HasPrefix(rule.Path, "metadata.") {
			t.Errorf("the rule about %s %s is about no field of ray.io", rule.Kind, rule.Path)
		}
	}
}

// isOfRay reports whether a rule is about kinds of ray.io.
func isOfRay(rule *convert.Rule) bool { return rule.Kind == "" || strings.HasPrefix(rule.Kind, "Ray") }

func TestRules_SayWhatToDo(t *testing.T) {
	for _, rule := range everyRule() {
		switch {
		case rule.Verdict != convert.Kept && rule.Text == "":
			t.Errorf("%s is %s, and nothing says why", rule.Path, rule.Verdict)
		case rule.Text != "" && !strings.HasSuffix(rule.Text, "."):
			t.Errorf("the text about %s is no sentence: %s", rule.Path, rule.Text)
		case rule.Verdict == convert.Kept && (rule.Differs || rule.To == ""):
			t.Errorf("%s is kept, but differs or goes nowhere", rule.Path)
		}
	}
}

// companions are what a field needs to mean something, in the terms of a cluster's spec or of the object.
var companions = map[string]map[string]any{
	"autoscalerOptions.": {"enableInTreeAutoscaling": true},
	"idleTimeoutSeconds": {"enableInTreeAutoscaling": true},
	"priority":           {"enableInTreeAutoscaling": true},
	"gcsFaultToleranceOptions.r": {"gcsFaultToleranceOptions.redisAddress": "redis:1",
		"gcsFaultToleranceOptions.redisPassword.value": "x"},
	"gcsFaultToleranceOptions.e": {"gcsFaultToleranceOptions.redisAddress": "redis:1"},
	"gcsFaultToleranceOptions.s": {"gcsFaultToleranceOptions.backend": "rocksdb", "rayVersion": "2.60.0"},
	"gcsFaultToleranceOptions.b": {"rayVersion": "2.60.0"},
	"authOptions.secretName":     {"authOptions.mode": "token"},
	"ingressOptions.": {"headGroupSpec.enableIngress": true,
		"headGroupSpec.ingressOptions.host": "a.example.com"},
	"enableIngress":              {"headGroupSpec.ingressOptions.host": "a.example.com"},
	"networkPolicy.":             {"networkPolicy.mode": "DenyAll"},
	"networkPolicy.head.ingress": {"networkPolicy.mode": "DenyAllIngress"},
	"clusterUpgradeOptions":      {"spec.upgradeStrategy.type": "NewClusterWithIncrementalUpgrade"},
	"ttlSecondsAfterFinished":    {"spec.shutdownAfterJobFinishes": true},
	"deletionStrategy.onSuccess": {"spec.deletionStrategy.onSuccess.policy": "DeleteNone", "spec.deletionStrategy.onFailure.policy": "DeleteNone"},
	"deletionStrategy.onFailure": {"spec.deletionStrategy.onSuccess.policy": "DeleteNone", "spec.deletionStrategy.onFailure.policy": "DeleteNone"},
	"jobStatus":                  {"spec.deletionStrategy.deletionRules[].policy": "DeleteCluster"},
	"jobDeploymentStatus":        {"spec.deletionStrategy.deletionRules[].policy": "DeleteCluster"},
	"condition.ttlSeconds": {"spec.deletionStrategy.deletionRules[].policy": "DeleteCluster",
		"spec.deletionStrategy.deletionRules[].condition.jobStatus": "FAILED"},
	"deletionRules[].policy": {"spec.deletionStrategy.deletionRules[].condition.jobStatus": "FAILED"},
}

// plainest are values for leaves whose first value changes nothing, or is refused alone.
var plainest = map[string]any{
	"gcsFaultToleranceOptions.backend":                   "rocksdb",
	"gcsFaultToleranceOptions.storage.deletionPolicy":    "Retain",
	"autoscalerOptions.upscalingMode":                    "Aggressive",
	"headGroupSpec.ingressOptions.pathType":              "Exact",
	"spec.deletionStrategy.deletionRules[].policy":       "DeleteCluster",
	"spec.entrypoint":                                    "python other.py",
	"spec.schedule":                                      "0 5 * * *",
	"spec.timeZone":                                      "Europe/Berlin",
	"spec.serveConfigV2":                                 "applications: [{name: other, import_path: 'a:b'}]",
	"workerGroupSpecs[].groupName":                       "gpu",
	"authOptions.mode":                                   "disabled",
	"rayVersion":                                         "2.55.0",
	"networkPolicy.mode":                                 "DenyAll",
	"networkPolicy.head.ingressRules[].ports[].endPort":  int64(8265),
	"gcsFaultToleranceOptions.redisPassword.valueFrom.x": nil,
	"headGroupSpec.template":                             map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "head", "image": "own/ray:2.52.0"}}}},
	"workerGroupSpecs[].template":                        map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "w", "image": "own/ray:2.52.0"}}}},
	"headGroupSpec.serviceType":                          "NodePort",
	"headGroupSpec.headService":                          map[string]any{"spec": map[string]any{"clusterIP": "None"}},
}

// incomplete are leaves of rules that take some of what is below them, and are refused where they stand alone.
var incomplete = []string{".valueFrom.", ".egressRules", ".ingressRules[]",
	"rayClusterConfig.gcsFaultToleranceOptions.storage.claimName"}

func TestRules_AreWhatHappens(t *testing.T) {
	for _, leaf := range rayio.Leaves() {
		rule, has := ruleOf(leaf)
		if !has || strings.HasPrefix(leaf.Path, "spec.jobTemplate.") {
			continue // the test of the table says so, or that of the jobs of a RayCronJob
		}
		before, after := withLeaf(leaf)
		was, is := convertOnce(before), convert.Object(after, convert.Options{})
		said := rowsAbout(is.Rows, leaf.Path)
		switch {
		case rule.Verdict == convert.Refused:
			if !is.Refused() || len(said) == 0 {
				t.Errorf("%s %s is not refused: %v", leaf.Kind, leaf.Path, is.Rows)
			}
		case is.Refused():
			if !containsAny(leaf.Path, incomplete) {
				t.Errorf("%s %s is refused: %v", leaf.Kind, leaf.Path, is.Rows)
			}
		case rule.Verdict == convert.Kept:
			if len(said) == 0 && cmp.Equal(objectsOf(was), objectsOf(is)) {
				t.Errorf("%s %s is lost without a row:\n%s", leaf.Kind, leaf.Path, text(after))
			}
		case len(said) == 0:
			t.Errorf("%s %s is %s, and no row says so: %v", leaf.Kind, leaf.Path, rule.Verdict, is.Rows)
		}
	}
}

// withLeaf returns an object without a leaf and the same with it, each with what the leaf needs.
func withLeaf(leaf rayio.Leaf) (before, after *unstructured.Unstructured) {
	object := rayio.Base(leaf.Kind)
	at := rayio.ClusterAt(leaf.Kind)
	for part, others := range companions {
		if !strings.Contains(leaf.Path, part) {
			continue
		}
		for path, value := range others {
			if !strings.HasPrefix(path, "spec.") {
				path = at + "." + path
			}
			rayio.Set(object.Object, path, value)
		}
	}
	if leaf.Path == "spec.clusterSelector" {
		rayio.Unset(object.Object, "spec.rayClusterSpec")
	}
	before = object.DeepCopy()
	value := rayio.Values(leaf)[0]
	for path, other := range plainest {
		if leaf.Path == path || leaf.Path == at+"."+path {
			value = other
		}
	}
	rayio.Set(object.Object, leaf.Path, value)
	return before, object
}

func containsAny(path string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(path, part) {
			return true
		}
	}
	return false
}

// rowsAbout are the rows about a leaf, or about what it is part of or has below it.
func rowsAbout(rows []convert.Row, path string) []convert.Row {
	var about []convert.Row
	wanted := strings.ReplaceAll(path, "[]", "[0]")
	for _, row := range rows {
		if row.Path == wanted || strings.HasPrefix(wanted, row.Path+".") || strings.HasPrefix(wanted, row.Path+"[") ||
			strings.HasPrefix(row.Path, wanted+".") || strings.HasPrefix(row.Path, wanted+"[") {
			about = append(about, row)
		}
	}
	return about
}

func objectsOf(result convert.Result) []map[string]any {
	var all []map[string]any
	for _, object := range result.Objects {
		all = append(all, object.Object)
	}
	return all
}

func text(object *unstructured.Unstructured) string {
	out, err := json.Marshal(object.Object)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// TestCronJobs_ConvertTheirJobsAsRayJobs: each field of a RayJob becomes in a jobTemplate what it becomes alone.
func TestCronJobs_ConvertTheirJobsAsRayJobs(t *testing.T) {
	for _, leaf := range rayio.Leaves() {
		if leaf.Kind != "RayJob" || leaf.Path == "spec.suspend" { // a jobTemplate has none
			continue
		}
		_, alone := withLeaf(leaf)
		cron := rayio.Base("RayCronJob")
		cron.Object["spec"].(map[string]any)["jobTemplate"] = alone.Object["spec"]
		is, of := convertOnce(alone), convert.Object(cron, convert.Options{})
		if is.Refused() || of.Refused() {
			if is.Refused() != of.Refused() {
				t.Errorf("%s: alone it is refused: %v, in a RayCronJob: %v %v", leaf.Path, is.Refused(), of.Refused(), of.Rows)
			}
			continue
		}
		want, _, _ := unstructured.NestedMap(is.Objects[0].Object, "spec")
		have, _, _ := unstructured.NestedMap(of.Objects[0].Object, "spec", "jobTemplate", "spec")
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s: the job differs (- alone):\n%s", leaf.Path, diff)
		}
		told := rowsAbout(is.Rows, leaf.Path)
		below := rowsAbout(of.Rows, strings.Replace(leaf.Path, "spec", "spec.jobTemplate", 1))
		if len(told) != len(below) {
			t.Errorf("%s: %d rows are about it alone, %d in a RayCronJob: %v", leaf.Path, len(told), len(below), of.Rows)
		}
	}
}
