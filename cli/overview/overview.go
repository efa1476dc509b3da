// Package overview has the commands that show many objects: what there is, and what is wrong.
//
// In: objects of our kinds as the API server has them. Out: rows for people, or the objects themselves.
//
// It must never read pods or ask heads: what an object costs and why it waits stands in its status, and a look at
// 500 of them takes one request for each kind.
package overview

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/cli/output"
)

// Commands returns the commands of the package.
func Commands(c *console.Console) []*cobra.Command { return []*cobra.Command{top(c), problems(c)} }

// Choice says which objects are listed, and how they are printed.
type Choice struct {
	console       *console.Console
	out           *output.Flags
	allNamespaces bool
	selector      string
	isWatched     bool
	// hasWarned: a list that is watched has said what it leaves out.
	hasWarned bool
}

// NewChoice returns a choice of all objects in the namespace.
func NewChoice(c *console.Console) *Choice { return &Choice{console: c, out: output.NewFlags()} }

// Add adds the flags of the choice to those of a command.
func (c *Choice) Add(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVarP(&c.allNamespaces, "all-namespaces", "A", false, "list all namespaces")
	flags.StringVarP(&c.selector, "selector", "l", "", "labels that objects must have, such as team=a")
	c.out.Add(flags)
}

// readKinds takes kinds from arguments; without any it is all of them.
func readKinds(args []string) ([]kube.Kind, error) {
	var kinds []kube.Kind
	for _, arg := range args {
		for text := range strings.SplitSeq(arg, ",") {
			kind, err := kube.ParseKind(text)
			if err != nil {
				return nil, err
			}
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 {
		kinds = kube.Kinds()
	}
	return kinds, nil
}

// selection returns what the flags select.
func (c *Choice) selection(namespace string) (kube.Selection, error) {
	of := kube.Selection{Namespace: namespace}
	if c.allNamespaces {
		of.Namespace = ""
	}
	if c.selector == "" {
		return of, nil
	}
	parsed, err := labels.Parse(c.selector)
	if err != nil {
		return of, outcome.Errorf(outcome.Usage, "-l: %w", err)
	}
	of.Selector = client.MatchingLabelsSelector{Selector: parsed}
	return of, nil
}

// Objects returns the objects of some kinds, by namespace. Kinds that the user may not see are left out with a note, unless
// they are all.
func (c *Choice) Objects(ctx context.Context, kinds ...kube.Kind) ([]verbs.Object, error) {
	if err := c.out.Check(); err != nil {
		return nil, err
	}
	objects, err := c.console.Connect()
	if err != nil {
		return nil, err
	}
	of, err := c.selection(objects.Namespace)
	if err != nil {
		return nil, err
	}
	var all []verbs.Object
	var refused []error
	for _, kind := range kinds {
		found, err := objects.ListAll(ctx, kind, of)
		switch {
		case err != nil && outcome.Code(err) == outcome.Refused:
			refused = append(refused, err)
		case err != nil:
			return nil, err
		}
		all = append(all, found...)
	}
	if len(refused) == len(kinds) {
		return nil, refused[0]
	}
	for _, err := range refused {
		if !c.hasWarned {
			c.console.Note("warning: left out: %v", err)
		}
	}
	c.hasWarned = true
	slices.SortStableFunc(all, func(a, b verbs.Object) int { return strings.Compare(a.GetNamespace(), b.GetNamespace()) })
	return all, nil
}

// Print prints objects as rows, or in the format that was asked for. What says what they are.
func (c *Choice) Print(all []verbs.Object, what string, columns []output.Column, row func(verbs.Object) []string) error {
	switch {
	case !c.out.IsTable():
		return output.List(c.out, c.console.Out, all)
	case len(all) == 0:
		return c.none(what)
	}
	table := output.Table{Columns: columns}
	if c.allNamespaces {
		table.Columns = slices.Insert(table.Columns, 0, output.Column{Name: "NAMESPACE"})
	}
	for _, object := range all {
		cells := row(object)
		if c.allNamespaces {
			cells = slices.Insert(cells, 0, object.GetNamespace())
		}
		table.Rows = append(table.Rows, cells)
	}
	return c.out.Rows(c.console.Out, table)
}

// none says that there is nothing to show.
func (c *Choice) none(what string) error {
	if c.allNamespaces {
		c.console.Note("no %s in any namespace", what)
		return nil
	}
	objects, err := c.console.Connect()
	if err != nil {
		return err
	}
	c.console.Note("no %s %s; -A shows all namespaces", what, kube.Where(objects.Namespace))
	return nil
}

// ago returns how long ago a moment was, as kubectl writes it.
func ago(now, at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(at))
}

func targetOf(object verbs.Object) string { return fmt.Sprint(kube.TargetOf(object)) }
