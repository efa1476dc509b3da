package validate

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Addresses from which Ray fetches a working directory or a module: its job API takes no
// path, because nobody is there to upload what lies at it.
const (
	uriBegin = `^local:///|^(gcs|https?|s3|gs|azure|abfss|file)://[^?#]+[.](zip|tar[.]gz|tgz|tar[.]xz`
	uriEnd   = `)([?#].*)?$`
)

var (
	directoryURI = regexp.MustCompile(uriBegin + uriEnd)
	moduleURI    = regexp.MustCompile(uriBegin + `|whl` + uriEnd)
)

// maxRuntimeEnv is how much runtimeEnv, env and metadata may be together. Ray hands all of
// it to the driver in one environment variable, of which Linux passes 128 KiB.
const maxRuntimeEnv = 64 << 10

// Each value counts its text, and four bytes for what stands around it in JSON. How deep
// values may lie: Ray's own fields go to 5, such as the pip packages of a conda environment.
// How many may lie beside each other: the API server takes the square of that to count them.
const (
	aroundValue = 4
	maxDepth    = 8
	maxEntries  = 1024
)

// measure is the size of a value as JSON has it, the keys of objects included.
func measure(value any, depth int) int {
	size, within := aroundValue, 0
	switch value := value.(type) {
	case string:
		size += len(value)
	case map[string]any:
		if within = len(value); fits(within, depth) {
			for key := range value {
				size += measure(key, depth+1) + measure(value[key], depth+1)
			}
		}
	case []any:
		if within = len(value); fits(within, depth) {
			for _, entry := range value {
				size += measure(entry, depth+1)
			}
		}
	}
	if !fits(within, depth) {
		return maxRuntimeEnv
	}
	return size
}

func fits(entries, depth int) bool {
	return entries == 0 || entries <= maxEntries && depth < maxDepth
}

// measured is an expression with the same result, for the value that v stands for.
func measured(v string, depth int) string {
	text := fmt.Sprintf("type(%[1]s) == string ? size(bytes(%[1]s)) + %[2]d", v, aroundValue)
	container := fmt.Sprintf("(type(%[1]s) == map || type(%[1]s) == list) && size(%[1]s) >", v)
	if depth == maxDepth {
		return fmt.Sprintf("(%s : %s 0 ? %d : %d)", text, container, maxRuntimeEnv, aroundValue)
	}
	entry := string(rune('a' + depth))
	entries := fmt.Sprintf("(type(%[1]s) == map ? %[1]s.map(k, dyn(k)) + %[1]s.map(k, %[1]s[k]) : type(%[1]s) == list ? %[1]s : [])", v)
	return fmt.Sprintf("(%s : %s %d ? %d : %s.map(%s, %s).sum() + %d)",
		text, container, maxEntries, maxRuntimeEnv, entries, entry, measured(entry, depth+1), aroundValue)
}

