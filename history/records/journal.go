package records

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.etcd.io/bbolt"
)

// Bounds of a journal, an object of the store: who can write there may have made it.
const (
	maxJournal  = 1 << 20        // bytes of lines
	maxLine     = 768 << 10      // bytes of one: a record and its events
	maxStored   = 2 * maxJournal // bytes of the object
	maxLines    = 1 << 12
	maxDecoded  = maxJournal + maxLine
	prefixStore = "v1/records/"
	snapshots   = "day/"
	// slack is how far the clocks of replicas may differ.
	slack = 10 * time.Minute
	// old is how old a journal is when a snapshot replaces it.
	old = 24 * time.Hour
)

// errDamaged is wrapped by errors about journals that cannot be read.
var errDamaged = errors.New("the object is damaged")

// journal writes lines to the store, and reads what it has.
type journal struct {
	store   Store
	replica int
	number  uint64
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

func newJournal(store Store, replica int, first uint64) (*journal, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<18))
	if err != nil {
		return nil, fmt.Errorf("make an encoder: %w", err)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxDecoded), zstd.WithDecoderMaxWindow(1<<21))
	if err != nil {
		return nil, fmt.Errorf("make a decoder: %w", err)
	}
	return &journal{store: store, replica: replica, number: first, encoder: encoder, decoder: decoder}, nil
}

// write writes lines about a namespace, as one journal or several, and notes in a table that it has them.
func (j *journal) write(ctx context.Context, from *table, namespace string, lines []line, now int64) error {
	b := &batch{each: func(text []byte) error {
		j.number++
		key := fmt.Sprintf("%s%s/%013d-%d-%d", prefixStore, namespace, now, j.replica, j.number)
		if err := j.store.Write(ctx, key, j.encoder.EncodeAll(text, nil)); err != nil {
			return fmt.Errorf("write records: %w", err)
		}
		return from.noteRead(key, now)
	}}
	for _, one := range lines {
		if err := b.add(one); err != nil {
			return err
		}
	}
	return b.end()
}

// batch joins lines to texts of at most maxJournal bytes and maxLines lines.
type batch struct {
	text  []byte
	count int
	each  func(text []byte) error
}

// add adds a line. One without content, or beyond the bounds that rows keep, is left out.
func (b *batch) add(one line) error {
	if one == (line{}) {
		return nil
	}
	added, err := json.Marshal(one)
	if err != nil {
		return fmt.Errorf("write a line: %w", err)
	}
	if len(added) > maxLine { // characters of JSON can be longer than what they stand for
		if one.Row == nil || one.Row.Events == nil && one.Row.Object == nil {
			return nil
		}
		less := *one.Row
		if less.Events == nil {
			less.Object = nil
		}
		less.Events = nil
		return b.add(line{Row: &less})
	}
	if len(b.text)+len(added)+1 > maxJournal || b.count == maxLines {
		if err := b.end(); err != nil {
			return err
		}
	}
	b.text, b.count = append(append(b.text, added...), '\n'), b.count+1
	return nil
}

// end hands on what is left.
func (b *batch) end() error {
	if len(b.text) == 0 {
		return nil
	}
	err := b.each(b.text)
	b.text, b.count = b.text[:0], 0
	return err
}

// stored is a journal or a part of a snapshot, as its key names it.
type stored struct {
	key, namespace string
	at, size       int64
	isSnapshot     bool
	part, of       int
}

// parseKey reads the key of a journal, and reports false for another one.
func parseKey(key string, size int64) (stored, bool) {
	namespace, name, is := strings.Cut(strings.TrimPrefix(key, prefixStore), "/")
	one := stored{key: key, namespace: namespace, size: size}
	if !is || len(namespace) != lengthUID || size > maxStored {
		return one, false
	}
	name, one.isSnapshot = strings.CutPrefix(name, snapshots)
	parts := strings.Split(name, "-")
	if len(parts) != 3 || len(parts[0]) != 13 {
		return one, false
	}
	var errs [3]error
	one.at, errs[0] = strconv.ParseInt(parts[0], 10, 64)
	one.part, errs[1] = strconv.Atoi(parts[1])
	if one.isSnapshot {
		one.of, errs[2] = strconv.Atoi(parts[2])
	}
	return one, errors.Join(errs[:]...) == nil
}

