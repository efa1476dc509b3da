package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// auditLog is the API server's log of the contender's requests, written before the
// answer goes out.
type auditLog struct{ live.AuditLog }

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
func (l auditLog) since(from live.Mark) (Calls, error) {
	calls := Calls{Writes: map[string]int{}, Reads: map[string]int{}, Failed: map[string]int{}}
	return calls, l.Since(from, calls.count)
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

// all gives "3 get secrets, ..." for reads and writes.
func (c Calls) all() string {
	var parts []string
	for _, counts := range []map[string]int{c.Writes, c.Reads} {
		for _, what := range slices.Sorted(maps.Keys(counts)) {
			parts = append(parts, fmt.Sprintf("%d %s", counts[what], what))
		}
	}
	return strings.Join(parts, ", ")
}

// per gives "1.00 create services, ..." for as many clusters or edits.
func per(counts map[string]int, n int) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%.2f %s", float64(counts[what])/float64(n), what))
	}
	return strings.Join(parts, ", ")
}
