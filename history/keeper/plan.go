package keeper

import (
	"maps"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/history/archive"
	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/retain"
)

// manyPacks is how many packs of a cluster that lives do not wait for the end of their day. The newest fewPacks do.
const (
	manyPacks = 512
	fewPacks  = 64
)

// plan is what becomes of an archive.
type plan struct {
	rows []*row
	// live is how many bytes of each object were read before anything was cut.
	live map[string]int64
	// targets are objects whose bytes move to final ones.
	targets map[string]bool
	// isOver: the archive expired. isNothing: there is no record, and nothing to keep.
	isOver, isNothing bool
	// isCut: rows are others than before. isChanged: or those of packs must be taken over. hasMoves: bytes are to move.
	isCut, isChanged, hasMoves bool
	// isStuck: it is above a limit, and nothing more can be cut.
	isStuck bool
	due     int64
}

// row is a file with what becomes of it.
type row struct {
	index.Row
	ending index.Ending
	// isFragmented: it has many more runs than it would have if they were moved.
	isFragmented bool
}

// isEnded reports whether its pod has ended, so that no byte comes any more.
func (r *row) isEnded(now int64) bool { return r.ending.At > 0 && r.ending.At+index.ListWait <= now }

// last returns when the last byte was read or, of a file without any, when it was noted.
func (r *row) last() int64 {
	last := r.Last()
	if len(r.Ranges) == 0 {
		last = max(last, r.ending.At)
		for _, gap := range r.Gaps {
			last = max(last, gap.At)
		}
	}
	return last
}

// stored returns how many bytes of its object a range takes.
func stored(part index.Range) int64 {
	return max(int64(part.Run.Size)*part.Length/part.Run.Length, 1)
}

// isPartial reports whether a range is not all of its run.
func isPartial(part index.Range) bool { return part.Length < part.Run.Length }

// endings returns how the pods ended. An hour after its cluster went, a pod without a record of its end has none to come.
func (j *job) endings() map[pack.UID]index.Ending {
	endings := maps.Clone(j.records.Endings(j.key.Cluster))
	if endings == nil {
		endings = map[pack.UID]index.Ending{}
	}
	if j.fact.Ended == 0 || j.now < j.fact.Ended+hour {
		return endings
	}
	add := func(pod pack.UID) {
		if _, is := endings[pod]; !is {
			endings[pod] = index.Ending{At: j.fact.Ended, Reason: pack.Killed}
		}
	}
	for _, file := range j.stored.Files() {
		add(file.Pod)
	}
	for pod := range j.stored.Lists() {
		add(pod)
	}
	return endings
}

// decide makes the plan.
func (j *job) decide() plan {
	endings := j.endings()
	p := plan{live: map[string]int64{}, targets: map[string]bool{}, due: never}
	size := j.load(&p, endings)
	j.plan.live = p.live
	hasEnded := j.isKnown && j.fact.Ended > 0 && j.stored.Archive.State(endings, j.now) != index.Collecting
	if j.fact.Ended > 0 && !hasEnded {
		p.due = j.now + minute
	}
	wasAbove := j.isAbove()
	limit := j.limit(p.rows, size, wasAbove)
	p.cut(j.fact, limit, j.settings.Limits.AfterNamespace, j.now)
	last := p.drop(j.fact, j.hasOutlived(), j.now)
	for _, ending := range endings {
		last = max(last, ending.At)
	}
	if len(p.rows) == 0 && len(j.stored.Left) == 0 {
		p.isOver = hasEnded && (j.hasOutlived() || last+j.fact.KeepFor <= j.now)
		p.isNothing = !j.isKnown && newest(j.stored)+retain.OrphanAge <= j.now
	}
	if p.isOver || p.isNothing {
		return p
	}
	j.target(&p, hasEnded, wasAbove)
	p.isStuck = wasAbove && !p.isChanged && !p.hasMoves
	j.schedule(&p, hasEnded, last)
	return p
}

// load fills the rows, and returns how many bytes of the store they take.
func (j *job) load(p *plan, endings map[pack.UID]index.Ending) (size int64) {
	for _, one := range j.stored.Rows() {
		r := &row{Row: one, ending: endings[one.Pod]}
		if !j.isKnown {
			r.ending.At = max(newest(j.stored), 1) // as far as anybody can see
		}
		p.rows = append(p.rows, r)
		for _, part := range r.Ranges {
			p.live[part.Object] += stored(part)
			size += stored(part)
		}
	}
	return size
}

