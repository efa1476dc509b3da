package controlstore

import (
	"context"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Visit asks one server about one claim, and keeps the connection to one that admitted it. It is used by one goroutine.
type Visit struct {
	client Client
	server Server
	claim  Claim
	// connection is nil where none is kept, and holds is what the claim's marker counts.
	connection *connection
	holds      int
}

// Visit returns what asks a server about a claim.
func (c Client) Visit(server Server, claim Claim) *Visit {
	return &Visit{client: c, server: server, claim: claim}
}

// Ask asks once, and keeps no connection.
func (c Client) Ask(ctx context.Context, server Server, claim Claim) Verdict {
	visit := c.Visit(server, claim)
	defer visit.Close()
	return visit.Ask(ctx)
}

// Ask finds out whether the server can serve the claim, and admits it if so. To ask twice is the
// same as to ask once. It takes ten seconds at most, unless an earlier session has left many
// keys. Its connections are new ones, so that credentials are those that hold now.
func (v *Visit) Ask(ctx context.Context) Verdict {
	v.Close()
	verdict, err := v.find(ctx)
	if err == nil {
		return verdict
	}
	finding, found := fault.Finding(err)
	if !found { // every error of this package has one
		finding = reason.StoreUnsupported.Of("its address", "an unknown error")
	}
	return Verdict{Finding: finding}
}

func (v *Visit) find(ctx context.Context) (Verdict, error) {
	if err := usable(v.claim.Namespace); err != nil {
		return Verdict{}, err
	}
	task := v.client.errand(v.server, v.claim.Namespace)
	task.secrets, task.hasty = append(task.secrets, v.server.HeadPassword), true
	brief, cancel := context.WithTimeout(ctx, task.total)
	defer cancel()
	l, err := connect(brief, task)
	if err != nil {
		return Verdict{}, err
	}
	verdict, err := admitClaim(ctx, brief, l, v.claim)
	if err != nil || !verdict.Admitted {
		l.close()
		return verdict, err
	}
	l.outlive(context.WithoutCancel(ctx))
	v.connection, v.holds = l, verdict.Holds
	return verdict, nil
}

// Confirm reports whether what admitted the claim still holds, as far as two commands on the kept connection show: the
// server answers in time, takes writes, and has the claim's marker. A server that began again has closed the connection.
// Where it is false, Ask says what is wrong.
func (v *Visit) Confirm(ctx context.Context) bool {
	if v.connection == nil {
		return false
	}
	brief, cancel := context.WithTimeout(ctx, v.connection.total)
	defer cancel()
	v.connection.outlive(brief)
	defer v.connection.outlive(context.WithoutCancel(ctx))
	replies, err := tryWrite(brief, v.connection)
	if err != nil || v.connection.check(replies) != nil {
		return false
	}
	found, err := prefix{v.connection}.marker(brief)
	return err == nil && found == v.claim.marker(v.holds)
}

// Close ends the connection, if one is kept.
func (v *Visit) Close() {
	if v.connection != nil {
		v.connection.close()
		v.connection = nil
	}
}
