package reader

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/heliostat-dev/heliostat/history/archive"
	"github.com/heliostat-dev/heliostat/history/pack"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

const (
	// maxPage is how many bytes a page of files has at most, beyond its first file.
	maxPage = 1 << 20
	// maxMissing is how many missing ranges of one file a list names. A reading names all.
	maxMissing = 1_000
	// maxRead is how long a reading of a file lasts at most. Who needs more goes on at its offset.
	maxRead = 15 * time.Minute
)

// errEnough ends a reading at its limit.
var errEnough = errors.New("enough was read")

// errNoArchive is about an archive that this replica has nothing of.
var errNoArchive = status.Error(codes.NotFound, "no such archive")

// ListFiles returns a page of the files of an archive.
func (s *Server) ListFiles(ctx context.Context, request *pb.ListFilesRequest) (*pb.ListFilesResponse, error) {
	key, err := keyOf(request.GetNamespaceUid(), request.GetClusterUid())
	if err != nil {
		return nil, err
	}
	if err := checkListFiles(request); err != nil {
		return nil, err
	}
	after, err := parseToken(request.GetAfter())
	if err != nil {
		return nil, err
	}
	leave, err := s.enter(ctx, s.files)
	if err != nil {
		return nil, err
	}
	defer leave()
	v, err := s.views.get(ctx, key)
	if err != nil {
		return nil, s.failed(err, "read the archive")
	}
	if !v.isKnown {
		return nil, errNoArchive
	}
	answer := &pb.ListFilesResponse{ArchiveState: v.state, Archived: v.Newest()}
	limit := cmp.Or(int(request.GetLimit()), defaultFiles)
	size := 0
	for i, file := range v.files {
		if after != nil && order(file, *after) <= 0 || !isChosen(file.Path, request.GetPaths()) {
			continue
		}
		if len(answer.Files) == limit || size > maxPage {
			answer.Next = formatToken(v.files[i-1])
			break
		}
		row := v.row(file)
		size += proto.Size(row)
		answer.Files = append(answer.Files, row)
	}
	return answer, nil
}

// isChosen reports whether a path is one of those that a caller gave, or begins as one of them does that ends with an asterisk.
func isChosen(path string, chosen []string) bool {
	return len(chosen) == 0 || slices.ContainsFunc(chosen, func(one string) bool {
		begin, isBegin := strings.CutSuffix(one, "*")
		return path == one || isBegin && strings.HasPrefix(path, begin)
	})
}

// row returns what a list has of a file.
func (v *view) row(file pack.File) *pb.ListFilesResponse_File {
	row := &pb.ListFilesResponse_File{
		Pod: v.pods[file.Pod], PodUid: file.Pod.String(), Id: formatID(file.FileKey), Path: []byte(file.Path), Kind: uint32(file.Kind),
		Ended: v.isEnded(file.FileKey),
	}
	for _, part := range v.Layout(file.FileKey, v.endings[file.Pod]) {
		row.Size = part.Offset + part.Length
		if part.Reason == 0 {
			row.Last = max(row.Last, part.Run.At)
		} else if len(row.Missing) < maxMissing {
			row.Missing = append(row.Missing, missing(part.Offset, part.Length, part.Reason))
		}
	}
	return row
}

func missing(offset, length int64, reason pack.Reason) *pb.Missing {
	return &pb.Missing{Offset: offset, Length: length, Reason: reason.String()}
}

// ReadFile sends a file from an offset on, up to its end or to bytes that are on their way.
func (s *Server) ReadFile(request *pb.ReadFileRequest, stream pb.Read_ReadFileServer) error {
	key, err := keyOf(request.GetNamespaceUid(), request.GetClusterUid())
	if err != nil {
		return err
	}
	file := pack.FileKey{}
	if file.Pod, err = uid("pod_uid", request.GetPodUid()); err != nil {
		return err
	}
	if file.ID, file.Generation, err = parseID(request.GetId()); err != nil {
		return err
	}
	if request.GetOffset() < 0 || request.GetOffset() > pack.MaxOffset || request.GetLimit() < 0 {
		return invalid("offset must be from 0 to 2^62, and limit not below 0")
	}
	ctx, cancel := context.WithTimeout(stream.Context(), maxRead)
	defer cancel()
	leave, err := s.enter(ctx, s.files)
	if err != nil {
		return err
	}
	defer leave()
	shared, err := s.views.get(ctx, key)
	if err != nil {
		return s.failed(err, "read the archive")
	}
	if !slices.ContainsFunc(shared.files, func(one pack.File) bool { return one.FileKey == file }) {
		return status.Error(codes.NotFound, "no such file")
	}
	return s.failed(shared.send(ctx, file, request, stream), "read the file")
}

// send sends the pieces of a file, one after another: the caller's window holds up the next one.
func (v *view) send(ctx context.Context, file pack.FileKey, request *pb.ReadFileRequest, stream pb.Read_ReadFileServer) error {
	from, err := v.Fork()
	if err != nil {
		return err
	}
	left := request.GetLimit()
	err = from.Read(ctx, file, v.endings[file.Pod], request.GetOffset(), func(piece archive.Piece) error {
		if piece.Reason > 0 {
			return stream.Send(&pb.ReadFileResponse{Offset: piece.Offset, Piece: &pb.ReadFileResponse_Missing{
				Missing: missing(piece.Offset, piece.Length, piece.Reason),
			}})
		}
		data := piece.Data
		if request.GetLimit() > 0 {
			data = data[:min(int64(len(data)), left)]
			left -= int64(len(data))
		}
		err := stream.Send(&pb.ReadFileResponse{Offset: piece.Offset, Piece: &pb.ReadFileResponse_Data{Data: data}})
		if err == nil && request.GetLimit() > 0 && left == 0 {
			return errEnough
		}
		return err
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// order is that of files in lists, as index.Archive.Files has it.
func order(one, other pack.File) int {
	return cmp.Or(
		slices.Compare(one.Pod[:], other.Pod[:]), cmp.Compare(one.Path, other.Path),
		slices.Compare(one.ID[8:], other.ID[8:]), slices.Compare(one.ID[:], other.ID[:]), cmp.Compare(one.Generation, other.Generation),
	)
}

// tokenVersion is the first byte of a page token.
const tokenVersion = 1

// formatToken writes the place of a file in lists.
func formatToken(file pack.File) string {
	data := append(append([]byte{tokenVersion}, file.Pod[:]...), file.ID[:]...)
	data = append(binary.BigEndian.AppendUint32(data, file.Generation), file.Path...)
	return base64.RawURLEncoding.EncodeToString(data)
}

// parseToken undoes formatToken. Any place is one in any list, so a forged token shows no more than another page.
func parseToken(text string) (*pack.File, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // the first page begins at no place
	}
	const fixed = 1 + 16 + 16 + 4
	data, err := base64.RawURLEncoding.DecodeString(text[:min(len(text), maxToken+1)])
	if err != nil || len(text) > maxToken || len(data) < fixed || len(data) > fixed+pack.MaxPath || data[0] != tokenVersion {
		return nil, invalid("after is no token of a page")
	}
	file := &pack.File{Path: string(data[fixed:])}
	copy(file.Pod[:], data[1:])
	copy(file.ID[:], data[17:])
	file.Generation = binary.BigEndian.Uint32(data[33:])
	return file, nil
}
