package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

// mostFailed is how many containers of specs may have failed and be run again. More than that have a cause in common.
const mostFailed = 3

// printFailed prints the focus with which Ginkgo runs the failed specs of a report again.
func printFailed(args []string) error {
	if len(args) != 1 {
		return errors.New("name one report of Ginkgo")
	}
	f, err := os.Open(args[0])
	if err != nil {
		return fmt.Errorf("open the report: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	focus, err := focusFailed(f)
	if err != nil {
		return err
	}
	fmt.Println(focus)
	return nil
}

// focusFailed returns a regular expression that selects the outermost containers of all failed specs: a spec of an
// ordered container needs those before it. It returns an error where a set-up failed, or too much.
func focusFailed(r io.Reader) (string, error) {
	var suites []types.Report
	if err := json.NewDecoder(r).Decode(&suites); err != nil {
		return "", fmt.Errorf("parse the report: %w", err)
	}
	var containers []string
	for _, suite := range suites {
		for i := range suite.SpecReports {
			spec := &suite.SpecReports[i]
			if !spec.Failed() {
				continue
			}
			if spec.LeafNodeType != types.NodeTypeIt {
				return "", fmt.Errorf("run again: %s failed, and not a spec", spec.LeafNodeType)
			}
			text := regexp.QuoteMeta(outermost(spec))
			if !slices.Contains(containers, text) {
				containers = append(containers, text)
			}
		}
	}
	if n := len(containers); n == 0 || n > mostFailed {
		return "", fmt.Errorf("run again: specs of %d containers failed, and not of 1 to %d", n, mostFailed)
	}
	return strings.Join(containers, "|"), nil
}
