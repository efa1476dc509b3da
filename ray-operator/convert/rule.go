package convert

import (
	"slices"
	"strings"
)

// Verdict says what became of a field.
type Verdict string

// Verdicts. What is kept gets no row.
const (
	// Kept means the same as before, maybe under another name.
	Kept Verdict = "kept"
	// Changed has another value or another effect.
	Changed Verdict = "changed"
	// Dropped has no counterpart.
	Dropped Verdict = "dropped"
	// Refused keeps the object from being converted.
	Refused Verdict = "refused"
)

// Rule says what becomes of one field, where no value of it makes a difference.
type Rule struct {
	// Kind is the object's. It is empty for what a cluster's spec and the metadata of each kind of ray.io have, and KubeflowJobs for
	// what each job of kubeflow.org has.
	Kind string
	// Path is the field's: below the object for a Kind, below the spec of a RayCluster otherwise. Entries of lists are [], entries of
	// maps whose keys users choose are {}, and other keys of maps are in brackets.
	Path string
	// To is the field of ours that follows it, empty where there is none.
	To      string
	Verdict Verdict
	// Differs reports that the result behaves otherwise.
	Differs bool
	// Text says why, and what to do.
	Text string
	// Whole covers everything below the path too: a type of Kubernetes', or what is not looked into.
	Whole bool
}

// clusterAt is where a kind of ray.io has the spec of a cluster.
var clusterAt = map[string]string{
	kindCluster: "spec", kindJob: "spec.rayClusterSpec", kindService: "spec.rayClusterConfig",
}

// Rules returns all rules, in the order in which people read them.
func Rules() []Rule {
	return slices.Concat(clusterRules, jobRules, serviceRules, cronRules, keyRules, kubeflowRules())
}

// holdsFor reports whether a rule is about the objects of a kind.
func (r *Rule) holdsFor(kind string) bool {
	switch r.Kind {
	case "":
		return groupOf(kind) == rayGroup
	case KubeflowJobs:
		return slices.Contains(policyKinds, kind)
	case kindRuntime:
		return kind == kindRuntime || kind == kindClusterRuntime
	default:
		return r.Kind == kind
	}
}

// Explain returns the rules about a field: a path of a rule, of an object with or without numbers of entries, or the end
// of one. The kind may stand in front of it, as in PyTorchJob.spec.elasticPolicy.
func Explain(field string) []Rule {
	kind, below, _ := strings.Cut(field, ".")
	names := append(Kinds(), kindBatch)
	at := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, kind) })
	if at < 0 {
		return explain("", field)
	}
	kind = names[at]
	if found := explain(kind, below); len(found) > 0 {
		return found
	}
	return explain(kind, "spec."+below)
}

// explain returns the rules about a field of a kind, where an empty kind is each, and an empty field all of the kind.
func explain(kind, field string) []Rule {
	var exact, near []Rule
	for _, rule := range Rules() {
		if kind != "" && !rule.holdsFor(kind) {
			continue
		}
		if field == "" {
			exact = append(exact, rule)
			continue
		}
		switch rule.isAbout(normal(field)) {
		case aboutExactly:
			exact = append(exact, rule)
		case aboutNearly:
			near = append(near, rule)
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return near
}

// How near a rule is to a field that somebody asks for.
const (
	aboutNothing = iota
	aboutNearly
	aboutExactly
)

// isAbout says how near a rule is to a field.
func (r *Rule) isAbout(wanted string) int {
	near := aboutNothing
	for _, full := range r.paths() {
		asked := inMap(wanted, full)
		switch {
		case full == asked || r.Path == asked || r.Whole && (isBelow(asked, full) || isBelow(asked, r.Path)):
			return aboutExactly
		case strings.HasSuffix(full, "."+asked) || strings.HasPrefix(full, asked+".") || strings.HasPrefix(full, asked+"["), strings.HasPrefix(full, asked+"{"):
			near = aboutNearly
		}
	}
	return near
}

// inMap writes a path with {} where a rule has that, in place of the key that stands there.
func inMap(path, ofRule string) string {
	before, _, has := strings.Cut(ofRule, "{}")
	if !has {
		return path
	}
	for _, full := range []string{path, "spec." + path} {
		rest, is := strings.CutPrefix(full, before)
		if !is || rest == "" || !strings.ContainsRune(".[", rune(rest[0])) {
			continue
		}
		end := strings.IndexAny(rest[1:], ".]")
		if end < 0 {
			return before + "{}"
		}
		return before + "{}" + strings.TrimPrefix(rest[1+end:], "]")
	}
	return path
}

// isBelow reports whether a path leads to a part of what another one leads to.
func isBelow(path, above string) bool {
	return strings.HasPrefix(path, above+".") || strings.HasPrefix(path, above+"[")
}

// paths are the rule's in all objects that it holds for.
func (r *Rule) paths() []string {
	if r.Kind != "" || strings.HasPrefix(r.Path, "metadata.") {
		return []string{r.Path}
	}
	var all []string
	for _, kind := range Kinds() {
		if at := clusterAt[kind]; at != "" {
			all = append(all, at+"."+r.Path)
		}
	}
	return all
}

// normal writes a path with [] for each entry of a list.
func normal(path string) string {
	var out strings.Builder
	for rest := path; ; {
		before, after, found := strings.Cut(rest, "[")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		inside, tail, closed := strings.Cut(after, "]")
		if !closed {
			out.WriteString("[" + after)
			return out.String()
		}
		if strings.Trim(inside, "0123456789") == "" {
			inside = ""
		}
		out.WriteString("[" + inside + "]")
		rest = tail
	}
}

// book has the rules of one kind.
type book struct {
	// rules are by their full paths.
	rules map[string]Rule
	// maps are the paths of maps whose keys users choose.
	maps map[string]bool
}

func (b *book) add(path string, rule Rule) {
	b.rules[path] = rule
	if before, _, has := strings.Cut(path, "{}"); has {
		b.maps[before] = true
	}
}

// books has the rules that hold for the spec of each kind.
var books = func() map[string]*book {
	all := map[string]*book{}
	for _, kind := range append(Kinds(), kindBatch) {
		all[kind] = &book{rules: map[string]Rule{}, maps: map[string]bool{}}
	}
	for _, rule := range Rules() {
		switch {
		case rule.Kind == KubeflowJobs:
			for _, kind := range policyKinds {
				all[kind].add(rule.Path, rule)
			}
		case rule.Kind != "":
			all[rule.Kind].add(rule.Path, rule)
		case !strings.HasPrefix(rule.Path, "metadata."):
			for kind, at := range clusterAt {
				all[kind].add(at+"."+rule.Path, rule)
			}
		}
	}
	all[kindClusterRuntime] = all[kindRuntime]
	return all
}()
