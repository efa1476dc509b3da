// Command celrules writes the catalogue of the CRDs' CEL rules as a Go file of package validate.
//
// In, as arguments: the directory of the kinds' Go types, and that of the schemas that crdtrim makes of them. Out, on standard
// output: the rules of each kind with ID, fields and texts. The ID of a rule stands in a marker below its XValidation:
//
//	// +kubebuilder:validation:XValidation:rule="…",message="what is wrong; what helps"
//	// +heliostat:rule=the-id
//
// A message must have one ID, because a finding is told from others by its message alone.
package main

import (
	"errors"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "celrules:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("give the directory of the types and that of the schemas")

func run(args []string) error {
	if len(args) != 2 {
		return errUsage
	}
	ids, err := readIDs(args[0])
	if err != nil {
		return err
	}
	lists, err := readLists(args[1], ids)
	if err != nil {
		return err
	}
	text, err := write(lists)
	if err != nil {
		return err
	}
	if _, err := os.Stdout.Write(text); err != nil {
		return fmt.Errorf("write the catalogue: %w", err)
	}
	return nil
}
