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
	// Kind is of ray.io, and empty for what a cluster's spec and the metadata of each kind have.
	Kind string
	// Path is the field's: below the object for a Kind, below the spec of a RayCluster otherwise. Entries of lists
	// are [], and keys of maps are in brackets.
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

// Kinds of ray.io, and where each has the spec of a cluster.
const (
	kindCluster = "RayCluster"
	kindJob     = "RayJob"
	kindService = "RayService"
	kindCron    = "RayCronJob"
)

// clusterAt is where a kind has the spec of a cluster.
var clusterAt = map[string]string{
	kindCluster: "spec", kindJob: "spec.rayClusterSpec", kindService: "spec.rayClusterConfig",
}

// Kinds returns the kinds that have rules, in the order of the table.
func Kinds() []string { return []string{kindCluster, kindJob, kindService, kindCron} }

// Rules returns all rules, in the order in which people read them.
func Rules() []Rule {
	return slices.Concat(clusterRules, jobRules, serviceRules, cronRules, keyRules)
}

// Explain returns the rules about a field: a path of a rule, of an object with or without numbers of entries, or the end
// of one.
func Explain(field string) []Rule {
	wanted := normal(field)
	var exact, below []Rule
	for _, rule := range Rules() {
		for _, full := range rule.paths() {
			switch {
			case full == wanted || rule.Path == wanted || rule.Whole && (isBelow(wanted, full) || isBelow(wanted, rule.Path)):
				exact = append(exact, rule)
			case strings.HasSuffix(full, "."+wanted) || strings.HasPrefix(full, wanted+"."):
				below = append(below, rule)
			default:
				continue
			}
			break
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return below
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

// book has the rules of one kind by their full paths.
type book map[string]Rule

// books has the rules that hold for the spec of each kind.
var books = func() map[string]book {
	all := map[string]book{}
	for _, kind := range Kinds() {
		all[kind] = book{}
	}
	for _, rule := range Rules() {
		switch {
		case rule.Kind != "":
			all[rule.Kind][rule.Path] = rule
		case !strings.HasPrefix(rule.Path, "metadata."):
			for kind, at := range clusterAt {
				all[kind][at+"."+rule.Path] = rule
			}
		}
	}
	return all
}()
