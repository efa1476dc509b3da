package naming_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// pod is all that a pod's name follows from.
type pod struct {
	cluster string
	uid     types.UID
	at      naming.Place
}

func (p pod) name() string { return naming.Pod(p.cluster, p.uid, p.at) }

// label draws a name from so few characters that prefixes and suffixes collide.
func label(maximum int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		length := rapid.IntRange(1, maximum).Draw(t, "length")
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab0-")), length, length, -1).Draw(t, "text")
		return "a" + strings.TrimRight(text[1:], "-")
	})
}

func drawn(t *rapid.T) pod {
	p := pod{cluster: label(naming.MaxCluster).Draw(t, "cluster"), uid: types.UID(rapid.SampledFrom([]string{"u", "v"}).Draw(t, "uid"))}
	p.at.Epoch = rapid.Int64Range(1, 12).Draw(t, "epoch")
	if rapid.Bool().Draw(t, "worker") {
		p.at.Group, p.at.Slot = label(naming.MaxGroup).Draw(t, "group"), rapid.IntRange(0, 10000).Draw(t, "slot")
	}
	return p
}

func TestPodNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawn(t), drawn(t)
		if rapid.Bool().Draw(t, "near") { // the same but for one thing
			b = a
			b.at.Epoch++
		}
		for _, name := range []string{a.name(), naming.HeadService(a.cluster), naming.TokenSecret(a.cluster)} {
			if errs := validation.IsDNS1123Label(name); len(errs) > 0 {
				t.Fatalf("%q: %v", name, errs)
			}
		}
		if a.name() != a.name() {
			t.Fatalf("the name of %+v is not a function", a)
		}
		if a != b && a.name() == b.name() {
			t.Fatalf("%+v and %+v are both called %s", a, b, a.name())
		}
	})
}

func TestNamesThatCouldMeet(t *testing.T) {
	long := strings.Repeat("a", 49)
	pods := []pod{
		{"a", "u", naming.Place{Group: "b-c", Slot: 1, Epoch: 1}},
		{"a-b", "u", naming.Place{Group: "c", Slot: 1, Epoch: 1}},
		{"a-b-c", "u", naming.Place{Epoch: 1}},
		{"a", "u", naming.Place{Group: "b-c-head", Epoch: 1}},
		{long + "b", "u", naming.Place{Group: strings.Repeat("g", 40), Slot: 1, Epoch: 1}},
		{long + "b", "u", naming.Place{Group: strings.Repeat("g", 40), Slot: 11, Epoch: 1}},
		{long + "b", "u", naming.Place{Group: strings.Repeat("g", 39), Slot: 1, Epoch: 1}},
		{long + "b", "v", naming.Place{Group: strings.Repeat("g", 40), Slot: 1, Epoch: 1}},
	}
	names := map[string]pod{}
	for _, p := range pods {
		if other, taken := names[p.name()]; taken {
			t.Errorf("%+v and %+v share %s", p, other, p.name())
		}
		names[p.name()] = p
	}
}

func TestPodNameIsReadable(t *testing.T) {
	if name := (pod{"demo", "u", naming.Place{Group: "cpu", Slot: 3, Epoch: 1}}).name(); !strings.HasPrefix(name, "demo-cpu-3-") || len(name) != 16 {
		t.Errorf("worker: %s", name)
	}
	if name := (pod{"demo", "u", naming.Place{Epoch: 1}}).name(); !strings.HasPrefix(name, "demo-head-") {
		t.Errorf("head: %s", name)
	}
}

func TestPlaceGoesThroughLabels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		labels := naming.PodLabels(p.cluster, p.at)
		for key, value := range labels {
			if errs := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(errs) > 0 {
				t.Fatalf("%s=%s: %v", key, value, errs)
			}
		}
		back, err := naming.ParsePlace(labels)
		if err != nil || back != p.at {
			t.Fatalf("%+v came back as %+v, %v", p.at, back, err)
		}
		selector := naming.HeadSelector(p.cluster, p.at.Epoch)
		for key, value := range selector {
			if p.at.Group == "" && labels[key] != value {
				t.Fatalf("the head's selector does not select the head: %v, %v", selector, labels)
			}
		}
	})
}

