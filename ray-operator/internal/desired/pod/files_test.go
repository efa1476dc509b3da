package pod_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// TestStart_RaisesTheLimitOfFiles: to what the variable says, by default to 65536, never down, as far as the hard limit
// allows; and Ray gets its arguments as they are.
func TestStart_RaisesTheLimitOfFiles(t *testing.T) {
	t.Parallel()
	programs := programsOf(t, map[string]string{"ray": "printf '%s,' `ulimit -Sn` \"$@\""})
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
			shell.Env = []string{"PATH=" + programs + ":/usr/bin:/bin", "HOME=" + programs}
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
// listens on follows, unless another container has the way there. With IPv4 first all stays as it was, whatever family the
// head's Service has: kubelets and the operator go to the pod's address.
func TestStart_FollowsTheAddressOfThePod(t *testing.T) {
	t.Parallel()
	programs := programsOf(t, map[string]string{"ray": `echo "$@"`})
	plain, encrypted := testkit.Cluster("demo", testkit.Group("g", 1)), testkit.Cluster("demo", testkit.Group("g", 1))
	encrypted.Spec.Network = &v1beta1.Network{Encryption: v1beta1.Enabled}
	behind := testkit.Cluster("demo", testkit.Group("g", 1))
	behind.Spec.Head.Service = &v1beta1.HeadServiceSpec{ServiceReach: v1beta1.ServiceReach{
		IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol}, IPFamilyPolicy: corev1.IPFamilyPolicySingleStack,
	}}
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
		{"a head with IPv4 first, behind a Service of IPv6", "10.0.0.7,fd00::7", pod.Head(behind, 1), ""},
		{"a head with IPv6 first, behind a Service of IPv6", "fd00::7,10.0.0.7", pod.Head(behind, 1), nodeIP + dashboard},
		{"a worker with IPv4 first", "10.0.0.7,fd00::7", worker(plain), ""},
		{"a worker with IPv6 first", "fd00::7,10.0.0.7", worker(plain), nodeIP},
		{"a worker with encryption", "fd00::7", worker(encrypted), nodeIP},
		{"addresses that are not known", "", worker(plain), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			command := c.built.Spec.Containers[0].Command
			shell := exec.Command(command[0], append(command[1:], "--block", "--dashboard-host=0.0.0.0")...)
			shell.Env = []string{"PATH=" + programs + ":/usr/bin:/bin", "HOME=" + programs, "HELIOSTAT_POD_IPS=" + c.addresses}
			said, err := shell.Output()
			if want := "start --block --dashboard-host=0.0.0.0" + c.want; err != nil || strings.TrimSpace(string(said)) != want {
				t.Errorf("%v: %s, want %s", err, said, want)
			}
		})
	}
}

// TestStart_KeepsTheHomeOfATemplate: a directory that the user names may be made later.
func TestStart_KeepsTheHomeOfATemplate(t *testing.T) {
	t.Parallel()
	cluster := testkit.Cluster("demo", testkit.Group("g", 1))
	cluster.Spec.PodDefaults = &v1beta1.PodDefaults{Env: []corev1.EnvVar{{Name: "HOME", Value: "/later"}}}
	if script := worker(cluster).Spec.Containers[0].Command[2]; strings.Contains(script, "HOME") {
		t.Errorf("the script of a pod with a home of its own is %s", script)
	}
}

// TestStart_GivesUnknownUsersAHomeAndAName: what the image has stays where it works.
func TestStart_GivesUnknownUsersAHomeAndAName(t *testing.T) {
	t.Parallel()
	command := worker(testkit.Cluster("demo", testkit.Group("g", 1))).Spec.Containers[0].Command
	own, temporary := t.TempDir(), t.TempDir()
	other := filepath.Join(temporary, "home")
	for _, c := range []struct {
		name, id string
		env      []string
		want     string
	}{
		{"a known user keeps home and name", "echo ray", []string{"HOME=" + own}, own + ",,"},
		{"a user without a name gets one", "exit 1", []string{"HOME=" + own}, own + ",ray,ray"},
		{"names that are given stay", "exit 1", []string{"HOME=" + own, "USER=ann", "LOGNAME=bob"}, own + ",ann,bob"},
		{"a home that cannot be written gives way", "echo ray", []string{"HOME=/nowhere"}, other + ",,"},
		{"without a home there is one", "exit 1", nil, other + ",ray,ray"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			programs := programsOf(t, map[string]string{"ray": `: > "$HOME/it" && printf '%s' "$HOME,$USER,$LOGNAME"`, "id": c.id})
			shell := exec.Command(command[0], command[1:]...)
			shell.Env = append([]string{"PATH=" + programs + ":/usr/bin:/bin", "TMPDIR=" + temporary}, c.env...)
			if said, err := shell.Output(); err != nil || string(said) != c.want {
				t.Errorf("%v: %s, want %s", err, said, c.want)
			}
		})
	}
}

// TestStart_TakesNoHomeOfSomebodyElse: everybody may write to the directory for temporary files, and Python loads packages from
// its home.
func TestStart_TakesNoHomeOfSomebodyElse(t *testing.T) {
	t.Parallel()
	temporary := t.TempDir()
	theirs := filepath.Join(temporary, "home")
	plant := func() error { return os.Symlink("/tmp", theirs) } // root's, and everybody writes there
	if os.Geteuid() == 0 {
		plant = func() error { return errors.Join(os.Mkdir(theirs, 0o777), os.Chown(theirs, 65534, 65534)) }
	}
	if err := plant(); err != nil {
		t.Fatal(err)
	}
	command := worker(testkit.Cluster("demo", testkit.Group("g", 1))).Spec.Containers[0].Command
	shell := exec.Command(command[0], command[1:]...)
	programs := programsOf(t, map[string]string{"ray": `printf '%s' "$HOME"`})
	shell.Env = []string{"PATH=" + programs + ":/usr/bin:/bin", "TMPDIR=" + temporary, "HOME=/nowhere"}
	if said, err := shell.Output(); err != nil || string(said) != "/nowhere" {
		t.Errorf("%v: the home is %s, want the one that cannot be written", err, said)
	}
}

// programsOf returns a directory with scripts.
func programsOf(t *testing.T, scripts map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(directory, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}
