package validate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

const (
	// maxGang is how much text a gang may have. Its description goes to each of its places.
	maxGang = 256 << 10
	// mostReferences is how many references of a gang the API server can look at, as the cost of an expression has a limit.
	mostReferences = 1000
)

// gangVariables are the variables that each process of a gang finds, rankVariables those that it finds beside them but with MPI,
// where ranks inherit the environment of one command, and Spark, where executors come and go; frameworkVariables are those of a framework. A user's value for one
// would contradict the launcher's.
var (
	gangVariables      = []string{"MASTER_ADDR", "MASTER_PORT", "ROLE", "ROLE_INDEX"}
	rankVariables      = []string{"LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "RANK", "WORLD_SIZE"}
	frameworkVariables = map[v1beta1.GangFramework][]string{
		v1beta1.FrameworkPyTorch: {
			"GROUP_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_MAX_RESTARTS", "PET_NNODES", "PET_NODE_RANK", "PET_NPROC_PER_NODE",
			"TORCHELASTIC_RESTART_COUNT",
		},
		v1beta1.FrameworkTensorFlow: {"TF_CONFIG"},
		v1beta1.FrameworkJAX: {
			"COORDINATOR_ADDRESS", "COORDINATOR_PORT", "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "NUM_PROCESSES",
			"PROCESS_ID",
		},
		v1beta1.FrameworkXGBoost: {
			"DMLC_NUM_WORKER", "DMLC_TASK_ID", "DMLC_TRACKER_PORT", "DMLC_TRACKER_URI", "WORKER_ADDRS", "WORKER_PORT",
		},
		v1beta1.FrameworkMPI:     {"CUDA_VISIBLE_DEVICES", "WORLD_SIZE"},
		v1beta1.FrameworkSpark:   {"SPARK_CONF_DIR", "SPARK_LOCAL_HOSTNAME"},
		v1beta1.FrameworkGeneric: {"PET_MAX_RESTARTS", "PET_NPROC_PER_NODE"},
	}
)

// withoutRanks are the frameworks whose processes find no ranks.
var withoutRanks = []string{string(v1beta1.FrameworkMPI), string(v1beta1.FrameworkSpark)}

// GangVariables returns the variables that the gangs of a framework set, beside those that no job may set.
func GangVariables(framework v1beta1.GangFramework) []string {
	if slices.Contains(withoutRanks, string(framework)) {
		return slices.Concat(gangVariables, frameworkVariables[framework])
	}
	return slices.Concat(gangVariables, rankVariables, frameworkVariables[framework])
}

// reference matches what the launcher replaces in commands and variables, and indexed what a role has of each of its processes.
var (
	reference = regexp.MustCompile(`[$][(][a-zA-Z0-9_-]+([.][a-zA-Z0-9_-]+){1,2}[)]`)
	indexed   = regexp.MustCompile(`^[0-9]{1,4}[.](host|port)$`)
)

// ofAll are the fields of a role that references name without an index.
var ofAll = []string{"addresses", "count"}

// program is what the job or a role of its gang runs.
type program struct {
	path       *field.Path
	entrypoint string
	command    []string
	env        []corev1.EnvVar
}

// programs returns that of the job and those of the roles of its gang.
func (r *run) programs() []program {
	all := []program{{specPath, r.spec.Entrypoint, r.spec.Command, r.spec.Env}}
	for i, role := range r.roles() {
		all = append(all, program{rolesPath.Index(i), role.Entrypoint, role.Command, role.Env})
	}
	return all
}

// roles returns those of the job's gang, none where it is no gang.
func (r *run) roles() []v1beta1.GangRole {
	if r.spec.Gang == nil {
		return nil
	}
	return r.spec.Gang.Roles
}

// leastProcesses returns how many processes of a role there always are.
func (r *run) leastProcesses(role *v1beta1.GangRole) int {
	replicas := role.MinReplicas
	if replicas == 0 {
		replicas = max(1, role.Replicas)
	}
	if role.Start == v1beta1.StartPerReplica {
		return int(replicas)
	}
	return int(replicas * max(1, role.ProcessesPerReplica))
}

// size returns the bytes of a program and its variables.
func (p *program) size() int {
	size := len(p.entrypoint) + commandSize(p.command)
	for i := range p.env {
		size += len(p.env[i].Name) + len(p.env[i].Value)
	}
	return size
}

// programSize is an expression with the same result, for what o stands for.
const programSize = "size(bytes(o.?entrypoint.orValue(''))) + o.?command.orValue([]).map(w, size(bytes(w)) + 3).sum() + " +
	"o.?env.orValue([]).map(e, size(bytes(e.name + e.?value.orValue('')))).sum()"

// gangSize returns the bytes of a gang: of the job's program once for each role that has none of its own.
func (r *run) gangSize() int {
	all := r.programs()
	size := 0
	for i, role := range r.roles() {
		size += all[i+1].size()
		if role.Entrypoint == "" && len(role.Command) == 0 {
			size += all[0].size()
		}
		for key, value := range role.LabelSelector {
			size += len(key) + len(value)
		}
	}
	return size
}

// contradictions visits the places of variables that the gang sets, with their names there.
func (r *run) contradictions(visit func(path *field.Path, names string)) {
	if r.spec.Gang == nil {
		return
	}
	taken := GangVariables(r.spec.Gang.Framework)
	among := func(path *field.Path, names []string) {
		both := slices.DeleteFunc(slices.Clone(taken), func(name string) bool { return !slices.Contains(names, name) })
		if len(both) > 0 {
			visit(path, joined(both, " "))
		}
	}
	for _, p := range r.programs() {
		var names []string
		for i := range p.env {
			names = append(names, p.env[i].Name)
		}
		among(p.path.Child("env"), names)
	}
	among(specPath.Child("runtimeEnv", "env_vars"), sorted(r.vars))
}

// isKnown reports whether a reference is one that the launcher replaces in every round.
func (r *run) isKnown(text string) bool {
	role, name, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(text, "$("), ")"), ".")
	return slices.ContainsFunc(r.roles(), func(of v1beta1.GangRole) bool {
		if of.Name != role || r.comesAndGoes(&of) {
			return false
		}
		if !indexed.MatchString(name) {
			return slices.Contains(ofAll, name)
		}
		index, _, _ := strings.Cut(name, ".")
		number, err := strconv.Atoi(index)
		return err == nil && number < r.leastProcesses(&of)
	})
}

