package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// organization is in the subject of what an authority issues, and not in its own: OpenSSL takes a certificate whose
// subject and issuer are equal for one that signed itself.
const organization = "heliostat"

// clientLifetime is how long the certificate of a ClientConfig is valid.
const clientLifetime = time.Hour

// Issue returns a certificate for these names and addresses, and its key, as PEM. Servers and clients may show it as
// long as its authority is valid.
func (a *Authority) Issue(names []string, addresses []netip.Addr, now time.Time) (certificate, key []byte, err error) {
	return a.issueFor(names, addresses, now, &x509.Certificate{
		NotBefore: a.certificate.NotBefore, NotAfter: a.certificate.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

// IssueServer returns a certificate for these names and addresses, and its key, as PEM. Servers alone may show it, until
// a time or the end of its authority.
func (a *Authority) IssueServer(
	names []string, addresses []netip.Addr, now, until time.Time,
) (certificate, key []byte, err error) {
	if until.After(a.certificate.NotAfter) {
		until = a.certificate.NotAfter
	}
	return a.issueFor(names, addresses, now, &x509.Certificate{
		NotBefore: now.Add(-backdate), NotAfter: until, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// IssueClient returns a certificate for a client of a name, and its key, as PEM. Clients alone may show it, until a time or the end of
// its authority.
func (a *Authority) IssueClient(name string, now, until time.Time) (certificate, key []byte, err error) {
	if until.After(a.certificate.NotAfter) {
		until = a.certificate.NotAfter
	}
	issued, private, err := a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: commonName(name)}, NotBefore: now.Add(-backdate), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, now)
	if err != nil {
		return nil, nil, err
	}
	return encode(issued, private)
}

// issueFor returns the certificate of a template for names and addresses.
func (a *Authority) issueFor(
	names []string, addresses []netip.Addr, now time.Time, template *x509.Certificate,
) (certificate, key []byte, err error) {
	template.DNSNames = names
	if slices.Contains(names, "") {
		return nil, nil, errors.New("issue a certificate: a name is empty")
	}
	for _, address := range addresses {
		if !address.IsValid() {
			return nil, nil, errors.New("issue a certificate: an address is empty")
		}
		template.IPAddresses = append(template.IPAddresses, address.Unmap().AsSlice())
	}
	switch {
	case len(names) > 0:
		template.Subject.CommonName = commonName(names[0])
	case len(addresses) > 0:
		template.Subject.CommonName = addresses[0].String()
	default:
		return nil, nil, errors.New("issue a certificate: it has neither name nor address")
	}
	issued, private, err := a.issue(template, now)
	if err != nil {
		return nil, nil, err
	}
	return encode(issued, private)
}

// CheckIssued returns why a certificate is none that this authority has issued.
func (a *Authority) CheckIssued(certificate *x509.Certificate) error {
	return certificate.CheckSignatureFrom(a.certificate)
}

// ClientConfig returns what a client needs that connects now: it trusts this authority alone, and shows a certificate
// of its own that is valid for an hour. The caller sets ServerName.
func (a *Authority) ClientConfig(now time.Time) (*tls.Config, error) {
	return a.ClientConfigAs("operator", now)
}

// ClientConfigAs does the same for a client of a name.
func (a *Authority) ClientConfigAs(name string, now time.Time) (*tls.Config, error) {
	certificate, key, err := a.issue(&x509.Certificate{
		Subject:   pkix.Name{CommonName: commonName(name)},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(clientLifetime),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, now)
	if err != nil {
		return nil, err
	}
	config := clientConfig(a.certificate, tls.Certificate{
		Certificate: [][]byte{certificate.Raw}, PrivateKey: key, Leaf: certificate,
	})
	config.Time = func() time.Time { return now }
	return config, nil
}

// issue makes a key, and signs the certificate of it that the template describes.
func (a *Authority) issue(template *x509.Certificate, now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	if now.Before(a.certificate.NotBefore) || now.After(a.certificate.NotAfter) {
		from, to := a.certificate.NotBefore.Format(time.RFC3339), a.certificate.NotAfter.Format(time.RFC3339)
		return nil, nil, fmt.Errorf("issue a certificate: its authority is valid from %s to %s, and it is %s",
			from, to, now.UTC().Format(time.RFC3339))
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make the key of a certificate: %w", err)
	}
	template.Subject.Organization = []string{organization}
	template.KeyUsage, template.BasicConstraintsValid = x509.KeyUsageDigitalSignature, true
	certificate, err := sign(template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("issue a certificate: %w", err)
	}
	return certificate, key, nil
}

// clientConfig returns what a client needs that trusts one authority and shows a certificate.
func clientConfig(authority *x509.Certificate, own tls.Certificate) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}, NextProtos: protocols(),
		RootCAs: pool(authority),
	}
}

// protocols returns what is spoken over TLS. The servers of gRPC in C++ refuse a client that does not say so.
func protocols() []string { return []string{"h2"} }

func pool(authority *x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(authority)
	return pool
}