func FuzzParsePlace(f *testing.F) {
	f.Add("head", "", "", "1")
	f.Add("worker", "cpu", "0", "2")
	f.Add("worker", "cpu", "-1", "2")
	f.Add("worker", "", "1", "99999999999999999999")
	f.Fuzz(func(t *testing.T, role, group, slot, epoch string) {
		labels := map[string]string{
			v1beta1.LabelRole: role, v1beta1.LabelGroup: group, v1beta1.LabelSlot: slot, v1beta1.LabelEpoch: epoch,
		}
		at, err := naming.ParsePlace(labels)
		if err != nil {
			if at != (naming.Place{}) {
				t.Errorf("an error and the place %+v", at)
			}
			return
		}
		if at.Epoch < 1 || at.Slot < 0 || (role != v1beta1.RoleHead) != (at.Group != "") {
			t.Errorf("%v gave the place %+v", labels, at)
		}
	})
}

// TestPlaceOfOthers: labels that the operator did not write are no place.
func TestPlaceOfOthers(t *testing.T) {
	for name, labels := range map[string][4]string{ // role, group, slot, epoch
		"no epoch":         {"head", "", "", ""},
		"epoch of none":    {"head", "", "", "0"},
		"epoch beyond all": {"head", "", "", "99999999999999999999"},
		"no slot":          {"worker", "cpu", "", "1"},
		"slot below all":   {"worker", "cpu", "-1", "1"},
		"slot beyond all":  {"worker", "cpu", "99999999999999999999", "1"},
		"no group":         {"worker", "", "0", "1"},
	} {
		at, err := naming.ParsePlace(map[string]string{
			v1beta1.LabelRole: labels[0], v1beta1.LabelGroup: labels[1], v1beta1.LabelSlot: labels[2], v1beta1.LabelEpoch: labels[3],
		})
		if err == nil || at != (naming.Place{}) {
			t.Errorf("%s: %+v, %v", name, at, err)
		}
	}
}

func TestIntentHash(t *testing.T) {
	one, err := naming.IntentHash("v1", map[string]int{"a": 1, "b": 2})
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := naming.IntentHash("v1", map[string]int{"b": 2, "a": 1}); again != one {
		t.Errorf("order of keys counts: %s, %s", one, again)
	}
	if other, _ := naming.IntentHash("v2", map[string]int{"a": 1, "b": 2}); other == one || !strings.HasPrefix(other, "v2-") {
		t.Errorf("the version is not part of %s", other)
	}
	if _, err := naming.IntentHash("v1", func() {}); err == nil {
		t.Error("a function was hashed")
	}
}

// TestFixedNames: readable, within a DNS label for the longest cluster, and no two
// kinds that live in one collection share a name, of clusters whose names are prefixes
// of each other either.
func TestFixedNames(t *testing.T) {
	for name, want := range map[string]string{
		naming.HeadService("demo"): "demo-head", naming.HostsService("demo"): "demo-hosts", naming.TokenSecret("demo"): "demo-token",
		naming.NetworkPolicy("demo"): "demo-network", naming.Ingress("demo"): "demo-dashboard", naming.HeadBudget("demo"): "demo-head", naming.Gang("demo"): "demo-gang",
	} {
		if name != want {
			t.Errorf("%s, want %s", name, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		short := label(naming.MaxCluster-6).Draw(t, "cluster")
		long := short + rapid.SampledFrom([]string{"-head", "-hosts", "-token", "a", "-a", "-0"}).Draw(t, "suffix")
		services := map[string]string{}
		for _, cluster := range []string{short, long} {
			for _, name := range []string{naming.HeadService(cluster), naming.HostsService(cluster)} {
				if other, taken := services[name]; taken {
					t.Fatalf("the Service %s is of %s and %s", name, other, cluster)
				}
				services[name] = cluster
			}
			for _, name := range []string{
				naming.HeadService(cluster), naming.HostsService(cluster), naming.TokenSecret(cluster),
				naming.NetworkPolicy(cluster), naming.Ingress(cluster), naming.HeadBudget(cluster), naming.Gang(cluster),
			} {
				if errs := validation.IsDNS1035Label(name); len(errs) > 0 {
					t.Fatalf("%q: %v", name, errs)
				}
			}
		}
		for _, of := range []func(string) string{naming.TokenSecret, naming.NetworkPolicy, naming.Ingress, naming.HeadBudget} {
			if of(short) == of(long) {
				t.Fatalf("%s and %s share %s", short, long, of(short))
			}
		}
	})
}

// claim is all that a claim's or a replica's name follows from.
type claim struct {
	cluster, group, template string
	uid                      types.UID
	slot                     int
}

func (c claim) name() string {
	return naming.Claim(c.cluster, c.uid, c.group, c.slot, c.template)
}

// replica leaves out what has no part in a replica's name.
func (c claim) replica() claim { c.template = ""; return c }

func (c claim) replicaName() string { return naming.Replica(c.cluster, c.uid, c.group, c.slot) }

func drawnClaim(t *rapid.T, near *claim) claim {
	c := claim{
		cluster: label(naming.MaxCluster).Draw(t, "cluster"), group: label(naming.MaxGroup).Draw(t, "group"), template: label(63).Draw(t, "template"),
		uid: types.UID(rapid.SampledFrom([]string{"u", "v"}).Draw(t, "uid")), slot: rapid.IntRange(0, 10000).Draw(t, "slot"),
	}
	if near != nil && rapid.Bool().Draw(t, "near") { // the same but for where its parts meet
		c = *near
		if parts := strings.SplitN(c.group, "-", 2); len(parts) == 2 && parts[1] != "" {
			c.cluster, c.group = c.cluster+"-"+parts[0], parts[1]
		} else {
			c.slot++
		}
	}
	return c
}

func TestNamesOfClaimsAndReplicas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawnClaim(t, nil)
		b := drawnClaim(t, &a)
		for _, name := range []string{a.name(), a.replicaName()} {
			if errs := append(validation.IsDNS1123Label(name), validation.IsValidLabelValue(name)...); len(errs) > 0 {
				t.Fatalf("%q: %v", name, errs)
			}
		}
		if a != b && a.name() == b.name() {
			t.Fatalf("the claims %+v and %+v are both called %s", a, b, a.name())
		}
		if a.replica() != b.replica() && a.replicaName() == b.replicaName() {
			t.Fatalf("the replicas %+v and %+v are both called %s", a, b, a.replicaName())
		}
	})
}

