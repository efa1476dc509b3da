// Program apilint reports where the types of our kinds depart from the conventions of Kubernetes' API, as kube-api-linter
// sees them. usage: apilint PACKAGE...
//
// A finding that stays has a row in exceptions.txt: the field, the linter, and the reason. A row without a finding is
// reported too.
package main

import (
	_ "embed"
	"fmt"
	"os"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
	plugin "sigs.k8s.io/kube-api-linter/pkg/plugin/base"
	_ "sigs.k8s.io/kube-api-linter/pkg/registration"
)

//go:embed exceptions.txt
var exceptions string

// settings are those of the linters whose default is not meant for a CRD, or is not the one of our types.
var settings = map[string]any{
	"linters": map[string]any{"enable": []string{"maxlength", "optionalfields", "nomaps", "nofloats", "notimestamp"}},
	"lintersConfig": map[string]any{
		// Tags of protocol buffers and of strategic merges are for built-in kinds.
		"conditions": map[string]any{"isFirstField": "Ignore", "useProtobuf": "Forbid", "usePatchStrategy": "Forbid"},
		// controller-gen documents this marker, and crd-ref-docs shows only this one.
		"defaults": map[string]any{"preferredDefaultMarker": "kubebuilder:default"},
		// A text that cannot be empty needs no pointer. Structs that may be absent are pointers, except for those in exceptions.txt.
		"optionalfields": map[string]any{
			"pointers": map[string]any{"preference": "WhenRequired"},
			"omitzero": map[string]any{"policy": "Forbid"},
		},
	},
}

func main() {
	found, err := lint(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "lint the API:", err)
		os.Exit(2)
	}
	left, err := except(found, exceptions)
	if err != nil {
		fmt.Fprintln(os.Stderr, "lint the API:", err)
		os.Exit(2)
	}
	for _, line := range left {
		fmt.Println(line)
	}
	if len(left) > 0 {
		os.Exit(1)
	}
}

// lint returns the findings of all linters in some packages.
func lint(patterns []string) ([]finding, error) {
	analyzers, err := buildAnalyzers()
	if err != nil {
		return nil, err
	}
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadAllSyntax}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("load %q: %w", patterns, err)
	}
	if packages.PrintErrors(loaded) > 0 {
		return nil, fmt.Errorf("load %q: packages have errors", patterns)
	}
	graph, err := checker.Analyze(analyzers, loaded, nil)
	if err != nil {
		return nil, fmt.Errorf("analyze %q: %w", patterns, err)
	}
	var all []finding
	for _, action := range graph.Roots {
		if action.Err != nil {
			return nil, fmt.Errorf("run the linter %s: %w", action.Analyzer.Name, action.Err)
		}
		for _, diagnostic := range action.Diagnostics {
			all = append(all, findingOf(action, diagnostic))
		}
	}
	slices.SortFunc(all, compareFindings)
	return all, nil
}

func buildAnalyzers() ([]*analysis.Analyzer, error) {
	linters, err := plugin.New(settings)
	if err != nil {
		return nil, fmt.Errorf("read the settings of the linters: %w", err)
	}
	return linters.BuildAnalyzers()
}
