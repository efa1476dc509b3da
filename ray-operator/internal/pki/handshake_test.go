package pki

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// began is when every authority of these tests is made.
var began = time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)

// address is the one that pods of these tests have.
var address = netip.MustParseAddr("192.0.2.7")

func authority(t testing.TB) *Authority {
	t.Helper()
	a, err := New("demo", began)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// pod returns what a pod of a cluster reads from its files.
func pod(t *testing.T, a *Authority) (client, server *tls.Config) {
	t.Helper()
	client, server, err := ReadFiles(podFiles(t, a))
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

func podFiles(t *testing.T, a *Authority) (directory string) {
	t.Helper()
	directory = t.TempDir()
	ca, _, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	addresses := []netip.Addr{address, netip.IPv6Loopback()}
	certificate, key, err := a.Issue([]string{"localhost", "demo-head"}, addresses, began)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{AuthorityCertificateFile: ca, CertificateFile: certificate, KeyFile: key} {
		if err := os.WriteFile(filepath.Join(directory, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

// operator returns what an operator connects with that asks for it at a time.
func operator(t *testing.T, a *Authority, now time.Time) *tls.Config {
	t.Helper()
	config, err := a.ClientConfig(now)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// clock returns what sets a config's time.
func clock(now time.Time) func() time.Time { return func() time.Time { return now } }

// shake connects two ends, and returns what each says of it. The client has heard of the server at the end.
func shake(t *testing.T, client, server *tls.Config) (byClient, byServer error) {
	t.Helper()
	clientEnd, serverEnd := net.Pipe()
	served := make(chan error, 1)
	go func() {
		connection := tls.Server(serverEnd, server)
		err := connection.HandshakeContext(t.Context())
		if err == nil {
			_, err = connection.Write([]byte("x"))
		}
		served <- errors.Join(err, serverEnd.Close())
	}()
	connection := tls.Client(clientEnd, client)
	byClient = connection.HandshakeContext(t.Context())
	if byClient == nil {
		_, byClient = io.ReadFull(connection, make([]byte, 1)) // a client of TLS 1.3 hears later that it was refused
	}
	if err := clientEnd.Close(); err != nil {
		t.Error(err)
	}
	return byClient, <-served
}

// meeting is of two ends: what each has, and what each says at the end, empty if all is well.
type meeting struct {
	client, server     *tls.Config
	dialled            string
	now                time.Time // by both clocks; an operator keeps its own
	byClient, byServer string
}

func (m meeting) check(t *testing.T) {
	client, server := m.client.Clone(), m.server.Clone()
	client.ServerName, server.Time = m.dialled, clock(m.now)
	if client.Time == nil {
		client.Time = clock(m.now)
	}
	byClient, byServer := shake(t, client, server)
	for end, said := range map[string]struct {
		err  error
		want string
	}{"client": {byClient, m.byClient}, "server": {byServer, m.byServer}} {
		if (said.err == nil) != (said.want == "") || said.err != nil && !strings.Contains(said.err.Error(), said.want) {
			t.Errorf("the %s says %v, not %q", end, said.err, said.want)
		}
	}
}

func TestHandshake_WithinACluster(t *testing.T) {
	a := authority(t)
	client, server := pod(t, a)
	owner := operator(t, a, began)
	const refused = "bad certificate"
	for name, m := range map[string]meeting{
		"by address":           {client: client, server: server, dialled: address.String()},
		"by name":              {client: client, server: server, dialled: "demo-head"},
		"by IPv6 address":      {client: client, server: server, dialled: "::1"},
		"operator, by address": {client: owner, server: server, dialled: address.String()},
		"by another address": {
			client: client, server: server, dialled: "192.0.2.8",
			byClient: "not 192.0.2.8", byServer: refused,
		},
		"by another name": {
			client: client, server: server, dialled: "b",
			byClient: "not b", byServer: refused,
		},
		"operator, by another": {
			client: owner, server: server, dialled: "192.0.2.8",
			byClient: "not 192.0.2.8", byServer: refused,
		},
		"an operator as server": {
			client: client, server: showing(server, owner), dialled: "b",
			byClient: "not valid for any", byServer: refused,
		},
		"without a certificate": {
			client: without(client), server: server, dialled: "demo-head",
			byClient: "certificate required", byServer: "didn't provide a certificate",
		},
		"by TLS 1.1": {
			client: atMost(client, tls.VersionTLS11), server: server, dialled: "demo-head",
			byClient: "protocol version not supported", byServer: "unsupported versions",
		},
	} {
		m.now = began
		t.Run(name, m.check)
	}
}

func TestHandshake_WithAnotherCluster(t *testing.T) {
	a, other := authority(t), authority(t)
	client, server := pod(t, a)
	otherClient, otherServer := pod(t, other)
	for name, m := range map[string]meeting{
		"another's server": {
			client: client, server: otherServer, byClient: "signed by unknown authority", byServer: "bad certificate",
		},
		"another's operator": {
			client: operator(t, other, began), server: server,
			byClient: "signed by unknown authority", byServer: "bad certificate",
		},
		"another's client, which trusts all": {
			client: trusting(otherClient, client), server: server,
			byClient: "unknown certificate authority", byServer: "unknown authority",
		},
	} {
		m.now, m.dialled = began, "demo-head"
		t.Run(name, m.check)
	}
}

func TestHandshake_OutOfTime(t *testing.T) {
	a := authority(t)
	client, server := pod(t, a)
	late := began.AddDate(9, 11, 0)
	for name, m := range map[string]meeting{
		"a clock that is late by 59 min": {client: client, now: began.Add(-59 * time.Minute)},
		"a clock that is late by 61 min": {
			client: client, now: began.Add(-61 * time.Minute), byClient: "not yet valid", byServer: "bad certificate",
		},
		"in the last year":           {client: client, now: late},
		"operator, in the last year": {client: operator(t, a, late), now: late},
		"after the end": {
			client: client, now: began.AddDate(11, 0, 0), byClient: "certificate has expired", byServer: "bad certificate",
		},
		"operator, after 59 min": {client: operator(t, a, began), now: began.Add(59 * time.Minute)},
		"operator, after 61 min": {
			client: operator(t, a, began), now: began.Add(61 * time.Minute),
			byClient: "expired certificate", byServer: "certificate has expired",
		},
	} {
		m.server, m.dialled = server, "demo-head"
		t.Run(name, m.check)
	}
}

// trusting returns a config with what another trusts.
func trusting(config, another *tls.Config) *tls.Config {
	config = config.Clone()
	config.RootCAs = another.RootCAs
	return config
}

// showing returns a config with the certificate of another.
func showing(config, another *tls.Config) *tls.Config {
	config = config.Clone()
	config.Certificates = another.Certificates
	return config
}

func without(config *tls.Config) *tls.Config { return showing(config, &tls.Config{}) }

func atMost(config *tls.Config, version uint16) *tls.Config {
	config = config.Clone()
	config.MinVersion, config.MaxVersion = version, version
	return config
}

// TestClientConfig_SaysWhatItSpeaks: the servers of gRPC in C++ want h2, and others need not know it.
func TestClientConfig_SaysWhatItSpeaks(t *testing.T) {
	a := authority(t)
	client, server := pod(t, a)
	server.Time = clock(began)
	for name, row := range map[string]struct {
		client *tls.Config
		speaks []string
		want   string
	}{
		"an operator":                 {operator(t, a, began), []string{"h2"}, "h2"},
		"a pod":                       {client, []string{"h2"}, "h2"},
		"a server that says nothing":  {client, nil, ""},
		"an operator to one that was": {operator(t, a, began), nil, ""},
	} {
		server, client := server.Clone(), row.client.Clone()
		server.NextProtos = row.speaks
		client.ServerName, client.Time = "localhost", clock(began)
		var spoken string
		client.VerifyConnection = func(state tls.ConnectionState) error {
			spoken = state.NegotiatedProtocol
			return nil
		}
		if byClient, byServer := shake(t, client, server); byClient != nil || byServer != nil || spoken != row.want {
			t.Errorf("%s: %q is spoken, %v, %v", name, spoken, byClient, byServer)
		}
	}
}

func TestReadFiles_RefusesWhatDoesNotFit(t *testing.T) {
	a := authority(t)
	another := podFiles(t, authority(t))
	read := func(name string) string { return string(must(os.ReadFile(filepath.Join(another, name)))) }
	for name, row := range map[string]struct{ file, text, want string }{
		"no authority":             {AuthorityCertificateFile, "", "read ca.crt in"},
		"an authority that is not": {AuthorityCertificateFile, read(CertificateFile), "it may not sign certificates"},
		"another authority":        {AuthorityCertificateFile, read(AuthorityCertificateFile), "compare tls.crt with ca.crt"},
		"another key":              {KeyFile, read(KeyFile), "private key does not match public key"},
		"no certificate":           {CertificateFile, "x", "read tls.crt and tls.key"},
		"a long file":              {KeyFile, strings.Repeat("\n", maxPEM+1), "more than 65536 bytes"},
	} {
		directory := podFiles(t, a)
		if err := os.WriteFile(filepath.Join(directory, row.file), []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := ReadFiles(directory); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{AuthorityCertificateFile, CertificateFile, KeyFile} {
		directory := podFiles(t, a)
		if err := os.Remove(filepath.Join(directory, name)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := ReadFiles(directory); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	if _, _, err := ReadFiles(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a directory: %v", err)
	}
}
