package app_test

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode"

	"k8s.io/client-go/util/jsonpath"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

var (
	// kubectlLine matches a command line of kubectl on a page, in a block or between backticks.
	kubectlLine = regexp.MustCompile("\\bkubectl ([^\n`]*)")
	// substitution matches a command line within another one, and member the path of a field in an expression.
	substitution = regexp.MustCompile(`\$\([^()]*\)`)
	member       = regexp.MustCompile(`\{\.([\w.]+)`)
	// key matches a label or an annotation of ours.
	key = regexp.MustCompile(`heliostat\.dev/[a-z-]+`)

	// kubectlVerbs are those of kubectl that pages may use, and kubectlPlugins those of others. The verbs that objectVerbs
	// lists have kinds or objects as their next argument.
	kubectlVerbs   = strings.Fields("apply auth config cp create drain edit events exec explain logs port-forward rollout taint " + objectVerbs)
	kubectlPlugins = strings.Fields("heliostat krew ray")
	foreignKinds   = strings.Fields("configmap configmaps crd endpointslices events httproute namespace nodes pod pods prometheus " +
		"pvc secret services statefulset")

	kindsOfOurs = map[string]reflect.Type{
		"computecluster cc":      reflect.TypeFor[v1beta1.ComputeCluster](),
		"clusterjob cjob":        reflect.TypeFor[v1beta1.ClusterJob](),
		"clusterservice csvc":    reflect.TypeFor[v1beta1.ClusterService](),
		"clusterjobschedule cjs": reflect.TypeFor[v1beta1.ClusterJobSchedule](),
	}
	waitedFor = []string{v1beta1.ConditionReady, v1beta1.ConditionFinished, v1beta1.ConditionComplete, v1beta1.ConditionFailed, v1beta1.ConditionSuspended}
)

const objectVerbs = "annotate delete describe get label patch scale wait"

// kindOf returns our type of what kubectl calls this, nil for others, and whether there is such a kind at all.
func kindOf(resource string) (kind reflect.Type, known bool) {
	resource = strings.TrimSuffix(resource, ".heliostat.dev")
	for names, kind := range kindsOfOurs {
		long, short, _ := strings.Cut(names, " ")
		if slices.Contains([]string{long, long + "s", short}, resource) {
			return kind, true
		}
	}
	return nil, slices.Contains(foreignKinds, resource)
}

// keysOfOurs returns the source that has all labels and annotations.
var keysOfOurs = sync.OnceValue(func() string {
	source, err := os.ReadFile("../../ray-operator/api/v1beta1/labels.go")
	if err != nil {
		panic(err)
	}
	return string(source)
})

// argumentsOf returns the words of a command line of kubectl that are no flags, and its flags.
func argumentsOf(line string) (arguments []string, flags map[string]string) {
	flags = map[string]string{}
	valued := strings.Fields("-n -l -o -f -k -c -p --for --type --namespace --context --timeout --as --subresource")
	words := wordsOf("x " + line)
	for i := 0; i < len(words); i++ {
		switch name, value, joined := strings.Cut(words[i], "="); {
		case !strings.HasPrefix(name, "-"):
			arguments = append(arguments, words[i])
		case !joined && slices.Contains(valued, name) && i+1 < len(words):
			flags[name], i = words[i+1], i+1
		default:
			flags[name] = value
		}
	}
	return arguments, flags
}

// kubectlProblem returns what is wrong with a command line of kubectl, empty if nothing is.
func kubectlProblem(line string) string {
	for _, used := range key.FindAllString(line, -1) {
		if !strings.Contains(keysOfOurs(), strconv.Quote(used)) {
			return "no such label or annotation: " + used
		}
	}
	arguments, flags := argumentsOf(substitution.ReplaceAllString(line, "NAME"))
	if len(arguments) == 0 || slices.Contains(kubectlPlugins, arguments[0]) || arguments[0][0] > unicode.MaxASCII { // such as an arrow
		return ""
	}
	if !slices.Contains(kubectlVerbs, arguments[0]) {
		return "no such verb: " + arguments[0]
	}
	if len(arguments) == 1 || !slices.Contains(strings.Fields(objectVerbs), arguments[0]) {
		return ""
	}
	named, _, _ := strings.Cut(arguments[1], "/")
	for resource := range strings.SplitSeq(named, ",") {
		kind, known := kindOf(resource)
		if !known {
			return "no such kind: " + resource
		}
		if problem := resultProblem(kind, flags); problem != "" {
			return problem
		}
	}
	return ""
}

