package testkit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
)

// Run is the start of a driver: an effect that nothing undoes.
type Run struct {
	// ID is the submission's; Job and Attempt are whose it is, as its metadata says.
	ID      string
	Job     types.UID
	Attempt int32
	// Head and Session are where it ran.
	Head    types.UID
	Session string
}

// Process is what becomes of a submission.
type Process struct {
	// Waits is for how long Ray has it PENDING, Takes for how long it runs then.
	Waits, Takes time.Duration
	// Stays: Ray never starts it. Hangs: it runs until it is stopped.
	Stays, Hangs bool
	ExitCode     int32
	// ErrorType, if not empty, is Ray's word for a failure that is not the driver's own.
	ErrorType string
	// Stopped: someone stops it in Ray when it has run for as long as it takes.
	Stopped bool
	// Saves is how long it takes to end once it was told to; 0 is a second.
	Saves time.Duration
	// Lines are its output.
	Lines []string
	// Reports are what the launcher of a gang says while its driver runs, in their order. It says a last word when the driver
	// ends by itself or by a stop: Last, or else its latest report once more.
	Reports []Report
	Last    *launcher.Report
}

// Report is what the launcher of a gang says some time after its driver began to run.
type Report struct {
	After time.Duration
	launcher.Report
}

// Jobs stands in for the job APIs of all heads and, as a jobs.Source, for what asks them in
// the background. A head answers while its pod runs; what it knows goes with its session.
type Jobs struct {
	// Program says what becomes of a submission; nil is a short run that succeeds.
	Program func(Run) Process
	// Silent tells of heads that do not answer; nil is none. Unreadable keeps outputs from
	// being read.
	Silent     func(*corev1.Pod) bool
	Unreadable bool
	// Refuse gives why a head does not take a submission; nil and "" are that it does.
	Refuse func(Run) string

	world *World
	// lives are the sessions of heads by their names, with all that they know.
	lives map[string]*life
	// lossy tells which half of the first submission of each name is lost, lost of which
	// names it was; lose, if not nil, has every reply lost and is told of each.
	lossy lossy
	lost  map[string]bool
	lose  func()
	// begun are all runs, in the order in which they began, ended how they ended that did.
	begun []Run
	ended []end
	// queries are what the operator wants and knows; they go with its process.
	queries map[types.NamespacedName]*query
}

// lossy is what of a submission is lost on its way.
type lossy int

const (
	loseNothing lossy = iota
	loseRequest
	loseReply
)

// life is a session of a head.
type life struct {
	name          string
	head, cluster types.UID
	known         map[string]*submission
}

// submission is one that a head took.
type submission struct {
	Run
	Process
	asked   headclient.Submission
	job     headclient.Job
	at      time.Time
	began   time.Time
	stopped time.Time
	// said is how many of its reports it has written, report the latest one, written when there is one.
	said    int
	report  launcher.Report
	written bool
}

func newJobs(w *World) *Jobs {
	j := &Jobs{world: w, lives: map[string]*life{}, lost: map[string]bool{}}
	j.restart()
	return j
}

// Runs are all runs of a job so far, in the order in which they began.
func (j *Jobs) Runs(job types.UID) []Run {
	return slices.DeleteFunc(slices.Clone(j.begun), func(run Run) bool { return run.Job != job })
}

// end is how a run ended.
type end struct {
	Run
	status headclient.JobStatus
}

// Ends are how the runs of a job ended that did not go with their head, in that order.
func (j *Jobs) Ends(job types.UID) []headclient.JobStatus {
	var all []headclient.JobStatus
	for _, one := range j.ended {
		if one.Job == job {
			all = append(all, one.status)
		}
	}
	return all
}

// Place is when the first run of a job began among all runs, from 0; -1 if none did.
func (j *Jobs) Place(job types.UID) int {
	return slices.IndexFunc(j.begun, func(run Run) bool { return run.Job == job })
}

// LoseReplies has the reply to every submission lost from now on, and tells of each; with nil
// they come through again.
func (j *Jobs) LoseReplies(tell func()) { j.lose = tell }

// Change has someone change in Ray, behind the operator's back, what a head knows of a
// submission, to which nothing happens by itself after; the head forgets it where edit gives
// false.
func (j *Jobs) Change(id string, edit func(*headclient.Job) bool) {
	j.world.Helper()
	for _, l := range j.lives {
		if s := l.known[id]; s != nil {
			if s.Stays, s.Hangs = true, true; !edit(&s.job) {
				delete(l.known, id)
			}
			return
		}
	}
	j.world.Fatalf("no head knows a submission %s", id)
}

