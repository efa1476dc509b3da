package services

import (
	"context"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// DialBy returns the Dialer for real heads, which speaks to them by these options and the token of each.
func DialBy(options headclient.Options) Dialer {
	return func(at Place) (Head, error) {
		options := options
		options.Token, options.Trust = at.Token, at.Trust
		head, err := headclient.DialServe(at.Address, options)
		if err != nil {
			return nil, err // not a nil client in an interface that is not nil
		}
		return head, nil
	}
}

// AskBy returns the Asker for real proxies, which connects by a function; nil is for any address.
func AskBy(connect headclient.Connect) Asker {
	return func(ctx context.Context, probe Probe) error {
		return headclient.AskProxy(ctx, connect, probe.Address, probe.Path, probe.TLS)
	}
}