// hasOutlived reports whether the archive has outlived its namespace for long enough.
func (j *job) hasOutlived() bool {
	return j.fact.NamespaceGone > 0 && j.fact.NamespaceGone+j.settings.Limits.AfterNamespace <= j.now
}

// newest returns when the last object was written.
func newest(s *archive.Stored) int64 {
	newest := int64(0)
	for _, object := range s.Objects {
		newest = max(newest, object.At)
	}
	return newest
}

// held returns how many bytes the archive takes, without what was replaced.
func (j *job) held() int64 {
	held := int64(0)
	for name, object := range j.stored.Objects {
		if !j.isReplaced(name) {
			held += object.Size
		}
	}
	return held
}

// bound returns the limit that holds for the archive: the cluster's, or what is left of the namespace's. 0 is none.
func (j *job) bound() int64 {
	limit := j.settings.Limits.Cluster
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if level, is := j.levels[j.key.Namespace]; is && (limit == 0 || level < limit) {
		limit = max(level, 1)
	}
	return limit
}

// isAbove reports whether the archive takes more of the store than it may.
func (j *job) isAbove() bool {
	bound := j.bound()
	return bound > 0 && j.held() > bound
}

// limit returns to how many bytes the archive is cut, and 0 where it is not. What indexes and dead bytes take has a sixteenth.
func (j *job) limit(rows []*row, size int64, isAbove bool) int64 {
	limit := int64(0)
	if isAbove {
		limit = j.bound() - j.bound()/16
	}
	entries := int64(0)
	for _, one := range rows {
		entries += int64(len(one.Ranges) + len(one.Gaps) + 1)
	}
	// An index that cannot be read any more would be worse than a cut.
	if most := int64(index.MaxRuns) / 4 * 3; entries > most {
		if share := max(size/entries*(most/3*2), 1); limit == 0 || share < limit {
			limit = share
		}
	}
	return limit
}

// cut takes out what is too old or above a limit.
func (p *plan) cut(fact Archive, limit, afterNamespace, now int64) {
	one := retain.Archive{Cluster: fact.Key.Cluster, Namespace: fact.Key.Namespace, KeepFor: fact.KeepFor, NamespaceGone: fact.NamespaceGone}
	byKey := map[pack.FileKey]*row{}
	for _, r := range p.rows {
		byKey[r.FileKey] = r
		if len(r.Ranges) == 0 {
			continue
		}
		file := retain.File{Key: r.FileKey, IsEnded: r.isEnded(now) || r.IsListed, Last: r.last()}
		for _, part := range r.Ranges {
			file.Runs = append(file.Runs, retain.Run{Offset: part.Offset, Length: part.Length, At: part.Run.At, Size: stored(part)})
		}
		one.Files = append(one.Files, file)
	}
	isDropped := map[pack.FileKey]bool{}
	runs := map[pack.FileKey]map[int64]bool{} // by offset
	for _, cut := range retain.Cuts([]retain.Archive{one}, retain.Limits{Cluster: limit, AfterNamespace: afterNamespace}, now) {
		p.isCut = true
		r := byKey[cut.File]
		switch {
		case !cut.IsWhole:
			if runs[cut.File] == nil {
				runs[cut.File] = map[int64]bool{}
			}
			runs[cut.File][cut.Run.Offset] = true
		case cut.Cause == retain.Expired && r.isEnded(now):
			isDropped[cut.File] = true
		default:
			r.lose(func(index.Range) bool { return true })
		}
	}
	for key, offsets := range runs {
		byKey[key].lose(func(part index.Range) bool { return offsets[part.Offset] })
	}
	p.rows = slices.DeleteFunc(p.rows, func(r *row) bool { return isDropped[r.FileKey] })
}

// lose puts gaps in place of ranges.
func (r *row) lose(is func(index.Range) bool) {
	gaps := r.Gaps
	for _, part := range r.Ranges {
		if is(part) {
			gaps = append(gaps, pack.Gap{Offset: part.Offset, Length: part.Length, Reason: pack.LimitReached, At: part.Run.At})
		}
	}
	r.Ranges = slices.DeleteFunc(r.Ranges, is)
	r.setGaps(gaps)
}

// drop forgets files without bytes that nobody asks for any more, and returns when the last byte of all was read.
func (p *plan) drop(fact Archive, isGone bool, now int64) (last int64) {
	count := len(p.rows)
	p.rows = slices.DeleteFunc(p.rows, func(r *row) bool {
		isOver := len(r.Ranges) == 0 && r.isEnded(now) && (isGone || r.last()+fact.KeepFor <= now)
		if !isOver {
			last = max(last, r.last())
		}
		return isOver
	})
	p.isCut = p.isCut || len(p.rows) < count
	return last
}

