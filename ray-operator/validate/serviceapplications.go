package validate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/heliostat-dev/heliostat/ray-operator/serveconfig"
)

// How long names and paths of applications may be: the policy reads them within its cost.
const (
	longestName = 253
	longestPath = 1024
)

var (
	importPath  = regexp.MustCompile(`^[^:]+:[^:]+$|^[^:]+[.][^.:]+$`)
	routePrefix = regexp.MustCompile(`^/$|^/[^{}]*[^/{}]$`)
)

// isGood tells a text that is there, not empty, no longer than most characters, and of a form.
func isGood(value any, most int, form *regexp.Regexp) bool {
	text, ok := value.(string)
	return ok && text != "" && utf8.RuneCountInString(text) <= most && (form == nil || form.MatchString(text))
}

// goodText is an expression for isGood, of the value that v stands for.
func goodText(most int, form *regexp.Regexp) string {
	holds := fmt.Sprintf("type(v) == string && v != '' && size(v) <= %d", most)
	if form != nil {
		holds += " && v.matches('" + form.String() + "')"
	}
	return holds
}

// ill is that a field that must be there is not, or is no good text. With null, one that is
// null is good.
func ill(kind, key string, most int, form *regexp.Regexp) flaw {
	return flaw{
		in: kind, key: key, when: fmt.Sprintf("[o.of.?%s.orValue(dyn(null))].exists(v, !(%s))", key, goodText(most, form)),
		wrong: func(of map[string]any) bool { return !isGood(of[key], most, form) },
	}
}

// routeOf is where an application answers, empty where nowhere.
func routeOf(of map[string]any) string {
	route, there := of["route_prefix"]
	if !there {
		return serveconfig.DefaultRoute
	}
	text, _ := route.(string)
	return text
}

// Expressions for the name of a part o, and for its route; empty where it has none.
const (
	nameIn  = "[o.of.?name.orValue(dyn(''))].map(v, type(v) == string ? v : dyn(''))[0]"
	routeIn = "[o.of.?route_prefix.orValue(dyn('/'))].map(v, type(v) == string ? v : dyn(''))[0]"
)

// repeated completes a rule: of the parts of a kind in one list none may have what an earlier
// one has. What is empty is not asked.
func repeated(rule Rule, kind, key, expression string, what func(of map[string]any) string) Rule {
	paths := fmt.Sprintf("variables.%s.map(l, [l.map(o, %s)].map(all, l.transformList(i, o, all[i] != '' && all.indexOf(all[i]) < i, o.path + '.%s'))[0])",
		kind, expression, key)
	return inLists(rule, paths, func(s *serving, bad report) {
		seen := map[string]bool{}
		for _, p := range s.parts[kind] {
			value := what(p.of)
			mine := strconv.Itoa(p.application) + " " + value
			if value != "" && seen[mine] {
				bad.at(p.path.Child(key), value)
			}
			seen[mine] = true
		}
	})
}

func nameOf(of map[string]any) string {
	name, _ := of["name"].(string)
	return name
}

// remote are the flaws of a runtime environment that names something to fetch which nobody
// can fetch.
var remote = []flaw{
	{
		in: "environment", key: "working_dir",
		when: "[o.of.?working_dir.orValue(dyn(null))].exists(d, d != null && !(type(d) == string && d.matches('" + directoryURI.String() + "')))",
		wrong: func(of map[string]any) bool {
			text, isText := of["working_dir"].(string)
			return of["working_dir"] != nil && !(isText && directoryURI.MatchString(text))
		},
	},
	{
		in: "environment", key: "py_modules",
		when: "[o.of.?py_modules.orValue(dyn(null))].exists(l, l != null && !(type(l) == list && l.all(d, type(d) == string && d.matches('" + moduleURI.String() + "'))))",
		wrong: func(of map[string]any) bool {
			value := of["py_modules"]
			return value != nil && !areTexts(value, moduleURI.MatchString)
		},
	},
}

