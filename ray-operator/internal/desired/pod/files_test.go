package pod_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// TestStart_RaisesTheLimitOfFiles: to what the variable says, by default to 65536, never down, as far as the hard limit
// allows; and Ray gets its arguments as they are.
func TestStart_RaisesTheLimitOfFiles(t *testing.T) {
	t.Parallel()
	programs := t.TempDir()
	ray := "#!/bin/sh\nprintf '%s,' `ulimit -Sn` \"$@\"\n"
	if err := os.WriteFile(filepath.Join(programs, "ray"), []byte(ray), 0o700); err != nil {
		t.Fatal(err)
	}
	command := worker(testkit.Cluster("demo", testkit.Group("g", 1))).Spec.Containers[0].Command
	for _, c := range []struct{ name, before, variable, want string }{
		{"a low limit is raised as far as the hard one", "ulimit -Sn 1024; ulimit -Hn 4096", "", "4096"},
		{"the variable says how far", "ulimit -Sn 1024; ulimit -Hn 4096", "2048", "2048"},
		{"a higher limit stays", "ulimit -Sn 3000; ulimit -Hn 4096", "2048", "3000"},
		{"what is no number changes nothing", "ulimit -Sn 1024; ulimit -Hn 4096", "many", "1024"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"-c", c.before + `; exec "$@"`, "sh"}, command...)
			shell := exec.Command("/bin/sh", append(args, "--block", "--labels=a=$(x) `y`")...)
			shell.Env = []string{"PATH=" + programs + ":/usr/bin:/bin"}
			if c.variable != "" {
				shell.Env = append(shell.Env, "RAY_START_ULIMIT_OPEN_FILES="+c.variable)
			}
			said, err := shell.Output()
			if want := c.want + ",start,--block,--labels=a=$(x) `y`,"; err != nil || strings.TrimSpace(string(said)) != want {
				t.Errorf("%v: %s, want %s", err, said, want)
			}
		})
	}
}
