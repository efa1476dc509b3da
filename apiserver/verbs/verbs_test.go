package verbs_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/portal/problem"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// resumed begins a patch of a cluster that is woken now.
const resumed = `{"metadata":{"annotations":{"heliostat.dev/resume":"2026-11-26T15:00:00.000000005Z"}}`

var now = time.Date(2026, 11, 26, 15, 0, 0, 5, time.UTC)

// cluster returns a cluster with groups of one worker each.
func cluster(edit func(*v1beta1.ComputeCluster), groups ...string) *v1beta1.ComputeCluster {
	c := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "c"}}
	for _, name := range groups {
		c.Spec.WorkerGroups = append(c.Spec.WorkerGroups, v1beta1.WorkerGroup{Name: name, Replicas: new(int32(1))})
	}
	if edit != nil {
		edit(c)
	}
	return c
}

func job(edit func(*v1beta1.ClusterJob)) *v1beta1.ClusterJob {
	j := &v1beta1.ClusterJob{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "j", UID: "u"}}
	j.Spec.Entrypoint = "python x.py"
	if edit != nil {
		edit(j)
	}
	return j
}

func ended(condition string) func(*v1beta1.ClusterJob) {
	return func(j *v1beta1.ClusterJob) {
		j.Status.Conditions = []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue}}
	}
}

func suspended(c *v1beta1.ComputeCluster) {
	c.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSuspended, Status: metav1.ConditionTrue, Reason: "SuspendedIdle"}}
}

func idle(c *v1beta1.ComputeCluster) {
	c.Spec.IdlePolicy = &v1beta1.IdlePolicy{AfterSeconds: 600, Action: v1beta1.IdleSuspend}
}

func owned(c *v1beta1.ComputeCluster) {
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "ClusterService", Name: "s", Controller: new(true)}}
}

// verbCase is a verb on a state, and the patch that it makes, "" for nothing, or why not.
type verbCase struct {
	do   func() (verbs.Change, error)
	want string
}

func checkVerbs(t *testing.T, cases map[string]verbCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			change, err := c.do()
			var refused *problem.Problem
			switch {
			case errors.As(err, &refused):
				if refused.Reason != c.want || refused.Detail == "" || refused.Remedy == "" {
					t.Errorf("it is refused by %+v, want %s", refused, c.want)
				}
			case err != nil:
				t.Fatal(err)
			case string(change.Patch) != c.want || change.New != nil || change.IsNothing() != (c.want == ""):
				t.Errorf("the patch is %s, want %s", change.Patch, c.want)
			}
		})
	}
}

// TestKeep: an idle policy waits for a time, for no longer than a week, and where there is one that acts.
func TestKeep(t *testing.T) {
	checkVerbs(t, map[string]verbCase{
		"an idle policy is kept for an hour": {func() (verbs.Change, error) {
			return verbs.Keep(cluster(idle), time.Hour, "ana", now)
		}, `{"metadata":{"annotations":{"heliostat.dev/keep-requested-by":"ana","heliostat.dev/keep-until":"` + now.Add(time.Hour).UTC().Format(time.RFC3339) + `"}}}`},
		"an idle policy is kept no longer": {func() (verbs.Change, error) { return verbs.Keep(cluster(idle), 0, "ana", now) },
			`{"metadata":{"annotations":{"heliostat.dev/keep-requested-by":null,"heliostat.dev/keep-until":null}}}`},
		"a cluster without a policy needs no keeping": {func() (verbs.Change, error) { return verbs.Keep(cluster(nil), time.Hour, "ana", now) }, ""},
		"a policy that only reports needs no keeping": {func() (verbs.Change, error) {
			return verbs.Keep(cluster(func(c *v1beta1.ComputeCluster) { idle(c); c.Spec.IdlePolicy.Action = v1beta1.IdleNone }), time.Hour, "ana", now)
		}, ""},
		"a week and more is too long": {func() (verbs.Change, error) { return verbs.Keep(cluster(idle), 169*time.Hour, "ana", now) }, "BadRequest"},
		"a job is not kept":           {func() (verbs.Change, error) { return verbs.Keep(job(nil), time.Hour, "ana", now) }, "BadRequest"},
	})
}

