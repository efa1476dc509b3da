package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// fence matches a block of code, and code one within a line: their texts have no links.
	fence = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	code  = regexp.MustCompile("`[^`\n]*`")
	// pageLink matches a link or picture, without its title.
	pageLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// anchor matches what names itself with an ID, heading matches what gets its ID from its text.
	anchor  = regexp.MustCompile(`id="([^"]+)"`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors returns the IDs of a page, as GitHub makes them: of headings in lower case, with hyphens for blanks, and with a
// number where two are alike.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, found := range anchor.FindAllStringSubmatch(page, -1) {
		all[found[1]] = true
	}
	seen := map[string]int{}
	for _, found := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		text := dropped.ReplaceAllString(strings.ToLower(linked.ReplaceAllString(found[1], "$1")), "")
		id := strings.ReplaceAll(text, " ", "-")
		if n := seen[id]; n > 0 {
			all[fmt.Sprintf("%s-%d", id, n)] = true
		} else {
			all[id] = true
		}
		seen[id]++
	}
	return all
}

// deadLinks returns the links of a page that lead to no file or heading of the repository. read returns the text of a
// file, or of a directory an empty one.
func deadLinks(name, page string, read func(string) (string, error)) []string {
	var dead []string
	for _, found := range pageLink.FindAllStringSubmatch(code.ReplaceAllString(fence.ReplaceAllString(page, ""), ""), -1) {
		file, id, _ := strings.Cut(found[1], "#")
		if strings.Contains(file, "://") || strings.HasPrefix(file, "mailto:") {
			continue // of other sites
		}
		text := page
		if file != "" {
			var err error
			if text, err = read(filepath.Join(filepath.Dir(name), file)); err != nil {
				dead = append(dead, found[1])
				continue
			}
		}
		if id != "" && strings.HasSuffix(file+".md", ".md") && !anchors(text)[id] {
			dead = append(dead, found[1])
		}
	}
	return dead
}

// TestPages_HaveNoDeadLinks follows each link from page to page, and to headings.
func TestPages_HaveNoDeadLinks(t *testing.T) {
	pages := 0
	err := filepath.WalkDir(root(t), func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch entry.Name() {
		case ".git", ".state", "bin", "node_modules", "testdata":
			if entry.IsDir() { // .git is a file in a worktree, where SkipDir would skip all that follows
				return filepath.SkipDir
			}
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		pages++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, link := range deadLinks(path, string(text), readOrList) {
			t.Errorf("%s: no page, file or heading %s", strings.TrimPrefix(path, root(t)), link)
		}
		return nil
	})
	if err != nil || pages < 40 {
		t.Fatalf("%d pages were found: %v", pages, err)
	}
}

// readOrList returns the text of a file; a directory has none.
func readOrList(name string) (string, error) {
	if info, err := os.Stat(name); err != nil || info.IsDir() {
		return "", err
	}
	text, err := os.ReadFile(name)
	return string(text), err
}

func TestDeadLinks_AreFound(t *testing.T) {
	other := "# Other page\n\n## What `it` does, and *why*\n\n## Twice\n\n## Twice\n\n<a id=\"code\"></a>\n\n```\n# no heading\n```\n"
	read := func(name string) (string, error) {
		if name != "docs/other.md" && name != "docs" {
			return "", os.ErrNotExist
		}
		return other, nil
	}
	for link, dead := range map[string]bool{
		"other.md": false, "other.md#what-it-does-and-why": false, "other.md#twice-1": false, "other.md#code": false, "#here": false,
		".": false, "https://example.com/nowhere": false,
		"others.md": true, "other.md#what-it-does": true, "other.md#no-heading": true, "#there": true, "other.md#twice-2": true,
	} {
		if found := deadLinks("docs/page.md", "# Here\n\nA [link]("+link+").\n", read); (len(found) > 0) != dead {
			t.Errorf("%s: dead are %v, want it dead: %t", link, found, dead)
		}
	}
}
