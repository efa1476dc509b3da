package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestAreas_CoverSpecsAndProduct: each pattern and path exists, each file with specs has a row, and so has each directory
// of the product.
func TestAreas_CoverSpecsAndProduct(t *testing.T) {
	const root = "../.."
	areas, err := readAreas(root + "/tests/areas.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files := filesWithSpecs(t, root)
	var paths []string
	for _, area := range areas {
		paths = append(paths, area.Paths...)
		for _, pattern := range area.Specs {
			one := Area{Specs: []string{pattern}}
			if !slices.ContainsFunc(files, one.has) {
				t.Errorf("no file with specs matches %s: take it out of tests/areas.yaml", pattern)
			}
		}
	}
	for _, path := range paths {
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			t.Errorf("there is no %s: take it out of tests/areas.yaml", path)
		}
	}
	for _, file := range files {
		if !slices.ContainsFunc(areas, func(a Area) bool { return a.has(file) }) {
			t.Errorf("%s belongs to no row of tests/areas.yaml", file)
		}
	}
	for _, directory := range productDirectories(t, root) {
		if !slices.ContainsFunc(paths, func(path string) bool { return directory == path || strings.HasPrefix(directory, path+"/") }) {
			t.Errorf("%s belongs to no row of tests/areas.yaml", directory)
		}
	}
}

var spec = regexp.MustCompile(`(?m)^\s*(var _ = )?(Describe|It)\(`)

func filesWithSpecs(t *testing.T, root string) []string {
	t.Helper()
	all, err := filepath.Glob(root + "/" + specDirectory + "*_test.go")
	if err != nil || len(all) == 0 {
		t.Fatalf("found %d files of specs: %v", len(all), err)
	}
	var files []string
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if spec.Match(text) {
			files = append(files, specDirectory+filepath.Base(file))
		}
	}
	return files
}

// productDirectories are those of the operator one by one, and the other programs as a whole.
func productDirectories(t *testing.T, root string) []string {
	t.Helper()
	directories := []string{"apiserver", "cli", "dashboard-proxy", "history", "portal", "web", "proto", "helm-chart"}
	for _, parent := range []string{"ray-operator", "ray-operator/internal"} {
		entries, err := os.ReadDir(filepath.Join(root, parent))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if entry.IsDir() && entry.Name() != "internal" {
				directories = append(directories, parent+"/"+entry.Name())
			}
		}
	}
	return directories
}
