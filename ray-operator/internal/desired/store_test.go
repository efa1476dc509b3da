package desired_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// stored is a cluster with a control store.
func stored(store v1beta1.ControlStore) *v1beta1.ComputeCluster {
	cluster := testkit.Cluster("demo", testkit.Group("cpu", 1))
	cluster.Spec.ControlStore = &store
	return cluster
}

// managed is a cluster with a managed Redis, and what the edits make of it.
func managed(edits ...func(*v1beta1.ManagedRedis)) *v1beta1.ComputeCluster {
	redis := &v1beta1.ManagedRedis{}
	for _, edit := range edits {
		edit(redis)
	}
	return stored(v1beta1.ControlStore{ManagedRedis: redis})
}

func storageOf(size string) *resource.Quantity { return new(resource.MustParse(size)) }

// withoutManaged are clusters that have no managed Redis.
func withoutManaged() map[string]*v1beta1.ComputeCluster {
	return map[string]*v1beta1.ComputeCluster{
		"no store": testkit.Cluster("demo"), "nothing said": stored(v1beta1.ControlStore{}),
		"redis":    stored(v1beta1.ControlStore{Redis: &v1beta1.GivenRedis{Address: "redis://r:6379"}}),
		"embedded": stored(v1beta1.ControlStore{Embedded: &v1beta1.EmbeddedStore{}}),
	}
}

func TestGoldenOfStores(t *testing.T) {
	cluster := managed()
	testkit.Golden(t, "store-claim", desired.StoreClaim(cluster))
	testkit.Golden(t, "store-secret", desired.StoreSecret(cluster, "0123", "4567"))
	testkit.Golden(t, "store-service", desired.StoreService(cluster))
	testkit.Golden(t, "store-set", desired.StoreSet(cluster))
	testkit.Golden(t, "store-budget", desired.StoreBudget(cluster))
	testkit.Golden(t, "store-policy", desired.StorePolicy(cluster, site))
	testkit.Golden(t, "store-claim-embedded", desired.StoreClaim(stored(v1beta1.ControlStore{Embedded: &v1beta1.EmbeddedStore{
		Storage: storageOf("3Gi"), StorageClassName: new("fast"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, Retain: new(true),
	}})))
}

// TestStoreClaim: whose volume it is, how it is mounted, and whether it goes with the cluster.
func TestStoreClaim(t *testing.T) {
	once, alone := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	for name, test := range map[string]struct {
		store   v1beta1.ControlStore
		modes   []corev1.PersistentVolumeAccessMode
		storage string
		class   *string
		owned   bool
	}{
		"managed": {v1beta1.ControlStore{ManagedRedis: &v1beta1.ManagedRedis{}}, once, "1Gi", nil, true},
		"managed, all said": {
			v1beta1.ControlStore{ManagedRedis: &v1beta1.ManagedRedis{Storage: storageOf("2Gi"), StorageClassName: new(""), Retain: new(true)}}, once, "2Gi", new(""), false,
		},
		"embedded": {v1beta1.ControlStore{Embedded: &v1beta1.EmbeddedStore{}}, alone, "1Gi", nil, true},
		"embedded, all said": {
			v1beta1.ControlStore{Embedded: &v1beta1.EmbeddedStore{Storage: storageOf("2Gi"), StorageClassName: new("fast"), AccessModes: once, Retain: new(true)}}, once, "2Gi", new("fast"), false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := stored(test.store)
			claim := desired.StoreClaim(cluster)
			checkStoreClaim(t, claim, pod.StoreClaim(cluster))
			if storage := claim.Spec.Resources.Requests[corev1.ResourceStorage]; storage.String() != test.storage || !slices.Equal(claim.Spec.AccessModes, test.modes) {
				t.Errorf("%s of %v", storage.String(), claim.Spec.AccessModes)
			}
			if !reflect.DeepEqual(claim.Spec.StorageClassName, test.class) {
				t.Errorf("class %v", claim.Spec.StorageClassName)
			}
			if metav1.IsControlledBy(claim, cluster) != test.owned || !test.owned && len(claim.OwnerReferences) > 0 {
				t.Errorf("owners %v", claim.OwnerReferences)
			}
		})
	}
}

// checkStoreClaim asserts that a claim is the one that pods use, and that it is found.
func checkStoreClaim(t *testing.T, claim *corev1.PersistentVolumeClaim, name string) {
	t.Helper()
	if claim.Name != name || claim.Namespace != testkit.Namespace {
		t.Errorf("%s/%s is not the claim that pods use", claim.Namespace, claim.Name)
	}
	if claim.Labels[v1beta1.LabelCluster] != "demo" || claim.Labels[v1beta1.LabelStore] != "demo" {
		t.Errorf("labels %v", claim.Labels)
	}
}

