package pack

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// records are one of each type.
func records() []Record {
	a, b := fileOf(podA, 1, "worker-1.out"), fileOf(podB, 2, "old/a\nb")
	b.Generation, b.Kind = 3, Dashboard
	return []Record{
		{Cluster: cluster, Chunk: &Chunk{File: a, Offset: 1 << 40, At: 1760000000000, Data: []byte("hello\n")}},
		{Cluster: cluster, Hole: &Hole{File: b, Offset: 5, Length: 7, At: 9, Reason: Unreadable}},
		{Cluster: cluster, Part: &Part{Pod: podA, Number: 0, Of: 2, Files: []Listed{{a.ID, 0, 6, 5}, {b.ID, 3, 1 << 41, 1 << 40}}}},
		{Cluster: cluster, Part: &Part{Pod: podA, Number: 1, Of: 2}},
		{Cluster: cluster, Part: &Part{Pod: podB, Files: []Listed{{a.ID, 0, 6, 6}}}},
	}
}

func segmentOf(t testing.TB, all []Record) []byte {
	t.Helper()
	b := AppendSegment(nil)
	for _, record := range all {
		var err error
		b, err = AppendRecord(b, record)
		must(t, err)
	}
	return b
}

func readSegment(segment []byte) (all []Record, whole int, err error) {
	whole, err = ReadSegment(segment, func(record Record) error { all = append(all, record); return nil })
	return all, whole, err
}

// TestReadSegment_ReadsVersion1 reads bytes that were written once: each later version must read them.
func TestReadSegment_ReadsVersion1(t *testing.T) {
	const golden = "testdata/v1.segment"
	written := segmentOf(t, records())
	if *update {
		must(t, os.WriteFile(golden, written, 0o644))
	}
	stored, err := os.ReadFile(golden)
	must(t, err)
	if !slices.Equal(stored, written) {
		t.Error("a segment is written otherwise than version 1")
	}
	all, whole, err := readSegment(stored)
	must(t, err)
	if diff := cmp.Diff(records(), all); diff != "" || whole != len(stored) {
		t.Errorf("%d of %d bytes are whole: %s", whole, len(stored), diff)
	}
}

func TestReadSegment_EndsWhereAWriteWasCut(t *testing.T) {
	whole, ends := segmentOf(t, records()), []int{len(segmentMagic)}
	for i := range records() {
		ends = append(ends, len(segmentOf(t, records()[:i+1])))
	}
	for size := len(segmentMagic); size <= len(whole); size++ {
		complete := 0
		for complete+1 < len(ends) && ends[complete+1] <= size {
			complete++
		}
		for name, rest := range map[string]int{"cut": 0, "zeros": 100} {
			all, read, err := readSegment(append(slices.Clone(whole[:size]), make([]byte, rest)...))
			// Zeros can be the end of a record that has zeros there.
			if err != nil || len(all) < complete || rest == 0 && len(all) != complete || len(all) == complete && read != ends[complete] {
				t.Fatalf("%s at %d: %d records of %d, %d bytes whole: %v", name, size, len(all), complete, read, err)
			}
		}
	}
}

func TestReadSegment_EndsAtAChangedByte(t *testing.T) {
	whole := segmentOf(t, records())
	first := len(segmentOf(t, records()[:1]))
	for i := first; i < len(whole); i++ {
		changed := slices.Clone(whole)
		changed[i] ^= 1
		if all, read, err := readSegment(changed); err != nil || len(all) == len(records()) || read > i {
			t.Errorf("byte %d was changed: %d records, %d bytes whole: %v", i, len(all), read, err)
		}
	}
	if _, _, err := readSegment([]byte("HLIOSP02")); !errors.Is(err, ErrInvalid) {
		t.Errorf("another magic: %v", err)
	}
}

func TestReadSegment_EndsWithTheErrorOfItsCaller(t *testing.T) {
	stop := errors.New("stop")
	if whole, err := ReadSegment(segmentOf(t, records()), func(Record) error { return stop }); !errors.Is(err, stop) || whole != len(segmentMagic) {
		t.Errorf("%d bytes are whole: %v", whole, err)
	}
}

func TestAppendRecord_RefusesWhatNoReaderAccepts(t *testing.T) {
	good := fileOf(podA, 1, "a")
	for name, record := range map[string]Record{
		"nothing":                       {},
		"a chunk without bytes":         {Chunk: &Chunk{File: good}},
		"a chunk above its bound":       {Chunk: &Chunk{File: good, Data: make([]byte, MaxRun+1)}},
		"a chunk with a bad path":       {Chunk: &Chunk{File: fileOf(podA, 1, "a//b"), Data: []byte("x")}},
		"a chunk at a far offset":       {Chunk: &Chunk{File: good, Offset: MaxOffset + 1, Data: []byte("x")}},
		"a chunk of an unknown kind":    {Chunk: &Chunk{File: File{Kind: kinds, Path: "a"}, Data: []byte("x")}},
		"a gap without a reason":        {Hole: &Hole{File: good}},
		"a part behind the last one":    {Part: &Part{Number: 2, Of: 2}},
		"a second part of none":         {Part: &Part{Number: 1}},
		"a part with too many files":    {Part: &Part{Of: 1, Files: make([]Listed, MaxListed+1)}},
		"a file of a list that is long": {Part: &Part{Of: 1, Files: []Listed{{Size: MaxOffset + 1}}}},
	} {
		if b, err := AppendRecord([]byte("kept"), record); !errors.Is(err, ErrInvalid) || string(b) != "kept" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	largest := Record{Chunk: &Chunk{File: good, Data: make([]byte, MaxRun)}}
	if _, err := AppendRecord(nil, largest); err != nil {
		t.Errorf("a chunk at its bound: %v", err)
	}
}

func FuzzReadSegment(f *testing.F) {
	f.Add(segmentOf(f, records()))
	f.Fuzz(func(t *testing.T, segment []byte) {
		all, whole, err := readSegment(segment)
		if err != nil {
			return
		}
		if again := segmentOf(t, all); !slices.Equal(again, segment[:whole]) {
			t.Errorf("%d records are written again in %d bytes, and were read from %d", len(all), len(again), whole)
		}
	})
}

func TestIsSegment_TellsVersionsFromTornWrites(t *testing.T) {
	for text, want := range map[string]bool{
		"HLIOSP01": true, "HLIOSP02 and more": true, "HLIOSP0": false, "HLIOSP0\x00": false, "HLIO\x00\x00\x00\x00": false, "HLIOPK01": false, "": false,
	} {
		if got := IsSegment([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
