package keeper

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/history/archive"
	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/retain"
)

var histories = flag.Uint64("histories", 40, "how many histories TestPass plays")

// count returns how many names begin with a text.
func count(names []string, begin string) (n int) {
	for _, name := range names {
		if strings.HasPrefix(name, begin) {
			n++
		}
	}
	return n
}

func TestPass_RewritesPacksOfAnEndedClusterIntoFinalObjects(t *testing.T) {
	w := newWorld(t, 1)
	key := w.cluster(1)
	large, small := file(1, 1), file(1, 2)
	const chunk = 100 << 10
	for i := range int64(40) {
		w.pack(key, 0, w.now+i*minute, func(p *pack.Writer) {
			w.add(p, large, i*chunk, chunk, w.now)
			w.add(p, small, i*10, 10, w.now)
		})
	}
	w.pack(key, 0, w.now+hour, func(p *pack.Writer) {
		w.must(p.AddList(pack.UID{1}, true, []pack.File{large, small}, []pack.Size{{Size: 40 * chunk, Acked: 40 * chunk}, {Size: 400, Acked: 400}}))
		p.AddUse(pack.Use{Minute: 5, Line: []byte("a line of use")})
	})
	k := w.keeper(w.bucket)
	w.pass(k, 2*hour)
	if names := w.bucket.names(key); count(names, "p/") != 41 || len(names) != 41 {
		t.Fatalf("a cluster that lives has %v", names)
	}
	w.end(key, pack.UID{1})
	want := w.read(w.bucket, key)
	w.pass(k, 2*minute)
	w.same("beside its packs", want, w.read(w.bucket, key))
	for range 12 {
		w.pass(k, minute)
	}
	names := w.bucket.names(key)
	if count(names, "p/") != 0 || count(names, "f/") != 2 || count(names, "m/") != 1 || len(names) != 3 {
		t.Errorf("an ended cluster has %v", names)
	}
	w.same("in final objects", want, w.read(w.bucket, key))
	s, err := archive.OpenStored(t.Context(), w.bucket, w.decoder, key)
	w.must(err)
	if state := s.State(w.records.Endings(key.Cluster), w.now); state != index.Complete || len(s.Uses()) != 1 {
		t.Errorf("state %s with %d lines of use", state, len(s.Uses()))
	}
	for _, row := range s.Rows() {
		for i, part := range row.Ranges {
			if isLast := i == len(row.Ranges)-1; !isLast && part.Length != pack.MaxRun {
				t.Errorf("a run of %d bytes at %d", part.Length, part.Offset)
			}
		}
	}
	w.tidy(key)
}

func TestPass_CallsTheStoreOnceWhereNothingIsDue(t *testing.T) {
	w := newWorld(t, 1)
	for number := range 5 {
		key := w.cluster(number)
		w.pack(key, 0, w.now, func(p *pack.Writer) { w.add(p, file(1, 1), 0, 100, w.now) })
		if number > 2 {
			w.end(key, pack.UID{1})
		}
	}
	k := w.keeper(w.bucket)
	for range 4 {
		w.pass(k, 11*minute)
	}
	calls := w.bucket.calls
	w.pass(k, minute)
	if done := w.bucket.calls - calls; done != 1 {
		t.Errorf("%d calls", done)
	}
}

func TestPass_PutsAGapWhereAFileExpiredThatGrowsAgain(t *testing.T) {
	w := newWorld(t, 1)
	key, one, gone := w.cluster(1), file(1, 1), file(2, 1)
	w.end(key, pack.UID{2})
	fact := w.records.archives[key]
	fact.KeepFor, fact.Ended = hour, 0
	w.records.archives[key] = fact
	w.pack(key, 0, w.now, func(p *pack.Writer) {
		w.add(p, one, 0, 100, w.now)
		w.add(p, gone, 0, 100, w.now)
	})
	k := w.keeper(w.bucket)
	w.pass(k, hour-minute)
	w.same("before its time", map[pack.FileKey]string{
		one.FileKey: string(bytesAt(one.FileKey, 0, 100)), gone.FileKey: string(bytesAt(gone.FileKey, 0, 100)) + "... Killed",
	}, w.read(w.bucket, key))
	w.pass(k, 2*minute)
	missing := strings.Repeat(string('A'+rune(pack.LimitReached)), 100)
	w.same("after its time", map[pack.FileKey]string{one.FileKey: missing}, w.read(w.bucket, key))
	w.pack(key, 0, w.now, func(p *pack.Writer) { w.add(p, one, 100, 50, w.now) })
	w.pass(k, minute)
	w.same("when it grows", map[pack.FileKey]string{one.FileKey: missing + string(bytesAt(one.FileKey, 100, 50))}, w.read(w.bucket, key))
	w.pass(k, 11*minute)
	if names := w.bucket.names(key); count(names, "p/") != 1 || len(w.records.marks) > 0 {
		t.Errorf("of a cluster that lives there are %v, and marks %v", names, w.records.marks)
	}
}

