package rest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc"

	"github.com/heliostat-dev/heliostat/apiserver/kept"
	"github.com/heliostat-dev/heliostat/apiserver/logs"
	"github.com/heliostat-dev/heliostat/portal/problem"
	historyv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// Bounds of a list of files.
const (
	maxFiles, defaultFiles      = 1000, 500
	maxPatterns, maxPatternSize = 100, 512
)

// ListFiles implements the protocol.
func (h history) ListFiles(ctx context.Context, r *heliostatv1.ListFilesRequest) (*heliostatv1.ListFilesResponse, error) {
	limit := int(r.GetLimit())
	switch {
	case limit < 0 || limit > maxFiles:
		return nil, problem.Bad("query.limit", fmt.Sprintf("must be 1 to %d", maxFiles), "correct it")
	case limit == 0:
		limit = defaultFiles
	}
	if err := checkPatterns(r.GetPaths()); err != nil {
		return nil, err
	}
	object, archivers, err := h.open(ctx, "ListFiles", r)
	if err != nil {
		return nil, err
	}
	page, err := archivers.List(ctx, object.Object, r.GetPaths(), limit, r.GetContinue())
	switch {
	case errors.Is(err, kept.ErrContinue):
		return nil, problem.Bad("query.continue", err.Error(), "begin with the first page")
	case err != nil:
		return nil, ofArchivers(err)
	case len(page.Files) == 0 && r.GetContinue() == "":
		if err := h.whyNoFiles(ctx, archivers, object); err != nil {
			return nil, err
		}
	}
	answer := &heliostatv1.ListFilesResponse{Continue: page.Next}
	for _, one := range page.Files {
		answer.Files = append(answer.Files, fileOf(one))
	}
	for _, one := range page.Archives {
		answer.Archives = append(answer.Archives, &heliostatv1.Archive{ClusterUid: one.ClusterUID, State: one.State, Archived: stampOf(one.Archived)})
	}
	return answer, nil
}

// open returns what is kept of an object whose files are read.
func (v *reviewer) open(ctx context.Context, call string, on keptTarget) (*found, *kept.Kept, error) {
	object, err := v.find(ctx, call, on)
	if err != nil {
		return nil, nil, err
	}
	if isRemoved(object.Record.GetArchiveState()) {
		return nil, nil, errGone(object.Record)
	}
	archivers, err := v.kept()
	return object, archivers, err
}

// whyNoFiles returns that the files of an object expired or were deleted with a cluster, where they were.
func (v *reviewer) whyNoFiles(ctx context.Context, archivers *kept.Kept, object *found) error {
	for _, place := range object.Places {
		got, err := archivers.GetRecord(ctx, &historyv1.GetRecordRequest{
			NamespaceUid: object.Record.GetNamespaceUid(), Kind: kindsKept["clusters"], Uid: place.ClusterUID,
		})
		if err == nil && isRemoved(got.GetRecord().GetArchiveState()) {
			return errGone(got.GetRecord())
		}
	}
	return nil
}

// checkPatterns returns what is wrong with patterns of paths.
func checkPatterns(patterns []string) error {
	isLong := func(one string) bool { return one == "" || len(one) > maxPatternSize }
	if len(patterns) > maxPatterns || slices.ContainsFunc(patterns, isLong) {
		return problem.Bad("query.paths", fmt.Sprintf("are at most %d, of 1 to %d bytes each", maxPatterns, maxPatternSize), "correct them")
	}
	return nil
}

// fileOf returns a file as the protocol has it.
func fileOf(one kept.File) *heliostatv1.File {
	answer := &heliostatv1.File{
		Path: kept.Escape(string(one.GetPath())), Pod: valid(one.GetPod()), PodUid: one.GetPodUid(), ClusterUid: one.ClusterUID, Id: one.GetId(),
		Size: one.GetSize(), Ended: one.GetEnded(), Last: stampOf(one.GetLast()),
	}
	for _, gap := range one.GetMissing() {
		answer.Missing = append(answer.Missing, &heliostatv1.MissingRange{Offset: gap.GetOffset(), Length: gap.GetLength(), Reason: gap.GetReason()})
	}
	return answer
}

// ReadFile implements the protocol.
func (h history) ReadFile(r *heliostatv1.ReadFileRequest, stream grpc.ServerStreamingServer[heliostatv1.LogEvent]) error {
	return h.readFile(stream.Context(), r, func(event logs.Event) error { return stream.Send(eventOf(event)) }, nil)
}

