package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commandsPage returns the reference of all commands, with usage, examples and flags of each.
func commandsPage(root *cobra.Command) string {
	var text strings.Builder
	text.WriteString("# Command line\n\nGenerated from the commands by `make generate`; [the command line](../cli.md) says how to use " +
		"it.\n\n## Flags of all commands\n\n")
	writeFlags(&text, root.PersistentFlags())
	writeCommands(&text, root)
	return text.String()
}

// writeCommands writes the commands below one, each with those below it.
func writeCommands(out *strings.Builder, parent *cobra.Command) {
	for _, command := range below(parent) {
		if command.HasSubCommands() {
			writeCommands(out, command)
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
	return strings.ReplaceAll(strings.TrimPrefix(text, "  "), "\n  ", "\n")
}

func writeFlags(out *strings.Builder, flags *pflag.FlagSet) {
	var rows [][]string
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
		rows = append(rows, []string{name, flag.Usage, value})
	})
	writeTable(out, "| flag | does | default |", rows)
}
