package convert

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// torchLaunchers are modules by which Python starts the processes of a replica.
var torchLaunchers = []string{"torch.distributed.run", "torch.distributed.launch"}

// optionsFrom returns where the options of torchrun begin in its words, 0 where another program runs.
func optionsFrom(words []string) int {
	if len(words) == 0 {
		return 0
	}
	if path.Base(words[0]) == "torchrun" {
		return 1
	}
	at := slices.Index(words, "-m")
	if at > 0 && at+1 < len(words) && slices.Contains(torchLaunchers, words[at+1]) {
		return at + 2
	}
	return 0
}

// startsDirectly reports whether a program is one that starts the processes of a replica itself.
func startsDirectly(words []string) bool { return optionsFrom(words) > 0 }

// torchFlags are options of torchrun without a value.
var torchFlags = []string{
	"--standalone", "--no-python", "--no_python", "--run-path", "--run_path", "--module", "-m", "--use-env", "--use_env",
	"--virtual-local-rank", "--virtual_local_rank",
}

// launcherInShell matches such a program in the line of a shell.
var launcherInShell = regexp.MustCompile(`\btorchrun\s|\btorch\.distributed\.(run|launch)\b`)

// isLine reports whether a word is a line for a shell that runs torchrun.
func isLine(text string) bool {
	return strings.ContainsAny(text, " \n") && launcherInShell.MatchString(text)
}

// startsProcesses reports whether a program, or a line that a shell runs, starts the processes of a replica itself.
func startsProcesses(words []string) bool {
	return startsDirectly(words) || slices.ContainsFunc(words, isLine)
}

// isPython reports whether a program is Python, so that no shell or script starts torchrun.
func isPython(words []string) bool {
	return len(words) > 0 && strings.HasPrefix(path.Base(words[0]), "python") && !startsDirectly(words)
}

// numberOption matches the option of torchrun that says how many processes there are.
var numberOption = regexp.MustCompile(`--nproc[-_]per[-_]node(?:[= ]\s*(\S+))?`)

// nprocOption returns what the option of torchrun says, the number of the word that says it, and whether it is there.
func nprocOption(words []string) (value string, number int, is bool) {
	for i, word := range words {
		found := numberOption.FindStringSubmatch(word)
		switch {
		case found == nil:
		case found[1] == "" && i+1 < len(words):
			return words[i+1], i + 1, true
		default:
			return found[1], i, true
		}
	}
	return "", 0, false
}

// variableOfNumber matches a reference to the variable in which Kubeflow has the number of processes.
var variableOfNumber = regexp.MustCompile(`^["']?[$]([{(]?)PET_NPROC_PER_NODE[})]?["';]*$`)

// variableIn matches a variable that Kubernetes replaces.
var variableIn = regexp.MustCompile(`[$][(]([a-zA-Z_][a-zA-Z0-9_]*)[)]`)

// valueOf is a text of a container with its own variables in it.
func valueOf(of *corev1.Container, text string) string {
	return variableIn.ReplaceAllStringFunc(text, func(reference string) string {
		value := reference
		for _, e := range of.Env {
			if reference == "$("+e.Name+")" && e.ValueFrom == nil {
				value = e.Value
			}
		}
		return value
	})
}

// What makes torchrun meet the other nodes in another way than by variables of the gang, or restart processes itself: options of its
// own, the same in a line for a shell, and variables.
var (
	meetingOption = regexp.MustCompile(`^--(rdzv[-_](backend|endpoint|id|conf)|max[-_]restarts|nnodes=[0-9]+:[0-9]+$)`)
	rangeOfNodes  = regexp.MustCompile(`^[0-9]+:[0-9]+$`)
	meetingInLine = regexp.MustCompile(`(?:\\\n|\s)+--(?:(?:rdzv[-_](?:backend|endpoint|id|conf)|max[-_]restarts)(?:=|\s+)` +
		`(?:"[^"]*"|'[^']*'|[$][({][^)}]*[)}]|[^\s;&|)"'])+|nnodes(?:=|\s+)["']?[0-9]+:[0-9]+["']?)`)
)

const meetingVariables = "PET_RDZV_"

