package testkit

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/jobs"
)

// query is what is wanted of one job and known of it.
type query struct {
	want   jobs.Want
	answer jobs.Answer
	// answered: there is an answer; owed: one is owed to something that was newly wanted.
	answered, owed bool
	// at is when it has its next turn, zero if never; changed sets the pace.
	at, changed time.Time
	// met: the token was read for the conversation that goes on. unsure: a submission was
	// sent, and nobody said what became of it. stopped: it was told to stop.
	met, unsure, stopped bool
	// tried is how often a head failed that was to give the output.
	tried int
}

// How often heads are asked. A turn costs as much as a real one, so it is less often.
const (
	soonest, latest = time.Second, 5 * time.Second
	// tries is how often an output is tried to be read.
	tries = 3
)

// restart forgets what the operator's process knew.
func (j *Jobs) restart() { j.queries = map[types.NamespacedName]*query{} }

// Want is jobs.Source's.
func (j *Jobs) Want(name types.NamespacedName, want jobs.Want) {
	now := j.world.Clock.Now()
	q := j.queries[name]
	if q == nil || !samePlace(q.want.At, want.At) || q.want.ID != want.ID || q.want.Session != want.Session {
		j.queries[name] = &query{want: want, owed: true, at: now, changed: now}
		return
	}
	news := want.Stop && !q.want.Stop || submittable(want, now) && !submittable(q.want, now) && q.answer.Submitted.IsZero()
	if q.want = want; news {
		q.owed, q.at, q.changed = true, now, now
	}
}

func samePlace(a, b jobs.Place) bool {
	return a.Cluster == b.Cluster && a.Head == b.Head && a.Jobs == b.Jobs && a.GCS == b.GCS && (a.Token == nil) == (b.Token == nil)
}

func submittable(want jobs.Want, now time.Time) bool {
	return want.Submission != nil && !want.Stop && now.Before(want.Until)
}

// Forget is jobs.Source's.
func (j *Jobs) Forget(name types.NamespacedName) { delete(j.queries, name) }

// Last is jobs.Source's.
func (j *Jobs) Last(name types.NamespacedName, head types.UID, id string) (jobs.Answer, bool) {
	q := j.queries[name]
	if q == nil || q.want.At.Head != head || q.want.ID != id || !q.answered {
		return jobs.Answer{}, false
	}
	return q.answer, true
}

// step brings the heads to the present, asks those that are due, wakes the operator where an
// answer is owed or means something new, and gives how long it is until something happens
// by itself.
func (j *Jobs) step() (changed bool, next time.Duration) {
	changed, next = j.live()
	now := j.world.Clock.Now()
	for _, name := range slices.SortedFunc(maps.Keys(j.queries), byName) {
		q := j.queries[name]
		if q == nil || q.at.IsZero() || j.world.Away {
			continue
		}
		if wait := q.at.Sub(now); wait > 0 {
			if (q.at.Sub(j.world.lastChange) <= patience || q.at.Before(j.world.until)) && (next == 0 || wait < next) {
				next = wait
			}
			continue
		}
		changed = true
		j.turn(name, q)
	}
	return changed, next
}

// Ask asks the heads that are due now, in a world that does not move by itself.
func (j *Jobs) Ask() { j.step() }

// turn does what is next for a job.
func (j *Jobs) turn(name types.NamespacedName, q *query) {
	now, before := j.world.Clock.Now(), q.answer
	err := j.converse(q)
	switch {
	case err == nil:
		q.answer.Failure, q.answer.Err, q.answer.FailingSince = "", nil, time.Time{}
	default:
		if q.answer.Failure == "" {
			q.answer.FailingSince = now
		}
		q.answer.Failure, q.answer.Err, q.met = headclient.KindOf(err), err, false
		q.missed()
	}
	if q.owed || jobs.HasNews(before, q.answer) {
		j.world.due[request{jobKind, name}] = now
		q.changed = now
	}
	q.owed, q.answered = false, true
	switch {
	case q.done():
		q.at = time.Time{}
	case now.Sub(q.changed) < 10*time.Second:
		q.at = now.Add(soonest)
	default:
		q.at = now.Add(latest)
	}
}

func (q *query) done() bool { return q.answer.Foreign || q.answer.Refused != "" || q.answer.Tailed }

// missed counts that a head failed whose run is over and not read.
func (q *query) missed() {
	if !q.answer.Job.Status.Over() || q.done() {
		return
	}
	if q.tried++; q.tried >= tries {
		q.giveUp()
	}
}

