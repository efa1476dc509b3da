package job

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

type specEdit = func(*v1beta1.ClusterJobSpec)

// effects has, for each field of the spec, an edit that sets it to something else.
var effects = map[string]specEdit{
	"clusterRef.name":                      func(s *v1beta1.ClusterJobSpec) { s.ClusterRef = &v1beta1.ClusterReference{Name: "b"} },
	"clusterTemplate.metadata.labels":      func(s *v1beta1.ClusterJobSpec) { s.ClusterTemplate.Metadata.Labels = text("b") },
	"clusterTemplate.metadata.annotations": func(s *v1beta1.ClusterJobSpec) { s.ClusterTemplate.Metadata.Annotations = text("b") },
	"clusterTemplate.spec":                 func(s *v1beta1.ClusterJobSpec) { s.ClusterTemplate.Spec.Image = "mine" },
	"entrypoint":                           func(s *v1beta1.ClusterJobSpec) { s.Entrypoint = "python other.py" },
	"command":                              func(s *v1beta1.ClusterJobSpec) { s.Entrypoint, s.Command = "", []string{"python", "train.py"} },
	"runtimeEnv":                           func(s *v1beta1.ClusterJobSpec) { s.RuntimeEnv = raw(`{"pip":["a"]}`) },
	"env":                                  func(s *v1beta1.ClusterJobSpec) { s.Env = []corev1.EnvVar{{Name: "A", Value: "b"}} },
	"entrypointResources": func(s *v1beta1.ClusterJobSpec) {
		s.EntrypointResources = map[string]resource.Quantity{"CPU": resource.MustParse("1")}
	},
	"entrypointLabelSelector":        func(s *v1beta1.ClusterJobSpec) { s.EntrypointLabelSelector = text("b") },
	"metadata":                       func(s *v1beta1.ClusterJobSpec) { s.Metadata = text("b") },
	"retry.limit":                    retry(func(r *v1beta1.Retry) { r.Limit = 0 }),
	"retry.scope":                    retry(func(r *v1beta1.Retry) { r.Scope = v1beta1.RetryCluster }),
	"retry.backoffSeconds":           retry(func(r *v1beta1.Retry) { r.BackoffSeconds = number(1) }),
	"retry.maxBackoffSeconds":        retry(func(r *v1beta1.Retry) { r.MaxBackoffSeconds = number(11) }),
	"retry.onExitCodes.in":           retry(func(r *v1beta1.Retry) { r.OnExitCodes = &v1beta1.ExitCodes{In: []int32{9}} }),
	"retry.onExitCodes.notIn":        retry(func(r *v1beta1.Retry) { r.OnExitCodes = &v1beta1.ExitCodes{NotIn: []int32{3}} }),
	"retry.infrastructureLimit":      retry(func(r *v1beta1.Retry) { r.InfrastructureLimit = number(0) }),
	"retry.attemptDeadlineSeconds":   retry(func(r *v1beta1.Retry) { r.AttemptDeadlineSeconds = number(30) }),
	"startDeadlineSeconds":           func(s *v1beta1.ClusterJobSpec) { s.StartDeadlineSeconds = number(30) },
	"activeDeadlineSeconds":          func(s *v1beta1.ClusterJobSpec) { s.ActiveDeadlineSeconds = number(30) },
	"cleanup.outcome":                cleanup(func(r *v1beta1.CleanupRule) { r.Outcome = v1beta1.OutcomeSuccess }),
	"cleanup.action":                 cleanup(func(r *v1beta1.CleanupRule) { r.Action = v1beta1.CleanupDeleteWorkers }),
	"cleanup.afterSeconds":           cleanup(func(r *v1beta1.CleanupRule) { r.AfterSeconds = 500 }),
	"ttlSecondsAfterFinished":        func(s *v1beta1.ClusterJobSpec) { s.TTLSecondsAfterFinished = number(50) },
	"suspend":                        func(s *v1beta1.ClusterJobSpec) { s.Suspend = new(true) },
	"gang.framework":                 ofGang(func(g *v1beta1.Gang) { g.Framework = v1beta1.FrameworkGeneric }),
	"gang.maxRestarts":               ofGang(func(g *v1beta1.Gang) { g.MaxRestarts = 1 }),
	"gang.gracePeriodSeconds":        ofGang(func(g *v1beta1.Gang) { g.GracePeriodSeconds = number(31) }),
	"gang.gatherTimeoutSeconds":      ofGang(func(g *v1beta1.Gang) { g.GatherTimeoutSeconds = 601 }),
	"gang.minReplicasAfterSeconds":   ofGang(func(g *v1beta1.Gang) { g.MinReplicasAfterSeconds = number(301) }),
	"gang.placement":                 ofGang(func(g *v1beta1.Gang) { g.Placement = v1beta1.PlacementSpread }),
	"gang.output":                    ofGang(func(g *v1beta1.Gang) { g.Output = v1beta1.OutputAll }),
	"gang.roles.name":                ofRole(func(r *v1beta1.GangRole) { r.Name = "master" }),
	"gang.roles.replicas":            ofRole(func(r *v1beta1.GangRole) { r.Replicas = 3 }),
	"gang.roles.minReplicas":         ofRole(func(r *v1beta1.GangRole) { r.MinReplicas = 1 }),
	"gang.roles.processesPerReplica": ofRole(func(r *v1beta1.GangRole) { r.ProcessesPerReplica = 2 }),
	"gang.roles.start":               ofRole(func(r *v1beta1.GangRole) { r.Start = v1beta1.StartPerReplica }),
	"gang.roles.resources":           ofRole(func(r *v1beta1.GangRole) { r.Resources = cpus("0.25") }),
	"gang.roles.labelSelector":       ofRole(func(r *v1beta1.GangRole) { r.LabelSelector = text("b") }),
	"gang.roles.command":             ofRole(func(r *v1beta1.GangRole) { r.Command = []string{"other"} }),
	"gang.roles.entrypoint":          ofRole(func(r *v1beta1.GangRole) { r.Entrypoint = "other" }),
	"gang.roles.env":                 ofRole(func(r *v1beta1.GangRole) { r.Env = []corev1.EnvVar{{Name: "A", Value: "b"}} }),
	"gang.roles.successPolicy":       ofRole(func(r *v1beta1.GangRole) { r.SuccessPolicy = v1beta1.SuccessFirst }),
	"tune.objective.metric":          ofTune(func(t *v1beta1.Tune) { t.Objective.Metric = "auc" }),
	"tune.objective.direction":       ofTune(func(t *v1beta1.Tune) { t.Objective.Direction = v1beta1.Minimize }),
	"tune.objective.value":           ofTune(func(t *v1beta1.Tune) { t.Objective.Value = v1beta1.TuneBest }),
	"tune.objective.goal":            ofTune(func(t *v1beta1.Tune) { t.Objective.Goal = "0.5" }),
	"tune.algorithm":                 ofTune(func(t *v1beta1.Tune) { t.Algorithm = v1beta1.TuneRandom }),
	"tune.maxTrials":                 ofTune(func(t *v1beta1.Tune) { t.MaxTrials = 21 }),
	"tune.parallelTrials":            ofTune(func(t *v1beta1.Tune) { t.ParallelTrials = 5 }),
	"tune.maxFailedTrials":           ofTune(func(t *v1beta1.Tune) { t.MaxFailedTrials = number(1) }),
	"tune.earlyStopping":             ofTune(func(t *v1beta1.Tune) { t.EarlyStopping = v1beta1.StopMedian }),
	"tune.trialDeadlineSeconds":      ofTune(func(t *v1beta1.Tune) { t.TrialDeadlineSeconds = 60 }),
	"tune.seed":                      ofTune(func(t *v1beta1.Tune) { t.Seed = number(7) }),
	"tune.storage":                   ofTune(func(t *v1beta1.Tune) { t.Storage = "/results/y" }),
	"tune.parameters.name":           ofParameter(func(p *v1beta1.TuneParameter) { p.Name = "x" }),
	"tune.parameters.type":           ofParameter(func(p *v1beta1.TuneParameter) { p.Type = v1beta1.ParameterInt }),
	"tune.parameters.min":            ofParameter(func(p *v1beta1.TuneParameter) { p.Min = "0.2" }),
	"tune.parameters.max":            ofParameter(func(p *v1beta1.TuneParameter) { p.Max = "2" }),
	"tune.parameters.step":           ofParameter(func(p *v1beta1.TuneParameter) { p.Step = "0.1" }),
	"tune.parameters.scale":          ofParameter(func(p *v1beta1.TuneParameter) { p.Scale = v1beta1.ScaleLog }),
	"tune.parameters.values":         ofParameter(func(p *v1beta1.TuneParameter) { p.Min, p.Max, p.Values = "", "", []string{"1"} }),
	"managedBy":                      func(s *v1beta1.ClusterJobSpec) { s.ManagedBy = "kueue.x-k8s.io/multikueue" },
}

