package keeper

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/pack"
)

// The bounds of final objects. A file with ownBytes to move has objects of its own. Others share one up to sharedBytes.
const (
	ownBytes    = 1 << 20
	sharedBytes = 8 << 20
	sharedFiles = 4096
	// objectBytes is what a writer of packs takes, with room for what does not compress.
	objectBytes = pack.MaxObject/2 - pack.MaxRun
)

// rewrite moves bytes into final objects, and writes the manifest of all rows.
func (j *job) rewrite(ctx context.Context) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	m := &mover{job: j}
	for _, r := range j.plan.rows {
		if err := m.move(ctx, r); err != nil {
			return err
		}
	}
	if err := m.finish(ctx); err != nil {
		return err
	}
	return j.writeManifest(ctx)
}

// mover fills final objects, one at a time.
type mover struct {
	*job
	writer *pack.Writer
	rows   map[pack.FileKey]*row
	raw    int64
	isOwn  bool
}

// share takes the ranges out of a file that move now: those whose run has other bytes too in each case, others within the budget.
func (m *mover) share(r *row) (all []index.Range, size int64) {
	left := m.budget - m.moved
	r.Ranges = slices.DeleteFunc(r.Ranges, func(part index.Range) bool {
		isWanted := m.plan.targets[part.Object] || r.isFragmented
		if !isPartial(part) && (!isWanted || left <= 0) {
			return false
		}
		all, size, left = append(all, part), size+part.Length, left-part.Length
		return true
	})
	return all, size
}

// move moves what is to move of a file.
func (m *mover) move(ctx context.Context, r *row) error {
	parts, size := m.share(r)
	if len(parts) == 0 {
		return nil
	}
	isOwn := size >= ownBytes
	if m.writer != nil && (isOwn || m.isOwn || m.raw+size > sharedBytes || len(m.rows) >= sharedFiles) {
		if err := m.finish(ctx); err != nil {
			return err
		}
	}
	m.isOwn = isOwn
	for _, part := range parts {
		if m.writer != nil && m.raw+part.Length > objectBytes {
			if err := m.finish(ctx); err != nil {
				return err
			}
		}
		if err := m.add(ctx, r, part); err != nil {
			return err
		}
	}
	return nil
}

// add copies a range.
func (m *mover) add(ctx context.Context, r *row, part index.Range) error {
	data, err := m.stored.Read(ctx, part)
	if errors.Is(err, pack.ErrInvalid) {
		data, err = m.stored.Read(ctx, part) // perhaps they were changed on their way
	}
	switch {
	case errors.Is(err, pack.ErrInvalid):
		r.setGaps(append(slices.Clone(r.Gaps), pack.Gap{Offset: part.Offset, Length: part.Length, Reason: pack.ArchiverAway, At: part.Run.At}))
		return nil
	case m.store.IsNotFound(err):
		return errChanged
	case err != nil:
		return fmt.Errorf("move bytes of %s of cluster %s: %w", part.Object, m.key.Cluster, err)
	}
	if m.writer == nil {
		m.writer, m.rows, m.raw = m.encoder.NewWriter(m.key.Cluster, m.now), map[pack.FileKey]*row{}, 0
	}
	if err := m.writer.Add(r.File, part.Offset, part.Run.At, data); err != nil {
		return fmt.Errorf("move bytes of %s of cluster %s: %w", part.Object, m.key.Cluster, err)
	}
	m.rows[r.FileKey] = r
	m.raw, m.moved = m.raw+part.Length, m.moved+part.Length
	return nil
}

// finish writes the object, and gives the rows the ranges that it has.
func (m *mover) finish(ctx context.Context) error {
	if m.writer == nil {
		return nil
	}
	data, err := m.writer.Finish()
	if err != nil {
		return fmt.Errorf("make a final object of cluster %s: %w", m.key.Cluster, err)
	}
	x, err := m.decoder.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return fmt.Errorf("read a final object of cluster %s: %w", m.key.Cluster, err)
	}
	name := fmt.Sprintf("f/%013d-%d", m.now, m.number())
	if err := m.store.Write(ctx, m.key.Prefix()+name, data); err != nil {
		return fmt.Errorf("write %s of cluster %s: %w", name, m.key.Cluster, err)
	}
	for _, run := range x.Runs {
		r := m.rows[x.Files[run.File].FileKey]
		r.Ranges = append(r.Ranges, index.Range{Offset: run.Offset, Length: run.Length, Object: name, Run: run})
	}
	for _, r := range m.rows {
		slices.SortFunc(r.Ranges, func(a, b index.Range) int { return cmp.Compare(a.Offset, b.Offset) })
	}
	m.writer = nil
	return nil
}

// setGaps gives a row gaps, in order.
func (r *row) setGaps(gaps []pack.Gap) {
	slices.SortStableFunc(gaps, func(a, b pack.Gap) int { return cmp.Compare(a.Offset, b.Offset) })
	r.Gaps = nil
	for _, one := range gaps {
		r.AddGap(one)
	}
}
