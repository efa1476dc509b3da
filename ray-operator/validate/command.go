package validate

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Linux passes no argument above 128 KiB, and a job's line is one argument of a shell. A
// command becomes such a line, in which a quotation mark takes four bytes: so a fourth.
const maxLine = 32 << 10

// commandSize is how long a command is as a line, if nothing in it has to be escaped: each
// element between quotation marks, and a space.
func commandSize(command []string) int {
	size := 0
	for _, word := range command {
		size += len(word) + 3
	}
	return size
}

const nul = "\x00"

// commandRules are about what a job runs.
var commandRules = []Rule{
	{
		ID: "run-size", Field: "spec.entrypoint, spec.command, spec.gang.roles[*].entrypoint, spec.gang.roles[*].command", By: Policy,
		Refused: "the command line must have at most 32 KiB, where an element of command counts its bytes and three more",
		Remedy:  "put long parts into a file or a variable",
		Holds: "variables.programs.all(o, size(bytes(o.?entrypoint.orValue(''))) <= 32768 && " +
			"o.?command.orValue([]).map(w, size(bytes(w)) + 3).sum() <= 32768)",
		job: func(r *run, bad report) {
			for _, p := range r.programs() {
				if len(p.entrypoint) > maxLine {
					bad.at(p.path.Child("entrypoint"), len(p.entrypoint))
				}
				if size := commandSize(p.command); size > maxLine {
					bad.at(p.path.Child("command"), size)
				}
			}
		},
	},
	{
		ID: "run-nul", Field: "spec.entrypoint, spec.command, spec.env, spec.gang.roles, spec.runtimeEnv.env_vars", By: Policy,
		Refused: "the text must not contain a NUL character", Remedy: "remove it",
		Holds: `variables.programs.all(o, !o.?entrypoint.orValue('').contains('\x00') && o.?command.orValue([]).all(w, !w.contains('\x00')) && ` +
			`o.?env.orValue([]).all(e, !e.?value.orValue('').contains('\x00'))) && ` +
			`variables.vars.all(k, type(variables.vars[k]) != string || !variables.vars[k].contains('\x00'))`,
		job: func(r *run, bad report) {
			for _, p := range r.programs() {
				if strings.Contains(p.entrypoint, nul) {
					bad.at(p.path.Child("entrypoint"), nil)
				}
				each(bad, p.path, "command", p.command, func(word *string) bool { return strings.Contains(*word, nul) })
				each(bad, p.path, "env", p.env, func(e *corev1.EnvVar) bool { return strings.Contains(e.Value, nul) })
			}
			keys(bad, specPath, "runtimeEnv.env_vars", r.vars, func(key string) bool {
				text, _ := r.vars[key].(string)
				return strings.Contains(text, nul)
			})
		},
	},
}
