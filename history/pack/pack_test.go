package pack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files")

var (
	cluster = UID{1, 2, 3}
	podA    = UID{0xa}
	podB    = UID{0xb}
)

func fileOf(pod UID, inode uint64, path string) File {
	return File{FileKey: FileKey{Pod: pod, ID: MakeFileID(inode, 7)}, Path: path}
}

func encoder(t testing.TB) *Encoder {
	t.Helper()
	made, err := NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func decoder(t testing.TB) *Decoder {
	t.Helper()
	made, err := NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func finish(t testing.TB, w *Writer) []byte {
	t.Helper()
	object, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// contents returns the bytes of each file that a pack has, by offset. It fails where two runs of a file meet.
func contents(t testing.TB, object []byte) (*Index, map[FileKey]map[int64]string) {
	t.Helper()
	d := decoder(t)
	index, err := d.Open(bytes.NewReader(object), int64(len(object)))
	must(t, err)
	all := map[FileKey]map[int64]string{}
	for _, run := range index.Runs {
		data, err := d.Read(bytes.NewReader(object), run)
		must(t, err)
		key := index.Files[run.File].FileKey
		if all[key] == nil {
			all[key] = map[int64]string{}
		}
		all[key][run.Offset] = string(data)
	}
	return index, all
}

func TestPack_GivesBackWhatWasAdded(t *testing.T) {
	e := encoder(t)
	rapid.Check(t, func(r *rapid.T) {
		w := e.NewWriter(cluster, 5)
		ends, want := map[FileKey]int64{}, map[FileKey]string{}
		for range rapid.IntRange(1, 30).Draw(r, "chunks") {
			file := fileOf(podA, uint64(rapid.IntRange(1, 4).Draw(r, "inode")), "worker.out")
			data := bytes.Repeat([]byte{rapid.Byte().Draw(r, "byte")}, rapid.SampledFrom([]int{1, 100, MaxRun - 1, MaxRun}).Draw(r, "length"))
			must(t, w.Add(file, ends[file.FileKey], 9, data))
			ends[file.FileKey] += int64(len(data))
			want[file.FileKey] += string(data)
		}
		_, got := contents(t, finish(t, w))
		for key, text := range want {
			var all strings.Builder
			for offset := int64(0); offset < int64(len(text)); {
				run := got[key][offset]
				if run == "" {
					r.Fatalf("no run begins at %d", offset)
				}
				all.WriteString(run)
				offset += int64(len(run))
			}
			if all.String() != text {
				r.Fatalf("%d bytes of %v differ from the %d that were added", all.Len(), key, len(text))
			}
		}
	})
}

func TestWriter_JoinsWhatFollows(t *testing.T) {
	a, b := fileOf(podA, 1, "a"), fileOf(podA, 2, "b")
	w := encoder(t).NewWriter(cluster, 0)
	must(t, w.Add(a, 0, 10, []byte("one ")))
	must(t, w.Add(b, 5, 11, []byte("other")))
	must(t, w.Add(a, 4, 12, []byte("two")))
	must(t, w.Add(a, 100, 13, []byte("after a hole")))
	must(t, w.Add(File{FileKey: a.FileKey, Path: "a.1"}, 112, 14, []byte(", renamed")))
	index, got := contents(t, finish(t, w))
	want := map[FileKey]map[int64]string{
		a.FileKey: {0: "one two", 100: "after a hole, renamed"},
		b.FileKey: {5: "other"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(index.Files) != 2 || index.Files[0].Path != "a.1" {
		t.Errorf("files are %v: want the newest path of each", index.Files)
	}
	if index.Runs[0].At != 12 {
		t.Errorf("a run was read at %d: want the time of its last byte", index.Runs[0].At)
	}
}

func TestWriter_KeepsThePathThatAListDoesNotHave(t *testing.T) {
	a, b := fileOf(podA, 1, "a"), fileOf(podA, 2, "")
	w := encoder(t).NewWriter(cluster, 0)
	must(t, w.Add(a, 0, 1, []byte("x")))
	must(t, w.AddList(podA, true, []File{{FileKey: a.FileKey}, b}, []Size{{Size: 1}, {Size: 2}}))
	index, _ := contents(t, finish(t, w))
	if index.Files[0].Path != "a" || index.Files[1].Path != "" {
		t.Errorf("the files are %v", index.Files)
	}
	w = encoder(t).NewWriter(cluster, 0)
	if err := w.Add(b, 0, 1, []byte("x")); !errors.Is(err, ErrInvalid) {
		t.Errorf("bytes of a file without a path: %v", err)
	}
}

func TestWriter_RefusesWhatNoReaderAccepts(t *testing.T) {
	good := fileOf(podA, 1, "a")
	for name, add := range map[string]func(*Writer) error{
		"a path that leads out":      func(w *Writer) error { return w.Add(fileOf(podA, 1, "../a"), 0, 0, []byte("x")) },
		"a chunk above its bound":    func(w *Writer) error { return w.Add(good, 0, 0, make([]byte, MaxRun+1)) },
		"an offset above its bound":  func(w *Writer) error { return w.Add(good, MaxOffset+1, 0, []byte("x")) },
		"an offset below zero":       func(w *Writer) error { return w.Add(good, -1, 0, []byte("x")) },
		"a gap without a reason":     func(w *Writer) error { return w.AddGap(good, Gap{Length: 1}) },
		"a line of use that is long": func(w *Writer) error { w.AddUse(Use{1, make([]byte, MaxLine+1)}); return nil },
		"an object that leads out":   func(w *Writer) error { return w.AddRun(good, "../other/p", Run{Length: 1, Size: 1}) },
		"a run without bytes":        func(w *Writer) error { return w.AddRun(good, "f/1", Run{}) },
		"a list with a bad path":     func(w *Writer) error { return w.AddList(podA, true, []File{{Path: "/"}}, []Size{{Size: 1}}) },
	} {
		w := encoder(t).NewWriter(cluster, 0)
		err := add(w)
		if err == nil {
			_, err = w.Finish()
		}
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWriter_BoundsItsMemory(t *testing.T) {
	w, data := encoder(t).NewWriter(cluster, 0), bytes.Repeat([]byte("x"), MaxRun)
	var err error
	for i := int64(0); err == nil && i < 1<<20; i++ {
		// Each chunk leaves a byte out, so all wait for a frame of their own.
		err = w.Add(fileOf(podA, uint64(i), "a"), 0, 0, data[1:])
	}
	if !errors.Is(err, ErrInvalid) || w.Size() > MaxObject/2 {
		t.Errorf("a pack takes %d bytes: %v", w.Size(), err)
	}
}

// sample is a pack with an entry of each kind.
func sample(t testing.TB) []byte {
	t.Helper()
	a, b := fileOf(podA, 1, "worker-1.out"), fileOf(podB, 2, "events/event\n\x1b[1m.log")
	b.Generation, b.Kind = 3, Events
	w := encoder(t).NewWriter(cluster, 1760000000000)
	must(t, w.Add(a, 0, 1, []byte("hello\n")))
	must(t, w.Add(b, 1<<40, 2, []byte("far\n")))
	must(t, w.AddGap(b, Gap{Offset: 4, Length: 0, Reason: RotatedAway, At: 3}))
	must(t, w.AddList(podA, false, []File{a}, []Size{{Size: 6, Acked: 5}}))
	must(t, w.AddList(UID{0xc}, true, nil, nil))
	must(t, w.AddRun(a, "f/1-2", Run{Offset: 6, Length: 5, At: 4, Place: 8, Size: 9, Sum: 10}))
	w.AddUse(Use{29333333, []byte(`{"cpu":4}`)})
	return finish(t, w)
}

// sampleIndex is what sample says. Places and sizes of frames are compression's.
func sampleIndex() *Index {
	a, b := fileOf(podA, 1, "worker-1.out"), fileOf(podB, 2, "events/event\n\x1b[1m.log")
	b.Generation, b.Kind = 3, Events
	return &Index{
		Cluster: cluster, At: 1760000000000, Files: []File{a, b},
		Runs: []Run{
			{File: 0, Offset: 6, Length: 5, At: 4, Object: 1, Place: 8, Size: 9, Sum: 10},
			{File: 0, Length: 6, At: 1, Sum: sum([]byte("hello\n"))},
			{File: 1, Offset: 1 << 40, Length: 4, At: 2, Sum: sum([]byte("far\n"))},
		},
		Gaps:    []Gap{{File: 1, Offset: 4, Reason: RotatedAway, At: 3}},
		Lists:   []List{{Pod: podA, Files: []Size{{0, 6, 5}}}, {Pod: UID{0xc}, IsFinal: true}},
		Objects: []string{"f/1-2"}, Uses: []Use{{29333333, []byte(`{"cpu":4}`)}},
	}
}

// TestOpen_ReadsVersion1 reads bytes that were written once: each later version must read them.
func TestOpen_ReadsVersion1(t *testing.T) {
	const golden = "testdata/v1.pack"
	if *update {
		must(t, os.WriteFile(golden, sample(t), 0o644))
	}
	stored, err := os.ReadFile(golden)
	must(t, err)
	for name, object := range map[string][]byte{"stored": stored, "written now": sample(t)} {
		index, err := decoder(t).Open(bytes.NewReader(object), int64(len(object)))
		must(t, err)
		for i := range index.Runs {
			if index.Runs[i].Object == 0 {
				index.Runs[i].Place, index.Runs[i].Size = 0, 0
			}
		}
		if diff := cmp.Diff(sampleIndex(), index); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestOpen_FindsEachChangedByte(t *testing.T) {
	whole, d := sample(t), decoder(t)
	read := func(object []byte) (text string, err error) {
		index, err := d.Open(bytes.NewReader(object), int64(len(object)))
		if err != nil {
			return "", err
		}
		for _, run := range index.Runs {
			if run.Object > 0 {
				continue
			}
			data, err := d.Read(bytes.NewReader(object), run)
			if err != nil {
				return "", err
			}
			text += string(data)
		}
		return text, nil
	}
	for i := len(magic); i < len(whole); i++ {
		object := slices.Clone(whole)
		object[i] ^= 0x10
		// Some bits of a frame's head change nothing.
		if text, err := read(object); !errors.Is(err, ErrInvalid) && (err != nil || text != "hello\nfar\n") {
			t.Errorf("byte %d of %d was changed: %q, %v", i, len(whole), text, err)
		}
	}
	for i := range whole {
		if _, err := read(whole[:i]); !errors.Is(err, ErrInvalid) {
			t.Errorf("a pack of %d of %d bytes: %v", i, len(whole), err)
		}
	}
}

// sealed returns a pack whose index is the given bytes.
func sealed(t testing.TB, raw []byte) []byte {
	t.Helper()
	object := encoder(t).zstd.EncodeAll(raw, []byte(magic))
	trailer := binary.BigEndian.AppendUint64(nil, uint64(len(magic)))
	trailer = binary.BigEndian.AppendUint32(trailer, uint32(len(object)-len(magic)))
	trailer = binary.BigEndian.AppendUint32(trailer, uint32(len(raw)))
	trailer = binary.BigEndian.AppendUint32(trailer, sum(object[len(magic):]))
	trailer = binary.BigEndian.AppendUint32(trailer, sum(trailer))
	return append(append(object, trailer...), trailerMagic...)
}

// parts joins bytes and numbers, which become varints.
func parts(all ...any) []byte {
	var b []byte
	for _, part := range all {
		switch part := part.(type) {
		case int:
			b = binary.AppendUvarint(b, uint64(part))
		case string:
			b = append(b, part...)
		case []byte:
			b = append(b, part...)
		}
	}
	return b
}

func section(kind int, all ...any) []byte {
	body := parts(all...)
	return parts(kind, len(body), body)
}

func TestOpen_JudgesEachSection(t *testing.T) {
	sixteen := strings.Repeat("u", 16)
	header, pods := section(sectionHeader, sixteen, 1), section(sectionPods, 1, sixteen)
	file := func(path string) []byte { return section(sectionFiles, 1, 0, sixteen, 0, 0, len(path), path) }
	good := parts(header, pods, file("a"))
	many := func(text string) string { return strings.Repeat(text, MaxPath+1)[:MaxPath+1] }
	for name, test := range map[string]struct {
		raw  []byte
		good bool
	}{
		"a header alone":                   {raw: header, good: true},
		"a file":                           {raw: good, good: true},
		"an unknown optional section":      {raw: parts(good, section(65, "anything")), good: true},
		"an unknown section":               {raw: parts(good, section(9, "anything"))},
		"no header":                        {raw: pods},
		"nothing":                          {raw: []byte{0}},
		"a section twice":                  {raw: parts(header, pods, pods)},
		"sections out of order":            {raw: parts(header, file("a"), pods)},
		"more entries than bytes":          {raw: parts(header, section(sectionPods, MaxFiles, sixteen))},
		"bytes after the entries":          {raw: parts(header, section(sectionPods, 1, sixteen, "x"))},
		"a section beyond the end":         {raw: parts(header, sectionPods, 100, "x")},
		"a pod that is not listed":         {raw: parts(header, pods, section(sectionFiles, 1, 1, sixteen, 0, 0, 1, "a"))},
		"a kind that is not known":         {raw: parts(header, pods, section(sectionFiles, 1, 0, sixteen, 0, int(kinds), 1, "a"))},
		"a generation above its bound":     {raw: parts(header, pods, section(sectionFiles, 1, 0, sixteen, 1<<32, 0, 1, "a"))},
		"a path of three directories":      {raw: parts(header, pods, file("a/b/c/d")), good: true},
		"a path of four directories":       {raw: parts(header, pods, file("a/b/c/d/e"))},
		"a path that leads out":            {raw: parts(header, pods, file("a/../b"))},
		"a path from the root":             {raw: parts(header, pods, file("/a"))},
		"a file of a list without a path":  {raw: parts(header, pods, file(""), section(sectionLists, 1, 0, 1, 1, 0, 9, 9)), good: true},
		"a run of a file without a path":   {raw: parts(header, pods, file(""), section(sectionRuns, 1, 0, 0, 1, 0, 1, 8, 9, "sums"), section(sectionObjects, 1, 3, "f/1"))},
		"a path with a NUL":                {raw: parts(header, pods, file("a\x00b"))},
		"a path above its bound":           {raw: parts(header, pods, file(many("a")))},
		"a path of odd characters":         {raw: parts(header, pods, file("a\n\x1b[2J\xff")), good: true},
		"a run":                            {raw: parts(good, section(sectionRuns, 1, 0, 0, 1, 0, 1, 8, 9, "sums"), section(sectionObjects, 1, 3, "f/1")), good: true},
		"a run in an object without name":  {raw: parts(good, section(sectionRuns, 1, 0, 0, 1, 0, 1, 8, 9, "sums"))},
		"a run outside of the frames":      {raw: parts(good, section(sectionRuns, 1, 0, 0, 1, 0, 0, 8, 9, "sums"))},
		"a run of no bytes":                {raw: parts(good, section(sectionRuns, 1, 0, 0, 0, 0, 1, 8, 9, "sums"), section(sectionObjects, 1, 3, "f/1"))},
		"a run above its bound":            {raw: parts(good, section(sectionRuns, 1, 0, 0, MaxRun+1, 0, 1, 8, 9, "sums"), section(sectionObjects, 1, 3, "f/1"))},
		"a run at a far offset":            {raw: parts(good, section(sectionRuns, 1, 0, MaxOffset+1, 1, 0, 1, 8, 9, "sums"), section(sectionObjects, 1, 3, "f/1"))},
		"a frame above its bound":          {raw: parts(good, section(sectionRuns, 1, 0, 0, 1, 0, 1, 8, MaxFrame+1, "sums"), section(sectionObjects, 1, 3, "f/1"))},
		"an object of another archive":     {raw: parts(good, section(sectionObjects, 1, 4, "../f"))},
		"an object from the root":          {raw: parts(good, section(sectionObjects, 1, 2, "/f"))},
		"a gap":                            {raw: parts(good, section(sectionGaps, 1, 0, 0, 0, 1, 0)), good: true},
		"a gap without a reason":           {raw: parts(good, section(sectionGaps, 1, 0, 0, 0, 0, 0))},
		"a gap with an unknown reason":     {raw: parts(good, section(sectionGaps, 1, 0, 0, 0, int(reasons), 0))},
		"a list":                           {raw: parts(good, section(sectionLists, 1, 0, 1, 1, 0, 9, 9)), good: true},
		"a list of more files than bytes":  {raw: parts(good, section(sectionLists, 1, 0, 1, 9, 0, 9, 9))},
		"a list with a file not listed":    {raw: parts(good, section(sectionLists, 1, 0, 1, 1, 1, 9, 9))},
		"a line of use":                    {raw: parts(header, section(sectionUse, 1, 5, 2, "{}")), good: true},
		"a line of use beyond the section": {raw: parts(header, section(sectionUse, 1, 5, 3, "{}"))},
	} {
		object := sealed(t, test.raw)
		_, err := decoder(t).Open(bytes.NewReader(object), int64(len(object)))
		if test.good && err != nil || !test.good && !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// counting counts reads.
type counting struct {
	*bytes.Reader
	reads int
}

func (c *counting) ReadAt(b []byte, offset int64) (int, error) {
	c.reads++
	return c.Reader.ReadAt(b, offset)
}

func TestOpen_ReadsALongIndexInTwo(t *testing.T) {
	for files, want := range map[int]int{10: 1, 20000: 2} {
		w := encoder(t).NewWriter(cluster, 0)
		for i := range files {
			must(t, w.Add(fileOf(podA, uint64(i)*0x9e3779b97f4a7c15, "a"), 0, 0, []byte{byte(i), byte(i >> 8)}))
		}
		object := finish(t, w)
		reader := &counting{Reader: bytes.NewReader(object)}
		index, err := decoder(t).Open(reader, int64(len(object)))
		must(t, err)
		if reader.reads != want || len(index.Files) != files {
			t.Errorf("%d files of %d took %d reads of a pack of %d bytes, want %d", len(index.Files), files, reader.reads, len(object), want)
		}
	}
}

func TestRead_TakesNoMoreThanTheRun(t *testing.T) {
	bomb, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	must(t, err)
	packed := bomb.EncodeAll(make([]byte, 256<<20), nil)
	d := decoder(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = d.Read(bytes.NewReader(packed), Run{Length: 100, Size: len(packed), Sum: 1})
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrInvalid) {
		t.Errorf("a frame of 256 MiB for a run of 100 bytes: %v", err)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 4<<20 {
		t.Errorf("it took %d bytes", taken)
	}
	if _, err := d.Read(bytes.NewReader(packed), Run{Length: MaxRun + 1, Size: len(packed)}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a run above its bound: %v", err)
	}
}

func TestUID_IsReadAsKubernetesWritesIt(t *testing.T) {
	const text = "6f0c1a2b-0304-4506-8708-090a0b0c0d0e"
	if uid, err := ParseUID(text); err != nil || uid.String() != text {
		t.Errorf("ParseUID(%s) = %s, %v", text, uid, err)
	}
	for _, bad := range []string{"", "x", strings.ReplaceAll(text, "-", "0"), text + "0", "6f0c1a2b-0304-4506-8708-090a0b0c0d0g"} {
		if _, err := ParseUID(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("ParseUID(%q): %v", bad, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(sample(f))
	f.Add(sealed(f, section(sectionHeader, strings.Repeat("u", 16), 1)))
	d := decoder(f)
	f.Fuzz(func(t *testing.T, object []byte) {
		index, err := d.Open(bytes.NewReader(object), int64(len(object)))
		if err != nil {
			return
		}
		for _, run := range index.Runs {
			if data, err := d.Read(bytes.NewReader(object), run); err == nil && int64(len(data)) != run.Length {
				t.Errorf("a run of %d bytes has %d", run.Length, len(data))
			}
		}
	})
}

func FuzzIndex(f *testing.F) {
	raw, err := sampleIndex().withFrames().encode()
	must(f, err)
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		first, err := decodeIndex(raw)
		if err != nil {
			return
		}
		again, err := first.encode()
		must(t, err)
		second, err := decodeIndex(again)
		must(t, err)
		if diff := cmp.Diff(first, second); diff != "" {
			t.Error(diff)
		}
	})
}

// withFrames gives each run a frame.
func (x *Index) withFrames() *Index {
	for i := range x.Runs {
		x.Runs[i].Place, x.Runs[i].Size = 8, 9
	}
	return x
}
