package collect

import (
	"bytes"
	"strings"

	"github.com/heliostat-dev/heliostat/history/pack"
)

// read sends what is new of a file, up to its share of a pass and the sink's room.
func (c *Collector) read(sink Sink, file *followed, isEnd bool) (isBusy bool, err error) {
	if file.handle == nil || file.isClosed {
		return false, nil
	}
	if err := c.measure(sink, file); err != nil || file.handle == nil {
		return false, err
	}
	if file.held == file.size && !isEnd {
		return false, nil
	}
	for total := int64(0); total < perPass && file.offset < file.size; {
		sent, err := c.piece(sink, file, isEnd)
		if err != nil {
			return isBusy, err
		}
		if sent == 0 {
			break
		}
		isBusy, total = true, total+sent
	}
	file.isBehind = file.offset < file.size
	return isBusy, nil
}

// measure finds out how long a file is now, and whether it is the one that was followed.
func (c *Collector) measure(sink Sink, file *followed) error {
	now, err := file.handle.stat()
	if err != nil {
		return c.refuse(sink, file)
	}
	if now.size == file.size {
		file.quiet++
	} else {
		file.quiet = 0
	}
	file.size = now.size
	isOther := file.size < file.offset || file.isBack && !c.isSame(file)
	file.isBack = false
	if isOther {
		return c.shorter(sink, file)
	}
	return nil
}

// isSame reports whether a file still has the bytes before its offset.
func (c *Collector) isSame(file *followed) bool {
	before := c.raw[:len(file.tail)]
	n, err := file.handle.read(before, file.offset-int64(len(file.tail)))
	return err == nil && bytes.Equal(before[:n], file.tail)
}

// shorter makes a file another generation, or refuses it where its session has too many.
func (c *Collector) shorter(sink Sink, file *followed) error {
	if c.sessions[file.session] >= MaxFiles {
		return c.refuse(sink, file)
	}
	return c.renew(sink, file)
}

// piece sends the next bytes of a file. It returns how many: none where its last line has not ended, or the sink is full.
func (c *Collector) piece(sink Sink, file *followed, isEnd bool) (int64, error) {
	room := int64(sink.Room())
	if room <= 0 {
		return 0, nil
	}
	redactor := c.redactor
	if strings.HasPrefix(file.Path, "export_events/") {
		redactor = c.export
	}
	start := redactor.Start(file.offset)
	before := int(file.offset - start)
	raw := c.raw[:min(int64(before)+pack.MaxRun, file.size-start)]
	n, err := file.handle.read(raw, start)
	raw = raw[:n]
	if err != nil {
		return 0, c.refuse(sink, file)
	}
	if n < before || !bytes.HasSuffix(raw[:before], file.tail) {
		if err := c.shorter(sink, file); err != nil || file.handle == nil {
			return 0, err
		}
		return c.piece(sink, file, isEnd)
	}
	c.out = append(c.out[:0], raw...)
	final := redactor.Redact(c.out, start, file.offset, isEnd && start+int64(n) >= file.size)
	final = min(final, file.offset+room)
	if final == file.offset {
		file.held = file.size
		return 0, nil
	}
	if err := sink.Chunk(file.File, file.offset, c.out[before:final-start]); err != nil {
		return 0, err
	}
	sent := final - file.offset
	end := int(final - start)
	file.tail, file.offset = append(file.tail[:0], raw[max(0, end-tailSize):end]...), final
	return sent, nil
}
