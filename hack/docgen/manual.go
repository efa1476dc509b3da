package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// writeManual writes a page for a command and each one below it into a directory.
func writeManual(directory string, command *cobra.Command) error {
	file := filepath.Join(directory, pageName(command)+".1")
	if err := os.WriteFile(file, []byte(manualPage(command)), 0o644); err != nil {
		return fmt.Errorf("write a page of the manual: %w", err)
	}
	for _, one := range below(command) {
		if err := writeManual(directory, one); err != nil {
			return err
		}
	}
	return nil
}

// pageName returns what man finds the page of a command by.
func pageName(command *cobra.Command) string {
	return strings.ReplaceAll(command.CommandPath(), " ", "-")
}

// below returns the commands below one that have a page.
func below(command *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, one := range command.Commands() {
		if one.IsAvailableCommand() && one.Name() != "help" {
			all = append(all, one)
		}
	}
	return all
}

// manualPage returns the page of a command for man. It has no date: it is the same for the same commands.
func manualPage(command *cobra.Command) string {
	var out strings.Builder
	name := pageName(command)
	fmt.Fprintf(&out, ".TH %q 1 \"\" heliostat Heliostat\n.SH NAME\n%s \\- %s\n", strings.ToUpper(name), roff(name), roff(command.Short))
	fmt.Fprintf(&out, ".SH SYNOPSIS\n%s\n", roff(command.UseLine()))
	if command.Long != "" {
		fmt.Fprintf(&out, ".SH DESCRIPTION\n.nf\n%s\n.fi\n", roff(strings.TrimSpace(command.Long)))
	}
	writeOptions(&out, "OPTIONS", command.LocalNonPersistentFlags())
	writeOptions(&out, "OPTIONS OF ALL COMMANDS", command.Root().PersistentFlags())
	if command.Example != "" {
		fmt.Fprintf(&out, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(undent(command.Example)))
	}
	var others []string
	if command.HasParent() {
		others = append(others, roff(pageName(command.Parent()))+"(1)")
	}
	for _, one := range below(command) {
		others = append(others, roff(pageName(one))+"(1)")
	}
	if len(others) > 0 {
		fmt.Fprintf(&out, ".SH SEE ALSO\n%s\n", strings.Join(others, ", "))
	}
	return out.String()
}

// writeOptions writes a section with flags, where there are any.
func writeOptions(out *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(out, ".SH %s\n", title)
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden {
			return
		}
		name := "--" + flag.Name
		if flag.Shorthand != "" {
			name = "-" + flag.Shorthand + ", " + name
		}
		value, said := pflag.UnquoteUsage(flag)
		fmt.Fprintf(out, ".TP\n\\fB%s\\fP %s\n%s\n", roff(name), roff(value), roff(said))
	})
}

// roff returns a text that man prints as it is.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
