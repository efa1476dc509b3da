package headclient_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

func TestList_IsReadAsAWhole(t *testing.T) {
	one := func(id string, start int) string {
		return fmt.Sprintf(`{"type": "SUBMISSION", "submission_id": %s, "status": "RUNNING", "start_time": %d}`, id, start)
	}
	for name, c := range map[string]struct {
		body string
		want []string
		kind headclient.Kind
	}{
		"none":                {"[]", nil, ""},
		"in order":            {"[" + one(`"c"`, 2) + "," + one(`"b"`, 2) + "," + one(`"a"`, 3) + "]", []string{"b", "c", "a"}, ""},
		"drivers left out":    {"[" + one(`"a"`, 2) + `, {"type": "DRIVER", "job_id": "01000000", "submission_id": null, "status": "RUNNING"}]`, []string{"a"}, ""},
		"IDs of another form": {"[" + one(`"a b/../c"`, 2) + "," + one(`"a"`, 2) + "]", []string{"a"}, ""},
		"twice":               {"[" + one(`"a"`, 2) + "," + one(`"a"`, 3) + "]", nil, headclient.Protocol},
		"no time":             {"[" + one(`"a"`, -2) + "]", nil, headclient.Protocol},
		"no status":           {`[{"submission_id": "a"}]`, nil, headclient.Protocol},
		"no list":             {"null", nil, headclient.Protocol},
		"too many":            {"[" + strings.Repeat("{},", 200_000) + "{}]", nil, headclient.Protocol},
		"too long":            {"[" + strings.Repeat(" ", 16<<20) + "]", nil, headclient.Protocol},
	} {
		all, err := converse(t, answering(t, http.StatusOK, c.body), headclient.Options{}).List(t.Context())
		var ids []string
		for _, job := range all {
			ids = append(ids, job.ID)
		}
		if !slices.Equal(ids, c.want) || headclient.KindOf(err) != c.kind {
			t.Errorf("%s: %q, %v", name, ids, err)
		}
	}
}
