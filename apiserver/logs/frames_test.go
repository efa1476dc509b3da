package logs

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func events() []Event {
	return []Event{
		{Offset: 0, Data: []byte("plain\n")},
		{Offset: 1 << 40, Data: []byte("one\rtwo\r\n\n\xff\xfe\x00 data: x\n\nevent: end\n")},
		{Offset: 7, Notice: &Notice{Code: "OutputGone", Message: "two\nlines \u2028 \r and \"quotes\""}},
		{Offset: 7, End: &End{Outcome: Failed, ExitCode: exit(0), Code: "JobFailed", Message: "x\n\n", Remedy: "y"}},
		{Offset: 7, End: &End{Outcome: Running, Code: "JobRunning", Message: "x"}},
	}
}

// decoded are all events of a stream.
func decoded(t *testing.T, stream []byte) []Event {
	t.Helper()
	var all []Event
	for from := bufio.NewReader(bytes.NewReader(stream)); ; {
		e, err := DecodeSSE(from)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
}

func TestFrames_ComeBackAsTheyWere(t *testing.T) {
	var stream []byte
	for _, e := range events() {
		stream = append(stream, ": still here\n\n"...)
		stream = append(stream, EncodeSSE(e)...)
	}
	if diff := cmp.Diff(events(), decoded(t, stream)); diff != "" {
		t.Error(diff)
	}
}

func TestFrames_AreWhatTheySay(t *testing.T) {
	got := string(EncodeSSE(Event{Offset: 12, Data: []byte("a\n")}))
	if want := "id: 12\nevent: data\ndata: {\"data\":\"YQo=\"}\n\n"; got != want {
		t.Errorf("it is %q, want %q", got, want)
	}
}

func TestFrames_ThatAreBroken(t *testing.T) {
	for name, stream := range map[string]string{
		"cut in a line":   "id: 1\nevent: da",
		"cut in an event": "id: 1\nevent: data\ndata: {}\n",
		"no offset":       "id: x\nevent: data\ndata: {}\n\n",
		"below nothing":   "id: -1\nevent: data\ndata: {}\n\n",
		"another event":   "id: 1\nevent: put\ndata: {}\n\n",
		"no JSON":         "id: 1\nevent: data\ndata: x\n\n",
		"a field twice":   "id: 1\nid: 2\nevent: data\ndata: {}\n\n",
		"without end":     "id: " + strings.Repeat("1", maxFrame+1),
	} {
		if e, err := DecodeSSE(bufio.NewReader(strings.NewReader(stream))); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s is %+v, %v", name, e, err)
		}
	}
}

// FuzzLogFrames checks that what is decoded is encoded as what is decoded, and that nothing makes it panic.
func FuzzLogFrames(f *testing.F) {
	for _, e := range events() {
		f.Add(EncodeSSE(e), []byte("x\n\xff"), "message\n")
	}
	f.Add([]byte(": comment\n\nid: 1\nevent: end\ndata: {\"exitCode\": 1}\n\n"), []byte{}, "")
	f.Fuzz(func(t *testing.T, stream, data []byte, message string) {
		message = strings.ToValidUTF8(message, "?")
		offset := int64(len(data))
		given := []Event{
			{Offset: offset, Data: data},
			{Offset: offset, Notice: &Notice{Code: "OutputGone", Message: message}},
			{Offset: offset, End: &End{Outcome: Stopped, Code: message, Message: message, Remedy: message}},
		}
		var encoded []byte
		for _, e := range given {
			encoded = append(encoded, EncodeSSE(e)...)
		}
		if diff := cmp.Diff(given, decoded(t, encoded), cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
		from := bufio.NewReader(bytes.NewReader(stream))
		for e, err := DecodeSSE(from); err == nil; e, err = DecodeSSE(from) {
			if diff := cmp.Diff([]Event{e}, decoded(t, EncodeSSE(e)), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		}
	})
}
