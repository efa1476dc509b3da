// Command images builds the container images of the tests without Docker.
//
// In go the lists in images/ and the operator's sources; out come archives that containerd imports, whose paths are
// printed, one per line. What is there already is not built again. It must never print anything else to standard
// output: scripts read it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/heliostat-dev/heliostat/tests/imagebuild/internal/deb"
	"github.com/heliostat-dev/heliostat/tests/imagebuild/internal/recipe"
	"github.com/heliostat-dev/heliostat/tests/imagebuild/internal/rootfs"
	"github.com/heliostat-dev/heliostat/tests/imagebuild/internal/sbom"
	"github.com/heliostat-dev/heliostat/tests/imagebuild/internal/store"
)

func main() {
	// Modes of files become part of an image, and its user must be able to read them.
	syscall.Umask(0o022)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use:           "images",
		Short:         "Build the container images of the tests without Docker",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(buildCommand(), depsCommand(), sbomCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// builder is what building takes beside the names of images.
type builder struct {
	repository string
	store      store.Store
	step       recipe.Step
}

// names are the images in the order in which their paths are printed. The first few are what "all" means. The others have
// frameworks, for programs that gangs run.
var names = []string{"ray", "redis", "operator", "frameworks", "frameworks-bookworm", "frameworks-tensorflow", "frameworks-spark"}

// usual are the images that "all" means.
var usual = names[:3]

func buildCommand() *cobra.Command {
	var out, repository string
	command := &cobra.Command{
		Use:       "build {ray|redis|operator|frameworks|frameworks-bookworm|frameworks-tensorflow|frameworks-spark|all}...",
		Short:     "Build what is missing and print the path of each archive",
		ValidArgs: append([]string{"all"}, names...),
		Args:      cobra.MatchAll(cobra.MinimumNArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			where, err := locate(repository, out)
			if err != nil {
				return err
			}
			start := time.Now()
			where.step = func(name, step string) {
				fmt.Fprintf(os.Stderr, "%6.1fs  image %s: %s\n", time.Since(start).Seconds(), name, step)
			}
			paths, err := where.build(cmd.Context(), chosen(args))
			for _, path := range paths {
				fmt.Fprintln(cmd.OutOrStdout(), path)
			}
			return err
		},
	}
	command.Flags().StringVar(&out, "out", "", "directory of the archives (default ${XDG_CACHE_HOME:-~/.cache}/heliostat/images)")
	command.Flags().StringVar(&repository, "repo", "", "the repository's root (default: the nearest directory above this one that has images/ray)")
	return command
}

func sbomCommand() *cobra.Command {
	var repository, archives, out string
	command := &cobra.Command{
		Use:       "sbom {ray|redis|operator|frameworks|frameworks-bookworm|frameworks-tensorflow|frameworks-spark|all}...",
		Short:     "Write bills of materials of images, in SPDX, and build what is missing",
		ValidArgs: append([]string{"all"}, names...),
		Args:      cobra.MatchAll(cobra.MinimumNArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			where, err := locate(repository, archives)
			if err != nil {
				return err
			}
			where.step = func(name, step string) { fmt.Fprintf(os.Stderr, "image %s: %s\n", name, step) }
			paths, err := where.build(cmd.Context(), chosen(args))
			if err != nil {
				return err
			}
			for i, name := range chosen(args) {
				path := filepath.Join(out, name+".spdx.json")
				if err := writeBill(name, paths[i], path); err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), path)
			}
			return nil
		},
	}
	command.Flags().StringVar(&out, "out", ".", "directory of the documents, which is made if it is not there")
	command.Flags().StringVar(&archives, "archives", "", "directory of the archives (default ${XDG_CACHE_HOME:-~/.cache}/heliostat/images)")
	command.Flags().StringVar(&repository, "repo", "", "the repository's root (default: the nearest directory above this one that has images/ray)")
	return command
}

