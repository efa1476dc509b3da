package archtest

import (
	"maps"
	"testing"
)

// TestMethodTable_OnlyShrinks: an entry is what its type has, so that it cannot grow again.
func TestMethodTable_OnlyShrinks(t *testing.T) {
	files, err := Load(root(t))
	if err != nil {
		t.Fatal(err)
	}
	found := countMethods(files)
	for owner, remedy := range findStale(shrinking(), found) {
		t.Errorf("%s has %d methods: %s", owner, len(found[owner]), remedy)
	}
}

func TestFindStale_FindsEntriesThatAreTooHigh(t *testing.T) {
	file, err := Parse(scaleDir, doc+"package x\n"+methodsNamed(maxMethods+5))
	if err != nil {
		t.Fatal(err)
	}
	const owner, gone = internal + "scale.t", internal + "scale.gone"
	found := countMethods([]*File{file})
	have := findStale(map[string]int{owner: maxMethods + 6, gone: maxMethods + 1}, found)
	if want := map[string]string{owner: "lower the entry", gone: "remove the entry"}; !maps.Equal(have, want) {
		t.Errorf("found %v, want %v", have, want)
	}
	if have := findStale(map[string]int{owner: maxMethods + 5}, found); len(have) > 0 {
		t.Errorf("found %v in a table that is right", have)
	}
}
