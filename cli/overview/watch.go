package overview

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
)

// shown are the objects that a list showed last: their resourceVersions by namespace and name.
type shown map[string]string

// next returns the objects that are new or were changed since the last list, and the names of those that are gone.
func (s shown) next(all []verbs.Object) (changed []verbs.Object, gone []string) {
	isThere := map[string]bool{}
	for _, object := range all {
		name := object.GetNamespace() + " " + targetOf(object)
		isThere[name] = true
		if version := string(object.GetUID()) + " " + object.GetResourceVersion(); s[name] != version {
			s[name] = version
			changed = append(changed, object)
		}
	}
	for name := range s {
		if !isThere[name] {
			delete(s, name)
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	return changed, gone
}

// AddWatch adds the flag that has Show go on.
func (c *Choice) AddWatch(command *cobra.Command) {
	command.Flags().BoolVarP(&c.isWatched, "watch", "w", false, "print a line for each change until Ctrl-C")
}

// Show prints what a look finds. Where the list is watched, it goes on with what changes, until the context ends.
func (c *Choice) Show(ctx context.Context, look func() ([]verbs.Object, error), show func([]verbs.Object) error) error {
	if c.isWatched {
		return c.watch(ctx, look, show)
	}
	all, err := look()
	if err != nil {
		return err
	}
	return show(all)
}

// watch prints objects, and then those that change, until the context ends.
func (c *Choice) watch(
	ctx context.Context, look func() ([]verbs.Object, error), show func([]verbs.Object) error,
) error {
	last, silence, isFirst := shown{}, console.Silence{}, true
	err := c.console.Every(ctx, func() (bool, error) {
		all, err := look()
		switch now := c.console.Clock.Now(); {
		case err == nil:
			silence.Broken()
		case !kube.IsPassing(err):
			return false, err
		case silence.IsNew(now):
			c.console.Note("the API server does not answer: %v; trying for %s", err, console.Patience)
			return false, nil
		case silence.IsTooLong(now):
			return false, err
		default:
			return false, nil
		}
		changed, gone := last.next(all)
		for _, name := range gone {
			c.console.Note("%s is not in the list any more", name)
		}
		if len(changed) == 0 && !isFirst {
			return false, nil
		}
		err = show(changed)
		isFirst = false
		c.out.HideHeaders()
		return false, err
	})
	if ctx.Err() != nil {
		return &outcome.Error{Code: outcome.Detached}
	}
	return err
}
