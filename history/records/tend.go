package records

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/pack"
	"github.com/heliostat-dev/heliostat/history/retain"
)

// maxBatch is how many records go in one change of the table, so that none is long.
const maxBatch = 10_000

// living are the objects and pods that Kubernetes has, by their UIDs.
type living struct{ objects, pods, spaces map[string]bool }

// endAbsent ends what goes on in the table and is not in Kubernetes. namespaces are those that are watched; none is all.
func (t *table) endAbsent(there living, now int64, namespaces []string) error {
	isWatched := func(namespace string) bool { return len(namespaces) == 0 || slices.Contains(namespaces, namespace) }
	return t.update(false, func(u *update) error {
		var absent []row
		for _, text := range each(u.tx.Bucket(bucketOrder), nil) {
			var one row
			if err := decode(text, &one); err != nil {
				return err
			}
			if one.Deleted == 0 && !there.objects[one.UID] && isWatched(one.Namespace) {
				absent = append(absent, one)
			}
		}
		var errs []error
		for _, one := range absent {
			errs = append(errs, u.changeRow(one.UID, func(r *row) { r.Deleted, r.EndUnknown, r.At = now, true, now }))
		}
		errs = append(errs, u.endPods(there, now, isWatched))
		gone := map[string]space{}
		for uid, text := range each(u.tx.Bucket(bucketSpaces), nil) {
			var one space
			if err := decode(text, &one); err != nil {
				return err
			}
			if one.Gone == 0 && !there.spaces[string(uid)] {
				gone[string(uid)] = space{one.Name, now, now}
			}
		}
		for uid, one := range gone {
			errs = append(errs, u.putSpace(uid, one))
		}
		return errors.Join(errs...)
	})
}

// endPods ends pods that are not in Kubernetes.
func (u *update) endPods(there living, now int64, isWatched func(namespace string) bool) error {
	var absent []podRow
	for _, text := range each(u.tx.Bucket(bucketPods), nil) {
		var one podRow
		if err := decode(text, &one); err != nil {
			return err
		}
		if one.Ended == 0 && !there.pods[one.UID] {
			absent = append(absent, one)
		}
	}
	var errs []error
	for i := range absent {
		cluster, err := u.row(absent[i].Cluster)
		if err != nil {
			return err
		}
		if cluster != nil && isWatched(cluster.Namespace) {
			one := absent[i]
			one.Ended, one.At = now, now
			errs = append(errs, u.putPod(&one))
		}
	}
	return errors.Join(errs...)
}

