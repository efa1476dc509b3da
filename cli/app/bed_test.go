package app_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-dev/heliostat/cli/app"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// born is when everything was made, and began is an hour later, when commands run.
var (
	born  = time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	began = born.Add(time.Hour)
)

// bed is an API server in the process, a user of it, and a script of what happens while a command waits.
type bed struct {
	objects *kube.Objects
	clock   *clocktesting.FakeClock
	// user is "anna", with all rights, "bob", with none, or "carl", with none to schedules.
	user string
	// script has what happens before the n-th read of an object, from 0; a wait reads once each two seconds.
	script map[int]func(context.Context, client.Client)
	reads  int
	// The API server does not answer between two times.
	silentFrom, silentUntil time.Time
	// environ are the variables of the program.
	environ []string
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{clock: clocktesting.NewFakeClock(began), user: "anna", script: map[int]func(context.Context, client.Client){}}
	made := fake.NewClientBuilder().WithScheme(kube.Scheme()).WithObjects(fixtures()...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if now := b.clock.Now(); now.After(b.silentFrom) && now.Before(b.silentUntil) {
				b.clock.Step(console.Look)
				return fmt.Errorf("dial tcp 10.0.0.1:443: connection refused")
			}
			if err := b.refuse("get", object, key.Namespace, key.Name); err != nil {
				return err
			}
			if happens := b.script[b.reads]; happens != nil {
				happens(ctx, c)
			}
			b.reads++
			if len(b.script) > 0 {
				b.clock.Step(console.Look)
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			var of client.ListOptions
			of.ApplyOptions(options)
			if err := b.refuse("list", list, of.Namespace, ""); err != nil {
				return err
			}
			return c.List(ctx, list, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := b.refuse("patch", object, object.GetNamespace(), object.GetName()); err != nil {
				return err
			}
			return c.Patch(ctx, object, patch, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			switch review := object.(type) {
			case *authenticationv1.SelfSubjectReview:
				review.Status.UserInfo = authenticationv1.UserInfo{Username: b.user, Groups: []string{"researchers"}}
				return nil
			case *authorizationv1.SelfSubjectAccessReview:
				review.Status.Allowed = b.user == "anna" && review.Spec.ResourceAttributes.Resource != "secrets"
				return nil
			}
			if err := b.refuse("create", object, object.GetNamespace(), ""); err != nil {
				return err
			}
			object.SetUID(types.UID("uid-" + object.GetName()))
			object.SetCreationTimestamp(metav1.NewTime(began))
			return c.Create(ctx, object, options...)
		},
	}).Build()
	b.objects = &kube.Objects{WithWatch: made, Namespace: "team-a"}
	return b
}

// refuse answers a user without rights as the API server does.
func (b *bed) refuse(verb string, object runtime.Object, namespace, name string) error {
	if b.user == "anna" {
		return nil
	}
	resource, group := "pods", ""
	kinds, _, err := kube.Scheme().ObjectKinds(object)
	if err != nil {
		return err
	}
	kind := strings.TrimSuffix(kinds[0].Kind, "List")
	if kind == "ConfigMap" {
		resource = "configmaps"
	}
	for _, one := range kube.Kinds() {
		if one.Name == kind {
			resource, group = one.Resource, v1beta1.GroupVersion.Group
		}
	}
	if b.user == "carl" && resource != kube.Schedule.Resource {
		return nil
	}
	where := fmt.Sprintf("in the namespace %q", namespace)
	if namespace == "" {
		where = "at the cluster scope"
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: resource}, name,
		fmt.Errorf("User %q cannot %s resource %q in API group %q %s", b.user, verb, resource, group, where))
}

// result is what a command printed and how it ended.
type result struct {
	out, said string
	code      int
}

// run runs a command in a pipe, or on a terminal of 100 columns.
func (b *bed) run(ctx context.Context, isTerminal bool, input string, args ...string) result {
	var out, said bytes.Buffer
	settings := app.Settings{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(input), Out: &out, ErrOut: &said},
		Clock:     b.clock, Environ: b.environ, Connect: func() (*kube.Objects, error) { return b.objects, nil },
	}
	if isTerminal {
		settings.CanAsk, settings.Width = true, func() int { return 100 }
	}
	code := app.Run(ctx, args, settings)
	return result{out.String(), said.String(), code}
}

