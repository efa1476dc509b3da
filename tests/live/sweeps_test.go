package live

import (
	"slices"
	"testing"
)

func TestWhatSweepsPromiseIsJudged(t *testing.T) {
	good := func() Sweeps {
		return Sweeps{Clusters: 100, NewHead: []float64{0.5, 2}, Gone: []float64{10}, AwayGone: 60, KeysGone: 60, StrippedGone: 60, DroppedGone: 60, Recorded: 100}
	}
	for _, c := range []struct {
		spoil func(*Sweeps)
		want  []string
	}{
		{func(*Sweeps) {}, nil},
		{func(s *Sweeps) { s.NewHead[0] = 2.1 }, []string{"another head came late"}},
		{func(s *Sweeps) { s.Gone = append(s.Gone, 10.1) }, []string{"a cluster or its keys went late"}},
		{func(s *Sweeps) { s.AwayGone = 61 }, []string{"a deletion was held up"}},
		{func(s *Sweeps) { s.StrippedGone = 61 }, []string{"a deletion was held up"}},
		{func(s *Sweeps) { s.DroppedGone = 61 }, []string{"a deletion was held up"}},
		{func(s *Sweeps) { s.KeysGone = 61 }, []string{"keys went late"}},
		{func(s *Sweeps) { s.Recorded = 99 }, []string{"a note did not say what to do"}},
		{func(s *Sweeps) { s.Lost = 1 }, []string{"keys of others are gone"}},
		{func(s *Sweeps) { *s = Sweeps{} }, []string{"something was not tried at all"}},
		{func(s *Sweeps) { s.KeysGone = 0 }, []string{"something was not tried at all"}},
	} {
		s := good()
		if c.spoil(&s); !slices.Equal(s.Broken(), c.want) {
			t.Errorf("%+v: %v, want %v", s, s.Broken(), c.want)
		}
	}
	want := "another head after 2.0 s at most; gone with its keys after 10.0 s at most; 100 without their Redis gone after 60.0 s, their keys 60.0 s after it was back; " +
		"without their Secret gone after 60.0 s, with their namespace after 60.0 s, 100 of 100 recorded; 0 keys of others lost"
	if got := good().String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
