package job

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// TestFate: what has become of a bound attempt, by what is seen of it.
func TestFate(t *testing.T) {
	restarted := func(s *Seen) { s.Answer.Session.Name = "session_2" }
	unread := func(s *Seen) { s.Answer.Tailed = false }
	unknown := func(seconds int64) func(*Seen) {
		return func(s *Seen) { s.Answer.Asked = time.Unix(ago(seconds), 0) }
	}
	taken := func(s *Seen) { s.Answer.Submitted = now.Add(-time.Minute) }
	over := says(headclient.JobSucceeded)
	for name, test := range map[string]struct {
		record Record
		edits  []func(*Seen)
		want   string // "" goes on
	}{
		"runs":                           {bound(), []func(*Seen){says(headclient.JobRunning)}, ""},
		"silent":                         {bound(), []func(*Seen){says(headclient.JobRunning), silent(1000)}, ""},
		"not heard":                      {bound(), []func(*Seen){func(s *Seen) { s.Heard = false }}, ""},
		"over":                           {bound(), []func(*Seen){over}, "JobSucceeded Complete"},
		"over, lines on their way":       {bound(), []func(*Seen){over, unread}, ""},
		"over, head silent":              {bound(), []func(*Seen){over, unread, silent(1)}, ""},
		"over, head gone":                {bound(), []func(*Seen){over, unread, func(s *Seen) { s.Head = nil }}, "JobSucceeded Lost"},
		"over, lines cut":                {bound(), []func(*Seen){over, func(s *Seen) { s.Answer.Tail.Truncated = true }}, "JobSucceeded Truncated"},
		"over, lines lost":               {bound(), []func(*Seen){over, func(s *Seen) { s.Answer.LogLost = true }}, "JobSucceeded Lost"},
		"over, then another session":     {bound(), []func(*Seen){over, restarted}, "JobSucceeded Complete"},
		"another session":                {bound(), []func(*Seen){restarted}, "HeadLost Lost"},
		"another session, it ran":        {bound(), []func(*Seen){says(headclient.JobRunning), restarted}, "HeadLost Lost"},
		"container ended":                {bound(), []func(*Seen){silent(1), ended(5)}, "HeadLost Lost"},
		"container ended, answers":       {bound(), []func(*Seen){says(headclient.JobRunning), ended(5)}, ""},
		"container ended before":         {bound(), []func(*Seen){silent(1), ended(1000)}, ""},
		"over, then the container ended": {bound(), []func(*Seen){over, silent(1), ended(5)}, "JobSucceeded Complete"},
		"head gone":                      {bound(), []func(*Seen){noHead}, "HeadLost Lost confirm"},
		"cluster gone":                   {bound(), []func(*Seen){noCluster}, "ClusterGone Lost confirm"},
		"cluster gone, head answers":     {bound(), []func(*Seen){says(headclient.JobRunning), func(s *Seen) { s.Cluster = nil }}, ""},
		"another cluster of the name":    {bound(), []func(*Seen){noHead, func(s *Seen) { s.Cluster.UID = "another" }}, "ClusterGone Lost confirm"},
		"foreign":                        {bound(), []func(*Seen){func(s *Seen) { s.Answer.Foreign = true }}, "SubmissionForeign Complete"},
		"refused":                        {bound(), []func(*Seen){func(s *Seen) { s.Answer.Refused = "no" }}, "SubmissionRefused Complete"},
		"not known yet":                  {bound(), []func(*Seen){unknown(0)}, ""},
		"not known any more":             {bound(), []func(*Seen){unknown(0), taken}, "RunNotFound Lost"},
		"ran, as the status tells":       {bound(func(r *Record) { r.Attempt = 2 }), []func(*Seen){unknown(0)}, "RunNotFound Lost"},
		"not known before it began":      {bound(func(r *Record) { r.Attempt = 2 }), []func(*Seen){unknown(50)}, ""},
		"never got there":                {bound(ending(reason.DeadlineExceeded, 30)), []func(*Seen){unknown(0)}, "DeadlineExceeded Lost"},
		"may yet get there":              {bound(ending(reason.DeadlineExceeded, 30)), []func(*Seen){unknown(41)}, ""},
		"never got there, so far as yet": {bound(), []func(*Seen){unknown(0)}, ""},
	} {
		s := view{job: train(ranBefore(2)), seen: seen(test.record, test.edits...), now: now, record: test.record}
		f, is := judgeAttempt(s)
		have := ""
		if is {
			have = f.Code + " " + string(f.log)
		}
		if is && f.gone {
			have += " confirm"
		}
		if have != test.want {
			t.Errorf("%s: %q, want %q", name, have, test.want)
		}
	}
}

