package convert_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/convert"
	"github.com/heliostat-dev/heliostat/ray-operator/crdcheck"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
	"github.com/heliostat-dev/heliostat/tests/rayio"
)

// conversions is how many generated objects are converted; HELIOSTAT_CONVERSIONS asks for others.
const conversions = 2000

func TestObject_HoldsForGenerated(t *testing.T) {
	many := conversions
	if asked := os.Getenv("HELIOSTAT_CONVERSIONS"); asked != "" {
		var err error
		if many, err = strconv.Atoi(asked); err != nil {
			t.Fatalf("read HELIOSTAT_CONVERSIONS: %v", err)
		}
	}
	holdsFor(t, many, 26, func(chance *rand.Rand) generated {
		object, paths := rayio.Generate(chance)
		return generated{object, convert.Options{Aliases: chance.IntN(2) == 0, KeepOpen: chance.IntN(2) == 0}, paths}
	})
}

// generated is an object that is made by chance, and the paths of its leaves of which one may not be lost without a row.
type generated struct {
	object  *unstructured.Unstructured
	options convert.Options
	paths   []string
}

// holdsFor converts generated objects: the input stays as it is, and what comes out passes the rules, stays as it is when it is converted
// again, and has lost nothing without a row.
func holdsFor(t *testing.T, many int, stream uint64, generate func(*rand.Rand) generated) {
	t.Helper()
	converted, reasons := 0, map[string]int{}
	for seed := range many {
		chance := rand.New(rand.NewPCG(uint64(seed), stream))
		made := generate(chance)
		before := made.object.DeepCopy()
		result := convert.Object(made.object, made.options)
		if diff := cmp.Diff(before.Object, made.object.Object); diff != "" {
			t.Fatalf("seed %d: the input is changed (- before):\n%s", seed, diff)
		}
		if wrong := wrongWith(result, made.options); wrong != "" {
			t.Fatalf("seed %d: %s\n%s", seed, wrong, text(made.object))
		}
		if seed%judgedAgain == 0 {
			if wrong := refusedOf(result); wrong != "" {
				t.Fatalf("seed %d: %s\n%s", seed, wrong, text(made.object))
			}
		}
		if result.Refused() {
			count(reasons, result.Rows)
			continue
		}
		converted++
		if len(made.paths) > 0 {
			if path := made.paths[chance.IntN(len(made.paths))]; isLost(made.object, result, path, made.options) {
				t.Errorf("seed %d: %s is lost without a row\n%s", seed, path, text(made.object))
			}
		}
	}
	if converted < many/3 {
		t.Errorf("only %d of %d objects were converted: the generator makes too many that are refused, by %v", converted,
			many, reasons)
	}
	t.Logf("%d objects, %d of them converted", many, converted)
}

// judgedAgain is how many generated objects there are for one whose result the rules judge once more, as the conversion itself does.
const judgedAgain = 8

// count counts what objects were refused for.
func count(reasons map[string]int, rows []convert.Row) {
	for _, row := range rows {
		if row.Verdict == convert.Refused {
			reasons[row.Path]++
		}
	}
}

// refusedOf says what the rules of ours refuse of a result.
func refusedOf(result convert.Result) string {
	for _, object := range result.Objects {
		if found := refusals(object); len(found) > 0 {
			return "the rules refuse the result: " + found.ErrorList().ToAggregate().Error()
		}
	}
	return ""
}

// wrongWith says what is wrong with a result: it has objects though it is refused, or converting one again changes it.
func wrongWith(result convert.Result, options convert.Options) string {
	if result.Refused() != (len(result.Objects) == 0) {
		return "an object comes out though a field is refused, or none though none is"
	}
	for _, object := range result.Objects {
		again := convert.Object(object, options)
		if len(again.Objects) != 1 || len(again.Rows) > 0 {
			return "converting a result again says something"
		}
		if diff := cmp.Diff(object.Object, again.Objects[0].Object); diff != "" {
			return "converting a result again changes it (- once):\n" + diff
		}
	}
	return ""
}

