package live

import (
	"slices"
	"testing"
)

func TestTenants_AreJudged(t *testing.T) {
	good := func() Tenants {
		return Tenants{
			Honest: 100, Objects: 20, Seconds: 600, Calm: Reactions{Edits: 1000, P50: 10, P99: 40}, Beside: Reactions{Edits: 2000, P50: 12, P99: 60},
			Memory: 400, MemoryLimit: 512, Asked: map[string]int64{HostileRedis: 400, HostileSentinel: 1, HostileGCS: 20, HostileAutoscaler: 1, HostileAPI: 1},
		}
	}
	for _, c := range []struct {
		spoil func(*Tenants)
		want  []string
	}{
		{func(*Tenants) {}, nil},
		{func(o *Tenants) { o.Beside.P99 = 61 }, []string{"honest clusters waited"}},
		{func(o *Tenants) { o.Memory = 410 }, []string{"the operator took much memory"}},
		{func(o *Tenants) { o.Asked["GCS"] = 0 }, []string{"no GCS was asked"}},
		{func(o *Tenants) { o.Calm = Reactions{P99: 40} }, []string{"something was not tried at all"}},
		{func(o *Tenants) { delete(o.Asked, HostileAPI) }, []string{"no job and Serve API was asked"}},
	} {
		o := good()
		if c.spoil(&o); !slices.Equal(o.Broken(), c.want) {
			t.Errorf("%+v: %v, want %v", o, o.Broken(), c.want)
		}
	}
	const want = "100 honest clusters beside 20 objects of each sort for 600 s: p50 12 ms and p99 60 ms, calm 10 and 40 ms, 2000 and 1000 edits; memory 400 MiB of 512; connections: GCS 20, Redis 400, Sentinel 1, autoscaler 1, job and Serve API 1"
	if got := good().String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestReactionsOf_CountsFromTheShortest(t *testing.T) {
	var times []float64
	for i := range 200 {
		times = append(times, float64(200-i))
	}
	if got, want := ReactionsOf(times), (Reactions{Edits: 200, P50: 101, P99: 199}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := ReactionsOf(nil); got != (Reactions{}) {
		t.Errorf("%+v, want nothing", got)
	}
}