// giveUp keeps what was read before the run was told to stop, if anything was.
func (q *query) giveUp() {
	q.answer.Tailed, q.answer.LogLost = true, len(q.answer.Tail.Lines) == 0
	q.answer.Tail.Truncated = !q.answer.LogLost
}

// converse asks a head, if it answers.
func (j *Jobs) converse(q *query) error {
	if q.done() {
		return nil
	}
	head := j.pod(q.want.At.Head)
	if token := q.want.At.Token; token != nil && !q.met {
		if _, err := token(j.world.Ctx); err != nil {
			return headFailure(headclient.Unauthenticated, err.Error())
		}
		q.met = true
	}
	if head == nil || !isReady(head) || j.Silent != nil && j.Silent(head) {
		return headFailure(headclient.Unavailable, "connection refused")
	}
	l := j.life(head)
	q.answer.At = j.world.Clock.Now()
	q.answer.Session = headclient.Session{Name: l.name, Version: rayVersion}
	if q.want.ID == "" || q.want.Session != l.name {
		if q.answer.Job.Status.Over() { // the output went with the session
			q.giveUp()
		}
		return nil
	}
	return j.act(q, l)
}

// rayVersion is what heads run.
const rayVersion = "2.60.0"

// mayBeSubmitted reports whether a run must be submitted, if the head does not know it.
func (j *Jobs) mayBeSubmitted(q *query) bool {
	return submittable(q.want, j.world.Clock.Now()) && q.answer.Submitted.IsZero()
}

// act does what is next with a run, in the session that it is bound to.
func (j *Jobs) act(q *query, l *life) error {
	if q.answer.Job.Status.Over() {
		j.tail(q, l)
		return nil
	}
	var err error
	if j.mayBeSubmitted(q) && !q.unsure {
		err = j.send(q, l)
	}
	if err != nil || q.answer.Refused != "" {
		return err
	}
	j.look(q, l)
	switch {
	case q.answer.Job.Status.Over() && !q.answer.Foreign:
		j.tail(q, l)
	case q.want.Stop && q.answer.Known:
		j.tell(q, l.known[q.want.ID])
	case j.mayBeSubmitted(q) && !q.answer.Known:
		err = j.send(q, l)
		j.look(q, l)
	}
	return err
}

// tell tells a run to end, unless it is somebody else's; what it has said until then is read first.
func (j *Jobs) tell(q *query, s *submission) {
	if q.answer.Foreign {
		return
	}
	if !q.stopped && !j.Unreadable {
		q.answer.Tail = headclient.Tail{Lines: s.Lines}
	}
	q.stopped = true
	j.stop(s)
}

// send submits, at most once before it is known what became of the first time.
func (j *Jobs) send(q *query, l *life) error {
	q.unsure = true
	if of := q.want.Package; of != nil && !strings.Contains(string(q.want.Submission.RuntimeEnv), `"gcs://`+of.Name+`"`) {
		j.world.Fatalf("the runtime environment of %s does not name its package %s", q.want.ID, of.Name)
	}
	err := j.submit(l, *q.want.Submission)
	switch headclient.KindOf(err) {
	case "":
		q.unsure, q.answer.Submitted = false, j.world.Clock.Now()
	case headclient.Exists:
	case headclient.Refused:
		q.unsure, q.answer.Refused = false, "it does not like it"
	default:
		return err
	}
	return nil
}

// look asks what the head knows of a run.
func (j *Jobs) look(q *query, l *life) {
	now := j.world.Clock.Now()
	s := l.known[q.want.ID]
	q.answer.Asked, q.answer.Known = now, s != nil
	if s == nil {
		return
	}
	q.answer.Job = s.job
	if q.want.Report && s.written {
		q.answer.Report, q.answer.Reported = s.report, true
	}
	if asked := q.want.Submission; asked != nil {
		q.unsure = false
		q.answer.Foreign = s.asked.Metadata[jobs.MetadataPayload] != asked.Metadata[jobs.MetadataPayload]
		if !q.answer.Foreign && q.answer.Submitted.IsZero() {
			q.answer.Submitted = now
		}
	}
}

// tail reads the end of the output of a run that is over.
func (j *Jobs) tail(q *query, l *life) {
	s := l.known[q.want.ID]
	if j.Unreadable || s == nil {
		q.giveUp()
		return
	}
	lines := s.Lines[max(0, len(s.Lines)-q.want.Lines):]
	q.answer.Tail, q.answer.Tailed = headclient.Tail{Lines: lines}, true
}
