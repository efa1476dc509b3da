package archtest

import (
	"regexp"
	"strings"
)

func habits() []Rule { return []Rule{each("no-leftover", leftovers)} }

// leftover words are put together so that this file does not hold them.
var leftover = regexp.MustCompile(`\b(` + strings.Join([]string{"TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"}, "|") + `)\b`)

func leftovers(f *File) []Violation {
	var all []Violation
	for _, group := range f.AST.Comments {
		if word := leftover.FindString(group.Text()); word != "" {
			all = append(all, f.found(group, "%s in a comment: do it, or write an issue", word))
		}
	}
	return all
}

// homes are directories of people; user "ray" is that of Ray's images.
var homes = regexp.MustCompile(`/(home|Users)/([A-Za-z0-9._-]+)`)

// LocalPaths finds, in the text of any file, paths that exist on one machine only: those
// below somebody's home, and those below root, the checkout's own directory.
func LocalPaths(root, text string) []string {
	var found []string
	for _, match := range homes.FindAllStringSubmatch(text, -1) {
		if match[2] != "ray" {
			found = append(found, match[0])
		}
	}
	// A checkout that lies directly below / has too common a name to search for.
	if strings.Count(root, "/") > 1 && strings.Contains(text, root+"/") {
		found = append(found, root)
	}
	return found
}
