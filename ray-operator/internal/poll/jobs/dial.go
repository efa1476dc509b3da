package jobs

import (
	"context"
	"errors"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// DialBy returns the Dialer for real heads, which speaks to them by these options and the token of each.
func DialBy(options headclient.Options) Dialer {
	return func(at Place) (Head, error) {
		options := options
		options.Token, options.Trust = at.Token, at.Trust
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
