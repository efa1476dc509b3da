// Package rootfs makes root file systems: Debian's from its packages, Ray's from Python's, with the commands that
// have to run inside.
//
// In go lists of packages; out comes a directory. Every command runs in mount and process namespaces of its own that
// end with it, so a build that is killed leaves neither a mount nor a process. It must never run a command against
// the machine's own root, and it needs root: owners, device nodes and chroot.
package rootfs

import (
	"bytes"
	"context"
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

	"golang.org/x/sys/unix"
)

// Release is a Debian release, by its suite, with the version of its Python.
type Release struct{ Suite, Python string }

// Bookworm is the release of all images but those that need newer packages, which are from Trixie.
var (
	Bookworm = Release{Suite: "bookworm", Python: "3.11"}
	Trixie   = Release{Suite: "trixie", Python: "3.13"}
)

// PythonPackages is where the release's Python looks for what did not come from Debian, relative to the root.
func (r Release) PythonPackages() string { return "usr/local/lib/python" + r.Python + "/dist-packages" }

// epoch is the latest time a file may carry: later ones, which are those of the build, become this one.
var epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// glibc are the C libraries that binary wheels may ask for, newest first: bookworm has 2.36,
// trixie 2.41.
var glibc = []string{"manylinux_2_34", "manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014"}

// machine is the name that wheels give to an architecture of Go.
var machine = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// Root is a root file system of a Debian release in a directory.
type Root struct {
	Dir     string
	Release Release
}

// Bootstrap installs a minimal Debian with packages into the root, which must be missing or empty. Manual pages,
// translations and documents other than licences stay out, as in Debian's own slim images, and so do files whose paths match
// patterns of dpkg's path-exclude.
func (r Root) Bootstrap(ctx context.Context, packages []string, excluded ...string) error {
	args := []string{"--mode=root", "--variant=minbase", "--format=directory", `--aptopt=Acquire::Retries "3"`,
		// Without this hook, and the package that goes with it, Perl is installed to move /bin to /usr/bin.
		"--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", "--include=usr-is-merged"}
	for _, rule := range []string{"path-exclude=/usr/share/man/*", "path-exclude=/usr/share/locale/*",
		"path-exclude=/usr/share/doc/*", "path-include=/usr/share/doc/*/copyright"} {
		args = append(args, "--dpkgopt="+rule)
	}
	for _, pattern := range excluded {
		args = append(args, "--dpkgopt=path-exclude="+pattern)
	}
	if slices.ContainsFunc(packages, func(name string) bool { return strings.HasPrefix(name, "openjdk-") }) {
		args = append(args, `--essential-hook=mkdir -p "$1/usr/share/man/man1"`) // its packages link manual pages there, and fail without it
	}
	if len(packages) > 0 {
		args = append(args, "--include="+strings.Join(packages, ","))
	}
	if err := isolated(ctx, "mmdebstrap", append(args, r.Release.Suite, r.Dir)...); err != nil {
		return fmt.Errorf("install Debian %s: %w", r.Release.Suite, err)
	}
	return nil
}

// BuildWheels makes wheels of the source of exactly the packages that a requirements file pins, in the directory wheels. They must be
// for any machine and any Python 3, as this machine's makes them.
func BuildWheels(ctx context.Context, requirements, wheels string) error {
	args := []string{"-m", "pip", "wheel", "--no-input", "--disable-pip-version-check", "--progress-bar=off", "--no-deps",
		"--wheel-dir=" + wheels, "--requirement=" + requirements}
	if err := isolated(ctx, "/usr/bin/python3", args...); err != nil {
		return fmt.Errorf("make wheels of %s: %w", requirements, err)
	}
	return nil
}

