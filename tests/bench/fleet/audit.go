package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// auditLog is the API server's log of the contender's requests, written before the
// answer goes out.
type auditLog struct{ path string }

// mark is a place in the log.
type mark int64

// now is the place after all requests that were answered.
func (l auditLog) now() (mark, error) {
	info, err := os.Stat(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil // there was no request yet
	}
	if err != nil {
		return 0, fmt.Errorf("look at the audit log: %w", err)
	}
	return mark(info.Size()), nil
}

// Calls counts requests by what they do, such as "create pods" or "patch
// computeclusters/status".
type Calls struct {
	// Writes are those that change something, events included.
	Writes map[string]int `json:"writes,omitempty"`
	// Reads are those of single objects and lists past the cache; watches are not counted.
	Reads map[string]int `json:"reads,omitempty"`
	// Failed are those of either sort that were refused, with the status code.
	Failed map[string]int `json:"failed,omitempty"`
}

func sum(counts map[string]int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}

// since counts the requests after a mark.
func (l auditLog) since(from mark) (Calls, error) {
	calls := Calls{Writes: map[string]int{}, Reads: map[string]int{}, Failed: map[string]int{}}
	file, err := os.Open(l.path)
	if err != nil {
		return calls, fmt.Errorf("open the audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(int64(from), io.SeekStart); err != nil {
		return calls, fmt.Errorf("seek in the audit log: %w", err)
	}
	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return calls, nil // what is left is a line that is being written
		}
		if err == nil {
			err = calls.count(line)
		}
		if err != nil {
			return calls, fmt.Errorf("read the audit log: %w", err)
		}
	}
}

// request is what the log says of one.
type request struct {
	Verb      string `json:"verb"`
	ObjectRef struct {
		Resource, Subresource string
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

func (c Calls) count(line []byte) error {
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return err
	}
	what := r.Verb + " " + r.ObjectRef.Resource
	if r.ObjectRef.Subresource != "" {
		what += "/" + r.ObjectRef.Subresource
	}
	switch r.Verb {
	case "watch":
	case "get", "list":
		if r.ObjectRef.Resource != "" { // else it asks which resources there are
			c.Reads[what]++
		}
	default:
		c.Writes[what]++
	}
	if code := r.ResponseStatus.Code; code >= 400 {
		c.Failed[fmt.Sprintf("%s: %d", what, code)]++
	}
	return nil
}

// per gives "1.00 create services, ..." for as many clusters or edits.
func per(counts map[string]int, n int) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%.2f %s", float64(counts[what])/float64(n), what))
	}
	return strings.Join(parts, ", ")
}
