package launcher_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
)

// tuneSaid is a report with an object tune.
func tuneSaid(tune string) []byte {
	return fmt.Appendf(nil, `{"version":1,"state":"Running","round":1,"replicas":2,"ready":2,"tune":%s}`, tune)
}

// TestParseReport_OfTrials reads what the driver writes.
func TestParseReport_OfTrials(t *testing.T) {
	report, ok := launcher.ParseReport(tuneSaid(`{"trials":12,"running":4,"succeeded":6,"failed":1,"pruned":1,"waiting":2,"holder":"job a\u001b[2J (attempt 3)",
		"best":{"trial":5,"value":"9.3e-01","parameters":{"learningRate":"0.0031","o":"a\nb"}}}`))
	want := &launcher.TuneReport{
		Trials: 12, Running: 4, Succeeded: 6, Failed: 1, Pruned: 1, Waiting: 2, Holder: "job a[2J (attempt 3)",
		Best: &launcher.BestTrial{Trial: 5, Value: "9.3e-01", Parameters: map[string]string{"learningRate": "0.0031", "o": "a b"}},
	}
	if diff := cmp.Diff(want, report.Tune); !ok || diff != "" {
		t.Error(ok, diff)
	}
	if report, ok := launcher.ParseReport(tuneSaid("null")); !ok || report.Tune != nil {
		t.Errorf("a gang that runs once has %+v", report.Tune)
	}
}

// TestParseReport_RefusesTrialsThatCannotBe: a report with such trials is not read.
func TestParseReport_RefusesTrialsThatCannotBe(t *testing.T) {
	best := `{"trials":1,"succeeded":1,"best":%s}`
	for name, tune := range map[string]string{
		"a negative count":          `{"trials":1,"failed":-1}`,
		"more than there are":       `{"trials":1,"running":1,"failed":1}`,
		"too many":                  `{"trials":10001}`,
		"too many that wait":        `{"waiting":1025}`,
		"a trial that is not there": fmt.Sprintf(best, `{"trial":1,"value":"1"}`),
		"a value that is no number": fmt.Sprintf(best, `{"trial":0,"value":"high"}`),
		"a value that is infinite":  fmt.Sprintf(best, `{"trial":0,"value":"inf"}`),
		"a value that is long":      fmt.Sprintf(best, `{"trial":0,"value":"`+strings.Repeat("1", 33)+`"}`),
		"a name that is none":       fmt.Sprintf(best, `{"trial":0,"value":"1","parameters":{"a b":"1"}}`),
		"a name that begins with 1": fmt.Sprintf(best, `{"trial":0,"value":"1","parameters":{"1a":"1"}}`),
		"a parameter that is long":  fmt.Sprintf(best, `{"trial":0,"value":"1","parameters":{"a":"`+strings.Repeat("x", 257)+`"}}`),
		"another kind of JSON":      `[]`,
	} {
		if report, ok := launcher.ParseReport(tuneSaid(tune)); ok {
			t.Errorf("%s: %+v", name, report.Tune)
		}
	}
}