// comesAndGoes reports whether processes of a role start and end while others run.
func (r *run) comesAndGoes(role *v1beta1.GangRole) bool {
	return r.spec.Gang.Framework == v1beta1.FrameworkSpark && role.Name == v1beta1.GangRoleExecutor
}

// placesOfReferences returns the command and the variables of the job, and the programs of the roles of its gang.
func (r *run) placesOfReferences() []program {
	if r.spec.Gang == nil && r.spec.Tune == nil {
		return nil
	}
	ofJob := []program{{path: specPath.Child("command"), command: r.spec.Command}, {path: specPath.Child("env"), env: r.spec.Env}}
	return append(ofJob, r.programs()[1:]...)
}

// texts returns those of a program that may have references.
func (p *program) texts() []string {
	all := slices.Clone(p.command)
	for i := range p.env {
		all = append(all, p.env[i].Value)
	}
	return slices.DeleteFunc(all, func(text string) bool { return !strings.Contains(text, "$(") })
}

// references returns how many references a gang has, with texts that only look like one.
func (r *run) references() int {
	count := 0
	for _, p := range r.placesOfReferences() {
		for _, text := range p.texts() {
			count += strings.Count(text, "$(")
		}
	}
	return count
}

// unknownReference returns the first one in a program that nothing stands for.
func (r *run) unknownReference(p *program) (string, bool) {
	for _, text := range p.texts() {
		for _, found := range reference.FindAllString(strings.ReplaceAll(text, "$$(", " "), -1) {
			if !r.isKnown(found) && !r.isParameter(found) {
				return found, true
			}
		}
	}
	return "", false
}

// gangPolicyVariables are those that expressions about gangs name: the roles, what the job and its roles run, which variables are
// the launcher's, which of these the user sets where, which texts may have references, how many they have, and which of them
// are unknown where.
func gangPolicyVariables() []Variable {
	var frameworks []string
	for _, framework := range slices.Sorted(maps.Keys(frameworkVariables)) {
		frameworks = append(frameworks, fmt.Sprintf("'%s': %s", framework, list(frameworkVariables[framework])))
	}
	return []Variable{
		{Name: "roles", Expression: "variables.job.?gang.?roles.orValue([])"},
		{Name: "programs", Expression: "[dyn(variables.job)] + variables.roles.map(r, dyn(r))"},
		{Name: "taken", Expression: "has(variables.job.gang) ? " + list(gangVariables) +
			" + (variables.job.gang.framework in " + list(withoutRanks) + " ? [] : " + list(rankVariables) + ")" +
			" + {" + joined(frameworks, ", ") + "}[variables.job.gang.framework] : []"},
		{Name: "contradictions", Expression: "([{'at': dyn('env'), 'names': dyn(variables.job.?env.orValue([]).map(e, e.name))}, " +
			"{'at': dyn('runtimeEnv.env_vars'), 'names': dyn(variables.vars)}] + " +
			"variables.roles.map(r, {'at': dyn('gang.roles'), 'names': dyn(r.?env.orValue([]).map(e, e.name))}))" +
			".map(p, {'at': dyn(p.at), 'names': dyn(variables.taken.filter(n, n in p.names))}).filter(p, size(p.names) > 0)"},
		{Name: "texts", Expression: "size(variables.roles) == 0 && !has(variables.job.tune) ? [] : ([{'at': dyn('command'), 'texts': dyn(variables.job.?command.orValue([]))}, " +
			"{'at': dyn('env'), 'texts': dyn(variables.job.?env.orValue([]).map(e, e.?value.orValue('')))}] + " +
			"variables.roles.map(r, {'at': dyn('gang.roles'), 'texts': dyn(r.?command.orValue([]) + r.?env.orValue([]).map(e, e.?value.orValue('')))}))" +
			".map(p, {'at': p.at, 'texts': dyn(p.texts.filter(t, t.contains('$(')))})"},
		{Name: "references", Expression: "variables.texts.map(p, p.texts.map(t, size(t.split('$(')) - 1).sum()).sum()"},
		{Name: "unknown", Expression: fmt.Sprintf("variables.references > %d ? [] : variables.texts.map(p, {'at': p.at, 'names': dyn(p.texts.map(t, "+
			"t.replace('$$(', ' ').findAll('%s').filter(m, !(%s))).filter(l, size(l) > 0))}).filter(p, size(p.names) > 0)",
			mostReferences, reference, isKnownReference+" || "+isParameterReference)},
		sparkVariable(),
	}
}

