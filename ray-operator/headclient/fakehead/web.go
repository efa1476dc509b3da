package fakehead

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// web is the HTTP of the head's dashboard: jobs, and Serve.
type web struct {
	head    *Head
	address string
	server  *http.Server
	// open are the requests that are worked on; once closed is set there are no more.
	open   sync.WaitGroup
	closed bool
}

// life is the key under which a connection knows the session that it was opened to.
type life struct{}

// reply is an answer: a status, and JSON or a text.
type reply struct {
	status int
	body   any
}

func newWeb(h *Head, listener net.Listener) *web {
	w := &web{head: h, address: listener.Addr().String()}
	// All of these are called with the head's lock held, and jobs brought to the present.
	routes := http.NewServeMux()
	for pattern, answer := range map[string]func(*http.Request) reply{
		"GET /api/v0/cluster_metadata": w.metadata,
		"GET /api/version":             w.version,
		"POST /api/jobs/{$}":           w.submit,
		"GET /api/jobs/{$}":            w.list,
		"GET /api/jobs/{id}":           w.about(w.tell),
		"POST /api/jobs/{id}/stop":     w.about(w.commanded(w.stop)),
		"DELETE /api/jobs/{id}":        w.about(w.commanded(w.forget)),
		"GET /api/jobs/{id}/logs":      w.about(w.logs),
		"GET /api/v0/logs":             w.files,
		"GET /api/v0/nodes":            w.listNodes,
		"GET /api/packages/gcs/{name}": w.hasPackage,
		"PUT /api/packages/gcs/{name}": w.upload,
		"GET /api/v0/logs/file":        w.file,

		"GET /api/serve/applications/{$}":    w.applications,
		"PUT /api/serve/applications/{$}":    w.deploy,
		"DELETE /api/serve/applications/{$}": w.shutDown,

		"/": func(*http.Request) reply { return reply{http.StatusNotFound, "404: Not Found"} },
	} {
		routes.HandleFunc(pattern, w.meet(answer))
	}
	w.server = &http.Server{
		Handler: routes, ReadHeaderTimeout: time.Minute,
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			h.mu.Lock()
			defer h.mu.Unlock()
			return context.WithValue(ctx, life{}, h.session)
		},
	}
	return w
}

