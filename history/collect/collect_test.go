package collect

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/redact"
)

const token = "s3cr3t-t0ken"

// row is a file and generation.
type row struct {
	ID         pack.FileID
	Generation uint32
}

// recorder is a sink that keeps what it gets.
type recorder struct {
	t      testing.TB
	room   int
	bytes  map[row][]byte
	base   map[row]int64
	paths  map[row]string
	gaps   []string
	closed map[row]int64
}

func record(t testing.TB) *recorder {
	return &recorder{t: t, room: 1 << 40, bytes: map[row][]byte{}, base: map[row]int64{}, paths: map[row]string{}, closed: map[row]int64{}}
}

func (r *recorder) Room() int { return r.room }

func (r *recorder) Chunk(file File, offset int64, data []byte) error {
	r.t.Helper()
	key := row{file.ID, file.Generation}
	if _, is := r.paths[key]; !is {
		r.base[key] = offset
	}
	if got := r.base[key] + int64(len(r.bytes[key])); got != offset {
		r.t.Errorf("a chunk of %s is at %d, want %d", file.Path, offset, got)
	}
	if len(data) == 0 || len(data) > pack.MaxRun || len(data) > r.room {
		r.t.Errorf("a chunk of %s has %d bytes, with room for %d", file.Path, len(data), r.room)
	}
	r.bytes[key], r.paths[key] = append(r.bytes[key], data...), file.Path
	r.room -= len(data)
	return nil
}

func (r *recorder) Gap(file File, offset, length int64, reason pack.Reason) error {
	r.gaps = append(r.gaps, fmt.Sprintf("%s %d+%d %s", file.Path, offset, length, reason))
	return nil
}

func (r *recorder) Closed(file Sized) error {
	r.closed[row{file.ID, file.Generation}] = file.Size
	return nil
}

// text returns the bytes of the only file of a path.
func (r *recorder) text(path string) string {
	r.t.Helper()
	var found []string
	for key, at := range r.paths {
		if at == path {
			found = append(found, string(r.bytes[key]))
		}
	}
	if len(found) != 1 {
		r.t.Errorf("%d files have the path %s, want one", len(found), path)
		return ""
	}
	return found[0]
}

// all returns all bytes that were sent.
func (r *recorder) all() string {
	var all []byte
	for _, data := range r.bytes {
		all = append(all, data...)
	}
	return string(all)
}

// node is a directory as Ray leaves it on a node, and a collector of it.
type node struct {
	t         testing.TB
	root      string
	collector *Collector
}

const session = "session_2026-11-01_10-00-00_000000_1"

