package job

import (
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// first is how the last round of a gang ended.
func first(kind launcher.Kind, lines ...string) func(*launcher.Report) {
	return func(r *launcher.Report) {
		r.Last = &launcher.End{Time: now, Kind: kind, Process: "worker/1", Pod: "demo-cpu-1", Message: "exited with 3", Lines: lines}
	}
}

// TestGangEnds: how a gang ended. A report gives words, and never an end, a success, or a loss that nobody saw.
func TestGangEnds(t *testing.T) {
	exit := func(code int32) func(*Seen) { return says(headclient.JobFailed, exits(code)) }
	lost := func(s *Seen) { exit(signalLost)(s); s.Answer.Job.End = now.Add(-time.Minute) }
	for name, test := range map[string]struct {
		seen []func(*Seen)
		want string
		kind kind
	}{
		"succeeds":                           {[]func(*Seen){says(headclient.JobSucceeded)}, "JobSucceeded", success},
		"succeeds, whatever is reported":     {[]func(*Seen){says(headclient.JobSucceeded), reports(launcher.Ended, first(launcher.Exit))}, "JobSucceeded", success},
		"a process failed":                   {[]func(*Seen){exit(3), reports(launcher.Ended, first(launcher.Exit))}, "ProcessFailed(3)", failure},
		"no report":                          {[]func(*Seen){exit(3)}, "EntrypointFailed(3)", failure},
		"the driver failed after a restart":  {[]func(*Seen){exit(1), reports(launcher.Running, first(launcher.Exit))}, "EntrypointFailed(1)", failure},
		"the driver was killed":              {[]func(*Seen){exit(-9), reports(launcher.Running)}, "EntrypointFailed(137)", failure},
		"lost, as was seen":                  {[]func(*Seen){lost, reports(launcher.Ended, first(launcher.Lost)), placeLost}, "GangLost", loss},
		"lost, and nobody saw it":            {[]func(*Seen){lost, reports(launcher.Ended, first(launcher.Lost))}, "GangLost", failure},
		"lost, without a report":             {[]func(*Seen){lost, placeLost}, "GangLost", loss},
		"a program ended by the same signal": {[]func(*Seen){exit(128 - signalLost), reports(launcher.Ended, first(launcher.Exit)), placeLost}, "ProcessFailed(140)", failure},
	} {
		v := view{job: train(gang), seen: seen(bound(), test.seen...), record: bound(), now: now}
		f, is := judgeAttempt(v)
		have := f.Code
		if f.exit != nil && f.Code != reason.JobSucceeded.Code {
			have += "(" + printed(t, *f.exit) + ")"
		}
		if !is || have != test.want || f.class("") != test.kind {
			t.Errorf("%s: %s of kind %d, want %s of kind %d", name, have, f.class(""), test.want, test.kind)
		}
	}
}

// TestGangLost_IsLookedFor: Kubernetes may take a minute to see that a node is gone.
func TestGangLost_IsLookedFor(t *testing.T) {
	ended := func(seconds int64) func(*Seen) {
		return func(s *Seen) {
			says(headclient.JobFailed, exits(signalLost))(s)
			s.Answer.Job.End = time.Unix(ago(seconds), 0)
		}
	}
	lost := reports(launcher.Ended, first(launcher.Lost))
	for name, test := range map[string]struct {
		seen   []func(*Seen)
		edits  []edit
		judged bool
	}{
		"just now":                   {[]func(*Seen){ended(1), lost}, nil, false},
		"just now, without a report": {[]func(*Seen){ended(1)}, nil, false},
		"a minute ago":               {[]func(*Seen){ended(60), lost}, nil, true},
		"just now, as was seen":      {[]func(*Seen){ended(1), lost, placeLost}, nil, true},
		"the wait for places ended":  {[]func(*Seen){ended(1), reports(launcher.Ended, first(launcher.Gather))}, nil, true},
		"by a clock that is wrong":   {[]func(*Seen){ended(-100), lost}, nil, true},
		"the job is going":           {[]func(*Seen){ended(1), lost}, []edit{deleted(1)}, true},
	} {
		job := train(append([]edit{gang, runsSince(50)}, test.edits...)...)
		v := view{job: job, seen: seen(bound(), test.seen...), record: bound(), now: now}
		if _, is := judgeAttempt(v); is != test.judged {
			t.Errorf("%s: judged %t, want %t", name, is, test.judged)
		}
		if plan := decide(job, v.seen); !test.judged && (plan.Wake == 0 || plan.Wake > 5*time.Second || plan.Record != nil) {
			t.Errorf("%s: %s, again after %s", name, gist(plan), plan.Wake)
		}
	}
}

func placeLost(s *Seen) { s.PlaceLost = true }

// TestProcessFailed_HasItsOwnLines: the message names the process and its pod, and the last lines are its own.
func TestProcessFailed_HasItsOwnLines(t *testing.T) {
	v := view{job: train(gang), seen: seen(bound(), says(headclient.JobFailed, exits(3)), reports(launcher.Ended, first(launcher.Exit, "no space left"))), record: bound(), now: now}
	f, _ := judgeAttempt(v)
	if !strings.Contains(f.Text, "worker/1 on pod demo-cpu-1 failed first, with exit code 3: exited with 3") || !reflect.DeepEqual(f.lines, []string{"no space left"}) {
		t.Errorf("%q, %q", f.Text, f.lines)
	}
	v.seen.Answer.Report.Last.Lines = nil
	if f, _ = judgeAttempt(v); !reflect.DeepEqual(f.lines, []string{"the end"}) {
		t.Errorf("without lines of its own: %q", f.lines)
	}
}

// TestLosses_InPlaceAreAdded: no more than the gang had left, and beside the one that ended it.
func TestLosses_InPlaceAreAdded(t *testing.T) {
	for name, test := range map[string]struct{ said, want int32 }{
		"none": {0, 2}, "some": {3, 5}, "more than it had": {1000, 12},
	} {
		job := train(gang, func(j *v1beta1.ClusterJob) { j.Spec.Retry = &v1beta1.Retry{InfrastructureLimit: number(11)} })
		plan := decide(job, seen(bound(func(r *Record) { r.Losses = 1 }), says(headclient.JobFailed, exits(signalLost)), placeLost,
			reports(launcher.Ended, first(launcher.Lost), func(r *launcher.Report) { r.Losses = test.said })))
		if plan.Record == nil || plan.Record.Losses != test.want {
			t.Errorf("%s: the record is %+v, want %d losses", name, plan.Record, test.want)
		}
	}
}

// TestNoticedAt: a report cannot move a loss to before all workers were created.
func TestNoticedAt(t *testing.T) {
	before := func(seconds int64) time.Time { return time.Unix(ago(seconds), 0) }
	for name, test := range map[string]struct{ told, want time.Time }{
		"no time":          {time.Time{}, before(0)},
		"a while ago":      {before(50), before(50)},
		"too long ago":     {time.Unix(1, 0), before(90)},
		"after the end":    {before(-10), before(0)},
		"right at the end": {before(0), before(0)},
	} {
		if have := noticedAt(test.told, before(0), 30*time.Second); !have.Equal(test.want) {
			t.Errorf("%s: %s, want %s", name, have, test.want)
		}
	}
}

// TestLostPlaces: a worker that is gone is one that the operator must have seen.
func TestLostPlaces(t *testing.T) {
	cluster := demo()
	cluster.Status.Groups = []v1beta1.GroupStatus{{Name: "cpu", WorkerCounts: v1beta1.WorkerCounts{Desired: 2}}}
	worker := func(slot int, edits ...func(*corev1.Pod)) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name:   naming.Pod("demo", "demo-uid", naming.Place{Group: "cpu", Slot: slot, Epoch: 1}),
			Labels: naming.PodLabels("demo", naming.Place{Group: "cpu", Slot: slot, Epoch: 1}), CreationTimestamp: metav1.Unix(ago(600), 0),
		}}
		for _, edit := range edits {
			edit(pod)
		}
		return pod
	}
	name := func(slot int) string { return worker(slot).Name }
	failed := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	onHost := func(p *corev1.Pod) { p.Spec.HostNetwork, p.Spec.NodeName = true, "node-0" }
	fresh := func(p *corev1.Pod) { p.CreationTimestamp = metav1.Unix(ago(5), 0) }
	for what, test := range map[string]struct {
		named []string
		pods  []*corev1.Pod
		away  bool
		want  bool
	}{
		"both are there":                          {nil, []*corev1.Pod{worker(0), worker(1)}, false, false},
		"the one that is named is there":          {[]string{name(0)}, []*corev1.Pod{worker(0), worker(1)}, false, false},
		"it failed":                               {[]string{name(0)}, []*corev1.Pod{worker(0, failed), worker(1)}, false, true},
		"its node is lost":                        {[]string{name(0)}, []*corev1.Pod{worker(0)}, true, true},
		"on its host's network, its node is lost": {[]string{"node-0"}, []*corev1.Pod{worker(0, onHost)}, true, true},
		"another failed":                          {[]string{name(0)}, []*corev1.Pod{worker(0), worker(1, failed)}, false, false},
		"it was replaced":                         {[]string{name(0)}, []*corev1.Pod{worker(0, fresh), worker(1)}, false, true},
		"it is missing":                           {[]string{name(1)}, []*corev1.Pod{worker(0)}, false, true},
		"a name that no worker has":               {[]string{"demo-cpu-7-x", name(7)}, []*corev1.Pod{worker(0), worker(1)}, false, false},
		"none is named, and one is missing":       {nil, []*corev1.Pod{worker(0)}, false, true},
		"none is named, and one failed":           {nil, []*corev1.Pod{worker(0), worker(1, failed)}, false, true},
		"one that is named is there, one missing": {[]string{name(0)}, []*corev1.Pod{worker(0)}, false, false},
	} {
		search := lossSearch{cluster: cluster, named: test.named, since: now, there: map[string]bool{}, epochs: map[int64]bool{}}
		for _, pod := range test.pods {
			search.add(pod, test.away)
		}
		if have := search.isFound(); have != test.want {
			t.Errorf("%s: %t, want %t", what, have, test.want)
		}
	}
}
