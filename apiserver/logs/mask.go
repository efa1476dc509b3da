package logs

import "bytes"

// mask hides a token in a text that comes in parts: as many asterisks take its place, so that offsets stay.
type mask struct {
	token []byte
	// held is the end of what came, while it may be the begin of the token.
	held []byte
}

// pass returns what can be given of all that came, and holds the rest.
func (m *mask) pass(part []byte) []byte {
	if len(m.token) == 0 {
		return part
	}
	if len(m.held) > 0 {
		part, m.held = append(m.held, part...), nil
	}
	if bytes.Contains(part, m.token) {
		part = bytes.ReplaceAll(part, m.token, bytes.Repeat([]byte("*"), len(m.token)))
	}
	for n := min(len(m.token)-1, len(part)); n > 0; n-- {
		if bytes.HasSuffix(part, m.token[:n]) {
			m.held = bytes.Clone(part[len(part)-n:])
			return part[:len(part)-n]
		}
	}
	return part
}

// begin forgets what was held: it will come again, because it was not given.
func (m *mask) begin() { m.held = nil }

// rest returns what was held of a text that is over.
func (m *mask) rest() []byte { return m.held }
