package job

import (
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// reports is that the launcher of the bound gang says something, in a state.
func reports(state launcher.State, edits ...func(*launcher.Report)) func(*Seen) {
	return func(s *Seen) {
		s.Answer.Reported = true
		s.Answer.Report = launcher.Report{State: state, Round: 1, Replicas: 2, Ready: 2}
		if state != launcher.Gathering {
			s.Answer.Report.Started = now.Add(-30 * time.Second)
		}
		for _, edit := range edits {
			edit(&s.Answer.Report)
		}
	}
}

func waiting(text string) func(*launcher.Report) {
	return func(r *launcher.Report) { r.Ready, r.Waiting = 1, text }
}

// TestGangs: what a bound gang is at follows from its report, and without one from the time that its driver runs.
func TestGangs(t *testing.T) {
	running, bound := says(headclient.JobRunning), bound()
	hold(t, map[string]guarded{
		"pending":            {train(gang), seen(bound, says(headclient.JobPending)), "Submitting JobPending ask"},
		"no report yet":      {train(gang, runsSince(5)), seen(bound, running), "Gathering GangGathering ask"},
		"no report for long": {train(gang, runsSince(61)), seen(bound, running), "Running JobRunning ask"},
		"gathers":            {train(gang, runsSince(61)), seen(bound, running, reports(launcher.Gathering)), "Gathering GangGathering ask"},
		"runs":               {train(gang, runsSince(5)), seen(bound, running, reports(launcher.Running)), "Running JobRunning ask"},
		"ends":               {train(gang, runsSince(5)), seen(bound, running, reports(launcher.Ended)), "Running JobRunning ask"},
		"was told to gather, and the report cannot be read": {
			train(gang, runsSince(500), toldPhase(v1beta1.PhaseGathering)), seen(bound, running), "Gathering GangGathering ask",
		},
		"was told to run, and the head is not heard": {
			train(gang, runsSince(500), toldPhase(v1beta1.PhaseRunning)), seen(bound, func(s *Seen) { s.Heard = false }), "Running JobRunning ask",
		},
	})
}

// toldPhase is that the status tells of the first attempt of a gang, by a report, in a phase.
func toldPhase(phase string) edit {
	return func(job *v1beta1.ClusterJob) {
		job.Status.Attempt, job.Status.Phase, job.Status.Gang = 1, phase, &v1beta1.GangStatus{Replicas: 2}
	}
}

// TestHold: no attempt follows while processes of the last one may run.
func TestHold(t *testing.T) {
	retried := func(j *v1beta1.ClusterJob) {
		j.Spec.Retry = &v1beta1.Retry{Limit: 9, BackoffSeconds: number(0)}
	}
	for name, test := range map[string]struct {
		edits []func(*Seen)
		want  int64
	}{
		"it ended by itself":            {[]func(*Seen){says(headclient.JobFailed, exits(3))}, 0},
		"it ended itself":               {[]func(*Seen){says(headclient.JobFailed, exits(signalLost)), placeLost}, 0},
		"it was killed":                 {[]func(*Seen){says(headclient.JobFailed, exits(-9))}, 55},
		"it was lost":                   {[]func(*Seen){says(headclient.JobFailed, failsWith("JOB_SUPERVISOR_ACTOR_DIED"))}, 55},
		"it was lost after its end":     {[]func(*Seen){says(headclient.JobFailed, failsWith("JOB_SUPERVISOR_ACTOR_DIED")), reports(launcher.Ended)}, 0},
		"it never began":                {[]func(*Seen){says(headclient.JobFailed, failsWith("JOB_SUPERVISOR_ACTOR_START_FAILURE"))}, 0},
		"its environment was not ready": {[]func(*Seen){says(headclient.JobFailed, failsWith("RUNTIME_ENV_SETUP_FAILURE"))}, 0},
		"its head is gone":              {[]func(*Seen){noHead}, 55},
	} {
		plan := decide(train(gang, retried), seen(bound(), test.edits...))
		have := int64(0)
		if plan.Record != nil && plan.Record.Hold > 0 {
			have = plan.Record.Hold - now.Unix()
		}
		if plan.Record == nil || have != test.want {
			t.Errorf("%s: held for %d s, want %d; %s", name, have, test.want, gist(plan))
		}
		if plain := decide(train(retried), seen(bound(), test.edits...)); plain.Record == nil || plain.Record.Hold != 0 {
			t.Errorf("%s: a plain job is held: %s", name, gist(plain))
		}
	}
	held := func(r *Record) {
		r.Attempt, r.Last, r.Bound, r.Past, r.Hold = 2, binding(100), Bound{}, []Past{past(1, "DriverLost", 30)}, ago(-20)
	}
	over := func(r *Record) { held(r); r.Hold = ago(1) }
	hold(t, map[string]guarded{
		"held":           {train(gang, toldOf(1)), seen(bound(held)), "Pending Stopping"},
		"held no longer": {train(gang, toldOf(1)), seen(bound(over)), `Submitting Submitting record(2 own 1 bound "session_1" ending "" outcome "") finalizer ask submit`},
		"suspended":      {train(gang, suspend, toldOf(1)), seen(bound(held)), `Suspending Stopping record(2 own 1 bound "" ending "" outcome "")`},
	})
	entry := entryOfJob(train(gang, recorded(bound(held))))
	if !entry.isHolding(now) || entry.isWaiting(now) || entry.isHolding(now.Add(time.Minute)) || !entry.isWaiting(now.Add(time.Minute)) {
		t.Errorf("in the queue it is %+v", entry)
	}
}

// TestTooLarge_WaitsUnbound: a gang that its cluster can never hold is not bound, and one that gathers there is stopped.
func TestTooLarge_WaitsUnbound(t *testing.T) {
	huge := func(j *v1beta1.ClusterJob) { gang(j); j.Spec.Gang.Roles[0].Resources = cpus("64") }
	running := says(headclient.JobRunning)
	stopping := `record(1 own 1 bound "session_1" ending "GangLost" outcome "") ask stop`
	hold(t, map[string]guarded{
		"waits":                      {train(huge), seen(newRecord()), "Pending GangTooLarge"},
		"waits, before its cluster":  {train(own, huge), seen(newRecord(), noCluster), "Pending GangTooLarge"},
		"workers are out of date":    {train(huge), seen(newRecord(), func(s *Seen) { s.Cluster.Status.Groups = []v1beta1.GroupStatus{{Name: "cpu", Outdated: 1}} }), `Submitting Submitting record(1 own 1 bound "session_1" ending "" outcome "") finalizer ask submit`},
		"gathers there":              {train(huge, runsSince(5)), seen(bound(), running, reports(launcher.Gathering)), "Gathering Stopping " + stopping},
		"gathers, status is older":   {train(huge, runsSince(5)), seen(bound(), running, reports(launcher.Gathering), func(s *Seen) { s.Cluster.Generation = 2 }), "Gathering GangGathering ask"},
		"runs there":                 {train(huge, runsSince(5)), seen(bound(), running, reports(launcher.Running)), "Running JobRunning ask"},
		"was stopped, and waits":     {train(huge), seen(bound(ending(reason.GangLost, 5)), says(headclient.JobStopped), reports(launcher.Ended)), `Retrying Retrying record(2 own 1 bound "" ending "" outcome "")`},
		"a deadline of the waiting":  {train(huge, func(j *v1beta1.ClusterJob) { j.Spec.StartDeadlineSeconds = number(30) }), seen(newRecord()), `Failed StartDeadlineExceeded record(1 own 1 bound "" ending "" outcome "Failed")`},
		"its queue keeps no quota":   {train(own, huge, queuedIn), seen(newRecord(), noCluster, inQueue(false)), `Pending GangTooLarge record(1 own 1 bound "" ending "" outcome "")`},
		"a plain job of that size":   {train(func(j *v1beta1.ClusterJob) { j.Spec.EntrypointResources = cpus("64") }), seen(newRecord()), `Submitting Submitting record(1 own 1 bound "session_1" ending "" outcome "") finalizer ask submit`},
		"a smaller one goes there":   {train(gang), seen(newRecord()), `Submitting Submitting record(1 own 1 bound "session_1" ending "" outcome "") finalizer ask submit`},
		"on its own cluster it also": {train(own, gang), seen(newRecord()), `Submitting Submitting record(1 own 1 bound "session_1" ending "" outcome "") finalizer ask submit`},
	})
}

// queuedIn labels a job with a queue of Kueue.
func queuedIn(job *v1beta1.ClusterJob) {
	job.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "team"}
}

