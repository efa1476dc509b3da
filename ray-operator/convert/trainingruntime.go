package convert

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// runtimePart is what a TrainJob takes of its runtime.
type runtimePart struct {
	framework v1beta1.GangFramework
	template  corev1.PodTemplateSpec
	nodes     int32
	// perNode is how many processes a node has, empty where the runtime does not say it.
	perNode  string
	restart  string
	restarts int32
}

// standardRuntimes are those that Kubeflow installs, by the framework of their gangs.
var standardRuntimes = map[string]v1beta1.GangFramework{
	"torch-distributed": v1beta1.FrameworkPyTorch, "jax-distributed": v1beta1.FrameworkJAX, "xgboost-distributed": v1beta1.FrameworkXGBoost,
	"mpi-distributed": v1beta1.FrameworkMPI, "deepspeed-distributed": v1beta1.FrameworkMPI,
}

// runtimeSpec is the spec of a TrainingRuntime, as far as a TrainJob takes something of it.
type runtimeSpec struct {
	MLPolicy struct {
		NumNodes *int32 `json:"numNodes,omitempty"`
		Torch    *struct {
			NumProcPerNode *intstr.IntOrString `json:"numProcPerNode,omitempty"`
		} `json:"torch,omitempty"`
		JAX     map[string]any `json:"jax,omitempty"`
		XGBoost map[string]any `json:"xgboost,omitempty"`
		Flux    map[string]any `json:"flux,omitempty"`
		MPI     *struct {
			NumProcPerNode *intstr.IntOrString `json:"numProcPerNode,omitempty"`
		} `json:"mpi,omitempty"`
	} `json:"mlPolicy,omitempty"`
	Template struct {
		Spec struct {
			FailurePolicy struct {
				MaxRestarts int32 `json:"maxRestarts,omitempty"`
			} `json:"failurePolicy,omitempty"`
			ReplicatedJobs []struct {
				Name     string `json:"name,omitempty"`
				Template struct {
					Spec struct {
						BackoffLimit *int32                 `json:"backoffLimit,omitempty"`
						Template     corev1.PodTemplateSpec `json:"template,omitempty"`
					} `json:"spec,omitempty"`
				} `json:"template,omitempty"`
			} `json:"replicatedJobs,omitempty"`
		} `json:"spec,omitempty"`
	} `json:"template,omitempty"`
}

const (
	jobSetText  = "A gang is no JobSet: its processes start and end together."
	claimText   = "Claims are not made for each job. Make the claim, and mount it in the runtime's pod template."
	restartText = "The gang restarts as often as JobSet and Job would in all."
)

