package loadgen

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// second is so many after noon.
func second(n float64) time.Time { return noon.Add(time.Duration(n * float64(time.Second))) }

func well(took time.Duration, at time.Time) reply {
	return reply{from: answer{Version: "1", Node: "pod", PID: 7}, opened: true, parts: []part{{took: took, at: at}}}
}

func TestARequestCountsToThePhaseInWhichItWasDue(t *testing.T) {
	ledger := NewLedger(noon)
	ledger.Phase("upgrade", second(10))
	ledger.Phase("after", second(20))
	for _, due := range []float64{0, 9.9, 10, 19.9, 20} {
		ledger.sent(Fresh, second(due), second(due+0.001))
		ledger.ended(Fresh, well(second(due).Sub(noon), second(2*due)), request{due: second(due), end: second(2 * due)}) // it took as long again
	}
	ledger.sent(Fresh, second(25), second(25))
	report := ledger.Report(second(60))
	type seen struct {
		Name           string
		Sent, Answered int
		Longest        float64
		Begin, End     time.Time
	}
	var got []seen
	for _, phase := range report.Phases {
		count := phase.Sorts[Fresh]
		got = append(got, seen{phase.Name, count.Sent, count.Answered, count.Latency.Max, phase.Begin, phase.End})
	}
	want := []seen{
		{"", 2, 2, 9900, noon, second(10)}, {"upgrade", 2, 2, 19_900, second(10), second(20)}, {"after", 2, 1, 20_000, second(20), second(60)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if report.LateMs != 1 {
		t.Errorf("sent %g ms late, want 1", report.LateMs)
	}
	if sent, answered, failed := report.Total(); sent != 6 || answered != 5 || failed != 0 {
		t.Errorf("in total %d sent, %d answered, %d failed", sent, answered, failed)
	}
}

// A session that began in a calm time and suffers in the next one must not make the calm one
// look bad.
func TestAPartCountsToThePhaseInWhichItShouldHaveCome(t *testing.T) {
	ledger := NewLedger(noon)
	ledger.Phase("upgrade", second(10))
	said := well(time.Millisecond, second(9))
	said.parts = append(said.parts, part{took: 3 * time.Second, at: second(14)})
	ledger.sent(WebSocket, second(8), second(8))
	ledger.ended(WebSocket, said, request{due: second(8), end: second(15)})
	report := ledger.Report(second(20))
	calm, upgrade := report.Phases[0].Sorts[WebSocket], report.Phases[1].Sorts[WebSocket]
	if calm.Sent != 1 || calm.Answered != 1 || calm.Latency.Max != 1 || upgrade.Sent != 0 || upgrade.Latency.Max != 3000 || !upgrade.Latency.MaxAt.Equal(second(14)) {
		t.Errorf("calm %+v, upgrade %+v", calm, upgrade)
	}
}

func TestLatenciesAreCountedInTheirRange(t *testing.T) {
	ledger := NewLedger(noon)
	for _, ms := range []int{0, 1, 3, 7, 60, 600, 20_000} {
		ledger.sent(Fresh, noon, noon)
		ledger.ended(Fresh, well(time.Duration(ms)*time.Millisecond, noon.Add(time.Duration(ms)*time.Millisecond)), request{due: noon, end: noon})
	}
	got := ledger.Report(second(1)).Phases[0].Sorts[Fresh].Latency
	if diff := cmp.Diff([]int64{2, 0, 1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1}, got.Histogram); diff != "" {
		t.Errorf("histogram: %s", diff)
	}
	if got.P50 < 6.9 || got.P50 > 7.1 || got.P99 != 20_000 || got.Max != 20_000 {
		t.Errorf("%+v", got)
	}
}

func TestNoRequestIsLostInTheCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ledger := NewLedger(noon)
		sent, answered, failed := 0, 0, 0
		begins := rapid.SliceOfN(rapid.IntRange(0, 100), 0, 5).Draw(t, "phases")
		at := 0
		for _, more := range begins {
			at += more
			ledger.Phase(fmt.Sprint("phase ", at), second(float64(at)))
		}
		for _, due := range rapid.SliceOf(rapid.Float64Range(0, 600)).Draw(t, "requests") {
			sent++
			ledger.sent(Fresh, second(due), second(due))
			switch rapid.IntRange(0, 2).Draw(t, "what becomes of it") {
			case 0:
				answered++
				ledger.ended(Fresh, well(time.Second, second(due+1)), request{due: second(due), end: second(due + 1)})
			case 1:
				failed++
				ledger.ended(Fresh, reply{err: io.EOF}, request{due: second(due), end: second(due + 1)})
			}
		}
		report := ledger.Report(second(1000))
		s, a, f := report.Total()
		if s != sent || a != answered || f != failed {
			t.Fatalf("%d sent, %d answered, %d failed; counted %d, %d, %d", sent, answered, failed, s, a, f)
		}
		for _, phase := range report.Phases {
			if count := phase.Sorts[Fresh]; count.Failed != count.Causes[Closed] || len(count.Failures) != min(count.Failed, failuresKept) {
				t.Fatalf("%+v", count)
			}
		}
	})
}

func TestFailuresHaveTheirCause(t *testing.T) {
	for _, c := range []struct {
		err   error
		kept  bool
		cause Cause
	}{
		{statusError{status: 500}, false, "status 500"},
		{garbled("nonsense"), false, Garbled},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, false, Refused},
		{fmt.Errorf("read: %w", syscall.ECONNRESET), true, Reset},
		{syscall.EPIPE, true, Reset},
		{syscall.EHOSTUNREACH, false, Unreachable},
		{io.ErrUnexpectedEOF, false, Closed},
		{errors.New("server closed idle connection"), true, Closed},
		{errors.New("something else"), false, Other},
	} {
		if cause := causeOf(c.err, c.kept); cause != c.cause {
			t.Errorf("%v is %q, want %q", c.err, cause, c.cause)
		}
	}
}

func TestLinesAreObeyed(t *testing.T) {
	ledger := NewLedger(noon)
	var out bytes.Buffer
	if err := ledger.Obey(strings.NewReader("phase calm 1\nreport\nend\nphase never\n"), &out, func() time.Time { return second(5) }); err != nil {
		t.Fatal(err)
	}
	answers := json.NewDecoder(&out)
	var began Began
	var report Report
	if err := errors.Join(answers.Decode(&began), answers.Decode(&report)); err != nil {
		t.Fatal(err)
	}
	if answers.More() || began.Phase != "calm 1" || !began.Begin.Equal(second(5)) {
		t.Errorf("began %+v, and there is more: %v", began, answers.More())
	}
	if _, err := report.Phase("calm 1"); err != nil || len(report.Phases) != 2 {
		t.Errorf("%v: %+v", err, report)
	}
	if _, err := report.Phase("never"); err == nil {
		t.Error("there is no phase after the end")
	}
	for _, line := range []string{"phase", "report all", "go"} {
		if err := ledger.Obey(strings.NewReader(line), io.Discard, time.Now); err == nil {
			t.Errorf("%q was not refused", line)
		}
	}
}