func TestPass_KeepsWithoutARecordForTheLongestTime(t *testing.T) {
	w := newWorld(t, 1)
	key := w.cluster(1)
	w.pack(key, 0, w.now, func(p *pack.Writer) { w.add(p, file(1, 1), 0, 100, w.now) })
	delete(w.records.archives, key)
	want := w.read(w.bucket, key)
	k := w.keeper(w.bucket)
	w.pass(k, 2*day)
	w.pass(k, 361*day)
	w.same("within a year", want, w.read(w.bucket, key))
	for range 6 {
		w.pass(k, 2*day)
	}
	if names := w.bucket.names(key); len(names) > 0 || len(w.records.marks) > 0 {
		t.Errorf("after a year there are %v", names)
	}
}

// fill writes random packs of an archive: chunks that come twice, gaps, lists. Those of a hostile pod have other bytes in each pack, and
// come in the order in which they were made.
func (w *world) fill(key archive.Key, packs int, sizes map[pack.FileKey]int64, isHostile bool) {
	for number := range packs {
		at := w.now - w.random.Int64N(2*hour)
		if isHostile {
			at = w.now + int64(number)
		}
		w.pack(key, w.random.IntN(2), at, func(p *pack.Writer) {
			for range 1 + w.random.IntN(4) {
				one := file(byte(1+w.random.IntN(2)), uint64(1+w.random.IntN(3)))
				offset := max(0, sizes[one.FileKey]-w.random.Int64N(200))
				length := 1 + w.random.Int64N(700)
				switch w.random.IntN(6) {
				case 0:
					offset = sizes[one.FileKey] + w.random.Int64N(50)
				case 1:
					w.must(p.AddGap(one, pack.Gap{Offset: offset, Length: length, Reason: pack.RotatedAway, At: at}))
					continue
				case 2:
					if w.random.IntN(9) == 0 {
						w.must(p.AddGap(one, pack.Gap{Offset: offset, Reason: pack.Unreadable, At: at}))
					}
				}
				data := bytesAt(one.FileKey, offset, length)
				if isHostile {
					data[0], data[length-1] = byte(at), byte(number)
				}
				w.must(p.Add(one, offset, at, data))
				sizes[one.FileKey] = max(sizes[one.FileKey], offset+length)
			}
			if w.random.IntN(8) == 0 {
				one := file(byte(1+w.random.IntN(2)), uint64(1+w.random.IntN(4)))
				w.must(p.AddList(one.Pod, w.random.IntN(3) == 0, []pack.File{{FileKey: one.FileKey}},
					[]pack.Size{{Size: sizes[one.FileKey] + 5, Acked: sizes[one.FileKey]}}))
			}
		})
	}
}

