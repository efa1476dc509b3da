package integration

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/bench/jobs"
)

// verdict holds the statuses of jobs against what their heads did.
type verdict struct {
	*storm
	jobs.Submissions
	// runs are all there were by job and attempt, alive the heads that live by their session.
	runs  map[string][]fakehead.Run
	alive map[string]*headclient.Jobs
}

// judge counts when all jobs have ended and nobody does anything any more.
func (s *storm) judge(many int) jobs.Submissions {
	t := s.t
	t.Helper()
	s.crew.leader.quiet()
	v := &verdict{storm: s, runs: map[string][]fakehead.Run{}, alive: map[string]*headclient.Jobs{}}
	v.Jobs, v.Faults, v.Attempts, v.Ends = many, s.counts, map[string]int{}, map[string]int{}
	for _, one := range shared.heads.of(s.namespace) {
		for fault, times := range one.proxy.Counts() {
			v.Faults["request: "+fault.String()] += times
		}
		for _, run := range one.runs() {
			key := run.Metadata["heliostat.dev/job-uid"] + "/" + run.Metadata["heliostat.dev/attempt"]
			v.runs[key] = append(v.runs[key], run)
			v.Runs++
		}
		if one.lives() {
			token := one.token
			talk, err := headclient.DialJobs(one.fake.JobsAddress(), headclient.Options{Token: func(context.Context) (string, error) { return token, nil }})
			must(t, err)
			v.alive[one.fake.Session()] = talk
			defer func() { _ = talk.Close() }()
		}
	}
	for key, runs := range v.runs {
		if len(runs) > 1 {
			v.Doubled += len(runs) - 1
			v.Wrong = append(v.Wrong, fmt.Sprintf("attempt %s ran %d times: %+v", key, len(runs), runs))
		}
	}
	var list v1beta1.ClusterJobList
	must(t, shared.List(t.Context(), &list, client.InNamespace(s.namespace)))
	if len(list.Items) != many {
		t.Errorf("there are %d jobs, %d were made", len(list.Items), many)
	}
	for i := range list.Items {
		v.job(&list.Items[i])
	}
	return v.Submissions
}

// wrong notes what is wrong with a job, for the first few with what was logged of it.
func (v *verdict) wrong(job *v1beta1.ClusterJob, format string, values ...any) {
	if len(v.Wrong) < 5 {
		v.t.Logf("%s:\n%+v\n%s", job.Name, job.Status, v.crew.told(job.Name+`"`))
	}
	v.Wrong = append(v.Wrong, fmt.Sprintf("%s (%s): ", job.Name, job.Spec.Entrypoint)+fmt.Sprintf(format, values...))
}

// job holds the status of a job against what its heads did.
func (v *verdict) job(job *v1beta1.ClusterJob) {
	v.Ends[job.Status.Phase]++
	v.mu.Lock()
	first := v.ends[job.UID]
	v.mu.Unlock()
	if job.Status.Phase != first {
		v.wrong(job, "it ended as %s, and now is %s", first, job.Status.Phase)
	}
	attempts := job.Status.Attempts
	if len(attempts) == 0 {
		v.Lost++
		v.wrong(job, "it is %s without an attempt", job.Status.Phase)
		return
	}
	for i := range attempts {
		v.Attempts[attempts[i].Reason]++
		if attempts[i].Number != int32(i+1) {
			v.wrong(job, "attempt %d of the status is number %d", i+1, attempts[i].Number)
		}
		v.attempt(job, &attempts[i], i == len(attempts)-1)
	}
	if key := fmt.Sprintf("%s/%d", job.UID, len(attempts)+1); len(v.runs[key]) > 0 {
		v.wrong(job, "attempt %d ran, which the status does not know", len(attempts)+1)
	}
	succeeded := attempts[len(attempts)-1].Reason == reason.JobSucceeded.Code
	if succeeded != (job.Status.Phase == v1beta1.PhaseSucceeded) {
		v.wrong(job, "it is %s, and its last attempt ended by %s", job.Status.Phase, attempts[len(attempts)-1].Reason)
	}
}

// attempt holds one against its runs.
func (v *verdict) attempt(job *v1beta1.ClusterJob, told *v1beta1.JobAttempt, last bool) {
	runs := v.runs[fmt.Sprintf("%s/%d", job.UID, told.Number)]
	talk, alive := v.alive[told.Session]
	switch told.Reason {
	case reason.JobSucceeded.Code, reason.EntrypointFailed.Code:
		if len(runs) == 0 {
			v.Lost++
			v.wrong(job, "attempt %d ended by %s and never ran", told.Number, told.Reason)
			return
		}
		if job.Spec.Gang != nil {
			v.count("run of a gang")
			if !strings.Contains(string(runs[0].RuntimeEnv), "gcs://heliostat-gang-") { // without which it would not have run
				v.wrong(job, "attempt %d ran without a package: %s", told.Number, runs[0].RuntimeEnv)
			}
		}
		code := exitCode(job.Spec.Entrypoint, int(told.Number))
		// A status that was wiped has lost the session of former attempts.
		if told.Session != "" && runs[0].Session != told.Session || told.ExitCode == nil || *told.ExitCode != code || (code == 0) != (told.Reason == reason.JobSucceeded.Code) {
			v.wrong(job, "attempt %d ran in session %s and ended with %d; the status says %+v", told.Number, runs[0].Session, code, told)
		}
		if alive && last {
			v.compare(job, told, talk)
		}
	case reason.HeadLost.Code, reason.ClusterGone.Code:
		if alive {
			v.wrong(job, "attempt %d is taken for lost, and its head lives in the same session", told.Number)
		}
	default:
		v.wrong(job, "attempt %d ended by %s: %s; it ran %d times", told.Number, told.Reason, told.Message, len(runs))
	}
}

// compare asks a head that lives what it knows of an attempt.
func (v *verdict) compare(job *v1beta1.ClusterJob, told *v1beta1.JobAttempt, talk *headclient.Jobs) {
	known, err := talk.Job(v.t.Context(), job.Status.SubmissionID)
	must(v.t, err)
	if (known.Status == headclient.JobSucceeded) != (told.Reason == reason.JobSucceeded.Code) || !known.Status.Over() {
		v.wrong(job, "its head says %s, the status %s", known.Status, told.Reason)
	}
	v.count("last attempt whose head was asked again")
	if known.Metadata["heliostat.dev/job-uid"] != string(job.UID) {
		v.wrong(job, "its head knows it for another's: %v", known.Metadata)
	}
}
