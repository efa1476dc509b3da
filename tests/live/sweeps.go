package live

import (
	"fmt"
	"slices"
)

// Sweeps is what became of clusters with keys in a Redis that is real, while all else of
// them stood in for Ray: seconds. They are a test's on a real API server.
type Sweeps struct {
	// Clusters were deleted at once while the Redis was away, and as many without their
	// Secret, one half of these with their namespace.
	Clusters int `json:"clusters"`
	// NewHead is from the end of each head, which was deleted by force, to another pod.
	NewHead []float64 `json:"newHead"`
	// Gone is from the deletion of a cluster while the Redis was there until nothing of it
	// was left, no key either.
	Gone []float64 `json:"gone"`
	// AwayGone is from the deletion of all clusters while the Redis was away until nothing of
	// them was left but keys; KeysGone from its return until no key was left.
	AwayGone float64 `json:"awayGone"`
	KeysGone float64 `json:"keysGone"`
	// StrippedGone is from the deletion of clusters whose Secret was gone until nothing of
	// them was left, DroppedGone from that of their namespace until it was gone. Recorded is
	// of how many of both a note told what to do.
	StrippedGone float64 `json:"strippedGone"`
	DroppedGone  float64 `json:"droppedGone"`
	Recorded     int     `json:"recorded"`
	// Lost are keys of others that were not there any more.
	Lost int `json:"lost"`
}

// String is all of it in one line.
func (s Sweeps) String() string {
	return fmt.Sprintf("another head after %.1f s at most; gone with its keys after %.1f s at most; %d without their Redis gone after %.1f s, their keys %.1f s after it was back; "+
		"without their Secret gone after %.1f s, with their namespace after %.1f s, %d of %[3]d recorded; %[9]d keys of others lost",
		longest(s.NewHead), longest(s.Gone), s.Clusters, s.AwayGone, s.KeysGone, s.StrippedGone, s.DroppedGone, s.Recorded, s.Lost)
}

// Broken says what of the promises was not kept.
func (s Sweeps) Broken() []string {
	var broken []string
	for _, c := range []struct {
		broken bool
		what   string
	}{
		{s.Clusters == 0 || len(s.NewHead) == 0 || len(s.Gone) == 0 || min(s.AwayGone, s.KeysGone, s.StrippedGone, s.DroppedGone) <= 0, "something was not tried at all"},
		{longest(s.NewHead) > PromisedCreated.Seconds(), "another head came late"},
		{longest(s.Gone) > PromisedStoreGone.Seconds(), "a cluster or its keys went late"},
		{max(s.AwayGone, s.StrippedGone, s.DroppedGone) > PromisedAwayGone.Seconds(), "a deletion was held up"},
		{s.KeysGone > PromisedKeysGone.Seconds(), "keys went late"},
		{s.Recorded != s.Clusters, "a note did not say what to do"},
		{s.Lost > 0, "keys of others are gone"},
	} {
		if c.broken {
			broken = append(broken, c.what)
		}
	}
	return broken
}

func longest(seconds []float64) float64 {
	if len(seconds) == 0 {
		return 0
	}
	return slices.Max(seconds)
}
