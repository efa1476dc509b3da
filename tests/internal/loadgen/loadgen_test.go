package loadgen

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// echo is the service that is asked, with what is wrong with it.
type echo struct {
	// spoil may answer in place of the service.
	spoil func(w http.ResponseWriter, r *http.Request) bool
	// session is told of each message of a session, and may answer in place of the service.
	session func(socket *websocket.Conn, message string) bool
	asked   atomic.Int64
}

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.asked.Add(1)
	body, _ := io.ReadAll(r.Body) // the client tells; a body that waits hides that the client is gone
	if e.spoil != nil && e.spoil(w, r) {
		return
	}
	seconds := func(name string) time.Duration {
		value, _ := strconv.ParseFloat(r.FormValue(name), 64)
		return time.Duration(value * float64(time.Second))
	}
	switch r.URL.Path {
	case "/slow":
		<-time.After(seconds("s"))
		tell(w, answer{Said: r.FormValue("said")})
	case "/stream":
		n, _ := strconv.Atoi(r.FormValue("n"))
		for i := range n {
			tell(w, answer{Chunk: i, Of: n})
			<-time.After(seconds("pace"))
		}
	case "/ws":
		e.talk(w, r)
	default:
		said := r.FormValue("said")
		if r.Method == http.MethodPost {
			said = string(body)
		}
		tell(w, answer{Said: said})
	}
}

func (e *echo) talk(w http.ResponseWriter, r *http.Request) {
	socket, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = socket.CloseNow() }()
	for {
		_, text, err := socket.Read(r.Context())
		if err != nil {
			return
		}
		if e.session != nil && e.session(socket, string(text)) {
			continue
		}
		_ = socket.Write(r.Context(), websocket.MessageText, line(answer{Said: string(text)})) // the client tells
	}
}

func line(a answer) []byte {
	a.Version, a.Node, a.PID = "1", "pod", 7
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // it always marshals
	}
	return append(text, '\n')
}

func tell(w http.ResponseWriter, a answer) {
	_, _ = w.Write(line(a)) // the client tells
	w.(http.Flusher).Flush()
}

// cutOff ends the connection without another word.
func cutOff(w http.ResponseWriter) {
	connection, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = connection.Close()
	}
}

// moment is the timeout of those who are never answered.
const moment = 300 * time.Millisecond

// short is a plan in which everything lasts a moment, answers apart: the machine may be busy.
func short(url string, sort Sort) *Plan {
	return &Plan{
		URL: url, Rates: map[Sort]float64{sort: 50}, Connections: 2,
		Timeout: 10 * time.Second, Longest: 30 * time.Millisecond, Session: 40 * time.Millisecond, Pace: 10 * time.Millisecond,
	}
}

// run sends for a while, and gives what became of it.
func run(t *testing.T, plan *Plan) (Count, Report) {
	t.Helper()
	if err := plan.Check(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer stop()
	ledger := NewLedger(time.Now())
	if err := plan.Run(ctx, ledger); err != nil {
		t.Fatal(err)
	}
	report := ledger.Report(time.Now())
	for sort := range plan.Rates {
		count := report.Phases[0].Sorts[sort]
		if count.Sent == 0 || count.Sent != count.Answered+count.Failed {
			t.Errorf("%s: %d sent, %d answered, %d failed: each must be one or the other", sort, count.Sent, count.Answered, count.Failed)
		}
		return count, report
	}
	t.Fatal("the plan sends nothing")
	return Count{}, report
}

func all() []Sort { return []Sort{Fresh, Kept, Long, Stream, WebSocket} }

func TestRequestsOfEachSortAreAnsweredByAServiceThatIsWell(t *testing.T) {
	for _, sort := range all() {
		t.Run(string(sort), func(t *testing.T) {
			t.Parallel()
			service := &echo{}
			server := httptest.NewServer(service)
			defer server.Close()
			count, _ := run(t, short(server.URL, sort))
			if count.Failed > 0 {
				t.Errorf("failed: %+v", count.Failures)
			}
			if int64(count.Sent) != service.asked.Load() {
				t.Errorf("the service was asked %d times, %d requests are counted", service.asked.Load(), count.Sent)
			}
			if count.Versions["1"] != count.Sent || count.Replicas["pod/7"] != count.Sent {
				t.Errorf("answers of versions %v, replicas %v; sent %d", count.Versions, count.Replicas, count.Sent)
			}
			parts := map[Sort]int{Fresh: 1, Kept: 1, Long: 1, Stream: 4, WebSocket: 5}[sort]
			if count.Parts != parts*count.Sent || sum(count.Latency.Histogram) != int64(count.Parts) {
				t.Errorf("%d parts, %v in the histogram; want %d for each of %d", count.Parts, count.Latency.Histogram, parts, count.Sent)
			}
			if (sort == Kept) != (count.Opened < count.Sent) { // a busy machine opens one more than it needs
				t.Errorf("%d connections for %d requests", count.Opened, count.Sent)
			}
		})
	}
}

func sum(numbers []int64) (sum int64) {
	for _, number := range numbers {
		sum += number
	}
	return sum
}

// failing are services that break, with the cause that each sort of request must give.
var failing = []struct {
	name  string
	spoil func(w http.ResponseWriter, r *http.Request) bool
	cause Cause
}{
	{"one that is down for a while", func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "no replica", http.StatusServiceUnavailable)
		return true
	}, "status 503"},
	{"one that sends elsewhere", func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, "/other", http.StatusFound)
		return true
	}, "status 302"},
	{"one that cuts the connection", func(w http.ResponseWriter, _ *http.Request) bool {
		cutOff(w)
		return true
	}, Closed},
	{"one that never answers", func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	}, NoAnswer},
}

