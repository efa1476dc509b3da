package signin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/portal/access"
)

func TestParseConfig_FillsInDefaults(t *testing.T) {
	got, err := ParseConfig([]byte(`{oidc: {issuer: "https://id.example.com/x", clientID: c, scopes: [email]}}`),
		access.Identity{})
	want := Config{OIDC: &OIDC{
		Name: "id.example.com", Issuer: "https://id.example.com/x", ClientID: "c", Scopes: []string{"openid", "email"}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if got, err := ParseConfig(nil, access.Identity{}); err != nil || got.OIDC != nil {
		t.Errorf("an empty file is %+v, %v", got, err)
	}
}

func TestParseConfig_SaysWhatIsBad(t *testing.T) {
	known := access.Identity{Mode: access.Impersonate, Issuers: []access.Issuer{{URL: "https://i", Audience: "portal",
		Prefix: new("")}}}
	for text, want := range map[string]string{
		`{oidc: {issuer: "http://i", clientID: portal}}`:                                   "oidc.issuer",
		`{oidc: {issuer: "https://i?x", clientID: portal}}`:                                "oidc.issuer",
		`{oidc: {issuer: "https://i"}}`:                                                    "oidc.clientID: it is empty",
		`{oidc: {issuer: "https://i", clientID: portal, scopes: ["a b"]}}`:                 "oidc.scopes[0]",
		`{oidc: {issuer: "https://i", clientID: portal, certificateAuthority: x}}`:         "oidc.certificateAuthority",
		`{oidc: {issuer: "https://i", clientID: portal, secret: x}}`:                       "unknown field",
		`{oidc: {issuer: "https://i", clientID: other}}`:                                   `the audience "portal"`,
		`{oidc: {issuer: "https://j", clientID: portal}}`:                                  "is missing in identity.issuers",
		`{oidc: {issuer: "https://i", clientID: portal}, links: [{name: a}]}`:              "unknown field",
		`{oidc: {issuer: "https://i", clientID: portal, name: x, scopes: [openid, email]}`: "read the sign-in file",
	} {
		if _, err := ParseConfig([]byte(text), known); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestParseLinks_ChecksTemplates(t *testing.T) {
	all, err := ParseLinks([]byte(`
- {name: Grafana, kind: ComputeCluster, urlTemplate: "https://g.example.com/d/ray?var-ns=${namespace}&var-c=${name}&from=${start}&to=${end}"}
- {name: Logs, urlTemplate: "http://logs:3000/${uid}"}
`))
	if err != nil || len(all) != 2 || all[0].Kind != "ComputeCluster" || all[1].URLTemplate != "http://logs:3000/${uid}" {
		t.Errorf("good links are %+v, %v", all, err)
	}
	for text, want := range map[string]string{
		`[{urlTemplate: "https://a"}]`:                     "[0].name",
		`[{name: a, kind: Pod, urlTemplate: "https://a"}]`: "[0].kind",
		`[{name: a}]`: "no address",
		`[{name: a, urlTemplate: "javascript:alert('${name}')"}]`:                       "no address",
		`[{name: a, urlTemplate: "/d/${name}"}]`:                                        "no address",
		`[{name: a, urlTemplate: "https://u:p@a/"}]`:                                    "no address",
		`[{name: a, urlTemplate: "https://a/${name"}]`:                                  "no address",
		`[{name: a, urlTemplate: "https://a/${token}"}]`:                                "${token} is no variable",
		`[{name: a, urlTemplate: "https://${name}.example.com/"}]`:                      "a variable in its host",
		`[{name: a, urlTemplate: "https://a${name}"}]`:                                  "a variable in its host",
		`[{name: a, urlTemplate: "https://a?${name}", extra: x}]`:                       "unknown field",
		"[" + strings.Repeat(`{name: a, urlTemplate: "https://a/"},`, maxLinks+1) + "]": "at most 20",
	} {
		if _, err := ParseLinks([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v, want %q", text, err, want)
		}
	}
}