// TestGangDeadlines: the first wait is bounded by startDeadlineSeconds, else by activeDeadlineSeconds from when the driver ran. Other
// deadlines count from the first process on.
func TestGangDeadlines(t *testing.T) {
	start := func(j *v1beta1.ClusterJob) { j.Spec.StartDeadlineSeconds = number(50) }
	active := func(j *v1beta1.ClusterJob) { j.Spec.ActiveDeadlineSeconds = number(50) }
	attempt := func(j *v1beta1.ClusterJob) { j.Spec.Retry = &v1beta1.Retry{AttemptDeadlineSeconds: number(50)} }
	running, gathers, runs := says(headclient.JobRunning), reports(launcher.Gathering), reports(launcher.Running)
	stops := func(code string) string {
		return `Stopping record(1 own 1 bound "session_1" ending "` + code + `" outcome "") ask stop`
	}
	hold(t, map[string]guarded{
		"start, gathering":             {train(gang, start, runsSince(55)), seen(bound(), running, gathers), "Gathering " + stops("StartDeadlineExceeded")},
		"start, running":               {train(gang, start, runsSince(55)), seen(bound(), running, runs), "Running JobRunning ask"},
		"active, gathering":            {train(gang, active, runsSince(55)), seen(bound(), running, gathers), "Gathering " + stops("DeadlineExceeded")},
		"active, gathering not long":   {train(gang, active, runsSince(45)), seen(bound(), running, gathers), "Gathering GangGathering ask"},
		"both, gathering":              {train(gang, active, func(j *v1beta1.ClusterJob) { j.Spec.StartDeadlineSeconds = number(500) }, runsSince(55)), seen(bound(), running, gathers), "Gathering GangGathering ask"},
		"active, not running for long": {train(gang, active, runsSince(55)), seen(bound(), running, runs), "Running JobRunning ask"},
		"attempt, gathering":           {train(gang, attempt, runsSince(55)), seen(bound(), running, gathers), "Gathering GangGathering ask"},
		"attempt, not running for long": {
			train(gang, attempt, runsSince(55)), seen(bound(), running, runs), "Running JobRunning ask",
		},
		"attempt, running for long": {
			train(gang, attempt, runsSince(55)), seen(bound(), running, reports(launcher.Running, func(r *launcher.Report) { r.Started = now.Add(-52 * time.Second) })),
			"Running " + stops("AttemptDeadlineExceeded"),
		},
		"attempt, a later one that hides when it began, but may wait for more places": {
			train(gang, attempt, runsSince(720), func(j *v1beta1.ClusterJob) { j.Spec.Gang.Roles[0].Replicas, j.Spec.Gang.Roles[0].MinReplicas = 2, 1 }),
			seen(bound(func(r *Record) { r.Ran = ago(5000) }), running, gathers), "Gathering GangGathering ask",
		},
		"attempt, a later one that hides when it began": {
			train(gang, attempt, runsSince(720)), seen(bound(func(r *Record) { r.Ran = ago(5000) }), running, reports(launcher.Running, func(r *launcher.Report) { r.Started = time.Time{} })),
			"Running " + stops("AttemptDeadlineExceeded"),
		},
	})
}

