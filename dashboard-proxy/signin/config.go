package signin

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/ray-operator/yaml"
)

// Config says how users sign in, beside tokens of Kubernetes.
type Config struct {
	// OIDC is an issuer at which users sign in; nil is none.
	OIDC *OIDC `json:"oidc,omitempty"`
}

// OIDC is a client of a provider of OpenID Connect. Its ID tokens are what the server takes for callers' tokens.
type OIDC struct {
	// Name is what users see; by default it is the issuer's host.
	Name string `json:"name,omitempty"`
	// Issuer is the provider's https address, as it is in the claim iss.
	Issuer   string `json:"issuer"`
	ClientID string `json:"clientID"`
	// ClientSecretFile has the client's secret; it is read for each use. A public client has none.
	ClientSecretFile string `json:"clientSecretFile,omitempty"`
	// Scopes are asked for beside openid. Many issuers renew a session only with offline_access.
	Scopes []string `json:"scopes,omitempty"`
	// CertificateAuthority is that of the provider's certificate, in PEM. By default it is one that the system trusts.
	CertificateAuthority string `json:"certificateAuthority,omitempty"`
}

// ParseConfig reads and checks a file in YAML. Where it holds nothing, users sign in by tokens of Kubernetes alone.
func ParseConfig(text []byte, identity access.Identity) (Config, error) {
	var c Config
	if err := yaml.Unmarshal(text, yaml.Settings, &c); err != nil {
		return Config{}, fmt.Errorf("read the sign-in file: %w", err)
	}
	if c.OIDC == nil {
		return c, nil
	}
	if err := errors.Join(c.OIDC.complete(), c.OIDC.fit(identity)); err != nil {
		return Config{}, fmt.Errorf("read the sign-in file: %w", err)
	}
	return c, nil
}

// complete fills in defaults, and says what is bad.
func (o *OIDC) complete() error {
	address, err := url.Parse(o.Issuer)
	switch {
	case err != nil || address.Scheme != "https" || address.Host == "" || address.User != nil || address.RawQuery != "" ||
		address.Fragment != "":
		return errors.New("oidc.issuer: it is not https://HOST/PATH: write it as the issuer does in the claim iss")
	case o.ClientID == "":
		return errors.New("oidc.clientID: it is empty: write the ID that the issuer gave this client")
	}
	if o.Name == "" {
		o.Name = address.Host
	}
	for at, scope := range o.Scopes {
		if scope == "" || strings.ContainsAny(scope, " \t\n\"\\") {
			return fmt.Errorf("oidc.scopes[%d]: %q is no scope: write each one by itself", at, scope)
		}
	}
	if !slices.Contains(o.Scopes, "openid") {
		o.Scopes = append([]string{"openid"}, o.Scopes...)
	}
	if _, err := readAuthority(o.CertificateAuthority); err != nil {
		return fmt.Errorf("oidc.certificateAuthority: %w", err)
	}
	return nil
}

// fit says where tokens of the issuer would be refused by the server itself.
func (o *OIDC) fit(identity access.Identity) error {
	if identity.Mode != access.Impersonate {
		return nil // the API server judges them
	}
	for _, one := range identity.Issuers {
		switch {
		case one.URL != o.Issuer:
			continue
		case one.Audience != o.ClientID:
			return fmt.Errorf("oidc.clientID: identity.issuers wants the audience %q of this issuer, and its tokens for this "+
				"client have %q: make both the same", one.Audience, o.ClientID)
		}
		return nil
	}
	return fmt.Errorf("oidc.issuer: %q is missing in identity.issuers; add it there", o.Issuer)
}
