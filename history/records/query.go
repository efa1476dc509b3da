package records

import (
	"bytes"
	"container/heap"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/heliostat-dev/heliostat/history/archive"
	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/keeper"
	"github.com/heliostat-dev/heliostat/history/pack"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

// Bounds of a request.
const (
	maxPage, defaultPage = 500, 100
	maxNamespaces        = 10_000
	// maxLooked is how many rows one call looks at. A page that filters leave empty then has a token, and the next goes on.
	maxLooked = 200_000
	// lengthPlace is how long the place of a row is, and its UID behind it.
	lengthPlace = 16 + lengthUID
)

// query is what a list is asked for.
type query struct {
	request *pb.ListRecordsRequest
	limit   int
	after   []byte // the place and UID of the last row of the page before
}

// parseQuery judges a request.
func parseQuery(request *pb.ListRecordsRequest) (query, error) {
	q := query{request: request, limit: int(request.GetLimit())}
	switch {
	case len(request.GetNamespaceUids()) > maxNamespaces:
		return q, fmt.Errorf("namespace_uids has more than %d entries", maxNamespaces)
	case q.limit < 0 || q.limit > maxPage:
		return q, fmt.Errorf("limit must be from 1 to %d", maxPage)
	case q.limit == 0:
		q.limit = defaultPage
	}
	for _, uid := range request.GetNamespaceUids() {
		if len(uid) != lengthUID {
			return q, errors.New("namespace_uids must be UIDs")
		}
	}
	if token := request.GetAfter(); token != "" {
		var err error
		if q.after, err = base64.RawURLEncoding.DecodeString(token); err != nil || len(q.after) != lengthPlace {
			return q, errors.New("after is not a token of a page")
		}
	}
	return q, nil
}

// takes reports whether a row is asked for.
func (q query) takes(one *row) bool {
	r := q.request
	return (len(r.GetKinds()) == 0 || slices.Contains(r.GetKinds(), one.Kind)) && (r.GetName() == "" || one.Name == r.GetName()) &&
		(r.GetOwner() == "" || one.Owner == r.GetOwner()) && (len(r.GetPhases()) == 0 || slices.Contains(r.GetPhases(), one.Phase)) &&
		(!r.GetFailed() || one.hasFailed()) && (!r.GetEnded() || one.end() != 0) &&
		(r.GetUntil() == 0 || one.Created <= r.GetUntil()) && (r.GetSince() == 0 || one.end() == 0 || one.end() >= r.GetSince())
}

// isOver reports whether all rows behind a place ended too early to be asked for.
func (q query) isOver(one *row) bool {
	since := q.request.GetSince()
	return since != 0 && one.end() != 0 && one.end() < since
}

// source is the list of a namespace.
type source struct {
	cursor *bbolt.Cursor
	prefix []byte
	key    []byte // place and UID of the row
	row    row
}

// advance goes to the next row, and reports false behind the last one.
func (s *source) advance(key, value []byte) (bool, error) {
	if key == nil || !bytes.HasPrefix(key, s.prefix) || len(key) != lengthUID+lengthPlace {
		return false, nil
	}
	s.key, s.row = key[lengthUID:], row{}
	return true, decode(value, &s.row)
}

// sources are the lists of several namespaces, by the places of their next rows.
type sources []*source

func (s sources) Len() int           { return len(s) }
func (s sources) Less(i, j int) bool { return bytes.Compare(s[i].key, s[j].key) < 0 }
func (s sources) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *sources) Push(one any)      { *s = append(*s, one.(*source)) } //nolint:forcetypeassert // heap.Push is not called with others
func (s *sources) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// list returns a page of rows, and the token for the next one.
func (t *table) list(q query) (page []row, next string, err error) {
	err = t.db.View(func(tx *bbolt.Tx) error {
		all, err := openSources(tx, q)
		if err != nil {
			return err
		}
		heap.Init(&all)
		var last []byte
		for looked := 0; len(all) > 0; looked++ {
			first := all[0]
			if len(page) == q.limit || looked == maxLooked {
				next = base64.RawURLEncoding.EncodeToString(last)
				return nil
			}
			last = bytes.Clone(first.key)
			isOver := q.isOver(&first.row)
			if !isOver && q.takes(&first.row) {
				page = append(page, first.row)
			}
			is, err := !isOver, error(nil)
			if is {
				is, err = first.advance(first.cursor.Next())
			}
			if err != nil {
				return err
			}
			if is {
				heap.Fix(&all, 0)
			} else {
				heap.Pop(&all)
			}
		}
		return nil
	})
	return page, next, err
}

