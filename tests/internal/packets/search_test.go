package packets

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"
	"pgregory.net/rapid"
)

// seeker is a capture without a socket.
func seeker(secrets map[string]string) *Capture {
	c := &Capture{counts: map[string]int{}, sent: map[sighting]bool{}}
	for name, secret := range secrets {
		c.Seek(name, []byte(secret))
	}
	return c
}

// segment is a packet of TCP over IPv4 from one port of a pod to another pod.
func segment(port uint16, sequence uint32, flags byte, payload string) []byte {
	packet := make([]byte, 2*leastHeader, 2*leastHeader+len(payload))
	packet[0], packet[9], packet[leastHeader+12], packet[leastHeader+13] = 4<<4|5, protocolTCP, 5<<4, flags
	binary.BigEndian.PutUint16(packet[2:], uint16(cap(packet)))
	binary.BigEndian.PutUint16(packet[leastHeader:], port)
	binary.BigEndian.PutUint32(packet[leastHeader+4:], sequence)
	return append(packet, payload...)
}

// sent is a segment of a test.
type sent struct {
	port     uint16
	sequence uint32
	flags    byte
	payload  string
}

// bytewise sends a text byte for byte, with sequence numbers that pass 0 on the way.
func bytewise(text string) (all []sent) {
	for i, b := range []byte(text) {
		all = append(all, sent{1, uint32(i) - 7, 0, string(b)})
	}
	return all
}

// TestSearch_JoinsSegments of a flow, as they pass two interfaces.
func TestSearch_JoinsSegments(t *testing.T) {
	const secret, head, rest = "split-0123456789abcdef", "to split-0123", "456789abcdef ."
	for name, test := range map[string]struct {
		sent []sent
		want int
	}{
		"one after the other":     {[]sent{{1, 100, 0, head}, {1, 113, 0, rest}}, 1},
		"byte for byte":           {bytewise(head + rest), 1},
		"byte for byte in base64": {bytewise(base64.StdEncoding.EncodeToString([]byte(head + rest))), 1},
		"an empty one between":    {[]sent{{1, 100, 0, head}, {1, 113, 0, ""}, {1, 113, 0, rest}}, 1},
		"a repeated one between": {[]sent{
			{1, 90, 0, "0123456789"}, {1, 100, 0, head}, {1, 90, 0, "0123456789"}, {1, 113, 0, rest},
		}, 1},
		"all repeated": {[]sent{
			{1, 100, 0, head}, {1, 113, 0, rest}, {1, 100, 0, head}, {1, 113, 0, rest},
		}, 1},
		"repeated in one":               {[]sent{{1, 100, 0, head}, {1, 113, 0, rest}, {1, 100, 0, head + rest}}, 1},
		"an end that is repeated":       {[]sent{{1, 100, 0, head}, {1, 110, 0, head[10:] + rest}}, 1},
		"after a gap":                   {[]sent{{1, 100, 0, head}, {1, 114, 0, rest}}, 0},
		"another flow":                  {[]sent{{1, 100, 0, head}, {2, 113, 0, rest}}, 0},
		"another connection":            {[]sent{{1, 100, 0, head}, {1, 112, flagSYN, ""}, {1, 113, 0, rest}}, 0},
		"after the end":                 {[]sent{{1, 100, flagFIN, head}, {1, 113, 0, rest}}, 0},
		"the whole connection":          {[]sent{{1, 99, flagSYN, head}, {1, 113, flagFIN, rest}}, 1},
		"twice":                         {[]sent{{1, 100, 0, head + rest + head}, {1, 140, 0, rest}}, 2},
		"twice in one":                  {[]sent{{1, 100, 0, secret + secret}}, 2},
		"in base64":                     {[]sent{{1, 100, 0, base64.StdEncoding.EncodeToString([]byte(secret))}}, 1},
		"once where a long one follows": {[]sent{{1, 100, 0, head + rest}, {1, 127, 0, strings.Repeat(".", 999)}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := seeker(map[string]string{"secret": secret})
			s := newSearch(c)
			for _, one := range test.sent {
				for link := range 2 {
					s.packet(link, segment(one.port, one.sequence, one.flags, one.payload))
				}
			}
			if got := c.Found()["secret"]; got != test.want {
				t.Errorf("it was found %d times, want %d", got, test.want)
			}
		})
	}
}

