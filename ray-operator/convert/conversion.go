package convert

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// conversion is one object on its way.
type conversion struct {
	from    *unstructured.Unstructured
	kind    string
	options Options
	rows    []Row
	// noted are the paths about which the conversion itself has said what became of them, whatever the table says.
	noted map[string]bool
	meta  metav1.ObjectMeta
	// marks are the keys of labels and annotations that say what belongs into a spec.
	marks marks
	// secret are credentials that stood in the spec, by their keys.
	secret map[string]string
}

func (c *conversion) run() Result {
	c.noted = map[string]bool{}
	c.takeMetadata()
	main := c.convert()
	if main != nil {
		c.tell()
	}
	if main != nil && !slices.ContainsFunc(c.rows, isRefusal) { // or it would say the same in other words
		c.judge(main)
	}
	slices.SortStableFunc(c.rows, func(a, b Row) int { return cmp.Compare(order(a.Path), order(b.Path)) })
	result := Result{Rows: c.rows}
	if main == nil || result.Refused() {
		return result
	}
	result.Objects = []*unstructured.Unstructured{plain(main)}
	if len(c.secret) > 0 {
		result.Objects = append(result.Objects, plain(&corev1.Secret{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1",
				Kind: "Secret"}, ObjectMeta: c.beside(c.secretName()), StringData: c.secret,
		}))
	}
	if c.options.Aliases {
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

// convert returns the object of ours, nil where the object cannot be read.
func (c *conversion) convert() runtime.Object {
	switch c.kind {
	case kindCluster:
		var spec rayClusterSpec
		if c.read(&spec) {
			return c.computeCluster(&spec)
		}
	case kindJob:
		var spec rayJobSpec
		if c.read(&spec) {
			return c.clusterJob(&spec)
		}
	case kindService:
		var spec rayServiceSpec
		if c.read(&spec) {
			return c.clusterService(&spec)
		}
	case kindCron:
		var spec rayCronJobSpec
		if c.read(&spec) {
			return convertCronJob(c, &spec)
		}
	}
	return nil
}

// read reads the spec, and refuses what ray.io would not take: a field that it does not know, or one of another type.
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
		c.refuseUnknown(one)
	}
	return len(unknown) == 0
}

// refuseType refuses a value that is not what its field takes.
func (c *conversion) refuseType(err error) {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		c.refuse("spec."+wrong.Field, fmt.Sprintf("a %s has no place here; give a %s", wrong.Value, wrong.Type.Kind()))
		return
	}
	c.refuse("spec", "a value has not the form that its field takes: "+err.Error())
}

// refuseUnknown refuses a field by the error of a strict reader.
func (c *conversion) refuseUnknown(err error) {
	path := "spec"
	if at, is := err.(interface{ FieldPath() string }); is {
		path += "." + at.FieldPath()
	}
	c.refuse(path, "ray.io/v1 has no such field; correct its name, or take it out")
}

// note says what became of a field, and keeps the table from saying it.
func (c *conversion) note(row Row) {
	c.noted[row.Path] = true
	if row.Verdict != Kept {
		c.rows = append(c.rows, row)
	}
}

func (c *conversion) refuse(path, text string) { c.note(Row{Path: path, Verdict: Refused, Text: text}) }

// keep has the table say nothing about a field, because this value of it stays as it is.
func (c *conversion) keep(path string) { c.note(Row{Path: path, Verdict: Kept}) }

// drop says that the operator does what a field asks for.
func (c *conversion) drop(path, text string) { c.note(Row{Path: path, Verdict: Dropped, Text: text}) }

// change says that a field has another value, with another effect.
func (c *conversion) change(path, to, text string) {
	c.note(Row{Path: path, To: to, Verdict: Changed, Differs: true, Text: text})
}

// adjust says that a field has another value, with the same effect.
func (c *conversion) adjust(path, to, text string) {
	c.note(Row{Path: path, To: to, Verdict: Changed, Text: text})
}

// tell adds the rows of the table for the fields that the object has.
func (c *conversion) tell() { c.walk(books[c.kind], "spec", c.from.Object["spec"]) }

func (c *conversion) walk(rules book, path string, value any) {
	if rule, has := rules[normal(path)]; has {
		if rule.Verdict != Kept && !c.noted[path] && !isEmpty(value) {
			c.rows = append(c.rows, Row{Path: path, To: rule.To, Verdict: rule.Verdict, Differs: rule.Differs, Text: rule.Text})
		}
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			c.walk(rules, join(path, key), value[key])
		}
	case []any:
		for i := range value {
			c.walk(rules, fmt.Sprintf("%s[%d]", path, i), value[i])
		}
	case nil:
	default:
		c.refuse(path, "no rule says what becomes of this field; take it out, and tell the makers of Heliostat")
	}
}

// isEmpty reports whether a value says nothing.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case bool:
		return !value
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	default:
		return false
	}
}

// judge refuses what the API server would.
func (c *conversion) judge(main runtime.Object) {
	var found validate.Findings
	kind := main.GetObjectKind().GroupVersionKind().Kind
	switch main := main.(type) {
	case *v1alpha1.ComputeCluster:
		found = validate.Cluster(main)
	case *v1alpha1.ClusterJob:
		found = validate.Job(main)
	case *v1alpha1.ClusterService:
		found = validate.Service(main)
	case *v1alpha1.ClusterJobSchedule:
		found = validate.Schedule(main)
	}
	for _, one := range found {
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
