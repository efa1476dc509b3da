package sidecar

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/decision"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/protocoltest"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki/pkitest"
)

// configs returns what both ends of a pod need, which is at 127.0.0.1.
func configs(t *testing.T, a *pki.Authority) (client, server *tls.Config) {
	t.Helper()
	client, server, err := pki.ReadFiles(pkitest.Directory(t, a, time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

// encrypt puts an end that takes mutual TLS before an address, as Ray's own is.
func encrypt(t *testing.T, server *tls.Config, to string) (address string) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // it ends the loop
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go pass(client, to)
		}
	}()
	return listener.Addr().String()
}

// pass hands on what two ends say until one of them ends.
func pass(client net.Conn, to string) {
	defer client.Close()
	target, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer target.Close()
	go func() {
		_, _ = io.Copy(target, client) // its end is that of both
		_ = target.Close()
	}()
	_, _ = io.Copy(client, target) // as above
}

// as returns how an operator connects.
func as(config *tls.Config) func(context.Context, string) (net.Conn, error) {
	return headclient.Connect(headclient.ConnectAnywhere).Over(trust{config})
}

// TestRun_Encrypted: GCS is asked over TLS, and who has a certificate of this cluster alone is listened to.
func TestRun_Encrypted(t *testing.T) {
	a := pkitest.New(t, time.Now())
	client, server := configs(t, a)
	head := guarded(t)
	p := runWith(t, head, Config{
		GCS: encrypt(t, server, head.Address()), Listen: free(t), Metrics: free(t), Client: client, Server: server,
		Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler), Token: func() (string, error) { return secret, nil },
	})
	ours, err := a.ClientConfig(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var operator *protocoltest.Operator
	eventually(t, func() (err error) {
		operator, err = protocoltest.ConnectBy(t.Context(), as(ours), p.listen, "head", secret)
		return err
	})
	t.Cleanup(operator.Close)
	snapshot := protocol.Snapshot{Head: "head", Pace: decision.Default, Groups: []protocol.Group{cpuGroup(4)}}
	if err := operator.Order(snapshot); err != nil {
		t.Fatal(err)
	}
	defer head.Want(cpus(1))()
	eventually(t, func() error {
		if decision, _ := operator.Decision(); len(decision.Targets) != 1 || decision.Targets[0].Replicas != 1 {
			return fmt.Errorf("one is wanted: %+v, %w", decision, operator.Err())
		}
		return nil
	})

	theirs, err := pkitest.New(t, time.Now()).ClientConfig(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	theirs.RootCAs = ours.RootCAs
	nobodys := &tls.Config{RootCAs: ours.RootCAs}
	for name, dial := range map[string]func(context.Context, string) (net.Conn, error){
		"without TLS": headclient.ConnectAnywhere, "without a certificate": as(nobodys), "of another cluster": as(theirs),
	} {
		if _, err := protocoltest.ConnectBy(t.Context(), dial, p.listen, "head", secret); err == nil {
			t.Errorf("an operator %s is listened to", name)
		}
	}
	if _, err := protocoltest.ConnectBy(t.Context(), as(ours), p.listen, "head", "another"); err == nil {
		t.Error("an operator with another token is listened to")
	}
	if err := operator.Err(); err != nil {
		t.Errorf("the others ended the stream: %v", err)
	}
	p.get(t, "/healthz")
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// TestRun_AsksNoOtherHead: a head of another cluster, or one without TLS, is not asked.
func TestRun_AsksNoOtherHead(t *testing.T) {
	client, _ := configs(t, pkitest.New(t, time.Now()))
	_, another := configs(t, pkitest.New(t, time.Now()))
	head := guarded(t)
	for name, gcs := range map[string]string{
		"of another cluster": encrypt(t, another, head.Address()), "without TLS": head.Address(),
	} {
		asked, err := Config{GCS: gcs, Client: client}.dial()
		if err != nil {
			t.Fatal(err)
		}
		dialled := asked.(*headclient.Client)
		if version, err := dialled.Alive(t.Context()); headclient.KindOf(err) != headclient.Unavailable {
			t.Errorf("a head %s answers %q, %v", name, version, err)
		}
		if err := dialled.Close(); err != nil {
			t.Error(err)
		}
	}
}
