// Package redact replaces secrets in files by as many asterisks, so that offsets stay what they were.
//
// In: what to look for, and bytes of a file around a place. Out: the same bytes without secrets, as far as they are final: whatever the
// file gets later, they stay the same.
//
// The answer must never depend on how a file was cut into reads: who reads it live and who reads its archive see the same. So it is a
// function of the file's bytes and of nothing that was kept from an earlier call.
package redact

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
)

const (
	// Block is the size of the blocks, by offset, in which long lines are searched.
	Block = 64 << 10
	// Context is how many bytes of a line are searched before and behind a block. A line of at most so many is searched as a whole,
	// and a secret of at most so many is found wherever it lies.
	Context = 16 << 10
)

// The bounds of what is looked for.
const (
	MinText     = 8 // a shorter text stands in much that is no secret
	MaxText     = 1 << 10
	MaxSearches = 64
)

// ErrInvalid is wrapped by each error about what to look for.
var ErrInvalid = errors.New("invalid")

// Redactor knows what to replace.
type Redactor struct {
	texts          [][]byte
	patterns       []*regexp.Regexp
	isExport       bool
	block, context int64
}

// New returns a redactor for texts and RE2 expressions. Empty texts are left out.
func New(texts, expressions []string) (*Redactor, error) {
	if len(texts)+len(expressions) > MaxSearches {
		return nil, fmt.Errorf("redact %d texts and expressions, at most %d fit: %w", len(texts)+len(expressions), MaxSearches, ErrInvalid)
	}
	r := &Redactor{block: Block, context: Context}
	for i, text := range texts {
		if text == "" {
			continue
		}
		if len(text) < MinText || len(text) > MaxText || bytes.ContainsAny([]byte(text), "\r\n") {
			return nil, fmt.Errorf("redact text %d of %d bytes; use one line of %d to %d: %w", i, len(text), MinText, MaxText, ErrInvalid)
		}
		r.texts = append(r.texts, []byte(text))
	}
	for _, expression := range expressions {
		if len(expression) > MaxText {
			return nil, fmt.Errorf("redact an expression of %d bytes, at most %d fit: %w", len(expression), MaxText, ErrInvalid)
		}
		pattern, err := regexp.Compile(expression)
		if err != nil {
			return nil, fmt.Errorf("redact %q: %w: %w", expression, ErrInvalid, err)
		}
		r.patterns = append(r.patterns, pattern)
	}
	return r, nil
}

// ForExport returns a redactor that also replaces the values of env_vars, for files of Ray's events.
func (r *Redactor) ForExport() *Redactor {
	export := *r
	export.isExport = true
	return &export
}

// Start returns the offset from which a file must be read so that its bytes from an offset on can be redacted.
func (r *Redactor) Start(from int64) int64 { return max(0, from/r.block*r.block-r.context) }

// Redact replaces, in place, what is found in the text of a file that begins at an offset, from the byte of another offset on. The text
// begins at or before Start of that, and isEnd says that the file ends with it. It returns up to which offset the text is final. What
// follows must be given again, as it was, once there is more.
func (r *Redactor) Redact(text []byte, offset, from int64, isEnd bool) int64 {
	masks, last, place := mask{begin: from}, offset+int64(len(text)), from
	if from >= last {
		return from
	}
	begin := offset + int64(lineBegin(text[:from-offset]))
	for place < last {
		rest := text[place-offset:]
		end, isWhole := last, isEnd
		if i := bytes.IndexAny(rest, "\r\n"); i >= 0 {
			end, isWhole = place+int64(i), true
		}
		final := r.line(&masks, line{text: text, offset: offset, begin: begin, end: end, isWhole: isWhole}, place)
		if final < end || !isWhole {
			place = final
			break
		}
		place = min(end+1, last)
		begin = place
	}
	masks.apply(text, offset)
	return place
}

// lineBegin returns where the line begins that goes on behind a text.
func lineBegin(text []byte) int { return bytes.LastIndexAny(text, "\r\n") + 1 }

// line is a line of a file, without its end, as far as it is known. The text begins at offset, and the line at begin or before it.
type line struct {
	text               []byte
	offset, begin, end int64
	isWhole            bool
}

// line searches a line from a place on, block by block, and returns up to where it is final.
func (r *Redactor) line(masks *mask, l line, place int64) int64 {
	for place < l.end {
		block := place / r.block * r.block
		begin, end := max(l.begin, block-r.context), block+r.block+r.context
		if l.end < end {
			if !l.isWhole {
				return place
			}
			end = l.end
		}
		until := min(l.end, block+r.block)
		r.search(l.text[begin-l.offset:end-l.offset], func(from, to int) {
			masks.add(max(block, begin+int64(from)), min(until, begin+int64(to)))
		})
		place = until
	}
	return place
}

// search calls found with each place of a text that must be replaced.
func (r *Redactor) search(text []byte, found func(from, to int)) {
	for _, secret := range r.texts {
		for from := 0; ; from++ {
			// Also one that overlaps the one before, so that none depends on where the search began.
			i := bytes.Index(text[from:], secret)
			if i < 0 {
				break
			}
			from += i
			found(from, from+len(secret))
		}
	}
	for _, pattern := range r.patterns {
		for _, match := range pattern.FindAllIndex(text, -1) {
			found(match[0], match[1])
		}
	}
	if r.isExport {
		envValues(text, found)
	}
}

// mask is the ranges of a text that are replaced once all of it was searched, from a place on.
type mask struct {
	begin  int64
	ranges [][2]int64
}

func (m *mask) add(from, to int64) {
	if from = max(from, m.begin); from < to {
		m.ranges = append(m.ranges, [2]int64{from, to})
	}
}

func (m *mask) apply(text []byte, offset int64) {
	for _, one := range m.ranges {
		for i := one[0]; i < one[1]; i++ {
			text[i-offset] = '*'
		}
	}
}
