package rest

import (
	"fmt"
	"strings"
	"testing"
)

const aSchedule = `{"apiVersion":"heliostat.dev/v1beta1","kind":"ClusterJobSchedule","metadata":{"name":"hourly"},"spec":{"schedule":"%s",` +
	`"jobTemplate":{"spec":{"clusterRef":{"name":"demo"},"entrypoint":"x"}}}}`

// TestSchedules_AreServedAsOtherKinds: listed, read, changed and created, each by the right to schedules.
func TestSchedules_AreServedAsOtherKinds(t *testing.T) {
	const rights = "clusterjobschedules team-a"
	b := newBed(t, "list "+rights, "get "+rights, "patch "+rights, "create "+rights)
	_, answer := b.send(t, "GET", "/v1/objects?namespaces=team-a", "")
	lines, _ := answer["lines"].([]any)
	if len(lines) != 1 {
		t.Fatalf("the caller is shown %v", answer)
	}
	line := lines[0].(map[string]any)
	for field, want := range map[string]any{
		"kind": "schedules", "name": "nightly", "phase": "Running", "activeJobs": 1.0,
		"lastScheduleTime": "1970-01-01T00:01:00Z", "nextScheduleTime": "1970-01-01T00:02:00Z",
	} {
		if line[field] != want {
			t.Errorf("its line has the %s %v, want %v", field, line[field], want)
		}
	}
	code, answer := b.send(t, "GET", "/v1/namespaces/team-a/schedules/nightly", "")
	events, _ := answer["events"].([]any)
	if code != 200 || answer["object"].(map[string]any)["kind"] != "ClusterJobSchedule" || len(events) != 2 {
		t.Errorf("it is %d, %v", code, answer)
	}
	for _, row := range []struct {
		path, body string
		code       int
	}{
		{"/v1/namespaces/team-a/schedules/nightly:suspend", "", 200},
		{"/v1/namespaces/team-a/schedules/nightly:resume", "", 200},
		{"/v1/namespaces/team-a/schedules/nightly:stop", "", 400},
		{"/v1/namespaces/team-a/jobs/train:suspend", "", 403},
		{"/v1/namespaces/team-a/objects", `{"object":` + fmt.Sprintf(aSchedule, "@hourly") + `}`, 201},
		{"/v1/namespaces/team-a/objects", `{"object":` + fmt.Sprintf(aSchedule, "@never") + `}`, 422},
	} {
		if code, answer := b.send(t, "POST", row.path, row.body); code != row.code {
			t.Errorf("%s %s: %d, want %d: %v", row.path, row.body, code, row.code, answer)
		}
	}
	const want = `nightly {"spec":{"suspend":true}},create clusterjobschedules`
	if got := strings.Join(b.written, ","); got != want {
		t.Errorf("written is %s, want %s", got, want)
	}
}
