package cgroup

import (
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
