// Package archive makes container images out of directories, without Docker.
//
// In go a directory tree, an image's name and its configuration; out comes one file in the format of
// `docker save`, which containerd and Docker import. Layers stay uncompressed: the file is read once, on the
// machine that wrote it, and compressing Ray would cost more time than all the rest. The same tree gives the
// same bytes. It must never take a file's owner or time from the machine that builds, other than from the tree.
package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Tree says which part of a directory becomes a layer.
type Tree struct {
	// Dir is the directory that becomes the root of the layer.
	Dir string
	// Paths are what is taken, relative to Dir; without any, everything.
	Paths []string
	// Exclude are tar patterns, anchored at Dir and written as "./dev/*".
	Exclude []string
	// RootOwned gives every file to 0:0 instead of to its owner on disk.
	RootOwned bool
}

// layer is a layer that is not compressed, kept in a file.
type layer struct {
	path string
	size int64
	hash v1.Hash
}

func (l *layer) Digest() (v1.Hash, error)             { return l.hash, nil }
func (l *layer) DiffID() (v1.Hash, error)             { return l.hash, nil }
func (l *layer) Compressed() (io.ReadCloser, error)   { return os.Open(l.path) }
func (l *layer) Uncompressed() (io.ReadCloser, error) { return os.Open(l.path) }
func (l *layer) Size() (int64, error)                 { return l.size, nil }
func (l *layer) MediaType() (types.MediaType, error)  { return types.DockerUncompressedLayer, nil }
func (t Tree) paths() []string {
	if len(t.Paths) == 0 {
		return []string{"."}
	}
	paths := make([]string, len(t.Paths))
	for i, path := range t.Paths {
		paths[i] = "./" + path
	}
	return paths
}

// Layer writes the tree into a tar file at path and returns it as a layer. The file must stay until the image is
// written. GNU tar does the work: it knows hard links, extended attributes and device nodes.
func Layer(ctx context.Context, tree Tree, path string) (v1.Layer, error) {
	args := []string{"--create", "--directory", tree.Dir, "--sort=name", "--numeric-owner", "--format=posix",
		"--pax-option=delete=atime,delete=ctime,exthdr.name=%d/PaxHeaders/%f", "--xattrs", "--anchored", "--wildcards"}
	if tree.RootOwned {
		args = append(args, "--owner=0", "--group=0")
	}
	for _, pattern := range tree.Exclude {
		args = append(args, "--exclude="+pattern)
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create layer: %w", err)
	}
	defer file.Close()
	digest := sha256.New()
	size := &counter{}
	var complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, "tar", append(args, tree.paths()...)...)
	cmd.Stdout = io.MultiWriter(file, digest, size)
	cmd.Stderr = &complaint
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("pack %s: %w: %s", tree.Dir, err, bytes.TrimSpace(complaint.Bytes()))
	}
	if err := file.Close(); err != nil {
		return nil, fmt.Errorf("write layer %s: %w", path, err)
	}
	hash := v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(digest.Sum(nil))}
	return &layer{path: path, size: size.bytes, hash: hash}, nil
}

type counter struct{ bytes int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return len(p), nil
}

// Image puts layers under a configuration, for this machine's architecture.
func Image(config v1.Config, layers ...v1.Layer) (v1.Image, error) {
	image, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return nil, fmt.Errorf("add layers to image: %w", err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read image configuration: %w", err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, config
	image, err = mutate.ConfigFile(image, file)
	if err != nil {
		return nil, fmt.Errorf("set image configuration: %w", err)
	}
	return image, nil
}

// Write writes image to the file path under a name such as "docker.io/library/redis:7", opens it again to see that
// it can be read, and returns the file's SHA-256 in hexadecimal.
func Write(path, ref string, image v1.Image) (string, error) {
	tag, err := name.NewTag(ref, name.StrictValidation)
	if err != nil {
		return "", fmt.Errorf("parse image name %q: %w", ref, err)
	}
	file, err := os.Create(path)
	if err != nil {
		return "", fmt.Errorf("create archive of %s: %w", ref, err)
	}
	defer file.Close()
	digest := sha256.New()
	if err := tarball.Write(tag, image, io.MultiWriter(file, digest)); err != nil {
		return "", fmt.Errorf("write archive of %s: %w", ref, err)
	}
	if err := file.Close(); err != nil {
		return "", fmt.Errorf("write archive of %s: %w", ref, err)
	}
	written, err := tarball.ImageFromPath(path, &tag)
	if err != nil {
		return "", fmt.Errorf("read archive of %s again: %w", ref, err)
	}
	if _, err := written.ConfigFile(); err != nil {
		return "", fmt.Errorf("read archive of %s again: %w", ref, err)
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}
