package recipe

import (
	"context"
	"fmt"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/heliostat-dev/heliostat/tests/imagebuild/internal/archive"
	"github.com/heliostat-dev/heliostat/tests/imagebuild/internal/list"
	"github.com/heliostat-dev/heliostat/tests/imagebuild/internal/rootfs"
)

// Redis returns the recipe of Redis's image. Bookworm's Redis is 7.0, hence the tag.
func Redis(repository string, step Step) (Recipe, error) {
	inputs, err := readInputs(repository, "redis", "packages.txt", "setup.sh")
	if err != nil {
		return Recipe{}, err
	}
	recipe := Recipe{
		Name: "redis",
		Ref:  "docker.io/library/redis:7",
		Config: v1.Config{
			User:         "999",
			Env:          []string{path},
			WorkingDir:   "/data",
			ExposedPorts: map[string]struct{}{"6379/tcp": {}},
			Entrypoint:   []string{"redis-server"},
			Cmd:          []string{"--protected-mode", "no"},
		},
		Inputs:    inputs,
		Release:   rootfs.Bookworm,
		NeedsRoot: true,
	}
	recipe.Build = func(ctx context.Context, dir string) (v1.Image, error) {
		root := rootfs.Root{Dir: filepath.Join(dir, "root"), Release: recipe.Release}
		if err := installRedis(ctx, root, inputs, step); err != nil {
			return nil, fmt.Errorf("build image redis: %w", err)
		}
		step("redis", "pack")
		image, err := assemble(ctx, dir, recipe.Config, archive.Tree{Dir: root.Dir, Exclude: machineFiles})
		if err != nil {
			return nil, fmt.Errorf("build image redis: %w", err)
		}
		for _, program := range []string{"redis-server", "redis-cli"} {
			if err := root.Run(ctx, "999:999", program, "--version"); err != nil {
				return nil, fmt.Errorf("check image redis: %w", err)
			}
		}
		return image, nil
	}
	return recipe, nil
}

func installRedis(ctx context.Context, root rootfs.Root, inputs map[string]string, step Step) error {
	step("redis", "install Debian's packages")
	if err := root.Bootstrap(ctx, list.Entries(inputs["packages.txt"])); err != nil {
		return err
	}
	if err := root.RunScript(ctx, inputs["setup.sh"]); err != nil {
		return err
	}
	return root.Settle()
}
