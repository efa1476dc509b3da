// Package output prints the data of commands: as a table for people, or in the formats of kubectl.
//
// In: rows, or objects, and the flag -o. Out: text for standard output. Answers that are no objects of Kubernetes have a
// kind of their own, so that every format takes them.
//
// It must never print anything that a terminal obeys.
package output

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
)

// group is the API version of answers that are no objects of Kubernetes.
const group = "cli.heliostat.dev/v1"

// wide is the format of a table with more columns.
const wide = "wide"

// Flags say how data is printed.
type Flags struct {
	print     *genericclioptions.PrintFlags
	noHeaders bool
}

// NewFlags returns flags by which nothing is chosen yet.
func NewFlags() *Flags {
	return &Flags{print: genericclioptions.NewPrintFlags("").WithTypeSetter(kube.Scheme())}
}

// Add adds the flags to those of a command that prints a table.
func (f *Flags) Add(flags *pflag.FlagSet) {
	f.AddFormat(flags)
	flags.BoolVar(&f.noHeaders, "no-headers", false, "print a table without its header")
}

// AddFormat adds the flag of the format to those of a command.
func (f *Flags) AddFormat(flags *pflag.FlagSet) {
	flags.StringVarP(f.print.OutputFormat, "output", "o", "", "format: "+strings.Join(f.formats(), ", ")+
		"; a template follows after =, as in jsonpath={.metadata.name}")
}

// formats returns the formats that there are.
func (f *Flags) formats() []string { return append([]string{wide}, f.print.AllowedFormats()...) }

// IsTable reports whether rows are wanted.
func (f *Flags) IsTable() bool { return *f.print.OutputFormat == "" || f.IsWide() }

// HideHeaders has tables printed without their first line from now on.
func (f *Flags) HideHeaders() { f.noHeaders = true }

// IsWide reports whether all columns are wanted.
func (f *Flags) IsWide() bool { return *f.print.OutputFormat == wide }

// printer returns what prints objects.
func (f *Flags) printer() (printers.ResourcePrinter, error) {
	printer, err := f.print.ToPrinter()
	switch {
	case genericclioptions.IsNoCompatiblePrinterError(err):
		return nil, outcome.Errorf(outcome.Usage, "-o %q is no format; %s", *f.print.OutputFormat,
			spelling.Remedy(*f.print.OutputFormat, f.formats()))
	case err != nil:
		return nil, outcome.Errorf(outcome.Usage, "-o has a template that cannot be read: %w", err)
	}
	return printer, nil
}

// Check says early what is wrong with the format.
func (f *Flags) Check() error {
	if f.IsTable() {
		return nil
	}
	_, err := f.printer()
	return err
}

// Object prints an object of Kubernetes.
func (f *Flags) Object(out io.Writer, object runtime.Object) error {
	printer, err := f.printer()
	if err != nil {
		return err
	}
	if err := printer.PrintObj(object, out); err != nil {
		return fmt.Errorf("print the object: %w", err)
	}
	return nil
}

// List prints objects of Kubernetes as one list.
func List[T runtime.Object](f *Flags, out io.Writer, objects []T) error {
	list := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}}}
	for _, object := range objects {
		one, err := fieldsOf(object)
		if err != nil {
			return err
		}
		list.Items = append(list.Items, *one)
	}
	return f.Object(out, list)
}

// fieldsOf returns an object as printers take it, with its kind.
func fieldsOf(object runtime.Object) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("read an object: %w", err)
	}
	one := &unstructured.Unstructured{Object: fields}
	kinds, _, err := kube.Scheme().ObjectKinds(object)
	if err != nil {
		return nil, fmt.Errorf("find the kind of an object: %w", err)
	}
	one.SetGroupVersionKind(kinds[0])
	return one, nil
}

// Answer prints an answer that is no object of Kubernetes, as one of a kind.
func (f *Flags) Answer(out io.Writer, kind string, answer any) error {
	text, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	fields["apiVersion"], fields["kind"] = group, kind
	if *f.print.OutputFormat == "name" {
		return outcome.Errorf(outcome.Usage, "-o name prints names of objects, and this output has none; set -o json")
	}
	return f.Object(out, &unstructured.Unstructured{Object: fields})
}

// Table are rows for people. A column of Wide is printed with -o wide alone.
type Table struct {
	Columns []Column
	Rows    [][]string
}

// Column is one of a table.
type Column struct {
	Name   string
	IsWide bool
}

// Columns returns columns of names; those in lower case are printed with -o wide alone.
func Columns(names ...string) []Column {
	var all []Column
	for _, name := range names {
		all = append(all, Column{strings.ToUpper(name), name != strings.ToUpper(name)})
	}
	return all
}

// Rows prints a table.
func (f *Flags) Rows(out io.Writer, table Table) error {
	writer := printers.GetNewTabWriter(out)
	if !f.noHeaders {
		var names []string
		for _, column := range table.Columns {
			names = append(names, column.Name)
		}
		f.row(writer, table.Columns, names)
	}
	for _, row := range table.Rows {
		f.row(writer, table.Columns, row)
	}
	if err := writer.Flush(); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	return nil
}

func (f *Flags) row(out io.Writer, columns []Column, cells []string) {
	var shown []string
	for i, cell := range cells {
		if columns[i].IsWide && !f.IsWide() {
			continue
		}
		if cell == "" {
			cell = "-"
		}
		shown = append(shown, console.Printable(cell))
	}
	fmt.Fprintln(out, strings.Join(shown, "\t"))
}

// Done says on standard output what became of an object, as kubectl does, or prints the object. One that was not created
// has no status.
func (f *Flags) Done(out io.Writer, object runtime.Object, said string) error {
	if f.IsTable() {
		fmt.Fprintln(out, said)
		return nil
	}
	one, err := fieldsOf(object)
	if err != nil {
		return err
	}
	if one.GetResourceVersion() == "" {
		delete(one.Object, "status")
	}
	return f.Object(out, one)
}

// DryRun is the flag --dry-run.
type DryRun struct{ mode string }

// Add adds the flag to those of a command.
func (d *DryRun) Add(flags *pflag.FlagSet) {
	flags.StringVar(&d.mode, "dry-run", "none", "client prints the object that would be sent; server submits it to the API "+
		"server without storing it")
	flags.Lookup("dry-run").NoOptDefVal = "client"
}

// Check says what is wrong with the flag.
func (d *DryRun) Check() error {
	switch d.mode {
	case "none", "client", "server":
		return nil
	}
	return outcome.Errorf(outcome.Usage, "--dry-run is %q; give none, client or server", d.mode)
}

// IsClient reports whether nothing is sent.
func (d *DryRun) IsClient() bool { return d.mode == "client" }

// IsServer reports whether the API server checks a write that it does not keep.
func (d *DryRun) IsServer() bool { return d.mode == "server" }

// Suffix says behind a line that nothing was kept.
func (d *DryRun) Suffix() string {
	switch {
	case d.IsClient():
		return " (dry run)"
	case d.IsServer():
		return " (server dry run)"
	}
	return ""
}
