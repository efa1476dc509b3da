// Package reason is the catalogue of reasons: for everything that a condition or
// an event may say, one code, one message and one remedy.
//
// In: the values that a message names. Out: the code, for programs, and a text for
// people that ends with what helps. Operator, servers and CLI share it, so that
// the same cause reads the same everywhere.
//
// It is pure, and it never looks at the cluster to find a cause: who finds it
// fills in the values.
package reason

import "fmt"

// Reason is one entry of the catalogue.
type Reason struct {
	// Code is the stable CamelCase name that programs compare.
	Code string
	// Message says what is the case; a format for fmt.Sprintf.
	Message string
	// Remedy says what helps; empty where nothing has to be done.
	Remedy string
}

// Finding is a reason with the values of one case.
type Finding struct {
	// Code is the reason's code.
	Code string
	// Text is the message with the remedy at its end.
	Text string
}

// Of fills the values of one case into the reason's message.
func (r Reason) Of(values ...any) Finding {
	text := fmt.Sprintf(r.Message, values...)
	if r.Remedy != "" {
		text += ". " + r.Remedy
	}
	return Finding{Code: r.Code, Text: text}
}

// States of a cluster that is as it should be, or on its way there.
var (
	AllReady        = Reason{"AllReady", "head and %d of %d workers are ready", ""}
	HeadReady       = Reason{"HeadReady", "head pod %s answers", ""}
	HeadStarting    = Reason{"HeadStarting", "head pod %s is starting", ""}
	HeadUnready     = Reason{"HeadUnready", "head pod %s ran and does not answer now", ""}
	HeadMissing     = Reason{"HeadMissing", "there is no head pod yet", ""}
	WorkersReady    = Reason{"WorkersReady", "%d of %d workers are ready", ""}
	WorkersStarting = Reason{"WorkersStarting", "%d of %d workers are ready", ""}
	PodsUpToDate    = Reason{"PodsUpToDate", "every pod was built from the current spec", ""}
	Settled         = Reason{"Settled", "nothing is left to do", ""}
)

// What keeps a cluster from being as it should.
var (
	InvalidSpec = Reason{"InvalidSpec", "the spec cannot be carried out: %s",
		"Correct the spec; running pods are left as they are"}
	NameConflict = Reason{"NameConflict", "%s exists and does not belong to this cluster",
		"Delete or rename it, or give the cluster another name"}
	RecordDamaged = Reason{"RecordDamaged", "the annotation heliostat.dev/record cannot be read: %s",
		"Remove the annotation; it is restored from the status. Running pods are left as they are"}
	TokenMissing = Reason{"TokenMissing", "Secret %s with the cluster's token is gone, so no new pod could join the running head",
		"Restore the Secret, or delete the head pod to start afresh with a new token"}
	CreateRefused = Reason{"CreateRefused", "the API server refused %s: %s",
		"Change what it names; the operator tries again by itself"}
	PodsOutdated = Reason{"PodsOutdated", "%d of %d pods were built from an earlier spec",
		"Delete them when it suits you; their successors follow the current spec"}
)

// Changes that a person gains by being told of, as events.
var (
	HeadLost     = Reason{"HeadLost", "head pod %s is gone; epoch %d begins with a new head and fresh workers", ""}
	HeadReplaced = Reason{"HeadReplaced", "head pod %s was made for epoch %d", ""}
	WorkerFailed = Reason{"WorkerFailed", "worker pod %s failed (%s) and is replaced", ""}
)

// Catalogue lists every reason, for documentation and for tests.
func Catalogue() []Reason {
	return []Reason{
		AllReady, HeadReady, HeadStarting, HeadUnready, HeadMissing, WorkersReady, WorkersStarting, PodsUpToDate,
		Settled, InvalidSpec, NameConflict, RecordDamaged, TokenMissing, CreateRefused, PodsOutdated,
		HeadLost, HeadReplaced, WorkerFailed,
	}
}
