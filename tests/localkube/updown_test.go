package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/cluster"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/deps"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/leak"
	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
)

// asProgram makes the test's own executable behave as localkube: it is what the
// test kills, and what the instance copies as its agent.
const asProgram = "LOCALKUBE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// lab runs localkube with a directory of its own.
type lab struct {
	t    *testing.T
	base string
}

func (l lab) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "LOCALKUBE_DIR="+l.base)
	return cmd
}

// run runs a command to its end and returns its standard output.
func (l lab) run(args ...string) string {
	l.t.Helper()
	var stderr strings.Builder
	cmd := l.command(args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		l.t.Fatalf("localkube %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// kill runs a command and kills it at a random moment within the given time,
// which may be after its end.
func (l lab) kill(within time.Duration, args ...string) {
	l.t.Helper()
	after := rand.N(within)
	cmd := l.command(args...)
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	timer.Stop()
	l.t.Logf("localkube %s, killed after %v: %v", strings.Join(args, " "), after.Round(time.Millisecond), err)
}

func (l lab) status(name string) cluster.Status {
	l.t.Helper()
	var s cluster.Status
	if err := json.Unmarshal([]byte(l.run("status", "--name", name, "-o", "json")), &s); err != nil {
		l.t.Fatal(err)
	}
	return s
}

// left lists what there is of an instance on the machine.
func (l lab) left(name string) []string {
	l.t.Helper()
	names, err := plan.NewNames(l.base, name)
	if err != nil {
		l.t.Fatal(err)
	}
	prefix := strings.TrimSuffix(names.Bridge(), "br")
	lines, err := leak.List([]string{names.Tag, filepath.Join(l.base, name) + "/"}, []string{prefix})
	if err != nil {
		l.t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(l.base, name+"*"))
	if err != nil {
		l.t.Fatal(err)
	}
	trash, err := filepath.Glob(filepath.Join(l.base, ".*"))
	if err != nil {
		l.t.Fatal(err)
	}
	for _, f := range append(files, trash...) {
		if base := filepath.Base(f); base == name || strings.HasPrefix(base, name+".") || strings.HasPrefix(base, ".") {
			lines = append(lines, "file "+f)
		}
	}
	return lines
}

// settled is what is left, without what other programs of the machine hold of
// the host's mounts: they come and go.
func (l lab) settled(name string) []string {
	l.t.Helper()
	return slices.DeleteFunc(l.left(name), func(line string) bool { return strings.HasPrefix(line, "in mnt:") })
}

func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("LOCALKUBE_ROUNDS")
	if text == "" {
		return 3
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("LOCALKUBE_ROUNDS=%q: want a number above 0", text)
	}
	return n
}

// TestUpDown brings an instance up and down again and again, killing both at
// random moments, beside another one whose name begins the same.
func TestUpDown(t *testing.T) {
	if err := deps.Check(true); err != nil {
		t.Fatal(err)
	}
	base, err := os.MkdirTemp("/var/lib", "lkt")
	if err != nil {
		t.Fatal(err)
	}
	l := lab{t: t, base: base}
	t.Cleanup(func() {
		for _, name := range []string{"a", "ab"} {
			if out, err := l.command("down", "--name", name).CombinedOutput(); err != nil {
				t.Errorf("localkube down: %v\n%s", err, out)
			}
		}
		if err := os.RemoveAll(base); err != nil {
			t.Error(err)
		}
	})
	l.run("up", "--name", "ab", "--control-plane-only")
	if len(l.left("ab")) == 0 {
		t.Fatal("the search finds nothing of an instance that runs: it would not find a leak either")
	}
	l.foreignNamespace()
	l.refusesAnother("ab")
	before := l.settled("ab")
	for round := range rounds(t) {
		up := []string{"up", "--name", "a", "--nodes", "1", "--ip-families", "ipv6,ipv4"}
		if round%3 == 2 {
			up = []string{"up", "--name", "a", "--control-plane-only"}
		}
		l.round(up)
	}
	if after := l.settled("ab"); !slices.Equal(before, after) {
		t.Errorf("the neighbour has changed from\n%s\nto\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	if s := l.status("ab"); s.State != cluster.Running {
		t.Errorf("the neighbour is %s", s.State)
	}
	l.run("down", "--name", "ab")
	l.nothingLeft("ab")
}

// refusesAnother runs commands on an instance from another checkout, which must leave it alone.
func (l lab) refusesAnother(name string) {
	l.t.Helper()
	other := l.t.TempDir()
	main := filepath.Join(other, "tests", "localkube", "kube", "cmd", "kube", "main.go")
	if err := errors.Join(os.MkdirAll(filepath.Dir(main), 0o755), os.WriteFile(main, nil, 0o600)); err != nil {
		l.t.Fatal(err)
	}
	for _, args := range [][]string{{"up", "--name", name, "--control-plane-only"}, {"down", "--name", name}} {
		cmd := l.command(args...)
		cmd.Dir = other
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "checkout "+l.status(name).Checkout+" holds it") {
			l.t.Errorf("localkube %s of another checkout: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// foreignNamespace makes a network namespace beside those of instances, as any other program may: that mounts /run/netns
// on itself, and hides what was mounted in it before.
func (l lab) foreignNamespace() {
	l.t.Helper()
	const name = "lkt-foreign"
	ip := func(args ...string) {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			l.t.Errorf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	ip("netns", "add", name)
	l.t.Cleanup(func() { ip("netns", "del", name) })
}

// round kills an up, sometimes finishes it, kills a down and finishes that.
func (l lab) round(up []string) {
	l.t.Helper()
	l.kill(8*time.Second, up...)
	if rand.N(2) == 0 {
		l.run(up...)
		if s := l.status("a"); s.State != cluster.Running {
			l.t.Errorf("after an up that was killed and repeated: %+v", s)
		}
		l.pods()
	}
	l.kill(500*time.Millisecond, "down", "--name", "a")
	if rand.N(2) == 0 {
		l.kill(2*time.Second, up...)
	}
	l.run("down", "--name", "a")
	l.nothingLeft("a")
}

// pods runs one pod on each node, so that there are containers and mounts to
// leave behind.
func (l lab) pods() {
	l.t.Helper()
	s := l.status("a")
	kubectl := func(stdin string, args ...string) {
		cmd := exec.Command(s.Kubectl, append([]string{"--kubeconfig", s.Kubeconfig}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		if out, err := cmd.CombinedOutput(); err != nil {
			l.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	for _, n := range s.Nodes {
		kubectl(fmt.Sprintf(pod, n.Name, n.Name), "apply", "-f", "-")
		kubectl("", "wait", "--for=condition=Ready", "pod/on-"+n.Name, "--timeout=60s")
	}
}

const pod = `
apiVersion: v1
kind: Pod
metadata: {name: on-%s}
spec:
  nodeName: %s
  containers:
  - name: main
    image: localhost/busybox:1
    command: [sleep, "3600"]
    volumeMounts: [{name: memory, mountPath: /dev/shm}]
  volumes: [{name: memory, emptyDir: {medium: Memory}}]
`

func (l lab) nothingLeft(name string) {
	l.t.Helper()
	if lines := l.left(name); len(lines) > 0 {
		l.t.Errorf("left of %s:\n%s", name, strings.Join(lines, "\n"))
	}
	if out, err := l.command("status", "--name", name).CombinedOutput(); err == nil || !strings.Contains(string(out), cluster.ErrAbsent.Error()) {
		l.t.Error(fmt.Errorf("status of what is gone = %w: %s", errors.Join(err), out))
	}
}
