// Package servercert keeps the certificate of the server for portals, where its administrator has given none.
//
// In: the Secret and the ConfigMap that the chart makes without content, the hosts of the server, and the time. Out: in that
// Secret, an authority for ten years, and a certificate of it for one year, which is renewed four months before its end; in
// the ConfigMap, the authority's certificate.
//
// It must never replace an authority that can be used: clients know the server by it. It writes to these two alone, and puts no key into an error or a log.
package servercert

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki"
)

// How long a certificate is valid, and how long before its end there is another one: time enough to notice that it fails.
const (
	lifetime    = 365 * 24 * time.Hour
	renewBefore = lifetime / 3
)

// authorityName is what people read who look at the authority's certificate.
const authorityName = "heliostat server for portals"

// Hosts are the names and addresses by which clients reach the server.
type Hosts struct {
	Names     []string
	Addresses []netip.Addr
}

// ReadHosts reads names and addresses, separated by commas.
func ReadHosts(list string) Hosts {
	var hosts Hosts
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		if address, err := netip.ParseAddr(text); err == nil {
			hosts.Addresses = append(hosts.Addresses, address.Unmap())
		} else if text != "" {
			hosts.Names = append(hosts.Names, text)
		}
	}
	return hosts
}

// isOf reports whether a certificate is for these hosts, and no others.
func (h Hosts) isOf(certificate *x509.Certificate) bool {
	var wanted, has []string
	for _, address := range h.Addresses {
		wanted = append(wanted, address.String())
	}
	for _, address := range certificate.IPAddresses {
		has = append(has, address.String())
	}
	return slices.Equal(sorted(append(wanted, h.Names...)), sorted(append(has, certificate.DNSNames...)))
}

func sorted(texts []string) []string { return slices.Compact(slices.Sorted(slices.Values(texts))) }

// Renew returns what the Secret must hold and why, or nil where what it holds is good. What else is in it stays.
func Renew(held map[string][]byte, hosts Hosts, now time.Time) (wanted map[string][]byte, why string, err error) {
	authority, unusable := ReadAuthority(held, now)
	if unusable != nil {
		authority, err = pki.New(authorityName, now)
	} else if unusable = Check(held, authority, hosts, now); unusable == nil {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	made := map[string][]byte{}
	made[pki.AuthorityCertificateFile], made[pki.AuthorityKeyFile], err = authority.Encode()
	if err != nil {
		return nil, "", err
	}
	if err := Issue(made, authority, hosts, now); err != nil {
		return nil, "", err
	}
	wanted = map[string][]byte{}
	maps.Copy(wanted, held)
	maps.Copy(wanted, made)
	return wanted, unusable.Error(), nil
}

// ReadAuthority returns the authority that is held, or why it can issue no certificate that would last. One that only ends too soon
// is returned with the reason.
func ReadAuthority(held map[string][]byte, now time.Time) (*pki.Authority, error) {
	if len(held) == 0 {
		return nil, errors.New("read the authority: the Secret is empty")
	}
	authority, err := pki.Read(held[pki.AuthorityCertificateFile], held[pki.AuthorityKeyFile])
	if err == nil && authority.Until().Before(now.Add(renewBefore)) {
		err = fmt.Errorf("read the certificate of the authority: it ends at %s", authority.Until().Format(time.RFC3339))
	}
	return authority, err
}

// Holder is who shows a certificate: a server with its Hosts, or a Client.
type Holder interface {
	issue(authority *pki.Authority, now, until time.Time) (certificate, key []byte, err error)
	isOf(certificate *x509.Certificate) bool
}

// Client is the name of a client.
type Client string

func (c Client) issue(authority *pki.Authority, now, until time.Time) (certificate, key []byte, err error) {
	return authority.IssueClient(string(c), now, until)
}

func (c Client) isOf(certificate *x509.Certificate) bool {
	return certificate.Subject.CommonName == string(c) && len(certificate.DNSNames) == 0
}

func (h Hosts) issue(authority *pki.Authority, now, until time.Time) (certificate, key []byte, err error) {
	return authority.IssueServer(h.Names, h.Addresses, now, until)
}

// Issue puts a certificate for a year and its key into what a Secret is to hold.
func Issue(into map[string][]byte, authority *pki.Authority, holder Holder, now time.Time) (err error) {
	into[pki.CertificateFile], into[pki.KeyFile], err = holder.issue(authority, now, now.Add(lifetime))
	return err
}

// Check returns why the certificate that is held must be another one.
func Check(held map[string][]byte, authority *pki.Authority, holder Holder, now time.Time) error {
	pair, err := tls.X509KeyPair(held[pki.CertificateFile], held[pki.KeyFile])
	if err != nil {
		return errors.New("read the certificate: it is missing, or its key is that of another one") // the error may have more of it
	}
	switch err := authority.CheckIssued(pair.Leaf); {
	case err != nil:
		return fmt.Errorf("compare the certificate with its authority: %w", err)
	case pair.Leaf.NotAfter.Before(now.Add(renewBefore)) || pair.Leaf.NotBefore.After(now):
		return fmt.Errorf("read the certificate: it is valid from %s to %s",
			pair.Leaf.NotBefore.Format(time.RFC3339), pair.Leaf.NotAfter.Format(time.RFC3339))
	case !holder.isOf(pair.Leaf):
		return errors.New("read the certificate: it is for other hosts")
	}
	return nil
}
