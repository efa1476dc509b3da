package index

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/history/pack"
)

var (
	cluster = pack.UID{1}
	pod     = pack.UID{2}
	log     = pack.File{FileKey: pack.FileKey{Pod: pod, ID: pack.MakeFileID(1, 1)}, Path: "worker.out"}
)

// source is a pack of the file log: runs and gaps by offset and length, and where isListed, a list with its size.
type source struct {
	name        string
	at          int64
	runs        [][2]int64
	gaps        []pack.Gap
	size, acked int64
	isListed    bool
}

func (s source) index() *pack.Index {
	x := &pack.Index{Cluster: cluster, At: s.at, Files: []pack.File{log}, Gaps: s.gaps}
	for i, run := range s.runs {
		x.Runs = append(x.Runs, pack.Run{Offset: run[0], Length: run[1], At: s.at, Place: int64(i), Size: 1})
	}
	if s.isListed {
		x.Lists = []pack.List{{Pod: pod, IsFinal: true, Files: []pack.Size{{Size: s.size, Acked: s.acked}}}}
	}
	return x
}

func archiveOf(t testing.TB, sources ...source) *Archive {
	t.Helper()
	a := New(cluster)
	for _, one := range sources {
		if err := a.Add(one.name, one.index()); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// part is a range without what compression decides.
type part struct {
	Offset, Length int64
	From           string
	Skip           int64
}

func partsOf(layout []Range) []part {
	var all []part
	for _, one := range layout {
		from := one.Object
		if one.Reason > 0 {
			from = one.Reason.String()
		}
		all = append(all, part{one.Offset, one.Length, from, one.Skip})
	}
	return all
}

// layoutCase is what sources say, how the pod ended, and what the layout must be.
type layoutCase struct {
	sources []source
	ending  Ending
	want    []part
}

func rotated(offset, length int64) []pack.Gap {
	return []pack.Gap{{Offset: offset, Length: length, Reason: pack.RotatedAway}}
}

func judgeLayouts(t *testing.T, cases map[string]layoutCase) {
	t.Helper()
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			for _, sources := range permutations(test.sources) {
				if diff := cmp.Diff(test.want, partsOf(archiveOf(t, sources...).Layout(log.FileKey, test.ending))); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestLayout_MergesByOffset(t *testing.T) {
	judgeLayouts(t, map[string]layoutCase{
		"one after another": {
			sources: []source{{name: "p/1", at: 1, runs: [][2]int64{{0, 10}}}, {name: "p/2", at: 2, runs: [][2]int64{{10, 5}}}},
			want:    []part{{0, 10, "p/1", 0}, {10, 5, "p/2", 0}},
		},
		"what another replica got again is read once": {
			sources: []source{{name: "p/1", at: 1, runs: [][2]int64{{0, 10}}}, {name: "p/2", at: 2, runs: [][2]int64{{4, 10}}}},
			want:    []part{{0, 10, "p/1", 0}, {10, 4, "p/2", 6}},
		},
		"the first pack wins in the middle of a later one": {
			sources: []source{{name: "p/2", at: 2, runs: [][2]int64{{0, 20}}}, {name: "p/1", at: 1, runs: [][2]int64{{5, 5}}}},
			want:    []part{{0, 5, "p/2", 0}, {5, 5, "p/1", 0}, {10, 10, "p/2", 10}},
		},
		"of one time the smaller name wins": {
			sources: []source{{name: "p/1-b", at: 1, runs: [][2]int64{{0, 5}}}, {name: "p/1-a", at: 1, runs: [][2]int64{{0, 5}}}},
			want:    []part{{0, 5, "p/1-a", 0}},
		},
		"a living pod's hole is on its way": {
			sources: []source{{name: "p/1", at: 1, runs: [][2]int64{{0, 5}, {8, 2}}}}, ending: Ending{},
			want: []part{{0, 5, "p/1", 0}, {8, 2, "p/1", 0}},
		},
		"a gap that is noted": {
			sources: []source{{name: "p/1", at: 1, runs: [][2]int64{{0, 5}, {8, 2}}, gaps: rotated(5, 3)}},
			want:    []part{{0, 5, "p/1", 0}, {5, 3, "RotatedAway", 0}, {8, 2, "p/1", 0}},
		},
		"a gap that another replica fills": {
			sources: []source{{name: "p/1", at: 1, runs: [][2]int64{{0, 5}}, gaps: rotated(5, 3)}, {name: "p/2", at: 2, runs: [][2]int64{{5, 3}}}},
			want:    []part{{0, 5, "p/1", 0}, {5, 3, "p/2", 0}},
		},
		"of two gaps the lower reason is shown": {
			sources: []source{{
				name: "p/1", at: 1, runs: [][2]int64{{10, 1}}, gaps: append(rotated(0, 10), pack.Gap{Offset: 2, Length: 4, Reason: pack.LimitReached}),
			}},
			want: []part{{0, 2, "RotatedAway", 0}, {2, 4, "LimitReached", 0}, {6, 4, "RotatedAway", 0}, {10, 1, "p/1", 0}},
		},
		"a gap without an end": {
			sources: []source{{name: "p/1", at: 1, runs: [][2]int64{{0, 5}}, gaps: rotated(5, 0)}},
			want:    []part{{0, 5, "p/1", 0}, {5, 0, "RotatedAway", 0}},
		},
	})
}

func TestLayout_SaysWhyBytesAreMissing(t *testing.T) {
	judgeLayouts(t, map[string]layoutCase{
		"a pod without a list: later bytes say what was acknowledged, and the end is open": {
			sources: []source{{name: "p/1", at: 1, runs: [][2]int64{{0, 5}, {8, 2}}}}, ending: Ending{At: 1, Reason: pack.NodeLost},
			want: []part{{0, 5, "p/1", 0}, {5, 3, "ArchiverAway", 0}, {8, 2, "p/1", 0}, {10, 0, "NodeLost", 0}},
		},
		"a pod that ended without a reason was killed": {
			sources: []source{{name: "p/1", at: 1, runs: [][2]int64{{0, 5}}}}, ending: Ending{At: 1},
			want: []part{{0, 5, "p/1", 0}, {5, 0, "Killed", 0}},
		},
		"a list: what was acknowledged is the archiver's loss, the rest the pod's end": {
			sources: []source{{name: "p/1", at: 1, runs: [][2]int64{{0, 5}}, isListed: true, size: 20, acked: 12}}, ending: Ending{At: 1},
			want: []part{{0, 5, "p/1", 0}, {5, 7, "ArchiverAway", 0}, {12, 8, "Killed", 0}},
		},
		"a list: what is noted comes before what is deduced": {
			sources: []source{{name: "p/1", at: 1, gaps: rotated(3, 4), isListed: true, size: 10, acked: 10}}, ending: Ending{At: 1},
			want: []part{{0, 3, "ArchiverAway", 0}, {3, 4, "RotatedAway", 0}, {7, 3, "ArchiverAway", 0}},
		},
		"a list, and all of it there": {
			sources: []source{{name: "p/1", at: 1, runs: [][2]int64{{0, 20}}, isListed: true, size: 20, acked: 20}}, ending: Ending{At: 1},
			want: []part{{0, 20, "p/1", 0}},
		},
		"two lists: the longer size counts": {
			sources: []source{{name: "p/1", at: 1, isListed: true, size: 5, acked: 5}, {name: "p/2", at: 2, isListed: true, size: 3}}, ending: Ending{At: 1},
			want: []part{{0, 5, "ArchiverAway", 0}},
		},
		"a gap at the end of all offsets": {
			sources: []source{{name: "p/1", at: 1, runs: [][2]int64{{0, 5}}, gaps: []pack.Gap{{Offset: pack.MaxOffset, Length: pack.MaxOffset, Reason: pack.Unreadable}}}},
			want:    []part{{0, 5, "p/1", 0}, {5, 0, "Unreadable", 0}},
		},
	})
}

// permutations returns sources in both orders, and the first one twice.
func permutations(sources []source) [][]source {
	reversed := slices.Clone(sources)
	slices.Reverse(reversed)
	return [][]source{sources, reversed, append(slices.Clone(sources), sources[0])}
}

// someSources returns packs with runs that overlap at will.
func someSources(random *rand.Rand) []source {
	var all []source
	for i := range 1 + random.IntN(6) {
		one := source{name: string(rune('a' + i)), at: random.Int64N(3)}
		for range random.IntN(5) {
			one.runs = append(one.runs, [2]int64{random.Int64N(60), 1 + random.Int64N(20)})
		}
		all = append(all, one)
	}
	return all
}

// eachByte is a plain model of the merge: for each byte, the first run that has it.
func eachByte(sources []source) (model [80]*located) {
	for _, one := range sources {
		for _, run := range one.index().Runs {
			candidate := located{Run: run, object: one.name, made: one.at}
			for b := run.Offset; b < candidate.end(); b++ {
				if model[b] == nil || candidate.before(*model[b]) < 0 {
					model[b] = &candidate
				}
			}
		}
	}
	return model
}

func TestLayout_IsThatOfEachByte(t *testing.T) {
	for seed := range uint64(2000) {
		sources := someSources(rand.New(rand.NewPCG(seed, 1)))
		layout := archiveOf(t, sources...).Layout(log.FileKey, Ending{})
		for b, want := range eachByte(sources) {
			got, is := At(layout, int64(b))
			switch {
			case is != (want != nil):
				t.Fatalf("seed %d: byte %d is there: %v", seed, b, is)
			case is && (got.Object != want.object || got.Run != want.Run || got.Skip-got.Offset != -want.Offset):
				t.Fatalf("seed %d: byte %d is in %+v, want %+v", seed, b, got, *want)
			}
		}
		for i := 1; i < len(layout); i++ {
			if layout[i-1].Offset+layout[i-1].Length > layout[i].Offset {
				t.Fatalf("seed %d: %+v overlaps %+v", seed, layout[i-1], layout[i])
			}
		}
	}
}

func TestState_FollowsListsAndBytes(t *testing.T) {
	other := pack.UID{3}
	whole := source{name: "p/1", at: 1, runs: [][2]int64{{0, 20}}, isListed: true, size: 20, acked: 20}
	short := source{name: "p/1", at: 1, runs: [][2]int64{{0, 10}}, isListed: true, size: 20, acked: 20}
	unlisted := source{name: "p/1", at: 1, runs: [][2]int64{{0, 20}}}
	gone := Ending{At: 1000, Reason: pack.Killed}
	for name, test := range map[string]struct {
		source  source
		endings map[pack.UID]Ending
		now     int64
		want    State
	}{
		"a pod lives":                           {whole, map[pack.UID]Ending{pod: {}}, 1e9, Collecting},
		"a pod without a record may live":       {whole, nil, 1e9, Collecting},
		"all is there":                          {whole, map[pack.UID]Ending{pod: gone}, 1001, Complete},
		"a byte is missing, and may still come": {short, map[pack.UID]Ending{pod: gone}, 1000 + ListWait - 1, Collecting},
		"a byte is missing":                     {short, map[pack.UID]Ending{pod: gone}, 1000 + ListWait, Incomplete},
		"the list is missing, and may come":     {unlisted, map[pack.UID]Ending{pod: gone}, 1000 + ListWait - 1, Collecting},
		"the list is missing":                   {unlisted, map[pack.UID]Ending{pod: gone}, 1000 + ListWait, Incomplete},
		"another pod lives":                     {whole, map[pack.UID]Ending{pod: gone, other: {}}, 1e9, Collecting},
		"another pod sent nothing at all":       {whole, map[pack.UID]Ending{pod: gone, other: gone}, 1e9, Incomplete},
	} {
		if got := archiveOf(t, test.source).State(test.endings, test.now); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestAcked_EndsAtTheFirstHole(t *testing.T) {
	for name, test := range map[string]struct {
		source source
		want   int64
	}{
		"nothing":         {source{runs: [][2]int64{{5, 5}}}, 0},
		"a hole":          {source{runs: [][2]int64{{0, 5}, {8, 5}}}, 5},
		"a gap, noted":    {source{runs: [][2]int64{{0, 5}, {8, 5}}, gaps: []pack.Gap{{Offset: 5, Length: 3, Reason: pack.RotatedAway}}}, 13},
		"a gap, unending": {source{runs: [][2]int64{{0, 5}}, gaps: []pack.Gap{{Offset: 5, Reason: pack.RotatedAway}}}, 5},
	} {
		if got := archiveOf(t, test.source).Acked(pod)[log.FileKey]; got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
	if got := archiveOf(t, source{runs: [][2]int64{{0, 5}}}).Acked(pack.UID{9}); len(got) != 0 {
		t.Errorf("another pod has %v", got)
	}
}

func TestAdd_RefusesAnotherCluster(t *testing.T) {
	if err := New(pack.UID{9}).Add("p/1", source{}.index()); !errors.Is(err, pack.ErrInvalid) {
		t.Error(err)
	}
}

func TestAdd_BoundsEntries(t *testing.T) {
	a, x := New(cluster), source{}.index()
	x.Runs = make([]pack.Run, MaxRuns/4)
	for i := range 4 {
		if err := a.Add("p/1", x); err != nil {
			t.Fatalf("pack %d: %v", i, err)
		}
	}
	if err := a.Add("p/2", source{runs: [][2]int64{{0, 1}}}.index()); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
}

func TestAdd_BelievesAListOfItsPodAlone(t *testing.T) {
	x := source{runs: [][2]int64{{0, 5}}}.index()
	x.Lists = []pack.List{{Pod: pack.UID{9}, IsFinal: true, Files: []pack.Size{{Size: 100, Acked: 100}}}}
	a := New(cluster)
	if err := a.Add("p/1", x); err != nil {
		t.Fatal(err)
	}
	if layout := a.Layout(log.FileKey, Ending{At: 1}); len(layout) != 2 || layout[1].Reason != pack.Killed {
		t.Errorf("the list of another pod says what the layout is: %+v", partsOf(layout))
	}
}

func TestState_NeedsTheLastList(t *testing.T) {
	for name, test := range map[string]struct {
		lists []pack.List
		want  State
	}{
		"a file that ended, and no last list":  {[]pack.List{{Pod: pod, Files: []pack.Size{{Size: 5}}}}, Incomplete},
		"a file that ended, and the last list": {[]pack.List{{Pod: pod, Files: []pack.Size{{Size: 5}}}, {Pod: pod, IsFinal: true}}, Complete},
		"a last list without the file":         {[]pack.List{{Pod: pod, IsFinal: true}}, Incomplete},
	} {
		a, x := New(cluster), source{runs: [][2]int64{{0, 5}}}.index()
		x.Lists = test.lists
		if err := a.Add("p/1", x); err != nil {
			t.Fatal(err)
		}
		if got := a.State(map[pack.UID]Ending{pod: {At: 1}}, 1e9); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestFiles_HaveTheirNewestName(t *testing.T) {
	early, late := source{at: 1}.index(), source{at: 2}.index()
	late.Files = []pack.File{{FileKey: log.FileKey, Path: "worker.out.1"}}
	for _, order := range [][]*pack.Index{{early, late}, {late, early}} {
		a := New(cluster)
		for _, x := range order {
			if err := a.Add("p", x); err != nil {
				t.Fatal(err)
			}
		}
		if got := a.Files(); len(got) != 1 || got[0].Path != "worker.out.1" {
			t.Errorf("files are %v", got)
		}
	}
}

// FuzzLayout looks for indexes that make a layout overlap, or go back.
func FuzzLayout(f *testing.F) {
	f.Add([]byte{0, 5, 0, 3, 9, 1, 200, 0, 2}, int64(1))
	f.Fuzz(func(t *testing.T, bytes []byte, ended int64) {
		x := source{}.index()
		for ; len(bytes) >= 3; bytes = bytes[3:] {
			offset, length := int64(bytes[0])<<(bytes[2]%56), int64(bytes[1])
			if bytes[2] < 128 {
				x.Runs = append(x.Runs, pack.Run{Offset: min(offset, pack.MaxOffset), Length: length + 1, Place: int64(len(bytes))})
			} else {
				length <<= bytes[2] % 56
				x.Gaps = append(x.Gaps, pack.Gap{Offset: min(offset, pack.MaxOffset), Length: min(length, pack.MaxOffset), Reason: pack.Reason(bytes[2]%6 + 1)})
			}
		}
		a := New(cluster)
		if err := a.Add("p", x); err != nil {
			t.Fatal(err)
		}
		place := int64(0)
		for _, one := range a.Layout(log.FileKey, Ending{At: max(0, ended)}) {
			if one.Offset < place || one.Length < 0 || one.Reason == 0 && (one.Skip < 0 || one.Skip+one.Length > one.Run.Length) {
				t.Fatalf("%+v follows %d", one, place)
			}
			place = one.Offset + one.Length
		}
	})
}

// TestFiles_PreferAPathToNone: a list of one replica can have files that only the other one has seen.
func TestFiles_PreferAPathToNone(t *testing.T) {
	listed := source{at: 9, size: 5, acked: 5, isListed: true}.index()
	listed.Files = []pack.File{{FileKey: log.FileKey}}
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		a := New(cluster)
		for _, i := range order {
			x := []*pack.Index{source{at: 1, runs: [][2]int64{{0, 5}}}.index(), listed}[i]
			if err := a.Add([]string{"p/1", "p/2"}[i], x); err != nil {
				t.Fatal(err)
			}
		}
		if files := a.Files(); len(files) != 1 || files[0].Path != log.Path {
			t.Errorf("in order %v the files are %v", order, files)
		}
	}
}
