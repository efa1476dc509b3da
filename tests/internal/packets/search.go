package packets

import "encoding/binary"

// search looks for secrets in the packets of one socket.
type search struct {
	capture *Capture
	flows   map[flow]*stream
	joined  []byte // for use again
}

// flow is one direction of a connection at one interface, where its segments come in the order in which they pass.
type flow struct {
	link int
	ends [12]byte // addresses and ports of the sender and of the receiver
}

// stream is the end of what was sent in a flow.
type stream struct {
	tail []byte
	next uint32 // sequence number of what follows
}

func newSearch(c *Capture) *search { return &search{capture: c, flows: map[flow]*stream{}} }

// Bytes of IPv4 and TCP.
const (
	leastHeader = 20 // of either
	protocolTCP = 6
	fragment    = 0x3fff // more fragments follow, or the offset is not 0
	flagFIN     = 1
	flagSYN     = 2
	flagRST     = 4
)

// packet searches a packet of an interface, from its IP header on.
func (s *search) packet(link int, packet []byte) {
	if segment := segmentOf(packet); segment != nil {
		f := flow{link: link}
		copy(f.ends[copy(f.ends[:], packet[12:20]):], segment[:4])
		if s.segment(f, segment) {
			return
		}
	}
	for _, form := range s.capture.index.Load().find(packet) {
		s.capture.seeDatagram(form.name)
	}
}

// segmentOf returns the segment of TCP that a packet of IPv4 holds in full, from its TCP header on, or nothing.
func segmentOf(packet []byte) []byte {
	if len(packet) < leastHeader || packet[0]>>4 != 4 || packet[9] != protocolTCP {
		return nil
	}
	header, size := int(packet[0]&15)*4, int(binary.BigEndian.Uint16(packet[2:]))
	isPart := binary.BigEndian.Uint16(packet[6:])&fragment != 0 || size > len(packet)
	if isPart || header < leastHeader || size < header+leastHeader {
		return nil
	}
	return packet[header:size]
}

// segment searches a segment of a flow, from its TCP header on, and reports whether it is one.
func (s *search) segment(f flow, segment []byte) bool {
	header, flags, sequence := int(segment[12]>>4)*4, segment[13], binary.BigEndian.Uint32(segment[4:])
	if header < leastHeader || header > len(segment) {
		return false
	}
	if flags&(flagSYN|flagRST) != 0 {
		delete(s.flows, f)
		sequence += uint32(flags & flagSYN >> 1) // it takes a number
	}
	if payload := segment[header:]; len(payload) > 0 {
		s.payload(f, sequence, payload)
	}
	if flags&flagFIN != 0 {
		delete(s.flows, f)
	}
	return true
}

// payload searches what a segment holds, and what it ends of that which began before.
func (s *search) payload(f flow, sequence uint32, payload []byte) {
	index, sent := s.capture.index.Load(), s.flows[f]
	if sent == nil {
		sent = &stream{next: sequence}
		s.flows[f] = sent
	}
	before := sent.before(sequence)
	most := max(0, index.longest-1) // what has the longest form but for a byte
	s.joined = append(append(s.joined[:0], before...), payload[:min(most, len(payload))]...)
	for at, form := range index.find(s.joined) {
		if at+len(form.text) > len(before) { // what ends earlier was sought then
			s.capture.see(form.name, sequence-uint32(len(before)-at))
		}
	}
	for at, form := range index.find(payload) {
		s.capture.see(form.name, sequence+uint32(at))
	}
	if end := sequence + uint32(len(payload)); int32(end-sent.next) > 0 {
		last := s.joined
		if len(payload) > most {
			last = payload
		}
		sent.tail, sent.next = append(sent.tail[:0], last[max(0, len(last)-most):]...), end
	}
}

// before returns what of the tail precedes a segment: all, less where TCP repeats something, nothing after a gap.
func (s *stream) before(sequence uint32) []byte {
	repeated := int(int32(s.next - sequence))
	if repeated < 0 || repeated > len(s.tail) {
		return nil
	}
	return s.tail[:len(s.tail)-repeated]
}
