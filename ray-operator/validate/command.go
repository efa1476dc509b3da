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
		ID: "run-size", Field: "spec.entrypoint, spec.command", By: Policy,
		Refused: "the command line must have at most 32 KiB, where an element of command counts its bytes and three more",
		Remedy:  "put long parts into a file or a variable",
		Holds: "size(bytes(object.spec.?entrypoint.orValue(''))) <= 32768 && " +
			"object.spec.?command.orValue([]).map(w, size(bytes(w)) + 3).sum() <= 32768",
		job: func(r *run, bad report) {
			if len(r.spec.Entrypoint) > maxLine {
				bad.at(specPath.Child("entrypoint"), len(r.spec.Entrypoint))
			}
			if size := commandSize(r.spec.Command); size > maxLine {
				bad.at(specPath.Child("command"), size)
			}
		},
	},
	{
		ID: "run-nul", Field: "spec.entrypoint, spec.command, spec.env, spec.runtimeEnv.env_vars", By: Policy,
		Refused: "the text must not contain a NUL character", Remedy: "remove it",
		Holds: `!object.spec.?entrypoint.orValue('').contains('\x00') && object.spec.?command.orValue([]).all(w, !w.contains('\x00')) && ` +
			`object.spec.?env.orValue([]).all(e, !e.?value.orValue('').contains('\x00')) && ` +
			`variables.vars.all(k, type(variables.vars[k]) != string || !variables.vars[k].contains('\x00'))`,
		job: func(r *run, bad report) {
			if strings.Contains(r.spec.Entrypoint, nul) {
				bad.at(specPath.Child("entrypoint"), nil)
			}
			each(bad, specPath, "command", r.spec.Command, func(word *string) bool { return strings.Contains(*word, nul) })
			each(bad, specPath, "env", r.spec.Env, func(e *corev1.EnvVar) bool { return strings.Contains(e.Value, nul) })
			keys(bad, specPath, "runtimeEnv.env_vars", r.vars, func(key string) bool {
				text, _ := r.vars[key].(string)
				return strings.Contains(text, nul)
			})
		},
	},
}