// TestPass_ChangesNothingThatIsRead compares what is read with packs that no keeper ever touched.
func TestPass_ChangesNothingThatIsRead(t *testing.T) {
	parts := 0
	for seed := range *histories {
		w := newWorld(t, seed)
		key := w.cluster(1)
		untouched := &bucket{objects: map[string]object{}}
		sizes := map[pack.FileKey]int64{}
		k := w.keeper(w.bucket)
		for step := range 14 {
			w.fill(key, w.random.IntN(4), sizes, seed%2 > 0)
			for name, one := range w.bucket.objects {
				if strings.HasPrefix(name, key.Prefix()+"p/") {
					untouched.put(name, one)
				}
			}
			if w.random.IntN(6) == 0 {
				k = w.keeper(w.bucket)
			}
			k.work.step = 1 + w.random.Int64N(2000)
			k.work.partFiles, k.work.partNames = 1+w.random.IntN(8), 1+w.random.IntN(8)
			if count(w.bucket.names(key), "m/") > 2 {
				parts++
			}
			if step == 8 {
				w.end(key, pack.UID{1}, pack.UID{2})
			}
			w.pass(k, []int64{minute, hour, 9 * hour, day}[w.random.IntN(4)])
			w.same(fmt.Sprintf("history %d, step %d", seed, step), w.read(untouched, key), w.read(w.bucket, key))
			w.whole(key)
		}
		k.work.step = 1 << 20
		for range 4 {
			w.pass(k, 11*minute)
		}
		w.pass(k, day+1)
		w.pass(k, minute)
		w.same(fmt.Sprintf("history %d, at its end", seed), w.read(untouched, key), w.read(w.bucket, key))
		heads := 0
		for _, name := range w.bucket.names(key) {
			if _, is := archive.ManifestTime(name); is {
				heads++
			}
		}
		if names := w.bucket.names(key); count(names, "p/") > 0 || heads > 1 {
			t.Fatalf("history %d ends with %v", seed, names)
		}
		w.tidy(key)
	}
	if parts == 0 {
		t.Error("no manifest has parts")
	}
}

// TestPass_KeepsWhatWasThereFirst has a pod that sends other bytes to the other replica.
func TestPass_KeepsWhatWasThereFirst(t *testing.T) {
	w := newWorld(t, 1)
	key, one := w.cluster(1), file(1, 1)
	write := func(at, offset int64, text string) {
		w.pack(key, 0, at, func(p *pack.Writer) { w.must(p.Add(one, offset, at, []byte(text))) })
	}
	write(w.now, 0, "first")
	write(w.now+1, 2, "SECOND")
	w.end(key, pack.UID{1})
	want := w.read(w.bucket, key)
	k := w.keeper(w.bucket)
	w.pass(k, 2*minute)
	w.pass(k, minute)
	write(w.now-hour, 0, "forged and late")
	for range 15 {
		w.pass(k, minute)
	}
	got := w.read(w.bucket, key)[one.FileKey]
	if !strings.HasPrefix(got, "firstONDnd late") || !strings.HasPrefix(want[one.FileKey], "firstOND") {
		t.Errorf("%q was read, and %q before", got, want[one.FileKey])
	}
}

func TestPass_GoesOnWhereTheClockGoesBack(t *testing.T) {
	w := newWorld(t, 1)
	key := w.cluster(1)
	w.pack(key, 0, w.now, func(p *pack.Writer) { w.add(p, file(1, 1), 0, 100, w.now) })
	w.now -= 2 * day
	w.end(key, pack.UID{1})
	w.now += 2 * day
	k := w.keeper(w.bucket)
	w.pass(k, 2*minute)
	w.pack(key, 1, w.now, func(p *pack.Writer) { w.add(p, file(1, 1), 100, 100, w.now) })
	want := w.read(w.bucket, key)
	w.pass(k, -day)
	for range 6 {
		w.pass(k, 11*minute)
		w.same("after the clock went back", want, w.read(w.bucket, key))
	}
	if names := w.bucket.names(key); count(names, "m/") != 2 {
		t.Errorf("%v are there, and what comes before the newest manifest stays until its time", names)
	}
	w.pass(k, day)
	if names := w.bucket.names(key); count(names, "p/") > 0 || count(names, "m/") != 1 {
		t.Errorf("left are %v", names)
	}
}

// story is what the tests of crashes play: a cluster that ends, one above its limit, one that expires, one that is deleted, and one
// that must stay as it is.
type story struct {
	*world
	ended, limited, expired, deleted, living archive.Key
	want                                     map[archive.Key]map[pack.FileKey]string
}

func newStory(t testing.TB) *story {
	s := &story{world: newWorld(t, 3), want: map[archive.Key]map[pack.FileKey]string{}}
	s.limits = retain.Limits{Cluster: 60_000}
	keys := make([]archive.Key, 5)
	for i := range keys {
		keys[i] = s.cluster(i + 1)
		for n := range int64(3) {
			s.pack(keys[i], 0, s.now+n, func(p *pack.Writer) {
				for number := range uint64(3) {
					length := int64(1000)
					if i == 1 {
						length = 9000
					}
					s.add(p, file(1, number+1), n*length, length, s.now+int64(number))
				}
			})
		}
	}
	s.ended, s.limited, s.expired, s.deleted, s.living = keys[0], keys[1], keys[2], keys[3], keys[4]
	for _, key := range keys[:4] {
		s.end(key, pack.UID{1})
	}
	one := s.records.archives[s.expired]
	one.KeepFor = hour
	s.records.archives[s.expired] = one
	for _, key := range []archive.Key{s.ended, s.living, s.limited} {
		s.want[key] = s.read(s.bucket, key)
	}
	return s
}

