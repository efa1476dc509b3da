// Package console is what all commands share: the streams, the API server, the clock, and how much is said.
//
// In: streams and settings of the program, flags of a command. Out: objects of the API server, a line of progress, notes,
// checked arguments. Data goes to standard output and everything else to standard error.
//
// It must never read the environment or the clock of the machine by itself.
package console

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/cli/progress"
)

const (
	// Look is how often a command that waits looks again.
	Look = 2 * time.Second
	// Patience is how long one that does not answer is asked again.
	Patience = 5 * time.Minute
)

// Silence is since when one that is asked does not answer.
type Silence struct{ since time.Time }

// Broken says that there was an answer.
func (s *Silence) Broken() { s.since = time.Time{} }

// IsNew says that there was no answer now, and reports whether that is the first time in a row.
func (s *Silence) IsNew(now time.Time) bool {
	isNew := s.since.IsZero()
	if isNew {
		s.since = now
	}
	return isNew
}

// IsOver reports whether the last one that was asked answered.
func (s *Silence) IsOver() bool { return s.since.IsZero() }

// IsTooLong reports whether it has lasted for as long as anybody is asked.
func (s *Silence) IsTooLong(now time.Time) bool {
	return !s.since.IsZero() && now.Sub(s.since) >= Patience
}

// Forward makes a connection to a port of a pod.
type Forward func(ctx context.Context, pod types.NamespacedName, port int) (net.Conn, error)

// Resolve returns the addresses of a host as this machine finds them.
type Resolve func(ctx context.Context, host string) ([]netip.Addr, error)

// ReadLog reads the last lines of a container of a pod, or of the one that ran before it.
type ReadLog func(ctx context.Context, of Container, isPrevious bool, lines int64) (string, error)

// StreamLog reads a container's log from a time on, with timestamps. With follow it continues with new lines.
type StreamLog func(ctx context.Context, of Container, after time.Time, isFollowed bool) (io.ReadCloser, error)

// Container is one of a pod.
type Container struct {
	Pod  types.NamespacedName
	Name string
}

// Console is what commands share.
type Console struct {
	genericiooptions.IOStreams
	Access *genericclioptions.ConfigFlags
	Clock  clock.WithTicker
	// Width returns how many columns the terminal of standard error has; nil where that is no terminal.
	Width func() int
	// CanAsk: standard input is a terminal, so that a question gets an answer.
	CanAsk bool
	// Connect makes the objects of the API server.
	Connect func() (*kube.Objects, error)
	// Forward makes a connection to a port of a pod, by way of the API server.
	Forward Forward
	// Resolve finds the addresses of hosts.
	Resolve Resolve
	// ReadLog reads the last lines of a container.
	ReadLog ReadLog
	// StreamLog reads a whole log.
	StreamLog StreamLog
	// Environ are the variables of this program, for those that it runs.
	Environ []string
	// Server is how heads are reached in place of a port-forward, where its URL is not empty.
	Server Server
	// IsQuiet: progress and notes are not printed.
	IsQuiet bool
}

// Note prints a line for people.
func (c *Console) Note(format string, values ...any) {
	if !c.IsQuiet {
		fmt.Fprintln(c.ErrOut, Printable(fmt.Sprintf(format, values...)))
	}
}

// Progress returns a line that says how far a command is.
func (c *Console) Progress() *progress.Line {
	if c.IsQuiet {
		return progress.Silent()
	}
	return progress.New(c.ErrOut, c.Width)
}

// Confirm asks a question that a user must say yes to. Where nobody can answer, it names the flag that says yes.
func (c *Console) Confirm(question string) error {
	if !c.CanAsk {
		return outcome.Errorf(outcome.Usage, "no terminal to ask for confirmation; set --yes")
	}
	fmt.Fprintf(c.ErrOut, "%s [y/N] ", question)
	var answer string
	if _, err := fmt.Fscanln(c.In, &answer); err == nil {
		if answer = strings.ToLower(answer); answer == "y" || answer == "yes" {
			return nil
		}
	}
	return outcome.Errorf(outcome.Stopped, "nothing was done")
}

// Every calls a function at once and then at each look, until it is done, fails, or the context ends.
func (c *Console) Every(ctx context.Context, look func() (isDone bool, err error)) error {
	ticker := c.Clock.NewTicker(Look)
	defer ticker.Stop()
	for {
		if isDone, err := look(); isDone || err != nil {
			return err
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Group returns a command that only holds others.
func Group(name, short string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: UnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}

// UnknownCommand says which command was probably meant.
func UnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, one := range cmd.Commands() {
		known = append(known, one.Name())
	}
	return outcome.Errorf(outcome.Usage, "%s has no such command; %s", cmd.CommandPath(), spelling.Remedy(args[0], known))
}

// Arguments returns a check of how many arguments a command has; most is -1 for any number. Names says what they are.
func Arguments(least, most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return outcome.Errorf(outcome.Usage, "%s lacks %s; see %s --help", cmd.CommandPath(), names, cmd.CommandPath())
		case most >= 0 && len(args) > most:
			return outcome.Errorf(outcome.Usage, "%s takes %s and not %q; see %s --help", cmd.CommandPath(), names, args[most],
				cmd.CommandPath())
		}
		return nil
	}
}

// Printable has nothing that a terminal obeys: names and texts may be a stranger's.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, text)
}

// Again is a command as the user would type it here: with the namespace.
func Again(namespace, format string, values ...any) string {
	return fmt.Sprintf("heliostat %s -n %s", fmt.Sprintf(format, values...), namespace)
}
