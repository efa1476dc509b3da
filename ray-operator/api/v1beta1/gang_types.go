package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GangFramework is the framework whose programs a gang runs.
//
// +kubebuilder:validation:Enum=PyTorch;TensorFlow;JAX;XGBoost;MPI;Spark;Generic
type GangFramework string

// Frameworks of a gang.
const (
	FrameworkPyTorch    GangFramework = "PyTorch"
	FrameworkTensorFlow GangFramework = "TensorFlow"
	FrameworkJAX        GangFramework = "JAX"
	FrameworkXGBoost    GangFramework = "XGBoost"
	FrameworkMPI        GangFramework = "MPI"
	FrameworkSpark      GangFramework = "Spark"
	FrameworkGeneric    GangFramework = "Generic"
)

// Roles that frameworks have. With Generic, any name is one.
const (
	GangRoleMaster    = "master"
	GangRoleChief     = "chief"
	GangRoleWorker    = "worker"
	GangRolePS        = "ps"
	GangRoleEvaluator = "evaluator"
	GangRoleLauncher  = "launcher"
	GangRoleDriver    = "driver"
	GangRoleExecutor  = "executor"
)

// GangPlacement is how the replicas of a gang are spread over nodes.
//
// +kubebuilder:validation:Enum=Pack;Spread;StrictPack;StrictSpread
type GangPlacement string

// Placements of a gang.
const (
	// PlacementPack: on as few nodes as possible.
	PlacementPack GangPlacement = "Pack"
	// PlacementSpread: on as many nodes as possible.
	PlacementSpread GangPlacement = "Spread"
	// PlacementStrictPack: all on one node.
	PlacementStrictPack GangPlacement = "StrictPack"
	// PlacementStrictSpread: each on a node of its own.
	PlacementStrictSpread GangPlacement = "StrictSpread"
)

// GangOutput selects the processes whose output becomes the output of the job.
//
// +kubebuilder:validation:Enum=First;All
type GangOutput string

// Outputs of a gang.
const (
	// OutputFirst: the process of rank 0.
	OutputFirst GangOutput = "First"
	// OutputAll: all processes, with the name of the process in front of each line.
	OutputAll GangOutput = "All"
)

// RoleStart is how often the command of a role runs in each replica.
//
// +kubebuilder:validation:Enum=PerProcess;PerReplica
type RoleStart string

// Starts of a role.
const (
	// StartPerProcess: once for each process.
	StartPerProcess RoleStart = "PerProcess"
	// StartPerReplica: once for each replica. The program starts the processes itself, as torchrun does.
	StartPerReplica RoleStart = "PerReplica"
)

// SuccessPolicy selects the processes of a role that must end with exit code 0 before the gang succeeds.
//
// +kubebuilder:validation:Enum=All;First;Ignore
type SuccessPolicy string

// Success policies of a role.
const (
	// SuccessAll: each process.
	SuccessAll SuccessPolicy = "All"
	// SuccessFirst: process 0. The others are stopped when the gang has succeeded.
	SuccessFirst SuccessPolicy = "First"
	// SuccessIgnore: none. All are stopped when the gang has succeeded.
	SuccessIgnore SuccessPolicy = "Ignore"
)

