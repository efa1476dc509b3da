package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/apiserver/app"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/signin"
)

// written returns a file with a text.
func written(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestSignInFlags_BecomeAConfig(t *testing.T) {
	issuer := written(t, `{oidc: {issuer: "https://id", clientID: portal, name: SSO}}`)
	links := written(t, `[{name: Logs, urlTemplate: "https://logs/${name}"}]`)
	for args, want := range map[string]*app.SignIn{
		"": nil,
		" --page-url=https://A --session-key-file=k": {KeyFile: "k", Origins: signin.Origins{Page: "https://a"}},
		" --page-url=https://a --session-key-file=k --dashboards-address=:8444 --dashboards-url=https://a:8444 --dashboards-wildcard=w --sign-in-file=" + issuer +
			" --links-file=" + links: {
			KeyFile: "k", Origins: signin.Origins{Page: "https://a", Dashboards: "https://a:8444", Wildcard: "w"},
			Config: signin.Config{OIDC: &signin.OIDC{Name: "SSO", Issuer: "https://id", ClientID: "portal",
				Scopes: []string{"openid"}}},
			Links: []signin.Link{{Name: "Logs", URLTemplate: "https://logs/${name}"}},
		},
	} {
		got, err := parse(t, strings.Fields(files+args)...).config("h", "1")
		if diff := cmp.Diff(want, got.SignIn); err != nil || diff != "" {
			t.Errorf("%s: %v %s", args, err, diff)
		}
	}
}

func TestSignInFlags_SayWhatIsBad(t *testing.T) {
	const page = " --page-url=https://a --session-key-file=k"
	stranger := written(t, `{oidc: {issuer: "https://id", clientID: portal}}`)
	identity := written(t, "{mode: Impersonate, audience: heliostat}")
	for args, want := range map[string]string{
		" --session-key-file=k":                                               "the page's address",
		" --sign-in-file=l":                                                   "--sign-in-file: it works with --session-key-file",
		" --links-file=l":                                                     "--links-file: it works with --session-key-file",
		" --page-url=a --session-key-file=k":                                  "the page's address",
		page + " --sign-in-file=/none":                                        "the sign-in file",
		page + " --links-file=/none":                                          "the links",
		page + " --links-file=" + written(t, "{}"):                            "read the links",
		page + " --sign-in-file=" + written(t, "x"):                           "read the sign-in file",
		page + " --identity-file=" + identity + " --sign-in-file=" + stranger: "is missing in identity.issuers",
	} {
		if _, err := parse(t, strings.Fields(files+args)...).config("h", "1"); err == nil || !strings.Contains(err.Error(),
			want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
