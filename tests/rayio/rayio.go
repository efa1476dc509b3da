// Package rayio makes objects of ray.io for tests, as KubeRay 1.7 takes them.
//
// In: a source of chance, or a path of a field. Out: objects of which each field has one of the values that users write,
// some of them odd. leaves.tsv lists every field of the four kinds; a new version of KubeRay is a new list.
// It must never know what Heliostat makes of an object.
package rayio

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

//go:embed leaves.tsv
var table string

// Leaf is a field of a spec of ray.io that holds a value.
type Leaf struct{ Kind, Path, Type string }

// Leaves are all fields of all kinds.
func Leaves() []Leaf { return slices.Clone(leaves()) }

// leaves reads the table once.
var leaves = sync.OnceValue(func() []Leaf {
	var all []Leaf
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if !strings.HasPrefix(line, "#") && len(cells) == 4 {
			all = append(all, Leaf{Kind: cells[0], Path: cells[2], Type: cells[3]})
		}
	}
	return all
})

// ClusterAt is where a kind has the spec of a cluster.
func ClusterAt(kind string) string {
	return map[string]string{
		"RayCluster": "spec", "RayJob": "spec.rayClusterSpec", "RayService": "spec.rayClusterConfig", "RayCronJob": "spec.jobTemplate.rayClusterSpec",
	}[kind]
}

// Base returns an object of a kind with what the kind must have, and one group of workers.
func Base(kind string) *unstructured.Unstructured {
	object := map[string]any{
		"apiVersion": "ray.io/v1", "kind": kind, "metadata": map[string]any{"name": "sample",
			"namespace": "team"}, "spec": map[string]any{},
	}
	at := ClusterAt(kind)
	Set(object, at+".rayVersion", "2.52.0")
	Set(object, at+".headGroupSpec.template", template("ray-head"))
	Set(object, at+".workerGroupSpecs[0]", map[string]any{
		"groupName": "cpu", "replicas": int64(1), "minReplicas": int64(0), "maxReplicas": int64(3), "template": template("ray-worker"),
	})
	switch kind {
	case "RayJob":
		Set(object, "spec.entrypoint", "python train.py")
	case "RayService":
		Set(object, "spec.serveConfigV2", serveConfig)
	case "RayCronJob":
		Set(object, "spec.schedule", "0 4 * * *")
		Set(object, "spec.jobTemplate.entrypoint", "python train.py")
	}
	return &unstructured.Unstructured{Object: object}
}

func template(name string) map[string]any {
	return map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
		"name": name, "image": "rayproject/ray:2.52.0",
		"resources": map[string]any{"limits": map[string]any{"cpu": "2", "memory": "4Gi"},
			"requests": map[string]any{"cpu": "2", "memory": "4Gi"}},
	}}}}
}

// steps are the parts of a path: names of fields and numbers of entries, where [] is the first one.
func steps(path string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(path, "[]", "[0]"), func(r rune) bool {
		return r == '.' || r == '[' ||
			r == ']'
	})
}

// Set gives a field of an object a value, and makes what lies above it.
func Set(object map[string]any, path string, value any) {
	names := steps(path)
	_ = put(object, names, value)
}

func put(in any, names []string, value any) any {
	if len(names) == 0 {
		return value
	}
	if number, err := strconv.Atoi(names[0]); err == nil {
		list, _ := in.([]any)
		for len(list) <= number {
			list = append(list, nil)
		}
		list[number] = put(list[number], names[1:], value)
		return list
	}
	object, is := in.(map[string]any)
	if !is {
		object = map[string]any{}
	}
	object[names[0]] = put(object[names[0]], names[1:], value)
	return object
}

// Get returns the value of a field, and whether there is one.
func Get(object map[string]any, path string) (any, bool) {
	var value any = object
	for _, name := range steps(path) {
		switch inner := value.(type) {
		case map[string]any:
			next, has := inner[name]
			if !has {
				return nil, false
			}
			value = next
		case []any:
			number, err := strconv.Atoi(name)
			if err != nil || number >= len(inner) {
				return nil, false
			}
			value = inner[number]
		default:
			return nil, false
		}
	}
	return value, true
}

// Unset takes a field out, as if nobody had written it. It must be one of an object.
func Unset(object map[string]any, path string) {
	at := strings.LastIndex(path, ".")
	if parent, has := Get(object, path[:at]); has {
		if inner, is := parent.(map[string]any); is {
			delete(inner, path[at+1:])
		}
	}
}

// Generate returns an object of one of the kinds that are converted, and the paths of the leaves that it has beside those
// of Base.
func Generate(chance *rand.Rand) (*unstructured.Unstructured, []string) {
	kind := []string{"RayCluster", "RayJob", "RayService"}[chance.IntN(3)]
	object := Base(kind)
	object.SetName(fmt.Sprintf("sample-%d", chance.IntN(1_000_000)))
	groups := 1 + chance.IntN(3)
	at := ClusterAt(kind)
	for i := 1; i < groups; i++ {
		Set(object.Object, fmt.Sprintf("%s.workerGroupSpecs[%d]", at, i), map[string]any{
			"groupName": fmt.Sprintf("group-%d", i), "replicas": int64(chance.IntN(3)), "minReplicas": int64(0), "maxReplicas": int64(5), "template": template("ray-worker"),
		})
	}
	var paths []string
	share := chance.Float64() * chance.Float64() / 5 // most objects say little
	for _, leaf := range leaves() {
		if leaf.Kind != kind || chance.Float64() > share*weight(leaf) {
			continue
		}
		path := leaf.Path
		if strings.Contains(path, "workerGroupSpecs[]") {
			path = strings.Replace(path, "[]", fmt.Sprintf("[%d]", chance.IntN(groups)), 1)
		}
		values := Values(leaf)
		value := values[0]
		if chance.IntN(3) == 0 {
			value = values[chance.IntN(len(values))]
		}
		Set(object.Object, path, runtime.DeepCopyJSONValue(value))
		paths = append(paths, path)
	}
	return object, paths
}

// weight is how often a leaf is there beside others: policies and sources of variables have many leaves, and few users.
func weight(leaf Leaf) float64 {
	for _, rare := range []string{".networkPolicy.", ".valueFrom.", ".securityContext.", ".clusterSelector", ".jobId"} {
		if strings.Contains(leaf.Path, rare) || strings.HasSuffix(leaf.Path, rare) {
			return 0.03
		}
	}
	return 1
}

// Values are what users write into a field, the plainest first.
func Values(leaf Leaf) []any {
	kind, allowed, isEnum := strings.Cut(leaf.Type, " enum=")
	if isEnum {
		var words []any
		for word := range strings.SplitSeq(allowed, ",") {
			words = append(words, word)
		}
		return words
	}
	for _, one := range values {
		if strings.HasSuffix(leaf.Path, one.path) {
			return slices.Clone(one.values)
		}
	}
	switch kind {
	case "boolean":
		return []any{true, false}
	case "integer", "number":
		return []any{int64(30), int64(1), int64(0), int64(300)}
	case "map":
		return []any{map[string]any{"team": "a"}, map[string]any{}}
	case "array[]":
		return []any{[]any{"one"}, []any{}}
	case "any":
		return []any{int64(8265), "1"}
	case "string":
		return []any{"some-name"}
	default:
		return []any{map[string]any{}}
	}
}
