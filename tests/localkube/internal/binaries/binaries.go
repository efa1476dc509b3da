// Package binaries builds the programs that an instance runs, from Go modules
// whose versions are pinned beside this program.
//
// In: the directory of these modules and a cache directory. Out: paths of
// programs. A program's place in the cache is named by the content it is built
// from, so that it is built once and never stale. It must never change a program
// in place: running instances use it.
package binaries

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/instance"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/process"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/progress"
)

// kept is how many builds of one program stay in the cache.
const kept = 3

// kubeVersion is written into the programs: kubectl cannot parse the empty
// version of a plain build. It is that of k8s.io/kubernetes in kube/go.mod.
const kubeVersion = "-X k8s.io/component-base/version.gitVersion=v1.36.3" +
	" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"

type unit struct {
	name    string
	module  string // directory to build in
	sources string // directory whose content decides
	pkg     string
	ldflags string
	links   []string
	takes   string // shown to the user, who has to wait
}

var units = []unit{
	{
		name: "kube", module: "kube", sources: "kube", pkg: "./cmd/kube", ldflags: kubeVersion,
		links: []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl"},
		takes: "5 minutes",
	},
	{name: "coredns", module: "dns", sources: "dns", pkg: "./cmd/coredns", takes: "1 minute"},
	{
		name: "local-path-provisioner", module: "volumes", sources: "volumes",
		pkg: "github.com/rancher/local-path-provisioner", takes: "1 minute",
	},
	{name: "pause", module: ".", sources: "pause", pkg: "./pause", takes: "a second"},
}

// Builder builds into Cache from the modules in Source.
type Builder struct {
	Source string
	Cache  string
	Log    *progress.Log
}

// Build builds what the cache does not hold yet.
func (b Builder) Build(ctx context.Context) (instance.Programs, error) {
	version, err := exec.CommandContext(ctx, "go", "version").Output()
	if err != nil {
		return instance.Programs{}, fmt.Errorf("ask go for its version: %w: install Go 1.26 or put it into PATH", err)
	}
	dirs := map[string]string{}
	for _, u := range units {
		dir, err := b.ensure(ctx, u, string(version))
		if err != nil {
			return instance.Programs{}, err
		}
		dirs[u.name] = dir
	}
	return instance.Programs{
		Kube:        dirs["kube"],
		DNS:         filepath.Join(dirs["coredns"], "coredns"),
		Provisioner: filepath.Join(dirs["local-path-provisioner"], "local-path-provisioner"),
		Pause:       filepath.Join(dirs["pause"], "pause"),
	}, nil
}

func (b Builder) ensure(ctx context.Context, u unit, goVersion string) (string, error) {
	key, err := u.key(b.Source, goVersion)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", u.name, err)
	}
	dir := filepath.Join(b.Cache, u.name+"-"+key)
	now := time.Now()
	if os.Chtimes(dir, now, now) == nil { // the time of last use decides what is kept
		return dir, nil
	}
	lock, err := instance.LockFile(filepath.Join(b.Cache, u.name+".lock"), func() {
		b.Log.Step("waiting for another command that builds %s", u.name)
	})
	if err != nil {
		return "", fmt.Errorf("build %s: %w", u.name, err)
	}
	defer lock.Release()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	b.Log.Step("building %s (with an empty Go cache about %s on 2 cores)", u.name, u.takes)
	if err := b.build(ctx, u, dir); err != nil {
		return "", fmt.Errorf("build %s: %w", u.name, err)
	}
	b.Log.Step("built %s", u.name)
	return dir, b.prune(u)
}

// key stands for all that the program is built from.
func (u unit) key(source, goVersion string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, u.pkg, u.ldflags, u.links, goVersion)
	root := filepath.Join(source, u.sources)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		if err != nil || d.IsDir() || !isSource(name) {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		fmt.Fprintln(h, rel, len(data))
		h.Write(data)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read its sources: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}

// isSource reports whether programs are built from files of a name. Tests are in none.
func isSource(name string) bool {
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") || name == "go.mod" || name == "go.sum"
}

func (b Builder) build(ctx context.Context, u unit, dir string) error {
	draft := filepath.Join(b.Cache, u.name+".new")
	if err := os.RemoveAll(draft); err != nil {
		return err
	}
	if err := os.MkdirAll(draft, 0o755); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", strings.TrimSpace("-s -w "+u.ldflags),
		"-o", filepath.Join(draft, u.name), u.pkg)
	cmd.Dir = filepath.Join(b.Source, u.module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off") // static: pause runs in an empty image
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log := filepath.Join(b.Cache, u.name+".log")
	out, err := os.Create(log)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	// The signal is sent when the starting thread ends, not the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w; the end of %s:\n%s", err, log, process.Tail(log, 15))
	}
	for _, link := range u.links {
		if err := os.Symlink(u.name, filepath.Join(draft, link)); err != nil {
			return err
		}
	}
	return errors.Join(os.Remove(log), os.Rename(draft, dir))
}

// prune removes the builds that were used least recently.
func (b Builder) prune(u unit) error {
	dirs, err := filepath.Glob(filepath.Join(b.Cache, u.name+"-????????????"))
	if err != nil {
		return fmt.Errorf("list old builds of %s: %w", u.name, err)
	}
	age := func(dir string) time.Time {
		if info, err := os.Stat(dir); err == nil {
			return info.ModTime()
		}
		return time.Time{}
	}
	slices.SortFunc(dirs, func(x, y string) int { return age(y).Compare(age(x)) })
	for _, dir := range dirs[min(kept, len(dirs)):] {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove old build: %w", err)
		}
	}
	return nil
}

// FindSource looks for the modules: in the working directory or next to this
// program, and from there upwards.
func FindSource() (string, error) {
	var starts []string
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	if self, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(self))
	}
	for _, start := range starts {
		for dir := start; ; dir = filepath.Dir(dir) {
			for _, candidate := range []string{dir, filepath.Join(dir, "tests", "localkube")} {
				if _, err := os.Stat(filepath.Join(candidate, "kube", "cmd", "kube", "main.go")); err == nil {
					return candidate, nil
				}
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", fmt.Errorf("find the modules that the programs are built from: neither in nor above %s; run this in the repository or give --source", strings.Join(starts, " and "))
}
