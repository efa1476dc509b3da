// Command structure prints numbers about the structure of the product's code, one row for each package.
//
// In: a checkout, and patterns of its packages' directories; the glossary of the checkout in which it runs. Out: a table in
// Markdown. The same command measures any commit, so two tables of it can be compared.
//
// It must never judge: limits are in the tests of package archtest.
package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/tests/archtest"
)

func main() {
	of := flag.String("of", ".", "the checkout to measure")
	flag.Parse()
	if err := run(os.Stdout, *of, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "structure:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, checkout string, patterns []string) error {
	glossary, err := os.ReadFile("docs/glossary.md")
	if err != nil {
		return fmt.Errorf("read the glossary: %w: run it in the repository", err)
	}
	retired, err := archtest.RetiredWords(string(glossary))
	if err != nil {
		return err
	}
	files, err := archtest.Load(checkout)
	if err != nil {
		return err
	}
	packages := map[string][]*archtest.File{}
	for _, file := range files {
		if isMeasured(file, patterns) {
			packages[file.Dir()] = append(packages[file.Dir()], file)
		}
	}
	fmt.Fprintln(out, "| package | files | lines | methods of the largest type | methods | of one word | file pairs tied | that call each other | repeated lines | retired words |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|---|")
	var sum numbers
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		one, err := measure(packages[dir], retired)
		if err != nil {
			return err
		}
		if len(patterns) > 0 {
			one.print(out, strings.TrimPrefix(dir, "ray-operator/internal/"))
		}
		sum.add(one)
	}
	sum.repeated = repeatedLines(slices.Concat(slices.Collect(maps.Values(packages))...)) // among packages too
	sum.print(out, "all")
	return nil
}

// isMeasured reports whether a file is the product's, no stand-in for tests, and in a directory that a pattern matches; any
// where there is none.
func isMeasured(file *archtest.File, patterns []string) bool {
	for _, standIn := range []string{"fakehead", "headtest", "protocoltest", "polltest", "corpus", "headstest", "accesstest", "pkitest"} {
		if path.Base(file.Dir()) == standIn {
			return false
		}
	}
	matches := func(pattern string) bool { is, _ := path.Match(pattern, file.Dir()); return is }
	return file.Product() && (len(patterns) == 0 || slices.ContainsFunc(patterns, matches))
}
