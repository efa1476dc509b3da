package pod_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
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

// TestStart_FollowsTheAddressOfThePod: Ray gets the pod's address where the first one is of IPv6, and what its dashboard
// listens on follows, unless another container has the way there. With IPv4 first all stays as it was.
func TestStart_FollowsTheAddressOfThePod(t *testing.T) {
	t.Parallel()
	programs := t.TempDir()
	if err := os.WriteFile(filepath.Join(programs, "ray"), []byte("#!/bin/sh\necho \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	plain, encrypted := testkit.Cluster("demo", testkit.Group("g", 1)), testkit.Cluster("demo", testkit.Group("g", 1))
	encrypted.Spec.Network = &v1alpha1.Network{Encryption: v1alpha1.EncryptionRequired}
	const nodeIP, dashboard = " --node-ip-address=fd00::7", " --dashboard-host=::"
	for _, c := range []struct {
		name, addresses string
		built           *corev1.Pod
		want            string
	}{
		{"a head with IPv4 alone", "10.0.0.7", pod.Head(plain, 1), ""},
		{"a head with IPv4 first", "10.0.0.7,fd00::7", pod.Head(plain, 1), ""},
		{"a head with IPv6 first", "fd00::7,10.0.0.7", pod.Head(plain, 1), nodeIP + dashboard},
		{"a head with IPv6 alone", "fd00::7", pod.Head(plain, 1), nodeIP + dashboard},
		{"a head with encryption", "fd00::7", pod.Head(encrypted, 1), nodeIP},
		{"a worker with IPv4 first", "10.0.0.7,fd00::7", worker(plain), ""},
		{"a worker with IPv6 first", "fd00::7,10.0.0.7", worker(plain), nodeIP},
		{"a worker with encryption", "fd00::7", worker(encrypted), nodeIP},
		{"addresses that are not known", "", worker(plain), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			command := c.built.Spec.Containers[0].Command
			shell := exec.Command(command[0], append(command[1:], "--block", "--dashboard-host=0.0.0.0")...)
			shell.Env = []string{"PATH=" + programs + ":/usr/bin:/bin", "HELIOSTAT_POD_IPS=" + c.addresses}
			said, err := shell.Output()
			if want := "start --block --dashboard-host=0.0.0.0" + c.want; err != nil || strings.TrimSpace(string(said)) != want {
				t.Errorf("%v: %s, want %s", err, said, want)
			}
		})
	}
}
