package validate_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// block matches a block of YAML on a page; indentation is that of a list.
var block = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```$")

// TestPagesHaveGoodManifests: whole manifests on pages are decoded strictly, and the rules find nothing wrong with them.
func TestPagesHaveGoodManifests(t *testing.T) {
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
		for _, found := range block.FindAllStringSubmatch(string(text), -1) {
			whole := strings.ReplaceAll(strings.TrimPrefix(found[2], found[1]), "\n"+found[1], "\n")
			for manifest := range strings.SplitSeq(whole, "---\n") {
				if !strings.Contains(manifest, "apiVersion: heliostat.dev/") {
					continue
				}
				count++
				t.Run(filepath.Base(page), func(t *testing.T) {
					if errs := wrongWith(t, manifest); len(errs) > 0 {
						t.Errorf("%v in\n%s", errs, manifest)
					}
				})
			}
		}
	}
	if count < 5 {
		t.Errorf("only %d manifests were found on %d pages", count, len(pages))
	}
}
