package heads_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

const headIP = "10.1.0.1"

// bed is a namespace with cluster demo, whose head answers.
type bed struct {
	*headstest.Site
	network *headstest.Network
	heads   *heads.Heads
	cluster *v1beta1.ComputeCluster
	pod     *corev1.Pod
	fake    *fakehead.Head
	on      heads.Reference
}

func newBed(t *testing.T, change func(*v1beta1.ComputeCluster)) *bed {
	t.Helper()
	b := &bed{Site: headstest.New(), network: headstest.NewNetwork(), on: heads.Reference{Namespace: headstest.Namespace, Name: "demo"}}
	b.cluster = b.PutCluster("demo", change)
	b.pod = headstest.Head(b.cluster, 1, headIP)
	b.PutPod(b.pod)
	b.fake = fakehead.StartOn(clock.RealClock{}, b.network.Listen("gcs:1"), b.network.Listen(headIP+":8265"))
	t.Cleanup(b.fake.Close)
	b.fake.SetToken(headstest.Token)
	b.fake.SetStartDelay(0)
	b.heads = heads.New(heads.Settings{
		Clusters: b, Reader: b, Random: strings.NewReader(strings.Repeat("chance ", 20)),
		Options: headclient.Options{Connect: b.network.Connect, Timeout: time.Second},
	})
	return b
}

// asked asks the head for its session, as a call would.
func (b *bed) asked(ctx context.Context) error {
	head, err := b.heads.FindHead(b.on)
	if err != nil {
		return err
	}
	c, err := b.heads.Converse(ctx, head)
	if err != nil {
		return err
	}
	_, err = c.Session(ctx)
	return errors.Join(c.Explain(err), c.Close())
}

// unavailable fails unless an error is of a code.
func unavailable(t *testing.T, err error, code string) heads.Unavailable {
	t.Helper()
	var u *heads.Unavailable
	if !errors.As(err, &u) || u.Code != code {
		t.Fatalf("it is %v, want %s", err, code)
	}
	if strings.Contains(err.Error(), headstest.Token) {
		t.Errorf("the token is in %v", err)
	}
	if u.Temporary != (u.RetryAfter > 0) || !u.Temporary && u.Remedy == "" {
		t.Errorf("%+v does not say what helps", u)
	}
	return *u
}

func TestFindHead_TakesWhatTheClusterOwns(t *testing.T) {
	other := headstest.New().PutCluster("other", nil)
	for name, c := range map[string]struct {
		change func(pod *corev1.Pod)
		want   int64
	}{
		"the newest":                 {func(*corev1.Pod) {}, 2},
		"none of another cluster's":  {func(p *corev1.Pod) { p.OwnerReferences = headstest.Owned(other) }, 1},
		"none without an owner":      {func(p *corev1.Pod) { p.OwnerReferences = nil }, 1},
		"none that is not led by it": {func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }, 1},
		"none of another name":       {func(p *corev1.Pod) { p.Name = "demo-head" }, 1},
		"none that is a worker":      {func(p *corev1.Pod) { p.Labels[v1beta1.LabelRole] = v1beta1.RoleWorker }, 1},
		"none without an epoch":      {func(p *corev1.Pod) { delete(p.Labels, v1beta1.LabelEpoch) }, 1},
		"none of an epoch to come": {func(p *corev1.Pod) {
			p.Labels[v1beta1.LabelEpoch] = "9"
			p.Name = naming.Pod("demo", "uid-of-demo", naming.Place{Epoch: 9})
		}, 1},
		"none that has failed": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, 1},
		"none that is going":   {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(c *v1beta1.ComputeCluster) { c.Status.Epoch = 2 })
			pod := headstest.Head(b.cluster, 2, "10.1.0.2")
			c.change(pod)
			b.PutPod(pod)
			head, err := b.heads.FindHead(b.on)
			if err != nil || head.Epoch != c.want {
				t.Errorf("it is %+v, %v", head, err)
			}
		})
	}
}

