package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// age says when a file of results was made: its oldest result, where it has several.
type age struct {
	file, command, commit, date string
	// behind is how many commits came since, as text.
	behind string
}

// known is what git knows of a commit.
type known struct {
	date   string
	behind int
}

// commitsOf returns the commits that files name, each once.
func commitsOf(files []file) []string {
	var commits []string
	for _, one := range files {
		commits = append(commits, one.Commit)
		for _, of := range one.Outcomes {
			commits = append(commits, of.Commit)
		}
		for _, of := range one.Faults {
			commits = append(commits, of.After.Commit)
		}
	}
	slices.Sort(commits)
	commits = slices.Compact(commits)
	return slices.DeleteFunc(commits, func(commit string) bool { return commit == "" })
}

// readHistory asks git for the dates of commits and for how far they are behind HEAD. It leaves out those that git does not know.
func readHistory(ctx context.Context, commits []string) (map[string]known, error) {
	history := map[string]known{}
	for _, commit := range commits {
		name, _, _ := strings.Cut(commit, "+") // a mark of changes that nobody committed
		date, err := exec.CommandContext(ctx, "git", "show", "--no-patch", "--format=%cs", name+"^{commit}").Output()
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("ask git for the commit %s: %w", name, err)
		}
		count, err := exec.CommandContext(ctx, "git", "rev-list", "--count", name+"..HEAD").Output()
		if err != nil {
			return nil, fmt.Errorf("count the commits since %s: %w", name, err)
		}
		behind, err := strconv.Atoi(strings.TrimSpace(string(count)))
		if err != nil {
			return nil, fmt.Errorf("count the commits since %s: %w", name, err)
		}
		history[commit] = known{date: strings.TrimSpace(string(date)), behind: behind}
	}
	return history, nil
}

// listAges returns the age of each file of figures, the oldest first.
func listAges(files []file, history map[string]known) []age {
	var ages []age
	for _, one := range files {
		var all []age
		switch {
		case one.Area != "":
			for _, of := range one.Outcomes {
				all = append(all, age{command: "make accept AREA=" + one.Area, commit: of.Commit, date: of.Date})
			}
		case one.Command != "":
			all = append(all, age{command: one.Command, commit: one.Commit, date: one.Date})
		default:
			for _, of := range one.Faults {
				if commit := of.After.Commit; commit != "" {
					all = append(all, age{command: "go run ./tests/seeded", commit: commit, date: history[commit].date})
				}
			}
		}
		if len(all) == 0 {
			continue
		}
		oldest := slices.MinFunc(all, older)
		oldest.file, oldest.behind = one.Name, "unknown"
		if of, ok := history[oldest.commit]; ok {
			oldest.behind = strconv.Itoa(of.behind)
		}
		ages = append(ages, oldest)
	}
	slices.SortStableFunc(ages, older)
	return ages
}

// older compares by date. One without a date comes last, as nobody knows its age.
func older(a, b age) int { return cmp.Compare(cmp.Or(a.date, "unknown"), cmp.Or(b.date, "unknown")) }

// days returns how many days ago it was, as text.
func (a age) days(now time.Time) string {
	day, err := time.Parse(time.DateOnly, a.date)
	if err != nil {
		return "unknown"
	}
	return strconv.Itoa(int(now.Sub(day).Hours() / 24))
}

// printAges prints a table.
func printAges(out io.Writer, ages []age, now time.Time) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, err := fmt.Fprintln(table, "oldest result of\tdays\tdate\tcommit\tcommits since\tmade by")
	for _, one := range ages {
		_, failed := fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", one.file, one.days(now), one.date, one.commit, one.behind, one.command)
		err = errors.Join(err, failed)
	}
	if err := errors.Join(err, table.Flush()); err != nil {
		return fmt.Errorf("print the ages of results: %w", err)
	}
	return nil
}
