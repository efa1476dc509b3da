package headclient

import "io"

// behind is a writer of what comes behind an offset.
type behind struct {
	into io.Writer
	// skip is how many bytes are still before the offset, passed how many were passed on, seen
	// how many came.
	skip, passed, seen int64
	// failure is what the writer behind it failed with.
	failure error
}

// Write drops what is before the offset, and passes the rest on.
func (b *behind) Write(part []byte) (int, error) {
	b.seen += int64(len(part))
	drop := min(b.skip, int64(len(part)))
	b.skip -= drop
	if int(drop) == len(part) {
		return len(part), nil
	}
	n, err := b.into.Write(part[drop:])
	if b.passed += int64(n); err == nil && n < len(part)-int(drop) {
		err = io.ErrShortWrite
	}
	b.failure = err
	return int(drop) + n, err
}
