package runs

import (
	"context"
	"errors"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// DialBy returns the Dialer for real heads, which connects by a function; nil is for any address.
func DialBy(connect headclient.Connect) Dialer {
	return func(at Place) (Head, error) {
		options := headclient.Options{Connect: connect, Token: at.Token}
		jobs, err := headclient.DialJobs(at.Jobs, options)
		if err != nil {
			return nil, err // not a nil client in an interface that is not nil
		}
		return conversation{Jobs: jobs, gcs: at.GCS, options: options}, nil
	}
}

// conversation is one with a real head.
type conversation struct {
	*headclient.Jobs
	gcs     string
	options headclient.Options
}

// Kill is rare: it makes a connection to the GCS for itself.
func (c conversation) Kill(ctx context.Context, id string) (killed bool, err error) {
	client, err := headclient.Dial(c.gcs, c.options)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	return client.KillSubmission(ctx, id)
}