// Gang makes a job a gang: processes that are placed all or none, start together, end together and restart together.
//
// +kubebuilder:validation:XValidation:rule="self.framework == 'Generic' || self.roles.all(r, r.name in (self.framework in ['PyTorch', 'XGBoost'] ? ['master', 'worker'] : self.framework == 'TensorFlow' ? ['chief', 'master', 'worker', 'ps', 'evaluator'] : self.framework == 'MPI' ? ['launcher', 'worker'] : self.framework == 'Spark' ? ['driver', 'executor'] : ['worker']))",message="each role must be one of its framework: PyTorch and XGBoost have master and worker, TensorFlow has chief, master, worker, ps and evaluator, JAX has worker, MPI has launcher and worker, Spark has driver and executor; use one of these, or framework Generic",fieldPath=".roles"
// +heliostat:rule=gang-role
// +kubebuilder:validation:XValidation:rule="self.framework == 'Generic' || self.roles.filter(r, r.name in ['chief', 'master', 'launcher']).size() <= 1",message="a gang must have at most one of chief, master and launcher; remove one of the roles",fieldPath=".roles"
// +heliostat:rule=gang-first
// +kubebuilder:validation:XValidation:rule="self.framework == 'Generic' || self.roles.all(r, !(r.name in ['chief', 'master', 'launcher', 'driver']) || r.replicas == 1 && (r.processesPerReplica == 1 || self.framework in ['PyTorch', 'XGBoost']))",message="chief, master, launcher and driver must have one replica, and one process with TensorFlow, MPI and Spark; lower replicas or processesPerReplica",fieldPath=".roles"
// +heliostat:rule=gang-first-one
// +kubebuilder:validation:XValidation:rule="self.framework != 'MPI' || self.roles.exists(r, r.name == 'worker')",message="with MPI, a gang must have the role worker, whose processes are the ranks; add it",fieldPath=".roles"
// +heliostat:rule=gang-mpi-worker
// +kubebuilder:validation:XValidation:rule="self.framework != 'MPI' || !self.roles.exists(r, r.name == 'launcher') || self.roles.all(r, r.name == 'launcher' || !(has(r.command) || has(r.entrypoint)))",message="with MPI, only the launcher's command runs; move command or entrypoint from worker to launcher",fieldPath=".roles"
// +heliostat:rule=gang-mpi-command
// +kubebuilder:validation:XValidation:rule="self.framework != 'MPI' || self.roles.all(r, !has(r.successPolicy))",message="with MPI, the command alone decides on success; leave successPolicy out",fieldPath=".roles"
// +heliostat:rule=gang-mpi-success
// +kubebuilder:validation:XValidation:rule="self.framework != 'Spark' || self.roles.size() >= 2",message="with Spark, a gang must have the roles driver and executor; add the one that is missing",fieldPath=".roles"
// +heliostat:rule=gang-spark-roles
// +kubebuilder:validation:XValidation:rule="self.framework != 'Spark' || self.roles.all(r, r.name != 'executor' || r.processesPerReplica == 1 && !has(r.command) && !has(r.entrypoint))",message="with Spark, each place of an executor must have one process, Spark's own; leave processesPerReplica, command and entrypoint out",fieldPath=".roles"
// +heliostat:rule=gang-spark-executor
// +kubebuilder:validation:XValidation:rule="self.framework != 'Spark' || self.roles.all(r, !has(r.successPolicy))",message="with Spark, the driver's command alone decides on success; leave successPolicy out",fieldPath=".roles"
// +heliostat:rule=gang-spark-success
// +kubebuilder:validation:XValidation:rule="self.framework == 'MPI' || self.roles.exists(r, has(r.successPolicy) ? r.successPolicy != 'Ignore' : r.name != 'ps' && !(self.framework in ['TensorFlow', 'XGBoost'] && r.name == 'worker' && self.roles.exists(o, o.name in ['chief', 'master'])))",message="the success of a gang must depend on at least one role; set successPolicy All or First in one of them",fieldPath=".roles"
// +heliostat:rule=gang-success
// +kubebuilder:validation:XValidation:rule="self.framework in ['PyTorch', 'Generic'] || self.roles.all(r, r.start == 'PerProcess')",message="start PerReplica must be used with PyTorch and Generic only; leave start out",fieldPath=".roles"
// +heliostat:rule=gang-start
// +kubebuilder:validation:XValidation:rule="self.roles.filter(r, has(r.minReplicas)).size() <= 1",message="minReplicas must be set in one role only; remove it from the others",fieldPath=".roles"
// +heliostat:rule=gang-min-one
// +kubebuilder:validation:XValidation:rule="!(self.placement in ['StrictPack', 'StrictSpread']) || self.roles.all(r, !has(r.minReplicas))",message="minReplicas must not be used with StrictPack or StrictSpread, which place all replicas or none; use Pack or Spread, or leave minReplicas out",fieldPath=".roles"
// +heliostat:rule=gang-min-strict
// +kubebuilder:validation:XValidation:rule="self.roles.map(r, r.replicas).sum() <= 1024",message="a gang must have at most 1024 replicas, all roles together; lower replicas",fieldPath=".roles"
// +heliostat:rule=gang-replicas
// +kubebuilder:validation:XValidation:rule="self.roles.map(r, r.replicas * r.processesPerReplica).sum() <= 4096",message="a gang must have at most 4096 processes, all roles together; lower replicas or processesPerReplica",fieldPath=".roles"
// +heliostat:rule=gang-processes
type Gang struct {
	// framework decides which roles there are, which variables each process finds, and what success is.
	// +required
	Framework GangFramework `json:"framework,omitempty"`

	// maxRestarts is how often all processes may start again within an attempt after one of them failed. Restarts after the loss of a node count towards the limits of retry instead. Default: 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	MaxRestarts int32 `json:"maxRestarts,omitempty"`

	// gracePeriodSeconds is the time from SIGTERM to SIGKILL for processes that must end. Default: 30.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:default=30
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// gatherTimeoutSeconds is how long a restart or a later attempt may wait for places. Then all places are released, and the attempt ends. The first wait is limited by startDeadlineSeconds instead. Default: 600.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	// +kubebuilder:default=600
	// +optional
	GatherTimeoutSeconds int32 `json:"gatherTimeoutSeconds,omitempty"`

	// minReplicasAfterSeconds is how long a gang with minReplicas waits for further replicas before it starts with fewer. Default: 300.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	// +kubebuilder:default=300
	// +optional
	MinReplicasAfterSeconds *int32 `json:"minReplicasAfterSeconds,omitempty"`

	// placement is how replicas are spread over nodes: Pack on few, Spread on many, StrictPack on one, StrictSpread each on its own. Default: Pack.
	// +kubebuilder:default=Pack
	// +optional
	Placement GangPlacement `json:"placement,omitempty"`

	// output selects the processes whose output becomes the output of the job: First selects rank 0, All selects every process and puts its name in front of each line. Default: First.
	// +kubebuilder:default=First
	// +optional
	Output GangOutput `json:"output,omitempty"`

	// roles are the kinds of processes. Ranks follow the order of roles, but a master or chief has rank 0.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +required
	Roles []GangRole `json:"roles,omitempty"`
}

