package convert

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

var mpiKind = trainingKind{
	field: "mpiReplicaSpecs", roles: []roleKind{{"Launcher", "launcher"}, {"Worker", "worker"}}, framework: v1beta1.FrameworkMPI,
}

const sshText = "The gang starts ranks without ssh, keys and sshd."

var mpiRules = append(replicaRules(kindMPI, mpiKind.field, "Launcher and Worker"), append([]Rule{
	{
		Kind: kindMPI, Path: "spec.slotsPerWorker", To: "gang.roles[].processesPerReplica", Verdict: Kept,
		Text: "The launcher's command becomes the job's, and runs once, beside the ranks of worker 0.",
	},
	{Kind: kindMPI, Path: "spec.mainContainer", To: "clusterTemplate.spec.workerGroups[].template", Verdict: Kept, Text: "That " +
		"container is named ray."},
	{
		Kind: kindMPI, Path: "spec.runLauncherAsWorker", To: "gang.roles[].replicas", Verdict: Changed,
		Text: "The launcher counts as a worker, of the workers' shape.",
	},
	{Kind: kindMPI, Path: "spec.sshAuthMountPath", Verdict: Dropped, Text: sshText},
	{
		Kind: kindMPI, Path: "spec.launcherCreationPolicy", Verdict: Dropped,
		Text: "The command starts when all places are there.",
	},
	{
		Kind: kindMPI, Path: "spec.mpiImplementation", Verdict: Dropped,
		Text: "Hostfile and launch agent are there for Open MPI, MPICH and Intel MPI alike.",
	},
}, formerMPIRules...)...)

// mpiPart is an MPIJob on its way.
type mpiPart struct{ *gangJob }

// mpiJob converts an MPIJob of any version.
func mpiJob(c *conversion) runtime.Object {
	var spec mpiJobSpec
	if !readTrainingJob(c, &mpiKind, &spec) {
		return nil
	}
	m := mpiPart{c.newGangJob(mpiKind.framework)}
	container := spec.MainContainer
	if c.from.GroupVersionKind().Version == "v1" && container == "" {
		container = "mpi"
	}
	var sources []roleSource
	if spec.Roles == nil && spec.Template != nil {
		sources = m.formerMPISources(&spec)
	} else {
		sources = m.mpiSources(&spec, gather(c, &mpiKind, container, spec.Roles))
	}
	m.takeRoles(sources)
	limit, at := m.takePolicy(&spec.jobPolicy, m.managerOfMPI())
	if c.from.GroupVersionKind().Version == "v1" {
		m.takeRestarts(limit, at, restartNever, restartsUnsaid)
	} else {
		m.takeRestarts(limit, at, restartOnFailure, restartsOfJob)
	}
	m.takeLauncher()
	return m.finished()
}

// managerOfMPI is the name of the operator that has MPIJobs of the object's version.
func (m mpiPart) managerOfMPI() string {
	if m.from.GroupVersionKind().Version == "v1" {
		return managerTraining
	}
	return managerMPI
}

// mpiSources are the roles of an MPIJob. The launcher is a guest of the workers, whose command is the job's, unless its pod has
// something that the workers' has not.
func (m mpiPart) mpiSources(spec *mpiJobSpec, sources []roleSource) []roleSource {
	launcher, worker := has(sources, "launcher"), has(sources, "worker")
	if launcher < 0 {
		m.refuse("spec.mpiReplicaSpecs", "an MPIJob runs the command of its Launcher; give that role")
		return nil
	}
	if worker < 0 {
		alone := sources[launcher]
		alone.name, alone.alias, alone.template = "worker", "worker", *alone.template.DeepCopy()
		if of := containerOf(&alone); of != nil {
			of.Command, of.Args = nil, nil
		}
		sources = append(sources, alone)
		worker = len(sources) - 1
		m.adjust(alone.at, "gang.roles[]", "without workers the launcher's own container runs the ranks, and so does a worker of its shape here")
	} else if spec.RunLauncherAsWorker && sources[worker].replicas < math.MaxInt32 {
		sources[worker].replicas++
	}
	sources[worker].isDaemon = true
	sources[worker].restart, sources[worker].restartAt = sources[launcher].restart, sources[launcher].restartAt // which decides
	sources[launcher].isGuest = m.isOnto() || !m.hasMore(&sources[launcher], &sources[worker])
	if m.isOnto() {
		m.refuseContradictions(&sources[launcher], &sources[worker])
	}
	if spec.SlotsPerWorker != nil {
		sources[worker].processes = *spec.SlotsPerWorker
	}
	return sources
}

