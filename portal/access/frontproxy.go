package access

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/clock"
)

// keepProxy is for how long a certificate is known to be the proxy's.
const keepProxy = time.Minute

// frontProxy reads who a user is from headers of a connection whose other end has proven to be the proxy.
type frontProxy struct {
	FrontProxy
	authority *x509.CertPool
	clock     clock.PassiveClock
	proven    *recent[bool]
}

func newFrontProxy(of FrontProxy, now clock.PassiveClock) (*frontProxy, error) {
	authority, err := readAuthority(of.CertificateAuthority)
	if err != nil {
		return nil, err
	}
	return &frontProxy{FrontProxy: of, authority: authority, clock: now, proven: newRecent[bool](now, maxProxies)}, nil
}

// IsProxied reports whether a front proxy says whose a request is, so that nobody needs to sign in.
func (k *Kubernetes) IsProxied(r *http.Request) bool {
	return k.proxy != nil && len(r.Header[k.proxy.UserHeader]) > 0 && k.IsFromProxy(r)
}

// IsFromProxy reports whether a request came over a connection of the front proxy, whatever it says of its user. Headers
// that sign such a request in can be the proxy's, which adds them for a cookie of its own.
func (k *Kubernetes) IsFromProxy(r *http.Request) bool {
	return k.proxy != nil && r.TLS != nil && k.proxy.isProxy(r.TLS)
}

// callerOf returns the user that the proxy names, and nil where the request does not come from the proxy or names none.
func (p *frontProxy) callerOf(r *http.Request) (*Caller, error) {
	if r.TLS == nil || len(r.Header[p.UserHeader]) == 0 || !p.isProxy(r.TLS) {
		return nil, nil //nolint:nilnil // nobody is no error: there may be a token
	}
	user := authenticationv1.UserInfo{Username: r.Header.Get(p.UserHeader), UID: r.Header.Get(p.UIDHeader), Groups: r.Header[p.GroupHeader]}
	if len(r.Header[p.UserHeader]) > 1 || len(r.Header[p.UIDHeader]) > 1 {
		return nil, ErrProxyIdentity
	}
	for header, values := range r.Header {
		name, is := strings.CutPrefix(header, p.ExtraHeaderPrefix)
		if !is {
			continue
		}
		key, err := url.PathUnescape(strings.ToLower(name))
		// One that is left out could be what narrows the user's rights.
		if err != nil || !slices.Contains(p.Extra, key) || slices.Contains(values, "") {
			return nil, ErrProxyIdentity
		}
		if user.Extra == nil {
			user.Extra = map[string]authenticationv1.ExtraValue{}
		}
		user.Extra[key] = append(user.Extra[key], values...)
	}
	return newCaller(MethodFrontProxy, "", user, r.TLS.PeerCertificates[0].NotAfter)
}

// isProxy reports whether the other end of a connection has shown the proxy's certificate.
func (p *frontProxy) isProxy(state *tls.ConnectionState) bool {
	if len(state.PeerCertificates) == 0 {
		return false
	}
	leaf := state.PeerCertificates[0]
	sum := sha256.Sum256(leaf.Raw)
	key := hex.EncodeToString(sum[:])
	if is, known := p.proven.find(key); known {
		return is
	}
	between := x509.NewCertPool()
	for _, one := range state.PeerCertificates[1:] {
		between.AddCert(one)
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: p.authority, Intermediates: between, CurrentTime: p.clock.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	is := err == nil && slices.Contains(p.Names, leaf.Subject.CommonName)
	p.proven.put(key, is, keepProxy)
	return is
}