// GangRole is a kind of processes of a gang.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || self.minReplicas <= self.replicas",message="minReplicas of a role must not be above its replicas; lower it or raise replicas",fieldPath=".minReplicas"
// +heliostat:rule=role-min
// +kubebuilder:validation:XValidation:rule="!has(self.command) || !has(self.entrypoint)",message="a role must not have two programs to run; keep one of entrypoint and command",fieldPath=".command"
// +heliostat:rule=role-what
type GangRole struct {
	// name of the role: master or worker for PyTorch and XGBoost; chief or master, worker, ps or evaluator for TensorFlow; worker for JAX; launcher or worker for MPI; driver or executor for Spark; any for Generic.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a role's name must be lower-case letters, digits and '-', with a letter or digit first and last; choose such a name"
	// +heliostat:rule=role-name
	// +required
	Name string `json:"name,omitempty"`

	// replicas is the number of places for this role. Default: 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	// +kubebuilder:default=1
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// minReplicas is the smallest number of places with which a round may start. At most one role may set it. Executors of Spark join later, up to replicas. Default: replicas.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	// +optional
	MinReplicas int32 `json:"minReplicas,omitempty"`

	// processesPerReplica is the number of processes in each place. Default: 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	// +kubebuilder:default=1
	// +optional
	ProcessesPerReplica int32 `json:"processesPerReplica,omitempty"`

	// start is how often the command runs in each place: PerProcess once a process, PerReplica once, for programs such as torchrun that start the processes themselves. Default: PerProcess.
	// +kubebuilder:default=PerProcess
	// +optional
	Start RoleStart `json:"start,omitempty"`

	// resources are the Ray resources that each place reserves, with the keys of rayResources.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(name, !(name in ['', 'object_store_memory', 'bundle']) && !name.startsWith('node:'))",message="a resource of a role must not be named object_store_memory, bundle or node:..., or have an empty name; choose another name"
	// +heliostat:rule=role-resource-own
	// +kubebuilder:validation:XValidation:rule="self.all(name, !(name in ['cpu', 'gpu', 'tpu', 'google.com/tpu']) && !name.endsWith('/gpu'))",message="a resource of a role must have Ray's name, not that of Kubernetes; write CPU, GPU or TPU"
	// +heliostat:rule=role-resource-kubernetes
	// +kubebuilder:validation:XValidation:rule="self.all(name, sign(quantity(string(self[name]))) >= 0)",message="a resource of a role must not be negative; give 0 or more"
	// +heliostat:rule=role-resource-negative
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self.exists(name, sign(quantity(string(self[name]))) != 0)",message="a role must reserve at least one resource; set one above 0, such as CPU"
	// +heliostat:rule=role-resource-none
	// +kubebuilder:validation:XValidation:rule="self.all(name, sign(quantity(string(self[name]))) < 0 || (!quantity(string(self[name])).isGreaterThan(quantity('100T')) && (name != 'memory' || quantity(string(self[name])).isInteger()) && [quantity(string(self[name])).asApproximateFloat() * 10000.0].all(steps, steps - double(int(steps + 0.5)) < 0.01 && double(int(steps + 0.5)) - steps < 0.01)))",message="a resource of a role must be a multiple of 0.0001 up to 100T, and memory a whole number of bytes; round it"
	// +heliostat:rule=role-resource-step
	// +kubebuilder:validation:XValidation:rule="['GPU', 'TPU'].all(name, !(name in self) || quantity(string(self[name])).isInteger() || quantity(string(self[name])).isLessThan(quantity('1')))",message="GPU and TPU above 1 must be whole numbers, because Ray splits one device only; round the number"
	// +heliostat:rule=role-resource-device
	// +required
	Resources map[string]resource.Quantity `json:"resources,omitempty"`

	// labelSelector selects the Ray nodes that may hold the places, by their labels.
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	LabelSelector map[string]string `json:"labelSelector,omitempty"`

	// command is a program with its arguments, run without a shell. $(ROLE.FIELD) is replaced. Default: the job's command or entrypoint.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=32768
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self[0] != ''",message="the first element of command must be the program; name it there"
	// +heliostat:rule=command-program
	// +listType=atomic
	// +optional
	Command []string `json:"command,omitempty"`

	// entrypoint is a shell command line instead of command.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	// +kubebuilder:validation:XValidation:rule="self == '' || self.trim() != ''",message="entrypoint must not be blank; give a shell line, such as python train.py"
	// +heliostat:rule=entrypoint-blank
	// +optional
	Entrypoint string `json:"entrypoint,omitempty"`

	// env is the environment of the role's processes, in addition to the job's env, which it overrides. It takes values only.
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:XValidation:rule="self.all(e, !has(e.valueFrom))",message="valueFrom must not be used in a role; use the job's env with clusterTemplate, or env in the template of a worker group"
	// +heliostat:rule=role-variable-source
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// successPolicy selects the processes that must end with exit code 0: All, First (process 0) or Ignore. It must not be set with MPI and Spark, where the command decides. Default: Ignore for ps, and for workers of TensorFlow or XGBoost beside a chief or master; First for other workers of TensorFlow; else All.
	// +optional
	SuccessPolicy SuccessPolicy `json:"successPolicy,omitempty"`
}

