package job

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// TestConfirm_LooksPastTheCache: another pod under the name of a lost head is not that head.
func TestConfirm_LooksPastTheCache(t *testing.T) {
	ended := head()
	ended.Status.Phase = corev1.PodFailed
	another := head()
	another.UID = "another"
	for name, c := range map[string]struct {
		there *corev1.Pod
		lost  bool
	}{
		"no pod is lost":          {nil, true},
		"a failed pod is lost":    {ended, true},
		"a pod of another UID is": {another, true},
		"a running pod is not":    {head(), false},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder()
			if c.there != nil {
				api.WithObjects(c.there)
			}
			err := (&Reconciler{Live: api.Build()}).confirmLoss(t.Context(), train(), Bound{Pod: head().Name, Head: head().UID})
			if (err == nil) != c.lost {
				t.Errorf("confirm: %v, want the head lost: %t", err, c.lost)
			}
		})
	}
}

// TestApply_RecordsBeforeItMakes: a cluster that no record knows would be nobody's after a crash.
func TestApply_RecordsBeforeItMakes(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var written []string
	job := train()
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(job).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, with ...client.CreateOption) error {
			written = append(written, "cluster "+obj.GetName())
			return c.Create(ctx, obj, with...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, with ...client.PatchOption) error {
			written = append(written, "job "+obj.GetName())
			return c.Patch(ctx, obj, patch, with...)
		},
	}).Build()
	r := &Reconciler{
		Writer: &kube.Writer{Client: api, Live: api}, Live: api, Clock: clocktesting.NewFakePassiveClock(now),
	}
	record := bound()
	if err := r.applyPlan(t.Context(), job, kueue.Seen{}, &Plan{Record: &record, Make: demo()}, nil); err != nil {
		t.Fatal(err)
	}
	if want := []string{"job " + job.Name, "cluster " + demo().Name}; !slices.Equal(written, want) {
		t.Errorf("written: %v, want %v", written, want)
	}
}

// TestTokenOf_IsOfTheHeadsOwner: a record or a name leads to no other cluster's token.
func TestTokenOf_IsOfTheHeadsOwner(t *testing.T) {
	own, other := demo(), demo()
	own.UID, other.UID, other.Name = "own-uid", "other-uid", "other"
	kind := v1beta1.GroupVersion.WithKind("ComputeCluster")
	ownedBy := func(cluster *v1beta1.ComputeCluster) *corev1.Pod {
		pod := head()
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(cluster, kind)}
		return pod
	}
	secret := func(of, owner *v1beta1.ComputeCluster) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: naming.TokenSecret(of.Name), OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)},
			},
			Data: map[string][]byte{v1beta1.TokenKey: []byte("token of " + owner.Name)},
		}
	}
	renamed := other.DeepCopy()
	renamed.Name = own.Name
	for name, c := range map[string]struct {
		head    *corev1.Pod
		cluster *v1beta1.ComputeCluster
		secrets []client.Object
		want    string
		fails   bool
	}{
		"its cluster is there":           {ownedBy(own), own, []client.Object{secret(own, own)}, "token of " + own.Name, false},
		"its cluster is gone":            {ownedBy(own), nil, []client.Object{secret(own, own)}, "token of " + own.Name, false},
		"the record names another":       {ownedBy(own), other, []client.Object{secret(own, own), secret(other, other)}, "token of " + own.Name, false},
		"another cluster has its name":   {ownedBy(own), renamed, []client.Object{secret(own, other)}, "", true},
		"gone, and its Secret another's": {ownedBy(own), nil, []client.Object{secret(own, other)}, "", true},
		"gone, and so is its Secret":     {ownedBy(own), nil, nil, "", true},
		"a pod that has no owner":        {head(), nil, []client.Object{secret(own, own)}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{Live: fake.NewClientBuilder().WithObjects(c.secrets...).Build()}
			read := r.tokenOf(c.head, c.cluster)
			if read == nil {
				if c.want != "" || c.fails {
					t.Error("no token is read")
				}
				return
			}
			if token, err := read(t.Context()); token != c.want || (err != nil) != c.fails {
				t.Errorf("token %q, %v; want %q", token, err, c.want)
			}
		})
	}
}

// TestSeeClusters_AreOfTheRecordsUID: a cluster under the name that a record gives is not the one that it means.
func TestSeeClusters_AreOfTheRecordsUID(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	there := demo()
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(there).Build()}
	for uid, want := range map[types.UID]bool{there.UID: true, "another": false} {
		record := bound()
		record.Bound.Cluster, record.Bound.UID = there.Name, uid
		seen := Seen{Record: record}
		if err := r.seeClusters(t.Context(), train(), &seen); err != nil || (seen.Cluster != nil) != want {
			t.Errorf("a record of cluster %s: %v, %v", uid, seen.Cluster, err)
		}
	}
}
