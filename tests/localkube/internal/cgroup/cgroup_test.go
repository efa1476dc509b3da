package cgroup

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestParse(t *testing.T) {
	const hybrid = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/memory rw,relatime shared:4 - cgroup cgroup rw,memory
33 31 0:30 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
34 31 0:31 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`
	want := Hierarchies{
		unified: "/sys/fs/cgroup/unified",
		v1:      []string{"/sys/fs/cgroup/memory", "/sys/fs/cgroup/systemd"},
	}
	if got := parse(hybrid); !reflect.DeepEqual(got, want) {
		t.Errorf("parse(hybrid) = %+v, want %+v", got, want)
	}
	const pure = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	if got := parse(pure); got.unified != "/sys/fs/cgroup" || len(got.v1) != 0 {
		t.Errorf("parse(pure) = %+v", got)
	}
	if got := parse("not a mount table\n"); got.unified != "" {
		t.Errorf("parse of nonsense = %+v", got)
	}
}

func TestFavor_SetsTheShareOfAllInstances(t *testing.T) {
	v1, v2 := t.TempDir(), t.TempDir()
	files := map[string]string{filepath.Join(v1, "localkube/cpu.shares"): "8192", filepath.Join(v2, "localkube/cpu.weight"): "800"}
	for file := range files {
		if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := (Hierarchies{unified: v2, v1: []string{v1}}).favor("/localkube/tag/pods"); err != nil {
		t.Fatal(err)
	}
	for file, want := range files {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %s", file, got, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(v1, "localkube/cpu.weight")); err == nil {
		t.Error("a file that the hierarchy does not have was made")
	}
}