// TestVerbs_ChangeObjectsOnce has each verb on each state: the patch, nothing, or why not.
func TestVerbs_ChangeObjectsOnce(t *testing.T) {
	checkVerbs(t, map[string]verbCase{
		"a cluster is suspended": {func() (verbs.Change, error) { return verbs.Suspend(cluster(nil)) }, `{"spec":{"suspend":true}}`},
		"a suspended cluster stays": {func() (verbs.Change, error) {
			return verbs.Suspend(cluster(func(c *v1beta1.ComputeCluster) { c.Spec.Suspend = new(true) }))
		}, ""},
		"a cluster of a service is the service's":  {func() (verbs.Change, error) { return verbs.Suspend(cluster(owned)) }, "Owned"},
		"a job is suspended":                       {func() (verbs.Change, error) { return verbs.Suspend(job(nil)) }, `{"spec":{"suspend":true}}`},
		"a job that has ended cannot be suspended": {func() (verbs.Change, error) { return verbs.Suspend(job(ended("Complete"))) }, "JobEnded"},
		"a schedule is suspended":                  {func() (verbs.Change, error) { return verbs.Suspend(&v1beta1.ClusterJobSchedule{}) }, `{"spec":{"suspend":true}}`},
		"a service is suspended":                   {func() (verbs.Change, error) { return verbs.Suspend(&v1beta1.ClusterService{}) }, `{"spec":{"suspend":true}}`},
		"what is awake is not resumed":             {func() (verbs.Change, error) { return verbs.Resume(cluster(nil), now) }, ""},
		"an idle cluster is resumed":               {func() (verbs.Change, error) { return verbs.Resume(cluster(suspended), now) }, resumed + "}"},
		"an idle cluster of a service is resumed too": {func() (verbs.Change, error) {
			return verbs.Resume(cluster(func(c *v1beta1.ComputeCluster) { owned(c); suspended(c) }), now)
		}, resumed + "}"},
		"a cluster that was suspended is resumed": {func() (verbs.Change, error) {
			return verbs.Resume(cluster(func(c *v1beta1.ComputeCluster) { suspended(c); c.Spec.Suspend = new(true) }), now)
		}, resumed + `,"spec":{"suspend":false}}`},
		"a job is resumed": {func() (verbs.Change, error) {
			return verbs.Resume(job(func(j *v1beta1.ClusterJob) { j.Spec.Suspend = new(true) }), now)
		}, `{"spec":{"suspend":false}}`},
		"a job is stopped": {func() (verbs.Change, error) { return verbs.Stop(job(nil)) }, `{"metadata":{"annotations":{"heliostat.dev/stop":"true"}}}`},
		"a job is stopped once": {func() (verbs.Change, error) {
			return verbs.Stop(job(func(j *v1beta1.ClusterJob) { j.Annotations = map[string]string{"heliostat.dev/stop": "true"} }))
		}, ""},
		"a job that failed is not stopped": {func() (verbs.Change, error) { return verbs.Stop(job(ended("Failed"))) }, ""},
		"a cluster is not stopped":         {func() (verbs.Change, error) { return verbs.Stop(cluster(nil)) }, "BadRequest"},
		"the only group is scaled":         {func() (verbs.Change, error) { return verbs.Scale(cluster(nil, "a"), "", 3) }, `[{"op":"test","path":"/spec/workerGroups/0/name","value":"a"},{"op":"add","path":"/spec/workerGroups/0/replicas","value":3}]`},
		"a group is scaled":                {func() (verbs.Change, error) { return verbs.Scale(cluster(nil, "a", "b"), "b", 0) }, `[{"op":"test","path":"/spec/workerGroups/1/name","value":"b"},{"op":"add","path":"/spec/workerGroups/1/replicas","value":0}]`},
		"a group of that size stays":       {func() (verbs.Change, error) { return verbs.Scale(cluster(nil, "a"), "a", 1) }, ""},
		"several groups need a name":       {func() (verbs.Change, error) { return verbs.Scale(cluster(nil, "a", "b"), "", 3) }, "BadRequest"},
		"a group that is not there":        {func() (verbs.Change, error) { return verbs.Scale(cluster(nil, "a"), "x", 3) }, "BadRequest"},
		"no group at all":                  {func() (verbs.Change, error) { return verbs.Scale(cluster(nil), "", 3) }, "NoGroups"},
		"fewer than none":                  {func() (verbs.Change, error) { return verbs.Scale(cluster(nil, "a"), "", -1) }, "BadRequest"},
		"an autoscaled cluster is demand's": {func() (verbs.Change, error) {
			return verbs.Scale(cluster(func(c *v1beta1.ComputeCluster) { c.Spec.Autoscaling = &v1beta1.Autoscaling{} }, "a"), "", 3)
		}, "Autoscaled"},
		"a job that runs is not retried":    {func() (verbs.Change, error) { return verbs.Retry(job(nil)) }, "JobNotEnded"},
		"a service is not retried":          {func() (verbs.Change, error) { return verbs.Retry(&v1beta1.ClusterService{}) }, "BadRequest"},
		"a job has no version to return to": {func() (verbs.Change, error) { return verbs.Undo(job(nil), nil, "") }, "BadRequest"},
	})
}

