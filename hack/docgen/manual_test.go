package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestManualPage_PrintsTextsAsTheyAre(t *testing.T) {
	root := &cobra.Command{Use: "root", Short: "Hold others"}
	command := &cobra.Command{Use: "do-it NAME", Short: "Do it", Long: ".dot\n'quote' and C:\\x", Example: "  root do-it a",
		Run: func(*cobra.Command, []string) {}}
	command.Flags().StringP("file", "f", "", "the `FILE`")
	root.PersistentFlags().Bool("quiet", false, "say less")
	root.AddCommand(command)
	got := manualPage(command)
	for _, want := range []string{".TH \"ROOT-DO-IT\" 1", `root\-do\-it \- Do it`, `\&.dot`, `\&'quote' and C:\ex`, `\fB\-f, \-\-file\fP FILE`,
		"OPTIONS OF ALL COMMANDS", ".SH EXAMPLES\n.nf\nroot do\\-it a", ".SH SEE ALSO\nroot(1)"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q:\n%s", want, got)
		}
	}
}

func TestManual_HasAPageForEachCommand(t *testing.T) {
	directory := t.TempDir()
	if err := writeManual(directory, commands()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"heliostat", "heliostat-job", "heliostat-job-submit", "heliostat-why"} {
		if text, err := os.ReadFile(filepath.Join(directory, name+".1")); err != nil || !strings.HasPrefix(string(text), ".TH ") {
			t.Errorf("page %s: %v, %.20q", name, err, text)
		}
	}
}
