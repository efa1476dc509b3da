package client_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/heliostat-dev/heliostat/history/client"
	"github.com/heliostat-dev/heliostat/history/client/clienttest"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

const cluster = "c"

// read returns what is read of file 1 of pod p: bytes, and ranges that are missing.
func read(t *testing.T, c *client.Client, offset, limit int64) string {
	t.Helper()
	var text strings.Builder
	at := offset
	err := c.ReadFile(t.Context(), &pb.ReadFileRequest{ClusterUid: cluster, PodUid: "p", Id: clienttest.ID(1, 0), Offset: offset, Limit: limit},
		func(piece client.Piece) error {
			if piece.Offset != at {
				t.Errorf("a piece begins at %d, want %d", piece.Offset, at)
			}
			at = piece.End()
			text.Write(piece.Data)
			if gap := piece.Missing; gap != nil {
				fmt.Fprintf(&text, "[%d+%d %s]", gap.GetOffset(), gap.GetLength(), gap.GetReason())
			}
			return nil
		})
	if err != nil {
		fmt.Fprintf(&text, "(%s)", status.Code(err))
	}
	return text.String()
}

func file(parts ...clienttest.Part) clienttest.File {
	return clienttest.File{Pod: "pod", PodUID: "p", ID: clienttest.ID(1, 0), Path: "a", Parts: parts}
}

func bytesAt(offset int64, data string) clienttest.Part {
	return clienttest.Part{Offset: offset, Data: data}
}

func gapAt(offset, length int64, reason string) clienttest.Part {
	return clienttest.Part{Offset: offset, Length: length, Reason: reason}
}

func TestReadFile_IsPutTogetherFromReplicas(t *testing.T) {
	for name, c := range map[string]struct {
		one, other []clienttest.Part
		want       string
	}{
		"both have all":                     {[]clienttest.Part{bytesAt(0, "abcdef")}, []clienttest.Part{bytesAt(0, "abcdef")}, "abcdef"},
		"the other one has more":            {[]clienttest.Part{bytesAt(0, "abc")}, []clienttest.Part{bytesAt(0, "ab"), bytesAt(2, "cdef")}, "abcdef"},
		"each has what the other has not":   {[]clienttest.Part{bytesAt(0, "ab"), bytesAt(4, "ef")}, []clienttest.Part{bytesAt(2, "cd"), bytesAt(6, "gh")}, "abcdefgh"},
		"one lacks what the other has":      {[]clienttest.Part{bytesAt(0, "ab"), gapAt(2, 2, "Killed"), bytesAt(4, "ef")}, []clienttest.Part{bytesAt(0, "abcd")}, "abcdef"},
		"both lack it, one of them less":    {[]clienttest.Part{gapAt(0, 4, "Killed"), bytesAt(4, "ef")}, []clienttest.Part{gapAt(0, 2, "Killed"), bytesAt(2, "cd")}, "[0+2 Killed]cdef"},
		"both lack the end":                 {[]clienttest.Part{bytesAt(0, "ab"), gapAt(2, 0, "NodeLost")}, nil, "ab[2+0 NodeLost]"},
		"nobody has anything":               {nil, nil, ""},
		"bytes on their way end the answer": {[]clienttest.Part{bytesAt(0, "ab"), bytesAt(9, "z")}, nil, "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			a, reads := clienttest.Start(t)
			for i, order := 0, clienttest.Order(cluster); i < 2; i++ {
				a.Write(cluster, file(c.one...), order[i])
				a.Write(cluster, file(c.other...), order[1-i])
				if got := read(t, reads, 0, 0); got != c.want {
					t.Errorf("it is %q, want %q", got, c.want)
				}
			}
		})
	}
}

func TestReadFile_GoesOnWhereAReplicaBreaks(t *testing.T) {
	a, reads := clienttest.Start(t)
	text, order := strings.Repeat("0123456789", 50_000), clienttest.Order(cluster)
	a.Write(cluster, file(bytesAt(0, text)))
	a.Break(order[0], 123_456)
	if got := read(t, reads, 0, 0); got != text {
		t.Errorf("%d bytes come, want %d", len(got), len(text))
	}
	if got := read(t, reads, 70_001, 200_000); got != text[70_001:270_001] {
		t.Errorf("with a limit %d bytes come", len(got))
	}
	a.SetAway(order[0], true)
	if got := read(t, reads, 499_990, 0); got != "0123456789" {
		t.Errorf("while the preferred replica is away, %q comes", got)
	}
	a.SetAway(order[1], true)
	if got := read(t, reads, 0, 0); got != "(Unavailable)" {
		t.Errorf("while both are away, it is %q", got)
	}
	a.SetAway(order[0], false)
	a.SetAway(order[1], false)
	err := reads.ReadFile(t.Context(), &pb.ReadFileRequest{ClusterUid: cluster, PodUid: "p", Id: "none"}, func(client.Piece) error { return nil })
	if status.Code(err) != codes.NotFound {
		t.Errorf("a file that nobody has is %v", err)
	}
	stop := fmt.Errorf("the reader has enough")
	err = reads.ReadFile(t.Context(), &pb.ReadFileRequest{ClusterUid: cluster, PodUid: "p", Id: clienttest.ID(1, 0)}, func(client.Piece) error { return stop })
	if err != stop { //nolint:errorlint // it comes as it was
		t.Errorf("an error of the reader is %v", err)
	}
}