// takeLauncher has the command of a launcher that is a guest be the job's.
func (m mpiPart) takeLauncher() {
	at := slices.IndexFunc(m.roles, func(r *gangRole) bool { return r.isGuest })
	if at < 0 {
		return
	}
	launcher := m.roles[at]
	m.spec.Command, m.spec.Env = launcher.made.Command, launcher.made.Env
	m.roles = slices.Delete(m.roles, at, at+1)
	m.adjust(launcher.templateAt, "command", "the command runs once, beside the ranks of worker 0, without resources of its own; its "+
		"variables are those of all ranks")
}

// hasMore reports whether a launcher's pod has something that the workers' has not, or a variable with another value.
func (m mpiPart) hasMore(launcher, worker *roleSource) bool {
	own, other := containerOf(launcher), containerOf(worker)
	if own == nil || other == nil {
		return true
	}
	isOpen := slices.ContainsFunc(own.Env, func(e corev1.EnvVar) bool { return e.ValueFrom != nil })
	if isOpen || len(own.EnvFrom) > 0 || m.imageOf(own) != m.imageOf(other) || len(contradictions(own, other)) > 0 {
		return true
	}
	pod, program := withoutProgram(launcher)
	podOfWorker, programOfWorker := withoutProgram(worker)
	return !isPartOf(pod, podOfWorker) || !isPartOf(program, programOfWorker)
}

// contradictions returns the places of a launcher's variables that have another value in a worker.
func contradictions(launcher, worker *corev1.Container) []int {
	var found []int
	for i, e := range launcher.Env {
		at := slices.IndexFunc(worker.Env, func(other corev1.EnvVar) bool { return other.Name == e.Name })
		if at >= 0 && !reflect.DeepEqual(e, worker.Env[at]) && !isOfGang(v1beta1.FrameworkMPI, e.Name) {
			found = append(found, i)
		}
	}
	return found
}

// refuseContradictions refuses variables of a launcher whose values those of the workers would replace, as both run in one place.
func (m mpiPart) refuseContradictions(launcher, worker *roleSource) {
	own, other := containerOf(launcher), containerOf(worker)
	if own == nil || other == nil {
		return
	}
	for _, i := range contradictions(own, other) {
		m.refuse(fmt.Sprintf("%s[%d]", containerPath(launcher, "env"), i), fmt.Sprintf("the command runs in a worker's place, where %s has the "+
			"workers' value; give both one value, or set it in the command", own.Env[i].Name))
	}
}

// withoutProgram returns what a pod template has beside what a launcher's command brings itself: the pod, and the container of the
// program.
func withoutProgram(of *roleSource) (pod, program map[string]any) {
	made := *of
	made.template = *of.template.DeepCopy()
	made.template.Spec.RestartPolicy, made.template.Spec.TerminationGracePeriodSeconds = "", nil
	one := *containerOf(&made)
	made.template.Spec.Containers = slices.DeleteFunc(made.template.Spec.Containers, func(c corev1.Container) bool { return c.Name == one.Name })
	one.Name, one.Image, one.ImagePullPolicy, one.WorkingDir = "", "", "", ""
	one.Command, one.Args, one.Env, one.Ports, one.Resources = nil, nil, nil, nil, corev1.ResourceRequirements{}
	return asMap(&made.template), asMap(&one)
}

// isPartOf reports whether another value has all that a value has.
func isPartOf(value, other any) bool {
	switch value := value.(type) {
	case map[string]any:
		another, _ := other.(map[string]any)
		for key := range value {
			if !isEmpty(value[key]) && !isPartOf(value[key], another[key]) {
				return false
			}
		}
		return true
	case []any:
		another, _ := other.([]any)
		return !slices.ContainsFunc(value, func(one any) bool {
			return !slices.ContainsFunc(another, func(its any) bool { return reflect.DeepEqual(one, its) })
		})
	default:
		return reflect.DeepEqual(value, other)
	}
}

// imageOf is a container's image after --image.
func (g *gangJob) imageOf(of *corev1.Container) string {
	if mapped, isMapped := g.options.Kubeflow.Images[of.Image]; isMapped {
		g.use(choiceImage, of.Image)
		return mapped
	}
	return of.Image
}