func TestSearch_FindsInWhatIsNoWholeSegment(t *testing.T) {
	whole := segment(1, 1, 0, token)
	datagram, part, short, long := slices.Clone(whole), slices.Clone(whole), slices.Clone(whole), slices.Clone(whole)
	datagram[9] = 17      // UDP
	part[6] = 0x20        // more fragments follow
	short[12+20] = 4 << 4 // a TCP header of 16 bytes
	long[3]++             // says that it has more bytes
	for _, packet := range [][]byte{datagram, part, short, long, []byte(token)} {
		c := seeker(map[string]string{"token": token})
		if newSearch(c).packet(1, packet); !maps.Equal(c.Found(), map[string]int{"token": 1}) {
			t.Errorf("in %q it found %v", packet, c.Found())
		}
	}
}

// printable are characters of headers, and one that has a code of many bits.
var printable = []rune(`abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+/.:;~\ `)

// TestTexts_AreFoundBesideAnything, coded as it may be.
func TestTexts_AreFoundBesideAnything(t *testing.T) {
	beside := rapid.StringOfN(rapid.RuneFrom(printable), 0, 20, -1)
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringOfN(rapid.RuneFrom(printable), LeastSecret, 60, -1).Draw(t, "secret")
		text := beside.Draw(t, "before") + secret + beside.Draw(t, "after")
		for name, code := range map[string][]byte{
			"as it is":         []byte(text),
			"in base64":        base64.StdEncoding.AppendEncode(nil, []byte(text)),
			"in base64 of URL": base64.RawURLEncoding.AppendEncode(nil, []byte(text)),
			"in Huffman code":  hpack.AppendHuffmanString(nil, text),
		} {
			c := seeker(map[string]string{"sought": secret, "another": "another-0123456789abcdef"})
			if newSearch(c).packet(1, segment(1, 1, 0, string(code))); c.Found()["sought"] == 0 || c.Found()["another"] != 0 {
				t.Fatalf("%s %q has %v", name, text, c.Found())
			}
		}
	})
}

func TestIndex_FindsWhatIsThere(t *testing.T) {
	few := rapid.SliceOfN(rapid.ByteRange('a', 'c'), 2, 6) // so that many are there by chance
	rapid.Check(t, func(t *rapid.T) {
		var sought []form
		for _, text := range rapid.SliceOfNDistinct(few, 0, 6, func(b []byte) string { return string(b) }).Draw(t, "sought") {
			sought = append(sought, form{text: string(text)})
		}
		text := rapid.SliceOfN(rapid.ByteRange('a', 'c'), 0, 40).Draw(t, "text")
		got := map[int]map[string]bool{}
		for at, form := range newIndex(sought).find(text) {
			if got[at] == nil {
				got[at] = map[string]bool{}
			}
			got[at][form.text] = true
		}
		for at := range text {
			for _, form := range sought {
				if want := bytes.HasPrefix(text[at:], []byte(form.text)); got[at][form.text] != want {
					t.Fatalf("%q at %d of %q: %v, want %v", form.text, at, text, !want, want)
				}
			}
		}
	})
}

// FuzzPacket shows that no packet ends a capture.
func FuzzPacket(f *testing.F) {
	f.Add(segment(1, 1, flagSYN, token))
	c := seeker(map[string]string{"token": token})
	f.Fuzz(func(t *testing.T, packet []byte) {
		s := newSearch(c)
		for range 2 {
			s.packet(1, packet)
		}
	})
}

// BenchmarkPacket is what a full segment costs while 20 secrets are sought.
func BenchmarkPacket(b *testing.B) {
	secrets := map[string]string{}
	for i := range 20 {
		secrets[string(rune('a'+i))] = strings.Repeat(string(rune('a'+i)), 4) + token
	}
	s := newSearch(seeker(secrets))
	noise := make([]byte, 60000)
	for i := range noise {
		noise[i] = byte(i * i >> 3)
	}
	b.SetBytes(int64(len(noise)))
	for i := 0; b.Loop(); i++ {
		s.packet(1, segment(1, uint32(i*len(noise)), 0, string(noise)))
	}
}
