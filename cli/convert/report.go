package convert

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v2" // writes as sigs.k8s.io/yaml does, without the way through JSON

	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/convert"
)

// report prints what becomes of objects, and counts.
type report struct {
	out, rows io.Writer

	unread, refused, differing, written int
	used                                []convert.Used
}

// convert converts one document, and prints what comes out and each row. It fails where it cannot write.
func (r *report) convert(in *input, options convert.Options) error {
	if in.Problem != nil {
		r.unread++
		return r.row(in, in.Line, "", convert.Row{Verdict: "unread", Text: in.Problem.Error()})
	}
	result := convert.Object(in.Object, options)
	r.used = append(r.used, result.Used...)
	if result.Refused() {
		r.refused++
	}
	if result.Differs() {
		r.differing++
	}
	name := in.Name()
	for _, one := range in.Place(result.Rows) {
		if err := r.row(in, one.Line, name, one.Row); err != nil {
			return err
		}
	}
	for _, object := range result.Objects {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("write %s %s as YAML: %w", object.GetKind(), object.GetName(), err)
		}
		if _, err := fmt.Fprintf(r.out, "---\n%s", text); err != nil {
			return err
		}
		r.written++
	}
	return nil
}

// row prints one row: where, which object, which field, what became of it, where it went, and why.
func (r *report) row(in *input, line int, name string, row convert.Row) error {
	var cells []string
	if in.file != "" {
		where := in.file
		if line > 0 {
			where = fmt.Sprintf("%s:%d (document %d)", in.file, line, in.Number)
		}
		cells = append(cells, where)
	}
	verdict := string(row.Verdict)
	if row.Differs {
		verdict += ", differs"
	}
	if row.To != "" {
		verdict += " -> " + row.To
	}
	cells = slices.DeleteFunc(append(cells, name, row.Path, verdict, row.Text),
		func(cell string) bool { return cell == "" })
	// Further lines of a text are what somebody copies. They are indented, so that none looks like a row.
	for i, line := range strings.Split(strings.Join(cells, "  "), "\n") {
		if i > 0 {
			line = "    " + line
		}
		if _, err := fmt.Fprintln(r.rows, printable(line)); err != nil {
			return err
		}
	}
	return nil
}

// printable has nothing that a terminal obeys: names and errors may be a stranger's.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// end prints the choices that made no difference and the sums, and returns the exit code as an error.
func (r *report) end(chosen *convert.Kubeflow) error {
	for _, unused := range chosen.Unused(r.used, r.refused+r.unread == 0) {
		fmt.Fprintln(r.rows, printable("--"+unused.Error()))
	}
	fmt.Fprintf(r.rows, "%d objects written; %d inputs will behave differently, %d were refused, %d could not be "+
		"read\n", r.written, r.differing, r.refused, r.unread)
	code := outcome.Differs
	switch {
	case r.unread > 0:
		code = outcome.Usage
	case r.refused > 0:
		code = outcome.Refused
	case r.differing == 0:
		return nil
	}
	return &outcome.Error{Code: code}
}
