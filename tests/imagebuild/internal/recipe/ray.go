package recipe

import (
	"context"
	"fmt"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"github.com/heliostat-dev/heliostat/tests/imagebuild/internal/archive"
	"github.com/heliostat-dev/heliostat/tests/imagebuild/internal/list"
	"github.com/heliostat-dev/heliostat/tests/imagebuild/internal/rootfs"
)

// rayUser is the user and group of the published image: ray in the group users.
const rayUser = "1000:100"

// Ray returns the recipe of Ray's image, under the name that a user's manifest has for the published one.
func Ray(repository string, step Step) (Recipe, error) {
	inputs, err := readInputs(repository, "ray", "packages.txt", "requirements.txt", "setup.sh")
	if err != nil {
		return Recipe{}, err
	}
	release, err := list.Pinned(inputs["requirements.txt"], "ray")
	if err != nil {
		return Recipe{}, err
	}
	recipe := Recipe{
		Name: "ray",
		Ref:  "docker.io/rayproject/ray:" + release,
		Config: v1.Config{
			User:       "1000",
			Env:        []string{path, "HOME=/home/ray", "LANG=C.UTF-8"},
			WorkingDir: "/home/ray",
			Cmd:        []string{"/bin/bash"},
		},
		Inputs:    inputs,
		NeedsRoot: true,
	}
	recipe.Build = func(ctx context.Context, dir string) (v1.Image, error) {
		root := rootfs.Root{Dir: filepath.Join(dir, "root")}
		requirements := filepath.Join(repository, "images", "ray", "requirements.txt")
		if err := installRay(ctx, root, inputs, requirements, step); err != nil {
			return nil, fmt.Errorf("build image ray: %w", err)
		}
		// Packed before the check, so that nothing the check writes gets in.
		step("ray", "pack")
		image, err := assemble(ctx, dir, recipe.Config,
			archive.Tree{Dir: root.Dir, Exclude: append([]string{"./usr/local/*"}, machineFiles...)},
			archive.Tree{Dir: root.Dir, Paths: []string{"usr/local"}})
		if err != nil {
			return nil, fmt.Errorf("build image ray: %w", err)
		}
		step("ray", "check that it starts")
		if err := checkRay(ctx, root); err != nil {
			return nil, fmt.Errorf("check image ray: %w", err)
		}
		step("ray", "write")
		return image, nil
	}
	return recipe, nil
}

// installRay makes the root file system. Debian's packages and Python's, which come from different places, are
// installed at the same time.
func installRay(ctx context.Context, root rootfs.Root, inputs map[string]string, requirements string, step Step) error {
	target := root.Dir + "-python"
	installs, installing := errgroup.WithContext(ctx)
	step("ray", "install Debian's packages, and Python's beside them")
	installs.Go(func() error {
		defer step("ray", "Debian's packages done")
		return root.Bootstrap(installing, list.Entries(inputs["packages.txt"]))
	})
	installs.Go(func() error {
		defer step("ray", "Python's packages done")
		return rootfs.InstallPython(installing, requirements, target)
	})
	if err := installs.Wait(); err != nil {
		return err
	}
	if err := root.AdoptPython(target); err != nil {
		return err
	}
	if err := root.RunScript(ctx, inputs["setup.sh"]); err != nil {
		return err
	}
	if err := root.Settle(); err != nil {
		return err
	}
	step("ray", "compile Python")
	if err := root.CompilePython(ctx, "/usr/lib/python3", "/usr/lib/python"+rootfs.PythonVersion, "/"+rootfs.PythonPackages); err != nil {
		return err
	}
	// The directories of compiled modules are new.
	return root.Settle()
}

// checkRay runs what a head, a worker and Serve need first, as the image's user.
func checkRay(ctx context.Context, root rootfs.Root) error {
	if err := root.Run(ctx, rayUser, "ray", "--version"); err != nil {
		return err
	}
	return root.Run(ctx, rayUser, "python", "-c", "import ray, ray.serve, ray.dashboard.dashboard, ray.dashboard.agent")
}
