package clienttest

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

// ListFiles implements pb.ReadServer.
func (f *fake) ListFiles(_ context.Context, r *pb.ListFilesRequest) (*pb.ListFilesResponse, error) {
	leave, err := f.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	files, isKnown := f.files[r.GetClusterUid()]
	state, hasState := f.all.states[r.GetClusterUid()]
	if !isKnown && !hasState {
		return nil, status.Error(codes.NotFound, "no such archive")
	}
	answer := &pb.ListFilesResponse{ArchiveState: cmp.Or(state, "Complete")}
	last := ""
	for _, file := range files {
		place := file.PodUID + " " + file.Path + " " + file.ID
		if r.GetAfter() != "" && place <= r.GetAfter() || !isChosen(file.Path, r.GetPaths()) {
			continue
		}
		if len(answer.GetFiles()) == cmp.Or(int(r.GetLimit()), 500) {
			answer.Next = last
			break
		}
		last = place
		answer.Files = append(answer.Files, row(file))
	}
	return answer, nil
}

func isChosen(path string, chosen []string) bool {
	return len(chosen) == 0 || slices.ContainsFunc(chosen, func(one string) bool {
		begin, isBegin := strings.CutSuffix(one, "*")
		return path == one || isBegin && strings.HasPrefix(path, begin)
	})
}

func row(file *File) *pb.ListFilesResponse_File {
	one := &pb.ListFilesResponse_File{
		Pod: file.Pod, PodUid: file.PodUID, Id: file.ID, Path: []byte(file.Path), Ended: file.Ended, Last: file.Last,
	}
	for _, part := range file.Parts {
		if part.Reason == "" || part.Length > 0 {
			one.Size = max(one.Size, part.end())
		}
		if part.Reason != "" {
			one.Missing = append(one.Missing, &pb.Missing{Offset: part.Offset, Length: part.Length, Reason: part.Reason})
		}
	}
	return one
}

// pieceSize is how many bytes a piece has at most: few, so that a test has many.
const pieceSize = 64 << 10

// ReadFile implements pb.ReadServer.
func (f *fake) ReadFile(r *pb.ReadFileRequest, stream pb.Read_ReadFileServer) error {
	leave, err := f.enter()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(f.files[r.GetClusterUid()], func(one *File) bool { return one.PodUID == r.GetPodUid() && one.ID == r.GetId() })
	var parts []Part
	if at >= 0 {
		parts = slices.Clone(f.files[r.GetClusterUid()][at].Parts)
	}
	breaksAt := f.breaksAt
	f.breaksAt = 0
	leave()
	if at < 0 {
		return status.Error(codes.NotFound, "no such file")
	}
	return send(stream, parts, r.GetOffset(), r.GetLimit(), breaksAt)
}

// send sends the parts of a file from an offset on, up to a range of which nothing is known.
func send(stream pb.Read_ReadFileServer, parts []Part, at, limit, breaksAt int64) error {
	left := cmp.Or(limit, 1<<62)
	for _, part := range parts {
		switch {
		case part.end() <= at:
			continue
		case part.Offset > at:
			return nil
		case part.Reason != "":
			gap := &pb.Missing{Offset: at, Reason: part.Reason}
			if part.Length > 0 {
				gap.Length = part.end() - at
			}
			if err := stream.Send(&pb.ReadFileResponse{Offset: at, Piece: &pb.ReadFileResponse_Missing{Missing: gap}}); err != nil {
				return err
			}
			at = part.end()
			continue
		}
		for data := []byte(part.Data[at-part.Offset:]); len(data) > 0 && left > 0; {
			piece := data[:min(int64(len(data)), pieceSize, left)]
			if breaksAt > 0 && at+int64(len(piece)) > breaksAt {
				piece = piece[:max(0, breaksAt-at)]
			}
			if err := stream.Send(&pb.ReadFileResponse{Offset: at, Piece: &pb.ReadFileResponse_Data{Data: piece}}); err != nil {
				return err
			}
			at, left, data = at+int64(len(piece)), left-int64(len(piece)), data[len(piece):]
			if breaksAt > 0 && at >= breaksAt {
				return status.Error(codes.Unavailable, errAway.Error())
			}
		}
		if left == 0 {
			return nil
		}
	}
	return nil
}

// ID returns an ID of a file, as the archiver has it: of a number and a generation.
func ID(number, generation int) string {
	text := strconv.FormatInt(int64(number), 16)
	return strings.Repeat("0", 32-len(text)) + text + "-" + strconv.Itoa(generation)
}
