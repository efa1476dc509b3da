package convert

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/convert"
)

// explain prints the rules about a field.
func explain(out io.Writer, field string) error {
	rules := convert.Explain(field)
	if len(rules) == 0 {
		return &outcome.Error{Code: outcome.Usage, Err: errors.New("no rule is about such a field; " + nearest(field))}
	}
	for i := range rules {
		if i > 0 {
			fmt.Fprintln(out)
		}
		describe(out, &rules[i])
	}
	return nil
}

func describe(out io.Writer, rule *convert.Rule) {
	kind := rule.Kind
	if kind == "" {
		kind = "every kind of ray.io"
	}
	fmt.Fprintf(out, "%s  (%s)\n  %s", rule.Path, kind, rule.Verdict)
	if rule.To != "" {
		fmt.Fprintf(out, " -> %s", rule.To)
	}
	if rule.Differs {
		fmt.Fprint(out, ", behaves differently")
	}
	fmt.Fprintln(out)
	if rule.Text != "" {
		fmt.Fprintf(out, "  %s\n", rule.Text)
	}
}

// nearest helps with a field that is not known, by its last name and by the whole path.
func nearest(field string) string {
	var paths, names []string
	for _, rule := range convert.Rules() {
		paths = append(paths, rule.Path)
		parts := strings.Split(rule.Path, ".")
		names = append(names, parts[len(parts)-1])
	}
	for _, known := range [][]string{paths, names} {
		if name := spelling.Nearest(field, known); name != "" {
			return fmt.Sprintf("write %q", name)
		}
	}
	return "the pages of all fields are docs/reference/kuberay-fields.md and kubeflow-fields.md"
}
