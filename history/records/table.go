package records

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// Buckets of the table. Keys begin with UIDs in their text form, which all have one length.
var (
	bucketRows      = []byte("rows")      // UID: row
	bucketOrder     = []byte("order")     // namespace, place, UID: row without its object
	bucketNames     = []byte("names")     // namespace, kind, name, newest first, UID
	bucketPods      = []byte("pods")      // cluster, pod: podRow
	bucketSpaces    = []byte("spaces")    // UID of a namespace: space
	bucketUnwritten = []byte("unwritten") // namespace, type, key: what the store does not have
	bucketRemoved   = []byte("removed")   // UID: when
	bucketRead      = []byte("read")      // keys of the store: when
)

const (
	lengthUID = 36
	// Types of what is not written yet.
	typeRow, typePod, typeSpace, typeRemoved = 'r', 'p', 's', 'x'
	// removedFor is how long a removed record is remembered, as older journals may still have it.
	removedFor = 48 * time.Hour
	// openWait is how long another process may have the file.
	openWait = 10 * time.Second
)

// table has the records of all namespaces, in a file.
type table struct{ db *bbolt.DB }

// openTable opens the table of a file. One that is damaged is begun again, as the store has what it had.
func openTable(path string) (*table, error) {
	options := &bbolt.Options{Timeout: openWait}
	db, err := bbolt.Open(path, 0o600, options)
	if errors.Is(err, bolterrors.ErrInvalid) || errors.Is(err, bolterrors.ErrChecksum) || errors.Is(err, bolterrors.ErrVersionMismatch) {
		if err = os.Remove(path); err == nil {
			db, err = bbolt.Open(path, 0o600, options)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the table of records: %w", err)
	}
	t := &table{db}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketRows, bucketOrder, bucketNames, bucketPods, bucketSpaces, bucketUnwritten, bucketRemoved, bucketRead} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the table of records: %w", err), db.Close())
	}
	return t, nil
}

func (t *table) close() error { return t.db.Close() }

// update is a change of the table.
type update struct {
	tx *bbolt.Tx
	// isStored is that what is put comes from the store, which need not get it again.
	isStored bool
}

func (t *table) update(isStored bool, change func(u *update) error) error {
	err := t.db.Update(func(tx *bbolt.Tx) error { return change(&update{tx, isStored}) })
	if err != nil {
		return fmt.Errorf("change the table of records: %w", err)
	}
	return nil
}

// apply puts changes into the table.
func (t *table) apply(seen *changes) error {
	if seen.isEmpty() {
		return nil
	}
	return t.update(false, func(u *update) error {
		var errs []error
		for uid, one := range seen.spaces {
			errs = append(errs, u.putSpace(uid, one))
		}
		for _, one := range seen.rows {
			errs = append(errs, u.putRow(one))
		}
		for _, one := range seen.pods {
			errs = append(errs, u.putPod(one))
		}
		for uid, events := range seen.events {
			errs = append(errs, u.changeRow(uid, func(one *row) { one.Events = merged(events, one.Events) }))
		}
		for uid, clusters := range seen.links {
			errs = append(errs, u.changeRow(uid, func(one *row) {
				for cluster := range clusters {
					if !slices.Contains(one.Clusters, cluster) && len(one.Clusters) < maxClusters {
						one.Clusters = append(slices.Clip(one.Clusters), cluster)
					}
				}
			}))
		}
		return errors.Join(errs...)
	})
}

// change changes the row of an object, where there is one.
func (t *table) change(uid string, now int64, change func(*row) error) error {
	return t.update(false, func(u *update) error {
		one, err := u.row(uid)
		if one == nil || err != nil {
			return err
		}
		if err := change(one); err != nil {
			return err
		}
		one.At = max(one.At, now)
		return u.setRow(one)
	})
}

// row returns the row of an object, and nil where there is none.
func (u *update) row(uid string) (*row, error) { return rowOf(u.tx, uid) }

func rowOf(tx *bbolt.Tx, uid string) (*row, error) {
	text := tx.Bucket(bucketRows).Get([]byte(uid))
	if text == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	one := &row{}
	return one, decode(text, one)
}

