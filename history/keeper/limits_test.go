package keeper

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/history/archive"
	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/retain"
)

// held returns how many bytes an archive takes without what its newest manifest replaced.
func (w *world) held(key archive.Key) int64 {
	w.t.Helper()
	s, err := archive.OpenStored(w.t.Context(), w.bucket, w.decoder, key)
	w.must(err)
	live, held := map[string]bool{}, int64(0)
	for _, row := range s.Rows() {
		for _, part := range row.Ranges {
			live[part.Object] = true
		}
	}
	for name, one := range s.Objects {
		if live[name] || !s.Named[name] && (!strings.HasPrefix(name, "m/") || name >= s.Manifest) {
			held += one.Size
		}
	}
	return held
}

// TestPass_KeepsAClusterOfSixtyDaysWithinItsLimit has a file that grows, and one each two hours that ends.
func TestPass_KeepsAClusterOfSixtyDaysWithinItsLimit(t *testing.T) {
	w := newWorld(t, 1)
	w.limits = retain.Limits{Cluster: 3 << 19}
	key := w.cluster(1)
	w.end(key, pack.UID{2})
	one := w.records.archives[key]
	one.Ended = 0
	w.records.archives[key] = one
	k := w.keeper(w.bucket)
	k.work.step = 256 << 10
	grows, most, calls := file(1, 1), int64(0), 0
	const each = 8 << 10
	for number := range int64(60 * 12) {
		job := file(2, uint64(100+number))
		w.pack(key, 0, w.now, func(p *pack.Writer) {
			w.add(p, grows, number*each, each, w.now)
			w.add(p, job, 0, each/2, w.now)
		})
		before := w.bucket.calls
		w.pass(k, 2*hour)
		calls += w.bucket.calls - before
		if number%9 > 0 && number < 59*12 {
			continue
		}
		if held := w.held(key); held > w.limits.Cluster {
			t.Fatalf("after %d packs the archive takes %d bytes", number, held)
		}
		most = max(most, w.bucket.size(key))
	}
	if most > w.limits.Cluster*5/4 {
		t.Errorf("with what was replaced the archive took %d bytes", most)
	}
	got := w.read(w.bucket, key)
	if last := file(2, 100+60*12-1); got[last.FileKey] != string(bytesAt(last.FileKey, 0, each/2))+"... Killed" {
		t.Error("the newest file is not whole")
	}
	text, want := got[grows.FileKey], string(bytesAt(grows.FileKey, 0, 60*12*each))
	if len(text) != len(want) || text[len(text)-12*each:] != want[len(want)-12*each:] || text[:retain.FirstBytes] != want[:retain.FirstBytes] {
		t.Errorf("of the file that grows %d bytes were read; its first MiB or its last day is not whole", len(text))
	}
	if missing := strings.Count(text[retain.FirstBytes:], string('A'+rune(pack.LimitReached))); missing < 3<<20 {
		t.Errorf("%d bytes were cut", missing)
	}
	if perHour := calls / (60 * 12); perHour > 60 {
		t.Errorf("a pass makes %d calls", perHour)
	}
	names := w.bucket.names(key)
	if packs := count(names, "p/"); packs > 48 {
		t.Errorf("%d packs are left", packs)
	}
	w.pass(k, 11*minute)
	w.tidy(key)
}

// TestPass_RemovesTenThousandDueArchivesInTenMinutes has others that are not due between them.
func TestPass_RemovesTenThousandDueArchivesInTenMinutes(t *testing.T) {
	w := newWorld(t, 1)
	const due, all = 10_000, 11_000
	for number := range all {
		key := w.cluster(number)
		w.end(key, pack.UID{1})
		fact := w.records.archives[key]
		if fact.KeepFor = day; number%11 == 0 {
			fact.KeepFor = 2 * day
		}
		w.records.archives[key] = fact
		w.pack(key, 0, w.now, func(p *pack.Writer) { w.must(p.Add(file(1, 1), 0, w.now, []byte("text"))) })
	}
	k := w.keeper(w.bucket)
	k.work.workers = 8
	calls := w.bucket.calls
	w.pass(k, day)
	for range 9 {
		w.pass(k, minute)
	}
	if done := (w.bucket.calls - calls) / due; done > 8 {
		t.Errorf("%d calls for each archive", done)
	}
	for key, fact := range w.records.archives {
		names := w.bucket.names(key)
		if isGone := len(names) == 1 && names[0] == archive.EndName; isGone != (fact.KeepFor == day) {
			t.Fatalf("an archive that is kept for %d days has %v", fact.KeepFor/day, names)
		}
	}
	if len(w.records.marks) != due {
		t.Errorf("%d archives are marked", len(w.records.marks))
	}
	w.pass(k, retain.MarkFor)
	for range 4 {
		w.pass(k, minute)
	}
	if left := len(w.bucket.keys); left > 2*(all-due) {
		t.Errorf("%d objects are left", left)
	}
}

