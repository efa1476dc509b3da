package rights_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/rights"
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
	"kOps' role":            {map[string]string{"kubernetes.io/role": "master"}, true},
	"nodes without balancers, which kubeadm's control planes are": {map[string]string{corev1.LabelNodeExcludeBalancers: ""}, true},
	"MicroK8s' control plane":                                     {map[string]string{"node.kubernetes.io/microk8s-controlplane": ""}, true},
	"kOps' controller":                                            {map[string]string{"kops.k8s.io/kops-controller-pki": ""}, true},
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
	"a role":                      {[]toleration{{Key: role, Operator: corev1.TolerationOpExists}}, true},
	"a role by its value":         {[]toleration{{Key: role, Value: "a"}}, true},
	"a role behind a device":      {[]toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}, {Key: role}}, true},
	"a device":                    {[]toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}}, false},
	"a device by a listed prefix": {[]toleration{{Key: "gpu.intel.com/i915"}}, false},
	"a key like a device":         {[]toleration{{Key: "nvidia.com/gpu.shared"}}, true},
	"a team":                      {[]toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}, true},
	"system nodes":                {[]toleration{{Key: "CriticalAddonsOnly", Operator: corev1.TolerationOpExists}}, true},
	"a node that is lost": {[]toleration{
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(5))},
	}, false},
	"a cordoned node":     {[]toleration{{Key: corev1.TaintNodeUnschedulable}}, true},
	"the end of a role":   {[]toleration{{Key: "a." + role}}, true},
	"no key, and a value": {[]toleration{{Operator: corev1.TolerationOpEqual, Value: "a"}}, true},
}

func TestDemands_AreForCertainNodes(t *testing.T) {
	t.Parallel()
	for name, c := range selectors {
		t.Run("selector of "+name, func(t *testing.T) {
			placed(t, "node", "nodeSelector", c.needs, &v1beta1.PodDefaults{NodeSelector: c.labels})
		})
	}
	for name, c := range tolerations {
		t.Run("toleration of "+name, func(t *testing.T) {
			placed(t, "toleration", "tolerations", c.needs, &v1beta1.PodDefaults{Tolerations: c.all})
		})
	}
}

// placed checks what the node selector and tolerations of defaults need, there and in a template.
func placed(t *testing.T, need, field string, needs bool, defaults *v1beta1.PodDefaults) {
	t.Helper()
	inPod, inDefaults := "", ""
	if needs {
		inPod, inDefaults = "toleration POD.tolerations", need+" spec.podDefaults."+field
		if need == "node" {
			inPod = "node POD"
		}
	}
	podNeeds(t, func(p *pod) { p.NodeSelector, p.Tolerations = defaults.NodeSelector, defaults.Tolerations }, inPod)
	if have := ofSpec(t, &v1beta1.ComputeClusterSpec{PodDefaults: defaults}); have != inDefaults {
		t.Errorf("podDefaults need %q, want %q", have, inDefaults)
	}
}

// An administrator may list other taints, but not those of control planes.
func TestDemands_OfTolerationsAreByTheChart(t *testing.T) {
	t.Parallel()
	site := rights.ChartSite()
	site.Tolerations = []string{"dedicated", "node-role.kubernetes.io/"}
	for key, want := range map[string]string{
		"dedicated":      "",
		"nvidia.com/gpu": "toleration spec.podDefaults.tolerations",
		role:             "toleration spec.podDefaults.tolerations",
	} {
		spec := &v1beta1.ComputeClusterSpec{PodDefaults: &v1beta1.PodDefaults{Tolerations: []toleration{{Key: key}}}}
		if have := ofSpecAt(t, spec, site); have != want {
			t.Errorf("a toleration of %s needs %q, want %q", key, have, want)
		}
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
	"kOps' role":           {[]term{label("kubernetes.io/role")}, true},
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
}

// podTerms are terms of an affinity to pods, and whether they need a right.
var podTerms = map[string]struct {
	term  corev1.PodAffinityTerm
	needs bool
}{
	"pods of the own namespace":   {corev1.PodAffinityTerm{}, false},
	"no namespace by name":        {corev1.PodAffinityTerm{Namespaces: []string{}}, false},
	"pods of another namespace":   {corev1.PodAffinityTerm{Namespaces: []string{"other"}}, true},
	"pods of all namespaces":      {corev1.PodAffinityTerm{NamespaceSelector: &metav1.LabelSelector{}}, true},
	"pods of selected namespaces": {corev1.PodAffinityTerm{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}, true},
}

// An anti-affinity to pods of other namespaces keeps these from the nodes on which the pod is.
func TestDemands_AreForAffinitiesAcrossNamespaces(t *testing.T) {
	t.Parallel()
	for name, c := range podTerms {
		want := ""
		if c.needs {
			want = "node POD"
		}
		own := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname}
		c.term.TopologyKey = corev1.LabelHostname
		required, weighed := []corev1.PodAffinityTerm{own, c.term}, []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: own}, {PodAffinityTerm: c.term}}
		for side, affinity := range map[string]corev1.Affinity{
			"beside":           {PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}},
			"rather beside":    {PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighed}},
			"not beside":       {PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}},
			"rather elsewhere": {PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighed}},
		} {
			t.Run(side+" "+name, func(t *testing.T) { podNeeds(t, func(p *pod) { p.Affinity = &affinity }, want) })
		}
	}
}
