package convert

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/heliostat-dev/heliostat/ray-operator/crdcheck"
)

// conversion is one object on its way.
type conversion struct {
	report
	from    *unstructured.Unstructured
	kind    string
	options Options
	meta    metav1.ObjectMeta
	// marks are the keys of labels and annotations that say what belongs into a spec.
	marks marks
	// secret are credentials that stood in the spec, by their keys.
	secret map[string]string
	// used are choices of the user's that made a difference.
	used []Used
	// trial is what texts may refer to, nil for what is no template of trials.
	trial *trial
}

// use says that a choice made a difference.
func (c *conversion) use(choice, value string) {
	if one := (Used{choice, value}); !slices.Contains(c.used, one) {
		c.used = append(c.used, one)
	}
}

func (c *conversion) run() Result {
	c.noted = map[string]bool{}
	c.takeMetadata()
	main := makers()[c.kind](c)
	if main != nil {
		c.tell(c.kind, c.from.Object["spec"])
	}
	c.takeGeneratedName()
	var object *unstructured.Unstructured
	if main != nil && !slices.ContainsFunc(c.rows, isRefusal) { // or it would say the same in other words
		object = plain(main)
		c.judge(object)
	}
	slices.SortStableFunc(c.rows, func(a, b Row) int { return cmp.Compare(order(a.Path), order(b.Path)) })
	result := Result{Rows: c.rows, Used: c.used}
	if object == nil || result.Refused() {
		return result
	}
	result.Objects = []*unstructured.Unstructured{object}
	if len(c.secret) > 0 {
		result.Objects = append(result.Objects, plain(&corev1.Secret{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1",
				Kind: "Secret"}, ObjectMeta: c.beside(c.secretName()), StringData: c.secret,
		}))
	}
	if c.options.Aliases && c.meta.Name != "" {
		for _, one := range aliases(main) {
			result.Objects = append(result.Objects, plain(one))
		}
	}
	return result
}

// order puts rows about metadata first, and keeps all others as they came.
func order(path string) int {
	if strings.HasPrefix(path, "metadata.") {
		return 0
	}
	return 1
}

// read reads the spec, and refuses what its API would not take: a field that it does not have, or one of another type.
func (c *conversion) read(into any) bool {
	spec, is := c.from.Object["spec"].(map[string]any)
	if !is {
		c.refuse("spec", "the object has no spec; give one")
		return false
	}
	text, err := json.Marshal(spec)
	if err != nil {
		c.refuse("spec", "the spec is no JSON: "+err.Error())
		return false
	}
	unknown, err := kjson.UnmarshalStrict(text, into)
	if err != nil {
		c.refuseType(err)
		return false
	}
	for _, one := range unknown {
		c.refuseUnknown(c.from.GetAPIVersion(), one)
	}
	return len(unknown) == 0
}

// takeGeneratedName is about an object whose name the API server makes: what stands beside it has no name then.
func (c *conversion) takeGeneratedName() {
	if c.meta.Name != "" || c.meta.GenerateName == "" {
		return
	}
	if len(c.secret) > 0 {
		c.refuse("metadata.generateName", "the Secret for the credentials in the spec is named by the object; give a name, or name a "+
			"Secret of yours by secretKeyRef")
	}
	if c.options.Aliases && c.kind != kindJob && c.kind != kindCron {
		c.change("metadata.generateName", "", "Services with KubeRay's names need the object's; give a name to have them")
	}
}

// judge refuses what the API server would. A name that the API server makes is judged as it may be.
func (c *conversion) judge(made *unstructured.Unstructured) {
	isNamed := c.meta.Name != "" || c.meta.GenerateName == ""
	object := made
	if !isNamed {
		object = made.DeepCopy()
		object.SetName(c.meta.GenerateName + "xxxxx")
	}
	kind := object.GetKind()
	answer, err := crdcheck.Create(kind, object.Object)
	if err != nil {
		c.refuse("", fmt.Sprintf("the %s cannot be checked: %v", kind, err))
		return
	}
	for _, one := range answer.Findings {
		if one.Path == "metadata.name" && !isNamed {
			one.Path = "metadata.generateName"
		}
		c.rows = append(c.rows, Row{
			Path: one.Path, Verdict: Refused, Text: fmt.Sprintf("in the %s: %s; %s", kind, one.Refused, one.Remedy),
		})
	}
}

// beside is the metadata of an object beside the main one.
func (c *conversion) beside(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: c.meta.Namespace}
}

// plain writes an object without what nobody said: a status, and empty parts that are no words of the user's.
func plain(object runtime.Object) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		panic(fmt.Sprintf("write a %T: %v", object, err)) // it was made of what was read
	}
	delete(content, "status")
	prune(content)
	return &unstructured.Unstructured{Object: content}
}

// prune takes out empty objects of the names that Go's types always write.
func prune(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			prune(inner)
			empty, is := inner.(map[string]any)
			if inner == nil || is && len(empty) == 0 && slices.Contains([]string{"head", "metadata", "resources",
				"creationTimestamp"}, key) {
				delete(value, key)
			}
		}
	case []any:
		for i := range value {
			prune(value[i])
		}
	}
}
