package headclient

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
)

// Trust says what the connections to a head are encrypted with. Two of the same head that are equal say the same.
type Trust interface {
	// Config is asked for each connection. The host that is dialled is what the head's certificate must be for.
	Config(ctx context.Context) (*tls.Config, error)
}

// Over returns a Connect whose connections are encrypted as the Trust says; the Connect itself where that is nil.
func (c Connect) Over(trust Trust) Connect {
	if trust == nil {
		return c
	}
	return func(ctx context.Context, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("the address %q is not host:port", address)
		}
		config, err := trust.Config(ctx)
		if err != nil {
			return nil, fmt.Errorf("read what to encrypt the connection with: %w", err)
		}
		config = config.Clone()
		config.ServerName = host
		plain, err := c.orAnywhere()(ctx, address)
		if err != nil {
			return nil, err
		}
		encrypted := tls.Client(plain, config)
		if err := encrypted.HandshakeContext(ctx); err != nil {
			_ = plain.Close() // the failure is another
			return nil, fmt.Errorf("encrypt the connection to %s: %w", address, err)
		}
		return encrypted, nil
	}
}
