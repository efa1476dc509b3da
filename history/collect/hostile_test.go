package collect

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heliostat-dev/heliostat/history/pack"
)

func TestPass_BoundsDescriptors(t *testing.T) {
	n, sink := newNode(t), record(t)
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		n.must(err)
		return len(entries)
	}
	before := count()
	for i := range 2*MaxOpen + 100 {
		n.write(fmt.Sprintf("worker-%d.out", i), "x\n")
	}
	n.pass(sink, 1)
	if open := count() - before; open > MaxOpen {
		t.Errorf("%d descriptors are open, at most %d may be", open, MaxOpen)
	}
	n.pass(sink, 2)
	if len(sink.bytes) != 2*MaxOpen+100 {
		t.Errorf("%d files were sent", len(sink.bytes))
	}
	n.pass(sink, quietPasses+1)
	if open := count() - before; open > 0 {
		t.Errorf("%d descriptors of quiet files are open", open)
	}
}

func TestPass_TakesNoMemoryForWhatAFileClaims(t *testing.T) {
	n, sink := newNode(t), record(t)
	n.write("sparse", "")
	n.must(os.Truncate(n.path("sparse"), 1<<40))
	n.pass(sink, 1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	sink.bytes = map[row][]byte{}
	clear(sink.paths)
	n.pass(sink, 1)
	runtime.ReadMemStats(&after)
	sent := len(sink.all())
	if sent == 0 || sent > perPass+pack.MaxRun {
		t.Errorf("%d bytes of a hole were sent in a pass", sent)
	}
	// The recorder itself keeps and copies what was sent.
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 8*uint64(sent) {
		t.Errorf("a pass took %d bytes", taken)
	}
}

func TestPass_LimitsFiles(t *testing.T) {
	n, sink := newNode(t), record(t)
	for i := range MaxFiles + 5 {
		n.must(os.WriteFile(n.path(fmt.Sprint(i)), nil, 0o600))
	}
	n.pass(sink, 2)
	if got := len(n.collector.files); got != MaxFiles {
		t.Errorf("%d files are followed", got)
	}
	if len(sink.gaps) != 1 || !strings.HasSuffix(sink.gaps[0], "0+0 Unreadable") {
		t.Errorf("gaps are %q, want one", sink.gaps)
	}
	for i := range MaxSessions + 3 {
		n.must(os.MkdirAll(filepath.Join(n.root, fmt.Sprintf("session_%d", i), "logs"), 0o777))
	}
	n.pass(sink, 2)
	if len(n.collector.sessions) != MaxSessions || len(sink.gaps) != 2 {
		t.Errorf("%d sessions are followed, gaps are %q", len(n.collector.sessions), sink.gaps)
	}
}

func TestPass_RefusesWhatIsNoFile(t *testing.T) {
	n, sink := newNode(t), record(t)
	secret := filepath.Join(t.TempDir(), "secret")
	n.must(os.WriteFile(secret, []byte("canary\n"), 0o600))
	n.must(os.MkdirAll(filepath.Join(n.root, "elsewhere", "logs"), 0o777))
	n.must(os.WriteFile(filepath.Join(n.root, "elsewhere", "logs", "x"), []byte("canary\n"), 0o600))
	n.must(os.Symlink(secret, n.path("link")))
	n.must(os.Symlink("/proc/self/environ", n.path("environ")))
	n.must(os.Symlink(filepath.Dir(secret), n.path("directory")))
	n.must(os.Symlink(filepath.Join(n.root, "elsewhere"), filepath.Join(n.root, "session_latest")))
	n.must(os.Mkdir(filepath.Join(n.root, "session_x"), 0o777))
	n.must(os.Symlink(filepath.Dir(secret), filepath.Join(n.root, "session_x", "logs")))
	n.must(unix.Mkfifo(n.path("fifo"), 0o666))
	n.write("a/b/c/d/e", "canary\n")
	n.write("odd\n\x1b[2J", "shown\n")
	n.pass(sink, 2)
	n.last(sink)
	if all := sink.all(); all != "shown\n" {
		t.Errorf("%q was sent", all)
	}
	if len(sink.gaps) != 1 {
		t.Errorf("gaps are %q, want one for what is too deep", sink.gaps)
	}
}

// TestPass_FollowsNoLinkThatIsSwappedIn swaps files and directories for links while passes run.
func TestPass_FollowsNoLinkThatIsSwappedIn(t *testing.T) {
	n, sink := newNode(t), record(t)
	outside := t.TempDir()
	for _, name := range []string{"a", "b"} {
		n.must(os.WriteFile(filepath.Join(outside, name), bytes.Repeat([]byte("canary\n"), 100), 0o600))
	}
	n.write("d/b", "shown\n")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for swaps := range 1000 {
			for _, name := range []string{"a", "d"} {
				_ = os.Rename(n.path(name), n.path(name+".old")+fmt.Sprint(swaps%2))
				target := outside
				if name == "a" {
					target = filepath.Join(outside, "a")
				}
				_ = os.Symlink(target, n.path(name))
				_ = os.Remove(n.path(name))
				_ = os.WriteFile(n.path("a"), []byte("shown\n"), 0o600)
				_ = os.Mkdir(n.path("d"), 0o700)
				_ = os.WriteFile(n.path("d/b"), []byte("shown\n"), 0o600)
			}
		}
	}()
	passes := 0
	for isRunning := true; isRunning; passes++ {
		select {
		case <-done:
			isRunning = false
		default:
		}
		if _, err := n.collector.Pass(sink, false); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d passes", passes)
	if all := sink.all(); strings.Contains(all, "canary") || !strings.Contains(all, "shown") {
		t.Errorf("what links lead to was sent, or nothing at all: %.200q", all)
	}
}