// target finds the objects whose bytes are to move.
func (j *job) target(p *plan, hasEnded, isAbove bool) {
	packs := j.packs()
	p.isChanged = p.isCut || lacksManifest(j.stored)
	until := j.now - j.now%day // the packs of the days that have ended
	switch {
	case hasEnded:
		until = never
	case isAbove:
		until = max(until, j.now-hour)
	}
	for i, name := range packs {
		at, _ := archive.PackTime(name)
		isTarget := at < until || len(packs) > manyPacks && i < len(packs)-fewPacks
		p.targets[name] = isTarget
		// The rows of a pack must be taken over, be it without bytes.
		p.isChanged = p.isChanged || isTarget && !j.stored.Named[name]
	}
	live, overhead := p.measure()
	for name, object := range j.stored.Objects {
		dead := object.Size - live[name] - overhead[name]
		if strings.HasPrefix(name, "f/") && live[name] > 0 && (dead > object.Size/2 || isAbove && dead > object.Size/16) {
			p.targets[name] = true
		}
	}
	p.findMoves(hasEnded)
}

// lacksManifest reports whether the newest manifest is damaged or away, where there must be one.
func lacksManifest(s *archive.Stored) bool {
	isFinal := func(name string) bool { return strings.HasPrefix(name, "f/") || strings.HasPrefix(name, "m/") }
	return !s.IsWhole && slices.ContainsFunc(slices.Collect(maps.Keys(s.Objects)), isFinal)
}

// packs returns the packs that were read, in order.
func (j *job) packs() []string {
	var all []string
	for name := range j.stored.Objects {
		if _, is := archive.PackTime(name); is && !j.isReplaced(name) && !isUnread(j.stored, name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// isUnread reports whether an object was listed and is not in the index.
func isUnread(s *archive.Stored, name string) bool {
	return slices.Contains(s.Damaged, name) || slices.Contains(s.Left, name)
}

// measure returns how many bytes of each object the rows have, and how many its index has at most: else an object of small files would
// be moved for ever.
func (p *plan) measure() (live, overhead map[string]int64) {
	live, overhead = map[string]int64{}, map[string]int64{}
	for _, r := range p.rows {
		for _, part := range r.Ranges {
			live[part.Object] += stored(part)
			overhead[part.Object] += 128 + int64(len(r.Path))
		}
	}
	for name := range overhead {
		overhead[name] += 4 << 10
	}
	return live, overhead
}

// findMoves finds what is to move within files.
func (p *plan) findMoves(hasEnded bool) {
	for _, r := range p.rows {
		least, end := int64(0), int64(-1)
		begin := int64(0)
		for _, part := range r.Ranges {
			if part.Offset != end {
				least, begin = least+(end-begin+pack.MaxRun-1)/pack.MaxRun, part.Offset
			}
			end = part.Offset + part.Length
			p.hasMoves = p.hasMoves || p.targets[part.Object]
		}
		least += (end - begin + pack.MaxRun - 1) / pack.MaxRun
		r.isFragmented = hasEnded && int64(len(r.Ranges)) > 2*least+2
		p.hasMoves = p.hasMoves || r.isFragmented
	}
}

// schedule finds when there is something to do next.
func (j *job) schedule(p *plan, hasEnded bool, last int64) {
	first, count := never, 0
	for _, r := range p.rows {
		if at := r.last(); at > 0 && (len(r.Ranges) > 0 || r.ending.At > 0) {
			first = min(first, at+j.fact.KeepFor)
		}
		count += len(r.Ranges)
	}
	// Files expire together: each time costs a manifest, and of a cluster that lives the indexes of its packs.
	pause := minute
	if count > 64 || len(j.stored.Objects) > 64 {
		pause = hour
	}
	p.due = min(p.due, max(first, j.now+pause))
	if hasEnded {
		p.due = min(p.due, max(last+j.fact.KeepFor, j.now+minute))
	} else if len(j.packs()) > 0 {
		p.due = min(p.due, j.now-j.now%day+day)
	}
	if gone := j.fact.NamespaceGone; gone > 0 && gone+j.settings.Limits.AfterNamespace > j.now {
		p.due = min(p.due, gone+j.settings.Limits.AfterNamespace)
	}
	if !j.isKnown {
		p.due = min(p.due, j.now+day)
	}
}
