package proxy

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// frameOf writes a frame.
func frameOf(size int, isMasked bool) []byte {
	frame := []byte{0x82, 0}
	switch {
	case size < 126:
		frame[1] = byte(size)
	case size < 1<<16:
		frame[1] = 126
		frame = binary.BigEndian.AppendUint16(frame, uint16(size))
	default:
		frame[1] = 127
		frame = binary.BigEndian.AppendUint64(frame, uint64(size))
	}
	if isMasked {
		frame[1] |= 0x80
		frame = append(frame, 1, 2, 3, 4)
	}
	return append(frame, make([]byte, size)...)
}

// TestFrames_EndWhereTheyEnd cuts frames into any parts: their ends are found, and no other place.
func TestFrames_EndWhereTheyEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []byte
		ends := map[int]bool{}
		for range rapid.IntRange(1, 6).Draw(t, "frames") {
			size := rapid.OneOf(rapid.IntRange(0, 200), rapid.SampledFrom([]int{125, 126, 127, 65535, 65536, 70000})).Draw(t, "size")
			all = append(all, frameOf(size, rapid.Bool().Draw(t, "masked"))...)
			ends[len(all)] = true
		}
		var f frames
		for at := 0; at < len(all); {
			part := all[at:min(len(all), at+rapid.IntRange(1, 5000).Draw(t, "part"))]
			for len(part) > 0 {
				n := f.advance(part)
				if n < 1 || n > len(part) {
					t.Fatalf("it takes %d of %d", n, len(part))
				}
				at, part = at+n, part[n:]
				if f.isBetween() != ends[at] {
					t.Fatalf("at %d of %d: %v", at, len(all), f.isBetween())
				}
			}
		}
	})
}

func TestCloseFrame_Fits(t *testing.T) {
	frame := closeFrame(closePolicy, string(make([]byte, 500)))
	if len(frame) != 2+125 || frame[0] != opClose || frame[1] != 125 || binary.BigEndian.Uint16(frame[2:]) != closePolicy {
		t.Errorf("it is %d bytes: %v", len(frame), frame[:4])
	}
}
