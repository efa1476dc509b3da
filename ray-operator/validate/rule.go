package validate

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Layer is who refuses something in the API server.
type Layer string

// Layers, in the order in which they are asked. What one refuses, the next never sees.
const (
	// Schema: types, bounds and enums of the CRD, in the API server's own words.
	Schema Layer = "schema"
	// Expression: an expression in the CRD's schema, in the words of the rule.
	Expression Layer = "rule in the schema"
	// Policy: the chart's ValidatingAdmissionPolicy, in the words of the rule.
	Policy Layer = "admission policy"
)

// Rule is one thing that is refused.
type Rule struct {
	// ID names the rule for programs, in kebab-case. It never changes.
	ID string
	// Field is the path of what is refused. NODE stands for the head or a worker group,
	// GROUP for a worker group.
	Field string
	// Refused says what is wrong, and Remedy what helps.
	Refused, Remedy string
	By              Layer
	// IsOfChange reports that only a change breaks a rule of the CRD.
	IsOfChange bool
	// Says is, for the schema, a part of the API server's words.
	Says string
	// Holds is, for the policy, an expression that is true of a good object. Where Field begins
	// with NODE it is asked of each node n. variables.cluster is the spec of the cluster, empty
	// where a job or a service has none of its own.
	Holds string
	// At is, for the policy, an expression for the path of the first broken place, which the
	// answer then names instead of Field; empty where Field says it all.
	At string
	// Which is, for the policy, an expression for what the answer adds to the text; empty where the path says it all. Where
	// Field begins with NODE it is what of a node n is broken, such as its container. It needs At elsewhere.
	Which string

	// What finds the broken places: one of these, or one for each sort of object that is asked. Most rules of the CRD have none.
	cluster func(cluster *v1beta1.ComputeCluster, bad report)
	node    func(n *node, bad report)
	inner   func(n *node, bad report) // of nodes that have a template
	group   func(n *node, bad report)
	change  func(before, after *v1beta1.ComputeCluster, bad report)

	home      func(h *home, bad report) // of jobs and services
	job       func(r *run, bad report)
	jobChange func(before, after *run, bad report)

	service func(s *serving, bad report)

	schedule func(s *v1beta1.ClusterJobSchedule, bad report)
}

// Text is what the refusal says behind the path of the field.
func (r *Rule) Text() string { return refusal(r.Refused, r.Remedy) }

// askCluster finds the broken places of a cluster and its nodes.
func (r *Rule) askCluster(cluster *v1beta1.ComputeCluster, nodes []node, bad report) {
	if r.cluster != nil {
		r.cluster(cluster, bad)
	}
	for i := range nodes {
		r.askNode(&nodes[i], bad)
	}
}

// askHome finds the broken places of where a job or a service runs. A cluster of its own is
// refused where the ComputeCluster would be.
func (r *Rule) askHome(h *home, bad report) {
	if r.home != nil {
		r.home(h, bad)
	}
	if h.cluster != nil {
		bad.above = aboveTemplate
		r.askCluster(h.cluster, h.nodes, bad)
	}
}

func (r *Rule) askNode(n *node, bad report) {
	if r.node != nil {
		r.node(n, bad)
	}
	if r.inner != nil && n.spec.Template != nil {
		r.inner(n, bad)
	}
	if r.group != nil && n.group != nil {
		r.group(n, bad)
	}
}

// report takes what a rule finds.
type report struct {
	rule  *Rule
	found *Findings
	// above is what comes before the paths of a cluster that is part of another object.
	above string
}

// at takes a broken place and the value there, or nil where a value would not help.
func (r report) at(path *field.Path, value any) {
	*r.found = append(*r.found, Finding{
		Rule: r.rule.ID, Path: r.above + path.String(), Value: value, Refused: r.rule.Refused, Remedy: r.rule.Remedy,
	})
}

// which takes a broken place, and what the remedy is about there.
func (r report) which(path *field.Path, what string) {
	r.at(path, nil)
	last := &(*r.found)[len(*r.found)-1]
	last.Remedy += " (" + what + ")"
}

// below is the path of a child of a path, with dots between the names of what lies in
// between; "" is the path itself. Paths are only made for what is wrong: most clusters are
// good, and every pass of the operator asks.
func below(parent *field.Path, child string) *field.Path {
	if child == "" {
		return parent
	}
	for name := range strings.SplitSeq(child, ".") {
		parent = parent.Child(name)
	}
	return parent
}

// keys reports the keys of a map that are wrong, in their order.
func keys[V any](bad report, parent *field.Path, child string, m map[string]V, wrong func(key string) bool) {
	if len(m) == 0 {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if wrong(key) {
			bad.at(below(parent, child).Key(key), key)
		}
	}
}

// each reports the entries of a list that are wrong.
func each[T any](bad report, parent *field.Path, child string, list []T, wrong func(entry *T) bool) {
	for i := range list {
		if wrong(&list[i]) {
			bad.at(below(parent, child).Index(i), nil)
		}
	}
}

// twice reports the entries of a list whose key an earlier one has.
func twice[T any](bad report, parent *field.Path, child string, list []T, key func(entry *T) string) {
	if len(list) < 2 {
		return
	}
	seen := make(map[string]bool, len(list))
	for i := range list {
		k := key(&list[i])
		if seen[k] {
			bad.at(below(parent, child).Index(i), k)
		}
		seen[k] = true
	}
}

// count reports a list or map that has more entries than there may be.
func count(bad report, parent *field.Path, child string, have, most int) {
	if have > most {
		bad.at(below(parent, child), have)
	}
}
