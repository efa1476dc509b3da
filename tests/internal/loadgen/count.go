package loadgen

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Report is what became of all requests.
type Report struct {
	Begin time.Time `json:"begin"`
	End   time.Time `json:"end"`
	// LateMs is by how many milliseconds at most a request was sent later than it was due,
	// because this program or its machine was busy. It is part of the request's latency.
	LateMs float64 `json:"lateMs"`
	Phases []Phase `json:"phases"`
}

// Phase is what became of the requests that were due while it lasted. A part of an answer
// counts to the phase in which it should have come. The first phase has no name.
type Phase struct {
	Name  string         `json:"name"`
	Begin time.Time      `json:"begin"`
	End   time.Time      `json:"end"`
	Sorts map[Sort]Count `json:"sorts"`
}

// Count is what became of requests of one sort. A request that is neither answered nor failed
// is under way.
type Count struct {
	Sent     int `json:"sent"`
	Answered int `json:"answered"`
	Failed   int `json:"failed"`
	// Parts are the answers of which an answer consists: chunks of streams, messages of
	// sessions.
	Parts int `json:"parts"`
	// Opened is how many requests were not sent over a connection that was used before.
	Opened int `json:"opened"`
	// Causes of failures, by how many there are of each.
	Causes map[Cause]int `json:"causes,omitempty"`
	// Versions, and Replicas ("pod/process"), that answered, each with how often.
	Versions map[string]int `json:"versions,omitempty"`
	Replicas map[string]int `json:"replicas,omitempty"`
	Latency  Latency        `json:"latency"`
	// Failures are the first ones.
	Failures []Failure `json:"failures,omitempty"`
}

// Latency of parts in milliseconds: of fresh and kept requests from when they were due to the
// end of the answer; of long ones the same less what they asked for; of streams what each
// chunk took beyond its pace; of sessions from a message, the handshake being the first, to
// what came back.
type Latency struct {
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
	// MaxAt is when the longest ended.
	MaxAt time.Time `json:"maxAt"`
	// Histogram has as many numbers as Bounds and one more.
	Histogram []int64 `json:"histogram,omitempty"`
}

// Failure is one request that failed.
type Failure struct {
	At     time.Time `json:"at"`
	Number int       `json:"number"`
	Cause  Cause     `json:"cause"`
	Said   string    `json:"said"`
	// AfterMs is how long after it was due it failed, in milliseconds.
	AfterMs float64 `json:"afterMs"`
	// Kept tells that its connection was used before.
	Kept bool `json:"kept"`
	// From is the replica that had begun to answer.
	From string `json:"from,omitempty"`
}

// Bounds are the upper ends in milliseconds of what a Latency's histogram counts; the last
// number of it is of all that is above.
func Bounds() []float64 {
	return []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000}
}

const (
	// longest is the longest latency that a histogram tells from a longer one.
	longest = 10 * time.Minute
	// failuresKept of each sort in each phase.
	failuresKept = 20
)

// Ledger counts what becomes of requests. It may be used by several at a time.
type Ledger struct {
	mutex  sync.Mutex
	begin  time.Time
	late   time.Duration
	phases []*phase
}

type phase struct {
	name  string
	begin time.Time
	sorts map[Sort]*tally
}

type tally struct {
	Count
	latencies *hdrhistogram.Histogram
}

// NewLedger is an empty one that begins at a time, in a phase without a name.
func NewLedger(begin time.Time) *Ledger {
	l := &Ledger{begin: begin}
	l.Phase("", begin)
	return l
}

// Phase begins a phase of a name. What is due from now on counts to it.
func (l *Ledger) Phase(name string, now time.Time) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.phases = append(l.phases, &phase{name: name, begin: now, sorts: map[Sort]*tally{}})
}

// count sends one request and counts what becomes of it.
func (l *Ledger) count(sort Sort, due time.Time, number int, asker asker) {
	l.sent(sort, due, time.Now())
	said := asker.ask(context.Background(), number, due)
	l.ended(sort, said, request{number: number, due: due, end: time.Now()})
}

// sent notes a request in the phase that it was due in.
func (l *Ledger) sent(sort Sort, due, now time.Time) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.late = max(l.late, now.Sub(due))
	l.at(sort, due).Sent++
}

