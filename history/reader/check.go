package reader

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/heliostat-dev/heliostat/history/archive"
	"github.com/heliostat-dev/heliostat/history/pack"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

// The bounds of calls.
const (
	maxNamespaces  = 10_000
	maxRecords     = 500
	defaultRecords = 100
	maxFiles       = 1_000
	defaultFiles   = 500
	maxPatterns    = 100
	maxPhases      = 64
	maxName        = 253
	maxText        = 512 // of owners, users and phases
	maxToken       = 2 << 10
)

// kinds are those that have records.
var kinds = []string{"ComputeCluster", "ClusterJob", "ClusterService"} //nolint:gochecknoglobals // never changed

// invalid returns the status about a request that breaks a bound.
func invalid(format string, values ...any) error {
	return status.Error(codes.InvalidArgument, fmt.Sprintf(format, values...))
}

// isCancelled reports whether an error is the end of a context.
func isCancelled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// uid reads a UID of a request.
func uid(field, text string) (pack.UID, error) {
	parsed, err := pack.ParseUID(text)
	if err != nil {
		return pack.UID{}, invalid("%s is no UID", field)
	}
	return parsed, nil
}

// keyOf reads the UIDs of an archive.
func keyOf(namespace, cluster string) (key archive.Key, err error) {
	if key.Namespace, err = uid("namespace_uid", namespace); err != nil {
		return key, err
	}
	key.Cluster, err = uid("cluster_uid", cluster)
	return key, err
}

// texts judges texts by how long they may be.
func texts(most int, all map[string]string) error {
	for field, text := range all {
		if len(text) > most {
			return invalid("%s has %d bytes, at most %d fit", field, len(text), most)
		}
	}
	return nil
}

func checkKind(kind string) error {
	if !slices.Contains(kinds, kind) {
		return invalid("kind must be one of %s", strings.Join(kinds, ", "))
	}
	return nil
}

func checkListRecords(r *pb.ListRecordsRequest) error {
	switch {
	case len(r.GetNamespaceUids()) > maxNamespaces:
		return invalid("namespace_uids has %d entries, at most %d fit", len(r.GetNamespaceUids()), maxNamespaces)
	case len(r.GetKinds()) > len(kinds):
		return invalid("kinds has %d entries, at most %d fit", len(r.GetKinds()), len(kinds))
	case len(r.GetPhases()) > maxPhases:
		return invalid("phases has %d entries, at most %d fit", len(r.GetPhases()), maxPhases)
	case r.GetLimit() < 0 || r.GetLimit() > maxRecords:
		return invalid("limit %d, it must be from 0 to %d", r.GetLimit(), maxRecords)
	}
	for _, at := range []int64{r.GetSince(), r.GetUntil()} {
		if at < 0 || at > pack.MaxOffset {
			return invalid("since and until must be times in milliseconds of Unix time")
		}
	}
	return checkFilters(r)
}

// checkFilters judges the texts by which records are chosen.
func checkFilters(r *pb.ListRecordsRequest) error {
	for _, namespace := range r.GetNamespaceUids() {
		if _, err := uid("namespace_uids", namespace); err != nil {
			return err
		}
	}
	for _, kind := range r.GetKinds() {
		if err := checkKind(kind); err != nil {
			return err
		}
	}
	for _, phase := range r.GetPhases() {
		if err := texts(maxText, map[string]string{"phases": phase}); err != nil {
			return err
		}
	}
	return first(texts(maxName, map[string]string{"name": r.GetName()}), texts(maxText, map[string]string{"owner": r.GetOwner()}),
		texts(maxToken, map[string]string{"after": r.GetAfter()}))
}

// first returns the first error, which stays a status.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkGetRecord(r *pb.GetRecordRequest) error {
	if err := first(checkKind(r.GetKind()), texts(maxName, map[string]string{"name": r.GetName(), "namespace": r.GetNamespace()})); err != nil {
		return err
	}
	if (r.GetNamespaceUid() == "") == (r.GetNamespace() == "") {
		return invalid("either namespace_uid or namespace is needed")
	}
	if r.GetName() == "" && r.GetUid() == "" {
		return invalid("name or uid is needed")
	}
	for field, text := range map[string]string{"namespace_uid": r.GetNamespaceUid(), "uid": r.GetUid()} {
		if text == "" {
			continue
		}
		if _, err := uid(field, text); err != nil {
			return err
		}
	}
	return nil
}

func checkDelete(r *pb.DeleteHistoryRequest) error {
	if err := first(checkKind(r.GetKind()), texts(maxText, map[string]string{"user": r.GetUser()})); err != nil {
		return err
	}
	if r.GetUser() == "" {
		return invalid("user is needed")
	}
	if _, err := uid("namespace_uid", r.GetNamespaceUid()); err != nil {
		return err
	}
	_, err := uid("uid", r.GetUid())
	return err
}

func checkListFiles(r *pb.ListFilesRequest) error {
	switch {
	case len(r.GetPaths()) > maxPatterns:
		return invalid("paths has %d entries, at most %d fit", len(r.GetPaths()), maxPatterns)
	case r.GetLimit() < 0 || r.GetLimit() > maxFiles:
		return invalid("limit %d, it must be from 0 to %d", r.GetLimit(), maxFiles)
	}
	for _, path := range r.GetPaths() {
		if path == "" || len(path) > pack.MaxPath+1 {
			return invalid("a path of %d bytes, it must have 1 to %d", len(path), pack.MaxPath+1)
		}
	}
	return nil
}

// formatID writes the ID of a file within its pod.
func formatID(key pack.FileKey) string {
	return hex.EncodeToString(key.ID[:]) + "-" + strconv.FormatUint(uint64(key.Generation), 10)
}

// parseID undoes formatID.
func parseID(text string) (id pack.FileID, generation uint32, err error) {
	name, number, _ := strings.Cut(text, "-")
	if len(name) != hex.EncodedLen(len(id)) {
		return id, 0, invalid("id is none of a file")
	}
	_, err = hex.Decode(id[:], []byte(name))
	parsed, errNumber := strconv.ParseUint(number, 10, 32)
	if key := (pack.FileKey{ID: id, Generation: uint32(parsed)}); err != nil || errNumber != nil || formatID(key) != text {
		return id, 0, invalid("id is none of a file")
	}
	return id, uint32(parsed), nil
}
