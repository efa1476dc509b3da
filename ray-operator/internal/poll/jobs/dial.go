package jobs

import (
	"context"
	"errors"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
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
		return &conversation{Jobs: jobs, gcs: at.GCS, options: options}, nil
	}
}

// conversation is one with a real head.
type conversation struct {
	*headclient.Jobs
	gcs     string
	options headclient.Options
	// client speaks to the GCS. It is nil until that is asked first.
	client *headclient.Client
}

// store returns the client of the GCS.
func (c *conversation) store() (*headclient.Client, error) {
	if c.client == nil {
		client, err := headclient.Dial(c.gcs, c.options)
		if err != nil {
			return nil, err
		}
		c.client = client
	}
	return c.client, nil
}

// Close gives both connections up.
func (c *conversation) Close() error {
	if c.client == nil {
		return c.Jobs.Close()
	}
	return errors.Join(c.Jobs.Close(), c.client.Close())
}

// Kill implements Head.
func (c *conversation) Kill(ctx context.Context, id string) (bool, error) {
	client, err := c.store()
	if err != nil {
		return false, err
	}
	return client.KillSubmission(ctx, id)
}

// Report implements Head. A value that has more bytes than a report can have is nothing: any
// code on the cluster can write one, and must not end the conversation about other runs so.
func (c *conversation) Report(ctx context.Context, id string) ([]byte, error) {
	client, err := c.store()
	if err != nil {
		return nil, err
	}
	report, err := client.Value(ctx, launcher.ReportNamespace, launcher.ReportKey(id), launcher.MaxReport)
	if headclient.KindOf(err) == headclient.Protocol {
		return nil, nil
	}
	return report, err
}

// Forget implements Head. The report goes first: without its submission nobody would find it.
func (c *conversation) Forget(ctx context.Context, id string) error {
	client, err := c.store()
	if err != nil {
		return err
	}
	if err := client.DeleteValue(ctx, launcher.ReportNamespace, launcher.ReportKey(id)); err != nil {
		return err
	}
	return c.Jobs.Forget(ctx, id)
}
