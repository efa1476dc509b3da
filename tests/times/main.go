// Command times says what a run of the tests cost, and fails if it cost more than the budget.
//
//	times calibrate          prints how slow this machine is beside the one that set the budget
//	times report             merges what the steps left into .state/times.json and prints the table
//	times failed FILE        prints the focus with which Ginkgo runs the failed specs of a report again
//
// In: the directory that tests/run.sh fills, one step's files each: NAME.step, NAME.go.json of go
// test -json, NAME.ginkgo.json of Ginkgo; and tests/budget.yaml. Out: a table on standard output,
// the file of -out, and exit code 1 over a ceiling. It must never judge a wall time: only
// CPU-seconds count, divided by the machine's slowness.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "times:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("choose what to do: calibrate, report or failed")
	}
	switch args[0] {
	case "calibrate":
		fmt.Printf("%.3f\n", measureSlowness())
		return nil
	case "report":
		return report(args[1:])
	case "failed":
		return printFailed(args[1:])
	}
	return fmt.Errorf("run %s: there are calibrate, report and failed", args[0])
}

func report(args []string) error {
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	dir := flags.String("dir", ".state/times", "directory of the steps' files")
	limits := flags.String("budget", "tests/budget.yaml", "file of the ceilings")
	out := flags.String("out", ".state/times.json", "file to write")
	judge := flags.Bool("judge", true, "fail over a ceiling")
	if err := flags.Parse(args); err != nil {
		return err
	}
	times, err := readTimes(*dir)
	if err != nil {
		return err
	}
	budget, err := readBudget(*limits)
	if err != nil {
		return err
	}
	if err := times.write(*out); err != nil {
		return err
	}
	fmt.Print(times.table())
	over := budget.exceeded(times)
	for _, line := range over.notes {
		fmt.Println(line)
	}
	if *judge {
		return over.err(times)
	}
	return nil
}
