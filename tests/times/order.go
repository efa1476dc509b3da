package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// printOrder is the command "times order": it prints the steps or packages on standard input, what the change touches
// first, and then what costs most.
func printOrder(args []string) error {
	if len(args) != 1 || args[0] != "steps" && args[0] != "packages" {
		return errors.New("choose what to order: steps or packages")
	}
	costs, change, err := readRecord()
	if err != nil {
		return err
	}
	names, err := readLines(os.Stdin)
	if err != nil {
		return err
	}
	if args[0] == "steps" {
		order(names, change.touchesStep, func(name string) float64 { return costs.Steps[name] })
	} else {
		touched := func(name string) bool { return change.touchesPackage(shortPackage(name)) }
		order(names, touched, func(name string) float64 { return costs.Packages[shortPackage(name)] })
	}
	for _, name := range names {
		fmt.Println(name)
	}
	return nil
}

// order sorts names: those that the change touches, then those that cost most. Equal ones keep their order.
func order(names []string, isTouched func(string) bool, cost func(string) float64) {
	slices.SortStableFunc(names, func(a, b string) int {
		if isTouched(a) != isTouched(b) {
			if isTouched(a) {
				return -1
			}
			return 1
		}
		return cmp.Compare(cost(b), cost(a))
	})
}

// touchesPackage reports whether a file of the change lies in the package itself.
func (c Change) touchesPackage(directory string) bool {
	return slices.ContainsFunc(c.Files, func(file string) bool {
		rest, below := strings.CutPrefix(file, directory+"/")
		return below && (!strings.Contains(rest, "/") || strings.HasPrefix(rest, "testdata/"))
	})
}

func readLines(r io.Reader) ([]string, error) {
	var lines []string
	scanner := bufio.NewScanner(r)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("read names: %w", err)
	}
	return lines, nil
}
