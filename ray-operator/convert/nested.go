package convert

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// nested is a part of an object that is converted as an object of its own would be.
type nested struct {
	kind, apiVersion string
	// spec is that of the part.
	spec any
	// at is the path of the part's spec, and to that of the job's.
	at, to string
	meta   metav1.ObjectMeta
	// trial is what texts of the part may refer to, nil outside of a template of trials.
	trial *trial
}

// convert converts the part, and returns the job that replaces it, nil where none does. Rows about its fields are added to those of the
// object.
func (n *nested) convert(c *conversion) *v1beta1.ClusterJob {
	inner := &conversion{
		from: &unstructured.Unstructured{Object: map[string]any{"apiVersion": n.apiVersion, "kind": n.kind, "spec": n.spec}}, kind: n.kind,
		options: c.options, report: report{noted: map[string]bool{}}, meta: n.meta, marks: c.marks, secret: c.secret, trial: n.trial,
	}
	job, _ := makers()[n.kind](inner).(*v1beta1.ClusterJob)
	inner.tell(n.kind, n.spec)
	c.secret = inner.secret
	for _, used := range inner.used {
		c.use(used.Choice, used.About)
	}
	for _, row := range inner.rows {
		if rest, is := strings.CutPrefix(row.Path, "spec"); is {
			row.Path = n.at + rest
		}
		if row.To != "" {
			row.To = n.to + row.To
		}
		c.note(row)
	}
	return job
}
