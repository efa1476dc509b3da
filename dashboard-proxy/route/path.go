package route

import (
	"net/http"
	"strings"
	"unicode/utf8"
)

// Bounds of a request target, in bytes.
const maxTarget = 16 << 10

// plain are the characters that stand for themselves in a path, beside letters and digits. A semicolon begins parameters
// for some servers and not for others.
const plain = "-._~!$&'()*+,=:@[]/"

// unreserved are the characters that mean the same with and without an escape, beside letters and digits.
const unreserved = "-._~"

// checkPath refuses a path that two servers could read in two ways.
func checkPath(path string) error {
	switch {
	case len(path) > maxTarget:
		return refuse(http.StatusRequestURITooLong, "the path has more than 16 KiB: send a shorter one")
	case path == "" || path[0] != '/':
		return bad("the path does not begin with a slash: send the path alone, without a host")
	}
	text := make([]byte, 0, len(path))
	for at := 0; at < len(path); at++ {
		switch b := path[at]; {
		case b == '%':
			if err := checkEscape(path[at:]); err != nil {
				return err
			}
			b, _ = escape(path[at:])
			text = append(text, b)
			at += 2
		case isWord(b) || strings.IndexByte(plain, b) >= 0:
			text = append(text, b)
		default:
			return bad("the path holds a character that cannot stand there, or a semicolon: escape it")
		}
	}
	if !utf8.Valid(text) {
		return bad("the path is no UTF-8: send it so, escaped")
	}
	return checkSegments(path)
}

// checkEscape refuses the escape that a text begins with where it need not be, or stands for what separates.
func checkEscape(text string) error {
	decoded, is := escape(text)
	switch {
	case !is:
		return bad("the path holds a malformed escape: write % as %25")
	case decoded < ' ' || decoded == 0x7f || decoded == '/' || decoded == '\\':
		return bad("the path holds an escaped slash, backslash or control character: leave it out")
	case isWord(decoded) || strings.IndexByte(unreserved, decoded) >= 0:
		return bad("the path escapes a character that needs no escape: send it plain")
	case decoded == '%' && isTwice(text):
		return bad("the path is escaped twice: escape it once")
	}
	return nil
}

// checkSegments refuses segments that say another place than they stand at. Escaped dots were refused before.
func checkSegments(path string) error {
	segments := strings.Split(path[1:], "/")
	for i, segment := range segments {
		switch {
		case segment == "." || segment == "..":
			return bad("the path holds a segment '.' or '..': send the path that it leads to")
		case segment == "" && i < len(segments)-1:
			return bad("the path holds '//': send one slash")
		}
	}
	return nil
}

// checkQuery refuses a query that is not of visible ASCII, or malformed. Nothing is decided by what it says.
func checkQuery(query string) error {
	if len(query) > maxTarget {
		return refuse(http.StatusRequestURITooLong, "the query has more than 16 KiB: send a shorter one")
	}
	for at := range len(query) {
		b := query[at]
		if b <= ' ' || b > '~' || b == '#' {
			return bad("the query holds a character that cannot stand there: escape it")
		}
		if b != '%' {
			continue
		}
		if decoded, is := escape(query[at:]); !is || decoded == 0 {
			return bad("the query holds a malformed escape, or %00: write % as %25")
		}
	}
	return nil
}

// escape reads the escape that a text begins with.
func escape(text string) (byte, bool) {
	if len(text) < 3 {
		return 0, false
	}
	high, isHigh := hex(text[1])
	low, isLow := hex(text[2])
	return high<<4 | low, isHigh && isLow
}

// isTwice reports whether the escaped percent sign that a text begins with begins another escape.
func isTwice(text string) bool {
	_, is := escape(text[2:])
	return is
}

func hex(b byte) (byte, bool) {
	switch {
	case '0' <= b && b <= '9':
		return b - '0', true
	case 'a' <= b && b <= 'f':
		return b - 'a' + 10, true
	case 'A' <= b && b <= 'F':
		return b - 'A' + 10, true
	}
	return 0, false
}

func isWord(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9'
}

func bad(text string) *Refusal { return refuse(http.StatusBadRequest, text) }