func TestPass_FailsAtNothingWhereABucketIsEmptied(t *testing.T) {
	w := newWorld(t, 1)
	key, one := w.cluster(1), file(1, 1)
	const size = pack.MaxRun + 100
	w.pack(key, 0, w.now, func(p *pack.Writer) { w.add(p, one, 0, pack.MaxRun, w.now); w.add(p, one, pack.MaxRun, 100, w.now) })
	w.pack(key, 0, w.now+1, func(p *pack.Writer) { w.add(p, file(1, 2), 0, 500, w.now) })
	w.end(key, pack.UID{1})
	k := w.keeper(w.bucket)
	for range 4 {
		w.pass(k, 11*minute)
	}
	for _, name := range w.bucket.names(key) {
		if strings.HasPrefix(name, "f/") && w.bucket.objects[key.Prefix()+name].at > 0 {
			w.bucket.drop(key.Prefix() + name)
		}
	}
	want := map[pack.FileKey]string{
		one.FileKey:        strings.Repeat(string('A'+rune(pack.ArchiverAway)), size) + "... Killed",
		file(1, 2).FileKey: strings.Repeat(string('A'+rune(pack.ArchiverAway)), 500) + "... Killed",
	}
	w.same("without final objects", want, w.read(w.bucket, key))
	w.pack(key, 1, w.now, func(p *pack.Writer) { w.add(p, one, size, 10, w.now) }) // of a replica that was behind
	for range 4 {
		w.pass(k, 11*minute)
	}
	want[one.FileKey] = strings.Repeat(string('A'+rune(pack.ArchiverAway)), size) + string(bytesAt(one.FileKey, size, 10)) + "... Killed"
	w.same("with a late pack", want, w.read(w.bucket, key))
	for _, name := range w.bucket.names(key) {
		w.bucket.drop(key.Prefix() + name)
	}
	w.pass(k, minute)
	w.same("with nothing", nil, w.read(w.bucket, key))
}

// TestPass_ReadsFinalObjectsWhereTheManifestIsLost damages and removes manifests.
func TestPass_ReadsFinalObjectsWhereTheManifestIsLost(t *testing.T) {
	w := newWorld(t, 1)
	key := w.cluster(1)
	w.pack(key, 0, w.now, func(p *pack.Writer) { w.add(p, file(1, 1), 0, 700, w.now) })
	w.end(key, pack.UID{1})
	want := w.read(w.bucket, key)
	k := w.keeper(w.bucket)
	for _, damage := range []func(string){
		func(key string) { w.bucket.drop(key) },
		func(key string) { w.bucket.put(key, object{[]byte(strings.Repeat("x", 100)), w.now}) },
	} {
		for range 3 {
			w.pass(k, 11*minute)
		}
		for _, name := range w.bucket.names(key) {
			if strings.HasPrefix(name, "m/") {
				damage(key.Prefix() + name)
			}
		}
		w.same("without a manifest", want, w.read(w.bucket, key))
		for range 3 {
			w.pass(k, day+1)
		}
		w.same("with another one", want, w.read(w.bucket, key))
		w.tidy(key)
	}
}

// TestPass_RemovesNothingWhereTheNewestManifestIsDamaged has an older one, which does not name all.
func TestPass_RemovesNothingWhereTheNewestManifestIsDamaged(t *testing.T) {
	w := newWorld(t, 1)
	key := w.cluster(1)
	w.end(key, pack.UID{1})
	k := w.keeper(w.bucket)
	for n := range int64(2) {
		w.pack(key, 0, w.now, func(p *pack.Writer) { w.add(p, file(1, 1), n*100, 100, w.now) })
		w.pass(k, 11*minute)
	}
	want := w.read(w.bucket, key)
	for _, name := range w.bucket.names(key) {
		if strings.HasPrefix(name, "p/") {
			w.bucket.drop(key.Prefix() + name)
		}
	}
	manifests := slices.DeleteFunc(w.bucket.names(key), func(name string) bool { return !strings.HasPrefix(name, "m/") })
	if len(manifests) != 2 {
		t.Fatalf("manifests are %v", manifests)
	}
	w.bucket.put(key.Prefix()+manifests[1], object{[]byte(strings.Repeat("x", 100)), w.now})
	w.same("with a damaged manifest", want, w.read(w.bucket, key))
	for range 3 {
		w.pass(k, day+1)
		w.same("a day later", want, w.read(w.bucket, key))
	}
	w.tidy(key)
}

