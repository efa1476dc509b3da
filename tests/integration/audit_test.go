package integration

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
	"testing"
)

// auditLog is the API server's log of every request, written before the answer goes out.
type auditLog struct{ path string }

// request is what the log says of one.
type request struct {
	UserAgent string `json:"userAgent"`
	Verb      string `json:"verb"`
	ObjectRef struct {
		Resource, Subresource, Namespace, Name string
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// what names the sort of request, such as "create pods" or "patch computeclusters/status".
func (r request) what() string {
	if r.ObjectRef.Subresource != "" {
		return r.Verb + " " + r.ObjectRef.Resource + "/" + r.ObjectRef.Subresource
	}
	return r.Verb + " " + r.ObjectRef.Resource
}

func (r request) isWrite() bool { return !slices.Contains([]string{"get", "list", "watch"}, r.Verb) }

// mark is a place in the log.
type mark int64

// now is the place after all requests that were answered.
func (l auditLog) now(t *testing.T) mark {
	t.Helper()
	info, err := os.Stat(l.path)
	if err != nil {
		t.Fatalf("look at the audit log: %v", err)
	}
	return mark(info.Size())
}

// since gives what the operator asked for after a mark; of one namespace, or of all
// where it is empty.
func (l auditLog) since(t *testing.T, from mark, namespace string) []request {
	t.Helper()
	file, err := os.Open(l.path)
	if err != nil {
		t.Fatalf("open the audit log: %v", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(int64(from), io.SeekStart); err != nil {
		t.Fatalf("seek in the audit log: %v", err)
	}
	var found []request
	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return found // what is left is a line that is being written
		}
		var r request
		if err == nil {
			err = json.Unmarshal(line, &r)
		}
		if err != nil {
			t.Fatalf("read the audit log: %v", err)
		}
		if r.UserAgent == "heliostat-operator" && (namespace == "" || r.ObjectRef.Namespace == namespace) {
			found = append(found, r)
		}
	}
}

// writes are those requests that change something, and tally how many of each sort.
func writes(requests []request) []request {
	return slices.DeleteFunc(slices.Clone(requests), func(r request) bool { return !r.isWrite() })
}

func tally(requests []request) string {
	counts := map[string]int{}
	for _, r := range requests {
		counts[r.what()]++
	}
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%d × %s", counts[what], what))
	}
	return strings.Join(lines, ", ")
}
