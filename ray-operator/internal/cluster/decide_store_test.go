package cluster_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster/store"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// TestFormerHeads: whether the next head is made beside what is left of the former one, for a
// Redis of the user's, for the operator's, and for a volume.
func TestFormerHeads(t *testing.T) {
	ended := func(ago time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now.Add(-ago)} }
	}
	answers, lost, off := cluster.Node{}, cluster.Node{Lost: now.Add(-time.Hour)}, cluster.Node{Lost: now.Add(-time.Hour), Off: true}
	waits, held, remains := reason.HeadRecovering.Code, reason.VolumeHeldByLostNode.Code, reason.OldHeadRemains.Code
	for name, test := range map[string]struct {
		former func(*corev1.Pod)
		node   *cluster.Node
		want   [3]string // why none is made, empty where one is
	}{
		"it has ended":                          {failed, &answers, [3]string{"", "", ""}},
		"it is being stopped":                   {leaving, &answers, [3]string{waits, "", waits}},
		"it should have ended long ago":         {ended(time.Hour), &answers, [3]string{waits, "", waits}},
		"its node is lost":                      {leaving, &lost, [3]string{remains, "", held}},
		"its node is lost for 29 s":             {ended(29 * time.Second), &lost, [3]string{remains, "", held}},
		"its node is lost for 30 s":             {ended(30 * time.Second), &lost, [3]string{"", "", held}},
		"its node is lost and it was not ended": {func(*corev1.Pod) {}, &lost, [3]string{remains, "", held}},
		"its node is declared off":              {leaving, &off, [3]string{"", "", ""}},
		"nobody knows its node":                 {leaving, nil, [3]string{waits, "", waits}},
		"nobody knows its node for 30 s":        {ended(30 * time.Second), nil, [3]string{"", "", waits}},
	} {
		for i, kept := range []*v1beta1.ControlStore{givenRedis(), managedRedis(), embedded()} {
			of := demo()
			of.Spec.ControlStore = kept
			seen := given(1, pods(0, test.former))
			seen.Record.Epoch, seen.Record.Session, seen.Record.HeadUID = 2, 1, ""
			seen.Store = serving()
			seen.Store.Volume = store.Volume{Name: "demo-store", Presence: reconcile.Ours, Phase: corev1.ClaimBound}
			if test.node != nil {
				seen.Nodes = map[string]cluster.Node{"node-1": *test.node}
			}
			plan := decide(of, seen)
			have := ""
			if plan.Held != nil {
				have = plan.Held.Code
			}
			if have != test.want[i] || (plan.Head == nil) != (have != "") {
				t.Errorf("%s, store %d: held by %q, head %v; want %q", name, i, have, plan.Head != nil, test.want[i])
			}
		}
	}
}

// TestFullVolume: a head that ended for want of room is told as that, while it is not ready.
func TestFullVolume(t *testing.T) {
	of := demo()
	of.Spec.ControlStore = embedded()
	for words, want := range map[string]string{
		"IO error: No space left on device: /store/gcs/000012.log": reason.StoreVolumeFull.Code,
		"IO error: lock": reason.StoreServes.Code,
	} {
		seen := given(1, pods(0, func(p *corev1.Pod) {
			p.Status.Conditions[0].Status = corev1.ConditionFalse
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Message: words}
		}))
		seen.Store.Volume = store.Volume{Name: "demo-store", Presence: reconcile.Ours, Phase: corev1.ClaimBound}
		if have := decide(of, seen).Store.Finding.Code; have != want {
			t.Errorf("%q is told as %s, want %s", words, have, want)
		}
	}
}

// TestState_SaysWhyThePodOfARedisWaits: where that is for a person to mend.
func TestState_SaysWhyThePodOfARedisWaits(t *testing.T) {
	waits := func(why string) *corev1.Pod {
		return &corev1.Pod{
			Spec: corev1.PodSpec{NodeName: "a", InitContainers: []corev1.Container{{Name: "certificates", Image: "private"}}, Containers: []corev1.Container{{Name: "redis"}}},
			Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "redis"}}, InitContainerStatuses: []corev1.ContainerStatus{{
				Name: "certificates", Image: "private", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: why}},
			}}},
		}
	}
	of := demo()
	of.Spec.ControlStore = managedRedis()
	for name, c := range map[string]struct {
		pod        *corev1.Pod
		events     []corev1.Event
		claim      corev1.PersistentVolumeClaimPhase
		code, text string
	}{
		"an image cannot be pulled": {waits("ImagePullBackOff"), nil, "", reason.ImagePullFailed.Code, "pod demo-redis-0: "},
		"it begins":                 {waits("PodInitializing"), nil, "", reason.StoreStarting.Code, "pod demo-redis-0 is not ready yet"},
		"nobody has made it":        {nil, nil, "", reason.StoreStarting.Code, "pod demo-redis-0 is not ready yet"},
		"its volume is not bound":   {nil, nil, corev1.ClaimPending, reason.StoreVolumePending.Code, "is not bound yet"},
		"nobody can make it": {nil, []corev1.Event{{Reason: "FailedCreate", Message: `create Pod demo-redis-0 in StatefulSet demo-redis failed error: ` +
			`pods "demo-redis-0" is forbidden: failed quota: team: must specify limits.cpu for: certificates,redis`}},
			corev1.ClaimPending, reason.QuotaExceeded.Code, "must specify limits.cpu for: certificates,redis"},
	} {
		seen := given(1, func(s *cluster.Seen) { s.Pods, s.Record.HeadUID = nil, "" })
		seen.Store.Pod = c.pod
		seen.Store.SetEvents = c.events
		seen.Fixtures["StatefulSet of the store"] = reconcile.Fixture{Presence: reconcile.Ours, Object: &appsv1.StatefulSet{}}
		seen.Store.Volume.Phase = c.claim
		if store := decide(of, seen).Store; store == nil || store.Finding.Code != c.code || !strings.Contains(store.Finding.Text, c.text) {
			t.Errorf("%s: the store says %+v, want %s: %s", name, store, c.code, c.text)
		}
	}
}
