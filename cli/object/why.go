package object

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/apiserver/phases"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/output"
)

func why(c *console.Console) *cobra.Command {
	out := output.NewFlags()
	command := &cobra.Command{
		Use:   "why KIND/NAME",
		Short: "Explain the status of an object, with causes and remedies",
		Long: `Explain the status of a cluster, job, service or schedule by a chain of causes, from the object down to the pod that it waits
for. The remedy follows each cause, after an arrow. The kind is optional if the name is unique.`,
		Example: "  heliostat why job/train\n  heliostat why dev -n team-a -o json",
		Args:    console.Arguments(1, 1, "KIND/NAME"), ValidArgsFunction: Complete(c),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			objects, found, err := each(cmd.Context(), c, args)
			if err != nil {
				return err
			}
			in, err := objects.Around(cmd.Context(), found[0], c.Clock.Now())
			switch {
			case errors.Is(err, kube.ErrNoPods):
				c.Note("warning: you may not list pods, so the chain ends above them; ask for the role \"view\"")
			case err != nil:
				return err
			}
			if out.IsTable() {
				return Tell(c.Out, in)
			}
			return out.Answer(c.Out, "Explanation", answerOf(in))
		},
	}
	out.AddFormat(command.Flags())
	return command
}

// Tell prints the phases of an object and the chain of causes, each object of the chain once.
func Tell(out io.Writer, in explain.Input) error {
	var text strings.Builder
	for i, phase := range phases.Of(in) {
		if i > 0 {
			text.WriteString(" > ")
		}
		text.WriteString(phase.Name)
		if phase.State != phases.Pending && phase.State != phases.Done {
			text.WriteString(" (" + strings.ToLower(phase.State) + ")")
		}
	}
	text.WriteString("\n")
	subject, depth := "", -1
	for _, cause := range explain.Explain(in) {
		name := cause.Kind + " " + cause.Name
		if name != subject {
			subject = name
			depth++
			fmt.Fprintf(&text, "%s%s\n", strings.Repeat("  ", depth), name)
		}
		indent := strings.Repeat("  ", depth+1)
		fmt.Fprintf(&text, "%s%s: %s%s\n", indent, cause.Code, cause.Message, lasting(in.Now, cause.Since))
		if cause.Remedy != "" {
			fmt.Fprintf(&text, "%s-> %s\n", indent, cause.Remedy)
		}
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text.String()), "\n") {
		if _, err := fmt.Fprintln(out, console.Printable(line)); err != nil {
			return fmt.Errorf("print the explanation: %w", err)
		}
	}
	return nil
}

// lasting says for how long something has been so, where that is known.
func lasting(now, since time.Time) string {
	if since.IsZero() {
		return ""
	}
	return fmt.Sprintf(" (for %s)", duration.HumanDuration(now.Sub(since)))
}

// answer is an explanation for programs.
type answer struct {
	Causes []cause `json:"causes"`
	Phases []phase `json:"phases"`
}

type cause struct {
	Kind      string     `json:"objectKind"`
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	Code      string     `json:"code"`
	Message   string     `json:"message"`
	Remedy    string     `json:"remedy,omitempty"`
	Since     *time.Time `json:"since,omitempty"`
}

type phase struct {
	Name     string     `json:"name"`
	State    string     `json:"state"`
	Since    *time.Time `json:"since,omitempty"`
	Until    *time.Time `json:"until,omitempty"`
	WaitsFor string     `json:"waitsFor,omitempty"`
}

func answerOf(in explain.Input) answer {
	var said answer
	for _, one := range explain.Explain(in) {
		said.Causes = append(said.Causes, cause{one.Kind, one.Namespace, one.Name, one.Code, one.Message, one.Remedy,
			known(one.Since)})
	}
	for _, one := range phases.Of(in) {
		said.Phases = append(said.Phases, phase{one.Name, one.State, known(one.Since), known(one.Until), one.WaitsFor})
	}
	return said
}

// known is nil for a time that nobody knows.
func known(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}
