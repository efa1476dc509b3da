package convert

import (
	corev1 "k8s.io/api/core/v1"
)

// sparkSpec is the spec of a SparkApplication, as far as it says something that matters here.
type sparkSpec struct {
	Type                  string            `json:"type,omitempty"`
	Mode                  ignored           `json:"mode,omitempty"`
	SparkVersion          ignored           `json:"sparkVersion,omitempty"`
	PythonVersion         ignored           `json:"pythonVersion,omitempty"`
	ProxyUser             string            `json:"proxyUser,omitempty"`
	Image                 string            `json:"image,omitempty"`
	ImagePullPolicy       corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	ImagePullSecrets      []string          `json:"imagePullSecrets,omitempty"`
	MainClass             string            `json:"mainClass,omitempty"`
	MainApplicationFile   string            `json:"mainApplicationFile,omitempty"`
	Arguments             []string          `json:"arguments,omitempty"`
	SparkConf             map[string]string `json:"sparkConf,omitempty"`
	HadoopConf            map[string]string `json:"hadoopConf,omitempty"`
	SparkConfigMap        string            `json:"sparkConfigMap,omitempty"`
	HadoopConfigMap       string            `json:"hadoopConfigMap,omitempty"`
	Volumes               []corev1.Volume   `json:"volumes,omitempty"`
	Driver                sparkDriver       `json:"driver,omitempty"`
	Executor              sparkExecutor     `json:"executor,omitempty"`
	Deps                  sparkDeps         `json:"deps,omitempty"`
	RestartPolicy         sparkRestarts     `json:"restartPolicy,omitempty"`
	FailureRetries        *int32            `json:"failureRetries,omitempty"`
	RetryInterval         ignored           `json:"retryInterval,omitempty"`
	NodeSelector          map[string]string `json:"nodeSelector,omitempty"`
	MemoryOverheadFactor  string            `json:"memoryOverheadFactor,omitempty"`
	Monitoring            ignored           `json:"monitoring,omitempty"`
	BatchScheduler        string            `json:"batchScheduler,omitempty"`
	BatchSchedulerOptions sparkScheduling   `json:"batchSchedulerOptions,omitempty"`
	TimeToLiveSeconds     *int64            `json:"timeToLiveSeconds,omitempty"`
	DynamicAllocation     sparkAllocation   `json:"dynamicAllocation,omitempty"`
	Suspend               bool              `json:"suspend,omitempty"`
	SparkUIOptions        ignored           `json:"sparkUIOptions,omitempty"`
	DriverIngressOptions  ignored           `json:"driverIngressOptions,omitempty"`
	DisruptionBudget      ignored           `json:"driverPodDisruptionBudget,omitempty"`
}

type sparkDeps struct {
	Jars            []string `json:"jars,omitempty"`
	Files           []string `json:"files,omitempty"`
	PyFiles         []string `json:"pyFiles,omitempty"`
	Packages        []string `json:"packages,omitempty"`
	ExcludePackages []string `json:"excludePackages,omitempty"`
	Repositories    []string `json:"repositories,omitempty"`
	Archives        []string `json:"archives,omitempty"`
}

type sparkRestarts struct {
	Type                 string  `json:"type,omitempty"`
	OnFailureRetries     *int32  `json:"onFailureRetries,omitempty"`
	OnFailureInterval    ignored `json:"onFailureRetryInterval,omitempty"`
	OnSubmissionRetries  ignored `json:"onSubmissionFailureRetries,omitempty"`
	OnSubmissionInterval ignored `json:"onSubmissionFailureRetryInterval,omitempty"`
}

type sparkScheduling struct {
	Queue             string  `json:"queue,omitempty"`
	PriorityClassName string  `json:"priorityClassName,omitempty"`
	Resources         ignored `json:"resources,omitempty"`
}

type sparkAllocation struct {
	Enabled          bool    `json:"enabled,omitempty"`
	InitialExecutors *int32  `json:"initialExecutors,omitempty"`
	MinExecutors     *int32  `json:"minExecutors,omitempty"`
	MaxExecutors     *int32  `json:"maxExecutors,omitempty"`
	ShuffleTracking  ignored `json:"shuffleTrackingEnabled,omitempty"`
	TrackingTimeout  ignored `json:"shuffleTrackingTimeout,omitempty"`
}

