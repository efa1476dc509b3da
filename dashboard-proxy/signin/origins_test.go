package signin

import (
	"strings"
	"testing"
)

// origins are those of tests, with a wildcard.
func origins(t testing.TB) Origins {
	t.Helper()
	o, err := ParseOrigins("https://page.example.com", "https://Ray.example.com:443/", "*.ray.example.com:8444")
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestParseOrigins_SaysWhatIsBad(t *testing.T) {
	for _, row := range []struct{ page, dashboards, wildcard, want string }{
		{"", "", "", "the page's address"},
		{"http://a", "", "", "the page's address"},
		{"https://a/path", "", "", "the page's address"},
		{"https://a?b", "", "", "the page's address"},
		{"https://u@a", "", "", "the page's address"},
		{"https://a", "a:8444", "", "the dashboards' address"},
		{"https://a", "https://A:443", "", "it is the page's"},
		{"https://a", "", "b", "give it as well"},
		{"https://a", "https://b", "https://c", "the wildcard"},
		{"https://a", "https://b", "*.*.c", "the wildcard"},
	} {
		_, err := ParseOrigins(row.page, row.dashboards, row.wildcard)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v", row, err)
		}
	}
}

func TestOrigins_KnowTheirHosts(t *testing.T) {
	o := origins(t)
	for host, want := range map[string]string{
		"ray.example.com": "https://ray.example.com", "RAY.example.com:443": "https://ray.example.com",
		"demo--a.ray.example.com:8444": "https://demo--a.ray.example.com:8444",
		"demo--a.ray.example.com":      "", ".ray.example.com:8444": "", "a.b.ray.example.com:8444": "",
		"evil.com": "", "xray.example.com:8444": "", "page.example.com": "", "": "", "ä.ray.example.com:8444": "",
		"evil.com/.ray.example.com:8444": "", "a@b.ray.example.com:8444": "",
	} {
		if got, is := o.Of(host); got != want || is != (want != "") {
			t.Errorf("%q is of %q, %v; want %q", host, got, is, want)
		}
	}
	plain := Origins{Page: "https://p", Dashboards: "https://p:8444"}
	if _, is := plain.Of("x.p:8444"); is {
		t.Error("without a wildcard a host below is ours")
	}
	if _, is := (Origins{Page: "https://p"}).Of("p"); is {
		t.Error("without dashboards the page is one")
	}
}

// TestOrigins_LeadNowhereElse has what browsers read as another host, and others.
func TestOrigins_LeadNowhereElse(t *testing.T) {
	o := origins(t)
	for to, want := range map[string]string{
		"/ui/clusters/a/b?x=y": "/ui/clusters/a/b?x=y", "/ui/": "/ui/",
		"https://ray.example.com/a/b/?c=d#/jobs":   "https://ray.example.com/a/b/?c=d#/jobs",
		"https://ray.example.com":                  "https://ray.example.com/",
		"https://ray.example.com:443/a/b":          "https://ray.example.com/a/b",
		"https://d--a.ray.example.com:8444/?x":     "https://d--a.ray.example.com:8444/?x",
		"https://d--a.ray.example.com:8444/%C3%BC": "https://d--a.ray.example.com:8444/-/go?to=%2F%25C3%25BC",
		"https://ray.example.com//evil.com":        "https://ray.example.com/-/go?to=%2Fevil.com",
		"https://ray.example.com/a/b/kill?c=d":     "https://ray.example.com/-/go?to=%2Fa%2Fb%2Fkill%3Fc%3Dd",
		"https://ray.example.com/-/go?to=%2Fa%2Fb": "https://ray.example.com/-/go?to=%2Fa%2Fb",
	} {
		if got := o.readGoal(to); got != want {
			t.Errorf("%q leads to %q, want %q", to, got, want)
		}
	}
	for _, to := range []string{
		"", "/", "/v1/objects", "/session/oidc", "ui/", "//evil.com", "///evil.com", "/\\evil.com", "\\\\evil.com",
		"/ui/\\evil.com",
		"https://evil.com", "https://evil.com/ui/", "http://ray.example.com/", "https:ray.example.com", "https:///evil.com",
		"//ray.example.com/",
		"https://ray.example.com@evil.com/", "https://u@ray.example.com/", "https://ray.example.com.evil.com/",
		"https://evil.com#.ray.example.com:8444",
		"https://evil.com\\.ray.example.com:8444/", "javascript:alert(1)", "JaVaScRiPt://ray.example.com/%0aalert(1)",
		"data:text/html,x",
		" /ui/", "/ui/\n", "/ui/ x", "/\t/evil.com", "/ui/\x00", "https://page.example.com/ui/",
		"https://ray.example.com:8444/x",
		"https://ray.example.com:x/", "/ui/ü", "/ui/" + strings.Repeat("x", maxAddress),
	} {
		if got := o.readGoal(to); got != home {
			t.Errorf("%q leads to %q", to, got)
		}
	}
	for to, want := range map[string]bool{
		"/": true, "/a/b/?c=d": true, "//evil.com": false, "/\\evil.com": false, "https://ray.example.com/": false,
		"a": false, "": false,
	} {
		if got, is := readPath(to); is != want || is && got != to {
			t.Errorf("%q is a path: %v", to, is)
		}
	}
}
