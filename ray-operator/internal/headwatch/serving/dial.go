package serving

import (
	"context"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// DialBy returns the Dialer for real heads, which connects by a function; nil is for any address.
func DialBy(connect headclient.Connect) Dialer {
	return func(at Place) (Head, error) {
		head, err := headclient.DialServe(at.Address, headclient.Options{Connect: connect, Token: at.Token})
		if err != nil {
			return nil, err // not a nil client in an interface that is not nil
		}
		return head, nil
	}
}

// AskBy returns the Asker for real proxies, which connects by a function; nil is for any address.
func AskBy(connect headclient.Connect) Asker {
	return func(ctx context.Context, address, path string) error {
		return headclient.AskProxy(ctx, connect, address, path)
	}
}
