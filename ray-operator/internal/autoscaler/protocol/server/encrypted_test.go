package server

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/protocoltest"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki/pkitest"
)

// made is when the authority of these tests was: when bubbles of time begin.
var made = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// both returns what a server has, and what an operator of its cluster has.
func both(t *testing.T) (server, operator *tls.Config) {
	t.Helper()
	a := pkitest.New(t, made)
	_, server, err := pki.ReadFiles(pkitest.Directory(t, a, made))
	if err != nil {
		t.Fatal(err)
	}
	if operator, err = a.ClientConfig(made); err != nil {
		t.Fatal(err)
	}
	operator.ServerName = "localhost"
	return server, operator
}

// encrypted is an operator that connects over TLS.
func (b *bench) encrypted(config *tls.Config, token string) (*protocoltest.Operator, error) {
	o, err := protocoltest.ConnectBy(b.t.Context(), func(ctx context.Context, _ string) (net.Conn, error) {
		plain, err := b.listener.DialContext(ctx)
		if err != nil {
			return nil, err
		}
		connection := tls.Client(plain, config)
		return connection, connection.HandshakeContext(ctx)
	}, "a:1", "head", token)
	if err == nil {
		b.t.Cleanup(o.Close)
	}
	synctest.Wait()
	return o, err
}

// TestServe_OverTLS: who shows no certificate of the cluster's is a stranger, whatever it knows.
func TestServe_OverTLS(t *testing.T) {
	server, config := both(t)
	_, another := both(t)
	another.RootCAs = config.RootCAs
	run(t, Options{TLS: server, Token: func() (string, error) { return "secret", nil }}, func(t *testing.T, b *bench) {
		operator, err := b.encrypted(config, "secret")
		if err != nil {
			t.Fatal(err)
		}
		b.order(operator, 1)
		b.has(1)
		b.say(2)
		heard(t, operator, 2, 1)
		if _, err := b.try("head", "secret"); err == nil {
			t.Error("an operator without TLS is listened to")
		}
		if _, err := b.encrypted(another, "secret"); err == nil {
			t.Error("an operator of another cluster is listened to")
		}
		if _, err := b.encrypted(config, "wrong"); err == nil {
			t.Error("an operator with another token is listened to")
		}
		silent := b.stranger()
		elapse(patience + time.Second)
		if _, err := silent.Write([]byte("x")); err == nil {
			t.Error("who does not shake hands is still there")
		}
		b.order(operator, 3)
		b.has(3)
	})
}
