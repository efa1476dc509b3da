package proxy

import (
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