// isKnownReference is the counterpart of isKnown, for what m stands for.
var isKnownReference = "variables.roles.exists(r, m.startsWith('$(' + r.name + '.') && !(r.name == '" + v1beta1.GangRoleExecutor +
	"' && variables.job.gang.framework == '" + string(v1beta1.FrameworkSpark) + "') && [m.substring(size(r.name) + 3, size(m) - 1)].all(f, " +
	"f in " + list(ofAll) + " || f.matches('" + indexed.String() + "') && int(f.split('.')[0]) < " +
	"r.?minReplicas.orValue(r.?replicas.orValue(1)) * (r.?start.orValue('') == '" + string(v1beta1.StartPerReplica) + "' ? 1 : r.?processesPerReplica.orValue(1))))"

var rolesPath = specPath.Child("gang", "roles")

// gangRules are about gangs, beside those of the CRD.
var gangRules = []Rule{
	{
		ID: "gang-variable", Field: "spec.env, spec.runtimeEnv.env_vars, spec.gang.roles[*].env", By: Policy,
		Refused: "the gang sets the variable for each process by itself", Remedy: "leave it out, or choose another name",
		Holds: "size(variables.contradictions) == 0",
		At:    "'spec.' + variables.contradictions[0].at", Which: "variables.contradictions[0].names.join(' ')",
		job: func(r *run, bad report) { r.contradictions(bad.which) },
	},
	{
		ID: "gang-reference", Field: "spec.command, spec.env, spec.gang.roles[*].command, spec.gang.roles[*].env", By: Policy,
		Refused: "a reference must be $(ROLE.INDEX.host), $(ROLE.INDEX.port), $(ROLE.addresses) or $(ROLE.count), of a role of the gang and a process that it has in every round, " +
			"or with tune $(tune.PARAMETER) or $(tune.trial)",
		Remedy: "correct it, or write $$( for the text itself",
		Holds:  "size(variables.unknown) == 0",
		At:     "'spec.' + variables.unknown[0].at", Which: "variables.unknown[0].names[0][0]",
		job: func(r *run, bad report) {
			if r.references() > mostReferences {
				return
			}
			for _, p := range r.placesOfReferences() {
				if unknown, is := r.unknownReference(&p); is {
					bad.which(p.path, unknown)
				}
			}
		},
	},
	{
		ID: "gang-references", Field: "spec.command, spec.env, spec.gang.roles[*].command, spec.gang.roles[*].env", By: Policy,
		Refused: "commands and variables of a gang must have $( at most 1000 times in all",
		Remedy:  "use $(ROLE.addresses) for many processes, or put long parts into a file",
		Holds:   fmt.Sprintf("variables.references <= %d", mostReferences),
		job: func(r *run, bad report) {
			if count := r.references(); count > mostReferences {
				bad.at(rolesPath, count)
			}
		},
	},
	sparkRule,
	{
		ID: "gang-size", Field: "spec.gang.roles", By: Policy,
		Refused: "programs, variables and selectors of all roles together must have at most 256 KiB, where the job's count once for each role without a program of its own",
		Remedy:  "put long parts into a file",
		Holds: fmt.Sprintf("variables.roles.map(r, ([dyn(r)] + (has(r.entrypoint) || has(r.command) ? [] : [dyn(variables.job)])).map(o, %s).sum() + "+
			"r.?labelSelector.orValue({}).map(k, size(bytes(k + r.labelSelector[k]))).sum()).sum() <= %d", programSize, maxGang),
		job: func(r *run, bad report) {
			if size := r.gangSize(); size > maxGang {
				bad.at(rolesPath, size)
			}
		},
	},
}
