package convert

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Managers of Kubeflow's objects.
const (
	managerTraining = "kubeflow.org/training-operator"
	managerMPI      = "kubeflow.org/mpi-operator"
	managerTrainer  = "trainer.kubeflow.org/trainjob-controller"
)

// Restart policies of a role.
const (
	restartAlways    = "Always"
	restartOnFailure = "OnFailure"
	restartNever     = "Never"
	restartExitCode  = "ExitCode"
)

const (
	// restartsUnsaid is how often a gang restarts where a job of the training operator says no number: there each pod restarts for ever.
	restartsUnsaid = 10
	// restartsOfJob is the default of a Job of Kubernetes, by which other operators start pods.
	restartsOfJob = 6
	// firstRetryable is the first exit code after which ExitCode restarts a pod.
	firstRetryable = 128
)

// takePolicy converts what a job says of its run, and returns how many restarts it allows, nil where it says nothing.
func (g *gangJob) takePolicy(of *jobPolicy, manager string) (limit *int32, path string) {
	former, policy := of.formerPolicy, of.RunPolicy
	twice := map[string]bool{
		"activeDeadlineSeconds":   former.ActiveDeadlineSeconds != nil && policy.ActiveDeadlineSeconds != nil,
		"backoffLimit":            former.BackoffLimit != nil && policy.BackoffLimit != nil,
		"ttlSecondsAfterFinished": former.TTLSecondsAfterFinished != nil && policy.TTLSecondsAfterFinished != nil,
	}
	for _, field := range slices.Sorted(maps.Keys(twice)) {
		if twice[field] {
			g.refuse("spec."+field, "runPolicy says it too; keep that, and take this out")
		}
	}
	g.spec.ActiveDeadlineSeconds = atMostAYear(cmp.Or(policy.ActiveDeadlineSeconds, former.ActiveDeadlineSeconds))
	g.spec.TTLSecondsAfterFinished = g.within("spec.runPolicy.ttlSecondsAfterFinished", "ttlSecondsAfterFinished",
		cmp.Or(policy.TTLSecondsAfterFinished, former.TTLSecondsAfterFinished))
	g.spec.Suspend = g.suspended("spec.runPolicy.suspend", policy.Suspend)
	g.spec.ManagedBy = g.manager("spec.runPolicy.managedBy", policy.ManagedBy, manager)
	g.takeScheduling(&policy.SchedulingPolicy)
	if policy.BackoffLimit != nil {
		return policy.BackoffLimit, "spec.runPolicy.backoffLimit"
	}
	return former.BackoffLimit, "spec.backoffLimit"
}

// atMostAYear is a time that Kubeflow counts in more digits.
func atMostAYear(given *int64) *int32 {
	if given == nil {
		return nil
	}
	if *given > longest {
		return new(int32(longest))
	}
	return new(int32(*given))
}

// within is a time of at most a year.
func (g *gangJob) within(path, to string, given *int32) *int32 {
	if given == nil || *given <= longest {
		return given
	}
	g.change(path, to, fmt.Sprintf("it becomes %d, a year, which is the most that there is", longest))
	return new(int32(longest))
}

// takeScheduling takes the class of the pods. A gang is placed all or none without the rest.
func (g *gangJob) takeScheduling(of *schedulingPolicy) {
	at := "spec.runPolicy.schedulingPolicy."
	if class := of.PriorityClass; class != "" {
		if g.isOnto() {
			g.note(Row{Path: at + "priorityClass", Verdict: Dropped, Differs: true, Text: "the cluster's pods have a priority of their own"})
		} else {
			g.cluster.made.PodDefaults = &v1beta1.PodDefaults{PriorityClassName: class}
		}
	}
	if of.Queue != "" && g.isQueued() {
		g.drop(at+"queue", "Kueue's label names the queue that counts")
	}
}

// takeRestarts converts the restart policies of roles, where unsaid is the default and most the number of restarts that the
// operator allows of itself.
func (g *gangJob) takeRestarts(limit *int32, path, unsaid string, most int32) {
	isOnlyByCode, restarts := true, false
	for _, role := range g.roles {
		role.restart = cmp.Or(role.restart, unsaid)
		switch role.restart {
		case restartNever:
		case restartAlways, restartOnFailure:
			restarts, isOnlyByCode = true, false
		case restartExitCode:
			restarts = true
		default:
			g.refuse(role.restartAt, "restart policies are Always, OnFailure, Never and ExitCode; use one of them")
			return
		}
	}
	if limit != nil {
		most = max(min(*limit, mostRestarts), 0)
	}
	if !restarts || most == 0 {
		g.keepRestarts(limit, path, restarts)
		return
	}
	g.gang.MaxRestarts = most
	if g.trial == nil { // a trial that is lost runs again by itself, up to 3 times
		g.spec.Retry = &v1beta1.Retry{InfrastructureLimit: new(most)}
	}
	if isOnlyByCode && g.trial == nil {
		var codes []int32
		for code := range int32(firstRetryable - 1) {
			codes = append(codes, code+1)
		}
		g.spec.Retry.OnExitCodes = &v1beta1.ExitCodes{NotIn: codes}
	}
	if limit != nil {
		g.keep(path)
	}
	g.tellRestarts(most)
}

// keepRestarts is about a job that restarts nothing.
func (g *gangJob) keepRestarts(limit *int32, path string, isLimited bool) {
	for _, role := range g.roles {
		g.keep(role.restartAt)
	}
	switch {
	case limit == nil:
	case isLimited:
		g.keep(path)
	default:
		g.drop(path, "restartPolicy Never restarts nothing; set gang.maxRestarts to have restarts")
	}
}

// tellRestarts says what restarts are here, once for each role whose policy is another.
func (g *gangJob) tellRestarts(most int32) {
	var told []string
	for _, role := range g.roles {
		at := role.restartAt
		if slices.Contains(told, role.restart) {
			g.keep(at)
			continue
		}
		told = append(told, role.restart)
		if role.restart == restartExitCode && (g.spec.Retry == nil || g.spec.Retry.OnExitCodes == nil) {
			g.change(at, "gang.maxRestarts", "the whole gang restarts after each code, because another role or a trial restarts after each; "+
				"write ExitCode in all roles, or set retry.onExitCodes")
			continue
		}
		text := map[string]string{
			restartOnFailure: "a process that fails restarts the whole gang, and not one pod",
			restartAlways:    "a process that fails restarts the whole gang, and not one pod; one that ends with 0 is not started again",
			restartExitCode:  "a process that ends with 128 or more restarts the whole gang, and not one pod; after a lower code the job fails",
			restartNever:     "this role restarts with all others, as the whole gang restarts",
		}[role.restart]
		ofLost := "as often"
		if g.trial != nil {
			ofLost = "up to 3 times"
		}
		if g.gang.Framework == v1beta1.FrameworkSpark {
			text = "a driver that fails starts again with all executors, and an executor is replaced alone"
		}
		g.change(at, "gang.maxRestarts", fmt.Sprintf("%s: at most %d times, and %s after a lost node; save checkpoints, and load them at the start",
			text, most, ofLost))
	}
}
