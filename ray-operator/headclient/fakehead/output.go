package fakehead

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// print is a part of a run's output, and how long after its begin it is written.
type print struct {
	after time.Duration
	text  string
}

// Output is what the file holds that a job's driver writes to; false where there is none.
func (j *jobs) Output(id string) (string, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.settle()
	found, known := j.known[id]
	if !known || !found.hasFile() {
		return "", false
	}
	return found.output(j.clock.Now()), true
}

// EmptyOutput empties the file that a job's driver writes to, for good.
func (j *jobs) EmptyOutput(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if found, known := j.known[id]; known {
		found.emptied = true
	}
}

// RemoveOutput removes the file that a job's driver writes to.
func (j *jobs) RemoveOutput(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if found, known := j.known[id]; known {
		found.removed = true
	}
}

// output is what a driver has written, with lines of Ray's own in it. The second is written
// once the process has begun, so that what a short one writes may be before it.
func (j *job) output(now time.Time) string {
	if j.emptied {
		return ""
	}
	var said strings.Builder
	said.WriteString(j.at.UTC().Format("2006-01-02 15:04:05,000") + "\tINFO job_manager.py:581 -- Runtime env is setting up.\n")
	banner := "Running entrypoint for job " + j.ID + ": " + j.Entrypoint + "\n"
	isShort := j.process.Takes == 0 && !j.process.Hangs
	if !isShort {
		said.WriteString(banner)
	}
	for _, line := range j.process.Lines {
		said.WriteString(line + "\n")
	}
	if !j.ended.IsZero() && j.ended.Before(now) {
		now = j.ended
	}
	for _, part := range j.process.prints {
		if !j.began.Add(part.after).After(now) {
			said.WriteString(part.text)
		}
	}
	if isShort {
		said.WriteString(banner)
	}
	return said.String()
}

// lastLines are the last lines of a text; what has no end of a line counts as one.
func lastLines(text string, count int) string {
	at := len(text)
	for range count {
		if at == 0 {
			return text
		}
		at = strings.LastIndexByte(text[:at-1], '\n') + 1
	}
	return text[at:]
}

// logs is the whole output as a text. Ray reads it as UTF-8, and takes each carriage return
// for an end of a line.
func (w *web) logs(j *job) reply {
	if j.node == nil {
		return reply{http.StatusOK, map[string]string{"logs": ""}}
	}
	said := j.output(w.head.clock.Now())
	if !utf8.ValidString(said) {
		return traceback(http.StatusInternalServerError, "UnicodeDecodeError: 'utf-8' codec can't decode byte")
	}
	return reply{http.StatusOK, map[string]string{"logs": strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(said)}}
}

// hasFile reports whether the file is there that a driver writes to.
func (j *job) hasFile() bool { return j.node != nil && !j.removed }

// files are those of a node that match a glob, of which only the outputs of jobs and the logs of replicas and processes are known.
func (w *web) files(request *http.Request) reply {
	node, glob := request.FormValue("node_id"), request.FormValue("glob")
	if missing := w.agentOf(node); missing != "" {
		return reply{http.StatusInternalServerError, missing}
	}
	var found []string
	for _, j := range w.head.known {
		if j.hasFile() && j.node.String() == node {
			found = append(found, "job-driver-"+j.ID+".log")
		}
	}
	for key := range w.head.logs {
		if key.node == node {
			found = append(found, key.file)
		}
	}
	found = slices.DeleteFunc(found, func(name string) bool {
		matches, err := path.Match(glob, name)
		return !matches || err != nil
	})
	groups := map[string][]string{}
	if len(found) > 0 {
		groups["internal"] = found
	}
	return reply{http.StatusOK, map[string]any{"result": true, "msg": "", "data": map[string]any{"result": groups}}}
}

// SetLog writes a file into the log directory of the Ray node of an instance, in place of one that is there.
func (h *Head) SetLog(instance, name string, lines ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.nodes {
		if one.Instance == instance {
			h.logs[logKey{one.id.String(), name}] = lines
		}
	}
}

// listNodes is what the state API lists of nodes, where only those that live are asked for.
func (w *web) listNodes(*http.Request) reply {
	all := []map[string]string{}
	for _, one := range w.head.hosts() {
		if !one.dead {
			all = append(all, map[string]string{"node_id": one.id.String(), "state": "ALIVE"})
		}
	}
	return reply{http.StatusOK, map[string]any{"result": true, "msg": "", "data": map[string]any{"result": map[string]any{"total": len(all), "result": all}}}}
}

// usualLines is how many lines Ray gives of a file where nobody says how many.
const usualLines = 1000

// file is the end of a file of a node, of which only the output of jobs and the logs of
// replicas are known.
func (w *web) file(request *http.Request) reply {
	for _, j := range w.head.known {
		if !j.hasFile() || j.node.String() != request.FormValue("node_id") || "job-driver-"+j.ID+".log" != request.FormValue("filename") {
			continue
		}
		if missing := w.agentOf(request.FormValue("node_id")); missing != "" {
			return reply{http.StatusInternalServerError, missing}
		}
		said, lines := j.output(w.head.clock.Now()), usualLines
		if asked := request.FormValue("lines"); asked != "" {
			var err error
			if lines, err = strconv.Atoi(asked); err != nil {
				return reply{http.StatusInternalServerError, fmt.Sprintf("invalid literal for int() with base 10: '%s'", asked)}
			}
		}
		if lines >= 0 {
			said = lastLines(said, lines)
		}
		return reply{http.StatusOK, said}
	}
	if missing := w.agentOf(request.FormValue("node_id")); missing != "" {
		return reply{http.StatusInternalServerError, missing}
	}
	if said, found := w.replicaLog(request); found {
		return reply{http.StatusOK, said}
	}
	return reply{http.StatusInternalServerError, "A file is not found at: /tmp/ray/session_latest/logs/" + request.FormValue("filename")}
}