// TestNoStoreClaim where the store has no volume, or one that is the user's.
func TestNoStoreClaim(t *testing.T) {
	without := withoutManaged()
	without["embedded"] = stored(v1beta1.ControlStore{Embedded: &v1beta1.EmbeddedStore{ExistingClaim: "mine"}})
	for name, cluster := range without {
		if claim := desired.StoreClaim(cluster); claim != nil {
			t.Errorf("%s: a claim %s", name, claim.Name)
		}
	}
}

// TestOnlyAManagedStoreIsRun by the operator.
func TestOnlyAManagedStoreIsRun(t *testing.T) {
	for name, cluster := range withoutManaged() {
		if set, service, policy := desired.StoreSet(cluster), desired.StoreService(cluster), desired.StorePolicy(cluster, site); set != nil || service != nil || policy != nil {
			t.Errorf("%s: %v, %v, %v", name, set, service, policy)
		}
	}
}

// TestStoreIsOwnedAndLabelled as all that belongs to a cluster.
func TestStoreIsOwnedAndLabelled(t *testing.T) {
	cluster := managed()
	for kind, object := range map[string]metav1.Object{
		"Secret": desired.StoreSecret(cluster, "a", "b"), "Service": desired.StoreService(cluster),
		"StatefulSet": desired.StoreSet(cluster), "NetworkPolicy": desired.StorePolicy(cluster, site),
	} {
		if object.GetName() != naming.Store("demo") || object.GetNamespace() != testkit.Namespace || !metav1.IsControlledBy(object, cluster) {
			t.Errorf("the %s %s/%s is not the cluster's", kind, object.GetNamespace(), object.GetName())
		}
		if have := object.GetLabels(); have[v1beta1.LabelCluster] != "demo" || have[v1beta1.LabelStore] != "demo" {
			t.Errorf("the %s has the labels %v", kind, have)
		}
	}
	secret := desired.StoreSecret(cluster, "a", "b")
	digest := "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" // printf a | sha256sum
	want := map[string]string{v1beta1.StoreOperatorKey: "a", v1beta1.StoreHeadKey: "b", v1beta1.StoreDigestKey: digest}
	if !reflect.DeepEqual(secret.StringData, want) {
		t.Errorf("the Secret holds %v", secret.StringData)
	}
}

// TestStoreIsNoPartOfTheCluster: what selects the store's pod meets it alone, and what
// selects the cluster's pods does not meet it.
func TestStoreIsNoPartOfTheCluster(t *testing.T) {
	cluster, other := managed(), testkit.Cluster("demo-2", testkit.Group("cpu", 1))
	other.Spec.ControlStore = cluster.Spec.ControlStore
	set := desired.StoreSet(cluster)
	redis := labels.Set(set.Spec.Template.Labels)
	for name, selector := range map[string]map[string]string{
		"Service": desired.StoreService(cluster).Spec.Selector, "StatefulSet": set.Spec.Selector.MatchLabels,
		"NetworkPolicy": desired.StorePolicy(cluster, site).Spec.PodSelector.MatchLabels,
	} {
		met := labels.SelectorFromSet(selector)
		if len(selector) == 0 || !met.Matches(redis) {
			t.Errorf("the store's %s with %v does not meet its pod with %v", name, selector, redis)
		}
		for _, meta := range []map[string]string{
			pod.Head(cluster, 1).Labels, pod.Worker(cluster, &cluster.Spec.WorkerGroups[0], 0, 1).Labels, desired.StoreSet(other).Spec.Template.Labels,
		} {
			if met.Matches(labels.Set(meta)) {
				t.Errorf("the store's %s meets %v", name, meta)
			}
		}
	}
	for name, selector := range map[string]map[string]string{
		"Service": desired.HeadService(cluster, 1).Spec.Selector, "NetworkPolicy": desired.NetworkPolicy(cluster, site).Spec.PodSelector.MatchLabels,
		"budget": desired.HeadBudget(cluster).Spec.Selector.MatchLabels, "cluster": naming.ClusterSelector("demo"),
	} {
		if labels.SelectorFromSet(selector).Matches(redis) {
			t.Errorf("the cluster's %s meets the store's pod", name)
		}
	}
}

