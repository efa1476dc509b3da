// Package client is the operator's end of the streams to the autoscalers.
//
// In: per cluster the head's address and token, and the snapshot for the autoscaler there,
// stated again as a whole whenever it changes. Out: the autoscaler's last decision with its
// time, whether it is listened to now, and a wake of the cluster's reconcile when any of
// this means something new.
//
// It must never let one head delay another, keep more than 48 KiB for a cluster that is
// calm, take a missing decision for an empty one, read a hostile autoscaler faster than an
// honest one speaks, put a token into a log or an error, or write to Kubernetes.
package client

import (
	"bytes"
	"context"
	"net"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/wire"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll"
)

// Source is what a controller needs of a Link.
type Source interface {
	// Want says what a cluster's autoscaler is to know, in place of what was said before. It
	// never blocks; saying the same again sends nothing. Another head or address, or a
	// token where there was none, is another autoscaler: the decision of the one before is
	// forgotten.
	Want(cluster types.NamespacedName, target Target)
	// Forget hangs up, and drops what is known of the cluster's autoscaler.
	Forget(cluster types.NamespacedName)
	// Last is what is known of the autoscaler beside the head that is the pod of this UID.
	// It is false before it answered or failed for the first time, and for another head
	// than the one wanted.
	Last(cluster types.NamespacedName, head types.UID) (Answer, bool)
}

// Target is an autoscaler and what it is to know.
type Target struct {
	// Head is the UID of the head pod, Address the host:port of the autoscaler in it, taken
	// from the pod that the operator owns and never from a status.
	Head    types.UID
	Address string
	// Token is read for each stream; nil for a cluster without authentication.
	Token headclient.Token
	// Trust is nil for a cluster without encryption.
	Trust headclient.Trust
	// Snapshot is sent with Head as its head. It is not kept: who calls may change it.
	Snapshot protocol.Snapshot
}

// Answer is what is known of an autoscaler. It is never changed once it was given out.
type Answer struct {
	// Decision is what it said last, At when that came: zero if it never spoke. It outlives the
	// stream on which it came.
	Decision protocol.Decision
	At       time.Time
	// Connected tells that there is a stream now. Without one, Decision may be out of date.
	Connected bool
	// Failure is why there is none, empty while there is one; Err is the failure, and
	// FailingSince when the first in a row was seen. Invalid: the snapshot is out of bounds,
	// and nothing is sent until it is not. Refused: another operator took over, or the
	// autoscaler is that of another head.
	Failure      headclient.Kind
	Err          error
	FailingSince time.Time
}

// Link keeps a stream to each autoscaler that is wanted while it is started. An autoscaler obeys the caller that came
// last.
type Link struct {
	*poll.Set[types.NamespacedName, place, wanted, Answer]
	clock   clock.Clock
	connect headclient.Connect
	// permit is asked right before a stream is opened and before a snapshot is sent; nil permits all.
	permit func() error
	// caller speaks to the autoscalers of clusters without encryption.
	caller *wire.Caller
}

// place is what tells one autoscaler from another.
type place struct {
	cluster types.NamespacedName
	head    types.UID
	address string
	token   bool
	trust   headclient.Trust
}

// wanted is a target with its snapshot as it is sent, or why it cannot be.
type wanted struct {
	Target
	snapshot wire.Frame
	invalid  error
}

// New makes a Link, which connects to nobody until it is started.
func New(clock clock.Clock, connect wire.Dialer, permit func() error) *Link {
	link := &Link{clock: clock, connect: headclient.Connect(connect), permit: permit}
	link.caller = link.newCaller(nil)
	link.Set = poll.New(poll.Rules[types.NamespacedName, place, wanted, Answer]{
		Loops: func(at *endpoint) []poll.Loop {
			l := &connection{endpoint: at, link: link}
			at.OnNews = l.tell
			return []poll.Loop{l.run}
		},
		Owner: func(cluster types.NamespacedName) types.NamespacedName { return cluster },
		Token: func(target wanted) headclient.Token { return target.Token },
		Says: func(before, after wanted, _ Answer) bool {
			return !bytes.Equal(before.snapshot, after.snapshot) || (before.invalid == nil) != (after.invalid == nil)
		},
		HasNews: differ,
	}, clock)
	return link
}

// newCaller returns one that encrypts as the Trust says, reads slowly, and waits for nobody who does not answer.
func (l *Link) newCaller(trust headclient.Trust) *wire.Caller {
	connect := l.connect.Over(trust)
	return wire.NewCaller(func(ctx context.Context, address string) (net.Conn, error) {
		limited, stop := context.WithTimeout(ctx, wire.Greeting)
		defer stop()
		connection, err := connect(limited, address)
		if err != nil {
			return nil, err
		}
		return throttle(connection), nil
	})
}

// callerOf returns the one for a target.
func (l *Link) callerOf(target Target) *wire.Caller {
	if target.Trust == nil {
		return l.caller
	}
	return l.newCaller(target.Trust)
}

// Want implements Source.
func (l *Link) Want(cluster types.NamespacedName, target Target) {
	target.Snapshot.Head = string(target.Head)
	snapshot, err := wire.EncodeSnapshot(target.Snapshot)
	target.Snapshot = protocol.Snapshot{}
	at := place{cluster: cluster, head: target.Head, address: target.Address, token: target.Token != nil, trust: target.Trust}
	l.Set.Want(cluster, at, wanted{Target: target, snapshot: snapshot, invalid: err})
}

// Last implements Source.
func (l *Link) Last(cluster types.NamespacedName, head types.UID) (Answer, bool) {
	target, answer, heard := l.Set.Last(cluster)
	if !heard || target.Head != head {
		return Answer{}, false
	}
	return answer, true
}

// differ reports whether an answer means something new: not that it failed once more, or that
// the same was said again.
func differ(a, b Answer) bool {
	return a.Connected != b.Connected || a.Failure != b.Failure || a.At.IsZero() != b.At.IsZero() || !reflect.DeepEqual(a.Decision, b.Decision)
}
