// Package pages makes a shell script of the blocks of a page that are marked to run.
//
// In: the text of a page. Out: its blocks with their marks, a script whose lines have the numbers of the page's lines,
// and how an output differs from the one on the page. It runs nothing. docs/design/pages.md has the marks.
package pages

import (
	"fmt"
	"regexp"
	"strings"
)

// Run is the mark of a block that is run.
const Run = "run"

// Reasons say of each other mark why a block is not run.
var Reasons = map[string]string{
	"yours":   "it names what the reader alone has: a registry, an address, an issuer, a program, a package index",
	"machine": "it builds, installs or removes what a whole machine or a whole Kubernetes cluster shares",
	"endless": "it stays open until Ctrl-C, or asks",
	"moment":  "its output is that of a moment that passes",
}

// Walk is pages that are read one after another in one namespace, each from where the one before it ended.
type Walk struct {
	// Namespace is the one that the pages name, empty for any.
	Namespace string
	Pages     []string
}

// Walks have every page with a block that is run.
var Walks = []Walk{
	{Pages: []string{"README.md"}},
	{Pages: []string{
		"docs/getting-started.md", "docs/clusters.md", "docs/cluster-access.md", "docs/jobs.md", "docs/schedules.md",
		"docs/installation.md", "docs/monitoring.md", "docs/control-store.md",
	}},
	{Pages: []string{"docs/services.md", "docs/cli.md"}},
	{Namespace: "team-a", Pages: []string{"docs/server.md", "docs/portals.md", "docs/dashboards.md"}},
}

// Languages of blocks that may be run.
const (
	shell    = "sh"
	console  = "console"
	manifest = "yaml"
)

// Block is what stands between two fences.
type Block struct {
	// Line is that of the opening fence, from 1.
	Line           int
	Language, Mark string
	// Lines are without the indentation of the fence.
	Lines []string
}

var fence = regexp.MustCompile("^( *)```(.*)$")

// Blocks returns the blocks of a page in their order. It refuses marks that there are not, and commands without a mark.
func Blocks(page string) ([]Block, error) {
	var all []Block
	var open *Block
	indentation := ""
	for i, line := range strings.Split(page, "\n") {
		found := fence.FindStringSubmatch(line)
		switch {
		case found == nil && open != nil:
			open.Lines = append(open.Lines, strings.TrimPrefix(line, indentation))
		case found == nil:
		case open == nil:
			indentation = found[1]
			language, mark, _ := strings.Cut(found[2], " ")
			open = &Block{Line: i + 1, Language: language, Mark: mark}
		default:
			if problem := problemOf(open); problem != "" {
				return nil, fmt.Errorf("read the block at line %d: %s", open.Line, problem)
			}
			all, open = append(all, *open), nil
		}
	}
	if open != nil {
		return nil, fmt.Errorf("read the block at line %d: it has no end", open.Line)
	}
	return all, nil
}

// problemOf returns what is wrong with the mark of a block, empty if nothing is.
func problemOf(block *Block) string {
	_, isReason := Reasons[block.Mark]
	hasCommands := block.Language == shell || block.Language == console
	switch {
	case block.Mark == "" && hasCommands:
		return "its commands have no mark: write ```" + block.Language + " run, or why it is not run"
	case block.Mark == "" && block.Language == "" && hasPrompt(block):
		return "it has commands: its language is console"
	case block.Mark != "" && block.Mark != Run && !isReason:
		return "there is no mark " + block.Mark
	case block.Mark != "" && !hasCommands && block.Language != manifest:
		return "a mark is for sh, console and yaml alone"
	default:
		return ""
	}
}

const prompt = "$ "

func hasPrompt(block *Block) bool {
	for _, line := range block.Lines {
		if strings.HasPrefix(line, prompt) {
			return true
		}
	}
	return false
}

// begin is the first line of a script, where a page has its title. show keeps the output of a command behind a prompt by
// its line in the directory SHOWN, and what is run is traced with its line.
const begin = `set -euo pipefail; PS4='+ line $LINENO: '; show() { eval "$2" | tee "$SHOWN/$1"; }; set -x`

// Script returns a script for bash of the blocks that are run. Each command has the line that it has on the page, and
// manifests are applied.
func Script(blocks []Block) string {
	lines := []string{begin}
	for i := range blocks {
		block := &blocks[i]
		if block.Mark != Run {
			continue
		}
		for len(lines) < block.Line-1 {
			lines = append(lines, "")
		}
		switch block.Language {
		case shell:
			lines = append(append(lines, ""), block.Lines...)
		case manifest:
			lines = append(append(append(lines, "kubectl apply -f - <<'MANIFEST'"), block.Lines...), "MANIFEST")
		case console:
			lines = append(lines, "")
			for j, line := range block.Lines {
				lines = append(lines, shown(line, block.Line+1+j))
			}
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// shown returns what runs a line of a console, nothing for a line of output.
func shown(line string, number int) string {
	command, isCommand := strings.CutPrefix(line, prompt)
	if !isCommand {
		return ""
	}
	return fmt.Sprintf("show %d '%s'", number, strings.ReplaceAll(command, "'", `'\''`))
}

// Output is what a page shows of a command.
type Output struct {
	// Line is that of the command.
	Line int
	// Lines are those of the output.
	Lines []string
}

// Outputs returns what is shown below prompts of blocks that are run, without commands below which nothing is.
func Outputs(blocks []Block) []Output {
	var all []Output
	for i := range blocks {
		block := &blocks[i]
		if block.Mark != Run || block.Language != console {
			continue
		}
		var of *Output
		for j, line := range block.Lines {
			switch {
			case strings.HasPrefix(line, prompt):
				all = append(all, Output{Line: block.Line + 1 + j})
				of = &all[len(all)-1]
			case of != nil && line != "":
				of.Lines = append(of.Lines, line)
			}
		}
	}
	shown := all[:0]
	for _, one := range all {
		if len(one.Lines) > 0 {
			shown = append(shown, one)
		}
	}
	return shown
}

// Missing returns the first line of the page that a real output does not have behind those before it, empty if it has
// them all. Ages and the widths of columns may differ, and … stands for anything.
func (o Output) Missing(real string) string {
	rest := strings.Split(real, "\n")
	for _, line := range o.Lines {
		pattern := patternOf(line)
		for len(rest) > 0 && !pattern.MatchString(rest[0]) {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return line
		}
		rest = rest[1:]
	}
	return ""
}

var age = regexp.MustCompile(`^(\d+(\.\d+)?(ms|[smhd]))+$`)

// patternOf returns what matches lines that are like one of a page.
func patternOf(line string) *regexp.Regexp {
	var words []string
	for _, word := range strings.Fields(line) {
		if age.MatchString(word) {
			words = append(words, `(\d+(\.\d+)?(ms|[smhd]))+`)
			continue
		}
		words = append(words, strings.ReplaceAll(regexp.QuoteMeta(word), "…", ".*"))
	}
	return regexp.MustCompile(`^\s*` + strings.Join(words, `\s+`) + `\s*$`)
}
