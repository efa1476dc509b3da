package logs

import (
	"context"
	"slices"

	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// mostFiles is how many files one command prints.
const mostFiles = 1000

// fileOutput is what is kept of files of an object.
type fileOutput struct {
	console *console.Console
	server  *away.History
	of      away.Former
	// pattern is that of their paths, and pod the only pod, where it is not empty.
	pattern, pod string
}

// print prints the files, one after the other. Where they are several, their names are on standard error.
func (f *fileOutput) print(ctx context.Context) error {
	files, err := f.list(ctx)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return outcome.Errorf(outcome.Usage, "no file that is kept of %s matches %q; see %s", f.of.Target, f.pattern,
			console.Again(f.of.Namespace, "history files %s", f.of.Target))
	}
	for _, file := range files {
		if len(files) > 1 {
			f.console.Note("==> %s %s <==", file.GetPod(), file.GetPath())
		}
		notes := &notes{console: f.console, out: &counter{out: f.console.Out}}
		read := func(ctx context.Context, offset int64, sink away.Sink) error {
			return f.server.ReadFile(ctx, f.of, file, offset, sink)
		}
		if err := readAll(ctx, notes, file.GetPath(), f.again(), read); err != nil {
			if ctx.Err() != nil {
				return outcome.Errorf(outcome.Detached, "interrupted; print it again: %s", f.again())
			}
			return err
		}
	}
	return nil
}

// again is the command that prints the files.
func (f *fileOutput) again() string {
	line := "logs " + f.of.Target.String() + " --file '" + f.pattern + "'"
	if f.of.UID != "" {
		line += " --uid " + f.of.UID
	}
	return console.Again(f.of.Namespace, "%s", line)
}

// list returns the files that match.
func (f *fileOutput) list(ctx context.Context) ([]*heliostatv1.File, error) {
	all, hasMore, err := f.server.AllFiles(ctx, f.of, []string{f.pattern}, mostFiles)
	if err == nil && hasMore {
		err = outcome.Errorf(outcome.Usage, "more than %d files match %q; write a narrower pattern, or see heliostat history download --help",
			mostFiles, f.pattern)
	}
	return slices.DeleteFunc(all, func(one *heliostatv1.File) bool { return f.pod != "" && one.GetPod() != f.pod }), err
}

// readKept prints what the server keeps of an object, where files or an earlier object are asked for.
func (a *asked) readKept(ctx context.Context, c *console.Console, namespace, text string) error {
	target, err := kube.ParseTarget(text, kube.Cluster, kube.Job, kube.Service)
	if err != nil {
		return err
	}
	server, err := away.HistoryServer(c)
	if err != nil {
		return err
	}
	of := away.Former{Namespace: namespace, Target: target, UID: a.uid}
	switch {
	case a.file != "" && a.isFollowed:
		return outcome.Errorf(outcome.Usage, "--file prints what is kept and does not continue; leave out -f")
	case a.file != "":
		return (&fileOutput{c, server, of, a.file, a.choice.pod}).print(ctx)
	case target.Kind.Word != kube.Job.Word:
		return outcome.Errorf(outcome.Usage, "%s has many files; choose some with --file PATTERN, or list them: %s", target,
			console.Again(namespace, "history files %s", target))
	}
	return a.former(c, server, of).print(ctx)
}

// former returns the output of a job that is gone.
func (a *asked) former(c *console.Console, server *away.History, of away.Former) *formerOutput {
	return &formerOutput{console: c, server: server, trial: a.process.trial, of: away.FormerOutput{
		Former: of, Attempt: a.attempt, Process: a.process.name, Round: a.process.round, IsFollowed: a.isFollowed}}
}

// orFormer prints what is kept of a job that is not there any more, where the server has something. Else it returns why there is no job.
func (a *asked) orFormer(ctx context.Context, c *console.Console, namespace string, target kube.Target, why error) error {
	if !isMissing(why) || c.Server.URL == "" {
		return why
	}
	if target.Kind.Word != kube.Job.Word {
		c.Note("if %s was deleted, its files are in the history: %s", target, console.Again(namespace, "history files %s", target))
		return why
	}
	server, err := away.HistoryServer(c)
	if err != nil {
		return err
	}
	err = a.former(c, server, away.Former{Namespace: namespace, Target: target}).print(ctx)
	if away.IsNothing(err) {
		return why
	}
	return err
}

// checkKeptFlags refuses flags that files and earlier objects do not have.
func (a *asked) checkKeptFlags(isGiven func(string) bool) error {
	others := []string{"group", "deployment"}
	if a.file != "" {
		others = append(others, "attempt", "process", "round", "trial")
	}
	for _, flag := range others {
		if isGiven(flag) {
			return outcome.Errorf(outcome.Usage, "--%s is not for what is kept; leave it out, or leave out --file and --uid", flag)
		}
	}
	return nil
}