func metaOf(name string, annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: types.UID("uid-" + name), Generation: 1,
		CreationTimestamp: metav1.NewTime(born), Annotations: annotations}
}

// condition says a finding since some minutes after everything was made.
func condition(kind string, status metav1.ConditionStatus, finding reason.Finding, minutes int) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: finding.Code, Message: finding.Text,
		LastTransitionTime: metav1.NewTime(born.Add(time.Duration(minutes) * time.Minute))}
}

func ownedBy(kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: kind, Name: name,
		UID: types.UID("uid-" + name), Controller: new(true)}}
}

func cluster(name string, edit func(*v1beta1.ComputeCluster)) *v1beta1.ComputeCluster {
	c := &v1beta1.ComputeCluster{ObjectMeta: metaOf(name, nil)}
	c.Spec.RayVersion = "2.60.0"
	c.Spec.WorkerGroups = []v1beta1.WorkerGroup{{Name: "cpu", Replicas: new(int32(1))}}
	c.Status.Phase, c.Status.ObservedGeneration = v1beta1.PhaseReady, 1
	c.Status.Workers = v1beta1.WorkerCounts{Desired: 1, Ready: 1}
	c.Status.Conditions = []metav1.Condition{condition(v1beta1.ConditionReady, metav1.ConditionTrue, reason.AllReady.Of(1, 1), 5)}
	edit(c)
	return c
}

// unscheduled is a head pod for which there is no node.
func unscheduled(of string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metaOf(of+"-head-1", nil)}
	pod.Labels = map[string]string{v1beta1.LabelCluster: of, v1beta1.LabelRole: v1beta1.RoleHead, v1beta1.LabelEpoch: "1"}
	pod.OwnerReferences = ownedBy("ComputeCluster", of)
	pod.Status.Phase = corev1.PodPending
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available: 3 Insufficient cpu.",
		LastTransitionTime: metav1.NewTime(born.Add(10 * time.Minute))}}
	return pod
}

func starting(c *v1beta1.ComputeCluster) {
	c.Status.Phase, c.Status.Epoch = v1beta1.PhaseStarting, 1
	c.Status.Workers.Ready = 0
	starts := reason.HeadStarting.Of(c.Name + "-head-1")
	c.Status.Conditions = []metav1.Condition{condition(v1beta1.ConditionReady, metav1.ConditionFalse, starts, 10),
		condition(v1beta1.ConditionHeadReady, metav1.ConditionFalse, starts, 10)}
}

func job(name, phase string, edit func(*v1beta1.ClusterJob)) *v1beta1.ClusterJob {
	j := &v1beta1.ClusterJob{ObjectMeta: metaOf(name, map[string]string{v1beta1.AnnotationOwner: "anna"})}
	j.Spec.Entrypoint = "python train.py"
	j.Status.Phase, j.Status.ObservedGeneration, j.Status.Attempt = phase, 1, 1
	edit(j)
	return j
}