func TestRetry_CreatesTheSameJobEachTime(t *testing.T) {
	first := job(func(j *v1beta1.ClusterJob) {
		ended("Failed")(j)
		j.Labels = map[string]string{"team": "a", "heliostat.dev/x": "ours"}
		j.Annotations = map[string]string{"note": "n", "heliostat.dev/stop": "true", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
		j.Spec.Suspend = new(true)
	})
	change, err := verbs.Retry(first)
	if err != nil {
		t.Fatal(err)
	}
	again, err := verbs.Retry(first)
	if err != nil || cmp.Diff(change.New, again.New) != "" {
		t.Errorf("the same call gives another job (%v): %s", err, cmp.Diff(change.New, again.New))
	}
	second, is := change.New.(*v1beta1.ClusterJob)
	if !is || second.Spec.Entrypoint != "python x.py" || ptr.Deref(second.Spec.Suspend, false) {
		t.Fatalf("the job is %+v", change.New)
	}
	if diff := cmp.Diff(map[string]string{"note": "n", "heliostat.dev/retry-of": "j"}, second.Annotations); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"team": "a"}, second.Labels); diff != "" {
		t.Error(diff)
	}
	second.UID = "v"
	ended("Complete")(second)
	change, err = verbs.Retry(second)
	third, is := change.New.(*v1beta1.ClusterJob)
	if err != nil || !is || third.Name == second.Name || len(third.Name) != len(second.Name) || third.Annotations["heliostat.dev/retry-of"] != "j" {
		t.Errorf("a retry of a retry is %+v (%v)", third, err)
	}
}

// service returns a service whose active version is the third of three that are kept.
func service(config string) (*v1beta1.ClusterService, []*appsv1.ControllerRevision) {
	s := &v1beta1.ClusterService{}
	s.Spec.ServeConfig.Raw = []byte(config)
	s.Spec.ClusterTemplate = &v1beta1.ClusterTemplate{}
	s.Status.Active = &v1beta1.ServiceVersion{Revision: 3}
	var kept []*appsv1.ControllerRevision
	for number, text := range map[int64]string{
		1: `{"serveConfig":{"v":1},"pods":"p","template":{"spec":{"rayVersion":"2.59.0"}}}`,
		2: `{"serveConfig":{"v":2}}`, 3: `{"serveConfig":{"v":3}}`, 7: `{"serveConfig":`,
	} {
		kept = append(kept, &appsv1.ControllerRevision{Revision: number, Data: runtime.RawExtension{Raw: []byte(text)}})
	}
	return s, kept
}

func TestUndo_ReturnsToAnEarlierVersion(t *testing.T) {
	for name, c := range map[string]struct{ config, version, want string }{
		"the active one, where the spec asks for another": {`{"v":4}`, "", `[{"op":"replace","path":"/spec/serveConfig","value":{"v":3}}]`},
		"the one before":       {`{"v":3}`, "", `[{"op":"replace","path":"/spec/serveConfig","value":{"v":2}}]`},
		"one by its number":    {`{"v":3}`, "1", `[{"op":"replace","path":"/spec/serveConfig","value":{"v":1}},{"op":"replace","path":"/spec/clusterTemplate","value":{"spec":{"rayVersion":"2.59.0"}}}]`},
		"nothing twice":        {`{ "v": 2 }`, "2", ""},
		"one that is not kept": {`{"v":3}`, "9", "NoSuchVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			s, kept := service(c.config)
			change, err := verbs.Undo(s, kept, c.version)
			var refused *problem.Problem
			if errors.As(err, &refused) {
				change.Patch = json.RawMessage(refused.Reason)
			} else if err != nil {
				t.Fatal(err)
			}
			if string(change.Patch) != c.want {
				t.Errorf("the patch is %s, want %s", change.Patch, c.want)
			}
		})
	}
	s, kept := service(`{"v":3}`)
	if _, err := verbs.Undo(s, kept, "7"); err == nil {
		t.Error("a version that cannot be read is returned to")
	}
	s.Status.Active = nil
	if _, err := verbs.Undo(s, kept, ""); err == nil {
		t.Error("there is a version before none")
	}
}
