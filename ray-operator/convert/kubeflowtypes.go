package convert

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The specs of Kubeflow's jobs, as far as they say something that matters here. Fields of former versions stand beside those of
// the last one.

// jobPolicy is what each job of kubeflow.org says of its run: in runPolicy, or beside that as former versions have it.
type jobPolicy struct {
	RunPolicy runPolicy `json:"runPolicy,omitempty"`
	formerPolicy
}

// formerPolicy has the fields that stood in the spec before runPolicy had them.
type formerPolicy struct {
	ActiveDeadlineSeconds   *int64  `json:"activeDeadlineSeconds,omitempty"`
	BackoffLimit            *int32  `json:"backoffLimit,omitempty"`
	CleanPodPolicy          ignored `json:"cleanPodPolicy,omitempty"`
	TTLSecondsAfterFinished *int32  `json:"ttlSecondsAfterFinished,omitempty"`
}

type runPolicy struct {
	formerPolicy
	Suspend          bool             `json:"suspend,omitempty"`
	ManagedBy        string           `json:"managedBy,omitempty"`
	SchedulingPolicy schedulingPolicy `json:"schedulingPolicy,omitempty"`
}

type schedulingPolicy struct {
	MinAvailable           ignored `json:"minAvailable,omitempty"`
	Queue                  string  `json:"queue,omitempty"`
	MinResources           ignored `json:"minResources,omitempty"`
	PriorityClass          string  `json:"priorityClass,omitempty"`
	ScheduleTimeoutSeconds ignored `json:"scheduleTimeoutSeconds,omitempty"`
}

// replicaSpecs are the roles of a job.
type replicaSpecs map[string]*replicaSpec

type replicaSpec struct {
	Replicas      *int32      `json:"replicas,omitempty"`
	RestartPolicy string      `json:"restartPolicy,omitempty"`
	Template      podTemplate `json:"template,omitempty"`
}

// podTemplate is a pod template as manifests have it: some with the kind of a pod, which Kubernetes leaves out.
type podTemplate struct {
	corev1.PodTemplateSpec `json:",inline"`
	APIVersion             ignored `json:"apiVersion,omitempty"`
	Kind                   ignored `json:"kind,omitempty"`
}

type tfJobSpec struct {
	jobPolicy
	Roles               replicaSpecs `json:"tfReplicaSpecs,omitempty"`
	SuccessPolicy       string       `json:"successPolicy,omitempty"`
	EnableDynamicWorker ignored      `json:"enableDynamicWorker,omitempty"`
}

func (s *tfJobSpec) parts() (*jobPolicy, replicaSpecs) { return &s.jobPolicy, s.Roles }

type pyTorchJobSpec struct {
	jobPolicy
	Roles         replicaSpecs   `json:"pytorchReplicaSpecs,omitempty"`
	ElasticPolicy *elasticPolicy `json:"elasticPolicy,omitempty"`
	NprocPerNode  string         `json:"nprocPerNode,omitempty"`
}

func (s *pyTorchJobSpec) parts() (*jobPolicy, replicaSpecs) { return &s.jobPolicy, s.Roles }

// elasticPolicy is of PyTorchJobs and PaddleJobs.
type elasticPolicy struct {
	MinReplicas  *int32  `json:"minReplicas,omitempty"`
	MaxReplicas  *int32  `json:"maxReplicas,omitempty"`
	NProcPerNode *int32  `json:"nProcPerNode,omitempty"`
	RDZVBackend  ignored `json:"rdzvBackend,omitempty"`
	RDZVPort     ignored `json:"rdzvPort,omitempty"`
	RDZVHost     ignored `json:"rdzvHost,omitempty"`
	RDZVID       ignored `json:"rdzvId,omitempty"`
	RDZVConf     ignored `json:"rdzvConf,omitempty"`
	Standalone   ignored `json:"standalone,omitempty"`
	MaxRestarts  ignored `json:"maxRestarts,omitempty"`
	Metrics      ignored `json:"metrics,omitempty"`
}

type xgBoostJobSpec struct {
	jobPolicy
	Roles replicaSpecs `json:"xgbReplicaSpecs,omitempty"`
}

func (s *xgBoostJobSpec) parts() (*jobPolicy, replicaSpecs) { return &s.jobPolicy, s.Roles }

type jaxJobSpec struct {
	jobPolicy
	Roles replicaSpecs `json:"jaxReplicaSpecs,omitempty"`
}

func (s *jaxJobSpec) parts() (*jobPolicy, replicaSpecs) { return &s.jobPolicy, s.Roles }

type paddleJobSpec struct {
	jobPolicy
	Roles         replicaSpecs   `json:"paddleReplicaSpecs,omitempty"`
	ElasticPolicy *elasticPolicy `json:"elasticPolicy,omitempty"`
}

func (s *paddleJobSpec) parts() (*jobPolicy, replicaSpecs) { return &s.jobPolicy, s.Roles }

type mxJobSpec struct {
	jobPolicy
	Roles   replicaSpecs `json:"mxReplicaSpecs,omitempty"`
	JobMode string       `json:"jobMode,omitempty"`
}

func (s *mxJobSpec) parts() (*jobPolicy, replicaSpecs) { return &s.jobPolicy, s.Roles }

