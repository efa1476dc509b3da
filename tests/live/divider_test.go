package live

import "testing"

// TestDivide: of any hundred requests each Service gets exactly its weight, and its endpoints get
// the same.
func TestDivide(t *testing.T) {
	d := &Divider{}
	d.Set([]Backend{{Service: "a", Weight: 90, Endpoints: []string{"a1", "a2"}}, {Service: "b", Weight: 10, Endpoints: []string{"b1", "b2"}}, {Service: "c"}})
	for round := range 3 {
		got := map[string]int{}
		for range 100 {
			got[d.next()]++
		}
		if got["a1"] != 45 || got["a2"] != 45 || got["b1"] != 5 || got["b2"] != 5 {
			t.Errorf("in round %d it leads %v", round, got)
		}
	}
	d.Set([]Backend{{Service: "a", Weight: 100}})
	if endpoint := d.next(); endpoint != "" {
		t.Errorf("without an endpoint it leads to %s", endpoint)
	}
	d.Set(nil)
	if endpoint := d.next(); endpoint != "" {
		t.Errorf("without a Service it leads to %s", endpoint)
	}
}
