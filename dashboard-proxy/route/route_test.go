package route_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/route"
)

// labels are those that a test knows.
type labels map[string]route.Target

func (l labels) FindLabel(label string) (kind route.Kind, namespace, name string, found bool) {
	one, is := l[label]
	return one.Kind, one.Namespace, one.Name, is
}

func site() route.Site {
	return route.Site{Wildcard: "ray.example.com:8444", Labels: labels{
		"demo--team-a":    {Kind: route.Cluster, Namespace: "team-a", Name: "demo"},
		"sort-team-a-abc": {Kind: route.Service, Namespace: "team-a", Name: "sort"},
	}}
}

func get(host, target string) route.Request {
	return route.Request{Method: http.MethodGet, Host: host, Target: target}
}

func TestRead_FindsTargets(t *testing.T) {
	const host, demo = "dashboards.example.com", "demo--team-a.ray.example.com:8444"
	cluster := route.Target{Kind: route.Cluster, Namespace: "team-a", Name: "demo", Address: "team-a/demo", Prefix: "/team-a/demo", Path: "/", Verb: "get"}
	of := func(change func(*route.Target)) route.Target {
		changed := cluster
		change(&changed)
		return changed
	}
	for name, c := range map[string]struct {
		request route.Request
		want    route.Target
	}{
		"a cluster":               {get(host, "/team-a/demo/"), cluster},
		"a cluster without slash": {get(host, "/team-a/demo?a"), of(func(t *route.Target) { t.HasNoSlash, t.Query = true, "a" })},
		"a path below, as sent": {get(host, "/team-a/demo/api/jobs/a%20b?x=%2f&y"), of(func(t *route.Target) {
			t.Path, t.Query = "/api/jobs/a%20b", "x=%2f&y"
		})},
		"a service": {get(host, "/services/team-a/sort/x/"), route.Target{
			Kind: route.Service, Namespace: "team-a", Name: "sort", Address: "team-a/sort", Prefix: "/services/team-a/sort", Path: "/x/", Verb: "get",
		}},
		"a cluster of a namespace called services": {get(host, "/-/clusters/services/demo/x"), route.Target{
			Kind: route.Cluster, Namespace: "services", Name: "demo", Address: "services/demo", Prefix: "/-/clusters/services/demo", Path: "/x", Verb: "get",
		}},
		"the proxy's own": {get(host, "/-/resume"), route.Target{Kind: route.Own, Path: "/-/resume"}},
		"the root":        {get(host, "/"), route.Target{Kind: route.Root, Path: "/"}},
		"a cluster below the wildcard": {get(strings.ToUpper(demo), "/team-a/other/x"), route.Target{
			Kind: route.Cluster, Namespace: "team-a", Name: "demo", Address: "demo--team-a", Path: "/team-a/other/x", IsBelowWildcard: true, Verb: "get",
		}},
		"a service below the wildcard": {get("sort-team-a-abc.ray.example.com:8444", "/"), route.Target{
			Kind: route.Service, Namespace: "team-a", Name: "sort", Address: "sort-team-a-abc", Path: "/", IsBelowWildcard: true, Verb: "get",
		}},
		"a label that is nobody's": {get("b--a.ray.example.com:8444", "/"), route.Target{
			Kind: route.Cluster, Address: "b--a", Path: "/", IsBelowWildcard: true, Verb: "get",
		}},
		"the proxy's own below the wildcard": {get(demo, "/-/x"), route.Target{Kind: route.Own, Path: "/-/x", IsBelowWildcard: true}},
		"two labels are none":                {get("x."+demo, "/team-a/demo/"), cluster},
	} {
		got, err := site().Read(c.request)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

func TestRead_TakesVerbsOfMethods(t *testing.T) {
	for method, want := range map[string]string{
		http.MethodGet: "get", http.MethodHead: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
	} {
		for _, at := range []string{"/a/b/api/jobs/", "/services/a/b/worker/traceback"} {
			got, err := site().Read(route.Request{Method: method, Host: "h", Target: at})
			if err != nil || got.Verb != want {
				t.Errorf("%s %s needs %q, %v", method, at, got.Verb, err)
			}
		}
	}
	for _, method := range []string{"OPTIONS", "TRACE", "CONNECT", "get", "PROPFIND", ""} {
		if _, err := site().Read(route.Request{Method: method, Host: "h", Target: "/a/b/"}); codeOf(err) != http.StatusMethodNotAllowed {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// TestRead_CountsReadsWithEffectsAsCreate lists what each Ray from 2.52 to 2.60 serves by GET and does not only read.
func TestRead_CountsReadsWithEffectsAsCreate(t *testing.T) {
	for path, want := range map[string]string{
		"/worker/traceback": "create", "/worker/cpu_profile": "create", "/worker/gpu_profile": "create", "/worker/jax_profile": "create",
		"/task/traceback": "create", "/task/cpu_profile": "create", "/memory_profile": "create", "/memory_profile/": "create", "/api/actors/kill": "create",
		"/logical/kill_actor": "create", "/api/v0/delay/5": "create", "/test/dump": "create",
		"/": "get", "/api/profiling_enabled": "get", "/api/v0/tasks": "get", "/api/v0/delays": "get", "/workers": "get", "/api/jobs/": "get", "/memory_profiles": "get",
		"/nodes": "get", "/logical/actors": "get", "/api/v0/logs/stream": "get",
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			got, err := site().Read(route.Request{Method: method, Host: "h", Target: "/a/b" + path + "?pid=1"})
			if err != nil || got.Verb != want {
				t.Errorf("%s %s needs %q, %v", method, path, got.Verb, err)
			}
		}
	}
}

func codeOf(err error) int {
	var refusal *route.Refusal
	if !errors.As(err, &refusal) {
		return 0
	}
	return refusal.Code
}

func TestRead_RefusesWhatIsReadInTwoWays(t *testing.T) {
	long := strings.Repeat("x", 17<<10)
	for code, targets := range map[int][]string{
		http.StatusBadRequest: {
			"/a/b/%2f", "/a/b/%2F..", "/a/b/%5c", "/a/b/\\x", "/a/b/%00", "/a/b/%0a", "/a/b/..", "/a/b/../c", "/a/b/%2e%2e/c", "/a/b/./c", "/a/b/%2e", "/a//b", "//a/b",
			"/a/b//", "/a/b/x;y", "/a;x/b/", "http://h/a/b/", "a/b", "*", "", "?x", "/a/b/%", "/a/b/%4", "/a/b/%zz", "/a/b/%u0041", "/a/b/%74raceback", "/a/b/%252f",
			"/a/b/%2541", "/a/b/%ff", "/a/b/%c0%af", "/a/b/ü", "/a/b/x y", "/a/b/x#y", "/a/b/<", "/a/b/\x00", "/a/b/\r\n", "/a/b/?x y", "/a/b/?%", "/a/b/?%00", "/a/b/?#",
			"/a/b/?\x01", "/%61/b/", "/a/b/{x}", "/a/b/x|y", "/a/b/%2e.",
		},
		http.StatusNotFound: {
			"/a", "/favicon.ico", "/a/", "/A/b/", "/a/B/", "/a/b.c/", "/-a/b/", "/a/b-/", "/services/a", "/services/a/", "/services", "/-/clusters/a", "/-/clusters/",
			"/" + strings.Repeat("a", 64) + "/b",
		},
		http.StatusRequestURITooLong: {"/a/b/" + long, "/a/b/?" + long},
	} {
		for _, target := range targets {
			if got, err := site().Read(get("h", target)); codeOf(err) != code {
				t.Errorf("%.60q is %+v, %v", target, got, err)
			}
		}
	}
}

func TestRead_TakesWhatIsPlain(t *testing.T) {
	for _, target := range []string{
		"/a/b/%20", "/a/b/%25", "/a/b/100%25", "/a/b/%c3%bc", "/a/b/x..y", "/a/b/...", "/a/b/[x]:@!$&'()*+,=~", "/a/b/%3b", "/a/b/%7Cx", "/a/b/?a=;b&c=|{}^`%5c", "/a/b/x?a?b",
	} {
		if _, err := site().Read(get("h", target)); err != nil {
			t.Errorf("%q: %v", target, err)
		}
	}
}
