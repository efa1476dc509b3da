package confined

import (
	"path/filepath"
	"testing"
)

func TestFind_TakesEitherVersion(t *testing.T) {
	const (
		controllers = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n32 31 0:29 / /c/memory rw shared:4 - cgroup cgroup rw,memory\n33 31 0:30 / /c/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
		unified     = "34 31 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	)
	for name, c := range map[string]struct {
		mountinfo string
		want      Group
	}{
		"version 1":              {controllers, Group{memory: "/c/memory", cpu: "/c/cpu"}},
		"both, of which 1 rules": {unified + controllers, Group{memory: "/c/memory", cpu: "/c/cpu"}},
		"version 2":              {unified, Group{memory: "/sys/fs/cgroup/unified", cpu: "/sys/fs/cgroup/unified", isSecond: true}},
	} {
		if got, err := find(c.mountinfo); err != nil || *got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
	if got, err := find("23 1 0:1 / / rw - ext4 /dev/a rw\n"); err == nil {
		t.Errorf("without control groups it finds %+v", got)
	}
}

func TestCommand_EntersBeforeItBegins(t *testing.T) {
	dir := t.TempDir()
	g := &Group{memory: filepath.Join(dir, "m"), cpu: filepath.Join(dir, "c")}
	if out, err := g.Command("/bin/echo", "a b").CombinedOutput(); err == nil {
		t.Errorf("a group that is not there is entered: %s", out)
	}
	g = &Group{memory: dir, isSecond: true}
	if out, err := g.Command("/bin/echo", "a b", "'c").CombinedOutput(); err != nil || string(out) != "a b 'c\n" {
		t.Errorf("it says %q, %v", out, err)
	}
}

func TestKillsIn_ReadsEitherVersion(t *testing.T) {
	for _, text := range []string{"oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "low 0\nhigh 0\nmax 9\noom 4\noom_kill 3\noom_group_kill 0\n"} {
		if got, err := killsIn(text); err != nil || got != 3 {
			t.Errorf("%q has %d, %v", text, got, err)
		}
	}
	if got, err := killsIn("low 0\n"); err == nil {
		t.Errorf("what counts none has %d", got)
	}
}
