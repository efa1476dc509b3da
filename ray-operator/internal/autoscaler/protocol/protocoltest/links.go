package protocoltest

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/client"
)

// Links are streams to autoscalers that a test speaks for: a client.Source. As with a
// client.Link, what is known of a cluster goes with its head.
type Links struct {
	mu    sync.Mutex
	wake  func(types.NamespacedName)
	known map[types.NamespacedName]*link
}

type link struct {
	target   client.Target
	answer   client.Answer
	answered bool
	wants    int
}

// NewLinks makes Links that tell of each change of what is known; wake may be nil.
func NewLinks(wake func(types.NamespacedName)) *Links {
	if wake == nil {
		wake = func(types.NamespacedName) {}
	}
	return &Links{wake: wake, known: map[types.NamespacedName]*link{}}
}

// Want is a client.Source's.
func (l *Links) Want(cluster types.NamespacedName, target client.Target) {
	l.mu.Lock()
	defer l.mu.Unlock()
	target.Snapshot.Head = string(target.Head)
	known := l.known[cluster]
	if known == nil || known.target.Head != target.Head || known.target.Address != target.Address {
		known = &link{}
		l.known[cluster] = known
	}
	known.target = target
	known.wants++
}

// Forget is a client.Source's.
func (l *Links) Forget(cluster types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, cluster)
}

// Last is a client.Source's.
func (l *Links) Last(cluster types.NamespacedName, head types.UID) (client.Answer, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.known[cluster]
	if known == nil || known.target.Head != head || !known.answered {
		return client.Answer{}, false
	}
	return known.answer, true
}

// Wanted is the target that was wanted last of a cluster's autoscaler, and how often one
// was; 0 where none is wanted.
func (l *Links) Wanted(cluster types.NamespacedName) (client.Target, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.known[cluster]; known != nil {
		return known.target, known.wants
	}
	return client.Target{}, 0
}

// Say is what a cluster's autoscaler says at a time, about the head that the decision names: a
// decision about another head than the wanted one counts as a failure of the protocol. It is
// false where no autoscaler is wanted.
func (l *Links) Say(cluster types.NamespacedName, decision protocol.Decision, at time.Time) bool {
	return l.change(cluster, func(known *link) {
		if decision.Head != string(known.target.Head) {
			known.answer = broken(known.answer, headclient.Protocol, at)
			return
		}
		known.answer = client.Answer{Decision: decision, At: at, Connected: true}
	})
}

// Connect begins a stream on which nothing was said yet.
func (l *Links) Connect(cluster types.NamespacedName) bool {
	return l.change(cluster, func(known *link) {
		known.answer.Connected, known.answer.Failure, known.answer.Err, known.answer.FailingSince = true, "", nil, time.Time{}
	})
}

// Break ends the stream to a cluster's autoscaler with a sort of failure.
func (l *Links) Break(cluster types.NamespacedName, kind headclient.Kind, at time.Time) bool {
	return l.change(cluster, func(known *link) { known.answer = broken(known.answer, kind, at) })
}

func broken(answer client.Answer, kind headclient.Kind, at time.Time) client.Answer {
	if answer.Failure == "" {
		answer.FailingSince = at
	}
	answer.Connected, answer.Failure = false, kind
	answer.Err = &headclient.Error{Kind: kind, Act: "follow a scripted autoscaler", Err: errors.New("a test broke the stream")}
	return answer
}

func (l *Links) change(cluster types.NamespacedName, change func(*link)) bool {
	l.mu.Lock()
	known := l.known[cluster]
	if known != nil {
		change(known)
		known.answered = true
	}
	l.mu.Unlock()
	if known != nil {
		l.wake(cluster)
	}
	return known != nil
}