// InstallPython installs exactly the packages that the requirements file pins into the directory target, as wheels
// for the release's Python, whatever Python this machine has. It takes those of the directory wheels too, unless that is empty.
// Console scripts end in target/bin.
func (r Release) InstallPython(ctx context.Context, requirements, wheels, target string) error {
	args := []string{"-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--root-user-action=ignore",
		"--progress-bar=off", "--no-deps", "--no-compile", "--only-binary=:all:", "--python-version=" + r.Python}
	if wheels != "" {
		args = append(args, "--find-links="+wheels)
	}
	for _, libc := range glibc {
		args = append(args, "--platform="+libc+"_"+machine[runtime.GOARCH])
	}
	// By its path: a Python earlier in PATH may be without pip, or print to standard output when it starts.
	if err := isolated(ctx, "/usr/bin/python3", append(args, "--target="+target, "--requirement="+requirements)...); err != nil {
		return fmt.Errorf("install Python packages of %s: %w", requirements, err)
	}
	return nil
}

// AdoptPython moves what InstallPython made into the root: packages to the release's PythonPackages, console scripts to
// /usr/local/bin. The directory target must be on the root's file system and is gone afterwards.
func (r Root) AdoptPython(target string) error {
	scripts, err := filepath.Glob(filepath.Join(target, "bin", "*"))
	if err != nil {
		return fmt.Errorf("list console scripts: %w", err)
	}
	for _, script := range scripts {
		if err := os.Rename(script, filepath.Join(r.Dir, "usr/local/bin", filepath.Base(script))); err != nil {
			return fmt.Errorf("move console script: %w", err)
		}
	}
	packages := filepath.Join(r.Dir, r.Release.PythonPackages())
	if err := os.RemoveAll(filepath.Join(target, "bin")); err != nil {
		return fmt.Errorf("remove directory of console scripts: %w", err)
	}
	// Debian leaves the directory there, empty; a full one is not replaced.
	if err := os.Remove(packages); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("make room for Python packages: %w", err)
	}
	if err := os.Rename(target, packages); err != nil {
		return fmt.Errorf("move Python packages: %w", err)
	}
	return nil
}

// CompilePython compiles the modules below directories of the root, which are absolute paths inside it. Compiled
// modules carry the time of their source: call Settle before.
func (r Root) CompilePython(ctx context.Context, directories ...string) error {
	jobs := fmt.Sprint(runtime.NumCPU())
	args := append([]string{"python3", "-m", "compileall", "-q", "-j", jobs, "--invalidation-mode=timestamp"}, directories...)
	return r.Run(ctx, "0:0", args...)
}

// Settle sets every time later than the epoch to the epoch, so that building again gives the same layers.
func (r Root) Settle() error {
	at := unix.NsecToTimespec(epoch.UnixNano())
	return filepath.WalkDir(r.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("settle times: %w", err)
		}
		info, err := entry.Info()
		if err != nil {
			return fmt.Errorf("settle times: %w", err)
		}
		if !info.ModTime().After(epoch) {
			return nil
		}
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return fmt.Errorf("settle time of %s: %w", path, err)
		}
		return nil
	})
}

// RunScript runs a shell script inside the root as root.
func (r Root) RunScript(ctx context.Context, script string) error {
	return r.Run(ctx, "0:0", "sh", "-c", script)
}

// Run runs a command inside the root as user "uid:gid", with an environment of its own and / as directory.
func (r Root) Run(ctx context.Context, user string, command ...string) error {
	args := append([]string{"--userspec=" + user, r.Dir, "env", "-i", "HOME=/", "LC_ALL=C.UTF-8",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		// Stop useradd from recording the day of the build, and Python from ordering sets by chance.
		fmt.Sprintf("SOURCE_DATE_EPOCH=%d", epoch.Unix()), "PYTHONHASHSEED=0"}, command...)
	if err := isolated(ctx, "chroot", args...); err != nil {
		return fmt.Errorf("run %s in the root file system: %w", command[0], err)
	}
	return nil
}

// isolated runs a command in namespaces of its own. When the command ends, or this process does, the kernel kills
// what the command left behind and drops its mounts: mmdebstrap by itself leaves both.
func isolated(ctx context.Context, command string, args ...string) error {
	// The death signal follows the thread that starts the command, so that thread must not end before.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, "unshare",
		append([]string{"--mount", "--pid", "--fork", "--kill-child", "--mount-proc", command}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 10 * time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, lastLines(output.String(), 20))
	}
	return nil
}

// lastLines returns the end of what a failed command printed.
func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}