// openSources opens the lists of the namespaces that are asked for, behind the page before.
func openSources(tx *bbolt.Tx, q query) (sources, error) {
	namespaces := slices.Compact(slices.Sorted(slices.Values(q.request.GetNamespaceUids())))
	if q.request.GetAllNamespaces() {
		namespaces = nil
		for key := range each(tx.Bucket(bucketSpaces), nil) {
			namespaces = append(namespaces, string(key))
		}
	}
	var all sources
	for _, uid := range namespaces {
		one := &source{cursor: tx.Bucket(bucketOrder).Cursor(), prefix: []byte(uid)}
		key, value := one.cursor.Seek(append(slices.Clip(one.prefix), q.after...))
		if len(key) == lengthUID+lengthPlace && q.after != nil && bytes.Equal(key[lengthUID:], q.after) && bytes.HasPrefix(key, one.prefix) {
			key, value = one.cursor.Next()
		}
		is, err := one.advance(key, value)
		if err != nil {
			return nil, err
		}
		if is {
			all = append(all, one)
		}
	}
	return all, nil
}

// find returns the row that is asked for with the pods of a cluster, and nil where there is none.
func (t *table) find(request *pb.GetRecordRequest) (found *row, pods []podRow, err error) {
	err = t.db.View(func(tx *bbolt.Tx) error {
		for _, namespace := range namespacesOf(tx, request) {
			uid := request.GetUid()
			if uid == "" {
				uid = newestOf(tx, namespace, request)
			}
			one, err := rowOf(tx, uid)
			if err != nil {
				return err
			}
			isAsked := one != nil && one.NamespaceUID == namespace && one.Kind == request.GetKind() && (request.GetName() == "" || one.Name == request.GetName())
			if isAsked && (found == nil || one.Created > found.Created) {
				found = one
			}
		}
		if found == nil || found.Kind != kindCluster {
			return nil
		}
		for _, text := range each(tx.Bucket(bucketPods), []byte(found.UID)) {
			var one podRow
			if err := decode(text, &one); err != nil {
				return err
			}
			pods = append(pods, one)
		}
		return nil
	})
	slices.SortFunc(pods, func(a, b podRow) int { return int(a.Created - b.Created) })
	return found, pods, err
}

// namespacesOf returns the UIDs of the namespace that is asked for, by its UID or its name.
func namespacesOf(tx *bbolt.Tx, request *pb.GetRecordRequest) []string {
	if uid := request.GetNamespaceUid(); uid != "" {
		return []string{uid}
	}
	var all []string
	for key, text := range each(tx.Bucket(bucketSpaces), nil) {
		var one space
		if decode(text, &one) == nil && one.Name == request.GetNamespace() {
			all = append(all, string(key))
		}
	}
	return all
}

// newestOf returns the UID of the newest object of a name, and nothing where there is none.
func newestOf(tx *bbolt.Tx, namespace string, request *pb.GetRecordRequest) string {
	prefix := namePrefix(namespace, request.GetKind(), request.GetName())
	for key := range each(tx.Bucket(bucketNames), prefix) {
		if len(key) == len(prefix)+8+lengthUID {
			return string(key[len(prefix)+8:])
		}
	}
	return ""
}

// endings returns how the pods of a cluster ended.
func (t *table) endings(cluster pack.UID) (map[pack.UID]index.Ending, error) {
	all := map[pack.UID]index.Ending{}
	err := t.db.View(func(tx *bbolt.Tx) error {
		for _, text := range each(tx.Bucket(bucketPods), []byte(cluster.String())) {
			var one podRow
			if err := decode(text, &one); err != nil {
				return err
			}
			uid, err := pack.ParseUID(one.UID)
			if err == nil && one.Ended != 0 {
				all[uid] = one.ending()
			}
		}
		return nil
	})
	return all, err
}

// archives returns all clusters that have a record.
func (t *table) archives(keepFor, maxKeepFor int64) ([]keeper.Archive, error) {
	var all []keeper.Archive
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
			namespace, err := pack.ParseUID(one.NamespaceUID)
			cluster, wrong := pack.ParseUID(one.UID)
			if one.Kind != kindCluster || err != nil || wrong != nil {
				continue
			}
			made := keeper.Archive{
				Key: archive.Key{Namespace: namespace, Cluster: cluster}, Ended: one.Deleted, NamespaceGone: gone[one.NamespaceUID],
				KeepFor: keptFor(&one, keepFor, maxKeepFor),
			}
			all = append(all, made)
		}
		return nil
	})
	return all, err
}