// sparkPod is what driver and executor have in common.
type sparkPod struct {
	Template        *corev1.PodTemplateSpec    `json:"template,omitempty"`
	Cores           *int32                     `json:"cores,omitempty"`
	CoreRequest     string                     `json:"coreRequest,omitempty"`
	CoreLimit       string                     `json:"coreLimit,omitempty"`
	Memory          string                     `json:"memory,omitempty"`
	MemoryLimit     string                     `json:"memoryLimit,omitempty"`
	MemoryOverhead  string                     `json:"memoryOverhead,omitempty"`
	JavaOptions     string                     `json:"javaOptions,omitempty"`
	GPU             *sparkGPU                  `json:"gpu,omitempty"`
	Image           string                     `json:"image,omitempty"`
	ConfigMaps      []namedPath                `json:"configMaps,omitempty"`
	Secrets         []namedPath                `json:"secrets,omitempty"`
	EnvVars         map[string]string          `json:"envVars,omitempty"`
	EnvSecretKeys   map[string]secretKey       `json:"envSecretKeyRefs,omitempty"`
	Env             []corev1.EnvVar            `json:"env,omitempty"`
	EnvFrom         []corev1.EnvFromSource     `json:"envFrom,omitempty"`
	Labels          map[string]string          `json:"labels,omitempty"`
	Annotations     map[string]string          `json:"annotations,omitempty"`
	VolumeMounts    []corev1.VolumeMount       `json:"volumeMounts,omitempty"`
	SecurityContext *corev1.SecurityContext    `json:"securityContext,omitempty"`
	Lifecycle       *corev1.Lifecycle          `json:"lifecycle,omitempty"`
	Ports           []corev1.ContainerPort     `json:"ports,omitempty"`
	Sidecars        []corev1.Container         `json:"sidecars,omitempty"`
	ServiceAccount  string                     `json:"serviceAccount,omitempty"`
	PodSecurity     *corev1.PodSecurityContext `json:"podSecurityContext,omitempty"`
	GraceSeconds    *int64                     `json:"terminationGracePeriodSeconds,omitempty"`
	sparkPlace
}

// sparkPlace are fields that a pod has by the same names.
type sparkPlace struct {
	Affinity              *corev1.Affinity     `json:"affinity,omitempty"`
	Tolerations           []corev1.Toleration  `json:"tolerations,omitempty"`
	NodeSelector          map[string]string    `json:"nodeSelector,omitempty"`
	DNSConfig             *corev1.PodDNSConfig `json:"dnsConfig,omitempty"`
	HostAliases           []corev1.HostAlias   `json:"hostAliases,omitempty"`
	HostNetwork           bool                 `json:"hostNetwork,omitempty"`
	SchedulerName         string               `json:"schedulerName,omitempty"`
	InitContainers        []corev1.Container   `json:"initContainers,omitempty"`
	ShareProcessNamespace ignored              `json:"shareProcessNamespace,omitempty"`
	PriorityClassName     string               `json:"priorityClassName,omitempty"`
}

type sparkDriver struct {
	sparkPod
	PodName            ignored `json:"podName,omitempty"`
	KubernetesMaster   ignored `json:"kubernetesMaster,omitempty"`
	ServiceAnnotations ignored `json:"serviceAnnotations,omitempty"`
	ServiceLabels      ignored `json:"serviceLabels,omitempty"`
}

type sparkExecutor struct {
	sparkPod
	Instances           *int32  `json:"instances,omitempty"`
	DeleteOnTermination ignored `json:"deleteOnTermination,omitempty"`
}

type sparkGPU struct {
	Name     string `json:"name,omitempty"`
	Quantity int64  `json:"quantity,omitempty"`
}

// namedPath is a Secret or a ConfigMap, and where the pod mounts it.
type namedPath struct {
	Name       string `json:"name,omitempty"`
	Path       string `json:"path,omitempty"`
	SecretType string `json:"secretType,omitempty"`
}

type secretKey struct {
	Name string `json:"name,omitempty"`
	Key  string `json:"key,omitempty"`
}

// sparkScheduleSpec is the spec of a ScheduledSparkApplication.
type sparkScheduleSpec struct {
	Schedule                  string         `json:"schedule,omitempty"`
	TimeZone                  string         `json:"timeZone,omitempty"`
	Suspend                   bool           `json:"suspend,omitempty"`
	ConcurrencyPolicy         string         `json:"concurrencyPolicy,omitempty"`
	SuccessfulRunHistoryLimit *int32         `json:"successfulRunHistoryLimit,omitempty"`
	FailedRunHistoryLimit     *int32         `json:"failedRunHistoryLimit,omitempty"`
	Template                  map[string]any `json:"template,omitempty"`
}
