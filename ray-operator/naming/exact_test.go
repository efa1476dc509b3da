package naming_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// TestWhereNamesAreCut: up to 63 characters a name stands whole with a short hash; one more,
// and it is cut to make room for a long one.
func TestWhereNamesAreCut(t *testing.T) {
	group := strings.Repeat("g", naming.MaxGroup)
	for length, want := range map[int]string{ // of the cluster's name
		14: strings.Repeat("c", 14) + "-" + group + "-0-" + "XXXXX",                   // 63 in all
		15: strings.Repeat("c", 15) + "-" + group[:33] + "-" + "XXXXXXXXXXXXX",        // 64 would be
		50: strings.Repeat("c", 49) + "-" + strings.Repeat("X", 13),                   // nothing but the cluster is left
		40: strings.Repeat("c", 40) + "-" + group[:8] + "-" + strings.Repeat("X", 13), // cut within the group
		6:  strings.Repeat("c", 6) + "-" + group + "-0-" + "XXXXX",                    // short
	} {
		have := naming.Replica(strings.Repeat("c", length), "u", group, 0)
		at := strings.LastIndex(have, "-") + 1
		if masked := have[:at] + strings.Repeat("X", len(have)-at); masked != want || len(have) > 63 {
			t.Errorf("a cluster of %d characters gives %s of %d, want %s", length, have, len(have), want)
		}
	}
	// What ends in a dash after the cut has one dash before the hash, not two.
	have := naming.Replica(strings.Repeat("c", 48), "u", "g", 12345678)
	if want := strings.Repeat("c", 48) + "-"; !strings.HasPrefix(have, want) || strings.Contains(have, "--") {
		t.Errorf("%s has two dashes", have)
	}
}

func TestExactLabels(t *testing.T) {
	for name, test := range map[string]struct{ have, want map[string]string }{
		"cluster": {naming.ClusterLabels("demo"), map[string]string{
			"app.kubernetes.io/name": "ray", "app.kubernetes.io/instance": "demo", "app.kubernetes.io/managed-by": "heliostat",
			v1beta1.LabelCluster: "demo",
		}},
		"worker": {naming.PodLabels("demo", naming.Place{Group: "cpu", Slot: 7, Epoch: 3}), map[string]string{
			"app.kubernetes.io/name": "ray", "app.kubernetes.io/instance": "demo", "app.kubernetes.io/managed-by": "heliostat",
			v1beta1.LabelCluster: "demo", v1beta1.LabelRole: "worker", v1beta1.LabelGroup: "cpu", v1beta1.LabelSlot: "7", v1beta1.LabelEpoch: "3",
		}},
		"head's selector": {naming.HeadSelector("demo", 12), map[string]string{
			v1beta1.LabelCluster: "demo", v1beta1.LabelRole: "head", v1beta1.LabelEpoch: "12",
		}},
	} {
		if !maps.Equal(test.have, test.want) {
			t.Errorf("%s: %v, want %v", name, test.have, test.want)
		}
	}
}

// TestPlaceErrors: an error names the label and quotes what stands there.
func TestPlaceErrors(t *testing.T) {
	labels := map[string]string{v1beta1.LabelRole: "worker", v1beta1.LabelGroup: "cpu", v1beta1.LabelSlot: "x", v1beta1.LabelEpoch: "1"}
	_, err := naming.ParsePlace(labels)
	if want := `parse labels of a worker: group "cpu", slot "x"`; fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
	labels[v1beta1.LabelEpoch] = "y"
	_, err = naming.ParsePlace(labels)
	if want := "parse label heliostat.dev/epoch: \"y\" is not a positive number"; fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestSlotZeroIsAPlace(t *testing.T) {
	want := naming.Place{Group: "cpu", Slot: 0, Epoch: 1<<63 - 1}
	if have, err := naming.ParsePlace(naming.PodLabels("demo", want)); err != nil || have != want {
		t.Errorf("%+v, %v, want %+v", have, err, want)
	}
}

// TestHashesAreKept: what is written on running pods must read the same to later operators.
func TestHashesAreKept(t *testing.T) {
	intent, err := naming.IntentHash("v1", map[string]int{"a": 1})
	if err != nil {
		t.Fatal(err)
	}
	object, err := naming.ObjectHash(map[string]int{"a": 1})
	if err != nil {
		t.Fatal(err)
	}
	for have, want := range map[string]string{intent: "v1-b2it2gmspxbv4", object: "b2it2gmspxbv4", naming.TokenHash("one"): "jyss6"} {
		if have != want {
			t.Errorf("%s, want %s", have, want)
		}
	}
	if _, err := naming.IntentHash("v1", func() {}); !strings.HasPrefix(fmt.Sprint(err), "hash intent: ") {
		t.Errorf("the error is %v", err)
	}
	if _, err := naming.ObjectHash(func() {}); !strings.HasPrefix(fmt.Sprint(err), "hash object: ") {
		t.Errorf("the error is %v", err)
	}
}

func TestNamesOfLaterEpochsAreKept(t *testing.T) {
	if have, want := naming.Pod("demo", "u", naming.Place{Group: "cpu", Slot: 11, Epoch: 12}), "demo-cpu-11-ttxva"; have != want {
		t.Errorf("%s, want %s", have, want)
	}
}
