package job

import (
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Defaults of a gang, as the schema has them.
const (
	defaultGrace     = 30
	defaultGather    = 600
	defaultMoreAfter = 300
)

// slack is how long the end of a gang may take beyond its grace: its driver ends 5 s before that is over.
const slack = 10 * time.Second

// graceOf returns how long the processes of a gang have from SIGTERM to SIGKILL, 0 where a job is none.
func graceOf(spec *v1beta1.ClusterJobSpec) time.Duration {
	if gangOf(spec) == nil {
		return 0
	}
	return time.Duration(ptr.Deref(gangOf(spec).GracePeriodSeconds, defaultGrace)) * time.Second
}

// gatherTimeout returns how long a restart or a later attempt of a gang may wait for its places.
func gatherTimeout(gang *v1beta1.Gang) time.Duration {
	return time.Duration(numberOr(gang.GatherTimeoutSeconds, defaultGather)) * time.Second
}

// longestGather returns how long the first wait for places of a later attempt may take: until the minimum is there, and from then on
// for more replicas, where a role has a minimum of its own.
func longestGather(gang *v1beta1.Gang) time.Duration {
	longest := gatherTimeout(gang)
	for i := range gang.Roles {
		if role := &gang.Roles[i]; leastReplicas(role) < replicasOf(role) {
			return longest + time.Duration(ptr.Deref(gang.MinReplicasAfterSeconds, defaultMoreAfter))*time.Second
		}
	}
	return longest
}

// withGrace returns a time that something has to end, which a gang has for its grace too.
func withGrace(spec *v1beta1.ClusterJobSpec, least time.Duration) time.Duration {
	if gangOf(spec) == nil {
		return least
	}
	return max(least, graceOf(spec)+slack)
}

// describeGang returns what the launcher gets for the attempt that a record has, with all defaults written out.
func describeGang(job *v1beta1.ClusterJob, record Record) launcher.Description {
	spec, gang := &job.Spec, gangOf(&job.Spec)
	d := launcher.Description{
		Job: job.Name, UID: string(job.UID), Attempt: record.Attempt, Submission: naming.Submission(job.Name, job.UID, record.Attempt),
		Framework: string(gang.Framework), Placement: wordOr(gang.Placement, v1beta1.PlacementPack), Output: wordOr(gang.Output, v1beta1.OutputFirst),
		GraceSeconds: int32(graceOf(spec) / time.Second), GatherSeconds: int32(gatherTimeout(gang) / time.Second),
		MinReplicasAfterSeconds: ptr.Deref(gang.MinReplicasAfterSeconds, defaultMoreAfter),
		MaxRestarts:             gang.MaxRestarts, LossesLeft: lossesLeft(spec.Retry, record), Env: plainVariables(spec.Env),
	}
	if record.Ran > 0 { // before, startDeadlineSeconds bounds the wait
		d.FirstGatherSeconds = d.GatherSeconds
	}
	if spec.Retry != nil && spec.Retry.OnExitCodes != nil {
		d.RetryOnExitCodes = launcher.ExitCodes{In: spec.Retry.OnExitCodes.In, NotIn: spec.Retry.OnExitCodes.NotIn}
	}
	for i := range gang.Roles {
		d.Roles = append(d.Roles, describeRole(spec, &gang.Roles[i]))
	}
	return d
}

// describeRole returns what the launcher gets for one role.
func describeRole(spec *v1beta1.ClusterJobSpec, role *v1beta1.GangRole) launcher.Role {
	d := launcher.Role{
		Name: role.Name, Replicas: replicasOf(role), MinReplicas: leastReplicas(role), Processes: numberOr(role.ProcessesPerReplica, 1),
		Start: wordOr(role.Start, v1beta1.StartPerProcess), Resources: map[string]float64{}, LabelSelector: role.LabelSelector,
		Command: role.Command, Entrypoint: role.Entrypoint, Env: plainVariables(role.Env), Success: string(successOf(gangOf(spec), role)),
	}
	if len(d.Command) == 0 && d.Entrypoint == "" {
		d.Command, d.Entrypoint = spec.Command, spec.Entrypoint
	}
	for name, quantity := range role.Resources {
		d.Resources[name] = quantity.AsApproximateFloat64()
	}
	return d
}

// plainVariables returns the variables that have a value. What a Secret has reaches the processes by their pods.
func plainVariables(env []corev1.EnvVar) []launcher.EnvVar {
	var plain []launcher.EnvVar
	for i := range env {
		if env[i].ValueFrom == nil {
			plain = append(plain, launcher.EnvVar{Name: env[i].Name, Value: env[i].Value})
		}
	}
	return plain
}

// successOf returns which processes of a role must succeed: what the role says, or what its framework means by success.
func successOf(gang *v1beta1.Gang, role *v1beta1.GangRole) v1beta1.SuccessPolicy {
	isLed := false
	for i := range gang.Roles {
		isLed = isLed || gang.Roles[i].Name == v1beta1.GangRoleChief || gang.Roles[i].Name == v1beta1.GangRoleMaster
	}
	isWorker := role.Name == v1beta1.GangRoleWorker
	switch {
	case role.SuccessPolicy != "":
		return role.SuccessPolicy
	case role.Name == v1beta1.GangRolePS, role.Name == v1beta1.GangRoleExecutor && gang.Framework == v1beta1.FrameworkSpark:
		return v1beta1.SuccessIgnore
	case isWorker && isLed && (gang.Framework == v1beta1.FrameworkTensorFlow || gang.Framework == v1beta1.FrameworkXGBoost):
		return v1beta1.SuccessIgnore
	case isWorker && gang.Framework == v1beta1.FrameworkTensorFlow:
		return v1beta1.SuccessFirst
	default:
		return v1beta1.SuccessAll
	}
}

// lossesLeft returns how many losses may still be followed by a restart.
func lossesLeft(retry *v1beta1.Retry, record Record) int32 {
	switch {
	case retry == nil:
		return 0
	case retry.InfrastructureLimit != nil:
		return max(0, *retry.InfrastructureLimit-record.Losses)
	default:
		return max(0, retry.Limit-record.Failures-record.Losses)
	}
}

// replicasOf returns how many places a role has.
func replicasOf(role *v1beta1.GangRole) int32 { return numberOr(role.Replicas, 1) }

// leastReplicas returns with how many places of a role a round may start.
func leastReplicas(role *v1beta1.GangRole) int32 { return numberOr(role.MinReplicas, replicasOf(role)) }

func numberOr(given, otherwise int32) int32 {
	if given == 0 {
		return otherwise
	}
	return given
}

func wordOr[W ~string](given, otherwise W) string {
	if given == "" {
		return string(otherwise)
	}
	return string(given)
}