func (u *update) changeRow(uid string, change func(*row)) error {
	one, err := u.row(uid)
	if one == nil || err != nil {
		return err
	}
	change(one)
	return u.setRow(one)
}

// putRow merges a row with the one that is there.
func (u *update) putRow(one *row) error {
	if len(one.UID) != lengthUID {
		return nil // no API server gives others
	}
	if at := u.tx.Bucket(bucketRemoved).Get([]byte(one.UID)); at != nil && (one.Deleted != 0 || one.At <= timeOf(at)) {
		return nil
	}
	before, err := u.row(one.UID)
	if err != nil {
		return err
	}
	after := one.after(before)
	if len(after.NamespaceUID) != lengthUID || before != nil && before.NamespaceUID != after.NamespaceUID {
		return nil
	}
	if before == nil || !isSameRow(before, after) {
		if err := u.setRow(after); err != nil {
			return err
		}
	}
	if before == nil {
		if err := u.noteFirst(after); err != nil {
			return err
		}
	}
	return u.noteWritten(typeRow, after.NamespaceUID, one.UID, isSameRow(one, after))
}

// noteFirst notes as not written what came before the first row of an object: its namespace, and the pods of a cluster.
func (u *update) noteFirst(one *row) error {
	errs := []error{u.noteUnwritten(typeSpace, one.NamespaceUID, one.NamespaceUID)}
	var keys []string
	for key := range each(u.tx.Bucket(bucketPods), []byte(one.UID)) {
		keys = append(keys, string(key))
	}
	for _, key := range keys {
		errs = append(errs, u.noteUnwritten(typePod, one.NamespaceUID, key))
	}
	return errors.Join(errs...)
}

// isSameRow reports whether rows differ in nothing but when they were made.
func isSameRow(a, b *row) bool {
	one, other := a.summary(), b.summary()
	one.At, other.At = 0, 0
	return reflect.DeepEqual(one, other) && bytes.Equal(a.Object, b.Object) && slices.Equal(a.Events, b.Events)
}

// setRow replaces the row of an object.
func (u *update) setRow(one *row) error {
	before, err := u.row(one.UID)
	if err != nil {
		return err
	}
	if before != nil {
		if err := u.unlist(before); err != nil {
			return err
		}
	}
	return errors.Join(
		put(u.tx.Bucket(bucketRows), []byte(one.UID), one),
		put(u.tx.Bucket(bucketOrder), orderKey(one), one.summary()),
		u.tx.Bucket(bucketNames).Put(nameKey(one), nil),
		u.noteUnwritten(typeRow, one.NamespaceUID, one.UID),
	)
}

// unlist takes a row out of the lists.
func (u *update) unlist(one *row) error {
	return errors.Join(u.tx.Bucket(bucketOrder).Delete(orderKey(one)), u.tx.Bucket(bucketNames).Delete(nameKey(one)))
}

// removeRow removes a row, and the pods of a cluster.
func (u *update) removeRow(one *row, now int64) error {
	errs := []error{
		u.unlist(one), u.tx.Bucket(bucketRows).Delete([]byte(one.UID)), u.tx.Bucket(bucketRemoved).Put([]byte(one.UID), timeKey(now)),
		u.noteUnwritten(typeRemoved, one.NamespaceUID, one.UID),
	}
	pods := u.tx.Bucket(bucketPods)
	var keys [][]byte
	for key := range each(pods, []byte(one.UID)) {
		keys = append(keys, bytes.Clone(key))
	}
	for _, key := range keys {
		errs = append(errs, pods.Delete(key))
	}
	return errors.Join(errs...)
}

// putPod merges the row of a pod with the one that is there.
func (u *update) putPod(one *podRow) error {
	if len(one.Cluster) != lengthUID || len(one.UID) != lengthUID {
		return nil
	}
	if u.tx.Bucket(bucketRemoved).Get([]byte(one.Cluster)) != nil {
		return nil
	}
	key := []byte(one.Cluster + one.UID)
	bucket := u.tx.Bucket(bucketPods)
	var before *podRow
	if text := bucket.Get(key); text != nil {
		before = &podRow{}
		if err := decode(text, before); err != nil {
			return err
		}
	}
	after := one.after(before)
	isSame := before != nil && isSamePod(before, after)
	if !isSame {
		if err := put(bucket, key, after); err != nil {
			return err
		}
	}
	cluster, err := u.row(one.Cluster)
	if cluster == nil || err != nil {
		return err // the first row of the cluster notes its pods
	}
	if !isSame {
		err = u.noteUnwritten(typePod, cluster.NamespaceUID, string(key))
	}
	return errors.Join(err, u.noteWritten(typePod, cluster.NamespaceUID, string(key), isSamePod(one, after)))
}

