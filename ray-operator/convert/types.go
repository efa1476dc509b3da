package convert

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The specs of ray.io/v1, as far as they say something that matters here. What no field of ours follows is kept as it is
// and only looked at for a row; what is not listed at all is unknown to ray.io too.

// ignored is the type of a field that only gets a row.
type ignored = any

type rayClusterSpec struct {
	RayVersion              string             `json:"rayVersion,omitempty"`
	Suspend                 bool               `json:"suspend,omitempty"`
	ManagedBy               string             `json:"managedBy,omitempty"`
	UpgradeStrategy         *rayClusterUpgrade `json:"upgradeStrategy,omitempty"`
	AuthOptions             *rayAuth           `json:"authOptions,omitempty"`
	EnableInTreeAutoscaling bool               `json:"enableInTreeAutoscaling,omitempty"`
	AutoscalerOptions       *rayAutoscaler     `json:"autoscalerOptions,omitempty"`
	HeadServiceAnnotations  map[string]string  `json:"headServiceAnnotations,omitempty"`
	GCSFaultTolerance       *rayStore          `json:"gcsFaultToleranceOptions,omitempty"`
	HistoryServerOptions    ignored            `json:"historyServerOptions,omitempty"`
	NetworkPolicy           *rayNetwork        `json:"networkPolicy,omitempty"`
	TLSOptions              *rayTLS            `json:"tlsOptions,omitempty"`
	HeadGroupSpec           rayHead            `json:"headGroupSpec"`
	WorkerGroupSpecs        []rayWorkerGroup   `json:"workerGroupSpecs,omitempty"`
}

type rayClusterUpgrade struct {
	Type string `json:"type,omitempty"`
}

type rayAuth struct {
	Mode               string `json:"mode,omitempty"`
	SecretName         string `json:"secretName,omitempty"`
	EnableK8sTokenAuth bool   `json:"enableK8sTokenAuth,omitempty"`
}

type rayTLS struct {
	Enabled bool `json:"enabled,omitempty"`
}

type rayAutoscaler struct {
	IdleTimeoutSeconds *int32  `json:"idleTimeoutSeconds,omitempty"`
	UpscalingMode      string  `json:"upscalingMode,omitempty"`
	Version            ignored `json:"version,omitempty"`
	Image              ignored `json:"image,omitempty"`
	ImagePullPolicy    ignored `json:"imagePullPolicy,omitempty"`
	Resources          ignored `json:"resources,omitempty"`
	SecurityContext    ignored `json:"securityContext,omitempty"`
	Env                ignored `json:"env,omitempty"`
	EnvFrom            ignored `json:"envFrom,omitempty"`
	VolumeMounts       ignored `json:"volumeMounts,omitempty"`
	Command            ignored `json:"command,omitempty"`
	Args               ignored `json:"args,omitempty"`
}

type rayStore struct {
	Backend           string         `json:"backend,omitempty"`
	RedisAddress      string         `json:"redisAddress,omitempty"`
	RedisUsername     *rayCredential `json:"redisUsername,omitempty"`
	RedisPassword     *rayCredential `json:"redisPassword,omitempty"`
	ExternalNamespace string         `json:"externalStorageNamespace,omitempty"`
	Storage           *rayVolume     `json:"storage,omitempty"`
}

type rayCredential struct {
	Value     string               `json:"value,omitempty"`
	ValueFrom *corev1.EnvVarSource `json:"valueFrom,omitempty"`
}

type rayVolume struct {
	ClaimName        string                              `json:"claimName,omitempty"`
	Size             *resource.Quantity                  `json:"size,omitempty"`
	StorageClassName *string                             `json:"storageClassName,omitempty"`
	AccessModes      []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty"`
	SubPath          string                              `json:"subPath,omitempty"`
	DeletionPolicy   string                              `json:"deletionPolicy,omitempty"`
}

type rayNetwork struct {
	Mode         string             `json:"mode,omitempty"`
	Head         rayNetworkRules    `json:"head,omitempty"`
	Worker       rayNetworkRules    `json:"worker,omitempty"`
	WorkerGroups []rayNetworkOfPart `json:"workerGroups,omitempty"`
}

type rayNetworkRules struct {
	IngressRules []networkingv1.NetworkPolicyIngressRule `json:"ingressRules,omitempty"`
	EgressRules  []networkingv1.NetworkPolicyEgressRule  `json:"egressRules,omitempty"`
}

type rayNetworkOfPart struct {
	GroupName       string `json:"groupName,omitempty"`
	rayNetworkRules `json:",inline"`
}

// rayNode is what a head and a worker group have in common.
type rayNode struct {
	RayStartParams map[string]string      `json:"rayStartParams,omitempty"`
	Resources      map[string]string      `json:"resources,omitempty"`
	Labels         map[string]string      `json:"labels,omitempty"`
	Template       corev1.PodTemplateSpec `json:"template"`
}

type rayHead struct {
	rayNode        `json:",inline"`
	HeadService    *corev1.Service    `json:"headService,omitempty"`
	ServiceType    corev1.ServiceType `json:"serviceType,omitempty"`
	EnableIngress  bool               `json:"enableIngress,omitempty"`
	IngressOptions *rayIngress        `json:"ingressOptions,omitempty"`
}

