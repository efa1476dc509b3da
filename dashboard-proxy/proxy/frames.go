package proxy

import "encoding/binary"

// frames follows the frames of one direction of a WebSocket, of which it reads the lengths alone. Between two frames, and
// nowhere else, a control frame can be put.
type frames struct {
	head [14]byte
	have int
	left uint64
}

// isBetween reports whether no frame has begun that has not ended.
func (f *frames) isBetween() bool { return f.have == 0 && f.left == 0 }

// advance follows bytes up to the end of the frame that they are of, and returns how many those are.
func (f *frames) advance(part []byte) int {
	at := 0
	for at < len(part) {
		if f.left > 0 {
			n := min(f.left, uint64(len(part)-at))
			f.left -= n
			return at + int(n)
		}
		f.head[f.have] = part[at]
		f.have++
		at++
		if f.have < f.size() {
			continue
		}
		f.left, f.have = f.length(), 0
		if f.left == 0 {
			return at
		}
	}
	return at
}

// size is how many bytes the head of a frame has, as far as it is known.
func (f *frames) size() int {
	if f.have < 2 {
		return 2
	}
	size := 2
	switch f.head[1] & 0x7f {
	case 126:
		size += 2
	case 127:
		size += 8
	}
	if f.head[1]&0x80 != 0 {
		size += 4 // the mask
	}
	return size
}

// length is that of the data of the frame whose head was read.
func (f *frames) length() uint64 {
	switch length := f.head[1] & 0x7f; length {
	case 126:
		return uint64(binary.BigEndian.Uint16(f.head[2:]))
	case 127:
		return binary.BigEndian.Uint64(f.head[2:])
	default:
		return uint64(length)
	}
}

// Opcodes of frames, with the bit that says that the message is whole.
const (
	opText  = 0x81
	opClose = 0x88
	opPing  = 0x89
)

// Codes by which a WebSocket closes.
const (
	closeGoingAway = 1001
	closePolicy    = 1008
)

// maxReason is how many bytes the reason of a close may have.
const maxReason = 123

// pingFrame is a ping, by which what lies between keeps the connection. Answers to it go to the application, which
// RFC 6455 lets ignore them.
func pingFrame() []byte { return []byte{opPing, 0} }

// maxShort is how many bytes a frame may have whose length is a byte.
const maxShort = 125

// textFrame is a message.
func textFrame(text string) []byte {
	text = text[:min(len(text), maxShort)]
	return append([]byte{opText, byte(len(text))}, text...)
}

// closeFrame closes a WebSocket with a code and a reason.
func closeFrame(code uint16, why string) []byte {
	why = why[:min(len(why), maxReason)]
	frame := []byte{opClose, byte(2 + len(why))}
	return append(binary.BigEndian.AppendUint16(frame, code), why...)
}
