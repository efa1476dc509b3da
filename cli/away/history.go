package away

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// HistoryPage is how many records or files one answer has at most.
const HistoryPage = 500

// mostPages is how many pages are read for one list: some may have nothing that the user can see.
const mostPages = 1000

// EachPage reads pages, each after the one before, until there is enough. It returns whether there are more.
func EachPage(page func(after string) (next string, err error), hasEnough func() bool) (hasMore bool, err error) {
	after := ""
	for range mostPages {
		if after, err = page(after); err != nil || after == "" {
			return false, err
		}
		if hasEnough() {
			break
		}
	}
	return true, nil
}

// Former is an object that may be gone: the newest one of its name, or that with a UID.
type Former struct {
	Namespace string
	Target    kube.Target
	UID       string
}

// path returns the path of what is asked of an object.
func (f Former) path(what ...string) []string {
	return append([]string{"namespaces", f.Namespace, f.Target.Kind.Word + "s", f.Target.Name}, what...)
}

// query returns the parameters that select the object.
func (f Former) query() url.Values {
	if f.UID == "" {
		return url.Values{}
	}
	return url.Values{"uid": {f.UID}}
}

// historyPath returns the path of what is kept of the object.
func (f Former) historyPath() []string {
	if f.UID == "" {
		return f.path("history")
	}
	return f.path("history", f.UID)
}

// HistoryServer returns the server that keeps histories, and that they need one where the console names none.
func HistoryServer(c *console.Console) (*History, error) {
	server, err := FindServer(c)
	if err == nil && server == nil {
		err = outcome.Errorf(outcome.Usage, "history is read through Heliostat's server; set --server URL or HELIOSTAT_SERVER")
	}
	return &History{server}, err
}

// History is the server as it is asked for what is kept.
type History struct{ *Server }

// IsNothing reports whether the server has nothing of what was asked for.
func IsNothing(err error) bool {
	var said *refusal
	return errors.As(err, &said) && (said.Reason == "NotFound" || said.Reason == "HistoryOff")
}

// ListHistory returns a page of what is kept of objects.
func (s *History) ListHistory(ctx context.Context, query url.Values) (*heliostatv1.ListHistoryResponse, error) {
	answer := &heliostatv1.ListHistoryResponse{}
	return answer, s.readMessage(ctx, http.MethodGet, answer, query, "history")
}

// GetHistory returns what is kept of an object.
func (s *History) GetHistory(ctx context.Context, of Former) (*heliostatv1.GetHistoryResponse, error) {
	answer := &heliostatv1.GetHistoryResponse{}
	return answer, s.readMessage(ctx, http.MethodGet, answer, nil, of.historyPath()...)
}

// DeleteHistory deletes what is kept of an object.
func (s *History) DeleteHistory(ctx context.Context, of Former) error {
	return s.readMessage(ctx, http.MethodDelete, &heliostatv1.DeleteHistoryResponse{}, nil, of.historyPath()...)
}

// ListFiles returns a page of the files that are kept of an object. Without patterns it is of all files.
func (s *History) ListFiles(ctx context.Context, of Former, patterns []string, after string) (*heliostatv1.ListFilesResponse, error) {
	query := of.query()
	query.Set("limit", strconv.Itoa(HistoryPage))
	if len(patterns) > 0 {
		query["paths"] = patterns
	}
	if after != "" {
		query.Set("continue", after)
	}
	answer := &heliostatv1.ListFilesResponse{}
	return answer, s.readMessage(ctx, http.MethodGet, answer, query, of.path("files")...)
}

// AllFiles returns the files that match patterns, up to a number, and whether there are more.
func (s *History) AllFiles(ctx context.Context, of Former, patterns []string, most int) ([]*heliostatv1.File, bool, error) {
	var all []*heliostatv1.File
	hasMore, err := EachPage(func(after string) (string, error) {
		page, err := s.ListFiles(ctx, of, patterns, after)
		all = append(all, page.GetFiles()...)
		return page.GetContinue(), err
	}, func() bool { return len(all) >= most })
	return all[:min(len(all), most)], hasMore || len(all) > most, err
}

// ReadFile reads a file of an object from an offset.
func (s *History) ReadFile(ctx context.Context, of Former, file *heliostatv1.File, offset int64, sink Sink) error {
	query := of.query()
	query.Set("pod", file.GetPod())
	query.Set("id", file.GetId())
	query.Set("offset", strconv.FormatInt(offset, 10))
	return s.readEvents(ctx, "file "+file.GetPath(), query, sink, of.path("files", file.GetPath())...)
}

// FormerOutput is the output of a job that may be gone.
type FormerOutput struct {
	Former
	// Attempt is 0 for the last one.
	Attempt int32
	// Process is that of a gang, and Round its round; empty and 0 for the output of the driver.
	Process    string
	Round      int32
	Offset     int64
	IsFollowed bool
}

// ReadFormer reads the output of a job that may be gone.
func (s *Server) ReadFormer(ctx context.Context, of FormerOutput, sink Sink) error {
	query := of.query()
	query.Set("offset", strconv.FormatInt(of.Offset, 10))
	query.Set("follow", strconv.FormatBool(of.IsFollowed))
	if of.Attempt != 0 {
		query.Set("attempt", strconv.Itoa(int(of.Attempt)))
	}
	if of.Process != "" {
		query.Set("process", of.Process)
		query.Set("round", strconv.Itoa(int(of.Round)))
	}
	return s.readEvents(ctx, "the output of "+of.Target.String(), query, sink, of.path("log")...)
}

// NewestRound returns the newest round of a process of a gang that is kept, and 0 where none is.
func (s *History) NewestRound(ctx context.Context, of FormerOutput) (int32, error) {
	query := of.query()
	query.Set("process", of.Process)
	if of.Attempt != 0 {
		query.Set("attempt", strconv.Itoa(int(of.Attempt)))
	}
	var found struct{ Rounds []struct{ Number int32 } }
	if err := s.decodeWith(ctx, &found, query, of.path("rounds")...); err != nil || len(found.Rounds) == 0 {
		return 0, err
	}
	return found.Rounds[len(found.Rounds)-1].Number, nil
}

// Download writes files of an object as a tar, and returns how many bytes it has.
func (s *History) Download(ctx context.Context, of Former, patterns []string, out io.Writer) (int64, error) {
	query := of.query()
	if len(patterns) > 0 {
		query["paths"] = patterns
	}
	answer, err := s.send(ctx, http.MethodGet, "application/x-tar", query, of.path("files:download")...)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }() // it was read, or the failure is another
	count, err := io.Copy(out, answer.Body)
	if err != nil {
		return count, fmt.Errorf("download from the server %s: %w", s.url, err)
	}
	return count, nil
}

// readMessage asks the server, and reads an answer that is a message of its protocol.
func (s *History) readMessage(ctx context.Context, method string, into proto.Message, query url.Values, path ...string) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	answer, err := s.send(ctx, method, "application/json", query, path...)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	text, err := io.ReadAll(io.LimitReader(answer.Body, largestAnswer))
	if err == nil {
		err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("read what the server %s answers: %w", s.url, err)
	}
	return nil
}
