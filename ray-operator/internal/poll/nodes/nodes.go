// Package nodes asks live heads in the background, so that no reconcile ever waits for
// one, and tells their nodes to leave until they do.
//
// In: per cluster what must be known and which pods' nodes are to leave, stated again as
// a whole whenever it changes. Out: the last answer with its time and sort of failure, and
// a wake of the cluster's reconcile when an answer means something new.
//
// It must never let one head delay another, keep a goroutine or a connection for a cluster
// that nobody asks about, take a missing answer for an empty one, or write to Kubernetes.
package nodes

import (
	"context"
	"maps"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll"
)

// Source is what a controller needs of a Watch.
type Source interface {
	// Want says what must be known of a cluster's head and done there, in place of what
	// was said before. It never blocks; saying the same again changes nothing.
	Want(cluster types.NamespacedName, target Target)
	// Forget ends all that is asked about a cluster, and drops what is known of it.
	Forget(cluster types.NamespacedName)
	// Last is what was heard last from the head that is the pod of this UID. It is false
	// before the first answer or failure, and for another head than the one wanted.
	Last(cluster types.NamespacedName, head types.UID) (Answer, bool)
}

// Target is what is wanted of one cluster's head.
type Target struct {
	// Head is the UID of the head pod, Address its host:port, taken from the pod that the
	// operator owns and never from a status.
	Head    types.UID
	Address string
	// Token is nil for a cluster without authentication.
	Token headclient.Token
	// Trust is nil for a cluster without encryption.
	Trust headclient.Trust
	// Every is how often the head is asked; never more often than once a second, which is
	// how often Ray itself gathers what it answers with.
	Every time.Duration
	// Activity reports whether it must be known if anything uses the cluster.
	Activity bool
	Drains   []Drain
	Resizes  []Resize
}

// Drain is the wish that the node of a pod leaves. It is sent until the node is seen to
// drain or to be dead.
type Drain struct {
	Pod      types.UID
	Reason   headclient.DrainReason
	Message  string
	Deadline time.Time
}

// Resize is what the node of a pod must have of some resources. It is sent until the node
// is seen to have it.
type Resize struct {
	Pod       types.UID
	Resources map[string]float64
}

// Answer is what is known of a head. It is never changed once it was given out.
type Answer struct {
	// At is when Nodes was heard, zero if never.
	At time.Time
	// Failure is the sort of the last failure, empty if the last time all went well; Err is
	// the failure and FailingSince when the first in a row was seen. What was heard before
	// stays.
	Failure      headclient.Kind
	Err          error
	FailingSince time.Time
	// Nodes are, by their pods' UIDs, those that the head lists as alive, and the dead ones
	// of pods that a Drain or a Resize names. A pod that is missing has no node, or its
	// node was dead before anyone asked.
	Nodes map[types.UID]Node
	// Use is whether the cluster is used, if that had to be known.
	Use Use
}

// Node is the node of a pod.
type Node struct {
	State headclient.NodeState
	// IdleSince is set in the state IDLE.
	IdleSince time.Time
	// Refused is why Ray would not drain or resize the node when it was last asked to.
	Refused string
	// Total is what the node has, of the resources that a Resize names.
	Total map[string]float64
}

// Use is whether a cluster is used.
type Use struct {
	// At is when it was heard, zero if never.
	At       time.Time
	Activity headclient.Activity
	// Pending is how many tasks, actors and placement groups wait for room.
	Pending int64
	// Active: a driver, a job, a detached actor, something that waits, or a worker that
	// does something.
	Active bool
	// IdleSince is since when it is not Active, as far as that can be told: nothing ended
	// after it. Zero while it is Active.
	IdleSince time.Time
}

// Head is a head that can be asked; *headclient.Client is one.
type Head interface {
	State(ctx context.Context) (headclient.State, error)
	Activity(ctx context.Context) (headclient.Activity, error)
	Drain(ctx context.Context, wish headclient.Drain) (headclient.Verdict, error)
	Resize(ctx context.Context, node headclient.NodeID, resources map[string]float64) (map[string]float64, error)
	Close() error
}

// Dialer prepares to ask a head, and sends nothing.
type Dialer func(address string, token headclient.Token, trust headclient.Trust) (Head, error)

// DialBy returns the Dialer for real heads, which speaks to them by these options and the token of each.
func DialBy(options headclient.Options) Dialer {
	return func(address string, token headclient.Token, trust headclient.Trust) (Head, error) {
		options := options
		options.Token, options.Trust = token, trust
		client, err := headclient.Dial(address, options)
		if err != nil {
			return nil, err // not a nil client in an interface that is not nil
		}
		return client, nil
	}
}

// Watch asks heads while it is started.
type Watch struct {
	*poll.Set[types.NamespacedName, place, Target, Answer]
	dial  Dialer
	clock clock.Clock
}

// place is what tells one head that is asked from another.
type place struct {
	cluster types.NamespacedName
	head    types.UID
	address string
	token   bool
	trust   headclient.Trust
}

// New makes a Watch, which asks nothing until it is started.
func New(dial Dialer, clock clock.Clock) *Watch {
	w := &Watch{dial: dial, clock: clock}
	w.Set = poll.New(poll.Rules[types.NamespacedName, place, Target, Answer]{
		Loops:   func(at *endpoint) []poll.Loop { return []poll.Loop{(&asker{endpoint: at, watch: w}).run} },
		Owner:   func(cluster types.NamespacedName) types.NamespacedName { return cluster },
		Token:   func(target Target) headclient.Token { return target.Token },
		Says:    func(before, after Target, _ Answer) bool { return differ(before, after) },
		HasNews: HasNews,
	}, clock)
	return w
}

// Want implements Source.
func (w *Watch) Want(cluster types.NamespacedName, target Target) {
	at := place{cluster: cluster, head: target.Head, address: target.Address, token: target.Token != nil, trust: target.Trust}
	w.Set.Want(cluster, at, target)
}

// Last implements Source.
func (w *Watch) Last(cluster types.NamespacedName, head types.UID) (Answer, bool) {
	target, answer, heard := w.Set.Last(cluster)
	if !heard || target.Head != head {
		return Answer{}, false
	}
	return answer, true
}

// differ reports whether two targets want something else of the same head. Tokens are functions, which cannot be
// compared.
func differ(a, b Target) bool {
	a.Token, b.Token = nil, nil
	return !reflect.DeepEqual(a, b)
}

// HasNews reports whether an answer means something else than the one before, and so wakes its cluster. That a node is
// busy now and idle then, as happens all the time, does not.
func HasNews(a, b Answer) bool {
	return a.Failure != b.Failure || a.Use.At.IsZero() != b.Use.At.IsZero() ||
		!a.Use.IdleSince.Equal(b.Use.IdleSince) || // zero while it is active
		!maps.EqualFunc(a.Nodes, b.Nodes, alike)
}

func alike(a, b Node) bool {
	return alive(a.State) == alive(b.State) && a.Refused == b.Refused && maps.Equal(a.Total, b.Total) &&
		(alive(a.State) || a.State == b.State)
}

// alive reports whether a node takes work.
func alive(state headclient.NodeState) bool {
	return state == headclient.Running || state == headclient.Idle
}
