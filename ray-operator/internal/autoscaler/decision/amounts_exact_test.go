package decision

import "testing"

// A unit is named from its own size on, and amounts are rounded to hundredths of it.
func TestTextOfShapes_ChangesUnitsExactly(t *testing.T) {
	for _, c := range []struct {
		memory float64
		want   string
	}{
		{1<<10 - 1, "1023"},
		{1 << 10, "1KiB"},
		{1<<20 - 1, "1024KiB"},
		{1 << 20, "1MiB"},
		{1<<30 - 1, "1024MiB"},
		{1 << 30, "1GiB"},
		{1.004 * (1 << 30), "1GiB"},
		{1.006 * (1 << 30), "1.01GiB"},
	} {
		if got, want := (Resources{"memory": c.memory}).String(), "{memory: "+c.want+"}"; got != want {
			t.Errorf("%g bytes are %q, not %q", c.memory, got, want)
		}
	}
}
