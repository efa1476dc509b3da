// Package object has the commands about one object of any of our kinds: why, wait, suspend, resume, delete.
//
// In: KIND/NAME. Out: why it is as it is, how a wait for it ended, or what was changed. What a verb does to an object is
// package verbs' decision, as in the server.
//
// It must never delete or change anything because a command was interrupted.
package object

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
)

// Commands returns the commands of the package.
func Commands(c *console.Console) []*cobra.Command {
	return []*cobra.Command{why(c), wait(c), suspend(c), resume(c), remove(c)}
}

// Complete returns a completion of names: of the kinds, as KIND/NAME, or of one kind, as NAME.
func Complete(c *console.Console, kinds ...kube.Kind) cobra.CompletionFunc {
	isAny := len(kinds) == 0
	if isAny {
		kinds = kube.Kinds()
	}
	return func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		objects, err := c.Connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, kind := range kinds {
			all, err := objects.ListAll(cmd.Context(), kind, kube.Selection{Namespace: objects.Namespace})
			if err != nil {
				continue
			}
			for _, object := range all {
				name := object.GetName()
				if isAny {
					name = kube.TargetOf(object).String()
				}
				if !slices.Contains(given, name) {
					names = append(names, name)
				}
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// each finds the objects that a user named, all before anything is done to the first one.
func each(ctx context.Context, c *console.Console, names []string) (*kube.Objects, []verbs.Object, error) {
	objects, err := c.Connect()
	if err != nil {
		return nil, nil, err
	}
	var all []verbs.Object
	var failed []error
	for _, name := range names {
		object, err := objects.Find(ctx, name)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		all = append(all, object)
	}
	if len(failed) == 1 {
		return nil, nil, failed[0]
	}
	return objects, all, errors.Join(failed...)
}
