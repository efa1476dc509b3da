package cluster

import (
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
)

func TestIsHeld_KeepsInstancesOfOtherCheckouts(t *testing.T) {
	mine, theirs := t.TempDir(), t.TempDir()
	for name, c := range map[string]struct {
		owner, asks  string
		runs, isHeld bool
	}{
		"its own":               {mine, mine, true, false},
		"another's":             {theirs, mine, true, true},
		"another's that is off": {theirs, mine, false, false},
		"one that was removed":  {filepath.Join(theirs, "gone"), mine, true, false},
		"nobody's":              {"", mine, true, false},
		"outside of any":        {theirs, "", true, false},
	} {
		if isHeld(c.owner, c.asks, c.runs) != c.isHeld {
			t.Errorf("%s: it is held: %v", name, !c.isHeld)
		}
	}
}

func TestReleaseDNSAddress_FreesWhatNoServiceHas(t *testing.T) {
	address := &networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: "10.194.0.10"}}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "kube-dns", Namespace: metav1.NamespaceSystem}}
	for name, c := range map[string]struct {
		objects []runtime.Object
		want    int
	}{
		"a reservation alone is freed":     {[]runtime.Object{address}, 0},
		"nothing to free is no error":      {nil, 0},
		"the address of a Service is kept": {[]runtime.Object{address, service}, 1},
	} {
		client := fake.NewClientset(c.objects...)
		if err := releaseDNSAddress(t.Context(), client, address.Name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		left, err := client.NetworkingV1().IPAddresses().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(left.Items) != c.want {
			t.Errorf("%s: %d addresses are left, %v, want %d", name, len(left.Items), err, c.want)
		}
	}
}