// GangStatus is the observed state of a job's gang, in its current or last attempt.
type GangStatus struct {
	// restarts is how often all processes started again within the attempt.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Restarts int32 `json:"restarts"`
	// replicas is the number of places that the current round has or waits for.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas int32 `json:"replicas"`
	// ready is how many of these places are ready.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Ready int32 `json:"ready"`
	// lastRestart describes why the last round ended. Empty before a round ended.
	// +optional
	LastRestart *GangRestart `json:"lastRestart,omitempty"`
	// page is where the program serves a page of its own while it runs: that of Spark's application.
	// +optional
	Page *GangPage `json:"page,omitempty"`
}

// GangPage is where a gang serves a page. It is what the gang says, so that any code on the cluster can write it.
type GangPage struct {
	// podName is the pod of the cluster that has it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	PodName string `json:"podName,omitempty"`
	// port is the port in that pod.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int32 `json:"port,omitempty"`
}

// GangRestart is why a round of a gang ended.
type GangRestart struct {
	// restartTime is when the round ended.
	// +optional
	RestartTime *metav1.Time `json:"restartTime,omitempty"`
	// replica is the process that ended first, or the place that was lost, such as worker/3.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Replica string `json:"replica,omitempty"`
	// reason is the code of why the round ended.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Reason string `json:"reason,omitempty"`
	// message explains the reason.
	// +kubebuilder:validation:MaxLength=32768
	// +kubebuilder:validation:MinLength=1
	// +optional
	Message string `json:"message,omitempty"`
}
