package wire

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzSnapshots reads what anybody may send to an autoscaler. What is read can be written, and
// is then the same.
func FuzzSnapshots(f *testing.F) {
	frame, err := EncodeSnapshot(fullSnapshot())
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(frame))
	f.Add([]byte{0x22, 0, 0x22, 0, 0x2a, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		snapshot, err := readSnapshot(data)
		if err != nil {
			return
		}
		frame, err := EncodeSnapshot(snapshot)
		if err != nil {
			t.Fatalf("%+v was read and cannot be written: %v", snapshot, err)
		}
		if again, err := readSnapshot(frame); err != nil || cmp.Diff(snapshot, again) != "" {
			t.Errorf("%+v became %+v, %v", snapshot, again, err)
		}
	})
}

// FuzzDecisions reads what anybody may answer to the operator: the body of a response, with
// several words.
func FuzzDecisions(f *testing.F) {
	frame, err := EncodeDecision(fullDecision())
	if err != nil {
		f.Fatal(err)
	}
	body := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(frame))), frame...)
	f.Add(body)
	f.Add(append(body, body...))
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{1, 0, 0, 0, 1, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &Stream{decisions: &http.Response{Body: io.NopCloser(bytes.NewReader(data)), Trailer: http.Header{}}}
		for {
			frame, err := s.Receive()
			if err != nil {
				return
			}
			decision, err := DecodeDecision(frame)
			if err != nil {
				continue
			}
			if frame, err = EncodeDecision(decision); err != nil {
				t.Fatalf("%+v was read and cannot be written: %v", decision, err)
			}
			if again, err := DecodeDecision(frame); err != nil || cmp.Diff(decision, again) != "" {
				t.Errorf("%+v became %+v, %v", decision, again, err)
			}
		}
	})
}