// TestPass_CutsTheLargestOfANamespace has small archives beside a flood.
func TestPass_CutsTheLargestOfANamespace(t *testing.T) {
	w := newWorld(t, 1)
	w.limits = retain.Limits{Namespace: 300_000}
	keys := []archive.Key{w.cluster(1), w.cluster(2), w.cluster(3)}
	for i, bytes := range []int64{20_000, 40_000, 700_000} {
		for n := range int64(10) {
			w.pack(keys[i], 0, w.now+n, func(p *pack.Writer) { w.add(p, file(1, uint64(n+1)), 0, bytes/10, w.now+n) })
		}
		w.end(keys[i], pack.UID{1})
	}
	want := []map[pack.FileKey]string{w.read(w.bucket, keys[0]), w.read(w.bucket, keys[1])}
	k := w.keeper(w.bucket)
	for range 6 {
		w.pass(k, 11*minute)
	}
	w.same("the smallest", want[0], w.read(w.bucket, keys[0]))
	w.same("a small one", want[1], w.read(w.bucket, keys[1]))
	total := w.bucket.size(keys[0]) + w.bucket.size(keys[1]) + w.bucket.size(keys[2])
	if total > w.limits.Namespace || total < w.limits.Namespace/2 {
		t.Errorf("the namespace takes %d bytes", total)
	}
	got := w.read(w.bucket, keys[2])
	newest := file(1, 10).FileKey
	if got[newest] != string(bytesAt(newest, 0, 70_000))+"... Killed" {
		t.Error("the newest file of the largest is not whole")
	}
}

func TestPass_LetsNoHugeArchiveKeepOthersWaiting(t *testing.T) {
	w := newWorld(t, 1)
	huge := w.cluster(1)
	for n := range int64(16) {
		w.pack(huge, 0, w.now+n, func(p *pack.Writer) { w.add(p, file(1, 1), n<<18, 1<<18, w.now) })
	}
	w.end(huge, pack.UID{1})
	k := w.keeper(w.bucket)
	k.work.step, k.work.pass = 600<<10, 700<<10
	w.pass(k, 11*minute)
	other := w.cluster(2)
	w.pack(other, 0, w.now, func(p *pack.Writer) { w.add(p, file(1, 1), 0, 100, w.now) })
	w.end(other, pack.UID{1})
	for range 3 {
		w.pass(k, 2*minute)
	}
	if names := w.bucket.names(other); count(names, "f/") == 0 {
		t.Errorf("the other archive has %v", names)
	}
	if names := w.bucket.names(huge); count(names, "p/") == 0 {
		t.Errorf("the huge archive was done in no time: %v", names)
	}
	for range 30 {
		w.pass(k, 2*minute)
	}
	if names := w.bucket.names(huge); count(names, "p/") > 0 {
		t.Errorf("the huge archive still has %v", names)
	}
	if got := w.read(w.bucket, huge)[file(1, 1).FileKey]; got != string(bytesAt(file(1, 1).FileKey, 0, 4<<20))+"... Killed" {
		t.Error("the huge archive has other bytes")
	}
}

func TestDeleteHistory_RefusesAClusterThatLives(t *testing.T) {
	w := newWorld(t, 1)
	key := w.cluster(1)
	name := w.pack(key, 0, w.now, func(p *pack.Writer) { w.add(p, file(1, 1), 0, 100, w.now) })
	k := w.keeper(w.bucket)
	if err := k.DeleteHistory(t.Context(), key, "jane", w.now); !errors.Is(err, ErrLives) {
		t.Errorf("a cluster that lives: %v", err)
	}
	if err := k.DeleteHistory(t.Context(), archive.Key{}, "jane", w.now); !errors.Is(err, ErrLives) {
		t.Errorf("a cluster without a record: %v", err)
	}
	w.end(key, pack.UID{1})
	w.must(k.DeleteHistory(t.Context(), key, strings.Repeat("é<", 400), w.now))
	w.must(k.DeleteHistory(t.Context(), key, "joe", w.now+5))
	if by := w.records.marks[key.Cluster]; !strings.HasPrefix(by, fmt.Sprintf("Deleted %d é", w.now)) {
		t.Errorf("it was deleted by %q", by)
	}
	late := w.bucket.objects[key.Prefix()+"end"]
	w.bucket.put(key.Prefix()+name, object{bytes.Clone(late.data), w.now + hour}) // a pack that comes later
	if got := w.read(w.bucket, key); len(got) > 0 {
		t.Errorf("%v was read", got)
	}
	w.pass(k, minute)
	if names := w.bucket.names(key); !slices.Equal(names, []string{"end"}) {
		t.Errorf("left are %v", names)
	}
	s, err := archive.OpenStored(t.Context(), w.bucket, w.decoder, key)
	w.must(err)
	if state := s.State(nil, w.now); state != index.Deleted || s.End.At != begun {
		t.Errorf("state %s of %+v", state, s.End)
	}
}
