package baseimage

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestBuild(t *testing.T) {
	dir := t.TempDir()
	pause := filepath.Join(dir, "pause")
	if err := os.WriteFile(pause, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	paths, err := Build(dir, pause)
	if err != nil {
		t.Fatal(err)
	}
	for i, image := range []string{Pause, Busybox} {
		tag, err := name.NewTag(image)
		if err != nil {
			t.Fatal(err)
		}
		img, err := tarball.ImageFromPath(paths[i], &tag)
		if err != nil {
			t.Fatalf("open %s: %v", paths[i], err)
		}
		layers, err := img.Layers()
		if err != nil || len(layers) != 1 {
			t.Errorf("%s has %d layers, %v; want 1", image, len(layers), err)
		}
	}
	again, err := Build(dir, pause)
	if err != nil || again[0] != paths[0] || again[1] != paths[1] {
		t.Errorf("a second Build = %v, %v; want the same paths", again, err)
	}
}