func TestEachRequestThatIsNotAnsweredHasFailedOnceWithItsCause(t *testing.T) {
	for _, c := range failing {
		for _, sort := range all() {
			t.Run(c.name+"/"+string(sort), func(t *testing.T) {
				t.Parallel()
				service := &echo{spoil: c.spoil}
				server := httptest.NewServer(service)
				defer server.Close()
				plan := short(server.URL, sort)
				if c.cause == NoAnswer {
					plan.Timeout = moment
				}
				count, _ := run(t, plan)
				if count.Failed != count.Sent || count.Causes[c.cause] != count.Sent {
					t.Errorf("%d of %d failed, by cause: %v, %+v", count.Failed, count.Sent, count.Causes, count.Failures)
				}
				// One that times out on a busy machine may not have got there; none is sent twice.
				if asked := service.asked.Load(); asked > int64(count.Sent) || asked < int64(count.Sent) && c.cause != NoAnswer {
					t.Errorf("the service was asked %d times for %d requests", asked, count.Sent)
				}
			})
		}
	}
}

func TestAPortWhereNobodyListensRefuses(t *testing.T) {
	for _, sort := range all() {
		server := httptest.NewServer(http.NotFoundHandler())
		server.Close()
		if count, _ := run(t, short(server.URL, sort)); count.Causes[Refused] != count.Sent {
			t.Errorf("%s: %v", sort, count.Causes)
		}
	}
}

func TestAKeptConnectionThatIsClosedUnderARequestIsAFailureAndNotAskedAgain(t *testing.T) {
	var asked atomic.Int64
	var used sync.Map // of connections, by the client's address
	service := &echo{spoil: func(w http.ResponseWriter, r *http.Request) bool {
		asked.Add(1)
		if _, kept := used.LoadOrStore(r.RemoteAddr, true); !kept {
			return false
		}
		used.Delete(r.RemoteAddr)
		cutOff(w)
		return true
	}}
	server := httptest.NewServer(service)
	defer server.Close()
	plan := short(server.URL, Kept)
	plan.Connections = 1
	count, _ := run(t, plan)
	if count.Failed == 0 || count.Failed != count.Causes[Closed] || int64(count.Sent) != asked.Load() {
		t.Errorf("%d of %d failed, the service was asked %d times: %v", count.Failed, count.Sent, asked.Load(), count.Causes)
	}
	for _, failure := range count.Failures {
		if !failure.Kept {
			t.Errorf("%+v: its connection was used before", failure)
		}
	}
}

// garblers answer well, and not what was asked for.
var garblers = map[string]struct {
	sort  Sort
	spoil func(w http.ResponseWriter, r *http.Request) bool
}{
	"another's answer": {Fresh, func(w http.ResponseWriter, _ *http.Request) bool { tell(w, answer{Said: "another"}); return true }},
	"no JSON":          {Kept, func(w http.ResponseWriter, _ *http.Request) bool { _, _ = w.Write([]byte("hello")); return true }},
	"a stream at once": {Stream, func(w http.ResponseWriter, _ *http.Request) bool { _, _ = w.Write(line(answer{Of: 4})); return true }},
	"a chunk left out": {Stream, func(w http.ResponseWriter, _ *http.Request) bool {
		tell(w, answer{Chunk: 0, Of: 4})
		tell(w, answer{Chunk: 2, Of: 4})
		return true
	}},
	"a stream that ends early and well": {Stream, func(w http.ResponseWriter, _ *http.Request) bool { tell(w, answer{Of: 4}); return true }},
	"another process goes on": {Stream, func(w http.ResponseWriter, _ *http.Request) bool {
		tell(w, answer{Chunk: 0, Of: 4})
		_, _ = fmt.Fprintln(w, `{"version": "1", "node": "pod", "pid": 8, "chunk": 1, "of": 4}`)
		w.(http.Flusher).Flush()
		return true
	}},
}