// at is the tally of the phase that a time is in.
func (l *Ledger) at(sort Sort, when time.Time) *tally {
	last := len(l.phases) - 1
	for last > 0 && l.phases[last].begin.After(when) {
		last--
	}
	sorts := l.phases[last].sorts
	if sorts[sort] == nil {
		sorts[sort] = &tally{
			Count:     Count{Causes: map[Cause]int{}, Versions: map[string]int{}, Replicas: map[string]int{}},
			latencies: hdrhistogram.New(1, longest.Microseconds(), 2),
		}
	}
	return sorts[sort]
}

// request is one that has ended.
type request struct {
	number   int
	due, end time.Time
}

func (l *Ledger) ended(sort Sort, said reply, request request) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, part := range said.parts {
		l.at(sort, part.at.Add(-part.took)).took(part)
	}
	tally := l.at(sort, request.due)
	if said.opened {
		tally.Opened++
	}
	if said.err == nil {
		tally.Answered++
		tally.Versions[said.from.Version]++
		tally.Replicas[said.from.replica()]++
		return
	}
	tally.Failed++
	cause := causeOf(said.err, !said.opened)
	tally.Causes[cause]++
	if len(tally.Failures) < failuresKept {
		tally.Failures = append(tally.Failures, Failure{
			At: request.end, Number: request.number, Cause: cause, Said: said.err.Error(), AfterMs: millis(request.end.Sub(request.due)),
			Kept: !said.opened, From: said.from.replica(),
		})
	}
}

// took counts a part of an answer.
func (t *tally) took(part part) {
	t.Parts++
	took := min(max(part.took, 0), longest)
	_ = t.latencies.RecordValue(took.Microseconds()) // within its bounds, so it cannot fail
	if ms := millis(took); ms > t.Latency.Max || t.Latency.MaxAt.IsZero() {
		t.Latency.Max, t.Latency.MaxAt = ms, part.at
	}
}

// Report is all that was counted so far.
func (l *Ledger) Report(now time.Time) Report {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	report := Report{Begin: l.begin, End: now, LateMs: millis(l.late)}
	for i, phase := range l.phases {
		ended := Phase{Name: phase.name, Begin: phase.begin, End: now, Sorts: map[Sort]Count{}}
		if i+1 < len(l.phases) {
			ended.End = l.phases[i+1].begin
		}
		for sort, tally := range phase.sorts {
			ended.Sorts[sort] = tally.count()
		}
		report.Phases = append(report.Phases, ended)
	}
	return report
}

// count is a copy of what was counted.
func (t *tally) count() Count {
	count := t.Count
	count.Causes, count.Versions, count.Replicas = maps.Clone(t.Causes), maps.Clone(t.Versions), maps.Clone(t.Replicas)
	count.Failures = slices.Clone(t.Failures)
	quantile := func(percent float64) float64 {
		return min(millis(time.Duration(t.latencies.ValueAtQuantile(percent))*time.Microsecond), count.Latency.Max)
	}
	count.Latency.P50, count.Latency.P99, count.Latency.P999 = quantile(50), quantile(99), quantile(99.9)
	count.Latency.Histogram = make([]int64, len(Bounds())+1)
	for _, bar := range t.latencies.Distribution() {
		at, _ := slices.BinarySearch(Bounds(), float64(bar.From)/1000)
		count.Latency.Histogram[at] += bar.Count
	}
	return count
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Total is the sum over all phases and sorts: how many were sent, answered and failed.
func (r *Report) Total() (sent, answered, failed int) {
	for _, phase := range r.Phases {
		for _, count := range phase.Sorts {
			sent, answered, failed = sent+count.Sent, answered+count.Answered, failed+count.Failed
		}
	}
	return sent, answered, failed
}

// Phase is the last one of a name; it fails where there is none.
func (r *Report) Phase(name string) (Phase, error) {
	for _, phase := range slices.Backward(r.Phases) {
		if phase.Name == name {
			return phase, nil
		}
	}
	return Phase{}, fmt.Errorf("find phase %q in the report: there are %d others", name, len(r.Phases))
}
