package archiver

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificates are the program's own and those of authorities, as the files have them now.
type certificates struct {
	files [3]string // the program's certificate, its key, and authorities
	now   func() time.Time
	log   *slog.Logger

	mutex       sync.Mutex
	read        time.Time
	contents    [3][]byte
	own         *tls.Certificate
	authorities *x509.CertPool
}

// readEach is how long what was read from the files counts.
const readEach = 10 * time.Second

func newCertificates(cfg Config) (*certificates, error) {
	c := &certificates{files: [3]string{cfg.Certificate, cfg.Key, cfg.Authorities}, now: cfg.Now, log: cfg.Log}
	return c, c.load()
}

// load reads the files.
func (c *certificates) load() error {
	c.read = c.now()
	var contents [3][]byte
	isSame := true
	for i, file := range c.files {
		var err error
		if contents[i], err = os.ReadFile(file); err != nil { //nolint:gosec // G304: flags name the files
			return fmt.Errorf("read certificates: %w", err)
		}
		isSame = isSame && bytes.Equal(contents[i], c.contents[i])
	}
	if isSame {
		return nil
	}
	own, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return fmt.Errorf("read the archiver's certificate: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(contents[2]) {
		return fmt.Errorf("read the authorities of callers: %s has no certificate", c.files[2])
	}
	c.contents, c.own, c.authorities = contents, &own, authorities
	return nil
}

// settings returns those of a handshake. A client needs no certificate; one that it shows must be of an authority.
func (c *certificates) settings(*tls.ClientHelloInfo) (*tls.Config, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if now := c.now(); now.Sub(c.read) >= readEach || now.Before(c.read) {
		if err := c.load(); err != nil {
			c.log.Warn("The former certificates stay in use", "err", err)
		}
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*c.own}, NextProtos: []string{"h2"},
		ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: c.authorities, Time: c.now,
		SessionTicketsDisabled: true, // a session would outlive the authority of its certificate
	}, nil
}
