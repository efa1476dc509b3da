package jobs

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll"
)

// How many calls may be under way at once, one per head at most. Where calls of a sort hung
// the last time, further ones of that sort to that head have slots of their own: heads that
// hang hold up each other and nobody else, after each held one of the many for the time of
// one call. A head that has just come up is slow to take its first submission, and is not to
// stand in a line with those that do not even say who they are.
const (
	slots     = 256
	slowSlots = 32
)

// Watch asks heads about runs while it is started.
type Watch struct {
	*poll.Set[types.NamespacedName, key, Want, known]
	dial  Dialer
	clock clock.Clock
	// quick and slow have a place for each call that may be under way.
	quick chan struct{}
	slow  [acts]chan struct{}
	// abandoned is nil where nothing is forgotten, and tidying has a place for each head that is asked to forget.
	abandoned Abandoned
	tidying   chan struct{}

	mu      sync.Mutex
	tidyDue map[types.UID]time.Time // by head
}

// key tells one conversation from another.
type key struct {
	cluster   types.NamespacedName
	head      types.UID
	jobs, gcs string
	token     bool
	trust     headclient.Trust
}

func (p Place) key() key {
	return key{cluster: p.Cluster, head: p.Head, jobs: p.Jobs, gcs: p.GCS, token: p.Token != nil, trust: p.Trust}
}

// place is where the conversation of a key is, with a token.
func (k key) place(token headclient.Token) Place {
	return Place{Cluster: k.cluster, Head: k.head, Jobs: k.jobs, GCS: k.gcs, Trust: k.trust, Token: token}
}

// known is what is known of a run, and who asked: the asker knows of its head.
type known struct {
	Answer
	by *asker
}

// endpoint is a head, and part a run there, as poll has them.
type (
	endpoint = poll.Endpoint[types.NamespacedName, key, Want, known]
	part     = poll.Part[types.NamespacedName, key, Want, known]
)

// New makes a Watch, which asks nothing until it is started. Submissions that are abandoned are forgotten; nil is none.
func New(dial Dialer, abandoned Abandoned, clock clock.Clock) *Watch {
	w := &Watch{
		dial: dial, abandoned: abandoned, clock: clock, quick: make(chan struct{}, slots), tidying: make(chan struct{}, slowSlots),
		tidyDue: map[types.UID]time.Time{},
	}
	for act := range w.slow {
		w.slow[act] = make(chan struct{}, slowSlots)
	}
	w.Set = poll.New(poll.Rules[types.NamespacedName, key, Want, known]{
		Loops:    w.loops,
		Owner:    func(job types.NamespacedName) types.NamespacedName { return job },
		Token:    func(want Want) headclient.Token { return want.At.Token },
		Says:     func(before, after Want, known known) bool { return says(before, after, known.Answer, clock.Now()) },
		Replaces: func(before, after Want) bool { return before.ID != after.ID || before.Session != after.Session },
		HasNews:  func(before, after known) bool { return HasNews(before.Answer, after.Answer) },
	}, clock)
	return w
}

// loops returns what asks a head: about runs, and now and then to forget some. Those have a conversation of their own, so
// that no run waits for it.
func (w *Watch) loops(at *endpoint) []poll.Loop {
	a := &asker{endpoint: at, watch: w, began: w.clock.Now(), runs: map[*part]*run{}}
	if w.abandoned == nil {
		return []poll.Loop{a.work}
	}
	return []poll.Loop{a.work, a.tidy}
}

// says reports whether a want says something to act upon: that a submission was withdrawn or a permit prolonged is
// nothing.
func says(before, after Want, known Answer, now time.Time) bool {
	return after.Stop && !before.Stop ||
		submittable(after, now) && !submittable(before, now) && known.Submitted.IsZero()
}

// Want implements Source.
func (w *Watch) Want(job types.NamespacedName, want Want) { w.Set.Want(job, want.At.key(), want) }

// Last implements Source.
func (w *Watch) Last(job types.NamespacedName, head types.UID, id string) (Answer, bool) {
	want, answer, heard := w.Set.Last(job)
	if !heard || want.At.Head != head || want.ID != id {
		return Answer{}, false
	}
	return answer.by.whole(answer.Answer), true
}