func TestFindHead_SaysWhyThereIsNone(t *testing.T) {
	since := metav1.NewTime(time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC))
	condition := func(kind, reason, message string, status metav1.ConditionStatus) func(*v1beta1.ComputeCluster) {
		return func(c *v1beta1.ComputeCluster) {
			c.Status.Conditions = []metav1.Condition{{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: since}}
		}
	}
	const resume = "POST /v1/namespaces/team/clusters/demo:resume"
	for name, c := range map[string]struct {
		change func(*v1beta1.ComputeCluster)
		code   string
		says   string
		passes bool
	}{
		"not made yet":      {nil, "HeadMissing", "no head pod", true},
		"suspended by spec": {condition("Suspended", "SuspendedBySpec", "", "True"), "SuspendedBySpec", "since 2031-05-06T07:08:09Z. Resume it with " + resume, false},
		"suspended idle":    {condition("Suspended", "SuspendedIdle", "", "True"), "SuspendedIdle", "by its idle policy, since 2031-05-06T07:08:09Z", false},
		"about to suspend":  {func(c *v1beta1.ComputeCluster) { c.Spec.Suspend = new(true) }, "SuspendedBySpec", resume, false},
		"to be suspended":   {condition("Suspended", "IdleSoon", "", "False"), "HeadMissing", "no head pod", true},
		"being deleted":     {func(c *v1beta1.ComputeCluster) { c.DeletionTimestamp = &since }, "ClusterDeleting", "is being deleted", false},
		"another's":         {func(c *v1beta1.ComputeCluster) { c.Spec.ManagedBy = "example.com/x" }, "ClusterForeign", "managed by example.com/x", false},
		"without a node": {
			condition("HeadReady", "Unschedulable", "cannot be scheduled: 3 nodes, too full. Free resources, add nodes, or request less", "False"),
			"HeadMissing", "no head pod now: cannot be scheduled: 3 nodes, too full. Free resources", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, c.change)
			b.RemovePod(b.pod.Name)
			_, err := b.heads.FindHead(b.on)
			if u := unavailable(t, err, c.code); !strings.Contains(err.Error(), c.says) || u.Temporary != c.passes {
				t.Errorf("it says %q", err)
			}
		})
	}
}

func TestFindHead_OfNoSuchCluster(t *testing.T) {
	b := newBed(t, nil)
	for _, of := range []heads.Reference{
		{Namespace: headstest.Namespace, Name: "none"}, {Namespace: "other", Name: "demo"},
		{Namespace: headstest.Namespace, Name: "demo", UID: "former"},
	} {
		_, err := b.heads.FindHead(of)
		unavailable(t, err, "ClusterMissing")
	}
}

func TestConverse_ReadsThePodForEachConnection(t *testing.T) {
	b := newBed(t, nil)
	for range 3 {
		if err := b.asked(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if pods, dials := b.Reads("Pod "+b.pod.Name), b.network.Dials(headIP+":8265"); pods != 3 || dials != 3 {
		t.Errorf("the pod was read %d times for %d connections", pods, dials)
	}
}

// TestConverse_DialsNoOther: what the cache says is not dialled where the pod is another by now.
func TestConverse_DialsNoOther(t *testing.T) {
	for name, c := range map[string]struct {
		change func(pod *corev1.Pod) *corev1.Pod
		code   string
	}{
		"gone":                    {func(*corev1.Pod) *corev1.Pod { return nil }, "HeadLost"},
		"going":                   {func(p *corev1.Pod) *corev1.Pod { p.DeletionTimestamp = &metav1.Time{}; return p }, "HeadLost"},
		"failed":                  {func(p *corev1.Pod) *corev1.Pod { p.Status.Phase = corev1.PodFailed; return p }, "HeadLost"},
		"another pod by its name": {func(p *corev1.Pod) *corev1.Pod { p.UID = "other"; return p }, "HeadLost"},
		"owned by another":        {func(p *corev1.Pod) *corev1.Pod { p.OwnerReferences[0].UID = "other"; return p }, "HeadLost"},
		"without an address":      {func(p *corev1.Pod) *corev1.Pod { p.Status.PodIP = ""; return p }, "HeadStarting"},
		"at the server itself":    {func(p *corev1.Pod) *corev1.Pod { p.Status.PodIP = "127.0.0.1"; return p }, "HeadStarting"},
		"at the cloud's own":      {func(p *corev1.Pod) *corev1.Pod { p.Status.PodIP = "169.254.169.254"; return p }, "HeadStarting"},
		"by a name":               {func(p *corev1.Pod) *corev1.Pod { p.Status.PodIP = "example.com"; return p }, "HeadStarting"},
		"before Ray runs":         {func(p *corev1.Pod) *corev1.Pod { p.Status.ContainerStatuses = nil; return p }, "HeadStarting"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, nil)
			b.PutLive(b.pod.Name, c.change(b.pod.DeepCopy()))
			if u := unavailable(t, b.asked(t.Context()), c.code); !u.Temporary {
				t.Errorf("it does not pass: %+v", u)
			}
			for _, at := range []string{headIP, "127.0.0.1", "169.254.169.254"} {
				if b.network.Dials(at+":8265") > 0 {
					t.Errorf("%s was dialled", at)
				}
			}
		})
	}
}

