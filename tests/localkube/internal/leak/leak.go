// Package leak lists what instances have on the machine, to show that nothing is
// left of one that was taken down.
//
// In: the marks of an instance, which are its directory, tag and interface
// names. Out: one line for each process, mount, namespace, control group,
// interface, route and file that bears a mark, found by looking at everything
// there is. It must never use what localkube itself uses to find them, and never
// change anything.
package leak

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
)

// places are where programs of a node would leave files if they saw the host's
// paths, and how many levels deep to look.
var places = map[string]int{
	"/run/containerd": 3, "/run/netns": 1, "/run/localkube": 1, "/run/runc": 2, "/var/lib/kubelet": 2, "/var/lib/cni": 3,
	"/var/log/pods": 1, "/var/log/containers": 1, "/tmp": 1, "/var/run/netns": 1,
}

// List returns the lines, sorted. Marks are strings that only the instance has.
func List(marks []string, prefixes []string) ([]string, error) {
	has := func(s string) bool {
		return slices.ContainsFunc(marks, func(m string) bool { return strings.Contains(s, m) })
	}
	var lines []string
	for _, list := range []func(func(string) bool) ([]string, error){processes, groups, files} {
		found, err := list(has)
		if err != nil {
			return nil, err
		}
		lines = append(lines, found...)
	}
	links, err := interfaces(prefixes)
	lines = append(lines, links...)
	slices.Sort(lines)
	return slices.Compact(lines), err
}

// processes looks at each process's command, environment, control groups and
// directories, and at the mounts of each mount namespace. What has ended and
// waits for init to take notice is no process any more.
func processes(has func(string) bool) ([]string, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var lines []string
	namespaces := map[string]bool{}
	for _, dir := range dirs {
		if ended(dir) {
			continue
		}
		if ns, err := os.Readlink(filepath.Join(dir, "ns/mnt")); err == nil && !namespaces[ns] {
			namespaces[ns] = true
			lines = append(lines, mounts(dir, ns, has)...)
		}
		if dir == fmt.Sprintf("/proc/%d", os.Getpid()) {
			continue
		}
		lines = append(lines, marksOf(dir, has)...)
	}
	return lines, nil
}

func marksOf(dir string, has func(string) bool) []string {
	var lines []string
	for _, file := range []string{"cmdline", "environ", "cgroup"} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err == nil && has(string(data)) {
			lines = append(lines, fmt.Sprintf("process %s, by its %s", filepath.Base(dir), file))
		}
	}
	for _, link := range []string{"cwd", "exe", "root"} {
		if to, err := os.Readlink(filepath.Join(dir, link)); err == nil && has(to) {
			lines = append(lines, fmt.Sprintf("process %s, by its %s", filepath.Base(dir), link))
		}
	}
	return lines
}

func ended(dir string) bool {
	data, err := os.ReadFile(filepath.Join(dir, "stat"))
	_, after, found := strings.Cut(string(data), ") ")
	return err != nil || !found || strings.HasPrefix(after, "Z") || strings.HasPrefix(after, "X")
}

func mounts(dir, namespace string, has func(string) bool) []string {
	data, err := os.ReadFile(filepath.Join(dir, "mountinfo"))
	if err != nil {
		return nil // the process went away meanwhile
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		if has(line) {
			lines = append(lines, "in "+namespace+" the mount "+strings.TrimSpace(line))
		}
	}
	return lines
}

func groups(has func(string) bool) ([]string, error) {
	return walk("/sys/fs/cgroup", 100, "control group", has)
}

func files(has func(string) bool) ([]string, error) {
	var lines []string
	for place, depth := range places {
		found, err := walk(place, depth, "file", has)
		if err != nil {
			return nil, err
		}
		lines = append(lines, found...)
	}
	return lines, nil
}

func walk(root string, depth int, kind string, has func(string) bool) ([]string, error) {
	var lines []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went away meanwhile, or was never there
		}
		if err != nil {
			return err
		}
		if has(path) {
			lines = append(lines, kind+" "+path)
		}
		if d.IsDir() && strings.Count(strings.TrimPrefix(path, root), "/") >= depth {
			return filepath.SkipDir
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", root, err)
	}
	return lines, nil
}

func interfaces(prefixes []string) ([]string, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	names := map[int]string{}
	var lines []string
	for _, l := range links {
		name := l.Attrs().Name
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			names[l.Attrs().Index] = name
			lines = append(lines, "interface "+name)
		}
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	for _, r := range routes {
		if name, ours := names[r.LinkIndex]; ours {
			lines = append(lines, fmt.Sprintf("route to %s by %s", r.Dst, name))
		}
	}
	return lines, nil
}
