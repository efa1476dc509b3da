// Package deps tells what the machine lacks for a local cluster, each time with
// the command that helps.
//
// In: the machine. Out: missing Debian packages; one error for all that is
// missing. It must never install anything unless Install is called.
package deps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/cgroup"
)

// Package is a Debian package and a file that shows it to be there.
type Package struct {
	Name, File string
	Nodes      bool // only nodes need it, a control plane does not
}

// Packages are all that an instance needs besides Go.
var Packages = []Package{
	{"containerd", "/usr/bin/containerd", true},
	{"runc", "/usr/sbin/runc", true},
	{"containernetworking-plugins", "/usr/lib/cni/ptp", true},
	{"iptables", "/usr/sbin/iptables", true},
	{"ipset", "/usr/sbin/ipset", true},
	{"busybox-static", "/usr/share/doc/busybox-static", true},
	{"util-linux", "/usr/bin/nsenter", false},
	{"mount", "/usr/bin/mount", false},
}

// Missing are the packages that are not installed.
func Missing(nodes bool) []string {
	var names []string
	for _, p := range Packages {
		if _, err := os.Stat(p.File); err != nil && (nodes || !p.Nodes) {
			names = append(names, p.Name)
		}
	}
	return names
}

// Install installs packages with apt-get, whose output goes to out.
func Install(ctx context.Context, out io.Writer, names []string) error {
	for _, args := range [][]string{
		{"update", "-q"},
		append([]string{"install", "-q", "-y", "--no-install-recommends"}, names...),
	} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("install packages: apt-get %s: %w", strings.Join(args, " "), err)
		}
	}
	return nil
}

// Check returns everything that is missing to run nodes or, if there must be
// none, a control plane.
func Check(nodes bool) error {
	var missing []error
	if os.Geteuid() != 0 {
		missing = append(missing, errors.New("root: run it with sudo"))
	}
	if names := Missing(nodes); len(names) > 0 {
		missing = append(missing, fmt.Errorf("packages: run localkube deps --install, or apt-get install %s", strings.Join(names, " ")))
	}
	h, err := cgroup.Find()
	if err != nil {
		missing = append(missing, err)
	} else if nodes && !h.HasMemory() {
		missing = append(missing, errors.New("the memory controller of control groups: boot with cgroup_enable=memory"))
	}
	if nodes {
		missing = append(missing, overlay())
	}
	if err := errors.Join(missing...); err != nil {
		return fmt.Errorf("this machine lacks:\n%w", err)
	}
	return nil
}

func overlay() error {
	data, err := os.ReadFile("/proc/filesystems")
	if err != nil || !strings.Contains(string(data), "\toverlay\n") {
		return errors.New("the overlay file system: run modprobe overlay")
	}
	return nil
}
