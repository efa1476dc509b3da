package service

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/upgrade"
)

// FuzzRecord: whatever stands in the annotation, it is a record that is written again as it was
// read, or an error.
func FuzzRecord(f *testing.F) {
	f.Add(Record{Version: recordVersion, Active: Side{Cluster: 1, Pods: "p", Revision: "r"}, Candidate: &Side{Cluster: 2}, Shift: upgrade.Shift{Traffic: 20}}.String())
	f.Add(`{"v":2}`)
	f.Add(`{"v":1,"clusters":-1}`)
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		record, err := ParseRecord(text)
		if err != nil {
			return
		}
		again, err := ParseRecord(record.String())
		if err != nil && len(record.String()) <= recordLimit {
			t.Fatalf("%q becomes %q, which cannot be read: %v", text, record, err)
		}
		if diff := cmp.Diff(record, again); err == nil && diff != "" {
			t.Fatalf("(- read, + read again):\n%s", diff)
		}
	})
}

func TestParseRecordRefuses(t *testing.T) {
	for _, text := range []string{"", "{", `{"v":2}`, `{"v":1,"clusters":-1}`, `{"v":1}` + strings.Repeat(" ", recordLimit)} {
		if record, err := ParseRecord(text); err == nil {
			t.Errorf("%.20q became %+v", text, record)
		}
	}
}

// TestRecordFits: the largest that there may be is well within the annotation's limit.
func TestRecordFits(t *testing.T) {
	long := strings.Repeat("ä", longest)
	side := Side{Cluster: 1 << 30, Pods: "v1-" + long[:13], Revision: long[:13], Good: long[:13], At: 1 << 40, Healthy: 1 << 40, Taken: long[:13], Head: long[:36]}
	fault := &Fault{Reason: "ServeNotHealthyInTime", Text: long}
	record := Record{
		Version: recordVersion, Clusters: 1 << 30, Active: side, Candidate: &side, Failed: side.Good, FailedAs: side.Good, Fault: fault,
		Shift: upgrade.Shift{Traffic: 100, Active: 100, Candidate: 100, Proven: true, Back: true, At: at(), Began: at()},
		Last:  &Last{From: "123456", To: "123457", Result: v1alpha1.UpgradeRolledBack, Fault: fault, Began: 1 << 40, Ended: 1 << 40},
	}
	if size := len(record.String()); size > recordLimit {
		t.Errorf("it has %d bytes", size)
	}
}

// TestRestored: what was on its way goes on from what the status tells.
func TestRestored(t *testing.T) {
	s := upgrades(t, nil)
	s.seen.Record.Shift.Traffic, s.seen.Record.Shift.Proven, s.seen.Record.Shift.At = 50, true, at()
	for _, pod := range s.seen.Clusters[2].Pods[1:2] {
		pod.Labels["serve.heliostat.dev/text"] = v1alpha1.ServeOn
	}
	plan := s.decide()
	s.service.Status = Status(s.service, s.seen, plan, nil, at())
	s.service.Annotations = nil
	have, err := recall(s.service, &s.seen, at())
	if err != nil {
		t.Fatal(err)
	}
	want := s.seen.Record
	want.Active.At, want.Active.Healthy, want.Active.Taken, want.Active.Took, want.Active.Head = have.Active.At, 0, "", "", ""
	if diff := cmp.Diff(want.Active, have.Active); diff != "" || have.Clusters != 2 {
		t.Errorf("active (- before, + restored; %d clusters):\n%s", have.Clusters, diff)
	}
	want.Candidate.At, want.Candidate.Taken, want.Candidate.Took, want.Candidate.Head = have.Candidate.At, "", "", ""
	if diff := cmp.Diff(want.Candidate, have.Candidate); diff != "" {
		t.Errorf("candidate (- before, + restored):\n%s", diff)
	}
	shift := upgrade.Shift{Traffic: have.Shift.Traffic, Active: 100, Candidate: 100, Proven: true, At: at(), Began: at()}
	if diff := cmp.Diff(shift, have.Shift); diff != "" || have.Shift.Traffic == 0 {
		t.Errorf("shift (- wanted, + restored):\n%s", diff)
	}
}

// TestWritten: a record that was copied from another service says nothing of this one.
func TestWritten(t *testing.T) {
	service := &v1alpha1.ClusterService{}
	service.UID = "text-uid"
	for uid, want := range map[types.UID]bool{"text-uid": true, "another": false, "": true} {
		service.Annotations = map[string]string{v1alpha1.AnnotationRecord: Record{Version: recordVersion, Of: uid}.String()}
		if record, err := written(service); err != nil || (record != nil) != want {
			t.Errorf("of %q: %+v, %v", uid, record, err)
		}
	}
}