// size is what of a job goes to Ray beside what it runs.
func (r *run) size() int {
	text, err := json.Marshal([]any{r.spec.Env, r.spec.Metadata})
	if err != nil {
		panic(fmt.Sprintf("write the variables of a job: %v", err)) // texts only
	}
	var rest []any
	if err := json.Unmarshal(text, &rest); err != nil {
		panic(fmt.Sprintf("read the variables of a job: %v", err)) // it was just written
	}
	size := 0
	for _, value := range append(rest, r.runtimeEnv) {
		size += measure(value, 0)
	}
	return size
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func joined(words []string, by string) string { return strings.Join(words, by) }

func isText(value any) bool { _, ok := value.(string); return ok }

// areTexts tells a list of texts of which each is good.
func areTexts(value any, good func(text string) bool) bool {
	entries, ok := value.([]any)
	return ok && !slices.ContainsFunc(entries, func(entry any) bool {
		text, ok := entry.(string)
		return !ok || !good(text)
	})
}

func anyText(string) bool { return true }

// isInstallation tells a value that Ray takes for pip and uv.
func isInstallation(value any) bool {
	object, ok := value.(map[string]any)
	if ok {
		_, ok = object["packages"]
	}
	return ok || value == nil || isText(value) || areTexts(value, anyText)
}

// installers are the keys of a runtime environment of which Ray takes one.
var installers = []string{"pip", "uv", "conda"}

// fieldsOfRuntimeEnv are those that some supported Ray knows. Ray takes others too, for its plugins and of later
// versions, and ignores those that nothing reads.
var fieldsOfRuntimeEnv = []string{
	"pip", "uv", "conda", "working_dir", "py_modules", "py_executable", "env_vars", "excludes", "config", "image_uri", "container",
	"worker_process_setup_hook", "nsight", "_nsight", "rocprof_sys", "_rocprof_sys", "java_jars",
}

// near matches, for each of Ray's fields, one that has a letter more, less or another, or two that changed places. Case
// does not count, nor do the signs between words. A short name has too many neighbours that may be plugins, such as zip
// beside pip: of these, one letter twice and two that changed places count alone.
var near = func() map[string]*regexp.Regexp {
	all := map[string]*regexp.Regexp{}
	for _, name := range fieldsOfRuntimeEnv {
		if !strings.HasPrefix(name, "_") { // which is near to the one without
			all[name] = regexp.MustCompile("(?i)^(" + misspellings(name) + ")$")
		}
	}
	return all
}()

// The API server spends only so much on a policy: where there are more fields, none is compared, and none that is longer.
// What is misspelt is always shorter.
const (
	mostSpelt    = 64
	longestSpelt = 64
)

// shortName is how many letters a name has at most that is short.
const shortName = 3

func misspellings(name string) string {
	var all []string
	spelt := func(part string) string { return strings.ReplaceAll(part, "_", "[-_]?") }
	for i := range name {
		before, letter, after := spelt(name[:i]), spelt(name[i:i+1]), spelt(name[i+1:])
		if len(name) <= shortName {
			all = append(all, before+letter+letter+"?"+after)
		} else {
			all = append(all, before+".?"+letter+"?"+after)
		}
	}
	for i := range len(name) - 1 {
		all = append(all, spelt(name[:i])+spelt(name[i+1:i+2])+spelt(name[i:i+1])+spelt(name[i+2:]))
	}
	if len(name) > shortName {
		all = append(all, spelt(name)+".")
	}
	slices.Sort(all)
	return joined(slices.Compact(all), "|")
}

// meantBy returns the field of Ray's that a name misspells, empty if it misspells none.
func meantBy(name string) string {
	if slices.Contains(fieldsOfRuntimeEnv, name) {
		return ""
	}
	for _, meant := range sorted(near) {
		if near[meant].MatchString(name) {
			return meant
		}
	}
	return ""
}

// JobVariables returns the variables of the policy that expressions about a job name beside the job and its runtimeEnv, in their
// order: how Ray's fields may be misspelt, which fields of runtimeEnv are, what the first of them means, and those about gangs.
// Each pattern is there once, as Helm keeps all of the chart in one Secret.
func JobVariables() []Variable {
	var spellings []string
	for _, name := range sorted(near) {
		spellings = append(spellings, fmt.Sprintf("'%s': '%s'", name, misspellings(name)))
	}
	return append([]Variable{
		{Name: "spellings", Expression: "{" + joined(spellings, ", ") + "}"},
		{Name: "misspelt", Expression: fmt.Sprintf("size(variables.runtimeEnv) > %d ? [] : variables.runtimeEnv.filter(k, size(k) <= %d && "+
			"!(k in %s) && k.matches('(?i)^(' + variables.spellings.map(n, variables.spellings[n]).join('|') + ')$'))",
			mostSpelt, longestSpelt, list(fieldsOfRuntimeEnv))},
		{Name: "meant", Expression: "variables.spellings.filter(n, variables.misspelt[0].matches('(?i)^(' + variables.spellings[n] + ')$'))[0]"},
	}, slices.Concat(gangPolicyVariables(), tunePolicyVariables())...)
}

// inRuntimeEnv reports the fields of a runtime environment that are wrong.
func inRuntimeEnv(wrong map[string]func(value any) bool) func(*run, report) {
	return func(r *run, bad report) {
		for _, name := range sorted(wrong) {
			if value, there := r.runtimeEnv[name]; there && wrong[name](value) {
				bad.at(runtimeEnvPath.Child(name), nil)
			}
		}
	}
}

var runtimeEnvPath = field.NewPath("spec", "runtimeEnv")

// runtimeEnvRules are about Ray's runtime environment. In their expressions
// variables.runtimeEnv is that object, and variables.vars its env_vars, both empty where
// they are not there.
var runtimeEnvRules = []Rule{
	{
		ID: "runtime-env-misspelt", Field: "spec.runtimeEnv", By: Policy,
		Refused: "a field of runtimeEnv is misspelt, and Ray would ignore it", Remedy: "write it as Ray does",
		Holds: "size(variables.misspelt) == 0",
		At:    "'spec.runtimeEnv.' + variables.misspelt[0]", Which: "variables.meant",
		job: func(r *run, bad report) {
			for _, name := range sorted(r.runtimeEnv) {
				if meant := meantBy(name); len(r.runtimeEnv) <= mostSpelt && meant != "" {
					bad.which(runtimeEnvPath.Child(name), meant)
				}
			}
		},
	},
	{
		ID: "runtime-env-vars", Field: "spec.runtimeEnv.env_vars", By: Policy,
		Refused: "env_vars must be an object of strings", Remedy: "quote numbers and booleans, or leave env_vars out",
		Holds: "[variables.runtimeEnv.?env_vars.orValue(dyn({}))].all(m, type(m) == map && m.all(k, type(m[k]) == string))",
		job: inRuntimeEnv(map[string]func(any) bool{"env_vars": func(value any) bool {
			texts, ok := value.(map[string]any)
			return !ok || slices.ContainsFunc(slices.Collect(maps.Values(texts)), func(v any) bool { return !isText(v) })
		}}),
	},
	{
		ID: "runtime-env-uri", Field: "spec.runtimeEnv.working_dir, spec.runtimeEnv.py_modules", By: Policy,
		Refused: "working_dir must be the URI of an archive, and py_modules a list of such URIs, because Ray's job API accepts no paths",
		Remedy: "give one such as https://host/code.zip or s3://bucket/code.zip; for code on your machine, use heliostat job submit --working-dir; " +
			"for code in the image, cd to it in the entrypoint or set PYTHONPATH",
		Holds: "[variables.runtimeEnv.?working_dir.orValue(dyn(null))].all(d, d == null || (type(d) == string && d.matches('" + directoryURI.String() + "'))) && " +
			"[variables.runtimeEnv.?py_modules.orValue(dyn(null))].all(l, l == null || (type(l) == list && l.all(d, type(d) == string && d.matches('" + moduleURI.String() + "'))))",
		job: inRuntimeEnv(map[string]func(any) bool{
			"working_dir": func(value any) bool {
				text, ok := value.(string)
				return value != nil && !(ok && directoryURI.MatchString(text))
			},
			"py_modules": func(value any) bool { return value != nil && !areTexts(value, moduleURI.MatchString) },
		}),
	},
	{
		ID: "runtime-env-installer", Field: "spec.runtimeEnv", By: Policy,
		Refused: "a runtime environment must have only one of pip, uv and conda", Remedy: "keep one; with conda, list pip's packages among its dependencies",
		Holds: list(installers) + ".filter(k, variables.runtimeEnv[?k].orValue(dyn(null)) != null).size() <= 1",
		job: func(r *run, bad report) {
			there := slices.DeleteFunc(slices.Clone(installers), func(name string) bool { return r.runtimeEnv[name] == nil })
			if len(there) > 1 {
				bad.at(runtimeEnvPath, joined(there, ", "))
			}
		},
	},
	{
		ID: "runtime-env-packages", Field: "spec.runtimeEnv.pip, spec.runtimeEnv.uv, spec.runtimeEnv.conda", By: Policy,
		Refused: "pip and uv must be a list of requirements, an object with packages, or the path of a file in the image; conda must be an environment as an object, or the name or path of one",
		Remedy:  "use one of these forms",
		Holds: "['pip', 'uv'].all(k, [variables.runtimeEnv[?k].orValue(dyn(null))].all(p, p == null || type(p) == string || " +
			"(type(p) == list && p.all(t, type(t) == string)) || (type(p) == map && 'packages' in p))) && " +
			"[variables.runtimeEnv.?conda.orValue(dyn(null))].all(c, c == null || type(c) == string || type(c) == map)",
		job: inRuntimeEnv(map[string]func(any) bool{
			"pip": func(value any) bool { return !isInstallation(value) },
			"uv":  func(value any) bool { return !isInstallation(value) },
			"conda": func(value any) bool {
				_, object := value.(map[string]any)
				return value != nil && !object && !isText(value)
			},
		}),
	},
	{
		ID: "runtime-env-size", Field: "spec.runtimeEnv, spec.env, spec.metadata", By: Policy,
		Refused: fmt.Sprintf("runtimeEnv, env and metadata must have at most 64 KiB together, %d levels, and %d values on one level", maxDepth, maxEntries),
		Remedy:  "put large values into the image, a ConfigMap or a working_dir",
		Holds: fmt.Sprintf("[variables.runtimeEnv, object.spec.?env.orValue([]), object.spec.?metadata.orValue({})].map(v, %s).sum() <= %d",
			measured("v", 0), maxRuntimeEnv),
		job: func(r *run, bad report) {
			if size := r.size(); size > maxRuntimeEnv {
				bad.at(runtimeEnvPath, size)
			}
		},
	},
}
