package packets

import (
	"encoding/base64"
	"encoding/binary"
	"iter"
	"slices"
	"strings"

	"golang.org/x/net/http2/hpack"
)

// form is what a secret looks like in a packet.
type form struct{ name, text string }

// texts returns what a secret looks like: as it is, in base64, and in the Huffman code of HPACK. What codes a secret
// in units that are no bytes also depends on what stands before it. So there is a text for each offset, and
// it lacks the units at both ends that the secret shares with what is beside it.
func texts(secret []byte) [][]byte {
	all := [][]byte{secret}
	for before := range 3 {
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			code := encoding.AppendEncode(nil, slices.Concat(make([]byte, before), secret))
			all = append(all, code[(8*before+5)/6:8*(before+len(secret))/6])
		}
	}
	// Eight times the secret has as many bytes as the secret has bits. The code of an "a" has 5 bits.
	bits := int(hpack.HuffmanEncodeLength(strings.Repeat(string(secret), 8)))
	for before := range 8 {
		code := hpack.AppendHuffmanString(nil, strings.Repeat("a", before)+string(secret))
		all = append(all, code[(5*before+7)/8:(5*before+bits)/8])
	}
	return all
}

// index finds many forms in one pass, as Wu and Manber do: the last two bytes of a window that is as wide as the
// shortest form say how far on the next window may be.
type index struct {
	shortest, longest int
	skips             []uint8           // by two bytes
	ending            map[uint16][]form // by the last two bytes of their first window
}

// blocks is how many values two bytes have.
const blocks = 1 << 16

func newIndex(sought []form) *index {
	x := &index{ending: map[uint16][]form{}}
	if len(sought) == 0 {
		return x
	}
	size := func(a, b form) int { return len(a.text) - len(b.text) }
	x.shortest, x.longest = len(slices.MinFunc(sought, size).text), len(slices.MaxFunc(sought, size).text)
	x.skips = slices.Repeat([]uint8{uint8(min(x.shortest-1, 255))}, blocks)
	for _, form := range sought {
		window := []byte(form.text[:x.shortest])
		for end := 2; end <= x.shortest; end++ {
			skip := &x.skips[binary.BigEndian.Uint16(window[end-2:])]
			*skip = min(*skip, uint8(min(x.shortest-end, 255)))
		}
		last := binary.BigEndian.Uint16(window[x.shortest-2:])
		x.ending[last] = append(x.ending[last], form)
	}
	return x
}

// find gives where forms begin in a text.
func (x *index) find(text []byte) iter.Seq2[int, form] {
	return func(yield func(int, form) bool) {
		if x.shortest == 0 {
			return // nothing is sought
		}
		for end := x.shortest; end <= len(text); end++ {
			last := binary.BigEndian.Uint16(text[end-2:])
			if skip := int(x.skips[last]); skip > 0 {
				end += skip - 1
				continue
			}
			at := end - x.shortest
			for _, form := range x.ending[last] {
				beyond := at + len(form.text)
				if beyond <= len(text) && string(text[at:beyond]) == form.text && !yield(at, form) {
					return
				}
			}
		}
	}
}
