package access

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/heliostat-dev/heliostat/ray-operator/yaml"
)

// How the server acts for callers.
const (
	// PassThrough sends the caller's own token on: the API server judges it, and the server needs no right.
	PassThrough = "PassThrough"
	// Impersonate sends the server's own credential, and says whom it is for.
	Impersonate = "Impersonate"
)

// Identity says who is believed to be whom. Its zero value is PassThrough.
type Identity struct {
	// Mode is PassThrough or Impersonate. All that follows is for Impersonate.
	Mode string `json:"mode"`
	// Issuers are providers of OpenID Connect that the API server does not know.
	Issuers []Issuer `json:"issuers,omitempty"`
	// Audience is that of tokens of service accounts which are meant for this server alone.
	Audience string `json:"audience,omitempty"`
	// FrontProxy is a proxy that signs users in and says who they are.
	FrontProxy *FrontProxy `json:"frontProxy,omitempty"`
}

// Issuer is a provider of OpenID Connect.
type Issuer struct {
	// URL is its https address, as it is in the claim iss.
	URL string `json:"url"`
	// Audience must be in the claim aud.
	Audience string `json:"audience"`
	// UsernameClaim and GroupsClaim are the claims that hold the user's name and groups. By default the name is in sub, and
	// there are no groups.
	UsernameClaim string `json:"usernameClaim,omitempty"`
	GroupsClaim   string `json:"groupsClaim,omitempty"`
	// Prefix is put before the names of users and groups. It must be given, were it empty.
	Prefix *string `json:"prefix"`
	// CertificateAuthority is that of the provider's certificate, in PEM. By default it is one of those that the system trusts.
	CertificateAuthority string `json:"certificateAuthority,omitempty"`
}

// FrontProxy is a proxy that is known by its client certificate.
type FrontProxy struct {
	// CertificateAuthority is that of the proxy's certificate, in PEM, and Names are the common names that it may have.
	CertificateAuthority string   `json:"certificateAuthority"`
	Names                []string `json:"names"`
	// The headers in which the proxy says who the user is. By default they are those of Kubernetes, X-Remote-User and so on.
	UserHeader        string `json:"userHeader,omitempty"`
	GroupHeader       string `json:"groupHeader,omitempty"`
	UIDHeader         string `json:"uidHeader,omitempty"`
	ExtraHeaderPrefix string `json:"extraHeaderPrefix,omitempty"`
	// Extra are the keys of extra that the proxy may send, in lower case.
	Extra []string `json:"extra,omitempty"`
}

// ReadIdentity reads a file in YAML. Without a name it is PassThrough.
func ReadIdentity(file string) (Identity, error) {
	if file == "" {
		return Identity{Mode: PassThrough}, nil
	}
	text, err := os.ReadFile(file) //nolint:gosec // G304: a flag of the server names it
	if err != nil {
		return Identity{}, fmt.Errorf("read the identity file: %w", err)
	}
	return ParseIdentity(text)
}

// ParseIdentity reads and checks what says who is believed to be whom.
func ParseIdentity(text []byte) (Identity, error) {
	identity := Identity{}
	if err := yaml.Unmarshal(text, yaml.Settings, &identity); err != nil {
		return Identity{}, fmt.Errorf("read the identity file: %w", err)
	}
	if err := identity.complete(); err != nil {
		return Identity{}, fmt.Errorf("read the identity file: %w", err)
	}
	return identity, nil
}

// complete fills in defaults, and says what is bad.
func (i *Identity) complete() error {
	ways := len(i.Issuers) + len(i.Audience)
	if i.FrontProxy != nil {
		ways++
	}
	switch {
	case i.Mode != PassThrough && i.Mode != Impersonate:
		return fmt.Errorf("mode: unknown value %q; use %s or %s", i.Mode, PassThrough, Impersonate)
	case i.Mode == PassThrough && ways > 0:
		return fmt.Errorf("mode: issuers, audience and frontProxy work with %s alone: set it, or leave them out", Impersonate)
	case i.Mode == Impersonate && ways == 0:
		return errors.New("mode: no way to sign in; set issuers, audience or frontProxy")
	}
	if strings.TrimSpace(i.Audience) != i.Audience {
		return errors.New("audience: it holds white space at an end: leave it out")
	}
	known := map[string]bool{}
	for at := range i.Issuers {
		one := &i.Issuers[at]
		if err := one.complete(); err != nil {
			return fmt.Errorf("issuers[%d].%w", at, err)
		}
		if known["url "+one.URL] || known["prefix "+*one.Prefix] {
			return fmt.Errorf("issuers[%d]: url and prefix must be unique, so that no user of one issuer can impersonate a user of another", at)
		}
		known["url "+one.URL], known["prefix "+*one.Prefix] = true, true
	}
	if i.FrontProxy != nil {
		if err := i.FrontProxy.complete(); err != nil {
			return fmt.Errorf("frontProxy.%w", err)
		}
	}
	return nil
}

func (i *Issuer) complete() error {
	address, err := url.Parse(i.URL)
	switch {
	case err != nil || address.Scheme != "https" || address.Host == "" || address.User != nil || address.RawQuery != "" || address.Fragment != "":
		return errors.New("url: it is not https://HOST/PATH: write it as the issuer does in the claim iss")
	case i.Audience == "":
		return errors.New("audience: it is empty: write what the issuer puts into the claim aud for this server")
	case i.Prefix == nil:
		return errors.New(`prefix: it is missing: give one, such as "sso:", or "" to take names as they are`)
	case strings.HasPrefix(*i.Prefix, reserved) || *i.Prefix != "" && checkName(*i.Prefix) != nil:
		return errors.New("prefix: it begins with system: or holds white space: write another one")
	}
	if i.UsernameClaim == "" {
		i.UsernameClaim = "sub"
	}
	if _, err := readAuthority(i.CertificateAuthority); i.CertificateAuthority != "" && err != nil {
		return fmt.Errorf("certificateAuthority: %w", err)
	}
	return nil
}

func (p *FrontProxy) complete() error {
	if _, err := readAuthority(p.CertificateAuthority); err != nil {
		return fmt.Errorf("certificateAuthority: %w", err)
	}
	if len(p.Names) == 0 || slices.Contains(p.Names, "") {
		return errors.New("names: missing or empty; list the common names that the proxy's certificate may have")
	}
	for _, header := range []struct {
		field, standard string
		value           *string
	}{
		{"userHeader", "X-Remote-User", &p.UserHeader}, {"groupHeader", "X-Remote-Group", &p.GroupHeader},
		{"uidHeader", "X-Remote-Uid", &p.UIDHeader}, {"extraHeaderPrefix", "X-Remote-Extra-", &p.ExtraHeaderPrefix},
	} {
		if *header.value == "" {
			*header.value = header.standard
		}
		*header.value = http.CanonicalHeaderKey(*header.value)
		if !httpguts.ValidHeaderFieldName(*header.value) || !strings.HasPrefix(*header.value, "X-") {
			return fmt.Errorf("%s: %q is no name of a header that begins with X-: write one", header.field, *header.value)
		}
	}
	for at, key := range p.Extra {
		if key == "" || key != strings.ToLower(key) {
			return fmt.Errorf("extra[%d]: %q is not a key in lower case: write it so", at, key)
		}
	}
	return nil
}

// readAuthority reads certificates in PEM.
func readAuthority(text string) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(text)) {
		return nil, errors.New("it holds no certificate: write it in PEM")
	}
	return pool, nil
}
