// Package convert turns an object of ray.io, or a job of Kubeflow or Spark, into objects of ours, and reports how each field was converted.
//
// In: one object of Kubernetes, and what the user chose. Out: the objects that replace it, and a row for each field
// that was not kept unchanged. An object of which a field is refused is replaced by nothing. What is of another
// kind comes out as it went in, so that converting twice equals converting once.
//
// A table has one rule for each field: the rows, the documentation and "--explain" come from it. What
// comes out passes package validate. It is pure: it reads no text, file or cluster, and never changes its input.
package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Options are what the user chose.
type Options struct {
	// Aliases adds Services with KubeRay's names.
	Aliases bool
	// KeepOpen keeps what was open to everyone: without it, Ray's token and a NetworkPolicy close the cluster.
	KeepOpen bool
	// Kubeflow is about jobs of Kubeflow.
	Kubeflow Kubeflow
}

// Row says what became of one field.
type Row struct {
	// Path is the field's in the object that went in; of a rule of ours that refuses the result, the path there.
	Path string
	// To is the field of ours that follows it, empty where there is none.
	To      string
	Verdict Verdict
	// Differs reports that the result behaves otherwise.
	Differs bool
	Text    string
}

// Result is what became of one object.
type Result struct {
	// Objects replace it, the main one first; there are none where a row refuses it, or where another makes it.
	Objects []*unstructured.Unstructured
	Rows    []Row
	// Used are the user's choices that made a difference.
	Used []Used
}

// Refused reports whether the object cannot be converted.
func (r *Result) Refused() bool { return slices.ContainsFunc(r.Rows, isRefusal) }

func isRefusal(row Row) bool { return row.Verdict == Refused }

// Differs reports whether the result behaves otherwise than the object did.
func (r *Result) Differs() bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Differs })
}

// Object converts one object.
func Object(from *unstructured.Unstructured, options Options) Result {
	is, refused := isSource(from)
	switch {
	case refused != nil:
		return Result{Rows: []Row{*refused}}
	case !is:
		return untouched(from)
	}
	if owner := metav1.GetControllerOfNoCopy(from); owner != nil && isOf(owner.APIVersion, rayGroup, kubeflowGroup, trainerGroup, sparkGroup) {
		return Result{Rows: []Row{{
			Path: "metadata.ownerReferences", Verdict: Dropped,
			Text: fmt.Sprintf("%s %s makes this object; what replaces that makes its own", owner.Kind, owner.Name),
		}}}
	}
	c := &conversion{from: from, kind: from.GetKind(), options: options}
	return c.run()
}

// foreign are prefixes of keys by which pods are selected that are of Heliostat now, with the group that they are of.
var foreign = map[string]string{
	prefixRay: rayGroup, "training.kubeflow.org/": kubeflowGroup, "trainer.kubeflow.org/": trainerGroup,
	"sparkoperator.k8s.io/": sparkGroup,
}

// untouched passes on what is not converted. Its fields may still count on labels of what was.
func untouched(from *unstructured.Unstructured) Result {
	result := Result{Objects: []*unstructured.Unstructured{from.DeepCopy()}}
	if isOf(from.GetAPIVersion(), v1beta1.GroupVersion.Group) {
		return result
	}
	if isOf(from.GetAPIVersion(), kubeflowGroup, trainerGroup, sparkGroup) {
		result.Rows = append(result.Rows, Row{Path: "kind", Verdict: Kept, Text: from.GetKind() + " is not converted, and comes out as it is"})
	}
	if path, group := foreignKey("", from.Object); path != "" {
		result.Rows = append(result.Rows, Row{
			Path: path, Verdict: Changed, Differs: true,
			Text: "pods of Heliostat have no labels of " + group + "; select heliostat.dev/cluster and heliostat.dev/role instead",
		})
	}
	return result
}

// foreignKey returns the path of the first key with a foreign prefix and its group, empty where there is none.
func foreignKey(path string, value any) (found, group string) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			for prefix, group := range foreign {
				if strings.HasPrefix(key, prefix) {
					return path + "[" + key + "]", group
				}
			}
			if found, group = foreignKey(join(path, key), value[key]); found != "" {
				return found, group
			}
		}
	case []any:
		for i := range value {
			if found, group = foreignKey(fmt.Sprintf("%s[%d]", path, i), value[i]); found != "" {
				return found, group
			}
		}
	}
	return "", ""
}

// join is the path of a key below a path.
func join(path, key string) string {
	switch {
	case strings.ContainsAny(key, "./[]"):
		return path + "[" + key + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}
