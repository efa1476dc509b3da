// Package history has the commands about what is kept of objects that ended or were deleted: list, files, download, delete.
//
// In: kinds, filters, KIND/NAME. Out: rows for people or programs, a tar file on this machine, or what was deleted. All of it
// comes from the server, which keeps it and checks what the user can read.
//
// It must never overwrite a file, or leave a part of one as if it were whole.
package history

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/cli/output"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// mostRecords is how many records one list has at most.
const mostRecords = 10_000

// filter is which records are listed.
type filter struct {
	console       *console.Console
	out           *output.Flags
	allNamespaces bool
	isFailed      bool
	hasRunning    bool
	name, owner   string
	since, until  string
	limit         int
}

// Command returns the command that lists what is kept, with the others below it.
func Command(c *console.Console) *cobra.Command {
	f := &filter{console: c, out: output.NewFlags()}
	command := &cobra.Command{
		Use:   "history [KIND,…]",
		Short: "List ended and deleted objects, read and delete their history",
		Long: `List clusters, jobs and services that ended or were deleted, newest first: phase, reason, time of the end, age, and the state
of the archive of a cluster.

The history is read through the server (--server). It has the objects that you can list. For outputs and files, see
heliostat logs --help.`,
		Example: `  heliostat history -A --since 7d --failed
  heliostat history jobs --name train -o wide
  heliostat history download cluster/dev`,
		RunE: func(cmd *cobra.Command, args []string) error {
			kinds, err := kindsOf(args)
			if err != nil {
				return err
			}
			return f.list(cmd.Context(), kinds)
		},
	}
	flags := command.Flags()
	flags.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "list all namespaces")
	flags.BoolVar(&f.isFailed, "failed", false, "list only objects that failed")
	flags.BoolVar(&f.hasRunning, "all", false, "also list objects that have not ended")
	flags.StringVar(&f.name, "name", "", "list only objects with this name")
	flags.StringVar(&f.owner, "owner", "", "list only objects of this owner")
	flags.StringVar(&f.since, "since", "", "list only objects that existed after this time, such as 7d, 12h or 2026-01-31T12:00:00Z")
	flags.StringVar(&f.until, "until", "", "list only objects that existed before this time, in the same form as --since")
	flags.IntVar(&f.limit, "limit", away.HistoryPage, "list at most this number of objects")
	f.out.Add(flags)
	c.AddServer(flags)
	command.AddCommand(files(c), download(c), remove(c))
	return command
}

// kindsOf takes kinds from arguments, as the server calls them.
func kindsOf(args []string) ([]string, error) {
	var kinds []string
	for _, arg := range args {
		for text := range strings.SplitSeq(arg, ",") {
			kind, err := kube.ParseKind(text)
			if err != nil {
				return nil, err
			}
			if kind.Word == kube.Schedule.Word {
				return nil, outcome.Errorf(outcome.Usage, "no history is kept of schedules; list their jobs: heliostat history jobs")
			}
			kinds = append(kinds, kind.Word+"s")
		}
	}
	return kinds, nil
}

// query returns the filter as the server takes it.
func (f *filter) query(namespace string, kinds []string) (url.Values, error) {
	if f.limit < 1 || f.limit > mostRecords {
		return nil, outcome.Errorf(outcome.Usage, "--limit must be 1 to %d", mostRecords)
	}
	query := url.Values{"kinds": kinds, "ended": {strconv.FormatBool(!f.hasRunning)}, "failed": {strconv.FormatBool(f.isFailed)}}
	if !f.allNamespaces {
		query.Set("namespaces", namespace)
	}
	for name, value := range map[string]string{"name": f.name, "owner": f.owner} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for name, value := range map[string]string{"since": f.since, "until": f.until} {
		at, err := moment(value, f.console.Clock.Now())
		if err != nil {
			return nil, outcome.Errorf(outcome.Usage, "--%s %q is no time; write one such as 7d, 12h or 2026-01-31T12:00:00Z", name, value)
		}
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339))
		}
	}
	return query, nil
}

// longest is the longest time ago that a user can name in days.
const longest = 36_500

// moment reads a time, or how long ago it was; the zero time of an empty text.
func moment(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, is := strings.CutSuffix(text, "d"); is {
		count, err := strconv.Atoi(days)
		if err != nil || count < 0 || count > longest {
			return time.Time{}, fmt.Errorf("%q is no number of days", days)
		}
		return now.AddDate(0, 0, -count), nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("read a time: %w", err)
	}
	return at, nil
}