// runtimeRules are about the runtimes of TrainJobs, whose fields become those of the jobs.
var runtimeRules = []Rule{
	runtimeRule("mlPolicy.numNodes", "gang.roles[].replicas", Kept, "Where the TrainJob has no numNodes."),
	runtimeRule("mlPolicy.torch", "gang.framework", Kept, "PyTorch. Variables for further containers (envInjection) are not set."),
	runtimeRule("mlPolicy.jax", "gang.framework", Kept, "JAX."),
	runtimeRule("mlPolicy.xgboost", "gang.framework", Kept, "XGBoost."),
	runtimeRule("mlPolicy.flux", "", Refused, "A gang starts no Flux. Use mpirun, torchrun or plain processes."),
	runtimeRule("mlPolicy.mpi.numProcPerNode", "gang.roles[].processesPerReplica", Kept, "Where the TrainJob has no numProcPerNode."),
	runtimeRule("mlPolicy.mpi.mpiImplementation", "", Dropped, "Hostfile and launch agent are there for Open MPI, MPICH and Intel MPI alike."),
	runtimeRule("mlPolicy.mpi.runLauncherAsNode", "", Dropped, "The command runs beside the ranks of worker 0."),
	runtimeRule("mlPolicy.mpi.sshAuthMountPath", "", Dropped, sshText),
	runtimeRule("podGroupPolicy", "", Dropped, podGroupText),
	runtimeRule("template.metadata", "", Dropped, "A gang is no JobSet. Labels and annotations of the TrainJob are kept."),
	runtimeRule("template.spec.coordinator", "", Dropped, jobSetText),
	runtimeRule("template.spec.failurePolicy.maxRestarts", "gang.maxRestarts", Kept, restartText),
	runtimeRule("template.spec.failurePolicy.restartStrategy", "", Dropped, "The whole gang restarts on its places."),
	runtimeRule("template.spec.failurePolicy.rules", "", Dropped, "Each failed process restarts the gang. retry.onExitCodes says after "+
		"which codes."),
	runtimeRule("template.spec.managedBy", "", Dropped, "managedBy of the TrainJob is kept."),
	runtimeRule("template.spec.network", "", Dropped, "Processes find addresses in variables, and by $(ROLE.INDEX.host)."),
	runtimeRule("template.spec.replicatedJobs[].name", "gang.roles[].name", Kept, "Of node, which becomes worker. The others have no "+
		"counterpart: a launcher's command "+
		"runs beside the ranks of worker 0, and initializers are refused in the TrainJob."),
	runtimeRule("template.spec.replicatedJobs[].dependsOn", "", Dropped, jobSetText),
	runtimeRule("template.spec.replicatedJobs[].groupName", "", Dropped, jobSetText),
	runtimeRule("template.spec.replicatedJobs[].replicas", "", Dropped, "numNodes is the number of replicas."),
	runtimeRule("template.spec.replicatedJobs[].template.metadata", "", Dropped, "A gang is no Job."),
	runtimeRule("template.spec.replicatedJobs[].template.spec.activeDeadlineSeconds", "", Dropped, "activeDeadlineSeconds of the "+
		"TrainJob is kept."),
	runtimeRule("template.spec.replicatedJobs[].template.spec.backoffLimit", "gang.maxRestarts", Kept, restartText),
	runtimeRule("template.spec.replicatedJobs[].template.spec.backoffLimitPerIndex", "", Dropped, jobSetText),
	runtimeRule("template.spec.replicatedJobs[].template.spec.completionMode", "", Dropped, jobSetText),
	runtimeRule("template.spec.replicatedJobs[].template.spec.completions", "", Dropped, "numNodes is the number of replicas."),
	runtimeRule("template.spec.replicatedJobs[].template.spec.managedBy", "", Dropped, "managedBy of the TrainJob is kept."),
	runtimeRule("template.spec.replicatedJobs[].template.spec.manualSelector", "", Dropped, jobSetText),
	runtimeRule("template.spec.replicatedJobs[].template.spec.maxFailedIndexes", "", Dropped, jobSetText),
	runtimeRule("template.spec.replicatedJobs[].template.spec.parallelism", "", Dropped, "numNodes is the number of replicas."),
	runtimeRule("template.spec.replicatedJobs[].template.spec.podFailurePolicy", "", Dropped, "retry.onExitCodes says after which "+
		"codes a gang restarts."),
	runtimeRule("template.spec.replicatedJobs[].template.spec.podReplacementPolicy", "", Dropped, jobSetText),
	runtimeRule("template.spec.replicatedJobs[].template.spec.selector", "", Dropped, jobSetText),
	runtimeRule("template.spec.replicatedJobs[].template.spec.successPolicy", "", Dropped, "Each process must end with 0; "+
		"successPolicy of a role says otherwise."),
	runtimeRule("template.spec.replicatedJobs[].template.spec.suspend", "", Dropped, "suspend of the TrainJob is kept."),
	runtimeRule("template.spec.replicatedJobs[].template.spec.template", "clusterTemplate.spec.workerGroups[].template", Kept, gangTemplateText),
	runtimeRule("template.spec.replicatedJobs[].template.spec.ttlSecondsAfterFinished", "", Dropped, "Set ttlSecondsAfterFinished of "+
		"the ClusterJob."),
	runtimeRule("template.spec.startupPolicy", "", Dropped, jobSetText),
	runtimeRule("template.spec.successPolicy", "", Dropped, "Each process must end with 0; successPolicy of a role says otherwise."),
	runtimeRule("template.spec.suspend", "", Dropped, "suspend of the TrainJob is kept."),
	runtimeRule("template.spec.ttlSecondsAfterFinished", "", Dropped, "Set ttlSecondsAfterFinished of the ClusterJob."),
	runtimeRule("template.spec.volumeClaimPolicies", "", Dropped, claimText),
}

// runtimeRule is a rule about a field of a runtime, and all below it.
func runtimeRule(path, to string, verdict Verdict, text string) Rule {
	return Rule{Kind: kindRuntime, Path: "spec." + path, To: to, Verdict: verdict, Text: text, Whole: true,
		Differs: text == claimText}
}

// trainingRuntime converts a runtime to no object, as the TrainJobs that name it take its content.
func trainingRuntime(c *conversion) runtime.Object {
	c.note(Row{Path: "kind", Verdict: Dropped,
		Text: "a ClusterJob refers to no runtime; TrainJobs that are converted together with this one take what it says"})
	c.tell(kindRuntime, c.from.Object["spec"])
	return nil
}