// TestNamesAreKept: what exists must be found again by later operators.
func TestNamesAreKept(t *testing.T) {
	for have, want := range map[string]string{
		naming.Claim("demo", "u", "cpu", 3, "data"):     keptClaim,
		naming.Replica("demo", "u", "tpu", 1):           keptReplica,
		naming.Pod("demo", "u", naming.Place{Epoch: 1}): keptHead,
	} {
		if have != want {
			t.Errorf("%s, want %s", have, want)
		}
	}
}

func TestSelectorsAndSlotLabels(t *testing.T) {
	labels := naming.SlotLabels("demo", "cpu", 7)
	for key, value := range map[string]string{v1beta1.LabelCluster: "demo", v1beta1.LabelGroup: "cpu", v1beta1.LabelSlot: "7", "app.kubernetes.io/managed-by": "heliostat"} {
		if labels[key] != value {
			t.Errorf("%s is %q", key, labels[key])
		}
	}
	if _, there := labels[v1beta1.LabelEpoch]; there || len(labels) != 6 {
		t.Errorf("a slot belongs to an epoch: %v", labels)
	}
	if selector := naming.ClusterSelector("demo"); len(selector) != 1 || selector[v1beta1.LabelCluster] != "demo" {
		t.Errorf("%v", selector)
	}
	if selector := naming.RoleSelector("demo", v1beta1.RoleWorker); len(selector) != 2 || selector[v1beta1.LabelCluster] != "demo" || selector[v1beta1.LabelRole] != "worker" {
		t.Errorf("%v", selector)
	}
}

func TestObjectHash(t *testing.T) {
	one, err := naming.ObjectHash(map[string]any{"a": 1, "b": []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := naming.ObjectHash(map[string]any{"b": []string{"x"}, "a": 1}); again != one {
		t.Errorf("order of keys counts: %s, %s", one, again)
	}
	if other, _ := naming.ObjectHash(map[string]any{"a": 1, "b": []string{"y"}}); other == one {
		t.Error("a change is not seen")
	}
	if errs := validation.IsValidLabelValue(one); len(errs) > 0 || len(one) < 10 {
		t.Errorf("%q: %v", one, errs)
	}
	if _, err := naming.ObjectHash(func() {}); err == nil {
		t.Error("a function was hashed")
	}
}

const (
	keptClaim   = "demo-cpu-3-data-vyxmy"
	keptReplica = "demo-tpu-1-qcdtl"
	keptHead    = "demo-head-xhnsn"
)