// list prints what is kept.
func (f *filter) list(ctx context.Context, kinds []string) error {
	if err := f.out.Check(); err != nil {
		return err
	}
	objects, err := f.console.Connect()
	if err != nil {
		return err
	}
	query, err := f.query(objects.Namespace, kinds)
	if err != nil {
		return err
	}
	server, err := away.HistoryServer(f.console)
	if err != nil {
		return err
	}
	all, hasMore, err := f.records(ctx, server, query)
	if err != nil {
		return err
	}
	if err := f.print(all, objects.Namespace); err != nil {
		return err
	}
	if hasMore {
		f.console.Note("there are more than %d; set --limit, or list fewer with --since, --until or --name", len(all))
	}
	return nil
}

// records returns the records that match, up to the limit, and whether there are more.
func (f *filter) records(ctx context.Context, server *away.History, query url.Values) ([]*heliostatv1.HistoryRecord, bool, error) {
	var all []*heliostatv1.HistoryRecord
	hasMore, err := away.EachPage(func(after string) (string, error) {
		query.Set("limit", strconv.Itoa(min(away.HistoryPage, f.limit-len(all))))
		if after != "" {
			query.Set("continue", after)
		}
		page, err := server.ListHistory(ctx, query)
		all = append(all, page.GetRecords()...)
		return page.GetContinue(), err
	}, func() bool { return len(all) >= f.limit })
	return all[:min(len(all), f.limit)], hasMore, err
}

// print prints records as rows, or in the format that was asked for.
func (f *filter) print(all []*heliostatv1.HistoryRecord, namespace string) error {
	if !f.out.IsTable() {
		return answer(f.out, f.console, "HistoryRecordList", all)
	}
	if len(all) == 0 && f.allNamespaces {
		f.console.Note("no history in any namespace")
		return nil
	} else if len(all) == 0 {
		f.console.Note("no history %s; -A shows all namespaces", kube.Where(namespace))
		return nil
	}
	names := []string{"NAME", "PHASE", "REASON", "ENDED", "AGE", "ARCHIVE", "owner", "uid"}
	if f.allNamespaces {
		names = append([]string{"NAMESPACE"}, names...)
	}
	table, now := output.Table{Columns: output.Columns(names...)}, f.console.Clock.Now()
	for _, one := range all {
		ended := one.GetEnded()
		if ended == nil {
			ended = one.GetDeleted()
		}
		row := []string{nameOf(one), one.GetPhase(), one.GetCode(), ago(now, ended), ago(now, one.GetCreated()), one.GetArchive().GetState(),
			one.GetOwner(), one.GetUid()}
		if f.allNamespaces {
			row = append([]string{one.GetNamespace()}, row...)
		}
		table.Rows = append(table.Rows, row)
	}
	return f.out.Rows(f.console.Out, table)
}

// nameOf returns the name of an object as commands take it.
func nameOf(one *heliostatv1.HistoryRecord) string {
	return strings.TrimSuffix(one.GetKind(), "s") + "/" + one.GetName()
}

// ago returns how long ago a moment was, as kubectl writes it.
func ago(now time.Time, at *timestamppb.Timestamp) string {
	if at == nil {
		return ""
	}
	return duration.HumanDuration(now.Sub(at.AsTime()))
}

// answer prints messages of the server as items of a list.
func answer[T proto.Message](out *output.Flags, c *console.Console, kind string, all []T) error {
	items := make([]json.RawMessage, 0, len(all))
	for _, one := range all {
		text, err := protojson.Marshal(one)
		if err != nil {
			return fmt.Errorf("write the answer: %w", err)
		}
		items = append(items, text)
	}
	return out.Answer(c.Out, kind, map[string]any{"items": items})
}

// formerOf returns the object that a user named, and the server that keeps its history.
func formerOf(c *console.Console, text, uid string) (*away.History, away.Former, error) {
	target, err := kube.ParseTarget(text, kube.Cluster, kube.Job, kube.Service)
	if err != nil {
		return nil, away.Former{}, err
	}
	objects, err := c.Connect()
	if err != nil {
		return nil, away.Former{}, err
	}
	server, err := away.HistoryServer(c)
	return server, away.Former{Namespace: objects.Namespace, Target: target, UID: uid}, err
}
