package history

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/cli/pack"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// countedFiles is how many files are counted before a question.
const countedFiles = 2000

func remove(c *console.Console) *cobra.Command {
	uid, isSure := "", false
	command := &cobra.Command{
		Use: "delete KIND/NAME", Short: "Delete the history of an object, after a list of what is deleted",
		Long: `Delete the history of a cluster, job or service permanently. Of a cluster that is the archive with all files; of a job or
service it is the record, and the files stay in the archive of their cluster. The command first shows what is deleted, and asks
for confirmation. Without a terminal, set --yes.`,
		Example: "  heliostat history delete cluster/dev\n  heliostat history delete job/train --uid 0f3c6a1e-7c34-4f0e-9a51-2b6d3f1f6a55 --yes",
		Args:    console.Arguments(1, 1, "KIND/NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			server, of, err := formerOf(c, args[0], uid)
			if err != nil {
				return err
			}
			got, err := server.GetHistory(cmd.Context(), of)
			if err != nil {
				return err
			}
			if of.UID = got.GetRecord().GetUid(); of.UID == "" { // a name alone could be another object's by now
				return outcome.Errorf(outcome.Failed, "the server names no UID of %s; check --server", of.Target)
			}
			with, err := goesWith(cmd.Context(), server, of)
			if err != nil {
				return err
			}
			c.Note("the history of %s (UID %s, %s) goes%s", of.Target, of.UID, stateOf(got.GetRecord()), with)
			if !isSure {
				if err := c.Confirm(fmt.Sprintf("Delete the history of %s?", of.Target)); err != nil {
					return err
				}
			}
			if err := server.DeleteHistory(cmd.Context(), of); err != nil {
				return err
			}
			fmt.Fprintf(c.Out, "history of %s deleted\n", of.Target)
			return nil
		},
	}
	command.Flags().StringVar(&uid, "uid", "", uidUse)
	command.Flags().BoolVarP(&isSure, "yes", "y", false, "do not ask for confirmation")
	c.AddServer(command.Flags())
	return command
}

// stateOf returns how an object ended, or its phase.
func stateOf(record *heliostatv1.HistoryRecord) string {
	switch {
	case record.GetPhase() == "":
		return "phase unknown"
	case record.GetDeleted() != nil:
		return record.GetPhase() + ", deleted"
	}
	return record.GetPhase()
}

// goesWith says what is deleted with the history of an object.
func goesWith(ctx context.Context, server *away.History, of away.Former) (string, error) {
	if of.Target.Kind.Word != kube.Cluster.Word {
		return "; files stay in the archive of its cluster", nil
	}
	all, hasMore, err := server.AllFiles(ctx, of, nil, countedFiles)
	switch {
	case outcome.Code(err) == outcome.Refused: // the right to delete needs none to read files
		return ", with all files", nil
	case err != nil && !away.IsNothing(err):
		return "", err
	}
	size, least := int64(0), ""
	for _, one := range all {
		size += one.GetSize()
	}
	if hasMore {
		least = "at least "
	}
	word := "files"
	if len(all) == 1 {
		word = "file"
	}
	return fmt.Sprintf(", with %s%d %s (%s)", least, len(all), word, pack.Bytes(size)), nil
}