// TestGrace: all that ends a gang leaves its processes their grace, and a plain job is as it was.
func TestGrace(t *testing.T) {
	graceful := func(j *v1beta1.ClusterJob) { gang(j); j.Spec.Gang.GracePeriodSeconds = number(300) }
	for name, test := range map[string]struct {
		edits []edit
		code  reason.Reason
		want  time.Duration
	}{
		"shared, plain":           {nil, reason.DeadlineExceeded, 2 * time.Minute},
		"shared, short grace":     {[]edit{gang}, reason.DeadlineExceeded, 2 * time.Minute},
		"shared, long grace":      {[]edit{graceful}, reason.DeadlineExceeded, 310 * time.Second},
		"own, plain, suspended":   {[]edit{own}, reason.JobSuspended, time.Second},
		"own, gang, suspended":    {[]edit{own, gang}, reason.JobSuspended, 40 * time.Second},
		"own, gang, its deadline": {[]edit{own, graceful}, reason.DeadlineExceeded, 310 * time.Second},
	} {
		v := view{job: train(test.edits...), record: bound(ending(test.code, 0)), now: now}
		if have := stopPatience(v); have != test.want {
			t.Errorf("%s: %s, want %s", name, have, test.want)
		}
	}
	edited := view{job: train(), record: bound(ending(reason.JobSuspended, 0), func(r *Record) { r.Bound.Grace = 300 }), now: now}
	if have := stopPatience(edited); have != 310*time.Second || !mayRunOn(edited, result{}) {
		t.Errorf("edited while it is suspended, it is waited for %s", have)
	}
	hold(t, map[string]guarded{
		"a gang on its own cluster is stopped before it goes": {
			train(own, gang, deleted(10)), seen(bound(), says(headclient.JobRunning)), " Stopping finalizer ask stop",
		},
		"a gang on its own cluster that does not end": {
			train(own, gang, deleted(41)), seen(bound(), says(headclient.JobRunning)), ` Stopping record(1 own 1 bound "session_1" ending "" outcome "")`,
		},
	})
}

