package convert

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// takeEnv divides the container's variables: those with a value become the role's, and those from elsewhere stay in the pods.
func (r *gangRole) takeEnv() {
	for i, e := range r.program().Env {
		at := r.path(fmt.Sprintf("env[%d]", i))
		switch {
		case r.gang.Framework == v1beta1.FrameworkPyTorch && strings.HasPrefix(e.Name, meetingVariables):
			r.drop(at, "torchrun meets the other nodes by variables of the gang")
		case r.gang.Framework == v1beta1.FrameworkMPI && slices.Contains(agentVariables, e.Name):
			r.drop(at, "the gang points mpirun to hosts and launch agent of its own")
		case r.gang.Framework == v1beta1.FrameworkMPI && strings.Contains(e.Value, kubeflowFiles):
			r.refuse(at, "it names a file below /etc/mpi, which is not there; take it out, as mpirun finds hosts by variables of the gang")
		case isOfGang(r.gang.Framework, e.Name):
			r.note(Row{Path: at, Verdict: Dropped, Differs: true, Text: fmt.Sprintf("the gang sets %s for each process by itself", e.Name)})
		case e.ValueFrom != nil:
			r.takeSource(at, e)
		default:
			r.takeValue(at, e)
		}
	}
	for i := range r.program().EnvFrom {
		if at := r.path(fmt.Sprintf("envFrom[%d]", i)); r.isOnto() {
			r.refuse(at, fmt.Sprintf("a Secret or ConfigMap cannot become variables of a job on a cluster that is there; put envFrom into "+
				"the template "+
				"of a worker group of %s, and take it out here", r.options.Kubeflow.Onto))
		}
	}
	for _, e := range r.env {
		r.setEnv(e)
	}
}

// isOfGang reports whether the gangs of a framework set a variable.
func isOfGang(framework v1beta1.GangFramework, name string) bool {
	return slices.Contains(validate.GangVariables(framework), name)
}

// fieldOfJob matches a field of a pod that operators of Kubeflow, or a Job, set.
var fieldOfJob = regexp.MustCompile(`'(training\.kubeflow\.org|trainer\.kubeflow\.org|jobset\.sigs\.k8s\.io|batch\.kubernetes\.io)/`)

// takeSource takes a variable whose value a Secret, a ConfigMap or the pod has.
func (r *gangRole) takeSource(at string, e corev1.EnvVar) {
	r.open[e.Name] = true
	if r.isOnto() {
		r.refuse(at, fmt.Sprintf("a variable from a Secret, a ConfigMap or a field of the pod needs a pod of its own; put it into the "+
			"template of a "+
			"worker group of %s, and take it out here", r.options.Kubeflow.Onto))
		return
	}
	if field := e.ValueFrom.FieldRef; field != nil && fieldOfJob.MatchString(field.FieldPath) {
		r.refuse(at, "pods have no such label or annotation here; take ROLE, ROLE_INDEX or RANK, which each process finds, in place of "+e.Name)
	} else if field != nil && field.FieldPath == "metadata.name" {
		r.change(at, "clusterTemplate.spec.workerGroups[].template", "the pod has another name, without the number of a process; take "+
			"ROLE_INDEX for that number")
	}
	r.inPod = append(r.inPod, e)
}

// takeValue takes a variable with a value.
func (r *gangRole) takeValue(at string, e corev1.EnvVar) {
	pieces := textPart{r}.expand(e.Value)
	if slices.ContainsFunc(pieces, func(p piece) bool { return p.variable != "" && textPart{r}.isOpen(p.variable) }) {
		r.open[e.Name] = true
		if r.hosts != nil && r.hosts.MatchString(e.Value) {
			r.refuse(at, "it has both the name of a pod and a value that only a pod finds; write it in the program's shell line instead")
			return
		}
		if r.isOnto() || r.isGuest {
			r.refuse(at, "only a pod of its own finds the value; set the variable in the program's shell line instead")
			return
		}
		e.Value = textInPod(pieces)
		r.inPod = append(r.inPod, e)
		return
	}
	plain, isPlain := textOf(pieces)
	if isPlain {
		r.values[e.Name] = plain
	}
	r.setEnv(corev1.EnvVar{Name: e.Name, Value: textPart{r}.written(at, pieces)})
}

