// Command print writes the reference of the command line from the commands themselves.
//
// In: the commands. Out: docs/reference/cli.md on standard output, with usage, examples and flags of each.
// It must never differ between two runs of the same program.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heliostat-dev/heliostat/cli/app"
)

func main() {
	root := app.Command(app.Settings{})
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	var text strings.Builder
	text.WriteString("# Command line\n\nGenerated from the commands by `make generate`; [the command line](../cli.md) says how to use " +
		"it.\n\n## Flags of all commands\n\n")
	writeFlags(&text, root.PersistentFlags())
	write(&text, root)
	if _, err := io.WriteString(os.Stdout, text.String()); err != nil {
		fmt.Fprintln(os.Stderr, "error: write the reference:", err)
		os.Exit(1)
	}
}

// write writes the commands below one, each with those below it.
func write(out *strings.Builder, parent *cobra.Command) {
	for _, command := range parent.Commands() {
		if !command.IsAvailableCommand() || command.Name() == "help" {
			continue
		}
		if command.HasSubCommands() {
			write(out, command)
			continue
		}
		writeCommand(out, command)
	}
}

func writeCommand(out *strings.Builder, command *cobra.Command) {
	long := command.Long
	if long == "" || command.Parent().Name() == "completion" { // whose texts have headings of their own
		long = command.Short + "."
	}
	fmt.Fprintf(out, "\n## %s\n\n```\n%s\n```\n\n%s\n", command.CommandPath(), command.UseLine(), strings.TrimSpace(long))
	if command.Example != "" {
		fmt.Fprintf(out, "\n```sh\n%s\n```\n", undent(command.Example))
	}
	if command.LocalFlags().HasAvailableFlags() {
		out.WriteString("\n")
		writeFlags(out, command.LocalFlags())
	}
}

// undent removes the two spaces that an example has for the help of a terminal.
func undent(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

func writeFlags(out *strings.Builder, flags *pflag.FlagSet) {
	out.WriteString("| flag | does | default |\n|---|---|---|\n")
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden || flag.Name == "help" {
			return
		}
		name := "`--" + flag.Name + "`"
		if flag.Shorthand != "" {
			name = "`-" + flag.Shorthand + "`, " + name
		}
		value := flag.DefValue
		if value == "[]" || value == "false" {
			value = ""
		}
		cells := []string{name, flag.Usage, value}
		for i := range cells {
			cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
		}
		fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
	})
}