type mpiJobSpec struct {
	jobPolicy
	Roles                  replicaSpecs `json:"mpiReplicaSpecs,omitempty"`
	SlotsPerWorker         *int32       `json:"slotsPerWorker,omitempty"`
	MainContainer          string       `json:"mainContainer,omitempty"`
	RunLauncherAsWorker    bool         `json:"runLauncherAsWorker,omitempty"`
	SSHAuthMountPath       ignored      `json:"sshAuthMountPath,omitempty"`
	LauncherCreationPolicy ignored      `json:"launcherCreationPolicy,omitempty"`
	MPIImplementation      string       `json:"mpiImplementation,omitempty"`

	formerMPI
}

func (s *mpiJobSpec) parts() (*jobPolicy, replicaSpecs) { return &s.jobPolicy, s.Roles }

// formerMPI are the fields of v1alpha1, where one template is that of launcher and workers.
type formerMPI struct {
	GPUs                   *int32                  `json:"gpus,omitempty"`
	GPUsInCapitals         *int32                  `json:"GPUs,omitempty"`
	GPUsPerNode            *int32                  `json:"gpusPerNode,omitempty"`
	ProcessingUnits        *int32                  `json:"processingUnits,omitempty"`
	ProcessingUnitsPerNode *int32                  `json:"processingUnitsPerNode,omitempty"`
	ProcessingResourceType string                  `json:"processingResourceType,omitempty"`
	LauncherOnMaster       ignored                 `json:"launcherOnMaster,omitempty"`
	Replicas               *int32                  `json:"replicas,omitempty"`
	Template               *corev1.PodTemplateSpec `json:"template,omitempty"`
}

type trainJobSpec struct {
	RuntimeRef            runtimeRef     `json:"runtimeRef,omitempty"`
	Initializer           ignored        `json:"initializer,omitempty"`
	Trainer               trainer        `json:"trainer,omitempty"`
	RuntimePatches        []runtimePatch `json:"runtimePatches,omitempty"`
	Suspend               bool           `json:"suspend,omitempty"`
	ActiveDeadlineSeconds *int64         `json:"activeDeadlineSeconds,omitempty"`
	ManagedBy             string         `json:"managedBy,omitempty"`
}

type runtimeRef struct {
	Name     string  `json:"name,omitempty"`
	APIGroup ignored `json:"apiGroup,omitempty"`
	Kind     string  `json:"kind,omitempty"`
}

type trainer struct {
	Image            string                       `json:"image,omitempty"`
	Command          []string                     `json:"command,omitempty"`
	Args             []string                     `json:"args,omitempty"`
	Env              []corev1.EnvVar              `json:"env,omitempty"`
	NumNodes         *int32                       `json:"numNodes,omitempty"`
	NumProcPerNode   *intstr.IntOrString          `json:"numProcPerNode,omitempty"`
	ResourcesPerNode *corev1.ResourceRequirements `json:"resourcesPerNode,omitempty"`
}

type runtimePatch struct {
	Manager string  `json:"manager,omitempty"`
	Time    ignored `json:"time,omitempty"`
	Spec    struct {
		Template struct {
			Metadata ignored `json:"metadata,omitempty"`
			Spec     struct {
				ReplicatedJobs []patchedJob `json:"replicatedJobs,omitempty"`
			} `json:"spec,omitempty"`
		} `json:"template,omitempty"`
	} `json:"trainingRuntimeSpec,omitempty"`
}

type patchedJob struct {
	Name     string `json:"name,omitempty"`
	Template struct {
		Metadata ignored `json:"metadata,omitempty"`
		Spec     struct {
			// Template is a part of a pod template, in the form of a strategic merge.
			Template map[string]any `json:"template,omitempty"`
		} `json:"spec,omitempty"`
	} `json:"template,omitempty"`
}

type mlTrainingJobSpec struct {
	Framework string   `json:"framework,omitempty"`
	Replicas  *int32   `json:"replicas,omitempty"`
	Image     string   `json:"image,omitempty"`
	Command   []string `json:"command,omitempty"`
	Args      []string `json:"args,omitempty"`
	Resources struct {
		GPU    *resource.Quantity `json:"gpu,omitempty"`
		CPU    *resource.Quantity `json:"cpu,omitempty"`
		Memory *resource.Quantity `json:"memory,omitempty"`
	} `json:"resources,omitempty"`
	Hyperparameters map[string]any `json:"hyperparameters,omitempty"`
	CheckpointPath  string         `json:"checkpointPath,omitempty"`
	AutoTuning      autoTuning     `json:"autoTuning,omitempty"`
}

// autoTuning is the search of an MLTrainingJob, as articles write it.
type autoTuning struct {
	Enabled        *bool                    `json:"enabled,omitempty"`
	Algorithm      string                   `json:"algorithm,omitempty"`
	MaxTrials      *int32                   `json:"maxTrials,omitempty"`
	ParallelTrials *int32                   `json:"parallelTrials,omitempty"`
	Objective      string                   `json:"objective,omitempty"`
	Parameters     map[string]tunedVariable `json:"parameters,omitempty"`
}

// tunedVariable is a parameter of a search, whose numbers are numbers or texts.
type tunedVariable struct {
	Type   string `json:"type,omitempty"`
	Min    any    `json:"min,omitempty"`
	Max    any    `json:"max,omitempty"`
	Step   any    `json:"step,omitempty"`
	Scale  string `json:"scale,omitempty"`
	Values []any  `json:"values,omitempty"`
}
