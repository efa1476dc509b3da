package recipe

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/heliostat-dev/heliostat/tests/imagebuild/internal/archive"
	"github.com/heliostat-dev/heliostat/tests/imagebuild/internal/rootfs"
)

// Programs maps the name of a file in the operator's image, at its root, to the Go package in the repository that it
// is built from.
type Programs map[string]string

// operatorPrograms are the programs of the operator's image.
var operatorPrograms = Programs{
	"operator": "./ray-operator/cmd/operator", "autoscaler": "./ray-operator/cmd/autoscaler",
	"encryption": "./ray-operator/cmd/encryption", "server": "./apiserver/cmd/server",
	"collector": "./history/cmd/collector", "archiver": "./history/cmd/archiver",
}

// operatorConfig runs the operator as nobody in particular: no file of any image belongs to that user.
var operatorConfig = v1.Config{User: "65532:65532", Entrypoint: []string{"/operator"}}

// Operator builds the operator's programs and returns the recipe of an image that holds them and nothing else. The
// programs are kept in the directory binaries, where Go finds that they need not be linked again; the key follows
// their content and not the sources, so that what changes no program changes no image.
func Operator(ctx context.Context, repository, binaries string, step Step) (Recipe, error) {
	step("operator", "compile")
	return operator(ctx, repository, binaries, operatorPrograms)
}

func operator(ctx context.Context, repository, binaries string, programs Programs) (Recipe, error) {
	inputs := map[string]string{}
	for file, source := range programs {
		output := filepath.Join(binaries, file)
		if err := compile(ctx, repository, source, output); err != nil {
			return Recipe{}, err
		}
		hash, err := hashFile(output)
		if err != nil {
			return Recipe{}, err
		}
		inputs[file] = hash
	}
	recipe := Recipe{
		Name:   "operator",
		Ref:    "localhost/heliostat/operator:dev",
		Config: operatorConfig,
		Inputs: inputs,
	}
	recipe.Build = func(ctx context.Context, dir string) (v1.Image, error) {
		root := rootfs.Root{Dir: filepath.Join(dir, "root")}
		for file := range programs {
			if err := copyProgram(filepath.Join(binaries, file), filepath.Join(root.Dir, file)); err != nil {
				return nil, fmt.Errorf("build image operator: %w", err)
			}
		}
		if err := root.Settle(); err != nil {
			return nil, fmt.Errorf("build image operator: %w", err)
		}
		return assemble(ctx, dir, recipe.Config, archive.Tree{Dir: root.Dir, RootOwned: true})
	}
	return recipe, nil
}

// compile links a static program. Neither the directory nor the commit it is built from gets into it.
func compile(ctx context.Context, repository, source, output string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", output, source)
	cmd.Dir = repository
	// A workspace or flags of the caller are about the caller's module.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	complaint, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("compile %s: %w\n%s", source, err, bytes.TrimSpace(complaint))
	}
	return nil
}

func hashFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("hash program: %w", err)
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", fmt.Errorf("hash program %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func copyProgram(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("read program: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("create root of the image: %w", err)
	}
	if err := os.WriteFile(to, content, 0o755); err != nil {
		return fmt.Errorf("write program: %w", err)
	}
	return nil
}
