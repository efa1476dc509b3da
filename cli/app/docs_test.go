package app_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/cli/app"
)

var (
	// shellBlock matches a block of shell on a page, and inlineCode a command line between backticks.
	shellBlock = regexp.MustCompile("(?ms)^ *```(?:sh|console)(?: \\w+)?\n(.*?)^ *```$")
	inlineCode = regexp.MustCompile("`(heliostat [^`\n]+)`")
	// invocation matches what runs the command line in a block, with or without a prompt.
	invocation = regexp.MustCompile(`(?m)(?:^ *(?:\$ )?|&& |\$\()((?:kubectl )?heliostat .*)$`)
	// shellWord matches a word of shell with its quotes.
	shellWord = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`)
)

// commandLines returns the command lines of a page.
func commandLines(page string) []string {
	var all []string
	for _, block := range shellBlock.FindAllStringSubmatch(page, -1) {
		text := strings.ReplaceAll(block[1], "\\\n", " ")
		for _, line := range invocation.FindAllStringSubmatch(text, -1) {
			all = append(all, line[1])
		}
	}
	for _, code := range inlineCode.FindAllStringSubmatch(page, -1) {
		all = append(all, code[1])
	}
	return all
}

// wordsOf returns the arguments of a command line, up to what belongs to the shell or to another program.
func wordsOf(line string) []string {
	var words []string
	for _, word := range shellWord.FindAllString(strings.TrimPrefix(line, "kubectl "), -1)[1:] {
		switch word {
		case "|", "&&", ";", ">", "<", "#", "--", "2>", "&":
			return words
		case "…", "...": // and more
		default:
			words = append(words, strings.Trim(strings.TrimSuffix(word, ")"), `'"`))
		}
	}
	return words
}

// TestPages_RunCommandsThatExist parses each command line on the pages with the commands themselves, and runs none.
func TestPages_RunCommandsThatExist(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"../../README.md", "../../docs/*.md", "../../examples/*.md", "../../examples/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	count := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range commandLines(string(text)) {
			count++
			if problem := problemOf(line); problem != "" {
				t.Errorf("%s: %s: %s", filepath.Base(page), line, problem)
			}
		}
	}
	if count < 50 {
		t.Errorf("only %d command lines were found on %d pages", count, len(pages))
	}
}

// problemOf returns what the commands do not know of a line, empty if they know it all.
func problemOf(line string) string {
	root := app.Command(app.Settings{})
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	command, rest, err := root.Find(wordsOf(line))
	if err != nil {
		return err.Error()
	}
	if command.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return "no such command below " + command.CommandPath() + ": " + rest[0]
	}
	command.InitDefaultHelpFlag()
	if err := command.ParseFlags(rest); err != nil {
		return err.Error()
	}
	return ""
}

func TestPages_CommandsThatDoNotExist(t *testing.T) {
	for line, want := range map[string]string{
		"heliostat top -A":                             "",
		"kubectl heliostat logs job/train -f | less":   "",
		"heliostat job submit --cluster dev -- ray -x": "",
		"heliostat up dev … --dry-run=client -o yaml":  "",
		"heliostat tpo":                                "no such command",
		"heliostat job sumbit":                         "no such command",
		"heliostat top --colour":                       "unknown flag",
		"heliostat wait job/train --timeout soon":      "invalid argument",
	} {
		if problem := problemOf(line); !strings.Contains(problem, want) || want == "" && problem != "" {
			t.Errorf("%s: %q, want %q", line, problem, want)
		}
	}
}
