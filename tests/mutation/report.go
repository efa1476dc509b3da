package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// reasons say of survivors why no test notices them: by package, then Mutant.Key.
type reasons map[string]map[string]string

func readReasons(path string) (reasons, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the reasons of survivors: %w: run it in the repository", err)
	}
	var all reasons
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		return nil, fmt.Errorf("read the reasons of survivors in %s: %w", path, err)
	}
	return all, nil
}

// Summary is what a run showed.
type Summary struct {
	Commit   string   `json:"commit"`
	Date     string   `json:"date"`
	Cores    int      `json:"cores"`
	Packages []Report `json:"packages"`
}

// Report is what a run showed of one package.
type Report struct {
	Package  string `json:"package"`
	Mutants  int    `json:"mutants"`
	Killed   int    `json:"killed"`
	TimedOut int    `json:"timedOut"`
	// Seconds of CPU that the tests took with all mutants.
	Seconds   float64    `json:"cpuSeconds"`
	Survivors []Survivor `json:"survivors,omitempty"`
	// stale are reasons of mutants that no longer survive.
	stale []string
}

// Survivor is a mutant that no test noticed.
type Survivor struct {
	Function string `json:"function"`
	Change   string `json:"change"`
	Reason   string `json:"reason"`
}

// describe says of which commit the packages are, and whether they were changed since.
func describe(ctx context.Context, packages []string) (*Summary, error) {
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return nil, fmt.Errorf("find the commit: %w: run it in the repository", err)
	}
	changes, err := exec.CommandContext(ctx, "git", append([]string{"status", "--porcelain", "--"}, packages...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("look for changes since the commit: %w", err)
	}
	name := strings.TrimSpace(string(commit))
	if len(changes) > 0 {
		name += "+changes"
	}
	return &Summary{Commit: name, Date: time.Now().UTC().Format(time.DateOnly), Cores: runtime.NumCPU()}, nil
}

// judge counts what became of a package's mutants.
func judge(name string, o *Outcome, why map[string]string) Report {
	r := Report{Package: name, Mutants: len(o.Mutants), Seconds: math.Round(o.Seconds)}
	used := map[string]bool{}
	for _, m := range o.Mutants {
		switch o.Fates[m.Key()] {
		case Killed:
			r.Killed++
		case TimedOut:
			r.TimedOut++
		default:
			r.Survivors = append(r.Survivors, Survivor{m.Function, m.Change, why[m.Key()]})
			used[m.Key()] = true
		}
	}
	for key := range why {
		if !used[key] {
			r.stale = append(r.stale, key)
		}
	}
	slices.Sort(r.stale)
	return r
}

// share is how many percent the tests noticed. A change that alters nothing counts as not
// noticed, although no test could.
func (r Report) share() float64 {
	return 100 * float64(r.Killed+r.TimedOut) / float64(max(1, r.Mutants))
}

func (r Report) line() string {
	return fmt.Sprintf("%-30s %4d mutants, %4d killed, %2d timed out, %3d survived: %.1f %% in %.0f s of CPU",
		r.Package, r.Mutants, r.Killed, r.TimedOut, len(r.Survivors), r.share(), r.Seconds)
}

// wrong is what keeps a package from being as promised.
func (r Report) wrong() []error {
	var all []error
	if r.share() < promised {
		all = append(all, fmt.Errorf("%s: the tests notice %.1f %% of its mutants, promised are %.0f %%", r.Package, r.share(), promised))
	}
	for _, s := range r.Survivors {
		if s.Reason == "" {
			all = append(all, fmt.Errorf("%s: %s: %s survives: add a test that fails, or the reason to reasons.yaml", r.Package, s.Function, s.Change))
		}
	}
	for _, key := range r.stale {
		all = append(all, fmt.Errorf("%s: %s does not survive: take its reason out of reasons.yaml", r.Package, key))
	}
	return all
}

func byName(a, b Report) int { return cmp.Compare(a.Package, b.Package) }

// write writes the JSON file and the page.
func (s *Summary) write(dir string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "mutation.json"), append(text, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, "mutation.md"), []byte(s.page()), 0o644),
	)
}

// introduction stands below the page's title and origin.
const introduction = `
Each mutant is one small change of a pure package; it is killed when a test of that package alone fails or hangs. Tests of
other packages, of the API server and of real Ray do not count here. Kinds of changes: a condition negated; ` + "`<`" + ` and ` + "`<=`" + `
swapped, ` + "`>`" + ` and ` + "`>=`" + ` too; ` + "`&&`" + ` and ` + "`||`" + `; ` + "`+`" + ` and ` + "`-`" + `, ` + "`*`" + ` and ` + "`/`" + `; a number one more and one less; a text
emptied; a truth negated; an assignment, a call, ` + "`break`" + ` or ` + "`continue`" + ` removed; a returned value or one in a literal
replaced by the zero of its type. Promised: at least 90 % killed in each package, and a reason for each that is not.
Changes that alter nothing count as survivors.
`

// page is the summary as Markdown.
func (s *Summary) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Measured: mutation of the pure packages\n\nMade by `make mutate` from [mutation.json](mutation.json) "+
		"and the reasons in `tests/mutation/reasons.yaml`.\nCommit %s, %s, %d cores.\n%s", s.Commit, s.Date, s.Cores, introduction)
	b.WriteString("\n| package | mutants | killed | timed out | survived | noticed | CPU seconds |\n|---|---|---|---|---|---|---|\n")
	for _, r := range s.Packages {
		fmt.Fprintf(&b, "| `%s` | %d | %d | %d | %d | %.1f %% | %.0f |\n", r.Package, r.Mutants, r.Killed, r.TimedOut, len(r.Survivors), r.share(), r.Seconds)
	}
	for _, r := range s.Packages {
		if len(r.Survivors) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## Survivors in %s\n\n| where | change | why no test notices it |\n|---|---|---|\n", r.Package)
		for _, survivor := range r.Survivors {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", survivor.Function, strings.ReplaceAll(survivor.Change, "|", `\|`), survivor.Reason)
		}
	}
	return b.String()
}
