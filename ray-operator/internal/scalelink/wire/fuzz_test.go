package wire

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzOrders reads what anybody may send to an autoscaler. What is read can be written, and
// is then the same.
func FuzzOrders(f *testing.F) {
	frame, err := FromOrders(fullOrders())
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(frame))
	f.Add([]byte{0x22, 0, 0x22, 0, 0x2a, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		orders, err := readOrders(data)
		if err != nil {
			return
		}
		frame, err := FromOrders(orders)
		if err != nil {
			t.Fatalf("%+v was read and cannot be written: %v", orders, err)
		}
		if again, err := readOrders(frame); err != nil || cmp.Diff(orders, again) != "" {
			t.Errorf("%+v became %+v, %v", orders, again, err)
		}
	})
}

// FuzzWords reads what anybody may answer to the operator: the body of a response, with
// several words.
func FuzzWords(f *testing.F) {
	frame, err := FromWord(fullWord())
	if err != nil {
		f.Fatal(err)
	}
	body := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(frame))), frame...)
	f.Add(body)
	f.Add(append(body, body...))
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{1, 0, 0, 0, 1, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &Stream{words: &http.Response{Body: io.NopCloser(bytes.NewReader(data)), Trailer: http.Header{}}}
		for {
			frame, err := s.Receive()
			if err != nil {
				return
			}
			word, err := ToWord(frame)
			if err != nil {
				continue
			}
			if frame, err = FromWord(word); err != nil {
				t.Fatalf("%+v was read and cannot be written: %v", word, err)
			}
			if again, err := ToWord(frame); err != nil || cmp.Diff(word, again) != "" {
				t.Errorf("%+v became %+v, %v", word, again, err)
			}
		}
	})
}
