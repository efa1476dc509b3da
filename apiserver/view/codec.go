package view

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
)

// maxToken is how long the text of a mark or a cursor may be. With fifty watched namespaces a mark has about 1500
// characters.
const maxToken = 8 << 10

// errToken is that a text is none that a server made.
var errToken = errors.New("the text is none that this server makes")

// writer puts a token together.
type writer struct{ bytes []byte }

func (w *writer) number(n uint64) { w.bytes = binary.AppendUvarint(w.bytes, n) }

func (w *writer) text(s string) {
	w.number(uint64(len(s)))
	w.bytes = append(w.bytes, s...)
}

// position writes the largest number, and how far the others are behind it: these are small.
func (w *writer) position(p Position) {
	w.number(uint64(len(p)))
	largest := slices.Max(p)
	w.number(largest)
	for _, rv := range p {
		w.number(largest - rv)
	}
}

func (w *writer) key(k Key) {
	w.text(k.Kind)
	w.text(k.Namespace)
	w.text(k.Name)
}

func (w *writer) String() string { return base64.RawURLEncoding.EncodeToString(w.bytes) }

// reader takes a token apart. After a failure it gives zero values.
type reader struct {
	bytes []byte
	err   error
}

func newReader(token string) *reader {
	if len(token) > maxToken {
		return &reader{err: errToken}
	}
	bytes, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil {
		return &reader{err: errToken}
	}
	return &reader{bytes: bytes}
}

func (r *reader) fail() {
	r.bytes, r.err = nil, errToken
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.bytes)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.bytes = r.bytes[size:]
	return n
}

func (r *reader) text() string {
	size := r.number()
	if size > uint64(len(r.bytes)) {
		r.fail()
		return ""
	}
	s := string(r.bytes[:size])
	r.bytes = r.bytes[size:]
	return s
}

func (r *reader) position() Position {
	count := r.number()
	if count == 0 || count > uint64(len(r.bytes)) {
		r.fail()
		return nil
	}
	largest := r.number()
	p := make(Position, 0, count)
	for range count {
		behind := r.number()
		if behind > largest {
			r.fail()
			return nil
		}
		p = append(p, largest-behind)
	}
	return p
}

func (r *reader) key() Key { return Key{Kind: r.text(), Namespace: r.text(), Name: r.text()} }

// end returns whether all was read and nothing is left.
func (r *reader) end() error {
	if r.err == nil && len(r.bytes) > 0 {
		r.fail()
	}
	return r.err
}
