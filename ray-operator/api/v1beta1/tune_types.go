package v1beta1

// TuneDirection is which values of a metric are better.
//
// +kubebuilder:validation:Enum=Maximize;Minimize
type TuneDirection string

// Directions of an objective.
const (
	Maximize TuneDirection = "Maximize"
	Minimize TuneDirection = "Minimize"
)

// TuneValue is which value of a trial counts.
//
// +kubebuilder:validation:Enum=Last;Best
type TuneValue string

// Values of a trial.
const (
	// TuneLast: that of the last line with the metric.
	TuneLast TuneValue = "Last"
	// TuneBest: the best of all lines.
	TuneBest TuneValue = "Best"
)

// TuneAlgorithm draws the values of trials.
//
// +kubebuilder:validation:Enum=TPE;Random;Grid;CMAES;QMC;GaussianProcess
type TuneAlgorithm string

// Algorithms that draw values.
const (
	TuneTPE             TuneAlgorithm = "TPE"
	TuneRandom          TuneAlgorithm = "Random"
	TuneGrid            TuneAlgorithm = "Grid"
	TuneCMAES           TuneAlgorithm = "CMAES"
	TuneQMC             TuneAlgorithm = "QMC"
	TuneGaussianProcess TuneAlgorithm = "GaussianProcess"
)

// TuneEarlyStopping ends trials that are worse than others.
//
// +kubebuilder:validation:Enum=None;Median;Hyperband
type TuneEarlyStopping string

// Ways to stop trials early.
const (
	StopNone      TuneEarlyStopping = "None"
	StopMedian    TuneEarlyStopping = "Median"
	StopHyperband TuneEarlyStopping = "Hyperband"
)

// ParameterType is the type of a parameter.
//
// +kubebuilder:validation:Enum=Float;Int;Categorical
type ParameterType string

// Types of a parameter.
const (
	ParameterFloat       ParameterType = "Float"
	ParameterInt         ParameterType = "Int"
	ParameterCategorical ParameterType = "Categorical"
)

// ParameterScale is how numbers of a parameter are spread between its bounds.
//
// +kubebuilder:validation:Enum=Linear;Log
type ParameterScale string

// Scales of a parameter.
const (
	ScaleLinear ParameterScale = "Linear"
	ScaleLog    ParameterScale = "Log"
)

// Tune makes a job run many trials of its command, each with other values for the parameters, and find the best ones.
//
// +kubebuilder:validation:XValidation:rule="self.parallelTrials <= self.maxTrials",message="parallelTrials must not be above maxTrials; lower it or raise maxTrials",fieldPath=".parallelTrials"
// +heliostat:rule=tune-parallel
// +kubebuilder:validation:XValidation:rule="self.algorithm != 'Grid' || self.parameters.all(p, has(p.values) || p.type != 'Float' && p.scale == 'Linear')",message="with Grid, each parameter must have values, or be an Int with scale Linear; list the values, or use another algorithm",fieldPath=".parameters"
// +heliostat:rule=tune-grid
// +kubebuilder:validation:XValidation:rule="self.algorithm != 'CMAES' || self.parameters.filter(p, !has(p.values)).size() > 1",message="with CMAES, at least two parameters must have min and max; use another algorithm",fieldPath=".algorithm"
// +heliostat:rule=tune-cmaes
type Tune struct {
	// objective is the metric that trials are compared by.
	// +required
	Objective TuneObjective `json:"objective,omitzero"`

	// algorithm draws the values of each trial: TPE, Random, Grid, CMAES, QMC or GaussianProcess. The Python that has Ray needs Optuna; CMAES also needs cmaes, QMC needs scipy, and GaussianProcess needs scipy and torch. Default: TPE.
	// +kubebuilder:default=TPE
	// +optional
	Algorithm TuneAlgorithm `json:"algorithm,omitempty"`

	// maxTrials is the number of trials after which the job ends. Trials of former attempts and jobs with the same storage count.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +required
	MaxTrials int32 `json:"maxTrials,omitempty"`

	// parallelTrials is the number of trials that run at a time, if the cluster has room for them. Default: 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	// +kubebuilder:default=1
	// +optional
	ParallelTrials int32 `json:"parallelTrials,omitempty"`

	// maxFailedTrials is the number of trials that may fail. With one more, the attempt fails. Default: 3.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:default=3
	// +optional
	MaxFailedTrials *int32 `json:"maxFailedTrials,omitempty"`

	// earlyStopping ends trials whose values of the metric are worse than those of others at the same step: None, Median or Hyperband. Default: None.
	// +kubebuilder:default=None
	// +optional
	EarlyStopping TuneEarlyStopping `json:"earlyStopping,omitempty"`

	// trialDeadlineSeconds is the maximum duration of a trial. A trial that takes longer fails. Default: none.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	TrialDeadlineSeconds int32 `json:"trialDeadlineSeconds,omitempty"`

	// seed makes the values of trials repeatable, if one trial runs at a time. Default: a random one, which the storage keeps.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	Seed *int32 `json:"seed,omitempty"`

	// storage is a directory for the table of trials and the state of the algorithm, on a volume that the driver's pod mounts. Later attempts, and later jobs with the same storage, continue with its trials. Default: none, and a new attempt begins from the start.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^(/[^/]+)+$') && !self.matches('/[.][.]?(/|$)')",message="storage must be an absolute path without '//', '.', '..' and without '/' at its end; write it like /results/first"
	// +heliostat:rule=tune-storage
	// +optional
	Storage string `json:"storage,omitempty"`

	// parameters are what differs between trials.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	// +required
	Parameters []TuneParameter `json:"parameters,omitempty"`
}