// TestReachOfAStore: heads of whatever epoch and the operator, on one port; with and without
// isolation of the cluster itself.
func TestReachOfAStore(t *testing.T) {
	from := map[string]place{
		"head":           {testkit.Namespace, naming.PodLabels("demo", naming.Place{Epoch: 1})},
		"next head":      {testkit.Namespace, naming.PodLabels("demo", naming.Place{Epoch: 2})},
		"worker":         {testkit.Namespace, naming.PodLabels("demo", naming.Place{Epoch: 1, Group: "cpu"})},
		"another's head": {testkit.Namespace, naming.PodLabels("demo-2", naming.Place{Epoch: 1})},
		"namesake":       {"elsewhere", naming.PodLabels("demo", naming.Place{Epoch: 1})},
		"the store":      {testkit.Namespace, naming.StoreLabels("demo")},
	}
	for _, who := range []string{"operator", "proxy", "neighbour", "stranger", "beside them", "passed off as it"} {
		from[who] = places[who]
	}
	for name, test := range map[string]struct {
		network *v1beta1.Network
		at      desired.Site
		in      []string
	}{
		"by default":           {nil, site, []string{"head", "next head", "operator"}},
		"without isolation":    {&v1beta1.Network{Isolation: v1beta1.Disabled}, site, []string{"head", "next head", "operator"}},
		"with others let in":   {&v1beta1.Network{AllowFrom: []v1beta1.IngressRule{{Ports: []v1beta1.Port{v1beta1.PortGCS}}}}, site, []string{"head", "next head", "operator"}},
		"a site without names": {nil, desired.Site{}, []string{"head", "next head"}},
	} {
		cluster := managed()
		cluster.Spec.Network = test.network
		policy := desired.StorePolicy(cluster, test.at)
		for who, at := range from {
			for _, number := range []int32{6379, 16379, 8265} {
				if want := number == 6379 && slices.Contains(test.in, who); reaches(t, policy, at, number) != want {
					t.Errorf("%s: %s reaches %d: %v", name, who, number, !want)
				}
			}
		}
		if want := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}; !slices.Equal(policy.Spec.PolicyTypes, want) || len(policy.Spec.Egress) > 0 {
			t.Errorf("%s: the store reaches %v of %v", name, policy.Spec.Egress, policy.Spec.PolicyTypes)
		}
	}
}

// TestReachToTheStore: where allowTo limits what pods reach, the store is added to it.
func TestReachToTheStore(t *testing.T) {
	redis := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1beta1.LabelStore: "demo"}}}
	to := func(address string) *v1beta1.ControlStore {
		return &v1beta1.ControlStore{Redis: &v1beta1.GivenRedis{Address: address}}
	}
	anywhere := desired.NetworkPolicy(testkit.Cluster("demo"), site).Spec.Egress[2].To
	ports := func(number int32) []networkingv1.NetworkPolicyPort {
		return []networkingv1.NetworkPolicyPort{tcp(number)}
	}
	for name, test := range map[string]struct {
		store *v1beta1.ControlStore
		want  []networkingv1.NetworkPolicyEgressRule
	}{
		"no store":     {nil, nil},
		"nothing said": {&v1beta1.ControlStore{}, nil},
		"embedded":     {&v1beta1.ControlStore{Embedded: &v1beta1.EmbeddedStore{}}, nil},
		"managed": {&v1beta1.ControlStore{ManagedRedis: &v1beta1.ManagedRedis{}}, []networkingv1.NetworkPolicyEgressRule{
			{To: []networkingv1.NetworkPolicyPeer{redis}, Ports: ports(6379)},
		}},
		"redis": {to("redis://r.example:6390"), []networkingv1.NetworkPolicyEgressRule{
			{To: anywhere, Ports: ports(6390)},
		}},
		"an address": {to("rediss://[fd00::1]:65535"), []networkingv1.NetworkPolicyEgressRule{
			{To: anywhere, Ports: ports(65535)},
		}},
		"no port":      {to("redis://r.example"), nil},
		"no such port": {to("redis://r.example:65536"), nil},
		"no address":   {to("redis://"), nil},
	} {
		cluster := testkit.Cluster("demo")
		cluster.Spec.ControlStore = test.store
		cluster.Spec.Network = &v1beta1.Network{AllowTo: []v1beta1.EgressRule{{Ports: ports(443)}}}
		rules := desired.NetworkPolicy(cluster, site).Spec.Egress
		if diff := cmp.Diff(test.want, rules[2:len(rules)-1], cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (- want):\n%s", name, diff)
		}
		cluster.Spec.Network = nil
		if rules := desired.NetworkPolicy(cluster, site).Spec.Egress; len(rules) != 4 {
			t.Errorf("%s: without allowTo the store needs no rule: %v", name, rules)
		}
	}
}
