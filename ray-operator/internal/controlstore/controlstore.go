// Package controlstore speaks to the Redis behind heads: whether it can serve one, whose
// memory it holds, and how to take a cluster's keys out of it.
//
// In: how a server is reached, and what a cluster claims of it. Out: a verdict in words of
// the catalogue, or what was cleaned. A Watch asks in the background and wakes the cluster's
// reconcile when an answer means something new.
//
// It must never block another client of the Redis for long, touch a key outside of one
// cluster's prefix, put a credential into an error or a log, take a missing answer for an
// empty store, or write to Kubernetes.
package controlstore

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Server says how a Redis is reached.
type Server struct {
	// Address is redis://HOST:PORT or rediss://HOST:PORT; the port may be a Sentinel's.
	Address string
	// Given tells that the address is a user's.
	Given bool
	// Namespace is that of Kubernetes in which a host's name without a dot is sought.
	Namespace string
	// Username and Password are empty where there are none.
	Username, Password string
	// CA, Certificate and Key are PEM, nil where there are none.
	CA, Certificate, Key []byte
	// ServerName is what the server's certificate must be for. Where it is empty, the host of the address counts, and
	// only where CA is nil.
	ServerName string
	// HeadPassword, if not empty, asks for an ACL user of the epoch's head alone, with this
	// password and the name that naming.StoreUser gives; heads of other epochs are cut off
	// first. It is a part of the Server and not of the Claim because it is a secret.
	HeadPassword string
}

// Claim is what a cluster wants of a store for the head of an epoch.
type Claim struct {
	// Owner is the cluster's UID, and Cluster its namespace/name, for people.
	Owner   types.UID
	Cluster string
	// Namespace is Ray's: the keys begin with RAY, the namespace and @.
	Namespace string
	// Session is the epoch in which the memory began, Epoch the head's. Begun tells that a
	// head of the session was made: from then on the store must hold its memory.
	Session, Epoch int64
	Begun          bool
	// Own tells that the server belongs to this cluster alone: what an earlier cluster of
	// its name left there is its own.
	Own bool
}

// Verdict is what came of asking a store. It is never changed once it was given out.
type Verdict struct {
	// Finding says how the store is, by one of the catalogue's reasons.
	Finding reason.Finding
	// Admitted tells that the head of the claim's epoch may start: the store serves, and
	// holds the session's memory, or is ready to begin it.
	Admitted bool
	// Lost tells that the session's memory is not there any more.
	Lost bool
	// Holds is how many keys a new session found there and goes on with.
	Holds int
}

// Target is what is wanted of one cluster's store.
type Target struct {
	Claim Claim
	// Server reads how to reach it: again when there is a new claim, and after each failure.
	// An error that carries a finding (package fault) is told with its words.
	Server func(context.Context) (Server, error)
	// Every is how often to ask while it serves; while it does not, once a second, or twice a minute where the answer
	// stays the same until a person acts.
	Every time.Duration
	// Generation is that of the spec that names the store. A new one is asked for within a second.
	Generation int64
}

// Source is what a controller needs of a Watch.
type Source interface {
	// Want says what must be known of a cluster's store, in place of what was said before.
	// It never blocks. A new claim is asked for at once.
	Want(cluster types.NamespacedName, target Target)
	// Forget ends all that is asked about a cluster's store.
	Forget(cluster types.NamespacedName)
	// Last is the last verdict about a claim. It is false before the first one, and for a
	// claim other than the one wanted.
	Last(cluster types.NamespacedName, claim Claim) (Verdict, bool)
}
