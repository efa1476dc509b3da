package dashboards

import (
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/bench/portals"
)

const printed = `Running 8s test @ https://127.0.0.1:1/
  2 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     3.20ms    1.10ms  20.00ms   80.00%
  Latency Distribution
     50%  250.00us
     99%    9.00ms
  80000 requests in 8.00s, 12.00MB read
Requests/sec:  10000.50
Transfer/sec:      1.50GB
`

func TestParseWrk_ReadsFigures(t *testing.T) {
	got, err := ParseWrk(printed)
	if want := (Load{Requests: 10000.5, MiB: 1536, P50: 0.25}); err != nil || got != want {
		t.Errorf("it is %+v, %v", got, err)
	}
	slow, err := ParseWrk(strings.Replace(printed, " 250.00us", " 2.21s ", 1))
	if err != nil || slow.P50 != 2210 {
		t.Errorf("seconds are read as %+v, %v", slow, err)
	}
	for name, text := range map[string]string{
		"nothing":          "",
		"requests refused": printed + "  Non-2xx or 3xx responses: 3\n",
		"errors":           printed + "  Socket errors: connect 0, read 3, write 0, timeout 0\n",
		"half of it":       strings.Replace(printed, "Transfer/sec", "x", 1),
	} {
		if got, err := ParseWrk(text); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestRated_HoldsEachPromise(t *testing.T) {
	good := Rates{Small: Pair{100, 50}, Download: Pair{100, 90}, Took: Pair{Nginx: 3, Proxy: 4}, Direct: 1}
	for name, c := range map[string]struct {
		change func(*Rates)
		want   bool
	}{
		"all":            {func(*Rates) {}, true},
		"fewer requests": {func(r *Rates) { r.Small.Proxy = 49 }, false},
		"slower":         {func(r *Rates) { r.Download.Proxy = 89 }, false},
		"later":          {func(r *Rates) { r.Took.Proxy = 4.1 }, false},
	} {
		one := good
		c.change(&one)
		if _, _, _, isKept := Rated([]Rates{one}); isKept != c.want {
			t.Errorf("%s is kept: %v", name, isKept)
		}
	}
}

func TestHeld_HoldsEachPromise(t *testing.T) {
	for name, c := range map[string]struct {
		memory, released float64
		want             bool
	}{
		"all": {20, 60, true}, "more memory": {21, 1, false}, "too late": {10, 61, false},
	} {
		rounds := []Sockets{{Held: Pair{10, c.memory}}, {Held: Pair{10, c.memory}, Released: Pair{Proxy: c.released}}}
		if _, _, isKept := Held(rounds); isKept != c.want {
			t.Errorf("%s is kept: %v", name, isKept)
		}
	}
}

func TestSlowed_IsOfFullPlaces(t *testing.T) {
	good := Busy{Calm: portals.Times{P99: 2}, Busy: portals.Times{P99: 3}, Uploads: Uploads, Open: 9, Refused: 2}
	for name, c := range map[string]struct {
		change func(*Busy)
		want   bool
	}{
		"all":              {func(*Busy) {}, true},
		"slower":           {func(b *Busy) { b.Busy.P99 = 3.1 }, false},
		"an upload less":   {func(b *Busy) { b.Uploads-- }, false},
		"more let through": {func(b *Busy) { b.Refused-- }, false},
	} {
		one := good
		c.change(&one)
		if _, isKept := Slowed([]Busy{one}); isKept != c.want {
			t.Errorf("%s is kept: %v", name, isKept)
		}
	}
}
