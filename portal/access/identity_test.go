package access_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
)

// indented puts a text into YAML.
func indented(text string) string { return fmt.Sprintf("%q", text) }

func TestParseIdentity_FillsInDefaults(t *testing.T) {
	issuer := accesstest.StartIssuer(t)
	prefix, none := "sso:", ""
	for text, want := range map[string]access.Identity{
		"mode: PassThrough":                        {Mode: access.PassThrough},
		"{mode: Impersonate, audience: heliostat}": {Mode: access.Impersonate, Audience: "heliostat"},
		"{mode: Impersonate, issuers: [{url: https://a/b, audience: c, prefix: 'sso:'}, {url: https://d, audience: c, prefix: '', usernameClaim: email, groupsClaim: groups, certificateAuthority: " + indented(issuer.Authority()) + "}]}": {
			Mode: access.Impersonate, Issuers: []access.Issuer{
				{URL: "https://a/b", Audience: "c", UsernameClaim: "sub", Prefix: &prefix},
				{URL: "https://d", Audience: "c", UsernameClaim: "email", GroupsClaim: "groups", Prefix: &none, CertificateAuthority: issuer.Authority()},
			},
		},
		"{mode: Impersonate, frontProxy: {names: [p], extra: [scopes], userHeader: x-user, certificateAuthority: " + indented(issuer.Authority()) + "}}": {
			Mode: access.Impersonate, FrontProxy: &access.FrontProxy{
				CertificateAuthority: issuer.Authority(), Names: []string{"p"}, Extra: []string{"scopes"},
				UserHeader: "X-User", GroupHeader: "X-Remote-Group", UIDHeader: "X-Remote-Uid", ExtraHeaderPrefix: "X-Remote-Extra-",
			},
		},
	} {
		got, err := access.ParseIdentity([]byte(text))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%.60s: %v %s", text, err, diff)
		}
	}
	if got, err := access.ReadIdentity(""); err != nil || got.Mode != access.PassThrough {
		t.Errorf("without a file: %+v, %v", got, err)
	}
}

func TestParseIdentity_SaysWhatIsBad(t *testing.T) {
	authority := indented(accesstest.StartIssuer(t).Authority())
	issuer := func(fields string) string {
		return "{mode: Impersonate, issuers: [{url: https://a, audience: c, prefix: p, " + fields + "}]}"
	}
	proxy := func(fields string) string {
		return "{mode: Impersonate, frontProxy: {certificateAuthority: " + authority + ", " + fields + "}}"
	}
	for text, want := range map[string]string{
		"":                                       "mode: ",
		"{":                                      "read the identity file: ",
		"mode: impersonate":                      "mode: ",
		"{mode: PassThrough, audience: a}":       "mode: ",
		"mode: Impersonate":                      "mode: no way",
		"{mode: PassThrough, mode: PassThrough}": "already set",
		"{mode: PassThrough, more: 1}":           "unknown field",
		"{mode: Impersonate, audience: ' a'}":    "audience: ",
		"{mode: Impersonate, issuers: [{url: 'http://a', audience: c, prefix: p}]}":                                                     "issuers[0].url: ",
		"{mode: Impersonate, issuers: [{url: 'https://u:p@a', audience: c, prefix: p}]}":                                                "issuers[0].url: ",
		"{mode: Impersonate, issuers: [{url: 'https://a', prefix: p}]}":                                                                 "issuers[0].audience: ",
		"{mode: Impersonate, issuers: [{url: 'https://a', audience: c}]}":                                                               "issuers[0].prefix: ",
		"{mode: Impersonate, issuers: [{url: 'https://a', audience: c, prefix: 'system:'}]}":                                            "issuers[0].prefix: ",
		"{mode: Impersonate, issuers: [{url: 'https://a', audience: c, prefix: ' system:'}]}":                                           "issuers[0].prefix: ",
		"{mode: Impersonate, issuers: [{url: 'https://a', audience: c, prefix: p}, {url: 'https://b', audience: c, prefix: p}]}":        "issuers[1]: url and prefix must be unique",
		"{mode: Impersonate, issuers: [{url: 'https://a', audience: c, prefix: p}, {url: 'https://a', audience: c, prefix: 'other:'}]}": "issuers[1]: url and prefix must be unique",
		issuer("certificateAuthority: x"):               "issuers[0].certificateAuthority: ",
		"{mode: Impersonate, frontProxy: {names: [p]}}": "frontProxy.certificateAuthority: ",
		proxy("names: []"):                              "frontProxy.names: ",
		proxy("names: ['']"):                            "frontProxy.names: ",
		proxy("names: [p], userHeader: Authorization"):  "frontProxy.userHeader: ",
		proxy("names: [p], extraHeaderPrefix: 'X a'"):   "frontProxy.extraHeaderPrefix: ",
		proxy("names: [p], extra: [Scopes]"):            "frontProxy.extra[0]: ",
	} {
		if got, err := access.ParseIdentity([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.150s is taken as %+v, %v", text, got, err)
		}
	}
}