// setEnv sets a variable of the role. Of two with one name the last one counts, as in a container.
func (r *gangRole) setEnv(e corev1.EnvVar) {
	at := slices.IndexFunc(r.made.Env, func(other corev1.EnvVar) bool { return other.Name == e.Name })
	if at >= 0 {
		r.made.Env[at] = e
		return
	}
	r.made.Env = append(r.made.Env, e)
}

// takeCommand takes the program with its arguments.
func (r *gangRole) takeCommand() {
	of := r.program()
	if r.isDaemon {
		dropDaemon(r, of)
		return
	}
	words := r.words()
	if len(words) == 0 {
		return
	}
	if r.gang.Framework == v1beta1.FrameworkPyTorch {
		words = withoutMeeting(r, words)
	}
	for _, one := range words {
		textPart{r}.checkShell(one.at, one.text)
		r.made.Command = append(r.made.Command, textPart{r}.written(one.at, textPart{r}.expand(one.text)))
	}
	if r.gang.Framework == v1beta1.FrameworkMPI {
		takeMPICommand(r, words[0].at)
	}
	if dir := of.WorkingDir; dir != "" && (r.isOnto() || r.isGuest) {
		r.made.Command = append([]string{"sh", "-c", `cd "$0" && exec "$@"`, dir}, r.made.Command...)
		r.adjust(r.path("workingDir"), "gang.roles[].command", "a shell changes to the directory, and becomes the program")
	}
}

// word is one of a program's words, and where it stands.
type word struct{ at, text string }

// words returns the program with its arguments, none where no command is given.
func (r *gangRole) words() []word {
	of := r.program()
	command, args := r.path("command"), r.path("args")
	given := of.Command
	if len(given) == 0 {
		given = r.options.Kubeflow.Command
		r.use(choiceCommand, "")
	}
	if len(given) == 0 {
		r.refuse(command, "without a command the image's entrypoint runs, which this object does not have; give command, or pass "+
			"--command PROGRAM")
		return nil
	}
	var all []word
	for i, text := range given {
		all = append(all, word{fmt.Sprintf("%s[%d]", command, i), text})
	}
	for i, text := range of.Args {
		all = append(all, word{fmt.Sprintf("%s[%d]", args, i), text})
	}
	return all
}

// textPart is a role whose texts are rewritten as a gang reads them.
type textPart struct{ *gangRole }

// rankInShell matches variables that the gang sets for each process, and not for a program that starts processes itself.
var rankInShell = regexp.MustCompile(`[$]{?(RANK|WORLD_SIZE|LOCAL_RANK)\b`)

// podInShell matches variables that a pod of a Job has.
var podInShell = regexp.MustCompile(`[$][{(]?(HOSTNAME|JOB_COMPLETION_INDEX)\b`)

// checkShell refuses what a shell would not find.
func (t textPart) checkShell(at, text string) {
	if found := rankInShell.FindStringSubmatch(text); found != nil && t.start == v1beta1.StartPerReplica {
		t.refuse(at, fmt.Sprintf("%s is not there where torchrun starts the processes; take the option out, as torchrun finds PET_NODE_RANK and "+
			"PET_NNODES, or write NODE_RANK or PET_NNODES", found[1]))
	}
	for _, found := range podInShell.FindAllStringSubmatch(text, -1) {
		_, isOwn := t.values[found[1]]
		switch {
		case isOwn || t.open[found[1]]:
		case found[1] == "HOSTNAME":
			t.change(at, "command", "HOSTNAME is the name of a pod, which has no number of a process here; write ROLE_INDEX for that number")
		default:
			t.refuse(at, found[1]+" is not there, as a gang is no Job; write ROLE_INDEX, the number of the process in its role")
		}
	}
}

// piece is a part of a text: its letters, or a variable that Kubernetes would replace there.
type piece struct{ text, variable string }