// TuneObjective is the metric that trials are compared by.
//
// +kubebuilder:validation:XValidation:rule="has(self.direction) || self.metric.lowerAscii().matches('(^|[^a-z])(loss|error)([^a-z]|$)') != self.metric.lowerAscii().matches('(^|[^a-z])(accuracy|auc|f1)([^a-z]|$)')",message="direction must be set unless the metric's name has one of the words loss, error, accuracy, auc and f1; set direction to Maximize or Minimize",fieldPath=".direction"
// +heliostat:rule=tune-direction
type TuneObjective struct {
	// metric is the name of a number that the first process prints, as in a line with val_accuracy=0.93 or with "val_accuracy": 0.93.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9_./-]*$')",message="the metric's name must be letters, digits, '_', '.', '/' and '-', with a letter first; print it by such a name"
	// +heliostat:rule=tune-metric
	// +required
	Metric string `json:"metric,omitempty"`

	// direction is Maximize or Minimize. Default: Minimize for a metric with loss or error in its name, Maximize for one with accuracy, auc or f1.
	// +optional
	Direction TuneDirection `json:"direction,omitempty"`

	// value is which of several values of a trial counts: Last or Best. Default: Last.
	// +kubebuilder:default=Last
	// +optional
	Value TuneValue `json:"value,omitempty"`

	// goal ends all other trials when one has reached it. Default: none.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,2})?$')",message="the goal must be a number; write it like 0.95"
	// +heliostat:rule=tune-goal
	// +optional
	Goal string `json:"goal,omitempty"`
}

