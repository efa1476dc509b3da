package app

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/wake"
)

func node() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone": "a"}, Annotations: map[string]string{"large": "text"}},
		Spec:       corev1.NodeSpec{PodCIDR: "10.0.0.0/24", Taints: []corev1.Taint{{Key: "going", Effect: corev1.TaintEffectNoSchedule}}, Unschedulable: true},
		Status: corev1.NodeStatus{
			Images: []corev1.ContainerImage{{Names: []string{"an image"}}},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(time.Unix(1, 0))},
			},
		},
	}
}

func TestOfNodesOnlyWhatTellsWhetherTheyStayIsKept(t *testing.T) {
	kept, err := trimNode(node())
	if err != nil {
		t.Fatal(err)
	}
	want := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone": "a"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "going", Effect: corev1.TaintEffectNoSchedule}}, Unschedulable: true},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Error(diff)
	}
	marker := toolscache.DeletedFinalStateUnknown{Key: "n"}
	if same, err := trimNode(marker); err != nil || same != any(marker) {
		t.Errorf("a marker became %v, %v", same, err)
	}
}

// policy is somebody's that closes egress for all pods.
func policy(edits ...func(*networkingv1.NetworkPolicy)) *networkingv1.NetworkPolicy {
	made := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "closed"},
		Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress:      []networkingv1.NetworkPolicyEgressRule{{}}, Ingress: []networkingv1.NetworkPolicyIngressRule{{}},
		},
	}
	for _, edit := range edits {
		edit(made)
	}
	return made
}

func TestTrimPolicy_KeepsRulesOfOursAlone(t *testing.T) {
	ours := policy(func(p *networkingv1.NetworkPolicy) { p.Labels = map[string]string{v1beta1.LabelCluster: "demo"} })
	for rules, given := range map[int]*networkingv1.NetworkPolicy{0: policy(), 1: ours} {
		kept, err := newTrimmer().trim(given)
		have, is := kept.(*networkingv1.NetworkPolicy)
		if err != nil || !is || len(have.Spec.Egress) != rules || len(have.Spec.Ingress) != rules || len(have.Spec.PolicyTypes) != 1 {
			t.Errorf("kept is %+v, %v, want %d rules", kept, err, rules)
		}
	}
	marker := toolscache.DeletedFinalStateUnknown{Key: "n"}
	if same, err := newTrimmer().trim(marker); err != nil || same != any(marker) {
		t.Errorf("a marker became %v, %v", same, err)
	}
}

// slice is an EndpointSlice as the API server has it, of a Service of a ClusterService.
func slice() *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: "serves-x", Labels: map[string]string{v1beta1.LabelService: "serves", discoveryv1.LabelServiceName: "serves"},
			Annotations: map[string]string{discoveryv1.LabelManagedBy: "x"}, OwnerReferences: []metav1.OwnerReference{{Name: "serves"}},
		},
		Ports: []discoveryv1.EndpointPort{{}},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}, NodeName: new("n"),
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "p", UID: "p-uid"},
		}},
	}
}

func TestTrim_KeepsWhomASliceLists(t *testing.T) {
	kept, err := newTrimmer().trim(slice())
	have, is := kept.(*discoveryv1.EndpointSlice)
	if err != nil || !is || have.Labels[discoveryv1.LabelServiceName] != "serves" || len(have.Ports)+len(have.OwnerReferences)+len(have.Annotations) > 0 {
		t.Fatalf("%+v, %v", kept, err)
	}
	one := have.Endpoints[0]
	if len(have.Endpoints) != 1 || one.TargetRef.UID != "p-uid" || !*one.Conditions.Ready || one.TargetRef.Name != "" || len(one.Addresses) > 0 || one.NodeName != nil {
		t.Errorf("%+v", have.Endpoints)
	}
}