// TestWarnOfGrace: where something gives a gang less than its grace, the message says so.
func TestWarnOfGrace(t *testing.T) {
	cluster := demo()
	cluster.Spec.WorkerGroups[0].DrainSeconds = number(20)
	shared, alone := train(gang), train(own, gang)
	for grace, want := range map[int32]string{
		10: "", 30: " (gracePeriodSeconds is 30; drainSeconds of group cpu gives 20 s)",
		60: " (gracePeriodSeconds is 60; drainSeconds of group cpu gives 20 s, an eviction gives 45 s)",
	} {
		shared.Spec.Gang.GracePeriodSeconds = &grace
		if have := warnOfGrace(&shared.Spec, cluster); have != want {
			t.Errorf("a grace of %d s: %q, want %q", grace, have, want)
		}
	}
	alone.Spec.Gang.GracePeriodSeconds = number(60)
	if have := warnOfGrace(&alone.Spec, demo()); have != "" {
		t.Errorf("on its own cluster: %q", have)
	}
}

// TestWarnOfTraffic: where a cluster that the job does not own encrypts its traffic, the message says what is left out.
func TestWarnOfTraffic(t *testing.T) {
	const want = " (network.encryption does not encrypt what the processes of a gang send to each other)"
	encrypted := func(s *Seen) { s.Cluster.Spec.Network = &v1beta1.Network{Encryption: v1beta1.Enabled} }
	for name, test := range map[string]struct {
		job  *v1beta1.ClusterJob
		edit func(*Seen)
		want string
	}{
		"encrypted":      {train(gang), encrypted, want},
		"not encrypted":  {train(gang), func(*Seen) {}, ""},
		"of its own":     {train(own, gang), encrypted, ""},
		"gone meanwhile": {train(gang), noCluster, ""},
	} {
		seen := seen(bound(), says(headclient.JobRunning), reports(launcher.Running), test.edit)
		v := view{job: test.job, record: bound(), now: now, seen: seen}
		if have := explainGang(v, v1beta1.PhaseRunning).Text; have != reason.JobRunning.Of(1, v.clusterName()+test.want).Text {
			t.Errorf("%s: %q", name, have)
		}
	}
}