// refusals are what the API server would refuse of an object of ours.
func refusals(object *unstructured.Unstructured) validate.Findings {
	if generated := object.GetGenerateName(); generated != "" && object.GetName() == "" {
		object = object.DeepCopy()
		object.SetName(generated + "a1b2c") // as the API server names it, before it judges
	}
	if !slices.Contains(crdcheck.Kinds(), object.GetKind()) {
		return nil
	}
	answer, err := crdcheck.Create(object.GetKind(), object.Object)
	if err != nil {
		panic(err)
	}
	return answer.Findings
}

// silent are values that say what is so without a word.
var silent = map[string][]string{
	"managedBy": {`"ray.io/kuberay-operator"`}, "type": {`"None"`,
		`"NewCluster"`}, "numOfHosts": {"1"}, "backend": {`"redis"`},
	"serviceType": {`"ClusterIP"`}, "deletionPolicy": {`"DeleteWithCluster"`}, "backoffLimit": {"0"}, "ttlSecondsAfterFinished": {"0"},
	"policy": {`"DeleteNone"`}, "rayVersion": {`"2.52.0"`}, "upscalingMode": {`"Default"`}, "submissionMode": {`"K8sJobMode"`},
	"groupName": {}, "mode": {`"token"`, `"disabled"`, `"DenyAllIngress"`,
		`"DenyAll"`}, "ttlSeconds": {"0"}, "accessModes": {}, "replicas": {"0"}, "minReplicas": {"0"},
}

// isLost reports whether taking a leaf out changes nothing, though no row is about it and its value says something.
func isLost(object *unstructured.Unstructured, result convert.Result, path string, options convert.Options) bool {
	value, has := rayio.Get(object.Object, path)
	if !has || len(rowsAbout(result.Rows, path)) > 0 {
		return false
	}
	written, err := json.Marshal(value)
	if err != nil || slices.Contains([]string{"false", "{}", "[]", `""`, "null"}, string(written)) {
		return false
	}
	if slices.Contains(silent[path[strings.LastIndex(path, ".")+1:]], string(written)) {
		return false
	}
	without := object.DeepCopy()
	rayio.Unset(without.Object, path)
	other := convert.Object(without, options)
	return !other.Refused() && cmp.Equal(objectsOf(result), objectsOf(other))
}

func FuzzObject(f *testing.F) {
	for _, kind := range []string{"RayCluster", "RayJob", "RayService", "RayCronJob"} {
		f.Add([]byte(text(rayio.Base(kind))))
	}
	f.Add([]byte(`{"apiVersion": "v1", "kind": "ConfigMap"}`))
	for seed := range uint64(20) {
		object, _ := rayio.Generate(rand.New(rand.NewPCG(seed, 1)))
		f.Add([]byte(text(object)))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		var object map[string]any
		if json.Unmarshal(content, &object) != nil || object == nil {
			return
		}
		from := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(integers(object).(map[string]any))}
		for _, options := range []convert.Options{{}, {Aliases: true, KeepOpen: true}} {
			result := convert.Object(from, options)
			if from.GroupVersionKind().Group != "ray.io" {
				continue
			}
			if len(result.Rows) == 0 && len(result.Objects) == 0 {
				t.Error("the object is gone without a row")
			}
			for _, made := range result.Objects {
				if found := refusals(made); len(found) > 0 {
					t.Errorf("the rules refuse the result: %v", found.ErrorList().ToAggregate())
				}
			}
		}
	})
}

// integers has numbers as an API server's clients have them: whole ones as int64.
func integers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key := range value {
			value[key] = integers(value[key])
		}
	case []any:
		for i := range value {
			value[i] = integers(value[i])
		}
	case float64:
		if whole := int64(value); float64(whole) == value {
			return whole
		}
	}
	return value
}
