package retain

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/history/pack"
)

func uid(n int) (uid pack.UID) {
	binary.BigEndian.PutUint32(uid[:], uint32(n))
	return uid
}

func key(n int) pack.FileKey { return pack.FileKey{Pod: uid(1), ID: pack.MakeFileID(uint64(n), 1)} }

// ended is a file that ended at a time, with a size.
func ended(n int, at, size int64) File {
	return File{Key: key(n), IsEnded: true, Last: at, Runs: []Run{{Length: size, At: at, Size: size}}}
}

// growing is a file that grows by a MiB an hour.
func growing(n, hours int) File {
	file := File{Key: key(n)}
	for i := range int64(hours) {
		file.Runs, file.Last = append(file.Runs, Run{Offset: i << 20, Length: 1 << 20, At: i * hour, Size: 100}), i*hour
	}
	return file
}

func archive(cluster int, files ...File) Archive {
	return Archive{Cluster: uid(cluster), Namespace: uid(100), KeepFor: 1000 * day, Files: files}
}

// cut names what goes by cluster, file, and offset, or -1 for the whole file.
type cut struct {
	Cluster, File int
	Offset        int64
	Cause         Cause
}

func cutsOf(all []Cut) []cut {
	var short []cut
	for _, one := range all {
		made := cut{int(binary.BigEndian.Uint32(one.Cluster[:])), int(binary.BigEndian.Uint64(one.File.ID[:8])), one.Run.Offset, one.Cause}
		if one.IsWhole {
			made.Offset = -1
		}
		short = append(short, made)
	}
	return short
}

