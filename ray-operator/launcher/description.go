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
