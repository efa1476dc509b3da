package headclient

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"
)

// FuzzBehind: in whatever parts an output comes, what is passed on is what is behind the offset.
func FuzzBehind(f *testing.F) {
	f.Add([]byte("one\rtwo\r\n\xff\n"), uint8(4), uint8(3), uint8(255))
	f.Fuzz(func(t *testing.T, said []byte, offset, size, room uint8) {
		into := &full{room: int(room)}
		out := &behind{into: into, skip: int64(offset)}
		var err error
		for rest := said; len(rest) > 0 && err == nil; {
			n := min(int(size)+1, len(rest))
			_, err = out.Write(rest[:n])
			rest = rest[n:]
		}
		want := said[min(int(offset), len(said)):]
		isFull := len(want) > int(room)
		want = want[:min(len(want), int(room))]
		if !bytes.Equal(into.Bytes(), want) || out.passed != int64(len(want)) || err == nil && out.seen != int64(len(said)) || isFull != errors.Is(err, io.ErrShortWrite) || !errors.Is(out.failure, err) {
			t.Errorf("%q is passed on, said to be %d, want %q: %v", into.Bytes(), out.passed, want, err)
		}
		if isShort := (&Jobs{}).end(driver{}, out) != nil; isShort != (len(said) < int(offset)) {
			t.Errorf("of %d bytes from %d: short %t", len(said), offset, isShort)
		}
	})
}

// full is a writer that takes so many bytes, and does not say when there are more.
type full struct {
	bytes.Buffer
	room int
}

func (f *full) Write(part []byte) (int, error) {
	return f.Buffer.Write(part[:min(len(part), f.room-f.Len())])
}

func TestReread_GrowsWithTheLog(t *testing.T) {
	for bytes, want := range map[int64]time.Duration{
		0: 0, 1 << 20: time.Second / 8, 8 << 20: time.Second, 100 << 20: 12500 * time.Millisecond, 1 << 40: longestPause, 1 << 62: longestPause,
	} {
		if got := Reread(bytes); got != want {
			t.Errorf("%d bytes: %s, want %s", bytes, got, want)
		}
	}
}

func TestPauseAfter_SparesAFastOutput(t *testing.T) {
	for _, c := range []struct {
		offset, passed int64
		want           time.Duration
	}{
		{8 << 20, 0, time.Second},
		{8 << 20, 4 << 20, 2 * time.Second},
		{8 << 20, 8 << 20, 3 * time.Second},
		{200 << 20, 100 << 20, longestPause},
	} {
		if got := pauseAfter(c.offset, c.passed); got != c.want {
			t.Errorf("at %d after %d new bytes: %s, want %s", c.offset, c.passed, got, c.want)
		}
	}
}