// check judges what is read at any time: all that stays, and of the cluster above its limit either bytes or gaps.
func (s *story) check(what string) {
	s.t.Helper()
	for _, key := range []archive.Key{s.ended, s.living} {
		s.same(what, s.want[key], s.read(s.bucket, key))
	}
	for one, text := range s.read(s.bucket, s.limited) {
		if text != s.want[s.limited][one] && text != strings.Repeat(string('A'+rune(pack.LimitReached)), 27_000)+"... Killed" {
			s.t.Fatalf("%s: a file of the limited cluster has %d other bytes", what, len(text))
		}
	}
	for one, text := range s.read(s.bucket, s.expired) {
		if want := string(bytesAt(one, 0, 3000)) + "... Killed"; text != want {
			s.t.Fatalf("%s: a file that expired is there in part", what)
		}
	}
}

// finish runs a keeper until a day has passed, and judges what the store has then.
func (s *story) finish(what string) {
	s.t.Helper()
	s.bucket.before, s.bucket.after = nil, nil
	k := s.keeper(s.bucket)
	s.must(k.DeleteHistory(s.t.Context(), s.deleted, "jane", s.now))
	for range 3 {
		s.pass(k, 11*minute)
		s.check(what)
	}
	s.pass(k, day+1)
	s.pass(k, 11*minute)
	s.check(what)
	for _, key := range []archive.Key{s.expired, s.deleted} {
		if names := s.bucket.names(key); len(names) != 1 || names[0] != archive.EndName {
			s.t.Fatalf("%s: an archive that went has %v", what, names)
		}
	}
	if !strings.HasPrefix(s.records.marks[s.expired.Cluster], "Expired") || !strings.HasSuffix(s.records.marks[s.deleted.Cluster], "jane") ||
		len(s.records.marks) != 2 {
		s.t.Fatalf("%s: marks are %v", what, s.records.marks)
	}
	for _, key := range []archive.Key{s.ended, s.limited, s.living} {
		s.tidy(key)
		if key != s.living && count(s.bucket.names(key), "p/") > 0 {
			s.t.Fatalf("%s: packs are left: %v", what, s.bucket.names(key))
		}
	}
	if size := s.bucket.size(s.limited); size > s.limits.Cluster {
		s.t.Fatalf("%s: %d bytes above the limit", what, size)
	}
}

// play runs the passes of the story until something fails.
func (s *story) play(k *Keeper) error {
	err := k.DeleteHistory(s.t.Context(), s.deleted, "jane", s.now)
	for _, after := range []int64{2 * hour, minute, 11 * minute, minute} {
		if err != nil {
			return err
		}
		s.now += after
		s.bucket.now = s.now
		err = k.Pass(s.t.Context(), s.now)
	}
	return err
}

func TestPass_LosesNothingWhereverItEnds(t *testing.T) {
	for at := 1; ; at++ {
		isReached := false
		for _, isAfter := range []bool{false, true} {
			s := newStory(t)
			first := s.bucket.calls
			fail := func(call int) error {
				if call-first >= at {
					isReached = true
					return errCrash
				}
				return nil
			}
			if s.bucket.before = fail; isAfter {
				s.bucket.after = fail
				s.bucket.before = func(call int) error {
					if call-first > at {
						return errCrash
					}
					return nil
				}
			}
			if err := s.play(s.keeper(s.bucket)); err != nil && !errors.Is(err, errCrash) {
				t.Fatalf("an end at call %d: %v", at, err)
			}
			s.bucket.before, s.bucket.after = nil, nil
			what := fmt.Sprintf("an end at call %d, after its effect: %v", at, isAfter)
			s.check(what)
			s.finish(what)
		}
		if !isReached {
			if at < 60 {
				t.Errorf("the story has %d calls", at)
			}
			return
		}
	}
}
