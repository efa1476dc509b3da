package live

import (
	"slices"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/internal/attackers"
)

func TestCallers_AreJudged(t *testing.T) {
	siege := func(p99 float64) Siege {
		s := Siege{Report: attackers.Report{Requests: 6000, Seconds: 60, Answers: map[string]map[string]int{attackers.Refused: {"401": 4000, "gRPC 16": 2000}}}, Waits: map[string]Waits{}}
		for _, sort := range attackers.Sorts() {
			s.Answers[sort] = map[string]int{"401": 1}
		}
		for _, listener := range attackers.Listeners() {
			s.Waits[listener] = Waits{Requests: 1200, P50: 2, P99: p99}
		}
		return s
	}
	good := func() Callers {
		return Callers{Anonymous: 50, Accounts: 20, Seconds: 60, Calm: siege(10), Beside: siege(20), Memory: 300, MemoryLimit: 768}
	}
	for name, c := range map[string]struct {
		spoil func(*Callers)
		want  []string
	}{
		"all kept":     {func(*Callers) {}, nil},
		"late":         {func(c *Callers) { c.Beside.Waits["gRPC"] = Waits{Requests: 1, P99: 21} }, []string{WaitedAt + "gRPC"}},
		"refused":      {func(c *Callers) { c.Beside.Waits["REST"] = Waits{Requests: 2, Failed: 1} }, []string{"honest callers were not answered at REST"}},
		"not tried":    {func(c *Callers) { delete(c.Calm.Waits, "dashboards"); c.Beside.Waits["dashboards"] = Waits{} }, []string{"no honest caller was at dashboards"}},
		"not sent":     {func(c *Callers) { delete(c.Beside.Answers, "gRPC: nested lists without a token") }, []string{"nobody sent gRPC: nested lists without a token"}},
		"not refused":  {func(c *Callers) { c.Calm.Answers[attackers.Refused] = map[string]int{"401": 3000, "200": 3000} }, []string{"calm attackers were answered map[200:3000 401:3000]"}},
		"busier calm":  {func(c *Callers) { c.Calm.Requests = 7000 }, []string{"calm attackers sent more than hostile ones"}},
		"ended":        {func(c *Callers) { c.HasEnded = true }, []string{"the server ended"}},
		"killed":       {func(c *Callers) { c.Kills = 1 }, []string{"the server ended"}},
		"large":        {func(c *Callers) { c.Memory = 615 }, []string{"the server took much memory"}},
		"not measured": {func(c *Callers) { c.Memory = 0 }, []string{"the server took much memory"}},
	} {
		judged := good()
		if c.spoil(&judged); !slices.Equal(judged.Broken(), c.want) {
			t.Errorf("%s: %q, want %q", name, judged.Broken(), c.want)
		}
	}
	const want = "honest callers beside 50 hostile connections a listener and 20 accounts for 60 s, 100 requests a second, calm 100: REST p50 2 ms and p99 20 ms, calm 2 and 10 ms, 1200 and 1200 requests, 0 failed; "
	if got := good().String(); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "; memory 300 MiB of 768; 0 kills") {
		t.Errorf("%q, want %q", got, want)
	}
}
