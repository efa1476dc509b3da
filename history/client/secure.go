package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc/credentials"
)

// Files are those of a client's certificate, its key, and the certificates of the archivers' authorities.
type Files struct{ Certificate, Key, Authorities string }

// Check returns why the files cannot be used.
func (f Files) Check() error {
	_, err := f.read()
	return err
}

// read returns what the files have now.
func (f Files) read() (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate for archivers: %w", err)
	}
	text, err := os.ReadFile(f.Authorities)
	if err != nil {
		return nil, fmt.Errorf("read the authorities of archivers: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read the authorities of archivers: %s has no certificate", f.Authorities)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}, RootCAs: authorities}, nil
}

// Secure returns credentials by which both ends show a certificate. The files are read for each connection, as certificates are
// replaced.
func Secure(files Files) credentials.TransportCredentials { return &secure{files: files} }

// secure are the credentials.
type secure struct {
	files Files
	name  string
}

// ClientHandshake implements credentials.TransportCredentials.
func (s *secure) ClientHandshake(ctx context.Context, authority string, connection net.Conn) (net.Conn, credentials.AuthInfo, error) {
	settings, err := s.files.read()
	if err != nil {
		return nil, nil, err
	}
	settings.ServerName = s.name
	return credentials.NewTLS(settings).ClientHandshake(ctx, authority, connection)
}

// ServerHandshake implements credentials.TransportCredentials. A client has none.
func (s *secure) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, fmt.Errorf("serve by the credentials of a client: %w", os.ErrInvalid)
}

// Info implements credentials.TransportCredentials.
func (s *secure) Info() credentials.ProtocolInfo {
	return credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13, ServerName: s.name}).Info()
}

// Clone implements credentials.TransportCredentials.
func (s *secure) Clone() credentials.TransportCredentials { return &secure{s.files, s.name} }

// OverrideServerName implements credentials.TransportCredentials.
func (s *secure) OverrideServerName(name string) error {
	s.name = name
	return nil
}
