// Package imagestore puts images into nodes without waiting for each node to
// unpack them again.
//
// In: image archives. Out: a seed, which is a containerd root directory in which
// they are imported and unpacked once, and copies of it for nodes made of hard
// links: containerd never changes a blob or a committed layer in place, and its
// two databases are copied for real. It must never hand out a half-made seed or
// copy: both are made aside and renamed.
package imagestore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/cgroup"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/instance"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/mountns"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/process"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/progress"
)

// Runtime is Debian's containerd.
const Runtime = "/usr/bin/containerd"

// kept is how many seeds stay on the disk. A seed that grew out of another one
// shares its files.
const kept = 6

// large is the size in bytes from which on an archive is unpacked apart from the
// smaller ones: images that change at each build are small, and must not make
// the others be unpacked again.
const large = 64 << 20

const importLimit = 10 * time.Minute

// Store makes seeds on behalf of one instance.
type Store struct {
	Instance instance.Instance
	Groups   cgroup.Hierarchies
	Log      *progress.Log
}

// group holds the programs that work for the instance and are none of it.
func (s Store) group() string { return s.Instance.Names.Cgroup("work") }

// Seed returns the directory of the seed for a set of archives.
func (s Store) Seed(ctx context.Context, archives []Archive) (string, error) {
	version, err := exec.CommandContext(ctx, Runtime, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask containerd for its version: %w", err)
	}
	seeds := filepath.Join(s.Instance.Base, "seeds")
	seed := filepath.Join(seeds, key(string(version), archives))
	now := time.Now()
	if os.Chtimes(seed, now, now) == nil { // the time of last use decides what is kept
		return seed, nil
	}
	var base string
	first, rest := split(archives)
	if len(first) > 0 && len(rest) > 0 {
		if base, err = s.Seed(ctx, first); err != nil {
			return "", err
		}
		archives = rest
	}
	lock, err := instance.LockDir(seeds)
	if err != nil {
		return "", fmt.Errorf("make seed of images: %w", err)
	}
	defer lock.Release()
	if _, err := os.Stat(seed); err == nil {
		return seed, nil
	}
	if err := s.fill(ctx, base, seed, archives); err != nil {
		return "", fmt.Errorf("make seed of images: %w", err)
	}
	return seed, prune(seeds)
}

func split(archives []Archive) (first, rest []Archive) {
	for _, a := range archives {
		if a.Size >= large {
			first = append(first, a)
		} else {
			rest = append(rest, a)
		}
	}
	return first, rest
}

// key names a seed by what it holds, whatever the order.
func key(version string, archives []Archive) string {
	var lines []string
	for _, a := range archives {
		lines = append(lines, a.Digest)
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(version + strings.Join(slices.Compact(lines), "\n")))
	return hex.EncodeToString(sum[:8])
}

// fill starts from the seed base if there is one. It works in the instance's
// directory and control group, so that the instance's end also ends a fill that
// was cut short.
func (s Store) fill(ctx context.Context, base, seed string, archives []Archive) error {
	dir := s.Instance.Path("seed")
	if err := s.discard(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "tmp"), 0o755); err != nil {
		return err
	}
	if base != "" {
		if err := s.copyOf(ctx, base, filepath.Join(dir, "root")); err != nil {
			return err
		}
	}
	config := fmt.Sprintf("version = 2\nroot = %q\nstate = %q\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n[grpc]\n  address = %q\n",
		filepath.Join(dir, "root"), filepath.Join(dir, "state"), filepath.Join(dir, "c.sock"))
	file := filepath.Join(dir, "containerd.toml")
	if err := instance.WriteFile(file, []byte(config)); err != nil {
		return err
	}
	containerd := process.Program{
		Path: Runtime, Args: []string{"--config", file}, Env: []string{"TMPDIR=" + filepath.Join(dir, "tmp")},
		Cgroup: s.Instance.Names.Cgroup("seed"), Log: s.Instance.Log("seed"),
	}
	if err := s.unpack(ctx, containerd, filepath.Join(dir, "c.sock"), archives); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dir, "root"), seed); err != nil {
		return err
	}
	return s.discard(dir)
}