// runtimeOf finds the runtime that a TrainJob refers to: one that is given, and else a standard one.
func (t trainPart) runtimeOf(ref *runtimeRef) (*runtimePart, bool) {
	kind := ref.Kind
	if kind == "" {
		kind = kindClusterRuntime
	}
	for _, given := range t.options.Kubeflow.Runtimes {
		isHere := kind == kindClusterRuntime || given.GetNamespace() == t.meta.Namespace || given.GetNamespace() == ""
		if given.GetKind() == kind && given.GetName() == ref.Name && isHere {
			return t.readRuntime(given)
		}
	}
	framework, isStandard := standardRuntimes[ref.Name]
	if !isStandard {
		t.refuse("spec.runtimeRef", fmt.Sprintf("the %s %s is not among what is converted; give it by -f too, or list live TrainJobs of "+
			"the cluster "+
			"that has it", kind, ref.Name))
		return nil, false
	}
	return &runtimePart{
		framework: framework, nodes: 1, restart: restartOnFailure, restarts: restartsOfJob,
		template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: containerNode}}}},
	}, true
}

// readRuntime reads what a TrainJob takes of a runtime.
func (t trainPart) readRuntime(given *unstructured.Unstructured) (*runtimePart, bool) {
	var spec runtimeSpec
	text, err := json.Marshal(given.Object["spec"])
	if err == nil {
		err = json.Unmarshal(text, &spec)
	}
	if err != nil {
		t.refuse("spec.runtimeRef", fmt.Sprintf("the runtime %s cannot be read; correct it: %s", given.GetName(), firstLine(err.Error())))
		return nil, false
	}
	made := &runtimePart{framework: v1beta1.FrameworkGeneric, nodes: 1, restart: restartOnFailure, restarts: restartsOfJob}
	policy := &spec.MLPolicy
	switch {
	case policy.Flux != nil:
		t.refuse("spec.runtimeRef", "the runtime starts processes by Flux, which a gang does not have; use one with mpi or torch")
		return nil, false
	case policy.Torch != nil:
		made.framework = v1beta1.FrameworkPyTorch
		if number := policy.Torch.NumProcPerNode; number != nil {
			made.perNode = number.String()
		}
	case policy.MPI != nil:
		made.framework = v1beta1.FrameworkMPI
		if number := policy.MPI.NumProcPerNode; number != nil {
			made.perNode = number.String()
		}
	case policy.JAX != nil:
		made.framework = v1beta1.FrameworkJAX
	case policy.XGBoost != nil:
		made.framework = v1beta1.FrameworkXGBoost
	}
	if policy.NumNodes != nil {
		made.nodes = *policy.NumNodes
	}
	return made, t.takeReplicatedJobs(given.GetName(), &spec, made)
}

// takeReplicatedJobs takes the pod template of the nodes, and of MPI the launcher's command.
func (t trainPart) takeReplicatedJobs(name string, spec *runtimeSpec, made *runtimePart) bool {
	found := false
	for _, job := range spec.Template.Spec.ReplicatedJobs {
		of := &job.Template.Spec
		switch {
		case job.Name == containerNode:
			found = true
			made.template = of.Template
			if of.BackoffLimit != nil {
				made.restarts = *of.BackoffLimit
			}
			if of.Template.Spec.RestartPolicy == corev1.RestartPolicyNever {
				made.restart = restartNever
			}
		case strings.HasSuffix(job.Name, "-initializer"):
			t.refuse("spec.runtimeRef", fmt.Sprintf("the runtime %s has the initializer %s: %s", name, job.Name, strings.TrimSuffix(initializerText, ".")))
		}
	}
	if !found {
		t.refuse("spec.runtimeRef", fmt.Sprintf("the runtime %s has no replicated job node, whose pods run the program; name it so", name))
		return false
	}
	if more := spec.Template.Spec.FailurePolicy.MaxRestarts; more > 0 {
		made.restart, made.restarts = restartOnFailure, made.restarts+more
	}
	if made.framework == v1beta1.FrameworkMPI {
		t.takeLauncherOf(spec, made)
	}
	return true
}

// takeLauncherOf takes command and variables of a runtime's launcher in place of what its nodes run, which is sshd.
func (t trainPart) takeLauncherOf(spec *runtimeSpec, made *runtimePart) {
	var launcher corev1.Container
	for _, job := range spec.Template.Spec.ReplicatedJobs {
		for _, one := range job.Template.Spec.Template.Spec.Containers {
			if job.Name == "launcher" && one.Name == containerNode {
				launcher = one
			}
		}
	}
	for i := range made.template.Spec.Containers {
		if one := &made.template.Spec.Containers[i]; one.Name == containerNode {
			one.Command, one.Args = launcher.Command, launcher.Args
			one.Env = slices.Concat(one.Env, launcher.Env)
		}
	}
}