// read takes into a table what the store has and the table has not.
func (j *journal) read(ctx context.Context, to *table, now int64) error {
	var wanted []stored
	there := map[string]bool{}
	err := j.store.List(ctx, prefixStore, func(key string, size, _ int64) error {
		there[key] = true
		one, is := parseKey(key, size)
		if is && !to.hasRead(key) {
			wanted = append(wanted, one)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list records: %w", err)
	}
	if err := to.keepRead(there); err != nil {
		return err
	}
	var errs []error
	for _, one := range wanted {
		lines, err := j.open(ctx, one)
		if err == nil {
			err = to.take(lines)
		}
		if err == nil || errors.Is(err, errDamaged) { // it will not be better the next time
			err = errors.Join(err, to.noteRead(one.key, now))
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// open returns the lines of a journal.
func (j *journal) open(ctx context.Context, one stored) ([]line, error) {
	data, err := j.store.Read(ctx, one.key, 0, one.size)
	if err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	text, err := j.decoder.DecodeAll(data, nil)
	if err != nil {
		return nil, fmt.Errorf("read records of %s: %w: %w", one.key, errDamaged, err)
	}
	var lines []line
	for one := range bytes.Lines(text) {
		var read line
		if len(lines) == maxLines || len(one) > maxLine || json.Unmarshal(one, &read) != nil {
			continue // who writes to the store can lose records, and nothing more
		}
		if read.Row != nil && len(read.Row.Events) > maxEvents {
			read.Row.Events = read.Row.Events[:maxEvents]
		}
		lines = append(lines, read)
	}
	return lines, nil
}

// compact replaces the journals of a namespace by a snapshot of the table, once the oldest is a day old, and removes what is replaced.
func (j *journal) compact(ctx context.Context, from *table, now int64) error {
	all := map[string][]stored{}
	err := j.store.List(ctx, prefixStore, func(key string, size, _ int64) error {
		if one, is := parseKey(key, size); is {
			all[one.namespace] = append(all[one.namespace], one)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list records: %w", err)
	}
	var errs []error
	for namespace, objects := range all {
		errs = append(errs, j.compactNamespace(ctx, from, namespace, objects, now))
	}
	return errors.Join(errs...)
}

func (j *journal) compactNamespace(ctx context.Context, from *table, namespace string, objects []stored, now int64) error {
	newest := wholeSnapshot(objects)
	isEmpty, err := from.isEmpty(namespace)
	if err != nil {
		return err
	}
	for _, one := range objects {
		isReplaced := one.at+slack.Milliseconds() < newest || isEmpty && one.at+removedFor.Milliseconds() <= now
		if !isReplaced || !from.hasRead(one.key) {
			continue
		}
		if err := j.store.Delete(ctx, one.key); err != nil {
			return fmt.Errorf("remove records: %w", err)
		}
	}
	isDue := false
	for _, one := range objects {
		isDue = isDue || !one.isSnapshot && one.at+slack.Milliseconds() >= newest && one.at+old.Milliseconds() <= now
	}
	if !isDue || isEmpty {
		return nil
	}
	return from.view(func(tx *bbolt.Tx) error {
		count := 0
		if err := eachLine(tx, namespace, &batch{each: func([]byte) error { count++; return nil }}); err != nil {
			return err
		}
		part := 0
		return eachLine(tx, namespace, &batch{each: func(text []byte) error {
			key := fmt.Sprintf("%s%s/%s%013d-%d-%d", prefixStore, namespace, snapshots, now, part, count)
			part++
			if err := j.store.Write(ctx, key, j.encoder.EncodeAll(text, nil)); err != nil {
				return fmt.Errorf("write records: %w", err)
			}
			return nil
		}})
	})
}

// isEmpty reports whether the table has nothing of a namespace.
func (t *table) isEmpty(namespace string) (is bool, err error) {
	err = t.db.View(func(tx *bbolt.Tx) error {
		first, _ := tx.Bucket(bucketOrder).Cursor().Seek([]byte(namespace))
		is = !bytes.HasPrefix(first, []byte(namespace)) && tx.Bucket(bucketSpaces).Get([]byte(namespace)) == nil
		return nil
	})
	return is, err
}

// wholeSnapshot returns when the newest snapshot was made of which all parts are there, and 0 without one.
func wholeSnapshot(objects []stored) int64 {
	parts, newest := map[int64]int{}, int64(0)
	for _, one := range objects {
		if !one.isSnapshot {
			continue
		}
		parts[one.at]++
		if parts[one.at] == one.of && one.at > newest {
			newest = one.at
		}
	}
	return newest
}

// eachLine adds to a batch all that the table has of a namespace, and ends it.
func eachLine(tx *bbolt.Tx, uid string, to *batch) error {
	u := &update{tx, true}
	space, err := u.lineOf([]byte(uid + string(rune(typeSpace)) + uid))
	if err != nil {
		return err
	}
	if err := to.add(space); err != nil {
		return err
	}
	for key := range each(tx.Bucket(bucketOrder), []byte(uid)) {
		one, err := u.row(string(key[lengthUID+16:]))
		if err != nil {
			return err
		}
		if err := to.add(line{Row: one}); err != nil {
			return err
		}
		for _, text := range each(tx.Bucket(bucketPods), []byte(one.UID)) {
			pod := &podRow{}
			if err := decode(text, pod); err != nil {
				return err
			}
			if err := to.add(line{Pod: pod}); err != nil {
				return err
			}
		}
	}
	return to.end()
}

func (t *table) view(look func(tx *bbolt.Tx) error) error { return t.db.View(look) }

// hasRead reports whether the table has what an object of the store has.
func (t *table) hasRead(key string) bool {
	is := false
	_ = t.db.View(func(tx *bbolt.Tx) error { // the view returns no error of its own
		is = tx.Bucket(bucketRead).Get([]byte(key)) != nil
		return nil
	})
	return is
}

func (t *table) noteRead(key string, now int64) error {
	return t.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketRead).Put([]byte(key), timeKey(now)) })
}

// keepRead forgets keys that the store has no more.
func (t *table) keepRead(there map[string]bool) error {
	return t.db.Update(func(tx *bbolt.Tx) error {
		var gone [][]byte
		for key := range each(tx.Bucket(bucketRead), nil) {
			if !there[string(key)] {
				gone = append(gone, bytes.Clone(key))
			}
		}
		var errs []error
		for _, key := range gone {
			errs = append(errs, tx.Bucket(bucketRead).Delete(key))
		}
		return errors.Join(errs...)
	})
}
