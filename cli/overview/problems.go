package overview

import (
	"cmp"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/output"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Problem is something that does not mend itself.
type Problem struct {
	Code      string     `json:"code"`
	Since     *time.Time `json:"since,omitempty"`
	Kind      string     `json:"objectKind"`
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	Message   string     `json:"message"`
	Remedy    string     `json:"remedy,omitempty"`

	target string
}

func problems(c *console.Console) *cobra.Command {
	chosen := NewChoice(c)
	command := &cobra.Command{
		Use:   "problems [KIND,…]",
		Short: "List objects that need attention",
		Long: `List objects whose status has a warning that needs action, grouped by reason, oldest first. Ended jobs are left out, because
their end is an outcome. heliostat why KIND/NAME explains each object.`,
		Example: "  heliostat problems -A\n  heliostat problems services -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			kinds, err := readKinds(args)
			if err != nil {
				return err
			}
			all, err := chosen.Objects(cmd.Context(), kinds...)
			if err != nil {
				return err
			}
			return chosen.printProblems(problemsOf(all))
		},
	}
	chosen.Add(command)
	return command
}

func (c *Choice) printProblems(all []Problem) error {
	switch {
	case !c.out.IsTable():
		return c.out.Answer(c.console.Out, "ProblemList", map[string]any{"items": all})
	case len(all) == 0:
		return c.none("problems")
	}
	table := output.Table{Columns: output.Columns("REASON", "SINCE", "NAMESPACE", "NAME", "MESSAGE", "remedy")}
	for i := range all {
		one := &all[i]
		since := ""
		if one.Since != nil {
			since = ago(c.console.Clock.Now(), *one.Since)
		}
		table.Rows = append(table.Rows, []string{one.Code, since, one.Namespace, one.target, one.Message, one.Remedy})
	}
	return c.out.Rows(c.console.Out, table)
}

// problemsOf are the first warning of each object: by reason, the reason with the oldest one first.
func problemsOf(objects []verbs.Object) []Problem {
	var all []Problem
	oldest := map[string]time.Time{}
	for _, object := range objects {
		if isOver(object) {
			continue
		}
		one, has := problemOf(object)
		if !has {
			continue
		}
		all = append(all, one)
		if first, known := oldest[one.Code]; !known || one.since().Before(first) {
			oldest[one.Code] = one.since()
		}
	}
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Or(oldest[a.Code].Compare(oldest[b.Code]), cmp.Compare(a.Code, b.Code), a.since().Compare(b.since()))
	})
	return all
}

// since is when it began, and zero where nobody knows.
func (p *Problem) since() time.Time {
	if p.Since == nil {
		return time.Time{}
	}
	return *p.Since
}

// problemOf is the first link of an object's explanation that a person has to act on.
func problemOf(object verbs.Object) (Problem, bool) {
	for _, cause := range explain.Explain(explain.Input{Object: object}) {
		finding := reason.Finding{Code: cause.Code}
		if cause.Code == explain.CodePending || finding.Severity() != reason.Warning {
			continue
		}
		one := Problem{Code: cause.Code, Kind: cause.Kind, Namespace: cause.Namespace, Name: cause.Name,
			Message: cause.Message, Remedy: cause.Remedy, target: targetOf(object)}
		if since := cause.Since.UTC(); !cause.Since.IsZero() {
			one.Since = &since
		}
		return one, true
	}
	return Problem{}, false
}
