// Command print writes the reference of the command line from the commands themselves.
//
// In: the commands. Out: docs/reference/cli.md on standard output, with usage, examples and flags of each; or with the
// arguments "man DIRECTORY" a page of the manual for each, as a file of that directory.
// It must never differ between two runs of the same program.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heliostat-dev/heliostat/cli/app"
)

const usage = "usage: print\n       print man DIRECTORY"

func main() {
	root := app.Command(app.Settings{})
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	err := errors.New(usage)
	switch args := os.Args[1:]; {
	case len(args) == 0:
		_, err = io.WriteString(os.Stdout, reference(root))
	case len(args) == 2 && args[0] == "man":
		err = writeManual(args[1], root)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// reference returns the page of all commands.
func reference(root *cobra.Command) string {
	var text strings.Builder
	text.WriteString("# Command line\n\nGenerated from the commands by `make generate`; [the command line](../cli.md) says how to use " +
		"it.\n\n## Flags of all commands\n\n")
	writeFlags(&text, root.PersistentFlags())
	write(&text, root)
	return text.String()
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