// dropDaemon leaves out what a worker of MPI runs while it waits for ranks.
func dropDaemon(r *gangRole, of *corev1.Container) {
	words := strings.Join(slices.Concat(of.Command, of.Args), " ")
	switch {
	case words == "":
	case strings.Contains(words, "sshd") || strings.Contains(words, "sleep"):
		r.drop(r.path("command"), "a worker waits for ranks by itself, without ssh")
	default:
		r.note(Row{Path: r.path("command"), Verdict: Dropped, Differs: true,
			Text: "only the launcher's command runs, which starts the ranks; do in it what must come before them"})
	}
}

// What points mpirun to files of Kubeflow's: in words of an argument list, as variables, and in a line for a shell.
var (
	hostfileOptions = []string{"--hostfile", "-hostfile", "--machinefile", "-machinefile", "--default-hostfile", "-default-hostfile", "-f"}
	agentVariables  = []string{
		"OMPI_MCA_plm_rsh_agent", "OMPI_MCA_orte_default_hostfile", "PRTE_MCA_plm_ssh_agent", "PRTE_MCA_prte_default_hostfile",
		"I_MPI_HYDRA_HOST_FILE", "I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP_EXEC", "HYDRA_HOST_FILE", "HYDRA_LAUNCHER", "HYDRA_LAUNCHER_EXEC",
	}
	agentOptions = []string{"plm_rsh_agent", "orte_default_hostfile"}
	inShell      = regexp.MustCompile(`(\\\n|\s)+(--?(hostfile|machinefile|default-hostfile)|-f)[ =]+/etc/mpi/\S+|` +
		`(\\\n|\s)+--?mca\s+(plm_rsh_agent|orte_default_hostfile)\s+\S*/etc/mpi/\S+`)
)

// Programs that start ranks: those that the gang points to its hosts, and those that reach hosts by ssh.
var (
	ranksInShell = regexp.MustCompile(`(^|[\s;&|(/])(mpirun|mpiexec|mpiexec\.hydra|orterun|prterun)(\s|$)`)
	sshInShell   = regexp.MustCompile(`(?:^|[;&|(\n]\s*|\bexec\s+)(?:\S*/)?(horovodrun|deepspeed)\s`)
)

// kubeflowFiles is where Kubeflow has hostfile and launch agent.
const kubeflowFiles = "/etc/mpi/"

// takeMPICommand takes out what points mpirun to hostfile and launch agent of Kubeflow's, as the gang has its own.
func takeMPICommand(r *gangRole, at string) {
	before := strings.Join(r.made.Command, " ")
	kept := r.made.Command
	if slices.ContainsFunc(kept, ranksInShell.MatchString) {
		kept = withoutFiles(kept)
	}
	r.made.Command = kept
	after := strings.Join(kept, " ")
	bySSH := sshInShell.FindStringSubmatch(after + " ")
	for _, word := range kept {
		if bySSH == nil && strings.ContainsAny(word, " \n") {
			bySSH = sshInShell.FindStringSubmatch(word)
		}
	}
	switch {
	case bySSH != nil:
		r.refuse(at, bySSH[1]+" reaches hosts by ssh, which places do not have; write mpirun with the same program")
	case strings.Contains(after, kubeflowFiles) || strings.Contains(after, "kubexec"):
		r.refuse(at, "the command reads a file below /etc/mpi, which is not there; take it out, as mpirun finds hosts by variables of the gang")
	case before != after:
		r.adjust(at, "command", fmt.Sprintf("options for a hostfile or launch agent of Kubeflow are taken out; the gang points mpirun to "+
			"its own: %.200q",
			after))
	}
}

// withoutFiles returns the words of a command without options that name a file of Kubeflow's.
func withoutFiles(words []string) []string {
	var kept []string
	for i := 0; i < len(words); i++ {
		if many := namesFile(words[i:]); many > 0 {
			i += many - 1
			continue
		}
		kept = append(kept, inShell.ReplaceAllString(words[i], ""))
	}
	return kept
}

// namesFile returns how many words an option has that names a file of Kubeflow's, 0 for all others.
func namesFile(words []string) int {
	option, value, isJoined := strings.Cut(words[0], "=")
	isOfKubeflow := func(number int) bool { return number < len(words) && strings.Contains(words[number], kubeflowFiles) }
	switch {
	case isJoined && slices.Contains(hostfileOptions, option) && strings.HasPrefix(value, kubeflowFiles):
		return 1
	case slices.Contains(hostfileOptions, words[0]) && isOfKubeflow(1):
		return 2
	case strings.TrimLeft(words[0], "-") == "mca" && isOfKubeflow(2) && slices.Contains(agentOptions, words[1]):
		return 3
	}
	return 0
}
