package main

import (
	"testing"

	"github.com/heliostat-dev/heliostat/tests/archtest"
)

// parsed returns a file of package x.
func parsed(t *testing.T, name, body string) *archtest.File {
	t.Helper()
	file, err := archtest.Parse("ray-operator/x/"+name, "package x\n"+body)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestMeasure_CountsOfAPackage(t *testing.T) {
	const twice = "\n{\n\"1\"\n\"2\"\n\"3\"\n\"4\"\n\"5\"\n}\n"
	files := []*archtest.File{
		parsed(t, "a.go", "type t struct{}\nfunc (t) one() { two() }\nfunc (t) twoWords() {}\nfunc x() {"+twice+"}\n"),
		parsed(t, "b.go", "// b tells whether.\nfunc two() { t{}.one() }\nfunc y() {"+twice+"}\n"),
		parsed(t, "c.go", "func three() { two() }\n"),
	}
	rows, err := archtest.RetiredWords("## Retired words\n| word | say |\n|---|---|\n| tells whether | reports whether |\n")
	if err != nil {
		t.Fatal(err)
	}
	got, err := measure(files, rows)
	if err != nil {
		t.Fatal(err)
	}
	want := numbers{
		files: 3, lines: 26, largest: 2, owner: "t", methods: 2, oneWord: 1, tied: 2, mutual: 1, pairs: 3, repeated: 16, retired: 1,
	}
	if got != want {
		t.Errorf("measured %+v, want %+v", got, want)
	}
}

func TestIsMeasured_OnlyTheProduct(t *testing.T) {
	for name, want := range map[string]bool{
		"ray-operator/internal/job/a.go": true, "ray-operator/internal/job/a_test.go": false, "ray-operator/headclient/fakehead/a.go": false,
		"tests/x/a.go": false, "ray-operator/internal/scale/a.go": false,
	} {
		file, err := archtest.Parse(name, "package x\n")
		if err != nil {
			t.Fatal(err)
		}
		if got := isMeasured(file, []string{"ray-operator/internal/job", "ray-operator/headclient/*"}); got != want {
			t.Errorf("%s is measured: %t, want %t", name, got, want)
		}
	}
}