func text(value string) map[string]string { return map[string]string{"a": value} }

func retry(edit func(*v1beta1.Retry)) specEdit {
	return func(s *v1beta1.ClusterJobSpec) { edit(s.Retry) }
}

func cleanup(edit func(*v1beta1.CleanupRule)) specEdit {
	return func(s *v1beta1.ClusterJobSpec) { edit(&s.Cleanup[0]) }
}

// ofGang edits a job that is a gang.
func ofGang(edit func(*v1beta1.Gang)) specEdit {
	return func(s *v1beta1.ClusterJobSpec) { edit(s.Gang) }
}

// ofRole edits the only role of a job that is a gang.
func ofRole(edit func(*v1beta1.GangRole)) specEdit {
	return ofGang(func(g *v1beta1.Gang) { edit(&g.Roles[0]) })
}

// ofTune edits a job that has trials, and ofParameter the only parameter of one.
func ofTune(edit func(*v1beta1.Tune)) specEdit {
	return func(s *v1beta1.ClusterJobSpec) { edit(s.Tune) }
}

func ofParameter(edit func(*v1beta1.TuneParameter)) specEdit {
	return ofTune(func(t *v1beta1.Tune) { edit(&t.Parameters[0]) })
}

func cpus(amount string) map[string]resource.Quantity {
	return map[string]resource.Quantity{"CPU": resource.MustParse(amount)}
}