// expire marks what is left of jobs and services for longer than it is kept, and removes what no list needs any more. The archives of
// clusters have their own rules, and are marked by who removes them.
func (t *table) expire(limits retain.Limits, keepFor, maxKeepFor, now int64) error {
	var due []string
	var all []retain.Record
	err := t.db.View(func(tx *bbolt.Tx) error {
		gone, err := goneSpaces(tx)
		if err != nil {
			return err
		}
		for _, text := range each(tx.Bucket(bucketOrder), nil) {
			var one row
			if err := decode(text, &one); err != nil {
				return err
			}
			until := one.end() + keptFor(&one, keepFor, maxKeepFor)
			if at := gone[one.NamespaceUID]; at != 0 && limits.AfterNamespace > 0 {
				until = min(until, at+limits.AfterNamespace)
			}
			if one.Kind != kindCluster && one.State == "" && one.Deleted != 0 && until <= now && len(due) < maxBatch {
				due = append(due, one.UID)
			}
			entry := one.life()
			var err error
			if entry.UID, err = pack.ParseUID(one.UID); err != nil {
				return err
			}
			if entry.Namespace, err = pack.ParseUID(one.NamespaceUID); err != nil {
				return err
			}
			all = append(all, entry)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for records that are due: %w", err)
	}
	gone := retain.Records(all, limits, now)
	if len(gone) > maxBatch {
		gone = gone[:maxBatch]
	}
	if len(due)+len(gone) == 0 {
		return nil
	}
	return t.update(false, func(u *update) error {
		var errs []error
		for _, uid := range due {
			errs = append(errs, u.changeRow(uid, func(r *row) {
				r.State, r.Marked, r.At = string(index.Expired), now, now
				r.Object, r.Events, r.Message = nil, nil, ""
			}))
		}
		for _, uid := range gone {
			one, err := u.row(uid.String())
			if err == nil && one != nil {
				err = u.removeRow(one, now)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

// keptFor returns how long what is left of an object is kept.
func keptFor(one *row, keepFor, maxKeepFor int64) int64 {
	if one.KeepFor > 0 {
		keepFor = one.KeepFor
	}
	if maxKeepFor > 0 {
		keepFor = min(keepFor, maxKeepFor)
	}
	return keepFor
}

// goneSpaces returns when namespaces went, by their UIDs.
func goneSpaces(tx *bbolt.Tx) (map[string]int64, error) {
	gone := map[string]int64{}
	for key, text := range each(tx.Bucket(bucketSpaces), nil) {
		var one space
		if err := decode(text, &one); err != nil {
			return nil, err
		}
		if one.Gone != 0 {
			gone[string(key)] = one.Gone
		}
	}
	return gone, nil
}

// forget removes what is remembered of records that were removed long ago, and namespaces of which nothing is left.
func (t *table) forget(now int64) error {
	return t.update(false, func(u *update) error {
		var removed, spaces [][]byte
		for key, at := range each(u.tx.Bucket(bucketRemoved), nil) {
			if timeOf(at)+removedFor.Milliseconds() <= now {
				removed = append(removed, bytes.Clone(key))
			}
		}
		for key, text := range each(u.tx.Bucket(bucketSpaces), nil) {
			var one space
			if err := decode(text, &one); err != nil {
				return err
			}
			first, _ := u.tx.Bucket(bucketOrder).Cursor().Seek(key)
			if one.Gone != 0 && one.Gone+removedFor.Milliseconds() <= now && !bytes.HasPrefix(first, key) {
				spaces = append(spaces, bytes.Clone(key))
			}
		}
		var errs []error
		for _, key := range removed {
			errs = append(errs, u.tx.Bucket(bucketRemoved).Delete(key))
		}
		for _, key := range spaces {
			errs = append(errs, u.tx.Bucket(bucketSpaces).Delete(key))
		}
		return errors.Join(errs...)
	})
}

// markUnwritten notes all that goes on as not written: the replica that wrote before may not have come to it.
func (t *table) markUnwritten() error {
	return t.update(false, func(u *update) error {
		var all []row
		for _, text := range each(u.tx.Bucket(bucketOrder), nil) {
			var one row
			if err := decode(text, &one); err != nil {
				return err
			}
			if one.Deleted == 0 {
				all = append(all, one)
			}
		}
		var errs []error
		for i := range all {
			errs = append(errs, u.noteUnwritten(typeRow, all[i].NamespaceUID, all[i].UID))
		}
		return errors.Join(errs...)
	})
}

// line is a line of a journal: one of its fields is there.
type line struct {
	Row     *row       `json:"row,omitempty"`
	Pod     *podRow    `json:"pod,omitempty"`
	Space   *spaceLine `json:"space,omitempty"`
	Removed *removed   `json:"removed,omitempty"`
}

type spaceLine struct {
	UID string `json:"uid"`
	space
}

type removed struct {
	UID string `json:"uid"`
	At  int64  `json:"at"`
}

// eachUnwritten calls write with what the store does not have, by namespaces, and notes what it has then.
func (t *table) eachUnwritten(write func(namespace string, lines []line) error) error {
	for {
		namespace, keys, lines, err := t.unwritten()
		if err != nil || len(keys) == 0 {
			return err
		}
		if err := write(namespace, lines); err != nil {
			return err
		}
		err = t.db.Update(func(tx *bbolt.Tx) error {
			u := &update{tx, true}
			for i, key := range keys {
				now, err := u.lineOf(key)
				if err != nil {
					return err
				}
				if !isSameLine(now, lines[i]) { // it has changed meanwhile
					continue
				}
				if err := tx.Bucket(bucketUnwritten).Delete(key); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("note what is written: %w", err)
		}
	}
}

// unwritten returns some entries of one namespace that the store does not have.
func (t *table) unwritten() (namespace string, keys [][]byte, lines []line, err error) {
	err = t.db.View(func(tx *bbolt.Tx) error {
		u := &update{tx, true}
		size := 0
		for key := range each(tx.Bucket(bucketUnwritten), nil) {
			if namespace == "" {
				namespace = string(key[:lengthUID])
			}
			if string(key[:lengthUID]) != namespace || len(keys) == maxLines || size >= maxJournal {
				return nil
			}
			one, err := u.lineOf(key)
			if err != nil {
				return err
			}
			if one.Row != nil {
				size += len(one.Row.Object) + len(one.Row.Events)*maxText
			}
			keys, lines = append(keys, bytes.Clone(key)), append(lines, one)
		}
		return nil
	})
	return namespace, keys, lines, err
}

// lineOf returns the line of an entry. It is empty where there is nothing any more.
func (u *update) lineOf(key []byte) (line, error) {
	kind, rest := key[lengthUID], string(key[lengthUID+1:])
	switch kind {
	case typeRow:
		one, err := u.row(rest)
		return line{Row: one}, err
	case typePod:
		text := u.tx.Bucket(bucketPods).Get([]byte(rest))
		if text == nil {
			return line{}, nil
		}
		one := &podRow{}
		return line{Pod: one}, decode(text, one)
	case typeSpace:
		text := u.tx.Bucket(bucketSpaces).Get([]byte(rest))
		if text == nil {
			return line{}, nil
		}
		one := &spaceLine{UID: rest}
		return line{Space: one}, decode(text, &one.space)
	case typeRemoved:
		if at := u.tx.Bucket(bucketRemoved).Get([]byte(rest)); at != nil {
			return line{Removed: &removed{rest, timeOf(at)}}, nil
		}
	}
	return line{}, nil
}

func isSameLine(a, b line) bool {
	switch {
	case a.Row != nil && b.Row != nil:
		return a.Row.At == b.Row.At && isSameRow(a.Row, b.Row)
	case a.Pod != nil && b.Pod != nil:
		return *a.Pod == *b.Pod
	}
	return a.Row == nil && b.Row == nil && a.Pod == nil && b.Pod == nil
}

// take puts lines of the store into the table.
func (t *table) take(lines []line) error {
	return t.update(true, func(u *update) error {
		var errs []error
		for _, one := range lines {
			switch {
			case one.Row != nil:
				errs = append(errs, u.putRow(one.Row))
			case one.Pod != nil:
				errs = append(errs, u.putPod(one.Pod))
			case one.Space != nil:
				errs = append(errs, u.putSpace(one.Space.UID, one.Space.space))
			case one.Removed != nil:
				errs = append(errs, u.takeRemoved(one.Removed))
			}
		}
		return errors.Join(errs...)
	})
}

func (u *update) takeRemoved(one *removed) error {
	if len(one.UID) != lengthUID {
		return nil
	}
	there, err := u.row(one.UID)
	if err != nil {
		return err
	}
	if there != nil && there.Deleted != 0 && there.At <= one.At {
		return u.removeRow(there, one.At)
	}
	return nil
}
