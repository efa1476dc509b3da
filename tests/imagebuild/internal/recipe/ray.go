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

// rayConfig is how the published image is run.
var rayConfig = v1.Config{
	User:       "1000",
	Env:        []string{path, "HOME=/home/ray", "LANG=C.UTF-8"},
	WorkingDir: "/home/ray",
	Cmd:        []string{"/bin/bash"},
}

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
	image := Recipe{Name: "ray", Ref: "docker.io/rayproject/ray:" + release, Inputs: inputs, Release: rootfs.Bookworm}
	return withRay(image, repository, step, "import ray, ray.serve, ray.dashboard.dashboard, ray.dashboard.agent"), nil
}

// frameworks are the modules that an image with frameworks must have beside Ray's, by the image's name.
var frameworks = map[string]string{
	"frameworks":            "torch, mpi4py, xgboost",
	"frameworks-bookworm":   "torch, mpi4py, optuna",
	"frameworks-tensorflow": "tensorflow, jax",
}

// Frameworks returns the recipe of an image with Ray and the frameworks whose programs gangs run, of a Debian release. Its
// name is that of a directory below images.
func Frameworks(repository, name string, release rootfs.Release, step Step) (Recipe, error) {
	lists := []string{"packages.txt", "requirements.txt", "setup.sh"}
	if excluded := "excluded.txt"; hasList(repository, name, excluded) {
		lists = append(lists, excluded)
	}
	inputs, err := readInputs(repository, name, lists...)
	if err != nil {
		return Recipe{}, err
	}
	image := Recipe{Name: name, Ref: "localhost/heliostat/" + name + ":dev", Inputs: inputs, Release: release}
	return withRay(image, repository, step, "import ray, ray.dashboard.dashboard, ray.dashboard.agent, "+frameworks[name]), nil
}

// Spark returns the recipe of an image with Ray, Java and Spark, whose Python package comes as source alone. Its name is that of a
// directory below images.
func Spark(repository, name string, step Step) (Recipe, error) {
	inputs, err := readInputs(repository, name, "packages.txt", "excluded.txt", "requirements.txt", sourcesFile, "setup.sh")
	if err != nil {
		return Recipe{}, err
	}
	image := Recipe{Name: name, Ref: "localhost/heliostat/" + name + ":dev", Inputs: inputs, Release: rootfs.Bookworm}
	return withRay(image, repository, step, "import ray, ray.dashboard.dashboard, ray.dashboard.agent, pyspark"), nil
}

// sourcesFile lists the Python packages of an image of which wheels are made first.
const sourcesFile = "sources.txt"

// withRay completes the recipe of an image whose lists are in its inputs and that holds Ray. It runs imports, a line of
// Python, before it gives the image away.
func withRay(recipe Recipe, repository string, step Step, imports string) Recipe {
	recipe.Config, recipe.NeedsRoot = rayConfig, true
	recipe.Build = func(ctx context.Context, dir string) (v1.Image, error) {
		root := rootfs.Root{Dir: filepath.Join(dir, "root"), Release: recipe.Release}
		if err := recipe.install(ctx, root, repository, step); err != nil {
			return nil, fmt.Errorf("build image %s: %w", recipe.Name, err)
		}
		// Packed before the check, so that nothing the check writes gets in.
		step(recipe.Name, "pack")
		image, err := assemble(ctx, dir, recipe.Config,
			archive.Tree{Dir: root.Dir, Exclude: append([]string{"./usr/local/*"}, machineFiles...)},
			archive.Tree{Dir: root.Dir, Paths: []string{"usr/local"}})
		if err != nil {
			return nil, fmt.Errorf("build image %s: %w", recipe.Name, err)
		}
		step(recipe.Name, "check that it starts")
		for _, command := range [][]string{{"ray", "--version"}, {"python", "-c", imports}} {
			if err := root.Run(ctx, rayUser, command...); err != nil {
				return nil, fmt.Errorf("check image %s: %w", recipe.Name, err)
			}
		}
		step(recipe.Name, "write")
		return image, nil
	}
	return recipe
}

// install makes the root file system. Debian's packages and Python's, which come from different places, are
// installed at the same time.
func (r Recipe) install(ctx context.Context, root rootfs.Root, repository string, step Step) error {
	target := root.Dir + "-python"
	installs, installing := errgroup.WithContext(ctx)
	step(r.Name, "install Debian's packages, and Python's beside them")
	installs.Go(func() error {
		defer step(r.Name, "Debian's packages done")
		return root.Bootstrap(installing, list.Entries(r.Inputs["packages.txt"]), list.Entries(r.Inputs["excluded.txt"])...)
	})
	installs.Go(func() error {
		defer step(r.Name, "Python's packages done")
		lists, wheels := filepath.Join(repository, "images", r.Name), ""
		if r.Inputs[sourcesFile] != "" {
			wheels = root.Dir + "-wheels"
			if err := rootfs.BuildWheels(installing, filepath.Join(lists, sourcesFile), wheels); err != nil {
				return err
			}
		}
		return r.Release.InstallPython(installing, filepath.Join(lists, "requirements.txt"), wheels, target)
	})
	if err := installs.Wait(); err != nil {
		return err
	}
	if err := root.AdoptPython(target); err != nil {
		return err
	}
	if err := root.RunScript(ctx, r.Inputs["setup.sh"]); err != nil {
		return err
	}
	if err := root.Settle(); err != nil {
		return err
	}
	step(r.Name, "compile Python")
	if err := root.CompilePython(ctx, "/usr/lib/python3", "/usr/lib/python"+r.Release.Python, "/"+r.Release.PythonPackages()); err != nil {
		return err
	}
	// The directories of compiled modules are new.
	return root.Settle()
}