// resultProblem judges what of an object is printed or waited for.
func resultProblem(kind reflect.Type, flags map[string]string) string {
	what, condition, _ := strings.Cut(flags["--for"], "=")
	if condition, _, _ = strings.Cut(condition, "="); what == "condition" && kind != nil && !slices.Contains(waitedFor, condition) {
		return "no such condition: " + condition
	}
	expression, isPath := strings.CutPrefix(flags["-o"], "jsonpath=")
	if what == "jsonpath" {
		expression, isPath = strings.TrimPrefix(flags["--for"], "jsonpath="), true
		expression = strings.Trim(expression[:strings.LastIndex(expression, "}")+1], `'`)
	}
	if !isPath {
		return ""
	}
	expression = strings.Trim(expression, `'"`)
	if err := jsonpath.New("page").Parse(expression); err != nil {
		return err.Error()
	}
	for _, found := range member.FindAllStringSubmatch(expression, -1) {
		if kind != nil && !hasField(kind, strings.Split(found[1], ".")) {
			return "no such field: " + found[1]
		}
	}
	return ""
}

// hasField reports whether objects of a type have a field, by its name in JSON. What is in lists and maps counts as there.
func hasField(of reflect.Type, path []string) bool {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if len(path) == 0 || of.Kind() != reflect.Struct {
		return true
	}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == path[0] && hasField(field.Type, path[1:]) || name == "" && field.Anonymous && hasField(field.Type, path) {
			return true
		}
	}
	return false
}

// TestPages_UseKubectlAsItIs judges each command line of kubectl on the pages, and runs none.
func TestPages_UseKubectlAsItIs(t *testing.T) {
	count := 0
	for _, pattern := range []string{"../../README.md", "../../docs/*.md", "../../examples/*.md", "../../examples/*/*.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range kubectlLines(string(text)) {
				count++
				if problem := kubectlProblem(line); problem != "" {
					t.Errorf("%s: kubectl %s: %s", filepath.Base(page), line, problem)
				}
			}
		}
	}
	if count < 100 {
		t.Errorf("only %d command lines were found", count)
	}
}

// kubectlLines returns the command lines of kubectl in blocks and between backticks.
func kubectlLines(page string) []string {
	code := regexp.MustCompile("(?ms)^ *```.*?^ *```$|`[^`\n]+`").FindAllString(page, -1)
	found := map[string]bool{}
	for _, text := range code {
		for _, line := range kubectlLine.FindAllStringSubmatch(strings.ReplaceAll(text, "\\\n", " "), -1) {
			found[line[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func TestPages_KubectlThatDoesNotExist(t *testing.T) {
	for line, want := range map[string]string{
		"get cc,csvc -n team-a":                                "",
		"-n team-a wait --for condition=Ready cc/demo":         "",
		"get cjob a -o jsonpath='{.status.submissionID}' | x":  "",
		"wait --for=jsonpath='{.status.phase}'=Running cjob/a": "",
		"get pods -l heliostat.dev/cluster=a":                  "",
		"get pods -l heliostat.dev/clustre=a":                  "no such label",
		"annotate cjob a heliostat.dev/stopp=true":             "no such label or annotation",
		"gte cc":                                              "no such verb",
		"get clusters":                                        "no such kind",
		"wait --for=condition=Redy cc/demo":                   "no such condition",
		"get cc a -o jsonpath='{.status.hed}'":                "no such field",
		"get cc a -o jsonpath='{.status'":                     "unclosed",
		"wait --for=jsonpath='{.status.fase}'=Running cjob/a": "no such field",
	} {
		if problem := kubectlProblem(line); !strings.Contains(problem, want) || want == "" && problem != "" {
			t.Errorf("kubectl %s: %q, want %q", line, problem, want)
		}
	}
}
