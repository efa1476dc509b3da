// Package mountns gives a node a mount namespace of its own.
//
// In: a node's directory. Out: a file that holds the namespace. In it the paths
// that the kubelet, containerd and CNI insist on (/var/lib/kubelet with the
// device plugins' sockets, /run/containerd, /var/lib/cni, /var/log) are the
// node's own, so that nodes do not meet; and all that is mounted for pods lives
// in it and goes with it. It must never leave more than the holding file on the
// host.
package mountns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/cgroup"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/instance"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/process"
)

// script runs inside the new namespace with the instance's and the node's
// directory as arguments. The network namespaces that other instances hold by
// mounts are let go of first: a copy of such a mount would keep them alive. There
// may be none, which umount calls a failure. Its /var/lib holds those of the node alone; the
// instance's directory is carried over to it. Sharing comes last: a shared
// mount cannot be moved, and without it a pod's mount propagation fails.
const script = `
instance=$1 node=$2
umount -a -l -t nsfs || true
mount -t tmpfs -o mode=0755 tmpfs /run
mkdir /run/carried /run/containerd /run/netns
mount --bind "$instance" /run/carried
mount -t tmpfs -o mode=0755 tmpfs /var/lib
mkdir -p "$instance" /var/lib/kubelet /var/lib/cni
mount --move /run/carried "$instance"
rmdir /run/carried
mount --bind "$node/kubelet" /var/lib/kubelet
mount --bind "$node/cni-state" /var/lib/cni
mount --bind "$node/var-log" /var/log
mount --make-rshared /
`

// Make replaces the node's mount namespace by a new one. No process may be in
// the old one. Group is the control group to work in.
func Make(ctx context.Context, h cgroup.Hierarchies, i instance.Instance, node instance.Node, group string) error {
	holder := node.MountNamespace()
	dir := filepath.Dir(holder)
	if err := Remove(dir); err != nil {
		return err
	}
	for _, d := range []string{dir, node.Path("kubelet"), node.Path("cni-state"), node.Path("var-log")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return fmt.Errorf("make mount namespace of %s: %w", node.Name, err)
		}
	}
	// The kernel refuses to keep a mount namespace on a shared mount.
	err := unix.Mount(dir, dir, "", unix.MS_BIND, "")
	if err == nil {
		err = unix.Mount("", dir, "", unix.MS_PRIVATE, "")
	}
	if err == nil {
		err = os.WriteFile(holder, nil, 0o600)
	}
	if err != nil {
		return fmt.Errorf("make mount namespace of %s: %w", node.Name, err)
	}
	_, err = process.Run(ctx, h, group, "unshare", "--mount="+holder, "--propagation", "private",
		"sh", "-euc", script, "sh", i.Dir, node.Dir)
	if err != nil {
		return fmt.Errorf("make mount namespace of %s: %w", node.Name, err)
	}
	return nil
}

// Remove unmounts all that is mounted on dir or below it on the host.
func Remove(dir string) error {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("read mounts: %w", err)
	}
	for _, mount := range mountsBelow(string(data), dir) {
		if err := unix.Unmount(mount, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("unmount %s: %w", mount, err)
		}
	}
	return nil
}

// mountsBelow lists the mounts on dir and below, the last mounted first.
func mountsBelow(mountinfo, dir string) []string {
	var mounts []string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		if mount := fields[4]; mount == dir || strings.HasPrefix(mount, dir+"/") {
			mounts = append(mounts, mount)
		}
	}
	slices.Reverse(mounts)
	return mounts
}
