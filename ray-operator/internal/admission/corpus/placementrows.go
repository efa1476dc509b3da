package corpus

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

var placementRows = []jobRow{
	{Name: "what a driver takes", Edit: takes("CPU", "100u", "GPU", "250m", "memory", "1536Mi", "accelerator_type:A100", "1m", "reader", "0")},
	{Name: "the most that a driver takes", Edit: takes("reader", "100T", "other", "123456789")},
	{Name: "a step too fine", Rule: "driver-resource-step", Edit: takes("CPU", "50u")},
	{Name: "a fraction too fine", Rule: "driver-resource-step", Edit: takes("CPU", "1000050u")},
	{Name: "half a byte", Rule: "driver-resource-step", Edit: takes("memory", "500m")},
	{Name: "more than can be counted", Rule: "driver-resource-step", Edit: takes("reader", "101T")},
	{Name: "less than no CPU", Rule: "driver-resource-negative", Edit: takes("CPU", "-1")},
	{Name: "the object store for a driver", Rule: "driver-resource-own", Edit: takes("object_store_memory", "1")},
	{Name: "a node for a driver", Rule: "driver-resource-own", Edit: takes("node:__internal_head__", "1m")},
	{Name: "a bundle for a driver", Rule: "driver-resource-own", Edit: takes("bundle", "1")},
	{Name: "a GPU by the name of Kubernetes", Rule: "driver-resource-kubernetes", Edit: takes("nvidia.com/gpu", "1")},
	{Name: "a TPU by the name of Kubernetes", Rule: "driver-resource-kubernetes", Edit: takes("google.com/tpu", "1")},
	{Name: "CPUs by the name of Kubernetes", Rule: "driver-resource-kubernetes", Edit: takes("cpu", "1")},
	{Name: "a resource of a team", Edit: takes("example.com/licence", "1")},
	{Name: "a nameless resource for a driver", Rule: "driver-resource-own", Edit: takes("", "1")},
	{Name: "a driver's label", Edit: selects("ray.io/accelerator-type", "A100")},
	{Name: "no label's value", Edit: selects("market", "")},
	{Name: "not a label's value", Edit: selects("market", "!spot")},
	{Name: "one of some values", Edit: selects("zone", "in(a,b, c-1)")},
	{Name: "none of some values", Edit: selects("zone", "!in(a)")},
	{Name: "values without an operator", Rule: "selector-grammar", Edit: selects("zone", "(a,b)")},
	{Name: "one of no values", Rule: "selector-grammar", Edit: selects("zone", "in()")},
	{Name: "not and nothing", Rule: "selector-grammar", Edit: selects("zone", "!")},
	{Name: "a value with a blank", Rule: "selector-grammar", Edit: selects("zone", "a b")},
	{Name: "a value of 64", Rule: "selector-grammar", Edit: selects("zone", long(64))},
	{Name: "a selector's key", Rule: "selector-grammar", Edit: selects("a b", "a")},
	{Name: "a label with a Ray that knows them", Edit: both(ofCluster(version("2.54.0")), selects("market", "spot"))},
	{Name: "a label with a Ray too old", Rule: "selector-version", Edit: both(ofCluster(version("2.53.9")), selects("market", "spot"))},
}