// TuneParameter is a value that differs between trials. A process finds it in a variable, whose name is the words of the parameter's name in capitals with '_' between, and in $(tune.NAME).
//
// +kubebuilder:validation:XValidation:rule="has(self.values) ? !has(self.min) && !has(self.max) && !has(self.step) : self.type != 'Categorical' && has(self.min) && has(self.max)",message="a parameter must have either values, or min and max with type Float or Int; keep one of the two"
// +heliostat:rule=parameter-range
// +kubebuilder:validation:XValidation:rule="!has(self.values) || self.type == 'Categorical' || self.values.all(v, (self.type == 'Int' ? v.matches('^[+-]?[0-9]{1,18}$') : v.matches('^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,2})?$')))",message="values of a parameter must be numbers of its type; correct them, or use type Categorical",fieldPath=".values"
// +heliostat:rule=parameter-values
// +kubebuilder:validation:XValidation:rule="self.type == 'Categorical' || (!has(self.min) || (self.type == 'Int' ? self.min.matches('^[+-]?[0-9]{1,18}$') : self.min.matches('^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,2})?$'))) && (!has(self.max) || (self.type == 'Int' ? self.max.matches('^[+-]?[0-9]{1,18}$') : self.max.matches('^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,2})?$'))) && (!has(self.step) || (self.type == 'Int' ? self.step.matches('^[+-]?[0-9]{1,18}$') : self.step.matches('^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,2})?$')))",message="min, max and step of a parameter must be numbers of its type; write them like 16 for Int, and 0.001 or 1e-3 for Float"
// +heliostat:rule=parameter-number
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || !self.min.matches('^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,2})?$') || !self.max.matches('^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,2})?$') || double(self.min) < double(self.max)",message="min of a parameter must be below max; lower it or raise max",fieldPath=".min"
// +heliostat:rule=parameter-order
// +kubebuilder:validation:XValidation:rule="self.scale != 'Log' || !has(self.min) || !self.min.matches('^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,2})?$') || double(self.min) > 0.0",message="with scale Log, min of a parameter must be above 0; raise it, or use scale Linear",fieldPath=".min"
// +heliostat:rule=parameter-log
// +kubebuilder:validation:XValidation:rule="self.scale != 'Log' || !has(self.step) && !has(self.values)",message="with scale Log, a parameter must have min and max, and no step; leave step and values out, or use scale Linear",fieldPath=".scale"
// +heliostat:rule=parameter-log-step
// +kubebuilder:validation:XValidation:rule="!has(self.step) || !self.step.matches('^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,2})?$') || double(self.step) > 0.0",message="step of a parameter must be above 0; raise it",fieldPath=".step"
// +heliostat:rule=parameter-step
type TuneParameter struct {
	// name of the parameter.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9_-]*$')",message="the name of a parameter must be letters, digits, '_' and '-', with a letter first; choose such a name"
	// +heliostat:rule=parameter-name
	// +kubebuilder:validation:XValidation:rule="self != 'trial'",message="no parameter may have the name trial, because $(tune.trial) is the number of the trial; choose another name"
	// +heliostat:rule=parameter-trial
	// +required
	Name string `json:"name,omitempty"`

	// type of the parameter: Float, Int or Categorical.
	// +required
	Type ParameterType `json:"type,omitempty"`

	// min is the lowest number.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Min string `json:"min,omitempty"`

	// max is the highest number.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Max string `json:"max,omitempty"`

	// step is the distance of two numbers, counted from min. Default: 1 for Int, and any number for Float.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Step string `json:"step,omitempty"`

	// scale is Linear, or Log for numbers whose order of size matters. Default: Linear.
	// +kubebuilder:default=Linear
	// +optional
	Scale ParameterScale `json:"scale,omitempty"`

	// values are all that the parameter can have. A process finds them as they are written here.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=set
	// +optional
	Values []string `json:"values,omitempty"`
}

// TuneStatus is the observed state of a job's trials.
type TuneStatus struct {
	// trials is the number of all trials, with those of former attempts and jobs with the same storage.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Trials int32 `json:"trials"`
	// running is the number of trials that run.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Running int32 `json:"running"`
	// succeeded is the number of trials that ended with a value.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Succeeded int32 `json:"succeeded"`
	// failed is the number of trials that failed.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Failed int32 `json:"failed"`
	// pruned is the number of trials that were ended early.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Pruned int32 `json:"pruned"`
	// best is the best trial that has succeeded.
	// +optional
	Best *BestTrial `json:"best,omitempty"`
}

// BestTrial is a trial with its values.
type BestTrial struct {
	// trial is the number of the trial, from 0.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Trial int32 `json:"trial"`
	// value is that of the metric.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Value string `json:"value,omitempty"`
	// parameters are the values of the parameters, by name. Empty where they are too long for a status; the table of trials has them.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`
}
