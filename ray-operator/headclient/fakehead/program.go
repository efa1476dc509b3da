package fakehead

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Process is what a run does.
type Process struct {
	// Takes is how long, unless it Hangs: then it runs until it is stopped.
	Takes time.Duration
	Hangs bool
	// ExitCode is what it ends with by itself.
	ExitCode int32
	// Lines are its output, all of it at its begin.
	Lines []string

	// prints are what an entrypoint writes, each part at its time.
	prints []print
}

// print writes a text once the process has come so far.
func (p *Process) print(text string) { p.prints = append(p.prints, print{p.Takes, text}) }

// evaluated matches shell code in a variable, with which the operator begins entrypoints. It says nothing and takes no time.
var evaluated = regexp.MustCompile(`^eval "[$][A-Z_]+"; `)

// run is what becomes of a run on a node.
func (j *jobs) run(run Run, instance string) Process {
	run.Entrypoint = evaluated.ReplaceAllString(run.Entrypoint, "")
	if j.program != nil {
		if process, ok := j.program(run); ok {
			return process
		}
	}
	return obey(run, instance)
}

// obey reads an entrypoint as a list of commands with semicolons between them, of which it
// knows "echo TEXT" with variables of the runtime environment and RAY_CLOUD_INSTANCE_ID,
// "printf 'TEXT'" with escapes, "seq N", "sleep SECONDS", "hang" and "exit CODE". Anything else
// takes a second and succeeds.
func obey(run Run, instance string) Process {
	var env struct {
		Variables map[string]string `json:"env_vars"`
	}
	_ = json.Unmarshal(run.RuntimeEnv, &env) // what it cannot be read from has no variables
	variable := func(name string) string {
		if name == "RAY_CLOUD_INSTANCE_ID" {
			return instance
		}
		return env.Variables[name]
	}
	var process Process
	for command := range strings.SplitSeq(run.Entrypoint, ";") {
		name, rest, _ := strings.Cut(strings.TrimSpace(command), " ")
		number, _ := strconv.Atoi(rest) // none is zero, as for a shell
		switch name {
		case "echo":
			process.print(spoken(rest, variable) + "\n")
		case "printf":
			process.print(unescape(strings.Trim(rest, "'")))
		case "seq":
			process.print(count(number))
		case "sleep":
			process.Takes += time.Duration(number) * time.Second
		case "hang":
			process.Hangs = true
			return process
		case "exit":
			process.ExitCode = int32(number)
			return process
		default:
			process.Takes += time.Second
		}
	}
	return process
}

// spoken is a word of a shell: as it stands between single quotes, else with variables.
func spoken(word string, variable func(string) string) string {
	if inner, ok := strings.CutPrefix(word, "'"); ok {
		return strings.TrimSuffix(inner, "'")
	}
	return os.Expand(strings.Trim(word, `"`), variable)
}

// unescape is what printf makes of a text: octal escapes have three digits here.
func unescape(text string) string {
	var said []byte
	for text != "" {
		char, multibyte, rest, err := strconv.UnquoteChar(text, 0)
		switch {
		case err != nil:
			return string(said) + text
		case multibyte:
			said = utf8.AppendRune(said, char)
		default:
			said = append(said, byte(char))
		}
		text = rest
	}
	return string(said)
}

// count is the numbers from 1, a line for each.
func count(to int) string {
	var said []byte
	for i := range to {
		said = append(strconv.AppendInt(said, int64(i+1), 10), '\n')
	}
	return string(said)
}

// unfit tells why the runtime environment of a job cannot be had, and Ray's word for it; both are
// empty where it can.
func (p *packages) unfit(one *job) (why, failure string) {
	var fields struct {
		Pip        any    `json:"pip"`
		WorkingDir string `json:"working_dir"`
	}
	if len(one.RuntimeEnv) == 0 {
		return "", ""
	}
	if err := json.Unmarshal(one.RuntimeEnv, &fields); err != nil {
		return "Failed to start supervisor actor: " + err.Error(), "JOB_SUPERVISOR_ACTOR_START_FAILURE"
	}
	if _, number := fields.Pip.(float64); number {
		return "Failed to start supervisor actor: runtime_env['pip'] must be of type str or List[str]", "JOB_SUPERVISOR_ACTOR_START_FAILURE"
	}
	if slices.ContainsFunc(one.uris, p.lacks) {
		return "runtime_env setup failed: Failed to set up runtime environment.", "RUNTIME_ENV_SETUP_FAILURE"
	}
	return "", ""
}
