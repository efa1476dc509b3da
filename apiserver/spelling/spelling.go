// Package spelling helps callers who misspelt a name.
//
// In: the name that was given, and the names that are known, or the object that has them as fields. Out: a remedy for the
// caller, in the imperative, with the known name that was probably meant.
//
// It must never repeat the name that was given: it is the caller's, and may be of any length.
package spelling

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
)

const (
	// longest is how many bytes a name may have for the nearest one to be looked for.
	longest = 100
	// most is how many known names a remedy lists.
	most = 20
)

// Remedy returns what helps a caller whose name is not known: the known name that is nearest, else all of them.
func Remedy(name string, known []string) string {
	if len(known) == 0 {
		return "leave it out"
	}
	if nearest := Nearest(name, known); nearest != "" {
		return fmt.Sprintf("write %q", nearest)
	}
	list := strings.Join(known[:min(len(known), most)], ", ")
	if more := len(known) - most; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return "give one of " + list
}

// Nearest returns the known name that was probably meant: at most every third letter of it is different, whatever the case.
// It returns "" where there is none.
func Nearest(name string, known []string) string {
	if len(name) > longest {
		return ""
	}
	nearest, least := "", 1+max(1, len(name)/3)
	for _, one := range known {
		if difference := len(one) - len(name); max(difference, -difference) > longest {
			continue // however it is written
		}
		if distance := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(one)); distance < least {
			nearest, least = one, distance
		}
	}
	return nearest
}
