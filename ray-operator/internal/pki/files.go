package pki

import (
	"crypto/tls"
	"fmt"
	"io"
	"os"
)

// The names of files, which are those of the keys in a Secret.
const (
	AuthorityCertificateFile = "ca.crt"
	AuthorityKeyFile         = "ca.key"
	CertificateFile          = "tls.crt"
	KeyFile                  = "tls.key"
)

// ReadFiles returns what both ends need, from a directory with the certificate of the authority and with a certificate
// and its key. The client trusts the authority alone; the server accepts no client without a certificate of it.
func ReadFiles(directory string) (client, server *tls.Config, err error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, nil, fmt.Errorf("read certificates: %w", err)
	}
	defer func() { _ = root.Close() }() // it was only read
	var texts [3][]byte
	for i, name := range []string{AuthorityCertificateFile, CertificateFile, KeyFile} {
		if texts[i], err = readFile(root, name); err != nil {
			return nil, nil, fmt.Errorf("read certificates in %s: %w", directory, err)
		}
	}
	authority, err := readAuthority(texts[0])
	if err != nil {
		return nil, nil, fmt.Errorf("read %s in %s: %w", AuthorityCertificateFile, directory, err)
	}
	own, err := tls.X509KeyPair(texts[1], texts[2])
	if err != nil {
		return nil, nil, fmt.Errorf("read %s and %s in %s: %w", CertificateFile, KeyFile, directory, err)
	}
	if err := own.Leaf.CheckSignatureFrom(authority); err != nil {
		return nil, nil, fmt.Errorf("compare %s with %s in %s: %w",
			CertificateFile, AuthorityCertificateFile, directory, err)
	}
	client = clientConfig(authority, own)
	server = &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}, NextProtos: protocols(),
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool(authority),
	}
	return client, server, nil
}

// readFile returns the content of a file that is not too long to be read.
func readFile(root *os.Root, name string) ([]byte, error) {
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(file, maxPEM+1))
	if err == nil && len(text) > maxPEM {
		err = fmt.Errorf("%s has more than %d bytes", name, maxPEM)
	}
	return text, err
}
