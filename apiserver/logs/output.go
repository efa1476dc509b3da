package logs

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/heliostat-dev/heliostat/portal/limits"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// output is an output of one head, for as long as somebody reads it. One goroutine writes what comes to its end, and each
// reader reads it where the reader is. Its beginning stays as long as there is room: the head sends it in any case.
type output struct {
	logs *Logs
	key  key
	// stop ends the goroutine that writes.
	stop context.CancelFunc
	// wake holds something while a reader waits for a look; moved, while one has read or left.
	wake, moved chan struct{}

	mu sync.Mutex
	// changed is closed at each change, and replaced.
	changed chan struct{}
	blocks  []int64
	// base and end are the offsets of what is kept.
	base, end int64
	readers   map[*reader]bool
	// begun counts the looks at the output, done is the last one that ended, and look what it found.
	begun, done int64
	look        headclient.Look
	// verdict is how it ended, once it isOver.
	verdict verdict
	isOver  bool
}

// verdict is how an output ended for a reader.
type verdict struct {
	// job is what Ray said of it last; it has no ID where Ray said nothing.
	job headclient.Job
	// isOver: the job is over, and all of its output was given. Else it goes on, or err says what went wrong.
	isOver bool
	awaits error
	err    error
	// size is how much of it is known, for errShorter.
	size int64
}

// Why a reader gets no more from an output, though others may.
var (
	errBehind  = errors.New("the reader fell behind what is kept")
	errShorter = errors.New("the output ends before the offset")
)

// reader is where one reader is on an output. The output's lock guards it.
type reader struct {
	// at is the offset of what is read next. It has no meaning while isTailing: the end must be known first.
	at        int64
	isTailing bool
	// needsLook: what is there now is enough, and must be known.
	needsLook bool
	// fresh is the first look that began after the reader had come.
	fresh int64
	// isCut: others need the room of what it has not read.
	isCut bool
	who   limits.Holder
}

// join lets a reader in, unless what it wants is not kept any more.
func (o *output) join(r *reader) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.at < o.base && !r.isTailing {
		return false
	}
	r.fresh, o.readers[r] = o.begun+1, true
	if r.needsLook {
		signal(o.wake)
	}
	return true
}

// isReadBy reports whether a user reads it, and whether a service account of the user's namespace does.
func (o *output) isReadBy(who limits.Holder) (isUsers, isNamespaces bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for r := range o.readers {
		isUsers = isUsers || r.who.User == who.User
		isNamespaces = isNamespaces || who.Namespace != "" && r.who.Namespace == who.Namespace
	}
	return isUsers, isNamespaces
}

// leave lets a reader out, and reports whether it was the last one.
func (o *output) leave(r *reader) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.readers, r)
	signal(o.moved)
	if len(o.readers) > 0 {
		return false
	}
	if o.isOver {
		o.release()
	}
	return true
}

// finish keeps how it ended. What is kept goes with the last reader.
func (o *output) finish(v verdict) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.isOver, o.verdict = true, v
	if v.err == nil {
		o.look = headclient.Look{Job: v.job}
	}
	o.tell()
	if len(o.readers) == 0 {
		o.release()
	}
}

// release gives all room back. The caller holds the lock; nobody reads or writes.
func (o *output) release() {
	o.logs.spool.give(o.blocks, len(o.blocks))
	o.logs.spool.dismiss()
	o.blocks, o.base = nil, o.end
}

// tell wakes all who wait for a change. The caller holds the lock.
func (o *output) tell() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// signal leaves word for who waits on a channel that holds one.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default: // there is word already
	}
}

// begin counts a look, and returns where it begins.
func (o *output) begin() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begun++
	select {
	case <-o.wake: // who waits is content with this look
	default:
	}
	return o.end
}

// note keeps what a look found.
func (o *output) note(look headclient.Look) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done, o.look = o.begun, look
	o.tell()
}

// write adds to the end. It waits where there is no room and no reader that would have to wait for that.
func (o *output) write(ctx context.Context, data []byte) error {
	for len(data) > 0 {
		block, at, err := o.room(ctx)
		if err != nil {
			return err
		}
		part := data[:min(int64(len(data)), blockSize-at)]
		if err := o.logs.spool.write(block, at, part); err != nil {
			return err
		}
		o.mu.Lock()
		o.end += int64(len(part))
		o.tell()
		o.mu.Unlock()
		data = data[len(part):]
	}
	return nil
}

// room finds the place behind the end.
func (o *output) room(ctx context.Context) (block, at int64, err error) {
	for {
		block, at, found, err := o.slot()
		if found || err != nil {
			return block, at, err
		}
		o.logs.reclaim()
		if block, at, found, err = o.slot(); found || err != nil {
			return block, at, err
		}
		if o.cut() {
			continue
		}
		select {
		case <-o.moved:
		case <-ctx.Done():
			return 0, 0, context.Cause(ctx)
		}
	}
}

// slot finds the place behind the end: in the last block, or in a new one.
func (o *output) slot() (block, at int64, found bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if at := o.end - o.base - int64(len(o.blocks)-1)*blockSize; len(o.blocks) > 0 && at < blockSize {
		return o.blocks[len(o.blocks)-1], at, true, nil
	}
	if block, found, err = o.logs.spool.take(len(o.blocks)); found {
		o.blocks = append(o.blocks, block)
	}
	return block, 0, found, err
}

