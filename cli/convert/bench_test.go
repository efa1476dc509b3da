package convert

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/convert"
	"github.com/heliostat-dev/heliostat/ray-operator/convert/document"
)

// manyManifests is a file with more than 1,000 documents.
func manyManifests(b *testing.B) []byte {
	b.Helper()
	files, err := filepath.Glob("testdata/manifests/[cjs]*.yaml")
	if err != nil {
		b.Fatal(err)
	}
	var one []byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		one = append(append(one, text...), "---\n"...)
	}
	return bytes.Repeat(one, 1000/len(document.Read(one, mostBytes))+1)
}

// BenchmarkConvert converts a thousand manifests, rows and lines included.
func BenchmarkConvert(b *testing.B) {
	text := manyManifests(b)
	for b.Loop() {
		printed := report{out: io.Discard, rows: io.Discard}
		for _, in := range readFrom("many.yaml", bytes.NewReader(text)) {
			if err := printed.convert(&in, convert.Options{}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkParse reads the same and does nothing with it.
func BenchmarkParse(b *testing.B) {
	text := manyManifests(b)
	for b.Loop() {
		for one := range bytes.SplitSeq(text, []byte("\n---\n")) {
			var object map[string]any
			if err := yaml.Unmarshal(one, &object); err != nil {
				b.Fatal(err)
			}
		}
	}
}