// expand divides a text as Kubernetes does where it replaces variables: $(NAME) is one, and $$ is a dollar sign. What is known is
// replaced.
func (t textPart) expand(text string) []piece {
	var all []piece
	add := func(letters string) {
		if last := len(all) - 1; last >= 0 && all[last].variable == "" {
			all[last].text += letters
			return
		}
		all = append(all, piece{text: letters})
	}
	for text != "" {
		before, rest, found := strings.Cut(text, "$")
		add(before)
		if !found {
			break
		}
		name, after, isClosed := strings.Cut(strings.TrimPrefix(rest, "("), ")")
		switch {
		case strings.HasPrefix(rest, "$"):
			add("$")
			text = rest[1:]
			continue
		case !strings.HasPrefix(rest, "(") || !isClosed:
			add("$")
			text = rest
			continue
		}
		value, isKnown := t.values[name]
		switch {
		case isKnown:
			add(value)
		case t.isOpen(name) || t.isContract(name):
			all = append(all, piece{variable: name})
		default:
			add("$(" + name + ")")
		}
		text = after
	}
	return all
}

// Names of variables: one that a Secret or ConfigMap may have, and those that Kubernetes sets for Services.
var (
	wholeName = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)
	ofService = regexp.MustCompile(`^[A-Z0-9_]+_SERVICE_(HOST|PORT)$`)
)

// isOpen reports whether only a pod finds the value of a variable. With envFrom that is each one that is not known: only those in
// lower case are taken as commands of a shell.
func (t textPart) isOpen(name string) bool {
	return t.open[name] || ofService.MatchString(name) && !t.isContract(name) ||
		len(t.program().EnvFrom) > 0 && wholeName.MatchString(name) && !t.isContract(name)
}

// textInPod writes pieces as Kubernetes reads them.
func textInPod(pieces []piece) string {
	var out strings.Builder
	for _, p := range pieces {
		if p.variable != "" {
			out.WriteString("$(" + p.variable + ")")
			continue
		}
		out.WriteString(strings.ReplaceAll(p.text, "$", "$$"))
	}
	return out.String()
}

// isContract reports whether Kubeflow sets a variable of a process.
func (t textPart) isContract(name string) bool {
	return isOfGang(t.gang.Framework, name) ||
		slices.ContainsFunc(t.env, func(e corev1.EnvVar) bool { return e.Name == name })
}

// textOf joins pieces that have no variable.
func textOf(pieces []piece) (text string, isPlain bool) {
	for _, p := range pieces {
		if p.variable != "" {
			return "", false
		}
		text += p.text
	}
	return text, true
}

// written writes pieces as a role has them: with references to processes, and with other texts that look so escaped.
func (t textPart) written(at string, pieces []piece) string {
	var out strings.Builder
	for _, p := range pieces {
		if p.variable == "" {
			out.WriteString(t.withHosts(at, p.text))
			continue
		}
		out.WriteString(t.reference(at, p.variable))
	}
	return out.String()
}

// reference is what a role writes for a variable of Kubernetes' form.
func (t textPart) reference(at, name string) string {
	first := t.roles[0]
	switch name {
	case "MASTER_ADDR":
		return fmt.Sprintf("$(%s.0.host)", first.name)
	case "MASTER_PORT":
		return fmt.Sprintf("$(%s.0.port)", first.name)
	}
	for _, e := range t.env {
		if e.Name == name {
			return e.Value
		}
	}
	t.refuse(at, fmt.Sprintf("the value of $(%[1]s) is known only where the process starts; write a line for a shell, such as [sh, -c, "+
		"'exec python train.py --option=$%[1]s']", name))
	return ""
}

