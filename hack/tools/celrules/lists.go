package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// rule is a CEL rule of a kind.
type rule struct {
	id, refused, remedy string
	// fields are the paths at which it may be broken.
	fields map[string]bool
	// isOfChange reports whether only a change breaks it.
	isOfChange bool
}

// first returns the first of the rule's fields.
func (r *rule) first() string { return slices.Min(slices.Collect(maps.Keys(r.fields))) }

// list are the rules of a kind beside those of the kinds that it contains.
type list struct {
	// name is that of the Go variable.
	name  string
	rules map[string]*rule
}

// kinds are the schemas, those first whose objects others contain.
var kinds = []struct{ schema, name string }{
	{"computeclusters", "clusterExpressions"}, {"clusterjobs", "jobExpressions"}, {"clusterservices", "serviceExpressions"},
	{"clusterjobschedules", "scheduleExpressions"},
}

// templates are where a kind has an object of another one. What is said there is said of that kind.
var templates = []string{"spec.jobTemplate.spec.clusterTemplate.spec.", "spec.clusterTemplate.spec.", "spec.jobTemplate.spec."}

var (
	errNoRule = errors.New("no type has the rule")
	errUnsaid = errors.New("no schema has the message of the rule")
	errParts  = errors.New("a message says what is wrong, and behind a semicolon what helps")
)

// readLists returns the rules of each kind, as the schemas in a directory have them.
func readLists(dir string, ids map[string]string) ([]list, error) {
	var all []list
	said := map[string]bool{}
	for _, kind := range kinds {
		text, err := os.ReadFile(filepath.Join(dir, kind.schema+".json"))
		if err != nil {
			return nil, fmt.Errorf("read a schema: %w", err)
		}
		var schema any
		if err := json.Unmarshal(text, &schema); err != nil {
			return nil, fmt.Errorf("parse the schema of %s: %w", kind.schema, err)
		}
		made := list{kind.name, map[string]*rule{}}
		err = walk(schema, "", func(standsAt, path string, found expression) error {
			id, is := ids[found.Message]
			if !is {
				return fmt.Errorf("%s: %w: %q", path, errNoRule, found.Message)
			}
			said[id] = true
			if isContained(standsAt) {
				return nil
			}
			if len(all) > 0 && all[0].rules[id] != nil { // a rule of clusters too
				return add(all[0].rules, id, path, found)
			}
			return add(made.rules, id, path, found)
		})
		if err != nil {
			return nil, fmt.Errorf("list the rules of %s: %w", kind.schema, err)
		}
		all = append(all, made)
	}
	for _, id := range ids {
		if !said[id] {
			return nil, fmt.Errorf("%w %s", errUnsaid, id)
		}
	}
	return all, nil
}

func isContained(standsAt string) bool {
	return slices.ContainsFunc(templates, func(begin string) bool { return strings.HasPrefix(standsAt+".", begin) })
}

func add(into map[string]*rule, id, path string, found expression) error {
	refused, remedy, is := strings.Cut(found.Message, "; ")
	if !is {
		return fmt.Errorf("%s: %w: %q", path, errParts, found.Message)
	}
	if into[id] == nil {
		into[id] = &rule{id: id, refused: refused, remedy: remedy, fields: map[string]bool{}, isOfChange: strings.Contains(found.Rule, "oldSelf")}
	}
	into[id].fields[path] = true
	return nil
}

// expression is an entry of x-kubernetes-validations.
type expression struct{ Rule, Message, FieldPath string }

// walk visits the expressions of a schema and of all below it: where one stands, and the field that it is about.
func walk(schema any, path string, visit func(standsAt, path string, found expression) error) error {
	fields, is := schema.(map[string]any)
	if !is {
		return nil
	}
	text, err := json.Marshal(fields["x-kubernetes-validations"])
	if err != nil {
		return fmt.Errorf("read the expressions at %s: %w", path, err)
	}
	var found []expression
	if err := json.Unmarshal(text, &found); err != nil {
		return fmt.Errorf("read the expressions at %s: %w", path, err)
	}
	for _, one := range found {
		at := strings.TrimPrefix(path+one.FieldPath, ".")
		if at == "" {
			at = "metadata.name" // of the whole object, rules see nothing else outside of the spec
		}
		if err := visit(path, at, one); err != nil {
			return err
		}
	}
	properties, _ := fields["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if err := walk(properties[name], strings.TrimPrefix(path+"."+name, "."), visit); err != nil {
			return err
		}
	}
	return walk(fields["items"], path+"[*]", visit)
}

// fieldsOf writes paths as a rule has them: NODE stands for the head or a worker group, GROUP for a worker group.
func fieldsOf(paths map[string]bool) string {
	const head, group = "spec.head.", "spec.workerGroups[*]."
	short := map[string]bool{}
	for path := range paths {
		below, isHead := strings.CutPrefix(path, head)
		if isHead && paths[group+below] {
			path = "NODE." + below
		}
		if below, is := strings.CutPrefix(path, group); is {
			path = "GROUP." + below
			if paths[head+below] {
				path = "NODE." + below
			}
		}
		if path == strings.TrimSuffix(group, ".") {
			path = "GROUP"
		}
		short[path] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(short)), ", ")
}

// write writes lists as Go.
func write(lists []list) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("// Code generated by hack/tools/celrules from the kinds' types. DO NOT EDIT.\n\npackage validate\n")
	for _, list := range lists {
		fmt.Fprintf(&out, "\nvar %s = []Rule{\n", list.name)
		order := slices.SortedFunc(maps.Values(list.rules), func(a, b *rule) int {
			return strings.Compare(a.first()+" "+a.id, b.first()+" "+b.id)
		})
		for _, rule := range order {
			fmt.Fprintf(&out, "\t{\n\t\tID: %q, Field: %q, By: Expression,\n", rule.id, fieldsOf(rule.fields))
			fmt.Fprintf(&out, "\t\tRefused: %q,\n\t\tRemedy: %q,\n", rule.refused, rule.remedy)
			if rule.isOfChange {
				out.WriteString("\t\tIsOfChange: true,\n")
			}
			out.WriteString("\t},\n")
		}
		out.WriteString("}\n")
	}
	text, err := format.Source(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("format the catalogue: %w", err)
	}
	return text, nil
}