func (s Store) unpack(ctx context.Context, containerd process.Program, socket string, archives []Archive) error {
	if err := containerd.Start(s.Groups); err != nil {
		return err
	}
	if err := AwaitSocket(ctx, s.Groups, containerd, socket); err != nil {
		return err
	}
	for _, a := range archives {
		s.Log.Step("unpacking %s, once for all nodes", filepath.Base(a.Path))
		if err := s.load(ctx, socket, a); err != nil {
			return err
		}
	}
	return s.Groups.Kill(containerd.Cgroup)
}

func (s Store) discard(dir string) error {
	err := s.Groups.Kill(s.Instance.Names.Cgroup("seed"))
	if err == nil {
		err = mountns.Remove(dir)
	}
	if err == nil {
		err = os.RemoveAll(dir)
	}
	return err
}

// AwaitSocket waits until a containerd answers.
func AwaitSocket(ctx context.Context, h cgroup.Hierarchies, containerd process.Program, socket string) error {
	return containerd.Await(ctx, h, func(ctx context.Context) error {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", socket)
		if err == nil {
			conn.Close()
		}
		return err
	})
}

func (s Store) load(ctx context.Context, socket string, a Archive) error {
	ctx, cancel := context.WithTimeout(ctx, importLimit)
	defer cancel()
	if _, err := process.Run(ctx, s.Groups, s.group(), "ctr", "-a", socket, "-n", "k8s.io", "images", "import", a.Path); err != nil {
		return fmt.Errorf("import image archive %s: %w", a.Path, err)
	}
	return nil
}

// prune removes the seeds that were used least recently. Nodes keep what they
// have: a hard link lives on without the other.
func prune(seeds string) error {
	entries, err := os.ReadDir(seeds)
	if err != nil {
		return fmt.Errorf("list seeds of images: %w", err)
	}
	var dirs []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() {
			dirs = append(dirs, info)
		}
	}
	slices.SortFunc(dirs, func(x, y fs.FileInfo) int { return y.ModTime().Compare(x.ModTime()) })
	for _, d := range dirs[min(kept, len(dirs)):] {
		if err := os.RemoveAll(filepath.Join(seeds, d.Name())); err != nil {
			return fmt.Errorf("remove old seed of images: %w", err)
		}
	}
	return nil
}

// Populate gives a node that has no images yet a copy of the seed.
func (s Store) Populate(ctx context.Context, node instance.Node, seed string, archives []Archive) error {
	if _, err := os.Stat(node.Images()); err == nil {
		return nil
	}
	draft := node.Path("images.new")
	err := os.RemoveAll(draft)
	if err == nil {
		err = os.MkdirAll(node.Dir, 0o755)
	}
	if err == nil {
		err = s.copyOf(ctx, seed, draft)
	}
	for _, a := range archives {
		err = errors.Join(err, note(node, a))
	}
	if err == nil {
		err = os.Rename(draft, node.Images())
	}
	if err != nil {
		return fmt.Errorf("copy images to %s: %w", node.Name, err)
	}
	return nil
}

// copyOf makes a copy of a seed that containerd may work on.
func (s Store) copyOf(ctx context.Context, seed, to string) error {
	if _, err := process.Run(ctx, s.Groups, s.group(), "cp", "-al", seed, to); err != nil {
		return err
	}
	return copyDatabases(seed, to)
}

func copyDatabases(seed, draft string) error {
	return filepath.WalkDir(seed, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "snapshots" || d.Name() == "blobs") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".db" {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		own := filepath.Join(draft, strings.TrimPrefix(path, seed))
		if err := os.Remove(own); err != nil {
			return err
		}
		return os.WriteFile(own, data, 0o600)
	})
}

// Load imports archives into running nodes, each one that a node has not got.
func (s Store) Load(ctx context.Context, nodes []instance.Node, archives []Archive) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, node := range nodes {
		group.Go(func() error {
			for _, a := range archives {
				if noted(node, a) {
					continue
				}
				s.Log.Step("importing %s into %s", filepath.Base(a.Path), node.Name)
				if err := s.load(ctx, node.Socket(), a); err != nil {
					return fmt.Errorf("load into %s: %w", node.Name, err)
				}
				if err := note(node, a); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func note(node instance.Node, a Archive) error {
	return instance.WriteFile(node.Path("loaded", a.Digest), []byte(a.Path+"\n"))
}

func noted(node instance.Node, a Archive) bool {
	_, err := os.Stat(node.Path("loaded", a.Digest))
	return err == nil
}
