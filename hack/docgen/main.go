// Command docgen writes what is generated from packages that any program may import: the references of the command line, of
// reasons, of KubeRay's fields and of the API below /v1, the OpenAPI document of that API, and the manual.
//
// In: the commands, the catalogue, the converter's rules and the server's routes; and from the directory in which it runs, the
// root of the repository, the protocol, what protoc made of it, and the CRDs. Out: files below a directory laid out like the
// repository; or with the arguments "man DIRECTORY" a page of the manual for each command, as files of that directory.
//
// It must never say what these do not, or differ between two runs of the same program.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heliostat-dev/heliostat/apiserver/rest"
	"github.com/heliostat-dev/heliostat/cli/app"
	"github.com/heliostat-dev/heliostat/ray-operator/convert"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

func main() {
	err := errors.New("usage: docgen DIRECTORY\n       docgen man DIRECTORY")
	switch args := os.Args[1:]; {
	case len(args) == 1:
		err = writePages(args[0])
	case len(args) == 2 && args[0] == "man":
		err = writeManual(args[1], commands())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

// commands returns the command line, with the commands that it gets where it runs.
func commands() *cobra.Command {
	root := app.Command(app.Settings{})
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	return root
}

// writePages writes all but the manual.
func writePages(directory string) error {
	routes, err := routesPage("proto/heliostat/v1/portal.proto", rest.Routes())
	if err != nil {
		return err
	}
	document, err := openAPI("proto/gen/heliostat/v1/portal.openapi.json", "ray-operator/config/crd")
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"docs/reference/cli.md":             commandsPage(commands()),
		"docs/reference/reasons.md":         reasonsPage(reason.Sections()),
		"docs/reference/kuberay-fields.md":  kuberayPage(convert.Rules()),
		"docs/reference/kubeflow-fields.md": kubeflowPage(convert.Rules()),
		"docs/reference/rest.md":            routes,
		"apiserver/rest/openapi.json":       document,
	} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write a page: %w", err)
		}
	}
	return nil
}

// writeTable writes a table in Markdown: its headings as they are, and rows of cells.
func writeTable(out *strings.Builder, headings string, rows [][]string) {
	fmt.Fprintf(out, "%s\n%s|\n", headings, strings.Repeat("|---", strings.Count(headings, "|")-1))
	for _, cells := range rows {
		for _, cell := range cells {
			out.WriteString("| " + strings.ReplaceAll(cell, "|", `\|`) + " ")
		}
		out.WriteString("|\n")
	}
}
