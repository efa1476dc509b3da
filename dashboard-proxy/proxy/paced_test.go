package proxy

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// slow is a body, and a connection with a deadline, that brings so many bytes each time.
type slow struct {
	http.ResponseWriter
	clock    *clocktesting.FakeClock
	each     time.Duration
	size     int
	deadline time.Time
}

func (s *slow) SetReadDeadline(at time.Time) error {
	s.deadline = at
	return nil
}

func (s *slow) Read(into []byte) (int, error) {
	s.clock.Step(s.each)
	if s.clock.Now().After(s.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	return s.size, nil
}

func (s *slow) Close() error { return nil }

// TestPaced_EndsBodiesThatDrip: one byte each 59 s would keep a place for years.
func TestPaced_EndsBodiesThatDrip(t *testing.T) {
	for name, c := range map[string]struct {
		each time.Duration
		size int
		most int64
	}{
		"a byte now and then":      {59 * time.Second, 1, 2},
		"a byte each millisecond":  {time.Millisecond, 1, 65_000},
		"16 KiB a second":          {time.Second, 16 << 10, 1<<30 + 1<<20},
		"a pause of half a minute": {30 * time.Second, 480 << 10, 1<<30 + 1<<20},
		"a pause of a minute":      {61 * time.Second, 32 << 10, 0},
	} {
		one := &slow{ResponseWriter: httptest.NewRecorder(), clock: clocktesting.NewFakeClock(time.Now()), each: c.each, size: c.size}
		body := &paced{ReadCloser: one, control: http.NewResponseController(one), clock: one.clock}
		came, err, buffer := int64(0), error(nil), make([]byte, 512<<10)
		for err == nil && came < 1<<30 {
			var n int
			n, err = body.Read(buffer)
			came += int64(n)
		}
		if came > c.most || c.most > 1<<30 && err != nil {
			t.Errorf("%s: %d bytes came, then %v", name, came, err)
		}
	}
}

// late is a body whose last byte comes once the request is answered. After that nothing may be set on its connection.
type late struct {
	*slow
	answered func()
	isOver   bool
	isSet    bool
}

func (l *late) SetReadDeadline(time.Time) error {
	l.isSet = l.isSet || l.isOver
	return nil
}

func (l *late) Read([]byte) (int, error) {
	l.answered()
	l.isOver = true
	return 0, io.EOF
}

// TestPaced_SetsNoDeadlineAfterTheAnswer: a head that answers early leaves the transport reading. HTTP/2 panics where a
// request has been answered, in a goroutine of the transport, which ends the server.
func TestPaced_SetsNoDeadlineAfterTheAnswer(t *testing.T) {
	one := &late{slow: &slow{ResponseWriter: httptest.NewRecorder()}}
	body := &paced{ReadCloser: one, control: http.NewResponseController(one), clock: clocktesting.NewFakeClock(time.Now())}
	one.answered = body.end
	if _, err := body.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the last read is %v", err)
	}
	if _, err := body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("a read after the answer is %v", err)
	}
	if one.isSet {
		t.Error("a deadline is set after the answer")
	}
}
