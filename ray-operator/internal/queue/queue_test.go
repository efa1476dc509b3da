package queue

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
)

func TestOfCluster_RidesWithOurJobs(t *testing.T) {
	for name, test := range map[string]struct {
		owner *metav1.OwnerReference
		rides bool
	}{
		"a cluster of nobody's waits itself":          {nil, false},
		"one that a user put there waits itself":      {&metav1.OwnerReference{APIVersion: "heliostat.dev/v1beta1", Kind: "ClusterJob", Name: "other"}, false},
		"that of a job of the operator's rides":       {&metav1.OwnerReference{APIVersion: "heliostat.dev/v1beta1", Kind: "ClusterJob"}, true},
		"that of another version's job rides":         {&metav1.OwnerReference{APIVersion: "heliostat.dev/v1", Kind: "ClusterJob"}, true},
		"that of a service waits itself":              {&metav1.OwnerReference{APIVersion: "heliostat.dev/v1beta1", Kind: "ClusterService"}, false},
		"that of a like kind of another waits itself": {&metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "ClusterJob"}, false},
	} {
		cluster := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: "demo", UID: "u", Labels: map[string]string{kueue.LabelQueue: "team"},
		}}
		if test.owner != nil {
			owner, is := *test.owner, true
			if owner.UID, owner.Controller = "j", &is; owner.Name == "" {
				owner.Name = "train"
			}
			cluster.OwnerReferences, cluster.Labels[v1beta1.LabelJob] = []metav1.OwnerReference{owner}, "train"
		}
		keeper := &Keeper{Client: fake.NewClientBuilder().WithScheme(scheme(t)).Build()}
		seen, err := keeper.OfCluster(t.Context(), cluster)
		if err != nil || seen.Rides != test.rides || (seen.Wanted == nil) != test.rides {
			t.Errorf("%s: rides %v, its own Workload %v, %v", name, seen.Rides, seen.Wanted != nil, err)
		}
	}
}

func TestDo_GivesNoQuotaBackThatAPodUses(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: "demo-head", Labels: map[string]string{v1beta1.LabelCluster: "demo"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "heliostat.dev/v1beta1", Kind: "ComputeCluster", Name: "demo", UID: "u", Controller: new(true)}},
	}}
	foreign := pod.DeepCopy()
	foreign.OwnerReferences = nil
	for name, test := range map[string]struct {
		queue string
		pods  []client.Object
		gone  bool
	}{
		"a pod that the cache does not know keeps it": {"team", []client.Object{pod}, false},
		"a pod of somebody else does not":             {"team", []client.Object{foreign}, true},
		"no pod gives it back":                        {"team", nil, true},
		"what has left its queue gives it back":       {"", []client.Object{pod}, true},
	} {
		cluster := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "demo", UID: "u"}}
		workload := kueue.For("ComputeCluster", cluster, cluster, nil)
		workload.Status.Conditions = []metav1.Condition{{Type: "QuotaReserved", Status: metav1.ConditionTrue}}
		api := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(append(test.pods, workload.DeepCopy())...).Build()
		keeper := &Keeper{Client: api, Writer: &kube.Writer{Client: api, Live: api}}
		seen := kueue.Seen{Queue: test.queue, Workload: workload, Clusters: []string{"demo"}}
		err := keeper.Do(t.Context(), seen, kueue.Answer{Step: kueue.Drop})
		left := api.Get(t.Context(), client.ObjectKeyFromObject(workload), &kueue.Workload{})
		if apierrors.IsNotFound(left) != test.gone || fault.IsWait(err) == test.gone {
			t.Errorf("%s: %v, and its Workload: %v", name, err, left)
		}
	}
}

// scheme knows pods and the kinds of Kueue.
func scheme(t *testing.T) *runtime.Scheme {
	made := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kueue.AddToScheme, corev1.AddToScheme} {
		if err := add(made); err != nil {
			t.Fatal(err)
		}
	}
	return made
}
