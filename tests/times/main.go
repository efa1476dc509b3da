// Command times says what a run of the tests cost, and fails if it cost more than the budget.
//
//	times calibrate          prints how slow this machine is beside the one that set the budget
//	times plan STEP...       orders the specs, and chooses which ones a slow machine leaves out
//	times order KIND         orders steps or packages: what the change touches, then what costs most
//	times report             merges what the steps left into .state/times.json and prints the table
//	times record             writes the costs of the last whole run to docs/results/tests.json
//	times failed FILE        prints the focus with which Ginkgo runs the failed specs of a report again
//
// In: the directory that tests/run.sh fills, one step's files each: NAME.step, NAME.go.json of go
// test -json, NAME.ginkgo.json of Ginkgo; tests/budget.yaml, tests/areas.yaml and the recorded costs. Out: a table
// on standard output, the file of -out, and exit code 1 over a ceiling. It must never judge a wall time: only
// CPU-seconds count, divided by the machine's slowness.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "times:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	commands := map[string]func([]string) error{
		"calibrate": calibrate, "plan": makePlan, "order": printOrder, "report": report, "record": record, "failed": printFailed,
	}
	if len(args) > 0 {
		if command, known := commands[args[0]]; known {
			return command(args[1:])
		}
	}
	return fmt.Errorf("choose what to do: %s", strings.Join(sortedKeys(commands), ", "))
}

func calibrate([]string) error {
	fmt.Printf("%.3f\n", measureSlowness())
	return nil
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
	fmt.Print(times.Plan.lines())
	over := budget.exceeded(times)
	for _, line := range over.notes {
		fmt.Println(line)
	}
	if *judge {
		return over.err(times)
	}
	return nil
}