// TestDecide_LooksAgainBeforeRunNotFound: an answer that says the same once more wakes no job.
func TestDecide_LooksAgainBeforeRunNotFound(t *testing.T) {
	s := seen(bound(), func(s *Seen) { s.Answer.Asked = time.Unix(ago(50), 0) })
	if plan := decide(train(ranBefore(1)), s); plan.Done != nil || plan.Wake <= 0 || plan.Wake > lookEvery {
		t.Errorf("it looks again in %s, and has ended: %t", plan.Wake, plan.Done != nil)
	}
}

// ranBefore has the status tell that an attempt began to run.
func ranBefore(number int32) edit {
	return func(job *v1beta1.ClusterJob) {
		at := metav1.Unix(ago(50), 0)
		job.Status.Attempts = []v1beta1.JobAttempt{{Number: number, StartTime: &at}}
	}
}

// ended has the kubelet tell that the head's Ray container ended so many seconds ago, and
// waits to be started again.
func ended(seconds int64) func(*Seen) {
	return func(s *Seen) {
		head := s.Head.DeepCopy()
		head.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name:                 v1beta1.ContainerRay,
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Unix(ago(seconds), 0)}},
		}}
		s.Head = head
	}
}

// TestJudge: how an end that Ray tells of is named and counted, and what of it where it was
// being stopped.
func TestJudge(t *testing.T) {
	type job = headclient.Job
	for name, test := range map[string]struct {
		status      headclient.JobStatus
		edit        func(*job)
		want, meant string
		kind        kind
	}{
		"succeeded":             {headclient.JobSucceeded, exits(0), "JobSucceeded", "JobSucceeded", success},
		"exit code":             {headclient.JobFailed, exits(3), "EntrypointFailed", "EntrypointFailed", failure},
		"signal":                {headclient.JobFailed, exits(-9), "EntrypointFailed", "EntrypointFailed", failure},
		"stopped":               {headclient.JobStopped, func(*job) {}, "StoppedInRay", "DeadlineExceeded", final},
		"runtime environment":   {headclient.JobFailed, failsWith("RUNTIME_ENV_SETUP_FAILURE"), "RuntimeEnvFailed", "RuntimeEnvFailed", failure},
		"supervisor died":       {headclient.JobFailed, failsWith("JOB_SUPERVISOR_ACTOR_DIED"), "DriverLost", "DeadlineExceeded", loss},
		"no room":               {headclient.JobFailed, failsWith("JOB_SUPERVISOR_ACTOR_START_TIMEOUT"), "DriverNotStarted", "DeadlineExceeded", loss},
		"not started":           {headclient.JobFailed, failsWith("JOB_SUPERVISOR_ACTOR_START_FAILURE"), "DriverNotStarted", "DeadlineExceeded", loss},
		"a wrong type":          {headclient.JobFailed, startFailure("TypeError: runtime_env['pip'] must be of type str or list, got <class 'int'>"), "JobFailed", "DeadlineExceeded", failure},
		"a negative amount":     {headclient.JobFailed, startFailure("ValueError: The keyword 'num_cpus' must be >= 0\n  in the options"), "JobFailed", "DeadlineExceeded", failure},
		"no GCS":                {headclient.JobFailed, startFailure("ValueError: a\n\nDuring handling of the above exception, another exception occurred:\n\nray.exceptions.RpcError: Timed out"), "DriverNotStarted", "DeadlineExceeded", loss},
		"cannot be placed":      {headclient.JobFailed, failsWith("JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE"), "DriverNotStarted", "DeadlineExceeded", loss},
		"supervisor, who knows": {headclient.JobFailed, failsWith("JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE"), "DriverNotStarted", "DeadlineExceeded", loss},
		"a word yet to come":    {headclient.JobFailed, failsWith("SOMETHING_NEW"), "JobFailed", "JobFailed", failure},
		"no word":               {headclient.JobFailed, func(*job) {}, "JobFailed", "JobFailed", failure},
	} {
		said := job{Status: test.status}
		test.edit(&said)
		for record, want := range map[string]string{"": test.want, "DeadlineExceeded": test.meant} {
			s := view{job: train(), record: bound(func(r *Record) { r.Ending = record })}
			if have := nameEnd(s, said).Code; have != want {
				t.Errorf("%s, ending %q: %s, want %s", name, record, have, want)
			}
		}
		if have := classOf(test.want); have != test.kind {
			t.Errorf("%s is counted as %d, want %d", test.want, have, test.kind)
		}
	}
	for _, code := range []string{reason.JobSuspended.Code, reason.StopAbandoned.Code, "SomethingOfALaterVersion"} {
		if classOf(code) != neutral {
			t.Errorf("%s counts", code)
		}
	}
}