func newNode(t testing.TB) *node {
	t.Helper()
	n := &node{t: t, root: t.TempDir()}
	n.must(os.MkdirAll(n.path(""), 0o777))
	n.start()
	return n
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// start starts a collector that knows nothing.
func (n *node) start() {
	n.t.Helper()
	redactor, err := redact.New([]string{token}, nil)
	n.must(err)
	n.collector, err = New(n.root, redactor)
	n.must(err)
	n.t.Cleanup(n.collector.Close)
}

func (n *node) path(name string) string { return filepath.Join(n.root, session, "logs", name) }

func (n *node) write(name, text string) {
	n.t.Helper()
	n.must(os.MkdirAll(filepath.Dir(n.path(name)), 0o777))
	file, err := os.OpenFile(n.path(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	n.must(err)
	_, err = file.WriteString(text)
	n.must(err)
	n.must(file.Close())
}

func (n *node) pass(sink Sink, times int) {
	n.t.Helper()
	for range times {
		_, err := n.collector.Pass(sink, false)
		n.must(err)
	}
}

func (n *node) last(sink Sink) {
	n.t.Helper()
	for range 3 {
		_, err := n.collector.Pass(sink, true)
		n.must(err)
	}
}

func TestPass_SendsWhatIsNew(t *testing.T) {
	n, sink := newNode(t), record(t)
	n.write("raylet.out", "one\n")
	n.write("serve/old/x/replica.log", "deep\n")
	n.pass(sink, 2)
	n.write("raylet.out", "two\nthr")
	n.write("empty.err", "")
	n.pass(sink, 2)
	if got := sink.text("raylet.out"); got != "one\ntwo\n" {
		t.Errorf("before the end: %q", got)
	}
	n.last(sink)
	if got := sink.text("raylet.out"); got != "one\ntwo\nthr" {
		t.Errorf("at the end: %q", got)
	}
	if got := sink.text("serve/old/x/replica.log"); got != "deep\n" {
		t.Errorf("a file in directories: %q", got)
	}
	var list []string
	for _, one := range n.collector.List() {
		list = append(list, fmt.Sprintf("%s %d", one.Path, one.Size))
	}
	slices.Sort(list)
	if want := []string{"empty.err 0", "raylet.out 11", "serve/old/x/replica.log 5"}; !slices.Equal(list, want) {
		t.Errorf("the list is %q", list)
	}
	if len(sink.gaps) > 0 {
		t.Errorf("gaps are %q", sink.gaps)
	}
}

// create makes a missing file, with an ID that no file has had: a file that has the inode of one which was removed within the
// same tick of the clock is taken for that one, made shorter. Files of Ray are not rotated as fast.
func (n *node) create(name string, used map[pack.FileID]bool) {
	n.t.Helper()
	if _, err := os.Lstat(n.path(name)); err == nil {
		return
	}
	for {
		n.write(name, "")
		now, err := statx(unix.AT_FDCWD, n.path(name), 0)
		n.must(err)
		if !used[now.id] {
			used[now.id] = true
			return
		}
		n.must(os.Remove(n.path(name))) // the next one is made a moment later
	}
}

// TestPass_FollowsRotation writes and rotates as Ray does, with a pass now and then.
func TestPass_FollowsRotation(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		n, sink := newNode(t), record(t)
		want, written, used := map[int]string{}, 0, map[pack.FileID]bool{}
		for range 60 {
			switch random.IntN(4) {
			case 0:
				_ = os.Remove(n.path("a.3"))
				for _, i := range []int{2, 1} {
					_ = os.Rename(n.path(fmt.Sprintf("a.%d", i)), n.path(fmt.Sprintf("a.%d", i+1)))
				}
				_ = os.Rename(n.path("a"), n.path("a.1"))
				written++
				// Each file is seen once before it is removed, as three rotations take longer than a pass.
				n.pass(sink, 1)
			case 1:
				n.pass(sink, 1)
			default:
				text := fmt.Sprintf("line %d of file %d\n", random.IntN(1000), written)
				n.create("a", used)
				n.write("a", text)
				want[written] += text
			}
		}
		n.pass(sink, lastPasses+1)
		n.last(sink)
		got := slices.Sorted(func(yield func(string) bool) {
			for _, data := range sink.bytes {
				if !yield(string(data)) {
					return
				}
			}
		})
		if wanted := slices.Sorted(maps.Values(want)); !slices.Equal(got, wanted) || len(sink.gaps) > 0 {
			t.Fatalf("seed %d: %q, want %q, with the gaps %q", seed, got, wanted, sink.gaps)
		}
	}
}

func TestPass_ReadsARemovedFileToItsEnd(t *testing.T) {
	n, sink := newNode(t), record(t)
	n.write("a", "seen\n")
	file, err := os.OpenFile(n.path("a"), os.O_APPEND|os.O_WRONLY, 0)
	n.must(err)
	n.pass(sink, 1)
	n.must(os.Remove(n.path("a")))
	n.pass(sink, 1)
	_, err = file.WriteString("after it was removed, without an end")
	n.must(err)
	n.must(file.Close())
	n.pass(sink, lastPasses+2)
	if got := sink.text("a"); got != "seen\nafter it was removed, without an end" || len(sink.gaps) > 0 {
		t.Errorf("%q, with the gaps %q", got, sink.gaps)
	}
	if len(sink.closed) != 1 || n.collector.open != 0 {
		t.Errorf("%d files ended, %d descriptors are open", len(sink.closed), n.collector.open)
	}
}

func TestPass_NotesWhatWasRemovedUnread(t *testing.T) {
	n, sink := newNode(t), record(t)
	n.write("a", "never sent\n")
	sink.room = 0
	n.pass(sink, 1)
	for _, file := range n.collector.files {
		n.collector.close(file) // as if it were one too many
	}
	n.must(os.Remove(n.path("a")))
	n.pass(sink, 1)
	if want := []string{"a 0+11 RotatedAway"}; !slices.Equal(sink.gaps, want) || len(sink.closed) != 1 {
		t.Errorf("gaps are %q, want %q; %d files ended", sink.gaps, want, len(sink.closed))
	}
}

func TestPass_MakesAShorterFileAnotherGeneration(t *testing.T) {
	for name, next := range map[string]string{
		"shorter": "x\n", "as long, with other bytes": "twoone\n", "grown beyond": strings.Repeat("other\n", 10),
	} {
		n, sink := newNode(t), record(t)
		n.write("a", "onetwo\n")
		n.pass(sink, 1)
		n.must(os.Truncate(n.path("a"), 0))
		n.write("a", next)
		if len(next) == 7 {
			n.pass(sink, 1)
			n.write("a", "more\n") // bytes of the same number show with the next ones
			next += "more\n"
		}
		n.pass(sink, 1)
		var got []string
		for key, data := range sink.bytes {
			got = append(got, fmt.Sprintf("%d %s", key.Generation, data))
		}
		slices.Sort(got)
		if want := []string{"0 onetwo\n", "1 " + next}; !slices.Equal(got, want) || len(sink.gaps) != 1 || len(sink.closed) != 1 {
			t.Errorf("%s: %q, want %q; gaps %q", name, got, want, sink.gaps)
		}
	}
}

// TestPass_DoubtsAFileThatIsBack gives a file that had ended other bytes, as where another file gets its inode within one tick of the
// file system's clock.
func TestPass_DoubtsAFileThatIsBack(t *testing.T) {
	for next, want := range map[string][]string{"other\n": {"0 first\n", "1 other\n"}, "first\n": {"0 first\n"}} {
		n, sink := newNode(t), record(t)
		n.write("a", "first\n")
		n.pass(sink, 1)
		away := filepath.Join(n.root, "away")
		n.must(os.Rename(n.path("a"), away))
		n.pass(sink, lastPasses+1)
		if len(sink.closed) != 1 {
			t.Fatalf("%d files ended", len(sink.closed))
		}
		n.must(os.WriteFile(away, []byte(next), 0o600))
		n.must(os.Rename(away, n.path("a")))
		n.pass(sink, 2)
		var got []string
		for key, data := range sink.bytes {
			got = append(got, fmt.Sprintf("%d %s", key.Generation, data))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPass_KeepsToTheRoom(t *testing.T) {
	n, sink := newNode(t), record(t)
	n.write("flood", strings.Repeat("x\n", 2<<20))
	n.write("small", "hello\n")
	for range 3 {
		sink.room = 2<<20 + 100
		n.pass(sink, 1)
	}
	if got := sink.text("small"); got != "hello\n" {
		t.Errorf("a file beside a flood: %q", got)
	}
	if got := len(sink.text("flood")); got > 3*(perPass+pack.MaxRun) {
		t.Errorf("%d bytes of a flood were read in three passes", got)
	}
	before := len(sink.all())
	sink.room = 100
	n.pass(sink, 1)
	if got := len(sink.all()) - before; got != 100 {
		t.Errorf("%d bytes were sent with room for 100", got)
	}
}

func TestPass_RedactsAcrossPasses(t *testing.T) {
	n, sink := newNode(t), record(t)
	for _, piece := range []string{"a " + token[:4], token[4:8], token[8:] + " b\n"} {
		n.write("a", piece)
		n.pass(sink, 1)
	}
	n.write("export_events/event_EXPORT_SUBMISSION_JOB.log", `{"runtimeEnvJson": "{\"env_vars\": {\"A\": \"canary\"}}"}`+"\n")
	n.write("b", `{"env_vars": {"A": "shown"}}`+"\n")
	n.pass(sink, 1)
	if got, want := sink.text("a"), "a "+strings.Repeat("*", len(token))+" b\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if all := sink.all(); strings.Contains(all, "canary") || !strings.Contains(all, "shown") {
		t.Errorf("%q: want no values of variables in exported events, and no other file changed", all)
	}
}

func TestResume_GoesOnWhereItWasAcknowledged(t *testing.T) {
	n, sink := newNode(t), record(t)
	n.write("a", "one\ntwo\n")
	n.write("gone", "read\n")
	n.write("closed", "all of it\n")
	n.pass(sink, 1)
	positions := []Position{{File: File{ID: pack.MakeFileID(1, 2), Path: "ended"}, Offset: 9, IsClosed: true}}
	for key, path := range sink.paths {
		positions = append(positions, Position{File: File{key.ID, key.Generation, path}, Offset: 4, IsClosed: path == "closed"})
	}
	n.must(os.Remove(n.path("gone")))
	n.must(os.Remove(n.path("closed")))
	n.write("a", "three\n")
	n.write("new", "new\n")

	n.start()
	n.collector.Resume(positions)
	again := record(t)
	n.pass(again, 2)
	if got := again.text("a"); got != "two\nthree\n" {
		t.Errorf("a second collector sends %q", got)
	}
	if got := again.text("new"); got != "new\n" {
		t.Errorf("a second collector sends %q of a new file", got)
	}
	if want := []string{"gone 4+0 RotatedAway"}; !slices.Equal(again.gaps, want) {
		t.Errorf("gaps are %q, want %q", again.gaps, want)
	}

	// The other replica has nothing of a.
	third := record(t)
	n.collector.Resume(nil)
	n.pass(third, 1)
	if got := third.text("a"); got != "one\ntwo\nthree\n" {
		t.Errorf("to a replica without the file goes %q", got)
	}
}

func TestResume_MakesAShorterFileTheNextGeneration(t *testing.T) {
	n, sink := newNode(t), record(t)
	n.write("a", "long enough\n")
	n.pass(sink, 1)
	var positions []Position
	for key := range sink.paths {
		positions = append(positions, Position{File: File{key.ID, 6, "a"}, Offset: 12})
	}
	n.must(os.Truncate(n.path("a"), 0))
	n.write("a", "x\n")
	n.start()
	n.collector.Resume(positions)
	again := record(t)
	n.pass(again, 1)
	for key, data := range again.bytes {
		if key.Generation != 7 || string(data) != "x\n" {
			t.Errorf("generation %d has %q, want generation 7", key.Generation, data)
		}
	}
	if len(again.bytes) != 1 {
		t.Errorf("%d files were sent", len(again.bytes))
	}
}
