// Package convert turns an object of ray.io into objects of ours, and says what became of each field.
//
// In: one object of Kubernetes, and what the user chose. Out: the objects that replace it, and a row for each field
// that was not kept unchanged. An object of which a field is refused is replaced by nothing. What is not of ray.io
// comes out as it went in, so that converting twice equals converting once.
//
// A table has one rule for each field of ray.io/v1: the rows, the documentation and "--explain" come from it. What
// comes out passes package validate. It is pure: it reads no text, file or cluster, and never changes its input.
package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// The group and the version of what is converted.
const (
	rayGroup   = "ray.io"
	rayVersion = "v1"
)

// Options are what the user chose.
type Options struct {
	// Aliases adds Services with KubeRay's names.
	Aliases bool
	// KeepOpen keeps what was open to everyone: without it, Ray's token and a NetworkPolicy close the cluster.
	KeepOpen bool
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
	gvk := from.GroupVersionKind()
	known := slices.Contains(Kinds(), gvk.Kind)
	switch {
	case gvk.Group == rayGroup && !known:
		return refusal("kind", fmt.Sprintf("ray.io has no kind %s; use one of %s", gvk.Kind, strings.Join(Kinds(), ", ")))
	case gvk.Group == rayGroup && gvk.Version != rayVersion:
		return refusal("apiVersion", "only ray.io/v1 is converted; write that, or have an API server with KubeRay's CRDs "+
			"print the object")
	case gvk.Group != rayGroup && known:
		return refusal("apiVersion", fmt.Sprintf("%s is of ray.io/v1, not of %q; correct apiVersion", gvk.Kind,
			from.GetAPIVersion()))
	case gvk.Group != rayGroup:
		return untouched(from, gvk.Group)
	}
	if owner := rayOwner(from); owner != nil {
		return Result{Rows: []Row{{
			Path: "metadata.ownerReferences", Verdict: Dropped,
			Text: fmt.Sprintf("%s %s makes this object; what replaces that makes its own", owner.Kind, owner.Name),
		}}}
	}
	c := &conversion{from: from, kind: gvk.Kind, options: options}
	return c.run()
}

func refusal(path, text string) Result {
	return Result{Rows: []Row{{Path: path, Verdict: Refused, Text: text}}}
}

// rayOwner is the object of ray.io that made this one, nil where none did.
func rayOwner(of *unstructured.Unstructured) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(of)
	if owner == nil {
		return nil
	}
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil || version.Group != rayGroup {
		return nil
	}
	return owner
}

// untouched passes on what is not of ray.io. Its fields may still count on KubeRay's labels.
func untouched(from *unstructured.Unstructured, group string) Result {
	result := Result{Objects: []*unstructured.Unstructured{from.DeepCopy()}}
	if group == v1beta1.GroupVersion.Group {
		return result
	}
	if path := rayMark("", from.Object); path != "" {
		result.Rows = append(result.Rows, Row{
			Path: path, Verdict: Changed, Differs: true,
			Text: "pods of Heliostat have no labels of ray.io; select heliostat.dev/cluster and heliostat.dev/role instead",
		})
	}
	return result
}

// rayMark returns the path of the first key that begins with ray.io/, empty where there is none.
func rayMark(path string, value any) string {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if strings.HasPrefix(key, rayGroup+"/") {
				return path + "[" + key + "]"
			}
			if found := rayMark(join(path, key), value[key]); found != "" {
				return found
			}
		}
	case []any:
		for i := range value {
			if found := rayMark(fmt.Sprintf("%s[%d]", path, i), value[i]); found != "" {
				return found
			}
		}
	}
	return ""
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