func isSamePod(a, b *podRow) bool {
	one, other := *a, *b
	one.At, other.At = 0, 0
	return one == other
}

func (u *update) putSpace(uid string, one space) error {
	if len(uid) != lengthUID {
		return nil
	}
	bucket := u.tx.Bucket(bucketSpaces)
	var before space
	if text := bucket.Get([]byte(uid)); text != nil {
		if err := decode(text, &before); err != nil {
			return err
		}
		if before.Gone != 0 || before.Gone == one.Gone && before.Name == one.Name {
			return nil // a namespace that went does not come back
		}
	}
	if err := put(bucket, []byte(uid), one); err != nil {
		return err
	}
	first, _ := u.tx.Bucket(bucketOrder).Cursor().Seek([]byte(uid))
	if !bytes.HasPrefix(first, []byte(uid)) {
		return nil // the first row notes it
	}
	return errors.Join(u.noteUnwritten(typeSpace, uid, uid), u.noteWritten(typeSpace, uid, uid, true))
}

// noteUnwritten notes what the store does not have, unless it comes from there.
func (u *update) noteUnwritten(kind byte, namespace, key string) error {
	if u.isStored {
		return nil
	}
	return u.tx.Bucket(bucketUnwritten).Put([]byte(namespace+string(kind)+key), nil)
}

// noteWritten notes that the store has something as it is in the table.
func (u *update) noteWritten(kind byte, namespace, key string, isSame bool) error {
	if !u.isStored || !isSame {
		return nil
	}
	return u.tx.Bucket(bucketUnwritten).Delete([]byte(namespace + string(kind) + key))
}

// orderKey is the place of a row in the list of its namespace: living ones first, then by their ends, the newest first.
func orderKey(one *row) []byte {
	key := append([]byte(one.NamespaceUID), place(one)...)
	return append(key, one.UID...)
}

// place orders rows of all namespaces.
func place(one *row) []byte {
	var key []byte
	if end := one.end(); end == 0 {
		key = binary.BigEndian.AppendUint64(key, 0)
	} else {
		key = binary.BigEndian.AppendUint64(key, ^uint64(end)) //nolint:gosec // times are positive
	}
	return binary.BigEndian.AppendUint64(key, ^uint64(max(one.Created, 0))) //nolint:gosec // as above
}

// nameKey leads to the rows of a name, the newest object first.
func nameKey(one *row) []byte {
	key := namePrefix(one.NamespaceUID, one.Kind, one.Name)
	key = binary.BigEndian.AppendUint64(key, ^uint64(max(one.Created, 0))) //nolint:gosec // times are positive
	return append(key, one.UID...)
}

func namePrefix(namespace, kind, name string) []byte {
	return []byte(namespace + kind + "\x00" + name + "\x00")
}

func timeKey(at int64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(max(at, 0))) //nolint:gosec // times are positive
}

func timeOf(key []byte) int64 {
	if len(key) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(key)) //nolint:gosec // timeKey made it
}

// each returns the entries of a bucket whose keys begin with a prefix. They hold until the transaction ends.
func each(bucket *bbolt.Bucket, prefix []byte) func(yield func(key, value []byte) bool) {
	return func(yield func(key, value []byte) bool) {
		cursor := bucket.Cursor()
		for key, value := cursor.Seek(prefix); key != nil && bytes.HasPrefix(key, prefix); key, value = cursor.Next() {
			if !yield(key, value) {
				return
			}
		}
	}
}

func put(bucket *bbolt.Bucket, key []byte, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write an entry: %w", err)
	}
	return bucket.Put(key, text)
}

func decode(text []byte, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read an entry: %w", err)
	}
	return nil
}
