package main

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/heliostat-dev/heliostat/tests/live"
)

var (
	quick = live.Told{Cause: "a", Seconds: 1}
	slow  = live.Told{Cause: "b | c", Of: "head", Reason: "R", Seconds: 11, Message: "x | y"}
)

// encoded is a value as JSON, which all values here can be.
func encoded(value any) []byte {
	text, _ := json.Marshal(value)
	return text
}

func TestWhatSpecsReportIsRead(t *testing.T) {
	spec := func(state types.SpecState, told live.Told) types.SpecReport {
		return types.SpecReport{LeafNodeType: types.NodeTypeIt, State: state, ReportEntries: types.ReportEntries{
			{Name: "another"}, {Name: live.ToldEntry, Value: types.WrapEntryValue(told)},
		}}
	}
	ran, err := ranOf(encoded([]types.Report{{SpecReports: []types.SpecReport{
		{LeafNodeType: types.NodeTypeBeforeSuite, State: types.SpecStatePassed},
		spec(types.SpecStatePassed, quick), spec(types.SpecStateSkipped, quick), spec(types.SpecStateFailed, slow),
	}}}))
	if err != nil || len(ran) != 2 {
		t.Fatalf("%d specs were run, %v", len(ran), err)
	}
	told, err := entries[live.Told](ran, live.ToldEntry)
	if err != nil || !reflect.DeepEqual(told, []live.Told{quick, slow}) {
		t.Fatalf("read %+v, %v", told, err)
	}
}

func TestAReportOfNothingIsNoReport(t *testing.T) {
	for _, text := range []string{"", "[]", `[{"SpecReports": []}]`} {
		if _, err := ranOf([]byte(text)); err == nil {
			t.Errorf("%q passed for a report", text)
		}
	}
}

func TestReasonsAreSummedUp(t *testing.T) {
	told := []live.Told{quick, slow}
	text := summarise(told, errors.New("no node"))
	for _, want := range []string{"2 causes, 1 of them", "11.0 s (b | c)", "specs failed"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not say %q", text, want)
		}
	}
	if table := reasonsTable(encoded(told)); !strings.Contains(table, `| b \| c | head | `+"`R`"+` | x \| y | 11.0 |`) {
		t.Errorf("the table is\n%s", table)
	}
}