func TestCuts_AreInOrder(t *testing.T) {
	short := archive(1, ended(1, 0, 10), ended(2, 5*hour, 10), growing(3, 1))
	short.KeepFor = hour
	gone := archive(1, ended(1, 0, 10), growing(2, 2))
	gone.NamespaceGone = 10 * hour
	for name, test := range map[string]struct {
		archives []Archive
		limits   Limits
		now      int64
		want     []cut
	}{
		"a file goes when it is as old as it must be kept": {[]Archive{short}, Limits{}, hour, []cut{{1, 1, -1, Expired}, {1, 3, -1, Expired}}},
		"and not before": {[]Archive{short}, Limits{}, hour - 1, nil},
		"all go when the namespace is gone for so long":     {[]Archive{gone}, Limits{AfterNamespace: hour}, 11 * hour, []cut{{1, 1, -1, Expired}, {1, 2, -1, Expired}}},
		"and not before the time after a namespace":         {[]Archive{gone}, Limits{AfterNamespace: hour}, 11*hour - 1, nil},
		"within the limits nothing goes":                    {[]Archive{archive(1, ended(1, 0, 60), growing(2, 1))}, Limits{Cluster: 160, Namespace: 160}, 0, nil},
		"of a cluster the oldest ended file goes first":     {[]Archive{archive(1, ended(1, 9, 60), ended(2, 3, 60), growing(3, 1))}, Limits{Cluster: 160}, 0, []cut{{1, 2, -1, LimitReached}}},
		"then the oldest runs that grow, without the first": {[]Archive{archive(1, ended(1, 9, 60), growing(2, 3), growing(3, 4))}, Limits{Cluster: 450}, 0, []cut{{1, 1, -1, LimitReached}, {1, 2, 1 << 20, LimitReached}, {1, 3, 1 << 20, LimitReached}, {1, 2, 2 << 20, LimitReached}}},
		"the first bytes stay, whatever the limit is":       {[]Archive{archive(1, growing(1, 2))}, Limits{Cluster: 1, Namespace: 1}, 0, []cut{{1, 1, 1 << 20, LimitReached}}},
		"of a namespace the largest goes first":             {[]Archive{archive(1, ended(1, 1, 50)), archive(2, ended(1, 3, 40), ended(2, 2, 40))}, Limits{Namespace: 100}, 0, []cut{{2, 2, -1, LimitReached}}},
		"until it is no longer the largest":                 {[]Archive{archive(1, ended(1, 1, 50)), archive(2, ended(1, 3, 40), ended(2, 2, 40))}, Limits{Namespace: 70}, 0, []cut{{2, 2, -1, LimitReached}, {1, 1, -1, LimitReached}}},
		"each namespace counts by itself": {[]Archive{
			archive(1, ended(1, 0, 60)), {Cluster: uid(2), Namespace: uid(101), KeepFor: day, Files: []File{ended(1, 0, 60)}}, archive(3, ended(1, 0, 50)),
		}, Limits{Namespace: 100}, 0, []cut{{1, 1, -1, LimitReached}}},
		"a file whose newest bytes went is as old as they were": {
			[]Archive{{Cluster: uid(1), KeepFor: day, Files: []File{{Key: key(1), Last: 10 * day, Runs: []Run{{Size: 1}}}}}}, Limits{}, 10 * day, nil,
		},
		"what expired counts for no limit":                        {[]Archive{short}, Limits{Cluster: 20}, hour, []cut{{1, 1, -1, Expired}, {1, 3, -1, Expired}}},
		"a cluster that cannot be cut leaves it to the next":      {[]Archive{archive(1, growing(1, 1)), archive(2, ended(1, 0, 90))}, Limits{Namespace: 150}, 0, []cut{{2, 1, -1, LimitReached}}},
		"a run of an early time but a later place waits its turn": {[]Archive{archive(1, File{Key: key(1), Runs: []Run{{Offset: 1 << 20, At: 9, Size: 5}, {Offset: 2 << 20, At: 1, Size: 5}}})}, Limits{Cluster: 5}, 0, []cut{{1, 1, 1 << 20, LimitReached}}},
	} {
		reversed := slices.Clone(test.archives)
		slices.Reverse(reversed)
		for _, archives := range [][]Archive{test.archives, reversed} {
			if diff := cmp.Diff(test.want, cutsOf(Cuts(archives, test.limits, test.now))); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	}
}

// apply takes cuts out of archives.
func apply(archives []Archive, cuts []Cut) []Archive {
	gone := map[pack.UID]map[pack.FileKey][]Cut{}
	for _, one := range cuts {
		if gone[one.Cluster] == nil {
			gone[one.Cluster] = map[pack.FileKey][]Cut{}
		}
		gone[one.Cluster][one.File] = append(gone[one.Cluster][one.File], one)
	}
	var left []Archive
	for _, one := range archives {
		files := one.Files
		one.Files = nil
		for _, file := range files {
			cuts := gone[one.Cluster][file.Key]
			file.Runs = slices.DeleteFunc(slices.Clone(file.Runs), func(run Run) bool {
				return slices.ContainsFunc(cuts, func(c Cut) bool { return c.IsWhole || c.Run == run })
			})
			one.Files = append(one.Files, file)
		}
		left = append(left, one)
	}
	return left
}

func sizeOf(archives ...Archive) int64 {
	size := int64(0)
	for _, one := range archives {
		for _, file := range one.Files {
			size += file.size()
		}
	}
	return size
}

func someArchives(random *rand.Rand) []Archive {
	var all []Archive
	for i := range 1 + random.IntN(6) {
		one := archive(i + 1)
		one.Namespace, one.KeepFor = uid(100+random.IntN(2)), 1+random.Int64N(20)
		for n := range random.IntN(8) {
			file := File{Key: key(n), IsEnded: random.IntN(2) == 0}
			at := random.Int64N(15)
			for k := range int64(random.IntN(6)) {
				at += random.Int64N(3)
				file.Last = at
				file.Runs = append(file.Runs, Run{Offset: k * FirstBytes / 2, Length: FirstBytes / 2, At: at, Size: 1 + random.Int64N(30)})
			}
			one.Files = append(one.Files, file)
		}
		all = append(all, one)
	}
	return all
}

// TestCuts_KeepTheirPromises looks at what is left, for many archives.
func TestCuts_KeepTheirPromises(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		archives, limits := someArchives(random), Limits{Cluster: 1 + random.Int64N(200), Namespace: 1 + random.Int64N(400)}
		cuts := Cuts(archives, limits, 15)
		left := apply(archives, cuts)
		freed := int64(0)
		for _, one := range cuts {
			freed += one.Size
		}
		if before, after := sizeOf(archives...), sizeOf(left...); before-freed != after {
			t.Fatalf("seed %d: %d bytes less %d are %d", seed, before, freed, after)
		}
		if again := Cuts(left, limits, 15); len(again) > 0 {
			t.Fatalf("seed %d: a second decision cuts %v", seed, cutsOf(again))
		}
		for i, one := range left {
			if isBelow := sizeOf(one) <= limits.Cluster; !isBelow && canBeCut(one) {
				t.Fatalf("seed %d: cluster %d is above its limit", seed, i)
			}
			neighbours := slices.DeleteFunc(slices.Clone(left), func(other Archive) bool { return other.Namespace != one.Namespace })
			if sizeOf(neighbours...) > limits.Namespace && slices.ContainsFunc(neighbours, canBeCut) {
				t.Fatalf("seed %d: the namespace of cluster %d is above its limit", seed, i)
			}
			for n, file := range one.Files {
				if before := archives[i].Files[n]; !file.IsEnded && before.Last+one.KeepFor > 15 {
					judgeFirstBytes(t, before, file)
				}
			}
		}
	}
}

func canBeCut(one Archive) bool { return len((&holding{archive: one}).order()) > 0 }

func judgeFirstBytes(t *testing.T, before, after File) {
	t.Helper()
	for _, run := range before.Runs {
		if run.Offset < FirstBytes && !slices.Contains(after.Runs, run) {
			t.Fatalf("the run at %d of a file that grows was cut", run.Offset)
		}
	}
}

