package live

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
)

// AuditLog is the path of an API server's log of every request, a line of JSON each,
// written before the answer goes out.
type AuditLog string

// Mark is a place in the log: an offset in bytes.
type Mark int64

// Now is the place after all requests that were answered; the start where there was no
// request yet.
func (l AuditLog) Now() (Mark, error) {
	info, err := os.Stat(string(l))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look at the audit log: %w", err)
	}
	return Mark(info.Size()), nil
}

// Since gives each line after a mark to visit, and ends with its first error. A line that
// was being written when the mark was set, or is now, is left out: its request was not
// answered then, or is not yet.
func (l AuditLog) Since(from Mark, visit func(line []byte) error) error {
	file, err := os.Open(string(l))
	if err != nil {
		return fmt.Errorf("open the audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	begin := max(0, from-1) // the end of the line before, if it was whole
	if _, err := file.Seek(int64(begin), io.SeekStart); err != nil {
		return fmt.Errorf("seek in the audit log: %w", err)
	}
	reader := bufio.NewReader(file)
	for skip := from > 0; ; skip = false {
		line, err := reader.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the audit log: %w", err)
		case skip:
			continue
		}
		if err := visit(line); err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
	}
}
