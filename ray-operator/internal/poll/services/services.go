// Package services asks heads in the background what Ray Serve does there, deploys what is
// wanted, and asks the proxies of pods whether they answer, so that no reconcile ever waits
// for a head or a proxy.
//
// In: per cluster and service which applications are wanted, and which pods' proxies must be
// asked, stated again as a whole whenever it changes. Out: what was heard last, with its time and
// sort of failure, and a wake of the service when it means something new to it.
//
// It must never take applications away that nobody said are ours, let one service's mistake keep
// another from its applications, take an empty answer for applications that are gone, deploy again
// what the head has taken already, let one head delay another, keep a goroutine or a connection for
// a cluster that nobody asks about, or write to Kubernetes.
package services

import (
	"context"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// Place is a head that is asked.
type Place struct {
	// Head is the UID of the head pod, Address the host:port of its dashboard, taken from the
	// pod that the operator owns and never from a status.
	Head    types.UID
	Address string
	// Token is nil for a cluster without authentication.
	Token headclient.Token
	// Trust is nil for a cluster without encryption.
	Trust headclient.Trust
}

// Want is what one service wants of a cluster.
type Want struct {
	At Place
	// Config is what must be deployed, nil where it is only to be looked.
	Config *Config
	// Probes are the proxies that are asked, each time that the head is.
	Probes []Probe
	// Close names a job by which the proxies end the connections that clients keep, because
	// nobody is led there any more; empty for none. Each name is run once. It orders by when it was given, and of
	// what several services want the latest is run.
	Close headclient.Closing
	// Every is how often the head is asked; never more often than once a second.
	Every time.Duration
}

// Config is what a service wants deployed on a cluster. What others deployed there beside it stays.
type Config struct {
	// Digest names all of it, Taken and Alone aside: two that differ have different ones.
	Digest string
	// Applications are ours, by name, each in Serve's own form.
	Applications map[string]json.RawMessage
	// Drop are the names of applications that were ours, and are to go.
	Drop []string
	// Options is the rest of Serve's form, a JSON object without applications.
	Options json.RawMessage
	// Taken tells that this head took this digest before, as far as the record says: it is not
	// deployed again unless one of the applications is missing.
	Taken bool
	// Alone tells that nobody else deploys there: a head that says at first that it has no
	// Serve is believed at once, for there is nothing of others to lose.
	Alone bool
	// Retry: an application that could not be deployed is deployed again, after growing pauses.
	// It is for what was healthy before, and for what nothing stands behind.
	Retry bool
}

// Probe is a question to the proxy in a pod.
type Probe struct {
	Pod types.UID
	// Address is the proxy's host:port, Path what is asked for. TLS: it speaks nothing else.
	Address, Path string
	TLS           bool
}

// Answer is what is known of a cluster's Serve. It is never changed once it was given out.
type Answer struct {
	// At is when the head said last what Serve does, zero if never.
	At time.Time
	// Failure is the sort of the last failure, empty if the last time all went well; Err is
	// the failure and FailingSince when the first in a row was seen. What was heard before
	// stays.
	Failure      headclient.Kind
	Err          error
	FailingSince time.Time
	// Serving is what Serve does. The configurations of applications are left out.
	Serving headclient.Serving
	// Outcome is what came of what this service wants deployed.
	Outcome
	// Closed is the Close that was done, or has failed for good, and ClosedAt when that was heard.
	Closed   string
	ClosedAt time.Time
	// Probes are the answers of the proxies that this service asks for, by what was asked.
	Probes map[Probe]Reply
	// LastLines are, by application, the last line of the log of the replica that failed last,
	// of those that are not as they should be.
	LastLines map[string]string
}

// Outcome is what came of a service's configuration.
type Outcome struct {
	// Taken is the digest of what this head took last; empty if nothing, or if it was not this
	// process that sent it.
	Taken string
	// Refused is why the head would not take the digest RefusedDigest, in its words.
	Refused, RefusedDigest string
	// RetryAt is when what could not be deployed is deployed again, zero if it is not.
	RetryAt time.Time
}

// Reply is what a proxy answered to a probe.
type Reply struct {
	// OK: it answered, with a status below 500.
	OK bool
	// Since is when the first reply of this sort in a row came, Times how many there were.
	Since time.Time
	Times int
	// Why says what was wrong with it, where it was not OK.
	Why string
}

// Head is one conversation with the dashboard of a head; *headclient.Serve is one.
type Head interface {
	// Session is who answers.
	Session(ctx context.Context) (headclient.Session, error)
	// Serving is what Serve does.
	Serving(ctx context.Context) (headclient.Serving, error)
	// Deploy asks Serve for a whole configuration. Applications that came this way before and
	// are not in it go. It fails as Refused where Serve would not take it.
	Deploy(ctx context.Context, config json.RawMessage) error
	// CloseKept has the proxies end the connections that clients keep. True: that was done, or has failed for good.
	CloseKept(ctx context.Context, closing headclient.Closing) (bool, error)
	// LastLine is the last line of a log that is not empty.
	LastLine(ctx context.Context, log headclient.Log) (string, error)
	Close() error
}

// Dialer prepares a conversation, and sends nothing.
type Dialer func(at Place) (Head, error)

// Asker asks a proxy. It fails where it does not answer in time, or with a status of 500 and
// more; AskBy gives the one for real proxies.
type Asker func(ctx context.Context, probe Probe) error