var ownClusterRows = []jobRow{
	{Name: "labels of a job's cluster", Edit: templateMeta(some, map[string]string{"Example.com/A": "a b\n"})},
	{Name: "a label of ours on a job's cluster", Rule: "own-cluster-metadata", Edit: templateMeta(ours, nil)},
	{Name: "an annotation of ours on a job's cluster", Rule: "own-cluster-metadata", Edit: templateMeta(nil, ours)},
	{Name: "a label's value on a job's cluster", Rule: "own-cluster-labels", Edit: templateMeta(badValue, nil)},
	{Name: "an annotation's key on a job's cluster", Rule: "own-cluster-annotations", Edit: templateMeta(nil, badKey)},
	{Name: "a job's cluster that is suspended", Rule: "own-cluster-suspend", Edit: ofCluster(spec(func(s *v1beta1.ComputeClusterSpec) { s.Suspend = new(true) }))},
	{Name: "a job's cluster of another manager", Rule: "own-cluster-managed-by", Edit: ofCluster(managed("a.b/c"))},
	{Name: "a job's cluster of the default manager", Edit: ofCluster(managed(v1beta1.ManagedByOperator))},
	{Name: "a job's cluster that sleeps when idle", Rule: "own-cluster-idle", Edit: ofCluster(idle(60, v1beta1.IdleSuspend))},
	{Name: "a job's cluster that goes when idle", Rule: "own-cluster-idle", Edit: ofCluster(idle(60, v1beta1.IdleDelete))},
	{Name: "a job's cluster that tells when idle", Edit: ofCluster(idle(60, v1beta1.IdleNone))},
	{Name: "workers first", Edit: both(ownCluster, cleanup(after{Outcome: "Failure", Action: "DeleteWorkers"}, after{Outcome: "Failure", Action: "DeleteCluster", AfterSeconds: 1}))},
	{Name: "workers alone", Edit: both(ownCluster, cleanup(after{Outcome: "Success", Action: "DeleteWorkers", AfterSeconds: 31536000}))},
	{Name: "a cleanup of others", Rule: "cleanup-own", Edit: both(onCluster("demo"), cleanup(after{Outcome: "Success", Action: "DeleteCluster"}))},
	{Name: "a cleanup twice", Rule: "cleanup-twice", Edit: both(ownCluster, cleanup(after{Outcome: "Success", Action: "DeleteCluster"}, after{Outcome: "Success", Action: "DeleteCluster", AfterSeconds: 9}))},
	{Name: "workers with the cluster", Rule: "cleanup-order", Edit: both(ownCluster, cleanup(after{Outcome: "Failure", Action: "DeleteWorkers"}, after{Outcome: "Failure", Action: "DeleteCluster"}))},
	{Name: "workers after the cluster", Rule: "cleanup-order", Edit: both(ownCluster, cleanup(after{Outcome: "Failure", Action: "DeleteCluster", AfterSeconds: 1}, after{Outcome: "Failure", Action: "DeleteWorkers", AfterSeconds: 2}))},
	{Name: "workers of a head alone", Rule: "cleanup-workers", Edit: both(ofCluster(groups(0)), cleanup(after{Outcome: "Failure", Action: "DeleteWorkers"}))},
	{Name: "a cleanup without an outcome", Rule: "required", Edit: both(ownCluster, cleanup(after{Action: "DeleteCluster"}))},
	{Name: "an unknown cleanup", Rule: "unknown-word", Edit: both(ownCluster, cleanup(after{Outcome: "Success", Action: "Keep"}))},
	{Name: "a cleanup before the end", Rule: "out-of-bounds", Edit: both(ownCluster, cleanup(after{Outcome: "Success", Action: "DeleteCluster", AfterSeconds: -1}))},
}

func nothing(*job) {}

