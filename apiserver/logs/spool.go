package logs

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

const (
	// blockSize is in what pieces outputs are kept.
	blockSize = 1 << 20
	// promised is how many blocks an output has in any case: one that is read, and one that is written.
	promised = 2
)

// spool is the file that outputs are kept in, as blocks. It has no name: when the process is gone, so is the file.
type spool struct {
	directory string
	// most is how many blocks there may be: half of them are promised, the others go to who asks.
	most int64

	mu   sync.Mutex
	file *os.File
	// free are blocks that were given back, made how many there are, extra how many are beyond what is promised.
	free        []int64
	made, extra int64
	outputs     int64
}

// spoolError is that the disk failed.
type spoolError struct {
	act string
	err error
}

// Error says what had to be done.
func (e *spoolError) Error() string { return e.act + ": " + e.err.Error() }

// Unwrap is the cause.
func (e *spoolError) Unwrap() error { return e.err }

func newSpool(directory string, most int64) *spool { return &spool{directory: directory, most: most} }

// admit promises room to one more output, where there is room: of one whose reader has so many open, with this one, as many
// must be free.
func (s *spool) admit(held int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if (s.outputs+max(1, held))*promised > s.most/2 {
		return false
	}
	s.outputs++
	return true
}

// dismiss takes the promise back from an output that has no blocks.
func (s *spool) dismiss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outputs--
	if s.outputs == 0 && s.file != nil {
		s.free, s.made = nil, 0
		_ = s.file.Truncate(0) // what cannot be cut off is written over
	}
}

// take gives a block to an output that holds some; false is that there is none for it.
func (s *spool) take(held int) (int64, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held >= promised && s.extra >= s.most-s.most/2 {
		return 0, false, nil
	}
	if s.file == nil {
		file, err := os.CreateTemp(s.directory, "outputs-*")
		if err != nil {
			return 0, false, &spoolError{"make a file for outputs", err}
		}
		if err := os.Remove(file.Name()); err != nil {
			return 0, false, &spoolError{"take the name from the file for outputs", errors.Join(err, file.Close())}
		}
		s.file = file
	}
	if held >= promised {
		s.extra++
	}
	if last := len(s.free) - 1; last >= 0 {
		block := s.free[last]
		s.free = s.free[:last]
		return block, true, nil
	}
	s.made++
	return s.made - 1, true, nil
}

// give takes blocks back from an output that holds so many, those among them.
func (s *spool) give(blocks []int64, held int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, blocks...)
	s.extra -= int64(max(0, held-promised) - max(0, held-len(blocks)-promised))
}

func (s *spool) write(block, at int64, data []byte) error {
	if _, err := s.file.WriteAt(data, block*blockSize+at); err != nil {
		return &spoolError{"keep an output", err}
	}
	return nil
}

func (s *spool) read(block, at int64, into []byte) error {
	if _, err := s.file.ReadAt(into, block*blockSize+at); err != nil {
		return &spoolError{"read an output that was kept", err}
	}
	return nil
}

func (s *spool) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	if err := s.file.Close(); err != nil {
		return fmt.Errorf("close the file for outputs: %w", err)
	}
	return nil
}