// readFile reads a file into a sink for as long as its caller may. An error before the first event says why there is none.
func (h history) readFile(ctx context.Context, r *heliostatv1.ReadFileRequest, sink logs.Sink, control *http.ResponseController) error {
	path, is := kept.Unescape(r.GetPath())
	if !is {
		return problem.Bad("path", "is none of a file", "give one as the list of files has it")
	}
	if r.GetOffset() < 0 || r.GetTail() < 0 || r.GetOffset() > 0 && r.GetTail() > 0 {
		return whyNoLog(logs.ErrInvalid)
	}
	object, archivers, err := h.open(ctx, "ReadFile", r)
	if err != nil {
		return err
	}
	files, err := archivers.Find(ctx, object.Object, path)
	if err != nil {
		return ofArchivers(err)
	}
	file, err := chosen(files, r)
	if err != nil {
		return err
	}
	if file == nil {
		if err := h.whyNoFiles(ctx, archivers, object); err != nil {
			return err
		}
		return problem.New(http.StatusNotFound, "NotFound", "no such file is kept", "look at the list of files")
	}
	ctx, release := h.whileMay(ctx, object.rights)
	defer release()
	if control != nil {
		defer leave(ctx, control, h.Clock)()
	}
	options := logs.Options{Offset: r.GetOffset(), Tail: int(r.GetTail())}
	err = archivers.Read(ctx, object.Object, *file, options, sink)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return ofArchivers(err)
}

// chosen returns the file that a request is about: the newest of those that had the path in one pod. It is nil where there is none.
func chosen(files []kept.File, r *heliostatv1.ReadFileRequest) (*kept.File, error) {
	files = slices.DeleteFunc(files, func(one kept.File) bool {
		return r.GetPod() != "" && one.GetPod() != r.GetPod() || r.GetId() != "" && one.GetId() != r.GetId()
	})
	var pods []string
	var newest *kept.File
	for i := range files {
		if !slices.Contains(pods, files[i].GetPod()) {
			pods = append(pods, files[i].GetPod())
		}
		if newest == nil || files[i].GetLast() >= newest.GetLast() {
			newest = &files[i]
		}
	}
	if len(pods) > 1 {
		slices.Sort(pods)
		return nil, problem.Bad("query.pod", "must be given: several pods have the file", "give one of "+strings.Join(pods[:min(len(pods), 10)], ", "))
	}
	return newest, nil
}

// DownloadFiles implements the protocol.
func (h history) DownloadFiles(
	r *heliostatv1.DownloadFilesRequest, stream grpc.ServerStreamingServer[heliostatv1.DownloadFilesResponse],
) error {
	return h.download(stream.Context(), r, func(*found) io.Writer {
		return writerOf(func(data []byte) error { return stream.Send(&heliostatv1.DownloadFilesResponse{Data: data}) })
	}, nil)
}

// writerOf is a function that takes what is written.
type writerOf func([]byte) error

// Write implements io.Writer.
func (w writerOf) Write(data []byte) (int, error) { return len(data), w(data) }

// tarBuffer is how many bytes of a tar are handed on at once.
const tarBuffer = 64 << 10

// download writes the files of an object as a tar for as long as its caller may. Where it goes is asked for once it is known that there
// is one.
func (h history) download(
	ctx context.Context, r *heliostatv1.DownloadFilesRequest, begin func(*found) io.Writer, control *http.ResponseController,
) error {
	if err := checkPatterns(r.GetPaths()); err != nil {
		return err
	}
	object, archivers, err := h.open(ctx, "DownloadFiles", r)
	if err != nil {
		return err
	}
	if err := h.whyNoFiles(ctx, archivers, object); err != nil {
		return err
	}
	ctx, release := h.whileMay(ctx, object.rights)
	defer release()
	if control != nil {
		defer leave(ctx, control, h.Clock)()
	}
	if _, err := archivers.List(ctx, object.Object, r.GetPaths(), 1, ""); err != nil { // before anything is written
		return ofArchivers(err)
	}
	out := bufio.NewWriterSize(begin(object), tarBuffer)
	err = archivers.WriteTar(ctx, object.Object, r.GetPaths(), out)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err == nil {
		err = out.Flush()
	}
	return ofArchivers(err)
}

// serveDownload answers with a tar.
func (a *API) serveDownload(w http.ResponseWriter, r *http.Request, asked *heliostatv1.DownloadFilesRequest) error {
	hasBegun := false
	err := a.portal.download(r.Context(), asked, func(object *found) io.Writer {
		hasBegun = true
		header := w.Header()
		header.Set("Content-Type", "application/x-tar")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "no-store")
		header.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", object.Record.GetName()+"-"+object.Record.GetUid()+".tar"))
		w.WriteHeader(http.StatusOK)
		return w
	}, http.NewResponseController(w))
	if err != nil && hasBegun {
		panic(http.ErrAbortHandler) // a tar that is not whole must not look as if it were
	}
	return err
}
