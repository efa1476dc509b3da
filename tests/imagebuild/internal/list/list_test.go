package list

import (
	"slices"
	"testing"
)

func TestEntriesLeaveOutComments(t *testing.T) {
	got := Entries("# head\n\npython3\n  # via python3\nredis-tools  \n")
	if want := []string{"python3", "redis-tools"}; !slices.Equal(got, want) {
		t.Errorf("Entries = %q, want %q", got, want)
	}
}

func TestPinned(t *testing.T) {
	text := "# ray==1.0\nray-haproxy==2.8.25\nray==2.60.0\n    # via requirements.in\n"
	got, err := Pinned(text, "ray")
	if err != nil || got != "2.60.0" {
		t.Errorf("Pinned = %q, %v, want 2.60.0", got, err)
	}
	if _, err := Pinned(text, "numpy"); err == nil {
		t.Error("Pinned found a package that is not listed")
	}
}