func TestNodesWakeByWhatTheyTell(t *testing.T) {
	rules := cluster.WakeRules(cluster.Watched{Nodes: true})
	told := rules[len(rules)-1]
	for _, c := range []struct {
		what   string
		change func(*corev1.Node)
		want   bool
	}{
		{"a beat", func(n *corev1.Node) { n.Status.Conditions[1].LastHeartbeatTime = metav1.NewTime(time.Unix(9, 0)) }, false},
		{"a label", func(n *corev1.Node) { n.Labels["more"] = "x" }, false},
		{"pressure", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionTrue }, false},
		{"a taint", func(n *corev1.Node) { n.Spec.Taints = nil }, true},
		{"a cordon", func(n *corev1.Node) { n.Spec.Unschedulable = false }, true},
		{"silence", func(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionUnknown }, true},
	} {
		changed := node()
		c.change(changed)
		before, errBefore := trimNode(node())
		now, errNow := trimNode(changed)
		if errBefore != nil || errNow != nil {
			t.Fatal(errBefore, errNow)
		}
		if got := told.Matters(wake.Change{Old: before.(client.Object), New: now.(client.Object)}); got != c.want {
			t.Errorf("%s wakes clusters: %t, want %t", c.what, got, c.want)
		}
	}
	if !told.Matters(wake.Change{New: node()}) {
		t.Error("a node that is first seen when it is about to go wakes no cluster")
	}
	if told.Matters(wake.Change{New: &corev1.Node{}}) {
		t.Error("a new node wakes clusters, of which none can be on it")
	}
}

// ownLabel is the label by which what is ours of a kind is known.
func ownLabel(kind client.Object) string {
	switch kind.(type) {
	case *appsv1.ControllerRevision, *discoveryv1.EndpointSlice:
		return v1beta1.LabelService
	default:
		return v1beta1.LabelCluster
	}
}

func TestCachesHoldWhatIsOurs(t *testing.T) {
	all, err := caches(Config{Resync: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if len(all.DefaultNamespaces) > 0 || *all.SyncPeriod != time.Hour {
		t.Errorf("all namespaces are limited to %v, looked at every %v", all.DefaultNamespaces, all.SyncPeriod)
	}
	whole := 0
	for kind, by := range all.ByObject {
		switch kind.(type) {
		case *corev1.Node, *networkingv1.NetworkPolicy: // others' too, without what nobody reads
			whole++
			if _, is := kind.(*corev1.Node); by.Label != nil || is != (by.Transform != nil) {
				t.Errorf("of %T those are held that %v, whole: %v", kind, by.Label, by.Transform == nil)
			}
			continue
		}
		if by.Label == nil || by.Label.String() != ownLabel(kind) {
			t.Errorf("of %T all are held that %v", kind, by.Label)
		}
	}
	if whole != 2 || len(all.ByObject) != 3+len(cluster.Children()) {
		t.Errorf("%d kinds, %d of them others' too", len(all.ByObject), whole)
	}
	some, err := caches(Config{Namespaces: []string{"a", "b"}})
	if err != nil || len(some.DefaultNamespaces) != 2 {
		t.Errorf("two namespaces: %v, %v", some.DefaultNamespaces, err)
	}
}

// TestOfConfigMapsOnlyNotesAreHeld, and those beside the operator, whatever else is watched.
func TestOfConfigMapsOnlyNotesAreHeld(t *testing.T) {
	some, err := caches(Config{Namespaces: []string{"a", "b"}, Namespace: "own"})
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]string{}
	for kind, by := range some.ByObject {
		if _, ok := kind.(*corev1.ConfigMap); ok {
			for namespace, notes := range by.Namespaces {
				held[namespace] = notes.LabelSelector.String()
			}
		}
	}
	if diff := cmp.Diff(map[string]string{"own": v1beta1.LabelNote}, held); diff != "" {
		t.Errorf("of ConfigMaps others are held than the notes: %s", diff)
	}
}

func TestAnElectionNeedsALease(t *testing.T) {
	for _, election := range []Election{{}, {Namespace: "n"}, {Name: "l"}} {
		cfg := Config{REST: &rest.Config{}, Election: &election}
		if options, _, err := cfg.options(); err == nil {
			t.Errorf("%+v joins with the lock %v", election, options.LeaderElectionResourceLockInterface)
		}
	}
	cfg := Config{REST: &rest.Config{Host: "https://127.0.0.1:1"}, Election: &Election{Namespace: "n", Name: "l"}}
	options, _, err := cfg.options()
	if err != nil || !options.LeaderElection || options.LeaderElectionResourceLockInterface.Describe() != "n/l" {
		t.Errorf("joined %v, %v", options.LeaderElectionResourceLockInterface, err)
	}
	if cfg.REST.Timeout != 0 {
		t.Error("the limit of the Lease's requests holds for all others too")
	}
}
