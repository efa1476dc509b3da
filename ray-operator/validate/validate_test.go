package validate_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/crdcheck"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/admission/corpus"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// judge returns all that is refused of a new object: by the CRD and by the rules here.
func judge(t *testing.T, kind string, object any) validate.Findings {
	t.Helper()
	answer, err := crdcheck.Create(kind, object)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Findings
}

// judgeChange does the same for a change.
func judgeChange(t *testing.T, kind string, before, after any) validate.Findings {
	t.Helper()
	answer, err := crdcheck.Update(kind, before, after)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Findings
}

func TestRowsOfClusters(t *testing.T) {
	testkit.Golden(t, "refusals", broken(t, corpus.Clusters(), corpus.Clusters().Rows))
}

func TestRowsOfJobs(t *testing.T) {
	testkit.Golden(t, "jobrefusals", broken(t, corpus.Jobs(), corpus.JobRows()))
}

func TestRowsOfServices(t *testing.T) {
	testkit.Golden(t, "servicerefusals", broken(t, corpus.Services(), corpus.ServiceRows()))
}

func TestRowsOfSchedules(t *testing.T) {
	testkit.Golden(t, "schedulerefusals", broken(t, corpus.Schedules(), corpus.ScheduleRows()))
	broken(t, corpus.Schedules(), corpus.Schedules().Rows)
}

// broken: each row breaks its rule. The golden file keeps at which places, with which
// words, and what else is broken with it.
func broken[T interface{ DeepCopy() T }](t *testing.T, kind corpus.Kind[T], rows []corpus.Row[T]) map[string][]string {
	t.Helper()
	kept := map[string][]string{}
	for _, row := range rows {
		found := kind.Judge(row)
		for _, err := range found.ErrorList() {
			kept[row.Name] = append(kept[row.Name], shortened(err.Error()))
		}
		breaks := slices.ContainsFunc(found, func(f validate.Finding) bool { return f.Rule == row.Rule })
		if breaks != (row.Rule != "") || row.Rule == "" && len(found) > 0 {
			t.Errorf("%s gives %.500v, want the rule %q", row.Name, found, row.Rule)
		}
	}
	return kept
}

// shortened takes what is repeated out of a refusal that names a long value.
func shortened(text string) string {
	return repeated.ReplaceAllString(text, "aa…")
}

var repeated = regexp.MustCompile("a{100,}")

func TestEveryRuleHasARow(t *testing.T) {
	everyRule(t, validate.Rules(), nil, corpus.Clusters().Rows)
	everyRule(t, validate.JobRules(), validate.Rules(), corpus.JobRows())
	everyRule(t, validate.ServiceRules(), validate.Rules(), corpus.ServiceRows())
	everyRule(t, validate.ScheduleRules(), slices.Concat(validate.Rules(), validate.JobRules()), corpus.ScheduleRows())
}

// everyRule: each rule has a row, and each row one of these rules or of the others.
func everyRule[T any](t *testing.T, rules, others []validate.Rule, rows []corpus.Row[T]) {
	t.Helper()
	names := map[string]bool{}
	broken := map[string]bool{}
	for _, row := range rows {
		if names[row.Name] {
			t.Errorf("two rows are called %q", row.Name)
		}
		names[row.Name], broken[row.Rule] = true, true
	}
	for _, rule := range rules {
		if !broken[rule.ID] && !slices.Contains(corpus.WithoutRow, rule.ID) {
			t.Errorf("no row breaks the rule %s", rule.ID)
		}
		delete(broken, rule.ID)
	}
	for _, rule := range others {
		delete(broken, rule.ID)
	}
	if delete(broken, ""); len(broken) > 0 {
		t.Errorf("rows break rules that are not there: %v", broken)
	}
}

