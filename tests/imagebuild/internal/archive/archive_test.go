package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sys/unix"
)

// plant makes a small tree: a program, a link to it, a file that must not get in and a file in another layer.
func plant(t *testing.T, dir string) {
	t.Helper()
	for path, mode := range map[string]os.FileMode{"bin/b": 0o755, "bin/a": 0o644, "dev/null": 0o644, "usr/local/x": 0o644} {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte("content of "+path), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("b", filepath.Join(dir, "bin/c")); err != nil {
		t.Fatal(err)
	}
	then := unix.NsecToTimespec(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{then, then}, unix.AT_SYMLINK_NOFOLLOW)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func entries(t *testing.T, layer v1.Layer) map[string]*tar.Header {
	t.Helper()
	content, err := layer.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	found := map[string]*tar.Header{}
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if err == io.EOF {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimSuffix(header.Name, "/")] = header
	}
}

func TestLayerTakesWhatItIsTold(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir)
	base, err := Layer(t.Context(), Tree{Dir: dir, Exclude: []string{"./dev/*", "./usr/local/*"}, RootOwned: true},
		filepath.Join(t.TempDir(), "base.tar"))
	if err != nil {
		t.Fatal(err)
	}
	got := entries(t, base)
	for path, want := range map[string]bool{
		".": true, "./bin/a": true, "./bin/b": true, "./bin/c": true, "./dev": true, "./usr/local": true,
		"./dev/null": false, "./usr/local/x": false,
	} {
		if has := got[path] != nil; has != want {
			t.Errorf("layer has %s: %v, want %v", path, has, want)
		}
	}
	checkHeaders(t, got)
	top, err := Layer(t.Context(), Tree{Dir: dir, Paths: []string{"usr/local"}}, filepath.Join(t.TempDir(), "top.tar"))
	if err != nil {
		t.Fatal(err)
	}
	if got := entries(t, top); len(got) != 2 || got["./usr/local/x"] == nil {
		t.Errorf("second layer holds %v, want usr/local and usr/local/x", got)
	}
}

func checkHeaders(t *testing.T, got map[string]*tar.Header) {
	t.Helper()
	program := got["./bin/b"]
	if program == nil || program.Mode&0o777 != 0o755 || program.Uid != 0 || program.Gid != 0 || program.Uname != "" {
		t.Errorf("header of program = %+v, want mode 0755, owner 0:0 and no names", program)
	}
	if link := got["./bin/c"]; link == nil || link.Linkname != "b" {
		t.Errorf("header of link = %+v, want a link to b", link)
	}
}

func TestLayerSaysWhatFailed(t *testing.T) {
	_, err := Layer(t.Context(), Tree{Dir: t.TempDir(), Paths: []string{"missing"}}, filepath.Join(t.TempDir(), "l.tar"))
	if err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("error = %v, want one that names the missing path", err)
	}
}

// writeImage builds the planted tree in a new directory into an archive and returns its path and digest.
func writeImage(t *testing.T, config v1.Config) (string, string) {
	t.Helper()
	dir, out := t.TempDir(), t.TempDir()
	plant(t, dir)
	layer, err := Layer(context.Background(), Tree{Dir: dir, RootOwned: true}, filepath.Join(out, "layer.tar"))
	if err != nil {
		t.Fatal(err)
	}
	image, err := Image(config, layer)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(out, "image.tar")
	digest, err := Write(path, "docker.io/library/redis:7", image)
	if err != nil {
		t.Fatal(err)
	}
	return path, digest
}

func TestArchiveOpensWithItsConfiguration(t *testing.T) {
	path, _ := writeImage(t, v1.Config{User: "999", Env: []string{"HOME=/data"}, Entrypoint: []string{"redis-server"}})
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(path) })
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"docker.io/library/redis:7"}; !slices.Equal(manifest[0].RepoTags, want) {
		t.Errorf("names = %q, want %q", manifest[0].RepoTags, want)
	}
	tag, err := name.NewTag("docker.io/library/redis:7")
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(path, &tag)
	if err != nil {
		t.Fatal(err)
	}
	checkConfiguration(t, image)
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("layers = %v, %v, want one", layers, err)
	}
	if got := entries(t, layers[0]); got["./bin/b"] == nil {
		t.Errorf("layer in the archive holds %v", got)
	}
}

func checkConfiguration(t *testing.T, image v1.Image) {
	t.Helper()
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if file.Config.User != "999" || !slices.Equal(file.Config.Entrypoint, []string{"redis-server"}) ||
		!slices.Equal(file.Config.Env, []string{"HOME=/data"}) || file.OS != "linux" {
		t.Errorf("configuration = %+v on %s", file.Config, file.OS)
	}
}

func TestArchiveIsTheSameEachTime(t *testing.T) {
	first, firstDigest := writeImage(t, v1.Config{User: "999"})
	second, secondDigest := writeImage(t, v1.Config{User: "999"})
	a, errA := os.ReadFile(first)
	b, errB := os.ReadFile(second)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if !bytes.Equal(a, b) || firstDigest != secondDigest {
		t.Errorf("two builds of one tree differ: %s and %s", firstDigest, secondDigest)
	}
}

func TestWriteRefusesAnIncompleteName(t *testing.T) {
	image, err := Image(v1.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Write(filepath.Join(t.TempDir(), "i.tar"), "redis", image); err == nil {
		t.Error("Write took a name without registry and tag, which containerd would not find again")
	}
}