// opened is a job with a cluster of its own and something in each part that may be left out.
func opened(edits ...edit) *v1beta1.ClusterJob {
	job := train(append([]edit{own}, edits...)...)
	job.Spec.Retry = &v1beta1.Retry{Limit: 9, Scope: v1beta1.RetryDriver, BackoffSeconds: number(10), MaxBackoffSeconds: number(360)}
	job.Spec.Cleanup = []v1beta1.CleanupRule{{Outcome: v1beta1.OutcomeFailure, Action: v1beta1.CleanupDeleteCluster}}
	return job
}

// TestEveryFieldHasAnEffect walks the schema: a field without a row fails, and so does one
// whose edit changes nothing that the operator does, asks for or refuses.
func TestEveryFieldHasAnEffect(t *testing.T) {
	fields := leaves(reflect.TypeFor[v1beta1.ClusterJobSpec](), "")
	plain, asGang, asTuned := done(t, opened()), done(t, opened(gang)), done(t, opened(tuned))
	for _, path := range fields {
		edit, ok := effects[path]
		if !ok {
			t.Errorf("field %s has no row", path)
			continue
		}
		job, before := opened(), plain
		switch {
		case strings.HasPrefix(path, "gang."):
			job, before = opened(gang), asGang
		case strings.HasPrefix(path, "tune."):
			job, before = opened(tuned), asTuned
		}
		edit(&job.Spec)
		if slices.Equal(before, done(t, job)) {
			t.Errorf("field %s has no effect", path)
		}
	}
	for path := range effects {
		if !slices.Contains(fields, path) {
			t.Errorf("row %s is about no field", path)
		}
	}
}

// leaves are the paths of the fields that hold values, by their JSON names. Maps, Kubernetes'
// own types and the spec of a cluster, which has a walk of its own, are values.
func leaves(of reflect.Type, path string) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of.PkgPath() != reflect.TypeFor[v1beta1.ClusterJob]().PkgPath() || of == reflect.TypeFor[v1beta1.ComputeClusterSpec]() {
		return []string{path}
	}
	var all []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		all = append(all, leaves(of.Field(i).Type, strings.TrimPrefix(path+"."+name, "."))...)
	}
	return all
}

// done is what the operator does about a job, or has against it: what it makes and submits, and
// how it goes on at the points where it has a choice.
func done(t *testing.T, job *v1beta1.ClusterJob) []string {
	t.Helper()
	all := []string{fmt.Sprint(validate.Job(job)), fmt.Sprint(IsManaged(job))}
	asked, launched, err := submission(job, newRecord(), target{})
	all = append(all, printed(t, asked), printed(t, launched), fmt.Sprint(err))
	if job.Spec.ClusterTemplate != nil {
		all = append(all, printed(t, ownCluster(job, 1)))
	}
	failed := []Past{past(1, "EntrypointFailed", 5)}
	for _, situation := range []struct {
		edits []edit
		seen  Seen
	}{
		{nil, seen(newRecord(), noCluster)},
		{nil, seen(newRecord())},
		{[]edit{runsSince(100)}, seen(bound(), says(headclient.JobRunning))},
		{nil, seen(bound(), says(headclient.JobFailed, exits(3)))},
		{nil, seen(bound(), noHead)},
		{[]edit{toldOf(1)}, seen(bound(func(r *Record) { r.Attempt, r.Bound, r.Failures, r.Past = 2, Bound{}, 6, failed }))},
		{[]edit{toldOf(1)}, seen(bound(outcome))},
	} {
		at := job.DeepCopy()
		for _, edit := range situation.edits {
			edit(at)
		}
		plan := decide(at, situation.seen)
		all = append(all, gist(plan)+" "+plan.Finding.Text+" "+plan.String()+" "+plan.Wake.String())
	}
	return all
}

func printed(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