// findHosts makes what finds the names of pods.
func (g *gangJob) findHosts(sources []roleSource) {
	if g.meta.Name == "" {
		return
	}
	var aliases []string
	for i := range sources {
		aliases = append(aliases, regexp.QuoteMeta(sources[i].alias))
	}
	slices.SortFunc(aliases, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	g.hosts = regexp.MustCompile(regexp.QuoteMeta(g.meta.Name) + `-(` + strings.Join(aliases, "|") + `)\b`)
}

var hostRest = regexp.MustCompile(`^-([0-9]{1,4})((\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)`)

// withHosts replaces names of pods by references, and escapes all other texts that look like one. A name that may be something
// else is refused.
func (t textPart) withHosts(at, text string) string {
	if t.hosts == nil {
		return t.escaped(text)
	}
	var out strings.Builder
	for {
		found := t.hosts.FindStringSubmatchIndex(text)
		if found == nil {
			return out.String() + t.escaped(text)
		}
		begin, end, alias := found[0], found[1], text[found[2]:found[3]]
		before, rest := text[:begin], text[end:]
		out.WriteString(t.escaped(before))
		name := text[begin:min(len(text), end+20)]
		pod := t.podOf(alias, rest)
		switch {
		case isWithinWord(before):
			out.WriteString(text[begin:end])
			pod.length = 0
		case isPath(before) || !isPod.MatchString(rest):
			out.WriteString(text[begin:end])
			t.once(at, true, fmt.Sprintf("%q stays as it is; write $(%s.0.host) if it becomes the address of a pod, which has no such name here",
				name, t.nameOf(alias)))
			pod.length = 0
		case pod.length == 0:
			t.refuse(at, fmt.Sprintf("%q names a pod of the job, which is not there; write $(%s.0.host) where it is an address, and another "+
				"text where "+
				"it is not", name, t.nameOf(alias)))
			return ""
		case pod.mayMiss():
			t.refuse(at, fmt.Sprintf("%q may be missing, as minReplicas is %d; write $(%s.addresses) for those that are there", name,
				pod.role.least, pod.role.name))
			return ""
		default:
			out.WriteString(pod.reference("host"))
			port, length := t.portOf(at, pod, rest[pod.length:])
			out.WriteString(port)
			pod.length += length
		}
		text = rest[pod.length:]
	}
}

// once adds one row for a part of a text, which may be there several times.
func (t textPart) once(at string, differs bool, text string) {
	row := Row{Path: at, To: "command", Verdict: Changed, Differs: differs, Text: text}
	if strings.Contains(at, ".env[") {
		row.To = "env"
	}
	if !slices.Contains(t.rows, row) {
		t.note(row)
	}
}

// isPod matches what follows the name of a role in that of a pod: its number, or what a shell or a program writes there.
var isPod = regexp.MustCompile("^-[0-9$%{*?`<\\[]")

// isPath reports whether what follows a text is a part of a path.
func isPath(before string) bool {
	return strings.HasSuffix(before, "/") && !strings.HasSuffix(before, "//")
}

// nameOf returns the role of the gang that has the pods of a role.
func (t textPart) nameOf(alias string) string {
	if role := t.roleOf(alias); !role.isGuest {
		return role.name
	}
	return "worker"
}

// isWithinWord reports whether a text ends within a word, so that what follows is no name of its own.
func isWithinWord(before string) bool {
	if before == "" {
		return false
	}
	last := before[len(before)-1]
	return last == '-' || last == '_' || last == '.' || last >= '0' && last <= '9' || last >= 'a' && last <= 'z' || last >= 'A' && last <= 'Z'
}

// roleOf returns the role that names of pods have.
func (g *gangJob) roleOf(alias string) *gangRole {
	at := slices.IndexFunc(g.roles, func(r *gangRole) bool { return r.alias == alias })
	return g.roles[max(at, 0)]
}

// looksLikeReference matches what a gang would replace or refuse.
var looksLikeReference = regexp.MustCompile(`[$]?[$][(]((role|index)[)]|[a-zA-Z0-9_-]+([.][a-zA-Z0-9_-]+){1,2}[)])|[$][$][(]`)

// ofRole matches a reference to what a role of a gang has, which the user wrote for the gang.
var ofRole = regexp.MustCompile(`^[$][(]([a-z0-9-]+)[.]([0-9]{1,4}[.](host|port)|addresses|count)[)]$`)

// escaped writes a text so that a gang leaves it as it is. References to roles of this gang, and to
// parameters of its trials, are what the user wrote for it.
func (t textPart) escaped(text string) string {
	return looksLikeReference.ReplaceAllStringFunc(text, func(found string) string {
		is := ofRole.FindStringSubmatch(found)
		isOfRole := is != nil && slices.ContainsFunc(t.roles, func(r *gangRole) bool { return r.name == is[1] && !r.isGuest })
		if isOfRole || t.trial.has(found) {
			return found
		}
		return "$" + found
	})
}
