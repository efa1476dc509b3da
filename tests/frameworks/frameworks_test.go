package frameworks

import (
	"regexp"
	"testing"
)

// foreign are the words that no program of a framework has.
var foreign = regexp.MustCompile(`(?i)\bray\b|\braylet\b|heliostat`)

func TestPrograms_NameNeitherRayNorHeliostat(t *testing.T) {
	programs, err := Programs()
	if err != nil {
		t.Fatal(err)
	}
	if len(programs) == 0 {
		t.Fatal("there are no programs")
	}
	for name, text := range programs {
		if word := foreign.FindString(text); word != "" {
			t.Errorf("%s has the word %q", name, word)
		}
	}
}
