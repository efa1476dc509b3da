package service

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/upgrade"
)

// FuzzRecord: whatever stands in the annotation, it is a record that is written again as it was
// read, or an error.
func FuzzRecord(f *testing.F) {
	f.Add(Record{Version: recordVersion, Active: Version{Cluster: 1, Pods: "p", Revision: "r"}, Candidate: &Version{Cluster: 2}, Shift: upgrade.Shift{Traffic: 20}}.String())
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

// drawVersion is any version that a record may have.
func drawVersion(rt *rapid.T, label string) Version {
	hash, uid, seconds := rapid.StringMatching(`[a-z2-7]{13}`), rapid.StringMatching(`[0-9a-f-]{36}`), rapid.Int64Range(0, 1<<40)
	return Version{
		Cluster: rapid.IntRange(0, 1<<30).Draw(rt, label), Pods: "v1-" + hash.Draw(rt, label), Revision: hash.Draw(rt, label), Good: hash.Draw(rt, label),
		At: seconds.Draw(rt, label), Healthy: seconds.Draw(rt, label), Taken: hash.Draw(rt, label), Took: hash.Draw(rt, label),
		Head: uid.Draw(rt, label), Renewing: uid.Draw(rt, label),
	}
}

// TestString_IsReadAgain whatever Ray and users call things and say, and without losing what decides anything.
func TestString_IsReadAgain(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		fault := func(label string) *Fault {
			words := rapid.StringOfN(rapid.SampledFrom([]rune("a<\"\\é\x01\u2028😀")), longest, 2*longest, -1)
			return &Fault{Reason: "ServeNotHealthyInTime", Text: cut(words.Draw(rt, label))}
		}
		record := Record{
			Version: recordVersion, Of: "00000000-0000-0000-0000-000000000000", Clusters: rapid.IntRange(0, 1<<30).Draw(rt, "clusters"),
			Active: drawVersion(rt, "active"), Failed: "aaaaaaaaaaaaa", FailedAs: "aaaaaaaaaaaaa", Fault: fault("fault"), Began: 1 << 40,
			Last: &Last{From: 123456, To: 123457, Result: v1beta1.UpgradeRolledBack, Fault: fault("last"), Began: 1 << 40, Ended: 1 << 40},
		}
		if rapid.Bool().Draw(rt, "own") {
			candidate := drawVersion(rt, "candidate")
			record.Candidate, record.Whole = &candidate, Whole{strings.Repeat("d", mostNoted-len(`"":123456,`)): 123456}
			record.Shift = upgrade.Shift{Traffic: 100, Active: 100, Candidate: 100, Proven: true, Back: true, At: at().UTC(), Began: at().UTC()}
			record.Retiring = []Retired{{Cluster: 1 << 30, At: 1 << 40, Unused: true, Held: true}}
		} else {
			for i := range rapid.SampledFrom([]int{0, 64, 300}).Draw(rt, "applications") {
				record.noteApplication(fmt.Sprintf("%0253d", i))
			}
		}
		have, err := ParseRecord(record.String())
		if err != nil || have.String() != record.String() {
			rt.Fatalf("%d bytes: %v", len(record.String()), err)
		}
		for _, one := range []*Record{&have, &record} {
			one.Fault.Text, one.Last.Fault.Text = "", ""
		}
		if diff := cmp.Diff(record, have); diff != "" {
			rt.Errorf("(- written, + read):\n%s", diff)
		}
	})
}

// TestRecordFits: all that there usually is fits, so that no words are lost.
func TestRecordFits(t *testing.T) {
	fault := &Fault{Reason: "ServeNotHealthyInTime", Text: strings.Repeat("<ä>", longest/3)}
	version := Version{Cluster: 1 << 30, Pods: "v1-aaaaaaaaaaaaa", Revision: "aaaaaaaaaaaaa", Good: "aaaaaaaaaaaaa", Taken: "aaaaaaaaaaaaa", Head: strings.Repeat("a", 36)}
	record := Record{
		Version: recordVersion, Clusters: 1 << 30, Active: version, Candidate: &version, Failed: version.Good, FailedAs: version.Good, Fault: fault,
		Shift: upgrade.Shift{Traffic: 100, Active: 100, Candidate: 100, Proven: true, Back: true, At: at(), Began: at()},
		Last:  &Last{From: 123456, To: 123457, Result: v1beta1.UpgradeRolledBack, Fault: fault, Began: 1 << 40, Ended: 1 << 40},
	}
	if have, err := ParseRecord(record.String()); err != nil || have.Fault.Text != fault.Text || have.Last.Fault.Text != fault.Text {
		t.Errorf("it has %d bytes: %v", len(record.String()), err)
	}
}

// TestRecordFits_NoMoreClustersThanTheStatus: status.retiring has 256 items at most. A status with more would be refused,
// and no later one would get through.
func TestRecordFits_NoMoreClustersThanTheStatus(t *testing.T) {
	record := Record{Version: recordVersion}
	for number := range 257 {
		record.retireCluster(number+1, at(), at())
	}
	if n := len(record.String()); n <= recordLimit {
		t.Errorf("257 clusters that go need %d bytes of a record that has %d", n, recordLimit)
	}
}

// TestNoteApplications_RenamesAll: as many applications as there may be, of long names, are renamed at once.
func TestNoteApplications_RenamesAll(t *testing.T) {
	s := shares(t)
	var names []string
	for version := range 2 {
		names = nil
		var applications []string
		for i := range 64 {
			names = append(names, fmt.Sprintf("%036d-%d-%02d", i, version, i))
			applications = append(applications, fmt.Sprintf(`{"name":%q,"route_prefix":"/%d","import_path":"app:v1"}`, names[i], i))
		}
		s.service.Spec.ServeConfig.Raw = fmt.Appendf(nil, `{"applications":[%s]}`, strings.Join(applications, ","))
		plan := s.decide()
		if plan.Record == nil || len(plan.Wants) != 1 {
			t.Fatalf("version %d: %s", version, &plan)
		}
		record, err := ParseRecord(plan.Record.String())
		if err != nil {
			t.Fatal(err)
		}
		s.seen.Record = record
		s.keep(t)
		if drop := plan.Wants[0].Config.Drop; version == 1 && len(drop) != 65 { // and the one of before
			t.Errorf("%d applications go: %v", len(drop), drop)
		}
	}
}

// TestRestored: what was on its way goes on from what the status tells.
func TestRestored(t *testing.T) {
	s := upgrades(t, nil)
	s.seen.Record.Shift.Traffic, s.seen.Record.Shift.Proven, s.seen.Record.Shift.At = 50, true, at()
	for _, pod := range s.seen.Clusters[2].Pods[1:2] {
		pod.Labels["serve.heliostat.dev/text"] = v1beta1.ServeOn
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
	service := &v1beta1.ClusterService{}
	service.UID = "text-uid"
	for uid, want := range map[types.UID]bool{"text-uid": true, "another": false, "": false} {
		service.Annotations = map[string]string{v1beta1.AnnotationRecord: Record{Version: recordVersion, Of: uid}.String()}
		if record, err := written(service); err != nil || (record != nil) != want {
			t.Errorf("of %q: %+v, %v", uid, record, err)
		}
	}
}
