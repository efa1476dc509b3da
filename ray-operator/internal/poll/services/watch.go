package services

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll"
)

// Watch asks heads and proxies while it is started.
type Watch struct {
	*poll.Set[key, place, Want, Answer]
	dial  Dialer
	ask   Asker
	clock clock.Clock
}

// key is a service, and a cluster of which it wants something.
type key struct{ cluster, service types.NamespacedName }

// place is what tells one head that is asked from another.
type place struct {
	cluster types.NamespacedName
	head    types.UID
	address string
	token   bool
	trust   headclient.Trust
}

// endpoint is a head, as poll has it.
type endpoint = poll.Endpoint[key, place, Want, Answer]

// New makes a Watch, which asks nothing until it is started.
func New(dial Dialer, ask Asker, clock clock.Clock) *Watch {
	w := &Watch{dial: dial, ask: ask, clock: clock}
	w.Set = poll.New(poll.Rules[key, place, Want, Answer]{
		Loops: func(at *endpoint) []poll.Loop {
			l := &poller{endpoint: at, watch: w}
			return []poll.Loop{l.run, l.askProxies}
		},
		Owner:   func(of key) types.NamespacedName { return of.service },
		Token:   func(want Want) headclient.Token { return want.At.Token },
		Says:    func(before, after Want, _ Answer) bool { return differ(before, after) },
		HasNews: HasNews,
	}, clock)
	return w
}

// Want says what a service wants of a cluster, in place of what it said before. It never blocks; saying the same again
// changes nothing.
func (w *Watch) Want(cluster, service types.NamespacedName, want Want) {
	at := place{cluster: cluster, head: want.At.Head, address: want.At.Address, token: want.At.Token != nil, trust: want.At.Trust}
	w.Set.Want(key{cluster, service}, at, want)
}

// Forget ends what a service wants of all clusters but those that are kept. It takes no application away.
func (w *Watch) Forget(service types.NamespacedName, keep ...types.NamespacedName) {
	w.ForgetAll(func(of key) bool { return of.service == service && !slices.Contains(keep, of.cluster) })
}

// Last returns what was heard last from the head that is the pod of this UID, with a refusal only of what the service
// wants now. It is false before the first answer or failure, and for another head than the one wanted.
func (w *Watch) Last(cluster, service types.NamespacedName, head types.UID) (Answer, bool) {
	want, answer, heard := w.Set.Last(key{cluster, service})
	if !heard || want.At.Head != head {
		return Answer{}, false
	}
	if want.Config == nil || want.Config.Digest != answer.RefusedDigest {
		answer.Refused, answer.RefusedDigest = "", ""
	}
	return answer, true
}

// differ reports whether two wants are something else of the same head. Tokens are functions, which cannot be compared.
func differ(a, b Want) bool {
	a.At.Token, b.At.Token = nil, nil
	return !reflect.DeepEqual(a, b)
}
