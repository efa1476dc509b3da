package pass_test

import (
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/pass"
)

func TestFit_ShortensUntilItFits(t *testing.T) {
	whole := `{"t":"<äöü&ß>"}`
	for most, want := range map[int]string{40: whole, 19: whole, 18: `{"t":"&ß>"}`, 12: `{"t":"&ß>"}`, 11: `{"t":">"}`, 8: `{"t":""}`, 3: `{"t":""}`} {
		record := struct {
			Text string `json:"t"`
		}{"<äöü&ß>"}
		have := pass.Fit(&record, most, func() bool {
			had := record.Text != ""
			record.Text = pass.Shorten(record.Text)
			return had
		})
		if have != want {
			t.Errorf("in %d bytes: %s, want %s", most, have, want)
		}
	}
}
