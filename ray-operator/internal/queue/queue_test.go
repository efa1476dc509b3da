package queue

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
)

func TestOfCluster_RidesWithOurJobs(t *testing.T) {
	for name, test := range map[string]struct {
		owner *metav1.OwnerReference
		rides bool
	}{
		"a cluster of nobody's waits itself":          {nil, false},
		"that of a job of the operator's rides":       {&metav1.OwnerReference{APIVersion: "heliostat.dev/v1alpha1", Kind: "ClusterJob"}, true},
		"that of another version's job rides":         {&metav1.OwnerReference{APIVersion: "heliostat.dev/v1", Kind: "ClusterJob"}, true},
		"that of a service waits itself":              {&metav1.OwnerReference{APIVersion: "heliostat.dev/v1alpha1", Kind: "ClusterService"}, false},
		"that of a like kind of another waits itself": {&metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "ClusterJob"}, false},
	} {
		cluster := &v1alpha1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: "demo", UID: "u", Labels: map[string]string{kueue.LabelQueue: "team"},
		}}
		if test.owner != nil {
			owner, is := *test.owner, true
			owner.Name, owner.UID, owner.Controller = "train", "j", &is
			cluster.OwnerReferences = []metav1.OwnerReference{owner}
		}
		scheme := runtime.NewScheme()
		if err := kueue.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		keeper := &Keeper{Client: fake.NewClientBuilder().WithScheme(scheme).Build()}
		seen, err := keeper.OfCluster(t.Context(), cluster)
		if err != nil || seen.Rides != test.rides || (seen.Wanted == nil) != test.rides {
			t.Errorf("%s: rides %v, its own Workload %v, %v", name, seen.Rides, seen.Wanted != nil, err)
		}
	}
}