// trim gives back what all readers have passed.
func (o *output) trim() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.isOver && len(o.readers) == 0 {
		return // it was released
	}
	count := int((o.lowest() - o.base) / blockSize)
	if count = min(count, len(o.blocks)); count <= 0 {
		return
	}
	o.logs.spool.give(o.blocks[:count], len(o.blocks))
	o.blocks, o.base = o.blocks[count:], o.base+int64(count)*blockSize
}

// lowest is the first offset that a reader needs. Who wants the last lines gets those of the last block in any case. The
// caller holds the lock.
func (o *output) lowest() int64 {
	lowest := o.end
	for r := range o.readers {
		lowest = min(lowest, o.needs(r))
	}
	return lowest
}

// needs is the first offset that a reader needs.
func (o *output) needs(r *reader) int64 {
	switch {
	case r.isCut:
		return o.end
	case r.isTailing:
		return max(o.base, o.end-blockSize)
	default:
		return r.at
	}
}

// cut ends the reader that is furthest behind, where another one waits for what comes. It reports whether it did.
func (o *output) cut() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	var slowest *reader
	waits := false
	for r := range o.readers {
		switch at := o.needs(r); {
		case r.isCut: // it waits for nothing any more
		case r.isTailing, at >= o.end:
			waits = true
		case slowest == nil, at < o.needs(slowest):
			slowest = r
		}
	}
	if !waits || slowest == nil {
		return false
	}
	slowest.isCut = true
	o.tell()
	return true
}

// glance is what a reader finds when it looks at an output.
type glance struct {
	// spot says where what comes next is kept.
	spot spot
	// ended is set where nothing comes: the verdict then says why.
	ended   bool
	verdict verdict
	// answers: the head has answered.
	answers bool
	// isPlaceable: the end is known, and a reader that wants the last lines can find them.
	isPlaceable bool
	// changed is closed when it is worth to look again.
	changed <-chan struct{}
}

// spot is a part of an output in the spool.
type spot struct{ block, at, size int64 }

// glance tells a reader what to do next.
func (o *output) glance(r *reader) glance {
	o.mu.Lock()
	defer o.mu.Unlock()
	seen := glance{changed: o.changed, answers: o.done > 0}
	isKnown := o.done >= r.fresh || o.isOver
	switch {
	case r.isCut:
		seen.ended, seen.verdict = true, verdict{err: errBehind}
	case r.isTailing && isKnown && o.verdict.err == nil:
		seen.isPlaceable = true
	case !r.isTailing && r.at < o.end:
		seen.spot = o.spot(r.at)
	default:
		seen.verdict, seen.ended = o.judge(r, isKnown)
	}
	return seen
}

// judge says whether nothing comes for a reader that has had all, and why. The caller holds the lock.
func (o *output) judge(r *reader, isKnown bool) (v verdict, isEnded bool) {
	isBeyond := isKnown && r.at > o.end && o.look.Awaits == nil
	switch {
	case o.isOver && (o.verdict.err != nil || !isBeyond):
		return o.verdict, true
	case isBeyond:
		return verdict{job: o.look.Job, err: errShorter, size: o.end}, true
	default: // of a job that is over the last look is to come
		return verdict{job: o.look.Job, awaits: o.look.Awaits}, isKnown && r.needsLook && !o.look.Job.Status.Over()
	}
}

// spot finds what is kept behind an offset, within one block. The caller holds the lock.
func (o *output) spot(offset int64) spot {
	at := (offset - o.base) % blockSize
	return spot{o.blocks[(offset-o.base)/blockSize], at, min(o.end-offset, blockSize-at)}
}

// find is spot for a reader that was perhaps cut off.
func (o *output) find(offset int64) (where spot, isKept bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if offset < o.base {
		return spot{}, false
	}
	return o.spot(offset), true
}

// advance moves a reader on by what it has read. It is false where that was not kept any more.
func (o *output) advance(r *reader, by int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.isCut {
		return false
	}
	r.at += by
	signal(o.moved)
	return true
}

// place moves a reader to where the last lines begin. It returns false where fewer are kept.
func (o *output) place(r *reader, lines int) (isWhole bool, err error) {
	o.mu.Lock()
	r.isTailing, r.at = false, o.base // from here on all of it stays
	base, end := o.base, o.end
	o.mu.Unlock()
	at, isWhole, err := o.backwards(base, end, lines)
	if err != nil {
		return false, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.isCut {
		return true, nil // which the next glance says
	}
	r.at = at
	signal(o.moved)
	return isWhole || base == 0, nil
}

// backwards finds where the last lines between two offsets begin. An end of a line at the end ends the last one.
func (o *output) backwards(base, end int64, lines int) (begin int64, isWhole bool, err error) {
	buffer := make([]byte, partSize)
	for at := end; at > base; {
		from := (at - 1) / partSize * partSize // parts do not cross blocks
		where, isKept := o.find(from)
		if !isKept {
			return base, false, nil
		}
		part := buffer[:at-from]
		if err := o.logs.spool.read(where.block, where.at, part); err != nil {
			return 0, false, err
		}
		for i := len(part); ; {
			if i = bytes.LastIndexByte(part[:i], '\n'); i < 0 {
				break
			}
			if offset := from + int64(i) + 1; offset < end {
				if lines--; lines == 0 {
					return offset, true, nil
				}
			}
		}
		at = from
	}
	return base, false, nil
}
