package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// alternatives matches the braces of a path such as tests/{live,pages}.
	alternatives = regexp.MustCompile(`\{([^{}]*)\}`)
	// placeholder matches a part of a path that a reader fills in, such as internal/<controller>.
	placeholder = regexp.MustCompile(`<[^<>/]*>`)
)

// pathsOf returns the paths below the directories top that a page names in code within its lines, and those that begin with
// ./ in its blocks of code. Braces are expanded, and placeholders are asterisks.
func pathsOf(page string, top []string) []string {
	var words []string
	for _, quoted := range code.FindAllString(fence.ReplaceAllString(page, ""), -1) {
		words = append(words, strings.Fields(strings.Trim(quoted, "`"))...)
	}
	for _, block := range fence.FindAllString(page, -1) {
		words = append(words, slices.DeleteFunc(strings.Fields(block), func(word string) bool { return !strings.HasPrefix(word, "./") })...)
	}
	var paths []string
	for _, word := range words {
		for _, path := range expand(strings.Trim(word, `.,;:()"'`)) {
			path = strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(path, "/"), "..."), "/")
			if first, _, isPath := strings.Cut(path, "/"); isPath && slices.Contains(top, first) {
				paths = append(paths, placeholder.ReplaceAllString(path, "*"))
			}
		}
	}
	return paths
}

// expand returns the words of a word with alternatives in braces.
func expand(word string) []string {
	found := alternatives.FindStringSubmatchIndex(word)
	if found == nil {
		return []string{word}
	}
	var words []string
	for _, choice := range strings.Split(word[found[2]:found[3]], ",") {
		words = append(words, expand(word[:found[0]]+choice+word[found[1]:])...)
	}
	return words
}

// TestPages_NamePathsThatExist looks for each path of the repository that a page names. A page may leave out the first
// directory, as in internal/job. Results are of the past, and may name what is gone.
func TestPages_NamePathsThatExist(t *testing.T) {
	entries, err := os.ReadDir(root(t))
	if err != nil {
		t.Fatal(err)
	}
	top, above := []string{"internal"}, []string{""}
	for _, entry := range entries {
		if entry.IsDir() && entry.Name() != "bin" && !strings.HasPrefix(entry.Name(), ".") {
			top, above = append(top, entry.Name()), append(above, entry.Name())
		}
	}
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root(t), pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	paths := 0
	for _, page := range pages {
		name := strings.TrimPrefix(page, root(t)+"/")
		if name == "CHANGELOG.md" || strings.HasPrefix(name, "docs/results/") {
			continue
		}
		for _, path := range pathsOf(read(t, name), top) {
			paths++
			if !slices.ContainsFunc(above, func(directory string) bool {
				found, err := filepath.Glob(filepath.Join(root(t), directory, path))
				return err == nil && len(found) > 0
			}) {
				t.Errorf("%s names %s, which does not exist", name, path)
			}
		}
	}
	if paths < 300 {
		t.Errorf("only %d paths were found", paths)
	}
}

func TestPathsOf_ExpandsBraces(t *testing.T) {
	page := "In `tests/{live,pages}/...`, `internal/<controller>/decide.go` and `go test ./docs`: `docs/a.md`.\n\n```\ngo test ./tests/bench tests/no\n```\n"
	want := []string{"tests/live", "tests/pages", "internal/*/decide.go", "docs/a.md", "tests/bench"}
	if got := pathsOf(page, []string{"tests", "internal", "docs"}); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