// fixtures are what there is in team-a, and one cluster in team-b.
func fixtures() []client.Object {
	started, ended := metav1.NewTime(born.Add(20*time.Minute)), metav1.NewTime(born.Add(50*time.Minute))
	other := cluster("refused", func(c *v1beta1.ComputeCluster) {
		c.Namespace, c.Status.Phase = "team-b", v1beta1.PhaseFailed
		refused := reason.InvalidSpec.Of("spec.rayVersion: must be 2.52 or later")
		c.Status.Conditions = []metav1.Condition{condition(v1beta1.ConditionReady, metav1.ConditionFalse, refused, 1),
			condition(v1beta1.ConditionStalled, metav1.ConditionTrue, refused, 1)}
	})
	all := []client.Object{
		cluster("dev", starting), unscheduled("dev"), other,
		cluster("idle", func(c *v1beta1.ComputeCluster) {
			c.Spec.IdlePolicy = &v1beta1.IdlePolicy{AfterSeconds: 3600, Action: v1beta1.IdleSuspend}
			c.Annotations = map[string]string{v1beta1.AnnotationOwner: "anna"}
			c.Labels = map[string]string{"team": "a"}
			c.Status.Resources = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4"), "cpu": resource.MustParse("9")}
			c.Status.Conditions = append(c.Status.Conditions, condition(v1beta1.ConditionSuspended, metav1.ConditionFalse,
				reason.IdleSoon.Of("2026-11-27T09:18:00Z", "suspended", "2026-11-27T10:18:00Z"), 18))
		}),
		cluster("asleep", func(c *v1beta1.ComputeCluster) {
			c.Spec.Suspend, c.Status.Phase, c.Status.Workers = new(true), v1beta1.PhaseSuspended, v1beta1.WorkerCounts{}
			c.Status.Conditions = []metav1.Condition{condition(v1beta1.ConditionSuspended, metav1.ConditionTrue,
				reason.SuspendedBySpec.Of(), 30)}
		}),
		job("train", v1beta1.PhaseRunning, func(j *v1beta1.ClusterJob) {
			j.Spec.ClusterRef = &v1beta1.ClusterReference{Name: "idle"}
			j.Status.ClusterName, j.Status.StartTime = "idle", &started
			j.Status.Attempts = []v1beta1.JobAttempt{{Number: 1, ClusterName: "idle", SubmitTime: &started, StartTime: &started}}
			j.Status.Conditions = []metav1.Condition{condition(v1beta1.ConditionReady, metav1.ConditionFalse,
				reason.JobRunning.Of(1, "idle"), 20)}
		}),
		job("done", v1beta1.PhaseFailed, func(j *v1beta1.ClusterJob) {
			failed := reason.EntrypointFailed.Of(1, "")
			j.Status.StartTime, j.Status.EndTime = &started, &ended
			j.Status.Conditions = []metav1.Condition{condition(v1beta1.ConditionReady, metav1.ConditionFalse, failed, 50),
				condition(v1beta1.ConditionFailed, metav1.ConditionTrue, failed, 50)}
		}),
	}
	nightly := &v1beta1.ClusterJobSchedule{ObjectMeta: metaOf("nightly", nil)}
	nightly.Spec.Schedule = "0 2 * * *"
	nightly.Status.ObservedGeneration, nightly.Status.ActiveJobs = 1, 1
	nightly.Status.Conditions = []metav1.Condition{condition(v1beta1.ConditionReady, metav1.ConditionTrue, reason.ScheduleActive.Of(), 60)}
	return append(append(all, nightly), service()...)
}

// service is one whose second version has 40 % of the requests, with what is kept of both.
func service() []client.Object {
	s := &v1beta1.ClusterService{ObjectMeta: metaOf("translate", nil)}
	s.Spec.ServeConfig.Raw = []byte(`{"applications":[{"name":"b"}]}`)
	s.Status.Phase, s.Status.ObservedGeneration = v1beta1.PhaseUpgrading, 1
	s.Status.Active = &v1beta1.ServiceVersion{Revision: 1, ClusterName: "translate-1", TrafficPercent: 60, Healthy: true}
	s.Status.Candidate = &v1beta1.ServiceVersion{Revision: 2, ClusterName: "translate-2", TrafficPercent: 40, Healthy: true}
	s.Status.Conditions = []metav1.Condition{
		condition(v1beta1.ConditionReady, metav1.ConditionTrue, reason.ServiceServes.Of("1", "translate-1"), 8)}
	all := []client.Object{s}
	for number, config := range []string{`{"applications":[{"name":"a"}]}`, `{"applications":[{"name":"b"}]}`} {
		kept := &appsv1.ControllerRevision{ObjectMeta: metaOf(fmt.Sprintf("translate-v%d", number+1), nil), Revision: int64(number + 1)}
		kept.Labels = map[string]string{v1beta1.LabelService: "translate"}
		kept.OwnerReferences = ownedBy("ClusterService", "translate")
		kept.Data.Raw = fmt.Appendf(nil, `{"serveConfig":%s}`, config)
		all = append(all, kept)
	}
	return all
}

// golden compares a text with a file, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name + ".golden"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s is different; want:\n%s\ngot:\n%s", path, want, got)
	}
}
