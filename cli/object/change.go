package object

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/output"
)

// Verb is a command that changes objects by a decision of package verbs.
type Verb struct {
	Console *console.Console
	// Did says what became of an object, and Was that it was so before.
	Did, Was string
	Decide   func(verbs.Object) (verbs.Change, error)

	out    *output.Flags
	dryRun output.DryRun
}

// NewVerb returns a verb whose flags are those of the command.
func NewVerb(c *console.Console, command *cobra.Command, did, was string) *Verb {
	v := &Verb{Console: c, Did: did, Was: was, out: output.NewFlags()}
	v.out.AddFormat(command.Flags())
	v.dryRun.Add(command.Flags())
	return v
}

// Check says what is wrong with the flags.
func (v *Verb) Check() error {
	if err := v.dryRun.Check(); err != nil {
		return err
	}
	return v.out.Check()
}

// Do decides about an object, makes the change, and says what it was.
func (v *Verb) Do(ctx context.Context, objects *kube.Objects, object verbs.Object) error {
	target := kube.TargetOf(object)
	change, err := v.Decide(object)
	if err != nil {
		return kube.Because(err)
	}
	if change.IsNothing() {
		return v.out.Done(v.Console.Out, object, fmt.Sprintf("%s %s", target, v.Was))
	}
	var changed verbs.Object
	if v.dryRun.IsClient() {
		changed, err = kube.Preview(object, change)
	} else {
		changed, err = objects.Make(ctx, object, change, v.dryRun.IsServer())
	}
	if err != nil {
		return err
	}
	said := fmt.Sprintf("%s %s%s", target, v.Did, v.dryRun.Suffix())
	if change.New != nil {
		said += ": " + kube.TargetOf(changed).String()
	}
	return v.out.Done(v.Console.Out, changed, said)
}

// suspend takes pods away and keeps the object.
func suspend(c *console.Console) *cobra.Command {
	command := &cobra.Command{
		Use:   "suspend KIND/NAME…",
		Short: "Suspend objects: delete their pods and keep the objects",
		Long: `Delete the pods of clusters, jobs or services, and keep the objects. A resumed job starts a new attempt, so the progress of the
current attempt is lost. A suspended schedule (schedule/NAME) starts no jobs. heliostat resume ends the suspension.`,
		Example: "  heliostat suspend cluster/dev\n  heliostat suspend job/a job/b --dry-run=server",
	}
	v := NewVerb(c, command, "suspended", "is suspended already")
	v.Decide = verbs.Suspend
	return v.overMany(command)
}

func resume(c *console.Console) *cobra.Command {
	command := &cobra.Command{
		Use:   "resume KIND/NAME…",
		Short: "Resume suspended objects",
		Example: "  heliostat resume cluster/dev && heliostat wait cluster/dev\n" +
			"  heliostat resume service/translate",
	}
	v := NewVerb(c, command, "resumed", "is not suspended")
	v.Decide = func(object verbs.Object) (verbs.Change, error) { return verbs.Resume(object, c.Clock.Now()) }
	return v.overMany(command)
}

// overMany has the command do the verb to each object that is named.
func (v *Verb) overMany(command *cobra.Command) *cobra.Command {
	command.Args, command.ValidArgsFunction = console.Arguments(1, -1, "KIND/NAME"), Complete(v.Console)
	command.RunE = func(cmd *cobra.Command, args []string) error {
		if err := v.Check(); err != nil {
			return err
		}
		objects, all, err := each(cmd.Context(), v.Console, args)
		if err != nil {
			return err
		}
		for _, object := range all {
			if err := v.Do(cmd.Context(), objects, object); err != nil {
				return err
			}
		}
		return nil
	}
	return command
}
