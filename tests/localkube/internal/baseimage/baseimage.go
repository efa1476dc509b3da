// Package baseimage builds the two images that every node has: the pods'
// sandbox and a busybox with a shell, for volumes and for tests.
//
// In: the pause program, Debian's static busybox. Out: an image archive for
// each, named by its content. It must never need a registry.
package baseimage

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Names of the two images.
const (
	Pause   = "localhost/pause:1"
	Busybox = "localhost/busybox:1"
)

const busyboxProgram = "/bin/busybox"

type entry struct {
	header  tar.Header
	content []byte
}

// Build writes both archives into dir, unless they are there, and returns their
// paths. Two must not run at once.
func Build(dir, pause string) ([]string, error) {
	program, err := os.ReadFile(pause)
	if err != nil {
		return nil, fmt.Errorf("build image %s: %w", Pause, err)
	}
	sandbox, err := write(dir, Pause, []entry{file("pause", 0o755, program)}, v1.Config{Entrypoint: []string{"/pause"}})
	if err != nil {
		return nil, fmt.Errorf("build image %s: %w", Pause, err)
	}
	root, err := busyboxRoot()
	if err != nil {
		return nil, fmt.Errorf("build image %s: %w", Busybox, err)
	}
	shell, err := write(dir, Busybox, root, v1.Config{Cmd: []string{"/bin/sh"}, Env: []string{"PATH=/bin"}})
	if err != nil {
		return nil, fmt.Errorf("build image %s: %w", Busybox, err)
	}
	return []string{sandbox, shell}, nil
}

func busyboxRoot() ([]entry, error) {
	program, err := os.ReadFile(busyboxProgram)
	if err != nil {
		return nil, fmt.Errorf("%w: run apt-get install busybox-static", err)
	}
	applets, err := exec.Command(busyboxProgram, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("list the commands of busybox: %w", err)
	}
	root := []entry{
		{header: tar.Header{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o755}},
		{header: tar.Header{Name: "etc/", Typeflag: tar.TypeDir, Mode: 0o755}},
		{header: tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}},
		file("bin/busybox", 0o755, program),
		file("etc/passwd", 0o644, []byte("root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")),
		file("etc/group", 0o644, []byte("root:x:0:\nnobody:x:65534:\n")),
	}
	for applet := range strings.FieldsSeq(string(applets)) {
		if applet != "busybox" {
			root = append(root, entry{header: tar.Header{
				Name: "bin/" + applet, Typeflag: tar.TypeSymlink, Linkname: "busybox", Mode: 0o777,
			}})
		}
	}
	return root, nil
}

func file(path string, mode int64, content []byte) entry {
	return entry{header: tar.Header{Name: path, Typeflag: tar.TypeReg, Mode: mode, Size: int64(len(content))}, content: content}
}

// layer is the same for the same entries: no time, no owner but root.
func layer(entries []entry) ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		if err := w.WriteHeader(&e.header); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	return buf.Bytes(), w.Close()
}

func write(dir, image string, entries []entry, config v1.Config) (string, error) {
	data, err := layer(entries)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	short, _, _ := strings.Cut(filepath.Base(image), ":")
	path := filepath.Join(dir, fmt.Sprintf("%s-%s.tar", short, hex.EncodeToString(sum[:6])))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	tag, err := name.NewTag(image)
	if err != nil {
		return "", err
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	})
	if err != nil {
		return "", err
	}
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{Architecture: runtime.GOARCH, OS: "linux", Config: config})
	if err == nil {
		img, err = mutate.AppendLayers(img, l)
	}
	if err != nil {
		return "", err
	}
	return path, save(path, tag, img)
}

func save(path string, tag name.Tag, img v1.Image) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	draft := path + ".new"
	if err := tarball.WriteToFile(draft, tag, img); err != nil {
		return err
	}
	return os.Rename(draft, path)
}
