package job

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
)

// TestGangStatus: it shows what is reported of an attempt, never fewer restarts than before, and what there was where nothing
// can be read.
func TestGangStatus(t *testing.T) {
	status := func(job *v1beta1.ClusterJob, s Seen) *v1beta1.GangStatus {
		recorded(s.Record)(job)
		return Status(job, s, Decide(job, s, now), nil, now).Gang
	}
	running := says(headclient.JobRunning)
	restarted := reports(launcher.Running, first(launcher.OutOfMemory), func(r *launcher.Report) { r.Round = 4 })
	ended := metav1.Unix(now.Unix(), 0)
	want := &v1beta1.GangStatus{Restarts: 3, Replicas: 2, Ready: 2, LastRestart: &v1beta1.GangRestart{
		RestartTime: &ended, Replica: "worker/1", Reason: "OutOfMemory", Message: "exited with 3 (pod demo-cpu-1)",
	}}
	job := train(gang, runsSince(50))
	if diff := gocmp.Diff(want, status(job, seen(bound(), running, restarted))); diff != "" {
		t.Errorf("restarted (- wanted, + shown):\n%s", diff)
	}
	paged := reports(launcher.Running, func(r *launcher.Report) { r.Page = &launcher.Page{Pod: "demo-cpu-0", Port: 20007} })
	shown := status(train(gang, runsSince(50)), seen(bound(), running, paged))
	if diff := gocmp.Diff(&v1beta1.GangPage{PodName: "demo-cpu-0", Port: 20007}, shown.Page); diff != "" {
		t.Errorf("a page (- wanted, + shown):\n%s", diff)
	}
	over := train(gang, runsSince(50))
	over.Status.Attempt, over.Status.Gang = 1, shown
	if kept := status(over, seen(bound(), running)); kept.Page == nil {
		t.Error("a page goes though nothing new is reported")
	}
	if left := status(over, seen(bound(outcome), running)); left.Page != nil {
		t.Errorf("a job that has ended has the page %+v", left.Page)
	}
	job.Status.Attempt, job.Status.Gang = 1, want
	if diff := gocmp.Diff(want, status(job, seen(bound(), running))); diff != "" {
		t.Errorf("unreadable (- wanted, + shown):\n%s", diff)
	}
	fewer := status(job, seen(bound(), running, reports(launcher.Gathering, waiting("1 of 2"))))
	if fewer.Restarts != 3 || fewer.Ready != 1 || fewer.LastRestart == nil {
		t.Errorf("a report that takes back: %+v", fewer)
	}
	if next := status(job, seen(bound(func(r *Record) { r.Attempt = 2 }), says(headclient.JobPending))); next != nil {
		t.Errorf("the next attempt has %+v", next)
	}
	if plain := status(train(), seen(bound(), running, restarted)); plain != nil {
		t.Errorf("a plain job has %+v", plain)
	}
}

// TestGangEvents: one that is placed is told once, and each restart once.
func TestGangEvents(t *testing.T) {
	running := says(headclient.JobRunning)
	round := func(n int32) func(*launcher.Report) { return func(r *launcher.Report) { r.Round = n } }
	told := func(phase string, restarts int32) edit {
		return func(j *v1beta1.ClusterJob) { toldPhase(phase)(j); j.Status.Gang.Restarts = restarts }
	}
	for name, test := range map[string]struct {
		edits []edit
		seen  func(*Seen)
		want  string
	}{
		"gathers":           {nil, reports(launcher.Gathering), ""},
		"is placed":         {[]edit{told(v1beta1.PhaseGathering, 0)}, reports(launcher.Running), "GangPlaced"},
		"was placed":        {[]edit{told(v1beta1.PhaseRunning, 0)}, reports(launcher.Running), ""},
		"restarts":          {[]edit{told(v1beta1.PhaseRunning, 1)}, reports(launcher.Running, first(launcher.Exit), round(3)), "GangRestarted"},
		"restarted, told":   {[]edit{told(v1beta1.PhaseRunning, 2)}, reports(launcher.Running, first(launcher.Exit), round(3)), ""},
		"another's restart": {[]edit{told(v1beta1.PhaseRunning, 9), func(j *v1beta1.ClusterJob) { j.Status.Attempt = 7 }}, reports(launcher.Running, first(launcher.Exit), round(2)), "GangRestarted"},
	} {
		plan := decide(train(append([]edit{gang, runsSince(5)}, test.edits...)...), seen(bound(), running, test.seen))
		var codes []string
		for _, event := range plan.Events {
			codes = append(codes, event.Finding.Code)
		}
		if have := strings.Join(codes, " "); have != test.want {
			t.Errorf("%s: %q, want %q", name, have, test.want)
		}
	}
}
