package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
)

func TestFit_ShortensUntilItFits(t *testing.T) {
	whole := `{"t":"<äöü&ß>"}`
	for most, want := range map[int]string{40: whole, 19: whole, 18: `{"t":"&ß>"}`, 12: `{"t":"&ß>"}`, 11: `{"t":">"}`, 8: `{"t":""}`, 3: `{"t":""}`} {
		record := struct {
			Text string `json:"t"`
		}{"<äöü&ß>"}
		have := reconcile.Fit(&record, most, func() bool {
			had := record.Text != ""
			record.Text = reconcile.Shorten(record.Text)
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
	if have, err := reconcile.ParseRecord(reconcile.Fit(record{4}, 9, nil), 9, check); err != nil || have.Number != 4 {
		t.Errorf("%v, %v", have, err)
	}
	for text, want := range map[string]string{
		`{"n":100}0`: "parse record: 10 bytes, at most 9",
		`{"n":`:      "parse record: unexpected end of JSON input",
		`{"n":3}`:    "parse record: it is odd",
	} {
		if have, err := reconcile.ParseRecord(text, 9, check); err == nil || err.Error() != want || have.Number != 0 {
			t.Errorf("%s: %v, %v, want %s", text, have, err, want)
		}
	}
}

// editor takes writes as an API server, or refuses them.
type editor struct{ err error }

func (e editor) Edit(_ context.Context, _, wanted client.Object) error {
	wanted.SetResourceVersion("2")
	return e.err
}

func TestWriteRecord_BringsTheObjectAlong(t *testing.T) {
	finalize := func(wanted *v1beta1.ClusterJob) { wanted.Finalizers = []string{"f"} }
	for name, c := range map[string]struct {
		refused error
		want    string
	}{"written": {nil, "2 map[a:b heliostat.dev/record:r] [f]"}, "refused": {errors.New("no"), "1 map[a:b] []"}} {
		job := &v1beta1.ClusterJob{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1", Annotations: map[string]string{"a": "b"}}}
		err := reconcile.WriteRecord(t.Context(), editor{c.refused}, job, "r", finalize)
		if have := fmt.Sprintf("%s %v %v", job.ResourceVersion, job.Annotations, job.Finalizers); !errors.Is(err, c.refused) || have != c.want {
			t.Errorf("%s: %s, %v, want %s", name, have, err, c.want)
		}
	}
}
