package rights_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

type (
	toleration  = corev1.Toleration
	term        = corev1.NodeSelectorTerm
	requirement = corev1.NodeSelectorRequirement
)

const role = "node-role.kubernetes.io/control-plane"

// selectors are labels that a node must have, and whether they need a right.
var selectors = map[string]struct {
	labels map[string]string
	needs  bool
}{
	"no label":              {map[string]string{}, false},
	"a host's name":         {map[string]string{corev1.LabelHostname: "a"}, true},
	"a role":                {map[string]string{role: ""}, true},
	"a role beside a zone":  {map[string]string{corev1.LabelTopologyZone: "a", role: ""}, true},
	"a zone":                {map[string]string{corev1.LabelTopologyZone: "a"}, false},
	"the end of a role":     {map[string]string{"a." + role: ""}, false},
	"a value like the name": {map[string]string{"gpu": corev1.LabelHostname}, false},
}

// tolerations are those of a pod, and whether they need a right.
var tolerations = map[string]struct {
	all   []toleration
	needs bool
}{
	"nothing":    {[]toleration{}, false},
	"everything": {[]toleration{{Operator: corev1.TolerationOpExists}}, true},
	"everything of one effect": {[]toleration{
		{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	}, true},
	"a role":                     {[]toleration{{Key: role, Operator: corev1.TolerationOpExists}}, true},
	"a role by its value":        {[]toleration{{Key: role, Value: "a"}}, true},
	"a role behind a device":     {[]toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}, {Key: role}}, true},
	"a device":                   {[]toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}, false},
	"no key, but not everything": {[]toleration{{Operator: corev1.TolerationOpEqual, Value: "a"}}, false},
	"the end of a role":          {[]toleration{{Key: "a." + role}}, false},
}

func TestDemands_AreForCertainNodes(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, labels map[string]string, all []toleration, needs bool) {
		t.Helper()
		inPod, inDefaults := "", ""
		if needs {
			inPod, inDefaults = "node POD", "node spec.podDefaults"
		}
		podNeeds(t, func(p *pod) { p.NodeSelector, p.Tolerations = labels, all }, inPod)
		spec := &v1alpha1.ComputeClusterSpec{PodDefaults: &v1alpha1.PodDefaults{NodeSelector: labels, Tolerations: all}}
		if have := ofSpec(t, spec); have != inDefaults {
			t.Errorf("podDefaults need %q, want %q", have, inDefaults)
		}
	}
	for name, c := range selectors {
		t.Run("selector of "+name, func(t *testing.T) { check(t, c.labels, nil, c.needs) })
	}
	for name, c := range tolerations {
		t.Run("toleration of "+name, func(t *testing.T) { check(t, nil, c.all, c.needs) })
	}
}

// terms are those of an affinity, and whether they need a right.
var terms = map[string]struct {
	all   []term
	needs bool
}{
	"nothing":              {[]term{{}}, false},
	"a field":              {[]term{{MatchFields: []requirement{{Key: "metadata.name"}}}}, true},
	"no field":             {[]term{{MatchFields: []requirement{}}}, false},
	"a host's name":        {[]term{label(corev1.LabelHostname)}, true},
	"a role":               {[]term{label(role)}, true},
	"a zone":               {[]term{label(corev1.LabelTopologyZone)}, false},
	"a role and a zone":    {[]term{label(corev1.LabelTopologyZone, role)}, true},
	"a zone, or else role": {[]term{label(corev1.LabelTopologyZone), label(role)}, true},
	"a role, or else zone": {[]term{label(role), label(corev1.LabelTopologyZone)}, true},
}

func label(keys ...string) term {
	var one term
	for _, key := range keys {
		one.MatchExpressions = append(one.MatchExpressions, requirement{Key: key})
	}
	return one
}

func required(all ...term) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: all}
}

func preferred(all ...term) []corev1.PreferredSchedulingTerm {
	weighed := make([]corev1.PreferredSchedulingTerm, len(all))
	for i := range all {
		weighed[i].Preference = all[i]
	}
	return weighed
}

// An affinity that only prefers a node is like one that requires it, and a zone on the other side hides neither.
func TestDemands_AreForAffinitiesOfNodes(t *testing.T) {
	t.Parallel()
	zone := label(corev1.LabelTopologyZone)
	for name, c := range terms {
		want := ""
		if c.needs {
			want = "node POD"
		}
		for side, affinity := range map[string]corev1.NodeAffinity{
			"required": {RequiredDuringSchedulingIgnoredDuringExecution: required(c.all...)},
			"required with a preference": {
				RequiredDuringSchedulingIgnoredDuringExecution:  required(c.all...),
				PreferredDuringSchedulingIgnoredDuringExecution: preferred(zone),
			},
			"preferred": {PreferredDuringSchedulingIgnoredDuringExecution: preferred(c.all...)},
			"preferred with a requirement": {
				RequiredDuringSchedulingIgnoredDuringExecution:  required(zone),
				PreferredDuringSchedulingIgnoredDuringExecution: preferred(c.all...),
			},
		} {
			t.Run(name+" "+side, func(t *testing.T) {
				podNeeds(t, func(p *pod) { p.Affinity = &corev1.Affinity{NodeAffinity: &affinity} }, want)
			})
		}
	}
	podNeeds(t, func(p *pod) {
		p.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname}},
		}}
	}, "")
}