func TestCuts_LeaveASmallArchiveAlone(t *testing.T) {
	flood := archive(1)
	for n := range 1000 {
		flood.Files = append(flood.Files, ended(n, 100+int64(n), 10))
	}
	small := archive(2, ended(1, 0, 30), growing(2, 1))
	cuts := Cuts([]Archive{flood, small}, Limits{Namespace: 1000}, 0)
	for _, one := range cuts {
		if one.Cluster == small.Cluster {
			t.Fatalf("a flood of its neighbour displaces %+v", one)
		}
	}
	if left := sizeOf(apply([]Archive{flood, small}, cuts)...); left > 1000 || left < 990 {
		t.Errorf("%d bytes are left of a limit of 1000", left)
	}
}

// TestCuts_KeepTheNewestHour plays 60 days of a cluster that writes without end.
func TestCuts_KeepTheNewestHour(t *testing.T) {
	one, limits := archive(1, File{Key: key(1)}), Limits{Cluster: 5000}
	file := &one.Files[0]
	for i := range int64(60 * 24 * 6) {
		now := i * hour / 6
		file.Last = now
		file.Runs = append(file.Runs, Run{Offset: i << 18, Length: 1 << 18, At: now, Size: 50})
		one = apply([]Archive{one}, Cuts([]Archive{one}, limits, now))[0]
		file = &one.Files[0]
		if size := sizeOf(one); size > limits.Cluster {
			t.Fatalf("after %d ten minutes: %d bytes", i, size)
		}
		for k := max(0, i-6); k <= i; k++ {
			if !slices.ContainsFunc(file.Runs, func(run Run) bool { return run.Offset == k<<18 }) {
				t.Fatalf("after %d ten minutes: those of %d are gone", i, k)
			}
		}
	}
}

func TestCuts_TakeTenThousandAndNoneElse(t *testing.T) {
	var archives []Archive
	for n := range 20000 {
		one := archive(n, ended(1, int64(n%2)*day, 1))
		one.KeepFor = day
		archives = append(archives, one)
	}
	cuts := Cuts(archives, Limits{Cluster: 1 << 30, Namespace: 1 << 30}, day)
	for _, one := range cutsOf(cuts) {
		if one.Cluster%2 != 0 || one.Cause != Expired {
			t.Fatalf("%+v goes", one)
		}
	}
	if len(cuts) != 10000 {
		t.Errorf("%d go", len(cuts))
	}
}

func TestRecords_GoByAgeAndLife(t *testing.T) {
	in := func(n, namespace int, life Life, at int64) Record {
		return Record{UID: uid(n), Namespace: uid(namespace), Life: life, At: at}
	}
	for name, test := range map[string]struct {
		records []Record
		limit   int
		want    []pack.UID
	}{
		"a mark goes after 30 days":                    {[]Record{in(1, 9, Marked, 0), in(2, 9, Marked, 1)}, 0, []pack.UID{uid(1)}},
		"of a namespace the oldest mark goes first":    {[]Record{in(1, 9, Ended, 0), in(2, 9, Marked, 8), in(3, 9, Marked, 7), in(4, 9, Living, 0)}, 3, []pack.UID{uid(3)}},
		"then the oldest that ended":                   {[]Record{in(1, 9, Ended, 6), in(2, 9, Ended, 5), in(3, 9, Marked, 7), in(4, 9, Living, 0)}, 2, []pack.UID{uid(3), uid(2)}},
		"one that lives never goes":                    {[]Record{in(1, 9, Living, 1), in(2, 9, Living, 2), in(3, 9, Ended, 3)}, 1, []pack.UID{uid(3)}},
		"another namespace keeps its own":              {[]Record{in(1, 8, Ended, 1), in(2, 9, Ended, 2), in(3, 9, Ended, 3)}, 1, []pack.UID{uid(2)}},
		"a mark that went by its time counts no more":  {[]Record{in(1, 9, Marked, 0), in(2, 9, Ended, 1)}, 1, []pack.UID{uid(1)}},
		"without a limit objects that ended are there": {[]Record{in(1, 9, Ended, 1), in(2, 9, Ended, 1)}, 0, nil},
	} {
		if diff := cmp.Diff(test.want, Records(test.records, Limits{Objects: test.limit}, MarkFor)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestOrphans_AreOldAndUnnamed(t *testing.T) {
	stored := []Stored{{"z", 0}, {"named", 0}, {"young", 1}, {"a", 0}}
	got := Orphans(stored, func(key string) bool { return key == "named" }, OrphanAge)
	if !slices.Equal(got, []string{"a", "z"}) {
		t.Errorf("orphans are %q", got)
	}
}

func TestBound_IsADayOffAtMost(t *testing.T) {
	for claimed, want := range map[int64]int64{0: 9 * day, 9 * day: 9 * day, 10*day + 5: 10*day + 5, 1 << 62: 11 * day} {
		if got := Bound(claimed, 10*day); got != want {
			t.Errorf("Bound(%d) = %d, want %d", claimed, got, want)
		}
	}
}