func TestAnAnswerThatIsNotWhatWasAskedForIsAFailure(t *testing.T) {
	for name, c := range garblers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(&echo{spoil: c.spoil})
			defer server.Close()
			if count, _ := run(t, short(server.URL, c.sort)); count.Causes[Garbled] != count.Sent {
				t.Errorf("%v, %+v", count.Causes, count.Failures)
			}
		})
	}
}

func TestAStreamThatIsCutOffIsAFailureFromWhoBegan(t *testing.T) {
	server := httptest.NewServer(&echo{spoil: func(w http.ResponseWriter, _ *http.Request) bool {
		tell(w, answer{Of: 4})
		cutOff(w)
		return true
	}})
	defer server.Close()
	count, _ := run(t, short(server.URL, Stream))
	if count.Causes[Closed] != count.Sent || count.Failures[0].From != "pod/7" {
		t.Errorf("%v, %+v", count.Causes, count.Failures)
	}
}

func TestASessionThatDoesNotEndAsItShouldIsAFailure(t *testing.T) {
	for name, c := range map[string]struct {
		session func(socket *websocket.Conn, message string) bool
		cause   Cause
	}{
		"told to go": {func(socket *websocket.Conn, _ string) bool {
			_ = socket.Close(websocket.StatusGoingAway, "")
			return true
		}, Closed},
		"cut off": {func(socket *websocket.Conn, _ string) bool {
			_ = socket.CloseNow()
			return true
		}, Closed},
		"a message swallowed": {func(*websocket.Conn, string) bool { return true }, NoAnswer},
		"another's message": {func(socket *websocket.Conn, _ string) bool {
			_ = socket.Write(context.Background(), websocket.MessageText, line(answer{Said: "another"}))
			return true
		}, Garbled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(&echo{session: c.session})
			defer server.Close()
			plan := short(server.URL, WebSocket)
			if c.cause == NoAnswer {
				plan.Timeout = moment
			}
			if count, _ := run(t, plan); count.Causes[c.cause] != count.Sent {
				t.Errorf("%v, %+v", count.Causes, count.Failures)
			}
		})
	}
}

func TestASlowAnswerDoesNotHoldUpTheNextRequest(t *testing.T) {
	var most, now atomic.Int64
	server := httptest.NewServer(&echo{spoil: func(http.ResponseWriter, *http.Request) bool {
		flying := now.Add(1)
		defer now.Add(-1)
		for seen := most.Load(); flying > seen && !most.CompareAndSwap(seen, flying); seen = most.Load() {
			continue
		}
		<-time.After(150 * time.Millisecond)
		return false
	}})
	defer server.Close()
	count, _ := run(t, short(server.URL, Fresh))
	if count.Failed > 0 || most.Load() < 3 || count.Latency.Max < 150 {
		t.Errorf("%d of %d failed, %d at a time, the longest took %.0f ms", count.Failed, count.Sent, most.Load(), count.Latency.Max)
	}
}

func TestAPlanThatCannotBeCarriedOutIsRefused(t *testing.T) {
	for _, spoil := range []func(*Plan){
		func(p *Plan) { p.URL = "" },
		func(p *Plan) { p.Timeout = 0 },
		func(p *Plan) { p.Longest = 0 },
		func(p *Plan) { p.Pace = 0 },
		func(p *Plan) { p.Session = p.Pace / 2 },
		func(p *Plan) { p.Connections = 0 },
		func(p *Plan) { p.Rates[GRPC] = 1 }, // without an address
		func(p *Plan) { p.Rates[Kept] = -1 },
		func(p *Plan) { p.Rates[Kept] = 1e6 },
	} {
		plan := short("http://127.0.0.1", Kept)
		spoil(plan)
		if plan.Check() == nil {
			t.Errorf("%+v was not refused", plan)
		}
	}
}
