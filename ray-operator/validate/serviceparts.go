package validate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A service may have so many applications, and so many deployments in all of them together:
// more than that the policy could not read within its cost. Of more, no single one is asked.
const (
	maxApplications = 64
	maxDeployments  = 256
)

// Kinds of parts that are not inner ones.
const (
	partConfig      = "config"
	partApplication = "application"
	partDeployment  = "deployment"
)

// part is an object of a serveConfig with its place. What should be one and is none is empty.
type part struct {
	path *field.Path
	of   map[string]any
	// application is the number of the one that a deployment belongs to.
	application int
}

// inner says where parts of a kind lie within others.
type inner struct{ kind, within, key string }

// inners are those parts, after the ones that they lie within.
var inners = []inner{
	{"http", partConfig, "http_options"},
	{"grpc", partConfig, "grpc_options"},
	{"controller", partConfig, "controller_options"},
	{"controllerEnvironment", "controller", "runtime_env"},
	{"tracing", partConfig, "tracing_config"},
	{"actor", partDeployment, "ray_actor_options"},
	{"autoscaling", partDeployment, "autoscaling_config"},
	{"gang", partDeployment, "gang_scheduling_config"},
	{"backpressure", partDeployment, "backpressure_config"},
	{"environment", partApplication, "runtime_env"},
	{"environment", "actor", "runtime_env"},
	{"logging", partConfig, "logging_config"},
	{"logging", partApplication, "logging_config"},
	{"logging", partDeployment, "logging_config"},
}

// takeApart finds the parts of the configuration.
func (s *serving) takeApart() {
	if s.config == nil {
		return
	}
	s.parts = map[string][]part{partConfig: {{path: configPath, of: s.config}}}
	s.applications = s.take(&s.parts[partConfig][0], "applications", partApplication)
	if s.applications > maxApplications {
		delete(s.parts, partApplication)
	}
	for i := range s.parts[partApplication] {
		from := s.parts[partApplication][i]
		from.application = i
		s.deployments += s.take(&from, "deployments", partDeployment)
	}
	if s.deployments > maxDeployments {
		delete(s.parts, partDeployment)
	}
	for _, where := range inners {
		for _, outer := range s.parts[where.within] {
			if value, there := outer.of[where.key]; there {
				of, _ := value.(map[string]any)
				s.parts[where.kind] = append(s.parts[where.kind], part{path: outer.path.Child(where.key), of: of})
			}
		}
	}
}

// take takes the entries of a list of a part, and gives how many there are.
func (s *serving) take(from *part, key, kind string) int {
	entries, _ := from.of[key].([]any)
	for i := range entries {
		of, _ := entries[i].(map[string]any)
		s.parts[kind] = append(s.parts[kind], part{path: from.path.Child(key).Index(i), of: of, application: from.application})
	}
	return len(entries)
}

// Variable is what expressions of rules share.
type Variable struct{ Name, Expression string }

// ServiceVariables are the variables that the expressions of services have beside those of
// clusters, each after what it needs. Those of parts are lists of lists of objects with path
// and of, one list for each application where there are several.
func ServiceVariables() []Variable {
	const made = "{'path': dyn('%s' + %s), 'of': dyn(type(%[3]s) == map ? %[3]s : {})}"
	variables := []Variable{
		{"serve", "object.spec.?serveConfig.orValue({})"},
		{"listed", listIn("variables.serve", "applications")},
		{partConfig, fmt.Sprintf("[[%s]]", fmt.Sprintf(made, "spec.serveConfig", "''", "variables.serve"))},
		{partApplication, fmt.Sprintf("[size(variables.listed) > %d ? [] : variables.listed.transformList(i, a, %s)]",
			maxApplications, fmt.Sprintf(made, "spec.serveConfig.applications[", "string(i) + ']'", "a"))},
		{"offered", "variables.application[0].map(a, " + listIn("a.of", "deployments") + ")"},
		{partDeployment, fmt.Sprintf("variables.offered.map(l, size(l)).sum() > %d ? [] : variables.offered.transformList(i, l, l.transformList(j, d, %s))",
			maxDeployments, fmt.Sprintf(made, "spec.serveConfig.applications[", "string(i) + '].deployments[' + string(j) + ']'", "d"))},
	}
	from := map[string][]string{}
	for _, where := range inners {
		if _, there := from[where.kind]; !there {
			variables = append(variables, Variable{Name: where.kind})
		}
		from[where.kind] = append(from[where.kind], fmt.Sprintf("variables.%s.map(l, l.filter(o, '%s' in o.of).map(o, %s))", where.within, where.key,
			fmt.Sprintf("{'path': dyn(o.path + '.%[1]s'), 'of': dyn(type(o.of.%[1]s) == map ? o.of.%[1]s : {})}", where.key)))
	}
	for i := range variables {
		if lists := from[variables[i].Name]; len(lists) > 0 {
			variables[i].Expression = strings.Join(lists, " + ")
		}
	}
	return variables
}

// listIn is an expression for a list of an object, empty where it is none.
func listIn(object, key string) string {
	return fmt.Sprintf("[%s.?%s.orValue(dyn(null))].map(l, type(l) == list ? l : [])[0]", object, key)
}

// flaw is something that may be wrong with the parts of a kind.
type flaw struct {
	// in is the kind, key what of the part is wrong; empty, the part as a whole.
	in, key string
	wrong   func(of map[string]any) bool
	// when is an expression for wrong, of a part o.
	when string
}

// within is an expression for the paths of the broken places.
func (f *flaw) within() string {
	path := "o.path"
	if f.key != "" {
		path += " + '." + f.key + "'"
	}
	return fmt.Sprintf("variables.%s.map(l, l.filter(o, %s).map(o, %s))", f.in, f.when, path)
}

// ofParts completes a rule of the policy that is broken by any of some flaws.
func ofParts(rule Rule, flaws ...flaw) Rule {
	lists := make([]string, len(flaws))
	for i := range flaws {
		lists[i] = flaws[i].within()
	}
	return inLists(rule, strings.Join(lists, " + "), func(s *serving, bad report) {
		for i := range flaws {
			for _, p := range s.parts[flaws[i].in] {
				if flaws[i].wrong(p.of) {
					bad.at(below(p.path, flaws[i].key), nil)
				}
			}
		}
	})
}

// inLists completes a rule of the policy: paths is an expression for lists of the paths of the
// broken places, and find finds the same.
func inLists(rule Rule, paths string, find func(s *serving, bad report)) Rule {
	rule.By, rule.service = Policy, find
	rule.Holds = "(" + paths + ").all(l, size(l) == 0)"
	rule.At = "(" + paths + ").filter(l, size(l) > 0)[0][0]"
	return rule
}