func TestRulesAreComplete(t *testing.T) {
	for _, own := range [][]validate.Rule{validate.JobRules(), validate.ServiceRules(), validate.ScheduleRules()} {
		seen := map[string]bool{}
		for _, rule := range append(validate.Rules(), own...) {
			whole := rule.ID != "" && rule.Field != "" && rule.Refused != "" && rule.Remedy != ""
			if !whole || seen[rule.ID] || (rule.By == validate.Policy) != (rule.Holds != "") || (rule.By == validate.Schema) != (rule.Says != "") {
				t.Errorf("the rule %q lacks something, has too much, or is there twice", rule.ID)
			}
			if seen[rule.ID] = true; rule.At != "" && rule.By != validate.Policy {
				t.Errorf("the rule %q is not the policy's, and says where it is broken", rule.ID)
			}
		}
	}
}

// TestEveryFindingIsThatOfARule: findings are made in one place, from a rule, and errors in one place, from findings.
func TestEveryFindingIsThatOfARule(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("find the source: %v", err)
	}
	errs, findings := 0, 0
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if strings.HasSuffix(name, "_test.go") {
				return false
			}
			switch node := node.(type) {
			case *ast.CompositeLit:
				if kind, ok := node.Type.(*ast.Ident); ok && kind.Name == "Finding" {
					findings++
				}
			case *ast.SelectorExpr:
				if from, ok := node.X.(*ast.Ident); ok && from.Name == "field" && slices.Contains(makesErrors, node.Sel.Name) {
					errs++
				}
			}
			return true
		})
	}
	if findings != 1 || errs != 1 {
		t.Errorf("findings are made in %d places and errors in %d, want 1: where a rule reports, and of findings", findings, errs)
	}
}

var makesErrors = []string{
	"Error", "Invalid", "Forbidden", "Required", "Duplicate", "NotSupported", "NotFound", "TooLong", "TooMany", "TypeInvalid", "InternalError",
}

// TestRulesKnowWhatPodsHold: whatever the operator puts into pods is refused in templates,
// where it would not win or would clash.
func TestRulesKnowWhatPodsHold(t *testing.T) {
	cluster := testkit.Cluster("demo", testkit.Group("cpu", 1))
	for _, built := range []*corev1.Pod{pod.Head(cluster, 1), pod.Worker(cluster, &cluster.Spec.WorkerGroups[0], 0, 1)} {
		ray := &built.Spec.Containers[0]
		for _, volume := range built.Spec.Volumes {
			refused(t, "the volume "+volume.Name, true, func(t *corev1.PodTemplateSpec, _ *corev1.Container) { t.Spec.Volumes = []corev1.Volume{volume} })
		}
		for _, mount := range ray.VolumeMounts {
			refused(t, "a mount at "+mount.MountPath, true, func(_ *corev1.PodTemplateSpec, c *corev1.Container) { c.VolumeMounts = []corev1.VolumeMount{mount} })
		}
		for _, variable := range ray.Env {
			refused(t, "the variable "+variable.Name, naming.OwnsVariable(variable.Name), func(_ *corev1.PodTemplateSpec, c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: variable.Name}}
			})
		}
		for key := range built.Labels {
			refused(t, "the label "+key, true, func(t *corev1.PodTemplateSpec, _ *corev1.Container) { t.Labels = map[string]string{key: "a"} })
		}
		agent := fmt.Sprint("--dashboard-agent-listen-port=", agentOf(built))
		if !slices.Contains(ray.Args, agent) {
			t.Errorf("the arguments of %s are %v, want %s among them", built.Name, ray.Args, agent)
		}
	}
}

// agentOf is the last of Ray's ports in a pod as the rules know them.
func agentOf(built *corev1.Pod) int32 {
	head, worker := validate.RayPorts()
	if built.Labels[v1beta1.LabelRole] == v1beta1.RoleHead {
		return head[len(head)-1]
	}
	return worker[len(worker)-1]
}

func refused(t *testing.T, what string, want bool, edit func(*corev1.PodTemplateSpec, *corev1.Container)) {
	t.Helper()
	cluster := corpus.Good()
	template := testkit.Template(corev1.Container{Name: v1beta1.ContainerRay})
	edit(template, &template.Spec.Containers[0])
	cluster.Spec.WorkerGroups[0].Template = template
	if errs := judge(t, "ComputeCluster", cluster); (len(errs) > 0) != want {
		t.Errorf("%s in a template gives %v, want it refused: %v", what, errs, want)
	}
}