// list returns the paths of all pages, with sizes and gaps.
func list(t *testing.T, c *client.Client, limit int32) string {
	t.Helper()
	var all []string
	for after := ""; ; {
		page, err := c.ListFiles(t.Context(), &pb.ListFilesRequest{ClusterUid: cluster, Limit: limit, After: after})
		if err != nil {
			return status.Code(err).String()
		}
		for _, one := range page.GetFiles() {
			text := fmt.Sprintf("%s:%d", one.GetPath(), one.GetSize())
			for _, gap := range one.GetMissing() {
				text += fmt.Sprintf("-%d+%d", gap.GetOffset(), gap.GetLength())
			}
			all = append(all, text)
		}
		if after = page.GetNext(); after == "" {
			return strings.Join(all, " ")
		}
	}
}

func TestListFiles_MergesWhileItIsCollected(t *testing.T) {
	a, reads := clienttest.Start(t)
	order := clienttest.Order(cluster)
	put := func(at int, path string, number int, parts ...clienttest.Part) {
		a.Write(cluster, clienttest.File{PodUID: "p", ID: clienttest.ID(number, 0), Path: path, Parts: parts}, order[at])
	}
	put(0, "a", 1, bytesAt(0, "abc"), gapAt(3, 3, "RotatedAway"), bytesAt(6, "g"))
	put(1, "a", 1, bytesAt(0, "abcd"), gapAt(4, 1, "RotatedAway"))
	put(1, "b", 2, bytesAt(0, "b"))
	put(0, "c", 3, bytesAt(0, "c"))
	put(1, "d", 4, bytesAt(0, "d"))
	put(1, "e", 5, bytesAt(0, "e"))
	put(0, "f", 6, bytesAt(0, "f"))
	a.SetState(cluster, "Collecting")
	for limit := range int32(8) {
		if got := list(t, reads, limit); got != "a:7-4+1-5+1 b:1 c:1 d:1 e:1 f:1" {
			t.Errorf("in pages of %d it is %q", limit, got)
		}
	}
	a.SetAway(order[1], true)
	if got := list(t, reads, 0); got != "a:7-3+3 c:1 f:1" {
		t.Errorf("while one is away it is %q", got)
	}
	a.SetAway(order[1], false)
	a.SetState(cluster, "Complete")
	if got := list(t, reads, 0); got != "a:7-3+3 c:1 f:1" {
		t.Errorf("once all is there it is %q", got)
	}
}

func TestClient_AsksTheOtherReplica(t *testing.T) {
	a, reads := clienttest.Start(t)
	a.Put(&pb.GetRecordResponse{Record: &pb.Record{Kind: "ClusterJob", NamespaceUid: "n", Name: "train", Uid: "u"}})
	for _, order := range [][]string{clienttest.Order("u"), {clienttest.Order("u")[1], clienttest.Order("u")[0]}} {
		a.SetLeader(order[1])
		if err := reads.DeleteHistory(t.Context(), &pb.DeleteHistoryRequest{Uid: "u", User: "anna"}); err != nil {
			t.Errorf("the other one writes: %v", err)
		}
		a.SetAway(order[0], true)
		found, err := reads.GetRecord(t.Context(), &pb.GetRecordRequest{Kind: "ClusterJob", NamespaceUid: "n", Name: "train"})
		if err != nil || found.GetRecord().GetUid() != "u" {
			t.Errorf("while one is away, the record is %v, %v", found, err)
		}
		page, err := reads.ListRecords(t.Context(), &pb.ListRecordsRequest{NamespaceUids: []string{"n"}})
		if err != nil || len(page.GetRecords()) != 1 {
			t.Errorf("while one is away, the list is %v, %v", page, err)
		}
		a.SetAway(order[0], false)
	}
	if got := len(a.Deleted()); got != 2 {
		t.Errorf("%d were deleted", got)
	}
	_, err := reads.GetRecord(t.Context(), &pb.GetRecordRequest{Kind: "ClusterJob", NamespaceUid: "other", Name: "train"})
	if status.Code(err) != codes.NotFound {
		t.Errorf("of another namespace it is %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := reads.GetRecord(gone, &pb.GetRecordRequest{}); status.Code(err) != codes.Canceled {
		t.Errorf("of a caller who is gone it is %v", err)
	}
}
