// Package rights says which rights a user who writes an object of our kinds must have for what the spec names or opens.
//
// In: an object. Out: demands, each with the field, the right, and a text for a refusal. For the chart's policies the
// same needs have expressions, and a test sends both sides of each to a real API server.
//
// It is pure. It must never ask for more than Kubernetes asks of somebody who makes the same pod by hand.
package rights

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Family is a set of needs that one policy asks about. An API server lets a policy ask about 28 rights at most.
type Family string

// Families.
const (
	// Pods: what a pod runs as, and what of its node it gets.
	Pods Family = "pods"
	// Objects: what a pod reads of its namespace.
	Objects Family = "objects"
	// Doors: what the operator itself reads or opens for somebody, and the place that it asks for among other teams.
	Doors Family = "doors"
)

// Families returns all, in the order in which the API server asks.
func Families() []Family { return []Family{Pods, Objects, Doors} }

// Need is a right that some fields need.
type Need struct {
	// ID names it in tests.
	ID     string
	Family Family
	// Verb on Resource of Group. Where Subresource is not empty it is on that.
	Verb, Group, Resource, Subresource string
	// IsClusterWide tells that the resource belongs to no namespace.
	IsClusterWide bool
	// IsNamed tells that the right is on one object; others are on all of a namespace.
	IsNamed bool
	// OrPods reports whether the right to create pods is enough too, because a pod could do the same.
	OrPods bool
	// Most is how many different names one object may have for this need, unless pods may be created.
	Most int
	// Fields lists those that need it, for the documentation.
	Fields string
	// Refused says what must not be without the right. Empty: the text names the right alone.
	Refused string
	// Entries is an expression for a list of "FIELD NAME", where NAME is - for needs without names.
	Entries string

	find func(o *object, found func(field, name string))
}

// right names the right as people write it: "get secrets/prod-db".
func (n *Need) right(name string) string {
	words := n.Verb + " " + n.Resource
	if n.Subresource != "" {
		words += "/" + n.Subresource
	}
	if n.IsNamed {
		words += "/" + name
	}
	return words
}

// Text returns the words of a refusal behind the field. The name may be an expression's placeholder.
func (n *Need) Text(name string) string {
	refused := n.Refused
	if refused != "" {
		refused += ", and "
	}
	lacks := "you may not " + n.right(name)
	if n.OrPods && n.Resource != "pods" {
		lacks = "you may neither " + n.right(name) + " nor create pods"
	}
	return refused + lacks + "; ask an administrator for the right, or leave the field out"
}

// MostText returns the message of the refusal of a spec that names more objects than a policy can check.
func (n *Need) MostText() string {
	return fmt.Sprintf("more than %d names need the right to %s; name fewer, or ask an administrator for the right to create pods", n.Most, n.right("NAME"))
}

// Demand is a right that a spec needs.
type Demand struct {
	Need  *Need
	Field string
	// Name is that of the object, empty for needs without names.
	Name string
}

// Text returns the words of a refusal, with the field.
func (d Demand) Text() string { return d.Field + ": " + d.Need.Text(d.Name) }

// OfCluster returns what a ComputeCluster needs, one demand for each name.
func OfCluster(cluster *v1beta1.ComputeCluster, site Site) []Demand {
	return demands(&object{site: site, at: "spec", path: "spec", cluster: &cluster.Spec, ranks: []keys{ownLabels(cluster)}})
}

// OfJob returns what a ClusterJob needs.
func OfJob(job *v1beta1.ClusterJob, site Site) []Demand {
	return ofRun(&job.Spec, "spec", site, ownLabels(job))
}

// OfSchedule returns what a ClusterJobSchedule needs: what its jobs do, which the operator creates in its author's place.
func OfSchedule(schedule *v1beta1.ClusterJobSchedule, site Site) []Demand {
	template := &schedule.Spec.JobTemplate
	return ofRun(&template.Spec, "spec.jobTemplate.spec", site, ownLabels(schedule), keys{path: "spec.jobTemplate.metadata", labels: template.Metadata.Labels})
}

func ofRun(spec *v1beta1.ClusterJobSpec, at string, site Site, ranks ...keys) []Demand {
	o := home(spec.ClusterRef, spec.ClusterTemplate, at, site, ranks)
	o.env = spec.Env
	return demands(o)
}

// OfService returns what a ClusterService needs.
func OfService(service *v1beta1.ClusterService, site Site) []Demand {
	o := home(service.Spec.ClusterRef, service.Spec.ClusterTemplate, "spec", site, []keys{ownLabels(service)})
	o.service = &service.Spec
	return demands(o)
}

func ownLabels(object metav1.Object) keys { return keys{path: "metadata", labels: object.GetLabels()} }

// home is an object whose spec, or that of its jobs, lies at a path.
func home(ref *v1beta1.ClusterReference, template *v1beta1.ClusterTemplate, at string, site Site, ranks []keys) *object {
	o := &object{site: site, at: at, path: at + ".clusterTemplate.spec", cluster: &v1beta1.ComputeClusterSpec{}, ref: ref, ranks: ranks}
	if template != nil {
		o.cluster = &template.Spec
		o.ranks = append(o.ranks, keys{path: at + ".clusterTemplate.metadata", labels: template.Metadata.Labels})
	}
	return o
}

func demands(o *object) []Demand {
	var all []Demand
	for i := range needs {
		seen := map[string]bool{}
		needs[i].find(o, func(field, name string) {
			if needs[i].IsNamed && name == "" || seen[name] {
				return
			}
			seen[name] = true
			all = append(all, Demand{Need: &needs[i], Field: field, Name: name})
		})
	}
	return all
}

// Missing returns a refusal for each demand that somebody has no right to. mayCreatePods is about the namespace; may
// answers for one demand.
func Missing(all []Demand, mayCreatePods bool, may func(Demand) bool) field.ErrorList {
	var errs field.ErrorList
	counts := map[*Need]int{}
	for _, demand := range all {
		if counts[demand.Need]++; demand.Need.OrPods && mayCreatePods {
			continue
		}
		switch {
		case demand.Need.IsNamed && counts[demand.Need] == demand.Need.Most+1:
			errs = append(errs, field.Forbidden(field.NewPath("spec"), demand.Need.MostText()))
		case demand.Need.IsNamed && counts[demand.Need] > demand.Need.Most:
		case !may(demand):
			errs = append(errs, &field.Error{Type: field.ErrorTypeForbidden, Field: demand.Field, BadValue: "", Detail: demand.Need.Text(demand.Name)})
		}
	}
	return errs
}

// Needs returns all needs, in the order of their families.
func Needs() []Need { return needs }
