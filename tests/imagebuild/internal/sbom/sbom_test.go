package sbom

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
)

// file is one of a layer.
type file struct {
	name, content string
	mode          int64
}

func layerOf(t *testing.T, files ...file) v1.Layer {
	t.Helper()
	var content bytes.Buffer
	to := tar.NewWriter(&content)
	for _, f := range files {
		if err := to.WriteHeader(&tar.Header{Name: "./" + f.name, Mode: f.mode, Size: int64(len(f.content)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(to, f.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return layer
}

// archiveOf writes an image of these layers.
func archiveOf(t *testing.T, layers ...v1.Layer) string {
	t.Helper()
	image, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := tarball.WriteToFile(path, name.MustParseReference("example.com/image:1"), image); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWrite_NamesWhatIsInTheImage(t *testing.T) {
	own := filepath.Join(t.TempDir(), "images") // a test's own program has no list of modules
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", own, "../..").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	program, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	archive := archiveOf(t,
		layerOf(t, file{dpkgStatus, "Package: former\nStatus: install ok installed\nVersion: 1\nArchitecture: all\n", 0o644}),
		layerOf(t,
			file{dpkgStatus, "Package: libc6\nStatus: install ok installed\nVersion: 2.36-9\nArchitecture: amd64\nDescription: a\n b: c\n\n" +
				"Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n", 0o644},
			file{"usr/lib/python3/Ray_Serve-2.dist-info/METADATA", "Metadata-Version: 2.1\nName: Ray_Serve\nVersion: 2.60.0\n\nName: not this\n", 0o644},
			file{"operator", string(program), 0o755}, file{"script", "#!/bin/sh\n", 0o755}, file{"empty", "", 0o755},
		))
	var first, second bytes.Buffer
	for _, to := range []io.Writer{&first, &second} {
		if err := Write("operator", archive, to); err != nil {
			t.Fatal(err)
		}
	}
	if first.String() != second.String() {
		t.Error("the same image gives two documents")
	}
	document, err := json.Read(&first)
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(document); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		"pkg:deb/debian/libc6@2.36-9?arch=amd64", "pkg:pypi/ray-serve@2.60.0", "pkg:golang/stdlib@", "pkg:golang/github.com/spf13/cobra@v", "pkg:oci/operator@sha256:",
	} {
		if !strings.Contains(second.String(), want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, never := range []string{"gone", "former", "not this"} {
		if strings.Contains(second.String(), never) {
			t.Errorf("%s is named", never)
		}
	}
}

func TestWrite_FailsWithoutAnImage(t *testing.T) {
	if err := Write("operator", filepath.Join(t.TempDir(), "none"), io.Discard); err == nil {
		t.Error("no archive is described")
	}
}
