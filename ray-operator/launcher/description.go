package launcher

// Description is what the operator gives to the launcher: one attempt of a gang.
type Description struct {
	// Job and UID are the ClusterJob's name and UID.
	Job string `json:"job"`
	UID string `json:"uid"`
	// Attempt is the attempt's number, from 1, and Submission its ID in Ray's job API.
	Attempt    int32  `json:"attempt"`
	Submission string `json:"submission"`

	// Framework is what the processes use: PyTorch, TensorFlow, JAX, XGBoost, MPI, Spark or Generic.
	Framework string `json:"framework"`
	// Placement is how places are spread over nodes: Pack, Spread, StrictPack or StrictSpread.
	Placement string `json:"placement"`
	// Output is which processes write to the job's own output: First or All.
	Output string `json:"output"`

	// GraceSeconds is from SIGTERM to SIGKILL.
	GraceSeconds int32 `json:"graceSeconds"`
	// FirstGatherSeconds bounds the first wait for places, and GatherSeconds each later one; 0 is no bound.
	FirstGatherSeconds int32 `json:"firstGatherSeconds"`
	GatherSeconds      int32 `json:"gatherSeconds"`
	// MinReplicasAfterSeconds is how long a round waits for more than the minimum.
	MinReplicasAfterSeconds int32 `json:"minReplicasAfterSeconds"`
	// MaxRestarts is how many restarts may follow processes that failed, and LossesLeft how many may follow losses.
	MaxRestarts int32 `json:"maxRestarts"`
	LossesLeft  int32 `json:"lossesLeft"`
	// RetryOnExitCodes are the exit codes after which the gang may restart.
	RetryOnExitCodes ExitCodes `json:"retryOnExitCodes"`

	// Env are variables of every process.
	Env []EnvVar `json:"env"`
	// Roles are in the order of the spec.
	Roles []Role `json:"roles"`

	// Tune is what trials of the gang have in common, nil for a gang that runs once.
	Tune *Tune `json:"tune,omitempty"`
}

// Tune describes trials of a gang with different values of parameters. Numbers of the user are texts, as JSON would lose digits. An
// empty text means that the number is not set.
type Tune struct {
	// Metric is what the first process prints, Direction is Maximize or Minimize, and Value is Last or Best.
	Metric    string `json:"metric"`
	Direction string `json:"direction"`
	Value     string `json:"value"`
	// Goal ends the trials when one reaches it.
	Goal string `json:"goal"`

	// Algorithm draws values, and EarlyStopping ends trials that are worse than others.
	Algorithm     string `json:"algorithm"`
	EarlyStopping string `json:"earlyStopping"`
	// Seed is null where the user gave none.
	Seed *int32 `json:"seed"`
	// Storage is a directory, empty for none.
	Storage string `json:"storage"`

	MaxTrials       int32 `json:"maxTrials"`
	ParallelTrials  int32 `json:"parallelTrials"`
	MaxFailedTrials int32 `json:"maxFailedTrials"`
	// TrialDeadlineSeconds bounds a trial; 0 is no bound.
	TrialDeadlineSeconds int32 `json:"trialDeadlineSeconds"`
	// Fits is how many trials the cluster at its largest can run at a time; 0 is unknown.
	Fits int32 `json:"fits"`

	// Parameters are in the order of the spec.
	Parameters []Parameter `json:"parameters"`
}

// Parameter is one whose value differs between trials.
type Parameter struct {
	Name string `json:"name"`
	// Type is Float, Int or Categorical.
	Type string `json:"type"`
	Min  string `json:"min"`
	Max  string `json:"max"`
	Step string `json:"step"`
	// Scale is Linear or Log.
	Scale  string   `json:"scale"`
	Values []string `json:"values"`
}

// ExitCodes are those in In, or, where that is empty, all but those in NotIn.
type ExitCodes struct {
	In    []int32 `json:"in"`
	NotIn []int32 `json:"notIn"`
}

// EnvVar is a variable of a process, whose value may refer to roles.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Role is a set of replicas that run the same.
type Role struct {
	Name string `json:"name"`
	// Replicas is how many places the role has; MinReplicas is the same where it has no minimum of its own.
	Replicas    int32 `json:"replicas"`
	MinReplicas int32 `json:"minReplicas"`
	// Processes is how many processes a replica has.
	Processes int32 `json:"processes"`
	// Start is PerProcess or PerReplica.
	Start string `json:"start"`
	// Resources are those of a place, in Ray's names, memory in bytes.
	Resources map[string]float64 `json:"resources"`
	// LabelSelector is on which nodes a place may be.
	LabelSelector map[string]string `json:"labelSelector"`
	// Command or Entrypoint is what runs; the other one is empty.
	Command    []string `json:"command"`
	Entrypoint string   `json:"entrypoint"`
	Env        []EnvVar `json:"env"`
	// Success is All, First or Ignore.
	Success string `json:"success"`
}

// written returns the description with empty lists and maps in place of those that are nil.
func (d Description) written() Description {
	d.RetryOnExitCodes.In, d.RetryOnExitCodes.NotIn = listed(d.RetryOnExitCodes.In), listed(d.RetryOnExitCodes.NotIn)
	d.Env = listed(d.Env)
	roles := make([]Role, 0, len(d.Roles))
	for _, role := range d.Roles {
		role.Command, role.Env = listed(role.Command), listed(role.Env)
		role.Resources, role.LabelSelector = mapped(role.Resources), mapped(role.LabelSelector)
		roles = append(roles, role)
	}
	d.Roles = roles
	if d.Tune != nil {
		tune := *d.Tune
		tune.Parameters = make([]Parameter, 0, len(d.Tune.Parameters))
		for _, parameter := range d.Tune.Parameters {
			parameter.Values = listed(parameter.Values)
			tune.Parameters = append(tune.Parameters, parameter)
		}
		d.Tune = &tune
	}
	return d
}

func listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func mapped[V any](values map[string]V) map[string]V {
	if values == nil {
		return map[string]V{}
	}
	return values
}
