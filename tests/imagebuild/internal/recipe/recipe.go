// Package recipe knows the images: what each is made from, how, and under which name and configuration it is run.
//
// In go the repository's files; out comes a recipe with a key that changes when anything does that the image is made
// from, and a function that builds it. Lists come from images/, so that the Dockerfiles make the same. A recipe must
// never leave an image that does not start: each runs what it installed before it gives the image away.
package recipe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/heliostat-dev/heliostat/tests/imagebuild/internal/archive"
	"github.com/heliostat-dev/heliostat/tests/imagebuild/internal/rootfs"
	"github.com/heliostat-dev/heliostat/tests/imagebuild/internal/store"
)

// version is part of every key. Raise it when the way an image is built changes and none of its inputs does.
const version = 1

// path is PATH in every image that has a root file system, as in Docker's own.
const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Step reports that the image called name has come to a step, described in a few words.
type Step func(name, step string)

// Recipe is one image that can be built.
type Recipe struct {
	// Name is the short name that commands and files use.
	Name string
	// Ref is the full name, with its registry, that the image is imported under.
	Ref string
	// Config is how the image is run.
	Config v1.Config
	// Inputs are the contents, or the hashes, of all that goes into the image, by name.
	Inputs map[string]string
	// Release is the Debian release of the root file system.
	Release rootfs.Release
	// NeedsRoot says that building takes root and the packages of package deb.
	NeedsRoot bool
	// Build makes the image.
	Build store.Build
}

// Entry returns what the image is stored under.
func (r Recipe) Entry() (store.Entry, error) {
	made, err := json.Marshal(struct {
		Version                  int
		Suite, Architecture, Ref string
		Config                   v1.Config
		Inputs                   map[string]string
	}{version, r.Release.Suite, runtime.GOARCH, r.Ref, r.Config, r.Inputs})
	if err != nil {
		return store.Entry{}, fmt.Errorf("hash recipe of image %s: %w", r.Name, err)
	}
	sum := sha256.Sum256(made)
	return store.Entry{Name: r.Name, Ref: r.Ref, Key: hex.EncodeToString(sum[:6])}, nil
}

// readInputs reads files of images/<name>/ into a map by file name.
func readInputs(repository, name string, files ...string) (map[string]string, error) {
	inputs := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(repository, "images", name, file))
		if err != nil {
			return nil, fmt.Errorf("read list of image %s: %w", name, err)
		}
		inputs[file] = string(content)
	}
	return inputs, nil
}

// hasList reports whether images/<name>/ has a file.
func hasList(repository, name, file string) bool {
	_, err := os.Stat(filepath.Join(repository, "images", name, file))
	return err == nil
}

// machineFiles are patterns of what differs from build to build and has no place in an image: devices, which the
// container runtime makes, and what the package manager and programs leave behind.
var machineFiles = []string{"./dev/*", "./proc/*", "./sys/*", "./run/*", "./tmp/*", "./var/tmp/*", "./var/log/*.log",
	"./var/log/apt/*", "./var/cache/apt/*", "./var/lib/apt/lists/*", "./var/cache/ldconfig/aux-cache", "./etc/machine-id"}

// assemble packs each tree into a layer of its own and the layers into an image.
func assemble(ctx context.Context, dir string, config v1.Config, trees ...archive.Tree) (v1.Image, error) {
	layers := make([]v1.Layer, len(trees))
	for i, tree := range trees {
		layer, err := archive.Layer(ctx, tree, filepath.Join(dir, fmt.Sprintf("layer-%d.tar", i)))
		if err != nil {
			return nil, err
		}
		layers[i] = layer
	}
	return archive.Image(config, layers...)
}