// withoutMeeting returns the words of a program without such options.
func withoutMeeting(r *gangRole, words []word) []word {
	var texts []string
	for _, one := range words {
		texts = append(texts, one.text)
	}
	from := optionsFrom(texts)
	kept := slices.Clone(words[:from])
	for i := from; i < len(words); i++ {
		many := 1
		isOption := from > 0 && strings.HasPrefix(texts[i], "-")
		if isOption && !strings.Contains(texts[i], "=") && !slices.Contains(torchFlags, texts[i]) {
			many = 2
		}
		end := min(i+many, len(words))
		switch {
		case isOption && isMeeting(texts[i:end]):
			leaveMeeting(r, words[i].at, strings.Join(texts[i:end], " "))
		case isOption:
			kept = append(kept, words[i:end]...)
		default:
			from = 0 // the program follows, with options of its own
			kept = append(kept, word{words[i].at, withoutMeetingIn(r, words[i])})
		}
		i = end - 1
	}
	return kept
}

// isMeeting reports whether an option with its value is such a one, or says the number of processes by the variable that says it
// without an option.
func isMeeting(option []string) bool {
	if meetingOption.MatchString(option[0]) {
		return true
	}
	value, _, isNumber := nprocOption(option)
	return isNumber && variableOfNumber.MatchString(value) || len(option) > 1 && option[0] == "--nnodes" && rangeOfNodes.MatchString(option[1])
}

// withoutMeetingIn returns a line for a shell without such options.
func withoutMeetingIn(r *gangRole, one word) string {
	if !isLine(one.text) {
		return one.text
	}
	return meetingInLine.ReplaceAllStringFunc(one.text, func(option string) string {
		leaveMeeting(r, one.at, strings.TrimLeft(option, "\\ \t\n"))
		return ""
	})
}

// leaveMeeting says why an option is taken out.
func leaveMeeting(r *gangRole, at, option string) {
	row := Row{Path: at, Verdict: Dropped, Text: fmt.Sprintf("%.80q is taken out: torchrun meets the other nodes by variables of the gang", option)}
	if strings.HasPrefix(option, "--max") || strings.HasPrefix(option, "--nnodes") {
		row.Differs = true
		row.Text = fmt.Sprintf("%.80q is taken out: torchrun runs with a fixed number of nodes, and only the whole gang restarts, as "+
			"gang.maxRestarts says", option)
	}
	r.note(row)
}

// What a job says of the processes of a node where it is no number. Without a word it is auto.
const (
	nprocAuto = "auto"
	nprocGPU  = "gpu"
	nprocCPU  = "cpu"
)

// count counts the processes of a replica, as torchrun does where it is told a kind of device.
func (c *conversion) count(path, text string, of *roleSource) {
	if number, err := strconv.ParseInt(text, 10, 32); err == nil || errors.Is(err, strconv.ErrRange) {
		if number < 1 || err != nil {
			c.refuse(path, "a replica has at least one process; give the number of processes")
			return
		}
		of.processes = int32(number)
		return
	}
	var gpus, cpus int64
	if container := containerOf(of); container != nil {
		gpus, cpus = gpusIn(container), cpusIn(container)
	}
	word := cmp.Or(text, nprocAuto)
	number, what := gpus, "GPUs"
	if word == nprocCPU || word == nprocAuto && gpus == 0 {
		number, what = cpus, "CPUs"
	}
	switch {
	case !slices.Contains([]string{nprocAuto, nprocGPU, nprocCPU}, word):
		c.refuse(path, "it is a number, auto, cpu or gpu; use one of them")
	case number == 0 && word == nprocAuto:
		c.change(of.at, "gang.roles[].processesPerReplica", "torchrun counted the CPUs of the machine, and starts one process here; set "+
			"processesPerReplica for more")
	case number == 0:
		c.refuse(path, fmt.Sprintf("the number of %s is not in the resources of %s; write the number of processes", what, of.at))
	default:
		of.processes = int32(number)
		if text == "" {
			path = of.at
		}
		c.adjust(path, "gang.roles[].processesPerReplica", fmt.Sprintf("torchrun starts %d processes, the %s of the container", number, what))
	}
}

// gpusIn counts the GPUs of a container.
func gpusIn(of *corev1.Container) int64 {
	sum := int64(0)
	for name, quantity := range of.Resources.Limits {
		if naming.Accelerator(name) == naming.ResourceGPU {
			sum += quantity.Value()
		}
	}
	return sum
}

// cpusIn counts the CPUs of a container.
func cpusIn(of *corev1.Container) int64 {
	quantity, _ := amount(of, corev1.ResourceCPU)
	return quantity.Value()
}