// Plant has someone else submit a job under a name to a head.
func (j *Jobs) Plant(head *corev1.Pod, id string) {
	j.life(head).known[id] = &submission{
		Run: Run{ID: id}, Process: Process{Hangs: true}, asked: headclient.Submission{ID: id}, at: j.world.Clock.Now(),
		job: headclient.Job{ID: id, Status: headclient.JobRunning},
	}
}

// sessionOf is the name of the session that a head's pod is in: another with each start of
// its container, but where a Redis has kept the memory of the ones before.
func (j *Jobs) sessionOf(pod *corev1.Pod) string {
	if mark, stored := j.world.Stores.marks[ownerOf(pod)]; stored {
		return fmt.Sprintf("session_of_%s_%d", ownerOf(pod), mark.session)
	}
	restarts := int32(0)
	for i := range pod.Status.ContainerStatuses {
		restarts += pod.Status.ContainerStatuses[i].RestartCount
	}
	return fmt.Sprintf("session_%s_%d", pod.UID, restarts)
}

func ownerOf(pod *corev1.Pod) types.UID {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return owner.UID
	}
	return ""
}

// life is the session that answers at a head.
func (j *Jobs) life(pod *corev1.Pod) *life {
	name := j.sessionOf(pod)
	if j.lives[name] == nil {
		j.lives[name] = &life{name: name, cluster: ownerOf(pod), known: map[string]*submission{}}
	}
	j.lives[name].head = pod.UID // the latest of those that have it in turn
	return j.lives[name]
}

// pod finds a head that runs, nil if there is none of that UID.
func (j *Jobs) pod(uid types.UID) *corev1.Pod {
	for _, obj := range j.world.server.latest.held() {
		if pod, ok := obj.(*corev1.Pod); ok && pod.UID == uid && pod.Status.Phase == corev1.PodRunning {
			return pod
		}
	}
	return nil
}

// kept reports whether a Redis keeps a session beyond its head.
func (j *Jobs) kept(l *life) bool {
	mark, stored := j.world.Stores.marks[l.cluster]
	alive := slices.ContainsFunc(j.world.server.latest.held(), func(obj client.Object) bool { return obj.GetUID() == l.cluster })
	return stored && alive && l.name == fmt.Sprintf("session_of_%s_%d", l.cluster, mark.session)
}

// live brings all heads to the present: what ended with its session is dropped, what is due
// begins or ends. It gives whether anything did, and how long it is until something does.
func (j *Jobs) live() (changed bool, next time.Duration) {
	now := j.world.Clock.Now()
	for _, name := range slices.Sorted(maps.Keys(j.lives)) {
		l := j.lives[name]
		if pod := j.pod(l.head); !j.kept(l) && (pod == nil || j.sessionOf(pod) != name) {
			delete(j.lives, name)
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(l.known)) {
			s := l.known[id]
			wait, said := s.say(now)
			if changed = changed || said; said {
				j.world.lastChange = now
			}
			next = reconcile.Soonest(next, wait)
			for !s.job.Status.Over() {
				due := s.due()
				if due.IsZero() {
					break
				}
				if wait := due.Sub(now); wait > 0 {
					if next == 0 || wait < next {
						next = wait
					}
					break
				}
				j.advance(s, due)
				changed = true
			}
		}
	}
	return changed, next
}

// stopTakes is from a stop to the end of a driver.
func (s *submission) stopTakes() time.Duration { return cmp.Or(s.Saves, time.Second) }

// due is when something next happens to a submission by itself; zero is never.
func (s *submission) due() time.Time {
	switch {
	case s.job.Status == headclient.JobPending && s.Stays:
		return time.Time{}
	case s.job.Status == headclient.JobPending:
		return s.at.Add(s.Waits)
	case !s.stopped.IsZero() && (s.Hangs || s.stopped.Add(s.stopTakes()).Before(s.began.Add(s.Takes))):
		return s.stopped.Add(s.stopTakes())
	case s.Hangs:
		return time.Time{}
	default:
		return s.began.Add(s.Takes)
	}
}