func TestConverse_ByAnAddressOfTheNewProtocol(t *testing.T) {
	b := newBed(t, nil)
	b.pod.Status.PodIP = "fd00::1"
	b.PutPod(b.pod)
	unavailable(t, b.asked(t.Context()), "HeadUnreachable") // nobody listens there
	if b.network.Dials("[fd00::1]:8265") != 1 {
		t.Error("it was not dialled")
	}
}

func TestConverse_Token(t *testing.T) {
	own := naming.TokenSecret("demo")
	given := func(c *v1beta1.ComputeCluster) { c.Spec.Authentication = &v1beta1.Authentication{SecretName: "mine"} }
	for name, c := range map[string]struct {
		spec  func(*v1beta1.ComputeCluster)
		setup func(b *bed)
		code  string
	}{
		"of the operator": {nil, func(*bed) {}, ""},
		"of no cluster":   {func(c *v1beta1.ComputeCluster) { c.Spec.Authentication = &v1beta1.Authentication{Mode: "Disabled"} }, func(b *bed) { b.fake.SetToken("") }, ""},
		"missing":         {nil, func(b *bed) { b.RemoveSecret(own) }, "TokenMissing"},
		"of another": {nil, func(b *bed) {
			b.PutSecret(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: own}, Data: map[string][]byte{v1beta1.TokenKey: []byte(headstest.Token)}})
		}, "TokenMissing"},
		"empty":             {nil, func(b *bed) { b.PutSecret(headstest.Secret(b.cluster, own, "other", "x")) }, "TokenSecretInvalid"},
		"changed":           {nil, func(b *bed) { b.PutSecret(headstest.Secret(b.cluster, own, v1beta1.TokenKey, "new")) }, "TokenChanged"},
		"not the head's":    {nil, func(b *bed) { b.fake.SetToken("other") }, "HeadUnauthorized"},
		"a user's, missing": {given, func(*bed) {}, "TokenSecretInvalid"},
		"a user's": {given, func(b *bed) {
			b.PutSecret(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Data: map[string][]byte{v1beta1.TokenKey: []byte(headstest.Token)}})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, c.spec)
			c.setup(b)
			err := b.asked(t.Context())
			if c.code == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if u := unavailable(t, err, c.code); u.Temporary {
				t.Errorf("it passes by itself: %+v", u)
			}
		})
	}
}

func TestConverse_WhatTheAPIServerRefuses(t *testing.T) {
	b := newBed(t, nil)
	down := errors.New("the API server is away")
	b.Fail(down)
	if err := b.asked(t.Context()); !errors.Is(err, down) {
		t.Errorf("it is %v", err)
	}
}

func TestExplain_TellsStartingFromSilent(t *testing.T) {
	for name, c := range map[string]struct {
		ready corev1.ConditionStatus
		code  string
	}{"starting": {corev1.ConditionFalse, "HeadStarting"}, "silent": {corev1.ConditionTrue, "HeadUnreachable"}} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, nil)
			b.pod.Status.Conditions[0].Status = c.ready
			b.PutPod(b.pod)
			b.network.Lead(headIP+":8265", nil)
			unavailable(t, b.asked(t.Context()), c.code)
		})
	}
}