// meet stands before every answer, as the interceptor of GCS does. A request that was read
// is worked on, also when its client has gone; but not by a later session.
func (w *web) meet(answer func(*http.Request) reply) http.HandlerFunc {
	return func(out http.ResponseWriter, request *http.Request) {
		if !w.enter() {
			panic(http.ErrAbortHandler) // which breaks the connection
		}
		defer w.open.Done()
		body, err := io.ReadAll(request.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // half a request is none
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
		said, mood, delay := w.answer(request, answer)
		if w.head.wait(request.Context(), delay) != nil || mood == Away || mood == Mute {
			panic(http.ErrAbortHandler)
		}
		if mood == Garbled {
			said = reply{http.StatusOK, `{"status": "SUCC`}
		}
		said.write(out)
	}
}

// enter lets a request in, unless the head is being closed.
func (w *web) enter() bool {
	w.head.mu.Lock()
	defer w.head.mu.Unlock()
	if !w.closed {
		w.open.Add(1)
	}
	return !w.closed
}

// answer works on a request, and tells how to give what came of it.
func (w *web) answer(request *http.Request, answer func(*http.Request) reply) (reply, Mood, time.Duration) {
	h := w.head
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls[request.Pattern]++
	for h.mood == Hung {
		turned := h.turned
		h.mu.Unlock()
		<-turned
		h.mu.Lock()
	}
	if h.died != "" || request.Context().Value(life{}) != h.session {
		return reply{}, Away, 0
	}
	said, welcome := welcome(request, h.token)
	switch {
	case h.mood == Away || !welcome:
	case h.mood == Passive:
		said = traceback(http.StatusInternalServerError, "ray.exceptions.RpcError: GcsPassive")
	default:
		h.jobs.settle()
		h.serving.settle()
		said = answer(request)
	}
	return said, h.mood, h.gate.delay
}

// welcome is Ray's middleware for tokens.
func welcome(request *http.Request, token string) (said reply, welcome bool) {
	given := request.Header.Get("Authorization")
	switch {
	case token == "" || given == "Bearer "+token:
		return reply{}, true
	case given == "":
		return reply{http.StatusUnauthorized, "Unauthorized: Missing authentication token"}, false
	default:
		return reply{http.StatusForbidden, "Forbidden: Invalid authentication token"}, false
	}
}

func (r reply) write(out http.ResponseWriter) {
	body, isText := r.body.(string)
	if isText {
		out.Header().Set("Content-Type", "text/plain; charset=utf-8")
	} else {
		out.Header().Set("Content-Type", "application/json; charset=utf-8")
		encoded, err := json.Marshal(r.body)
		if err != nil {
			panic(err) // it is made of texts and numbers
		}
		body = string(encoded)
	}
	out.WriteHeader(r.status)
	_, _ = io.WriteString(out, body) // a client that has gone is none of our business
}

func (w *web) version(*http.Request) reply {
	return reply{http.StatusOK, map[string]string{
		"version": "4", "ray_version": Version, "ray_commit": "0", "session_name": w.head.session.name,
	}}
}

// metadata is what Ray tells of its cluster.
func (w *web) metadata(*http.Request) reply {
	return reply{http.StatusOK, map[string]any{"result": true, "msg": "", "data": map[string]string{
		"rayVersion": Version, "pythonVersion": Python,
	}}}
}

// about is an answer about a job that is known.
func (w *web) about(answer func(*job) reply) func(*http.Request) reply {
	return func(request *http.Request) reply {
		found, known := w.head.known[request.PathValue("id")]
		if !known {
			return reply{http.StatusNotFound, "Job " + request.PathValue("id") + " does not exist"}
		}
		return answer(found)
	}
}

// commanded is an answer for which the dashboard needs the agent of the head.
func (w *web) commanded(answer func(*job) reply) func(*job) reply {
	return func(found *job) reply {
		if w.head.agentless() {
			return traceback(http.StatusInternalServerError, "TimeoutError: Failed to get head node agent within 10 seconds. The last exception is None")
		}
		return answer(found)
	}
}

// agentless reports whether the session is too young to have an agent. The caller holds the lock.
func (j *jobs) agentless() bool {
	return j.clock.Since(j.session.since) < j.agentAfter
}

// traceback is how Ray says what its agent said.
func traceback(status int, words string) reply {
	return reply{status, "Traceback (most recent call last):\n  File \"job_head.py\", line 134, in _raise_error\n" + words + "\n"}
}

// submit takes a job, and forgets nothing that it has taken.
func (w *web) submit(request *http.Request) reply {
	body, _ := io.ReadAll(request.Body) // it was read before
	if !json.Valid(body) {
		return reply{http.StatusInternalServerError, "500 Internal Server Error\n\nServer got itself in trouble"}
	}
	var asked submitted
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil {
		return traceback(http.StatusBadRequest, "TypeError: "+err.Error())
	}
	if asked.Entrypoint == "" {
		return traceback(http.StatusBadRequest, "TypeError: JobSubmitRequest.__init__() missing 1 required positional argument: 'entrypoint'")
	}
	h := w.head
	if h.agentless() {
		return reply{http.StatusInternalServerError, "No available agent to submit job, please try again later."}
	}
	for _, value := range asked.LabelSelector {
		if strings.ContainsAny(value, "()") {
			return traceback(http.StatusInternalServerError, "RuntimeError: Request failed with status code 400: Traceback (most recent call last):\n"+
				"ValueError: Invalid label selector value `"+value+"`.")
		}
	}
	if asked.ID == "" {
		h.made++
		asked.ID = fmt.Sprintf("raysubmit_%d", h.made)
	}
	if _, used := h.known[asked.ID]; used {
		return traceback(http.StatusInternalServerError, fmt.Sprintf("RuntimeError: Request failed with status code 400: Traceback (most recent call last):\n"+
			"ValueError: Job with submission_id %s already exists. Please use a different submission_id.\n.", asked.ID))
	}
	taken := &job{submitted: asked, at: h.clock.Now(), status: headclient.JobPending, uris: urisOf(asked.RuntimeEnv)}
	h.known[asked.ID], h.live = taken, append(h.live, taken)
	return reply{http.StatusOK, map[string]string{"job_id": asked.ID, "submission_id": asked.ID}}
}

// details are what Ray tells of a job, in its order.
type details struct {
	Type       string               `json:"type"`
	JobID      *string              `json:"job_id"`
	ID         *string              `json:"submission_id"`
	Driver     *string              `json:"driver_info"`
	Status     headclient.JobStatus `json:"status"`
	Entrypoint string               `json:"entrypoint"`
	Message    string               `json:"message"`
	ErrorType  *string              `json:"error_type"`
	Start      int64                `json:"start_time"`
	End        *int64               `json:"end_time"`
	Metadata   map[string]string    `json:"metadata"`
	RuntimeEnv json.RawMessage      `json:"runtime_env"`
	Agent      *string              `json:"driver_agent_http_address"`
	Node       *string              `json:"driver_node_id"`
	ExitCode   *int32               `json:"driver_exit_code"`
}

func (j *job) details() details {
	said := details{
		Type: "SUBMISSION", ID: &j.ID, Status: j.status, Entrypoint: j.Entrypoint, Message: j.message,
		Start: j.at.UnixMilli(), Metadata: j.Metadata, RuntimeEnv: j.RuntimeEnv, ExitCode: j.code,
	}
	if j.status == headclient.JobPending {
		said.Message = "Job has not started yet. It may be waiting for the runtime environment to be set up."
		if j.waits() {
			said.Message = "Job has not started yet. It may be waiting for resources (CPUs, GPUs, memory, custom resources) to become available."
		}
	}
	if j.failure != "" {
		said.ErrorType = &j.failure
	}
	if !j.ended.IsZero() {
		end := j.ended.UnixMilli()
		said.End = &end
	}
	if j.node != nil {
		agent, node := "http://127.0.0.1:52365", j.node.String()
		said.Agent, said.Node = &agent, &node
	}
	return said
}

// tell is what Ray tells of a job that it was asked for.
func (w *web) tell(j *job) reply { return reply{http.StatusOK, j.details()} }

// list is what Ray tells of all jobs: those that were submitted, and then drivers that came by
// themselves.
func (w *web) list(*http.Request) reply {
	listed := []details{}
	for _, one := range w.head.known {
		listed = append(listed, one.details())
	}
	for i, driver := range w.head.drivers {
		id, status := fmt.Sprintf("%08x", i+1), headclient.JobRunning
		if driver.GetIsDead() {
			status = headclient.JobSucceeded
		}
		listed = append(listed, details{Type: "DRIVER", JobID: &id, Status: status, End: new(int64)})
	}
	return reply{http.StatusOK, listed}
}

// stop tells the process of a job to end. For one that waits it answers the same, and
// nothing comes of it before it runs.
func (w *web) stop(j *job) reply {
	if !j.status.Over() && j.stopped.IsZero() {
		j.stopped = w.head.clock.Now()
	}
	return reply{http.StatusOK, map[string]bool{"stopped": !j.status.Over()}}
}

// forget drops a job that is over.
func (w *web) forget(j *job) reply {
	if !j.status.Over() {
		return traceback(http.StatusInternalServerError, fmt.Sprintf("RuntimeError: Request failed with status code 500: Traceback (most recent call last):\n"+
			"RuntimeError: Attempted to delete job '%s', but it is in a non-terminal state %s.\n.", j.ID, j.status))
	}
	delete(w.head.known, j.ID)
	return reply{http.StatusOK, map[string]bool{"deleted": true}}
}