// advance lets what is due happen.
func (j *Jobs) advance(s *submission, at time.Time) {
	j.world.lastChange = j.world.Clock.Now()
	defer func() {
		if s.job.Status.Over() {
			j.ended = append(j.ended, end{s.Run, s.job.Status})
		}
	}()
	switch {
	case s.job.Status == headclient.JobPending:
		s.job.Status, s.began = headclient.JobRunning, at
		j.begun = append(j.begun, s.Run)
		j.world.History.Began(s.Run)
	case !s.stopped.IsZero() && (s.Hangs || at.Before(s.began.Add(s.Takes))), s.Stopped:
		s.end(headclient.JobStopped, at, "Job was intentionally stopped.")
	case s.ErrorType != "":
		s.end(headclient.JobFailed, at, "Ray says why.")
		s.job.ErrorType = s.ErrorType
	case s.ExitCode != 0:
		s.end(headclient.JobFailed, at, fmt.Sprintf("Job entrypoint command failed with exit code %d", s.ExitCode))
		s.job.ErrorType, s.job.ExitCode = "JOB_ENTRYPOINT_COMMAND_ERROR", &s.ExitCode
	default:
		s.end(headclient.JobSucceeded, at, "Job finished successfully.")
		s.job.ExitCode = &s.ExitCode
	}
}

func (s *submission) end(status headclient.JobStatus, at time.Time, message string) {
	s.job.Status, s.job.End, s.job.Message = status, at, message
	if isKilled := s.ErrorType != "" || s.ExitCode < 0 && s.ExitCode != signalLost; isKilled || !s.written && s.Last == nil {
		return
	}
	if s.Last != nil {
		s.report, s.written = *s.Last, true
	}
	s.report.State = launcher.Ended
}

// signalLost is the signal by which a launcher ends itself where its gang is lost, as Ray tells it.
const signalLost = -12

// say has the launcher of a gang write the reports that are due. It returns after how long the next one is, and whether it wrote.
func (s *submission) say(now time.Time) (wait time.Duration, wrote bool) {
	if s.job.Status != headclient.JobRunning {
		return 0, false
	}
	for ; s.said < len(s.Reports); s.said++ {
		next := s.Reports[s.said]
		at := s.began.Add(next.After)
		if at.After(now) {
			return at.Sub(now), wrote
		}
		started := s.report.Started
		if s.report, s.written, wrote = next.Report, true, true; s.report.Started.IsZero() {
			if s.report.Started = started; started.IsZero() && s.report.State == launcher.Running {
				s.report.Started = at
			}
		}
	}
	return 0, wrote
}

// submit takes a submission, or gives why not.
func (j *Jobs) submit(l *life, asked headclient.Submission) error {
	if j.lossy == loseRequest && !j.lost[asked.ID] {
		j.lost[asked.ID] = true
		return headFailure(headclient.Unavailable, "the request was lost")
	}
	run := Run{ID: asked.ID, Job: types.UID(asked.Metadata["heliostat.dev/job-uid"]), Head: l.head, Session: l.name}
	number, err := strconv.ParseInt(asked.Metadata["heliostat.dev/attempt"], 10, 32)
	j.world.Must(err)
	run.Attempt = int32(number)
	if l.known[asked.ID] != nil {
		return headFailure(headclient.Exists, "the name is used")
	}
	if j.Refuse != nil {
		if why := j.Refuse(run); why != "" {
			return headFailure(headclient.Refused, why)
		}
	}
	process := Process{Waits: time.Second, Takes: 5 * time.Second, Lines: []string{"done"}}
	if j.Program != nil {
		process = j.Program(run)
	}
	now := j.world.Clock.Now()
	l.known[asked.ID] = &submission{
		Run: run, Process: process, asked: asked, at: now,
		job: headclient.Job{ID: asked.ID, Status: headclient.JobPending, Metadata: asked.Metadata, Start: now, Message: "it waits"},
	}
	j.world.lastChange = now
	j.world.History.Submitted(run)
	if j.lose != nil {
		j.lose()
		return headFailure(headclient.Unavailable, "the reply was lost")
	}
	if j.lossy == loseReply && !j.lost[asked.ID] {
		j.lost[asked.ID] = true
		return headFailure(headclient.Unavailable, "the reply was lost")
	}
	return nil
}

// stop ends a run that has begun, and kills one that has not.
func (j *Jobs) stop(s *submission) {
	switch now := j.world.Clock.Now(); {
	case s.job.Status == headclient.JobPending:
		s.end(headclient.JobFailed, now, "The supervisor was killed.")
		s.job.ErrorType = "JOB_SUPERVISOR_ACTOR_DIED"
		j.world.lastChange = now
	case s.stopped.IsZero():
		s.stopped = now
		j.world.lastChange = now
	}
}

// headFailure is what headclient makes of a failure.
func headFailure(kind headclient.Kind, why string) error {
	return &headclient.Error{Kind: kind, Err: fmt.Errorf("testkit: %s", cmp.Or(why, string(kind)))}
}
