// Command results looks at the measured results in docs/results, each of which names what made it.
//
// In: check as the argument, the repository as the working directory, and on standard input the
// scenarios that make accept plays, one "AREA SCENARIO" a line. Out: it prints each result of a
// command, scenario or test that is gone, and fails if there is one. It must never change a result.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "results:", err)
		os.Exit(1)
	}
}

func run(arguments []string, in io.Reader, out io.Writer) error {
	if len(arguments) != 1 || arguments[0] != "check" {
		return errors.New("usage: results check")
	}
	files, err := readFiles("docs/results")
	if err != nil {
		return err
	}
	there, err := readRepository(in)
	if err != nil {
		return err
	}
	if gone := findGone(files, there); len(gone) > 0 {
		return errors.Join(gone...)
	}
	_, err = fmt.Fprintf(out, "all %d files of results are of what exists\n", len(files))
	return err
}