// applicationRules are about the applications.
var applicationRules = []Rule{
	inLists(Rule{
		ID: "serve-applications", Field: "spec.serveConfig.applications",
		Refused: "a service must have at least one application", Remedy: "add one; to stop serving for a while, set suspend to true and keep it",
	}, "[['applications' in variables.serve && (type(variables.serve.applications) != list || size(variables.serve.applications) > 0) ? '' : 'spec.serveConfig.applications'].filter(p, p != '')]",
		func(s *serving, bad report) {
			entries, isList := s.config["applications"].([]any)
			_, there := s.config["applications"]
			if s.config != nil && (!there || isList && len(entries) == 0) {
				bad.at(configPath.Child("applications"), nil)
			}
		}),
	{
		ID: "serve-too-many", Field: "spec.serveConfig.applications", By: Policy,
		Refused: fmt.Sprintf("a service must have at most %d applications, with at most %d deployments in all of them together", maxApplications, maxDeployments),
		Remedy:  "create a second service",
		Holds:   fmt.Sprintf("size(variables.listed) <= %d && variables.offered.map(l, size(l)).sum() <= %d", maxApplications, maxDeployments),
		service: func(s *serving, bad report) {
			if s.applications > maxApplications || s.deployments > maxDeployments {
				bad.at(configPath.Child("applications"), max(s.applications, s.deployments))
			}
		},
	},
	ofParts(Rule{
		ID: "serve-name", Field: "spec.serveConfig.applications[*].name, spec.serveConfig.applications[*].deployments[*].name",
		Refused: "an application, and an entry of a deployment, must have a name of 1 to 253 characters", Remedy: "set it; the name of a deployment is the one in the code",
	}, ill(partApplication, "name", longestName, nil), ill(partDeployment, "name", longestName, nil)),
	repeated(Rule{
		ID: "serve-name-twice", Field: "spec.serveConfig.applications[*].name",
		Refused: "names of applications must be unique", Remedy: "give each its own",
	}, partApplication, "name", nameIn, nameOf),
	ofParts(Rule{
		ID: "serve-route", Field: "spec.serveConfig.applications[*].route_prefix",
		Refused: "a route_prefix must begin with '/', must not end with '/' unless it is only that, must not contain '{' and '}', and must have at most 1024 characters",
		Remedy:  "correct it, or set it to null for an application that only other applications call",
	}, flaw{
		in: partApplication, key: "route_prefix",
		when: "[o.of.?route_prefix.orValue(dyn('/'))].exists(v, type(v) == string && !(" + goodText(longestPath, routePrefix) + "))",
		wrong: func(of map[string]any) bool {
			route, isText := of["route_prefix"].(string)
			return isText && !isGood(route, longestPath, routePrefix)
		},
	}),
	repeated(Rule{
		ID: "serve-route-twice", Field: "spec.serveConfig.applications[*].route_prefix",
		Refused: "route_prefixes (default '/') must be unique", Remedy: "give each application its own, or null if only other applications call it",
	}, partApplication, "route_prefix", routeIn, routeOf),
	ofParts(Rule{
		ID: "serve-import", Field: "spec.serveConfig.applications[*].import_path",
		Refused: "import_path must be module:attribute or module.attribute, with at most 1024 characters", Remedy: "give such a path, as in app.main:app",
	}, ill(partApplication, "import_path", longestPath, importPath)),
	ofParts(Rule{
		ID: "serve-application-port", Field: "spec.serveConfig.applications[*].host, spec.serveConfig.applications[*].port",
		Refused: "host and port must not be set for an application, because all applications share the proxies", Remedy: "set them in http_options",
	}, misplaced("host"), misplaced("port")),
	ofParts(Rule{
		ID: "serve-remote", Field: "spec.serveConfig.**.runtime_env.working_dir, py_modules",
		Refused: "working_dir must be the URI of an archive, and py_modules a list of such URIs, because Ray Serve uploads nothing",
		Remedy:  "give one such as https://host/code.zip or s3://bucket/code.zip; code in the image needs none, if PYTHONPATH has it",
	}, remote...),
}

// misplaced is a field of an application that is not read there.
func misplaced(key string) flaw {
	return flaw{
		in: partApplication, key: key, when: "'" + key + "' in o.of",
		wrong: func(of map[string]any) bool { _, there := of[key]; return there },
	}
}

// covers reports whether a route leads a path to its application.
func covers(route, path string) bool {
	return route == "/" || route != "" && (path == route || strings.HasPrefix(path, route+"/"))
}

// healthRules are about the path that is asked.
var healthRules = []Rule{
	{
		ID: "health-route", Field: "spec.healthPath", By: Policy,
		Refused: "healthPath must be the path of an application", Remedy: "begin it with the route_prefix of one, or leave it out for Serve's own /-/healthz",
		Holds: "object.spec.?healthPath.orValue('') == '' || [object.spec.healthPath.split('?')[0]].exists(p, variables.application[0].map(o, " + routeIn +
			").exists(r, r == '/' || r != '' && (p == r || p.startsWith(r + '/'))))",
		service: func(s *serving, bad report) {
			if s.spec.HealthPath == "" || s.config == nil {
				return
			}
			path, _, _ := strings.Cut(s.spec.HealthPath, "?")
			for _, application := range s.parts[partApplication] {
				if covers(routeOf(application.of), path) {
					return
				}
			}
			bad.at(specPath.Child("healthPath"), s.spec.HealthPath)
		},
	},
	{
		ID: "health-tls", Field: "spec.healthPath", By: Policy,
		Refused: "healthPath must not be set with ssl_certfile, because it is probed over HTTP and the proxies then accept only HTTPS",
		Remedy:  "leave healthPath out, or terminate TLS before the proxies and leave ssl_certfile out",
		Holds:   "object.spec.?healthPath.orValue('') == '' || !variables.http[0].exists(o, " + said("ssl_certfile") + ")",
		service: func(s *serving, bad report) {
			if s.spec.HealthPath != "" && isSaid(s.first("http"), "ssl_certfile") {
				bad.at(specPath.Child("healthPath"), nil)
			}
		},
	},
}
