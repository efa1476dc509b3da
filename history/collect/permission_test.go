package collect

import (
	"os"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPass_RefusesWhatItMayNotRead: a file of another user is a gap, and holds up neither the pass nor the end.
func TestPass_RefusesWhatItMayNotRead(t *testing.T) {
	n, r := newNode(t), record(t)
	n.write("secret.out", "one\n")
	n.must(os.Chmod(n.path("secret.out"), 0))
	runtime.LockOSThread() // the user is that of the thread
	defer runtime.UnlockOSThread()
	n.must(unix.Setfsuid(65534))
	n.pass(r, 2)
	n.must(unix.Setfsuid(0))
	if !slices.Equal(r.gaps, []string{"secret.out 0+0 Unreadable"}) || r.all() != "" {
		t.Errorf("it sent %q and the gaps %q", r.all(), r.gaps)
	}
	if sent, seen := n.collector.Progress(); sent != seen {
		t.Errorf("%d bytes of %d are left", seen-sent, seen)
	}
}
