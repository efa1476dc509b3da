// Command results looks at the measured results in docs/results, each of which names what made it.
//
// In: check or ages as the argument, and the repository as the working directory. For check also, on
// standard input, the scenarios that make accept plays, one "AREA SCENARIO" a line. Out: check prints
// each result of a command, scenario or test that is gone, and fails if there is one. ages prints how
// old each result is, and the command that makes it again. It must never change a result.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "results:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, in io.Reader, out io.Writer) error {
	if len(arguments) != 1 || arguments[0] != "check" && arguments[0] != "ages" {
		return errors.New("usage: results check, or results ages")
	}
	files, err := readFiles("docs/results")
	if err != nil {
		return err
	}
	if arguments[0] == "ages" {
		history, err := readHistory(ctx, commitsOf(files))
		if err != nil {
			return err
		}
		return printAges(out, listAges(files, history), time.Now())
	}
	there, err := readRepository(in)
	if err != nil {
		return err
	}
	if gone := findGone(files, there); len(gone) > 0 {
		return errors.Join(gone...)
	}
	_, err = fmt.Fprintf(out, "no result in %d files is of something that is gone\n", len(files))
	return err
}
