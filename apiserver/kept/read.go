package kept

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heliostat-dev/heliostat/apiserver/logs"
	"github.com/heliostat-dev/heliostat/history/client"
	historyv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

// maxTail is how many bytes are looked through for the last lines of a file.
const maxTail = 1 << 20

// read gives a sink what is kept of a file from an offset on, and returns where it ends. A range that is missing is a notice.
func (k *Kept) read(ctx context.Context, object *Object, file File, offset int64, sink logs.Sink) (at int64, err error) {
	at = offset
	err = k.ReadFile(ctx, requestOf(object, file, offset, 0), func(piece client.Piece) error {
		if gap := piece.Missing; gap != nil {
			if gap.GetLength() > 0 {
				at = piece.End()
			}
			return sink(logs.Event{Offset: at, Notice: noticeOf(file, gap)})
		}
		at = piece.End()
		return sink(logs.Event{Offset: at, Data: piece.Data})
	})
	return at, err
}

func requestOf(object *Object, file File, offset, limit int64) *historyv1.ReadFileRequest {
	return &historyv1.ReadFileRequest{
		NamespaceUid: object.Record.GetNamespaceUid(), ClusterUid: file.ClusterUID, PodUid: file.GetPodUid(), Id: file.GetId(), Offset: offset, Limit: limit,
	}
}

// noticeOf says that a range is missing, and why.
func noticeOf(file File, gap *historyv1.Missing) *logs.Notice {
	range_ := fmt.Sprintf("bytes %d to %d", gap.GetOffset(), gap.GetOffset()+gap.GetLength()-1)
	if gap.GetLength() == 0 {
		range_ = fmt.Sprintf("the bytes from %d on", gap.GetOffset())
	}
	return &logs.Notice{
		Code: gap.GetReason(), Message: fmt.Sprintf("%s of %q are missing: %s", range_, Escape(string(file.GetPath())), gap.GetReason()),
		Missing: &logs.Missing{Offset: gap.GetOffset(), Length: gap.GetLength(), Reason: gap.GetReason()},
	}
}

// begin returns where the last lines of a file begin, and whether these are all that were asked for.
func (k *Kept) begin(ctx context.Context, object *Object, file File, lines int) (offset int64, isAll bool, err error) {
	from := max(0, file.GetSize()-maxTail)
	var text []byte
	at := from
	err = k.ReadFile(ctx, requestOf(object, file, from, 0), func(piece client.Piece) error {
		if piece.Missing != nil { // lines are counted behind it
			text, from = nil, piece.End()
		}
		text = append(text, piece.Data...)
		if over := len(text) - maxTail; over > 0 { // the file has grown
			text, from = append([]byte(nil), text[over:]...), from+int64(over)
		}
		at = piece.End()
		return nil
	})
	if err != nil {
		return 0, false, err
	}
	end := len(text)
	for end > 0 {
		newline := bytes.LastIndexByte(text[:end-1], '\n')
		if newline < 0 {
			break
		}
		if lines--; lines == 0 {
			return from + int64(newline) + 1, true, nil
		}
		end = newline + 1
	}
	if len(text) == 0 {
		return at, from == 0, nil
	}
	return from, from == 0, nil
}

// Read reads a file into a sink, from the offset or the last lines of the options on. Its last event is an end.
func (k *Kept) Read(ctx context.Context, object *Object, file File, options logs.Options, sink logs.Sink) error {
	offset := options.Offset
	if options.Tail > 0 {
		begin, isAll, err := k.begin(ctx, object, file, options.Tail)
		if err != nil {
			return fmt.Errorf("read the end of file %q: %w", file.GetPath(), err)
		}
		if offset = begin; !isAll {
			said := &logs.Notice{Code: tailShort, Message: fmt.Sprintf("fewer than %d lines are returned, which begin at byte %d", options.Tail, begin)}
			if err := sink(logs.Event{Offset: begin, Notice: said}); err != nil {
				return err
			}
		}
	}
	at, err := k.read(ctx, object, file, offset, sink)
	if err != nil {
		return fmt.Errorf("read file %q: %w", file.GetPath(), err)
	}
	end := &logs.End{Outcome: logs.Succeeded, Code: fileRead, Message: "this is all that is kept of the file"}
	if !file.GetEnded() {
		end = &logs.End{Outcome: logs.Running, Code: fileRead, Message: "this is the file until now"}
	}
	return sink(logs.Event{Offset: at, End: end})
}

// Codes of what is said of a file.
const (
	tailShort = "TailShort"
	fileRead  = "FileRead"
)

const (
	// lookEach is how often a file is looked at whose next bytes are on their way.
	lookEach = time.Second
	// patience is how long a reader waits for more of an archive that is still collected, and for how a job has ended.
	patience = 2 * time.Minute
	// stateCollecting is the state of an archive whose pods still send.
	stateCollecting = "Collecting"
)

// Output is an output of a job of which more may be kept.
type Output struct {
	ClusterUID, Path string
}

// ReadOn reads an output into a sink from where another reading ended. One that follows goes on until all is kept that will be. It
// fails with ErrNothing where nothing of the output is kept.
func (k *Kept) ReadOn(ctx context.Context, object *Object, of Output, options logs.Options, sink logs.Sink) (at int64, err error) {
	at = options.Offset
	isKept, quiet := false, k.Clock.Now()
	for {
		files, archive, err := k.find(ctx, object.Record.GetNamespaceUid(), of.ClusterUID, of.Path)
		if err != nil && !isKept {
			return at, err
		}
		file := newest(files)
		if file != nil {
			if options.Tail > 0 {
				if at, _, err = k.begin(ctx, object, *file, options.Tail); err != nil {
					return at, err
				}
				options.Tail = 0
			}
			isKept = true
			former := at
			if at, err = k.read(ctx, object, *file, at, sink); err != nil && !isAway(err) {
				return at, err
			}
			if at > former {
				quiet = k.Clock.Now()
			}
		}
		isOver := file != nil && file.GetEnded() || archive.State != stateCollecting && err == nil
		if !options.Follow || isOver || k.Clock.Since(quiet) >= patience {
			if !isKept {
				return at, ErrNothing
			}
			return at, err
		}
		if err := k.wait(ctx); err != nil {
			return at, err
		}
	}
}

// isAway reports whether archivers do not answer now.
func isAway(err error) bool {
	return IsUnavailable(err) && !errors.Is(err, context.Canceled)
}

// wait waits until it is time to look again, or a context ends.
func (k *Kept) wait(ctx context.Context) error {
	timer := k.Clock.NewTimer(lookEach)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C():
		return nil
	}
}
