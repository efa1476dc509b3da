package pass_test

import (
	"errors"
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

func TestParseRecord_ReadsWhatFitWrote(t *testing.T) {
	type record struct {
		Number int `json:"n"`
	}
	odd := errors.New("it is odd")
	check := func(r *record) error {
		if r.Number%2 == 1 {
			return odd
		}
		return nil
	}
	if have, err := pass.ParseRecord(pass.Fit(record{4}, 9, nil), 9, check); err != nil || have.Number != 4 {
		t.Errorf("%v, %v", have, err)
	}
	for text, want := range map[string]string{
		`{"n":100}0`: "parse record: 10 bytes, at most 9",
		`{"n":`:      "parse record: unexpected end of JSON input",
		`{"n":3}`:    "parse record: it is odd",
	} {
		if have, err := pass.ParseRecord(text, 9, check); err == nil || err.Error() != want || have.Number != 0 {
			t.Errorf("%s: %v, %v, want %s", text, have, err, want)
		}
	}
}
