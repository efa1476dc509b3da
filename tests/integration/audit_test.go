package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// auditLog is the API server's log of every request, written before the answer goes out.
type auditLog struct{ live.AuditLog }

// agent is the operator's name in the log.
const agent = "heliostat-operator"

// request is what the log says of one.
type request struct {
	User struct{ Username string } `json:"user"`
	// ImpersonatedUser is whom the user acted as.
	ImpersonatedUser struct{ Username string } `json:"impersonatedUser"`
	UserAgent        string                    `json:"userAgent"`
	Verb             string                    `json:"verb"`
	ObjectRef        struct {
		Resource, Subresource, Namespace, Name string
	} `json:"objectRef"`
	ResponseStatus struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"responseStatus"`
	Annotations map[string]string `json:"annotations"`
}

// isRefused reports whether the sender lacked a right, or was denied by admission where no test wants that. What nobody
// can do, such as to make something in a namespace or of a kind that is going, is no lack of rights; nor is what a test
// has taken away.
func (r request) isRefused() bool {
	if r.ResponseStatus.Code != http.StatusForbidden || r.ObjectRef.Resource == "" {
		return false
	}
	if strings.HasSuffix(r.User.Username, ":"+deprived) {
		return false
	}
	if r.Annotations["authorization.k8s.io/decision"] == "allow" && strings.HasPrefix(r.ObjectRef.Namespace, denying) {
		return false
	}
	return !strings.Contains(r.ResponseStatus.Message, "it is being terminated") && !strings.Contains(r.ResponseStatus.Message, "definition is terminating")
}

// what names the sort of request, such as "create pods" or "patch computeclusters/status".
func (r request) what() string {
	if r.ObjectRef.Subresource != "" {
		return r.Verb + " " + r.ObjectRef.Resource + "/" + r.ObjectRef.Subresource
	}
	return r.Verb + " " + r.ObjectRef.Resource
}

func (r request) isWrite() bool { return !slices.Contains([]string{"get", "list", "watch"}, r.Verb) }

// now is the place after all requests that were answered.
func (l auditLog) now(t *testing.T) live.Mark {
	t.Helper()
	mark, err := l.Now()
	must(t, err)
	return mark
}

// since gives what the operator asked for after a mark; of one namespace, or of all
// where it is empty.
func (l auditLog) since(t *testing.T, from live.Mark, namespace string) []request {
	t.Helper()
	return slices.DeleteFunc(l.with(t, from, namespace), func(r request) bool {
		return namespace != "" && r.ObjectRef.Namespace != namespace
	})
}

// refused returns what operators were not let do after a mark, and why: the chart's role lacks a right, or admission had
// something against it.
func (l auditLog) refused(t *testing.T, from live.Mark) []string {
	t.Helper()
	var found []string
	for _, r := range l.with(t, from, fmt.Sprintf(`"code":%d`, http.StatusForbidden)) {
		if r.isRefused() {
			found = append(found, fmt.Sprintf("the operator may not %s: %s", r.what(), r.ResponseStatus.Message))
		}
	}
	return found
}

// with returns the operators' requests after a mark whose line has a text. The other lines, which are most, are not parsed.
func (l auditLog) with(t *testing.T, from live.Mark, text string) []request {
	t.Helper()
	var found []request
	must(t, l.Since(from, func(line []byte) error {
		if !bytes.Contains(line, []byte(agent)) || !bytes.Contains(line, []byte(text)) {
			return nil
		}
		var r request
		err := json.Unmarshal(line, &r)
		if err == nil && r.UserAgent == agent {
			found = append(found, r)
		}
		return err
	}))
	return found
}

// writes are those requests that change something, and tally how many of each sort.
func writes(requests []request) []request {
	return slices.DeleteFunc(slices.Clone(requests), func(r request) bool { return !r.isWrite() })
}

// budgetsApart leaves out that budgets are made: that is due when a head has been ready for a minute, whatever happens.
func budgetsApart(requests []request) []request {
	return slices.DeleteFunc(slices.Clone(requests), func(r request) bool {
		return r.what() == "create poddisruptionbudgets"
	})
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