// startFailure is that Ray could not start what it has around the driver, with the end of its traceback.
func startFailure(ends string) func(*headclient.Job) {
	return func(job *headclient.Job) {
		job.ErrorType = "JOB_SUPERVISOR_ACTOR_START_FAILURE"
		job.Message = "Failed to start supervisor actor train-1: 'because'. Full traceback:\nTraceback (most recent call last):\n" +
			"  File \"job_manager.py\", line 590, in submit_job\n    supervisor = self._supervisor_actor_cls.options(\n" + ends + "\n"
	}
}

func TestNameEnd_HasTheException(t *testing.T) {
	const frames = "last available logs:\nTraceback (most recent call last):\n  File \"<string>\", line 1\n    ^^^\n"
	for name, c := range map[string]struct {
		errorType, message, want string
		exits                    bool
	}{
		"of a driver":                   {"JOB_ENTRYPOINT_COMMAND_ERROR", frames + "ValueError: column price missing", "the entrypoint ended with exit code 3: ValueError: column price missing. Check", true},
		"of a driver that went on":      {"JOB_ENTRYPOINT_COMMAND_ERROR", frames + "ValueError: a\nit does not matter", "the entrypoint ended with exit code 3. Check", true},
		"of a driver without one":       {"JOB_ENTRYPOINT_COMMAND_ERROR", "last available logs:\nbye", "the entrypoint ended with exit code 3. Check", true},
		"of a runtime environment":      {"RUNTIME_ENV_SETUP_FAILURE", frames + "RuntimeError: pip\nERROR: no such package", "set up: RuntimeError: pip\nERROR: no such package. Correct", false},
		"of an environment without one": {"RUNTIME_ENV_SETUP_FAILURE", "the agent is away", "set up: the agent is away. Correct", false},
	} {
		said := headclient.Job{Status: headclient.JobFailed, ErrorType: c.errorType, Message: c.message}
		if c.exits {
			exits(3)(&said)
		}
		have := nameEnd(view{job: train(), record: bound()}, said).Text
		if normal := strings.Join(strings.Fields(have), " "); !strings.Contains(normal, strings.Join(strings.Fields(c.want), " ")) {
			t.Errorf("%s: %q has no %q", name, have, c.want)
		}
	}
}

func TestCut(t *testing.T) {
	if short := "why"; cutText(short) != short {
		t.Errorf("%q became %q", short, cutText(short))
	}
	for _, long := range []string{strings.Repeat("a", 600), strings.Repeat("ü", 400), strings.Repeat("日", 300), "a" + strings.Repeat("ü", 400), strings.Repeat("\xff", 600)} {
		have := cutText(long)
		if len([]rune(have)) > mostText+1 || !strings.HasPrefix(have, "…") || utf8.ValidString(long) && !strings.HasSuffix(long, strings.TrimPrefix(have, "…")) {
			t.Errorf("%q… became %q", long[:10], have)
		}
	}
}

func TestExitCodes(t *testing.T) {
	one, two := int32(1), int32(2)
	for name, test := range map[string]struct {
		codes *v1beta1.ExitCodes
		exit  *int32
		want  bool
	}{
		"any":                  {nil, &one, true},
		"any, none":            {nil, nil, true},
		"named":                {&v1beta1.ExitCodes{In: []int32{1, 3}}, &one, true},
		"not named":            {&v1beta1.ExitCodes{In: []int32{1, 3}}, &two, false},
		"named, none":          {&v1beta1.ExitCodes{In: []int32{1, 3}}, nil, false},
		"excluded":             {&v1beta1.ExitCodes{NotIn: []int32{1, 3}}, &one, false},
		"not excluded":         {&v1beta1.ExitCodes{NotIn: []int32{1, 3}}, &two, true},
		"cannot be excluded":   {&v1beta1.ExitCodes{NotIn: []int32{1, 3}}, nil, true},
		"neither names a code": {&v1beta1.ExitCodes{}, &one, true},
	} {
		if have := isRetriedExit(test.codes, test.exit); have != test.want {
			t.Errorf("%s: %v", name, have)
		}
	}
}