type rayIngress struct {
	Host     string                    `json:"host,omitempty"`
	Path     string                    `json:"path,omitempty"`
	PathType networkingv1.PathType     `json:"pathType,omitempty"`
	TLS      []networkingv1.IngressTLS `json:"tls,omitempty"`
}

type rayWorkerGroup struct {
	rayNode            `json:",inline"`
	GroupName          string           `json:"groupName"`
	Replicas           *int32           `json:"replicas,omitempty"`
	MinReplicas        *int32           `json:"minReplicas,omitempty"`
	MaxReplicas        *int32           `json:"maxReplicas,omitempty"`
	NumOfHosts         int32            `json:"numOfHosts,omitempty"`
	IdleTimeoutSeconds *int32           `json:"idleTimeoutSeconds,omitempty"`
	Priority           *int32           `json:"priority,omitempty"`
	Suspend            bool             `json:"suspend,omitempty"`
	ScaleStrategy      rayScaleStrategy `json:"scaleStrategy,omitempty"`
}

type rayScaleStrategy struct {
	WorkersToDelete []string `json:"workersToDelete,omitempty"`
}

type rayCronJobSpec struct {
	JobTemplate rayJobSpec `json:"jobTemplate,omitempty"`
	Schedule    string     `json:"schedule,omitempty"`
	TimeZone    string     `json:"timeZone,omitempty"`
	Suspend     bool       `json:"suspend,omitempty"`
}

type rayJobSpec struct {
	Entrypoint                string            `json:"entrypoint,omitempty"`
	RayClusterSpec            *rayClusterSpec   `json:"rayClusterSpec,omitempty"`
	ClusterSelector           map[string]string `json:"clusterSelector,omitempty"`
	RuntimeEnvYAML            string            `json:"runtimeEnvYAML,omitempty"`
	Metadata                  map[string]string `json:"metadata,omitempty"`
	JobID                     string            `json:"jobId,omitempty"`
	SubmissionMode            string            `json:"submissionMode,omitempty"`
	SubmitterPodTemplate      ignored           `json:"submitterPodTemplate,omitempty"`
	SubmitterConfig           ignored           `json:"submitterConfig,omitempty"`
	EntrypointNumCPUs         *float64          `json:"entrypointNumCpus,omitempty"`
	EntrypointNumGPUs         *float64          `json:"entrypointNumGpus,omitempty"`
	EntrypointResources       string            `json:"entrypointResources,omitempty"`
	BackoffLimit              int32             `json:"backoffLimit,omitempty"`
	ActiveDeadlineSeconds     *int32            `json:"activeDeadlineSeconds,omitempty"`
	PreRunningDeadlineSeconds *int32            `json:"preRunningDeadlineSeconds,omitempty"`
	ShutdownAfterJobFinishes  bool              `json:"shutdownAfterJobFinishes,omitempty"`
	TTLSecondsAfterFinished   *int32            `json:"ttlSecondsAfterFinished,omitempty"`
	DeletionStrategy          *rayDeletion      `json:"deletionStrategy,omitempty"`
	Suspend                   bool              `json:"suspend,omitempty"`
	ManagedBy                 string            `json:"managedBy,omitempty"`
}

type rayDeletion struct {
	DeletionRules []rayDeletionRule `json:"deletionRules,omitempty"`
	OnSuccess     *rayPolicy        `json:"onSuccess,omitempty"`
	OnFailure     *rayPolicy        `json:"onFailure,omitempty"`
}

type rayPolicy struct {
	Policy string `json:"policy,omitempty"`
}

type rayDeletionRule struct {
	Policy    string `json:"policy"`
	Condition struct {
		JobStatus           string `json:"jobStatus,omitempty"`
		JobDeploymentStatus string `json:"jobDeploymentStatus,omitempty"`
		TTLSeconds          int32  `json:"ttlSeconds,omitempty"`
	} `json:"condition"`
}

type rayServiceSpec struct {
	RayClusterSpec      rayClusterSpec  `json:"rayClusterConfig"`
	ServeConfig         string          `json:"serveConfigV2,omitempty"`
	ServeService        *corev1.Service `json:"serveService,omitempty"`
	UpgradeStrategy     *rayUpgrade     `json:"upgradeStrategy,omitempty"`
	DeletionDelay       *int32          `json:"rayClusterDeletionDelaySeconds,omitempty"`
	ExcludeHead         bool            `json:"excludeHeadPodFromServeSvc,omitempty"`
	Suspend             bool            `json:"suspend,omitempty"`
	ManagedBy           string          `json:"managedBy,omitempty"`
	ServiceThreshold    ignored         `json:"serviceUnhealthySecondThreshold,omitempty"`
	DeploymentThreshold ignored         `json:"deploymentUnhealthySecondThreshold,omitempty"`
}

type rayUpgrade struct {
	Type    string           `json:"type,omitempty"`
	Options *raySteppedSurge `json:"clusterUpgradeOptions,omitempty"`
}

type raySteppedSurge struct {
	MaxSurgePercent  *int32 `json:"maxSurgePercent,omitempty"`
	StepSizePercent  *int32 `json:"stepSizePercent,omitempty"`
	IntervalSeconds  *int32 `json:"intervalSeconds,omitempty"`
	GatewayClassName string `json:"gatewayClassName,omitempty"`
}