// writeBill writes the bill of materials of an image to a file.
func writeBill(name, archive, path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the directory of documents: %w", err)
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write the document of image %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return sbom.Write(name, archive, file)
}

func depsCommand() *cobra.Command {
	var install bool
	command := &cobra.Command{
		Use:   "deps",
		Short: "Print the Debian packages that building needs and that are not installed",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			missing, err := deb.Missing(cmd.Context())
			if err != nil || len(missing) == 0 {
				return err
			}
			if !install {
				fmt.Fprintln(cmd.OutOrStdout(), strings.Join(missing, "\n"))
				return nil
			}
			fmt.Fprintln(os.Stderr, "installing", strings.Join(missing, " "))
			return deb.Install(cmd.Context(), missing, os.Stderr)
		},
	}
	command.Flags().BoolVar(&install, "install", false, "install those that are missing")
	return command
}

// chosen returns the images that args name, each once.
func chosen(args []string) []string {
	wanted := map[string]bool{}
	for _, arg := range args {
		wanted[arg] = true
	}
	var images []string
	for _, name := range names {
		if wanted[name] || wanted["all"] && slices.Contains(usual, name) {
			images = append(images, name)
		}
	}
	return images
}

// locate finds the repository and the store, unless they are given.
func locate(repository, out string) (builder, error) {
	if repository == "" {
		found, err := repositoryAbove()
		if err != nil {
			return builder{}, err
		}
		repository = found
	}
	if out == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return builder{}, fmt.Errorf("find the directory of archives: %w: use --out", err)
		}
		out = filepath.Join(cache, "heliostat", "images")
	}
	repository, repositoryErr := filepath.Abs(repository)
	out, outErr := filepath.Abs(out)
	return builder{repository: repository, store: store.Store{Dir: out}}, errors.Join(repositoryErr, outErr)
}

func repositoryAbove() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "images", "ray", "packages.txt")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("find the repository: no images/ray/packages.txt above this directory: use --repo")
		}
	}
}

// build ensures the images, all at the same time: most of it is waiting for a network. It returns the paths of those
// that are there, in the order of the names.
func (b builder) build(ctx context.Context, images []string) ([]string, error) {
	paths := make([]string, len(images))
	group, ctx := errgroup.WithContext(ctx)
	for i, name := range images {
		group.Go(func() error {
			path, err := b.ensure(ctx, name)
			paths[i] = path
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return paths, nil
}

func (b builder) ensure(ctx context.Context, name string) (string, error) {
	if name == "operator" {
		// The programs must stay as they are until they are in the image.
		unlock, err := b.store.Lock("operator-programs")
		if err != nil {
			return "", err
		}
		defer unlock()
	}
	image, err := b.recipe(ctx, name)
	if err != nil {
		return "", err
	}
	entry, err := image.Entry()
	if err != nil {
		return "", err
	}
	built := "there already"
	path, err := b.store.Ensure(ctx, entry, func(ctx context.Context, dir string) (v1.Image, error) {
		built = "built"
		if image.NeedsRoot {
			if err := deb.Require(ctx); err != nil {
				return nil, err
			}
		}
		return image.Build(ctx, dir)
	})
	if err == nil {
		b.step(name, built+" as "+image.Ref)
	}
	return path, err
}

func (b builder) recipe(ctx context.Context, name string) (recipe.Recipe, error) {
	switch name {
	case "ray":
		return recipe.Ray(b.repository, b.step)
	case "redis":
		return recipe.Redis(b.repository, b.step)
	case "frameworks":
		return recipe.Frameworks(b.repository, name, rootfs.Trixie, b.step)
	case "frameworks-bookworm", "frameworks-tensorflow":
		return recipe.Frameworks(b.repository, name, rootfs.Bookworm, b.step)
	case "frameworks-spark":
		return recipe.Spark(b.repository, name, b.step)
	default:
		return recipe.Operator(ctx, b.repository, filepath.Join(b.store.Dir, "operator-programs"), b.step)
	}
}