// TestCounts: which ends are followed by another attempt.
func TestCounts(t *testing.T) {
	for name, test := range map[string]struct {
		retry            *v1beta1.Retry
		failures, losses int32 // before
		kind             kind
		want             bool
	}{
		"without retry":                {nil, 0, 0, failure, false},
		"within the limit":             {&v1beta1.Retry{Limit: 2}, 1, 0, failure, true},
		"over the limit":               {&v1beta1.Retry{Limit: 2}, 2, 0, failure, false},
		"losses count too":             {&v1beta1.Retry{Limit: 2}, 1, 1, failure, false},
		"a loss counts":                {&v1beta1.Retry{Limit: 2}, 2, 0, loss, false},
		"a loss, counted apart":        {&v1beta1.Retry{Limit: 0, InfrastructureLimit: number(1)}, 5, 0, loss, true},
		"a loss too many":              {&v1beta1.Retry{Limit: 5, InfrastructureLimit: number(1)}, 0, 1, loss, false},
		"a failure, losses apart":      {&v1beta1.Retry{Limit: 1, InfrastructureLimit: number(1)}, 0, 9, failure, true},
		"no losses":                    {&v1beta1.Retry{Limit: 5, InfrastructureLimit: number(0)}, 0, 0, loss, false},
		"of another exit code":         {&v1beta1.Retry{Limit: 5, OnExitCodes: &v1beta1.ExitCodes{In: []int32{7}}}, 0, 0, failure, false},
		"a loss has no code to select": {&v1beta1.Retry{Limit: 5, OnExitCodes: &v1beta1.ExitCodes{In: []int32{7}}}, 0, 0, loss, true},
	} {
		record := bound(func(r *Record) { r.Failures, r.Losses = test.failures, test.losses })
		code := int32(1)
		record.countEnd(test.kind)
		if have := isRetried(test.retry, &record, test.kind, &code); have != test.want {
			t.Errorf("%s: %v", name, have)
		}
		if record.Failures+record.Losses != test.failures+test.losses+1 {
			t.Errorf("%s: %d failures and %d losses after %d and %d", name, record.Failures, record.Losses, test.failures, test.losses)
		}
	}
}

func TestBackoff(t *testing.T) {
	seconds := func(n int32) time.Duration { return time.Duration(n) * time.Second }
	for name, test := range map[string]struct {
		retry *v1beta1.Retry
		count int32
		last  string
		want  time.Duration
	}{
		"without retry":      {nil, 1, "EntrypointFailed", 0},
		"first":              {&v1beta1.Retry{}, 1, "EntrypointFailed", seconds(10)},
		"second":             {&v1beta1.Retry{}, 2, "HeadLost", seconds(20)},
		"sixth":              {&v1beta1.Retry{}, 6, "EntrypointFailed", seconds(320)},
		"seventh":            {&v1beta1.Retry{}, 7, "EntrypointFailed", seconds(360)},
		"thousandth":         {&v1beta1.Retry{MaxBackoffSeconds: number(86400)}, 1000, "EntrypointFailed", seconds(86400)},
		"none":               {&v1beta1.Retry{BackoffSeconds: number(0)}, 9, "EntrypointFailed", 0},
		"given":              {&v1beta1.Retry{BackoffSeconds: number(3), MaxBackoffSeconds: number(7)}, 2, "EntrypointFailed", seconds(6)},
		"given, at most":     {&v1beta1.Retry{BackoffSeconds: number(3), MaxBackoffSeconds: number(7)}, 3, "EntrypointFailed", seconds(7)},
		"after a suspension": {&v1beta1.Retry{}, 3, "JobSuspended", 0},
		"nothing has ended":  {&v1beta1.Retry{}, 0, "", 0},
	} {
		record := newRecord()
		record.Failures = test.count
		if test.last != "" {
			record.Past = []Past{past(1, test.last, 0)}
		}
		if have := retryDelay(test.retry, record); have != test.want {
			t.Errorf("%s: %s, want %s", name, have, test.want)
		}
	}
}
