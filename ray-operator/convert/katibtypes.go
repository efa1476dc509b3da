package convert

import corev1 "k8s.io/api/core/v1"

// The specs of what searches parameters: Katib's Experiments, and OptimizationJobs of Trainer.

type experimentSpec struct {
	Objective            katibObjective   `json:"objective,omitempty"`
	Algorithm            katibAlgorithm   `json:"algorithm,omitempty"`
	EarlyStopping        katibAlgorithm   `json:"earlyStopping,omitempty"`
	Parameters           []katibParameter `json:"parameters,omitempty"`
	ParallelTrialCount   *int32           `json:"parallelTrialCount,omitempty"`
	MaxTrialCount        *int32           `json:"maxTrialCount,omitempty"`
	MaxFailedTrialCount  *int32           `json:"maxFailedTrialCount,omitempty"`
	ResumePolicy         string           `json:"resumePolicy,omitempty"`
	TrialTemplate        katibTemplate    `json:"trialTemplate,omitempty"`
	MetricsCollectorSpec katibCollector   `json:"metricsCollectorSpec,omitempty"`
	NASConfig            ignored          `json:"nasConfig,omitempty"`
}

type katibObjective struct {
	Type                  string          `json:"type,omitempty"`
	Goal                  *float64        `json:"goal,omitempty"`
	ObjectiveMetricName   string          `json:"objectiveMetricName,omitempty"`
	AdditionalMetricNames ignored         `json:"additionalMetricNames,omitempty"`
	MetricStrategies      []katibStrategy `json:"metricStrategies,omitempty"`
}

type katibStrategy struct {
	Name  string `json:"name,omitempty"`
	Value string `json:"value,omitempty"`
}

type katibAlgorithm struct {
	AlgorithmName     string         `json:"algorithmName,omitempty"`
	AlgorithmSettings []katibSetting `json:"algorithmSettings,omitempty"`
}

type katibSetting struct {
	Name  string `json:"name,omitempty"`
	Value string `json:"value,omitempty"`
}

type katibParameter struct {
	Name          string        `json:"name,omitempty"`
	ParameterType string        `json:"parameterType,omitempty"`
	FeasibleSpace feasibleSpace `json:"feasibleSpace,omitempty"`
}

type feasibleSpace struct {
	Min          string   `json:"min,omitempty"`
	Max          string   `json:"max,omitempty"`
	List         []string `json:"list,omitempty"`
	Step         string   `json:"step,omitempty"`
	Distribution string   `json:"distribution,omitempty"`
}

type katibTemplate struct {
	Retain               ignored            `json:"retain,omitempty"`
	TrialSpec            map[string]any     `json:"trialSpec,omitempty"`
	ConfigMap            ignored            `json:"configMap,omitempty"`
	TrialParameters      []katibPlaceholder `json:"trialParameters,omitempty"`
	PrimaryPodLabels     ignored            `json:"primaryPodLabels,omitempty"`
	PrimaryContainerName string             `json:"primaryContainerName,omitempty"`
	SuccessCondition     ignored            `json:"successCondition,omitempty"`
	FailureCondition     ignored            `json:"failureCondition,omitempty"`
}

type katibPlaceholder struct {
	Name        string  `json:"name,omitempty"`
	Description ignored `json:"description,omitempty"`
	Reference   string  `json:"reference,omitempty"`
}

type katibCollector struct {
	Source struct {
		HTTPGet        ignored `json:"httpGet,omitempty"`
		FileSystemPath ignored `json:"fileSystemPath,omitempty"`
		Filter         struct {
			MetricsFormat []string `json:"metricsFormat,omitempty"`
		} `json:"filter,omitempty"`
	} `json:"source,omitempty"`
	Collector struct {
		Kind            string            `json:"kind,omitempty"`
		CustomCollector *corev1.Container `json:"customCollector,omitempty"`
	} `json:"collector,omitempty"`
}

type optimizationJobSpec struct {
	Objectives []struct {
		Metric    string `json:"metric,omitempty"`
		Direction string `json:"direction,omitempty"`
	} `json:"objectives,omitempty"`
	SearchAlgorithm struct {
		Random *struct {
			Seed *int64 `json:"seed,omitempty"`
		} `json:"random,omitempty"`
		Grid map[string]any `json:"grid,omitempty"`
	} `json:"searchAlgorithm,omitempty"`
	Parameters []struct {
		Name        string      `json:"name,omitempty"`
		SearchSpace searchSpace `json:"searchSpace,omitempty"`
	} `json:"parameters,omitempty"`
	NumTrials        *int32 `json:"numTrials,omitempty"`
	ParallelTrials   *int32 `json:"parallelTrials,omitempty"`
	TrainJobTemplate struct {
		Metadata ignored        `json:"metadata,omitempty"`
		Spec     map[string]any `json:"spec,omitempty"`
	} `json:"trainJobTemplate,omitempty"`
}

type searchSpace struct {
	Uniform     *numberRange `json:"uniform,omitempty"`
	LogUniform  *numberRange `json:"logUniform,omitempty"`
	Categorical *struct {
		Choices []string `json:"choices,omitempty"`
	} `json:"categorical,omitempty"`
}

type numberRange struct {
	Min  string `json:"min,omitempty"`
	Max  string `json:"max,omitempty"`
	Type string `json:"type,omitempty"`
}

// batchJobSpec is the spec of a Job of Kubernetes.
type batchJobSpec struct {
	Parallelism             *int32      `json:"parallelism,omitempty"`
	Completions             *int32      `json:"completions,omitempty"`
	BackoffLimit            *int32      `json:"backoffLimit,omitempty"`
	ActiveDeadlineSeconds   *int64      `json:"activeDeadlineSeconds,omitempty"`
	TTLSecondsAfterFinished *int32      `json:"ttlSecondsAfterFinished,omitempty"`
	Suspend                 bool        `json:"suspend,omitempty"`
	ManagedBy               ignored     `json:"managedBy,omitempty"`
	BackoffLimitPerIndex    ignored     `json:"backoffLimitPerIndex,omitempty"`
	CompletionMode          ignored     `json:"completionMode,omitempty"`
	ManualSelector          ignored     `json:"manualSelector,omitempty"`
	MaxFailedIndexes        ignored     `json:"maxFailedIndexes,omitempty"`
	PodFailurePolicy        ignored     `json:"podFailurePolicy,omitempty"`
	PodReplacementPolicy    ignored     `json:"podReplacementPolicy,omitempty"`
	Selector                ignored     `json:"selector,omitempty"`
	SuccessPolicy           ignored     `json:"successPolicy,omitempty"`
	Template                podTemplate `json:"template,omitempty"`
}