func ended(j *job) {
	j.Status.EndTime = &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

// sharedByJob is a job whose clusters share a volume.
func sharedByJob(change jobEdit) jobEdit {
	shared := ofCluster(sharedOf(ptr("1Gi"), nil))
	if change == nil {
		return shared
	}
	return both(shared, change)
}

// keptByJob enlarges and retains the volume, movedInJob mounts it elsewhere.
var (
	keptByJob  = ofCluster(sharing(claimed(ptr("2Gi"), nil, func(v *sharedVolume) { v.Claim.Retain = new(true) })))
	movedInJob = ofCluster(sharing(claimed(ptr("1Gi"), nil, func(v *sharedVolume) { v.MountPath = "/elsewhere" })))
)

var changeRows = []jobRow{
	{Name: "a job's deadlines and retries change", Before: nothing, Edit: both(retry(func(r *v1beta1.Retry) { r.Limit = 3 }), jobSpec(func(s *jobs) { s.ActiveDeadlineSeconds = ptr(int32(9)) }))},
	{Name: "a job is suspended", Before: nothing, Edit: suspended},
	{Name: "a job resumes", Before: suspended, Edit: jobSpec(func(s *jobs) { s.Suspend = new(false) })},
	{Name: "another line", Rule: "job-fixed", Before: nothing, Edit: line("python other.py")},
	{Name: "another line while suspended", Before: suspended, Edit: line("python other.py")},
	{Name: "another line as it is suspended", Before: nothing, Edit: both(suspended, line("python other.py"))},
	{Name: "another line as it resumes", Before: suspended, Edit: jobSpec(func(s *jobs) { s.Entrypoint, s.Suspend = "python other.py", new(false) })},
	{Name: "another cluster", Rule: "job-fixed", Before: nothing, Edit: onCluster("other")},
	{Name: "a cluster of its own instead", Rule: "job-fixed", Before: nothing, Edit: ownCluster},
	{Name: "another template", Rule: "job-fixed", Before: ownCluster, Edit: ofCluster(version("2.59.0"))},
	{Name: "a template with its defaults said", Before: ownCluster, Edit: ofCluster(both(managed(v1beta1.ManagedByOperator), hosts(1)))},
	{Name: "a command instead", Rule: "job-fixed", Before: nothing, Edit: command("python", "train.py")},
	{Name: "another word", Rule: "job-fixed", Before: command("a", "b"), Edit: command("a", "c")},
	{Name: "a runtime environment added", Rule: "job-fixed", Before: nothing, Edit: runtimeEnv(`{}`)},
	{Name: "a runtime environment changed", Rule: "job-fixed", Before: runtimeEnv(`{"pip":["a"]}`), Edit: runtimeEnv(`{"pip":["b"]}`)},
	{Name: "a runtime environment in another order", Before: runtimeEnv(`{"a":1,"b":2}`), Edit: runtimeEnv(`{"b":2,"a":1}`)},
	{Name: "another variable", Rule: "job-fixed", Before: nothing, Edit: env(longVariables(1, 1)...)},
	{Name: "a gang added", Rule: "job-fixed", Before: nothing, Edit: inRole()},
	{Name: "a gang with its defaults said", Before: inRole(), Edit: inRole(times(1), eachWith(1), func(r *role) { r.Start = v1beta1.StartPerProcess })},
	{Name: "a gang's restarts", Rule: "job-fixed", Before: inRole(), Edit: inGang(func(g *gangSpec) { g.MaxRestarts = 1 })},
	{Name: "other resources", Rule: "job-fixed", Before: takes("CPU", "1"), Edit: takes("CPU", "2")},
	{Name: "another selector", Rule: "job-fixed", Before: selects("a", "b"), Edit: selects("a", "c")},
	{Name: "retries of a job that has ended", Rule: "job-ended", Before: ended, Edit: retry(func(r *v1beta1.Retry) { r.Limit = 3 })},
	{Name: "a deadline of a job that has ended", Rule: "job-ended", Before: ended, Edit: jobSpec(func(s *jobs) { s.ActiveDeadlineSeconds = ptr(int32(9)) })},
	{Name: "the time to live of a job that has ended", Before: ended, Edit: jobSpec(func(s *jobs) { s.TTLSecondsAfterFinished = ptr(int32(9)) })},
	{Name: "a shared volume of a running job enlarged and retained", Before: sharedByJob(nil), Edit: keptByJob},
	{Name: "a shared volume of an ended job enlarged and retained", Before: sharedByJob(ended), Edit: keptByJob},
	{Name: "a shared volume of a running job elsewhere", Rule: "job-fixed", Before: sharedByJob(nil), Edit: movedInJob},
	{Name: "a shared volume of an ended job elsewhere", Rule: "job-ended", Before: sharedByJob(both(suspended, ended)), Edit: movedInJob},
	{Name: "a shared volume added to a running job", Rule: "job-fixed", Before: ownCluster, Edit: ofCluster(sharing(asGiven))},
	{Name: "other metadata", Rule: "job-fixed", Before: nothing, Edit: jobMetadata("a", "b")},
}
