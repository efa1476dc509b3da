package history

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/cli/output"
	"github.com/heliostat-dev/heliostat/cli/pack"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// mostFiles is how many files one list has at most.
const mostFiles = 100_000

const uidUse = "UID of an earlier object with the same name; default: the newest one"

func files(c *console.Console) *cobra.Command {
	out, uid, patterns := output.NewFlags(), "", []string(nil)
	command := &cobra.Command{
		Use: "files KIND/NAME", Short: "List the log files of an object's history",
		Long: `List the log files in the history of a cluster, job or service, with size, time of the last byte, and missing ranges.
heliostat logs KIND/NAME --file PATTERN prints files.`,
		Example: "  heliostat history files cluster/dev\n  heliostat history files cluster/dev --file 'worker-*.err' -o wide",
		Args:    console.Arguments(1, 1, "KIND/NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			server, of, err := formerOf(c, args[0], uid)
			if err != nil {
				return err
			}
			all, hasMore, err := server.AllFiles(cmd.Context(), of, patterns, mostFiles)
			if err != nil {
				return err
			}
			if err := printFiles(c, out, of, all); err != nil {
				return err
			}
			if hasMore {
				c.Note("there are more than %d; list fewer with --file", len(all))
			}
			return nil
		},
	}
	command.Flags().StringVar(&uid, "uid", "", uidUse)
	command.Flags().StringArrayVar(&patterns, "file", nil, "list only files that match this pattern, such as 'worker-*.err'")
	out.Add(command.Flags())
	c.AddServer(command.Flags())
	return command
}

func printFiles(c *console.Console, out *output.Flags, of away.Former, all []*heliostatv1.File) error {
	switch {
	case !out.IsTable():
		return answer(out, c, "HistoryFileList", all)
	case len(all) == 0:
		c.Note("no files in the history of %s", of.Target)
		return nil
	}
	table, now := output.Table{Columns: output.Columns("POD", "FILE", "SIZE", "LAST", "MISSING", "id", "cluster uid")}, c.Clock.Now()
	for _, one := range all {
		table.Rows = append(table.Rows, []string{one.GetPod(), one.GetPath(), pack.Bytes(one.GetSize()), ago(now, one.GetLast()),
			missingOf(one.GetMissing()), one.GetId(), one.GetClusterUid()})
	}
	return out.Rows(c.Out, table)
}

// shownRanges is how many missing ranges a row has.
const shownRanges = 3

// missingOf returns the ranges that are missing, for people.
func missingOf(all []*heliostatv1.MissingRange) string {
	var texts []string
	for _, one := range all[:min(len(all), shownRanges)] {
		text := fmt.Sprintf("%d-", one.GetOffset())
		if one.GetLength() > 0 {
			text += fmt.Sprint(one.GetOffset() + one.GetLength() - 1)
		}
		texts = append(texts, text+" "+one.GetReason())
	}
	if more := len(all) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, ", ")
}

func download(c *console.Console) *cobra.Command {
	uid, path, patterns := "", "", []string(nil)
	command := &cobra.Command{
		Use: "download KIND/NAME", Short: "Download the log files of an object's history as a tar",
		Long: `Download the log files in the history of a cluster, job or service as a tar. Ranges that are missing are listed in its entry
missing.txt. The command overwrites no file, and removes an incomplete one.`,
		Example: "  heliostat history download cluster/dev\n  heliostat history download job/train --file 'job-driver-*' --file 'worker-*' --output train.tar",
		Args:    console.Arguments(1, 1, "KIND/NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			server, of, err := formerOf(c, args[0], uid)
			if err != nil {
				return err
			}
			if path == "" {
				path = of.Target.Kind.Word + "-" + of.Target.Name + ".tar"
			}
			return save(cmd.Context(), c, path, func(ctx context.Context, out *os.File) (int64, error) {
				return server.Download(ctx, of, patterns, out)
			})
		},
	}
	command.Flags().StringVar(&uid, "uid", "", uidUse)
	command.Flags().StringVar(&path, "output", "", "file to write; default: KIND-NAME.tar")
	command.Flags().StringArrayVar(&patterns, "file", nil, "download only files that match this pattern, such as 'worker-*.err'")
	c.AddServer(command.Flags())
	return command
}

// save writes a new file, and removes it where it does not become whole.
func save(ctx context.Context, c *console.Console, path string, write func(context.Context, *os.File) (int64, error)) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the user names the file
	if errors.Is(err, os.ErrExist) {
		return outcome.Errorf(outcome.Refused, "the file %s is there; remove it, or give another --output", path)
	} else if err != nil {
		return outcome.Errorf(outcome.Usage, "write the file: %w", err)
	}
	count, err := write(ctx, out)
	if err = errors.Join(err, out.Close()); err != nil {
		if removed := os.Remove(path); removed != nil {
			c.Note("%s is incomplete and cannot be removed: %v", path, removed)
		}
		if ctx.Err() != nil {
			return outcome.Errorf(outcome.Detached, "interrupted; %s was removed", path)
		}
		return err
	}
	fmt.Fprintln(c.Out, path)
	c.Note("%s", pack.Bytes(count))
	return nil
}
