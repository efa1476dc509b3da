// Package pack has the formats in which histories are stored: packs, objects of the store that hold bytes of one cluster's files,
// and segments, in which chunks wait on an archiver's volume until they are packed.
//
// In: bytes of files with the place that each has, gaps, lists; or the bytes of a pack or segment. Out: the bytes of a pack or
// segment; or an index, and the bytes of one run. docs/design/history.md has the layout.
//
// It must never take memory for what bytes claim before their bounds were judged, and never return bytes whose sum is wrong:
// who can write to a store or a volume may have made them.
package pack

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
)

// The bounds that writers and readers keep.
const (
	MaxObject  = 64 << 20           // bytes of an object
	MaxRun     = 256 << 10          // bytes of a chunk, and of a run before compression
	MaxFrame   = MaxRun + MaxRun/64 // bytes of a frame: those of a run that does not compress
	MaxIndex   = 16 << 20           // bytes of an index before compression
	MaxFiles   = 1 << 16            // files of an index, and its pods
	MaxObjects = 1 << 16            // other objects that an index names
	MaxEntries = 1 << 18            // runs, gaps, lines of use, and files of all lists
	MaxPath    = 512                // bytes of a file's path
	MaxDepth   = 3                  // directories of a path
	MaxName    = 128                // bytes of the name of another object
	MaxLine    = 512                // bytes of a line of use
	MaxOffset  = 1 << 62            // where a byte of a file can lie, and when something can have happened
)

// ErrInvalid is wrapped by each error about bytes that are no pack, index or segment, or that were changed.
var ErrInvalid = errors.New("invalid")

// UID identifies an object of Kubernetes.
type UID [16]byte

// ParseUID reads a UID in the form in which Kubernetes writes it.
func ParseUID(text string) (UID, error) {
	var uid UID
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return uid, fmt.Errorf("parse UID %.40q: %w", text, ErrInvalid)
	}
	if _, err := hex.Decode(uid[:], []byte(strings.ReplaceAll(text, "-", ""))); err != nil {
		return UID{}, fmt.Errorf("parse UID %.40q: %w", text, ErrInvalid)
	}
	return uid, nil
}

func (u UID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// FileID identifies a file within its pod: its inode and its time of birth.
type FileID [16]byte

// MakeFileID returns the ID of the file with an inode and a time of birth in nanoseconds.
func MakeFileID(inode, birth uint64) FileID {
	var id FileID
	binary.BigEndian.PutUint64(id[:8], inode)
	binary.BigEndian.PutUint64(id[8:], birth)
	return id
}

// FileKey identifies a row of bytes: a file of a pod, from when it was made or made shorter.
type FileKey struct {
	Pod        UID
	ID         FileID
	Generation uint32
}

// Kind is what the bytes of a file are.
type Kind uint8

// The kinds of files. Later ones may follow.
const (
	Log       Kind = iota // a file of Ray's
	Events                // JSON lines that Ray exported
	Dashboard             // answers of the dashboard
	kinds
)

// Reason is why bytes of a file are missing.
type Reason uint8

// The reasons, the strongest first: of two for the same bytes the lower one is shown.
const (
	NodeLost Reason = iota + 1
	Killed
	LimitReached
	RotatedAway
	Unreadable
	ArchiverAway
	reasons
)

// names are the codes of the reasons, which users see.
var names = [reasons]string{"", "NodeLost", "Killed", "LimitReached", "RotatedAway", "Unreadable", "ArchiverAway"}

func (r Reason) String() string {
	if r == 0 || r >= reasons {
		return "Unknown"
	}
	return names[r]
}

// CheckPath judges the path of a file below its directory of logs.
func CheckPath(path string) error {
	if len(path) > MaxPath {
		return fmt.Errorf("path of %d bytes, at most %d fit: %w", len(path), MaxPath, ErrInvalid)
	}
	parts := strings.Split(path, "/")
	if len(parts) > MaxDepth+1 {
		return fmt.Errorf("path %q has more than %d directories: %w", path, MaxDepth, ErrInvalid)
	}
	for _, part := range parts {
		if part == "" || part == "." || part == ".." || strings.ContainsRune(part, 0) {
			return fmt.Errorf("path %q has the part %q: %w", path, part, ErrInvalid)
		}
	}
	return nil
}

// checkName judges the name of another object, which is relative to the archive that both belong to, so that an index can
// never lead to another archive.
func checkName(name string) error {
	if name == "" || len(name) > MaxName {
		return fmt.Errorf("name of an object of %d bytes: %w", len(name), ErrInvalid)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.Trim(part, "0123456789abcdefghijklmnopqrstuvwxyz-") != "" {
			return fmt.Errorf("name %q of an object: %w", name, ErrInvalid)
		}
	}
	return nil
}

// sum returns the CRC-32C of bytes.
func sum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }
