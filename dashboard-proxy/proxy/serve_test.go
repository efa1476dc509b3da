package proxy_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/proxy"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/serve"
	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

func escape(text string) string { return url.QueryEscape(text) }

func withoutAuthentication(c *v1beta1.ComputeCluster) {
	c.Spec.Authentication = &v1beta1.Authentication{Mode: v1beta1.AuthenticationDisabled}
}

func fine(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") }

// TestServe_AsksKubernetesForTheVerb shows what is asked about a request, of which nothing else decides.
func TestServe_AsksKubernetesForTheVerb(t *testing.T) {
	b := newBed(t, fine, nil)
	for _, c := range []struct{ method, path, verb, resource, name string }{
		{http.MethodGet, "/team/demo/api/version", "get", "computeclusters", "demo"},
		{http.MethodGet, "/team/demo/worker/traceback?pid=1", "create", "computeclusters", "demo"},
		{http.MethodDelete, "/team/demo/api/jobs/x", "delete", "computeclusters", "demo"},
		{http.MethodPut, "/services/team/sort/x", "update", "clusterservices", "sort"},
	} {
		if answer := b.send(t, c.method, c.path, nil); answer.code != http.StatusOK {
			t.Fatalf("%s %s: %+v", c.method, c.path, answer)
		}
		asked, review := b.kubernetes.All(), &authorizationv1.SelfSubjectAccessReview{}
		if err := accesstest.Decode([]byte(asked[len(asked)-1].Body), review); err != nil {
			t.Fatal(err)
		}
		want := &authorizationv1.ResourceAttributes{
			Namespace: "team", Verb: c.verb, Group: "heliostat.dev", Version: "v1beta1", Resource: c.resource, Subresource: "proxy", Name: c.name,
		}
		if diff := cmp.Diff(want, review.Spec.ResourceAttributes); diff != "" {
			t.Errorf("%s %s asks %s", c.method, c.path, diff)
		}
		known := <-b.known
		if known.Verb != c.verb || known.Resource != c.resource+"/proxy" || known.Namespace != "team" || known.Name != c.name || known.Caller.User().Username != "alice" {
			t.Errorf("%s %s is known as %+v", c.method, c.path, known)
		}
	}
}

// TestServe_SaysTheSameOfAbsentAndForbidden: nobody learns which objects exist.
func TestServe_SaysTheSameOfAbsentAndForbidden(t *testing.T) {
	b := newBed(t, fine, withWildcard)
	absent := map[string]reply{}
	for at, host := range map[string]string{"/team/none/": "h", "/services/team/none/": "h", "/": "none--team.ray.example.com"} {
		absent[strings.ReplaceAll(at+host, "none", "NAME")] = b.get(t, at, "Host", host)
	}
	b.kubernetes.Deny("alice")
	b.clock.Step(time.Minute)
	for at, host := range map[string]string{"/team/demo/": "h", "/services/team/sort/": "h", "/": "demo--team.ray.example.com"} {
		name := strings.NewReplacer("demo", "NAME", "sort", "NAME").Replace(at + host)
		denied := b.get(t, at, "Host", host)
		same := strings.NewReplacer("demo", "none", "sort", "none").Replace(denied.body)
		if denied.code != http.StatusForbidden || absent[name].code != denied.code || absent[name].body != same {
			t.Errorf("%s: %+v and %+v", name, denied, absent[name])
		}
		if !strings.HasPrefix(denied.body, "Heliostat dashboard proxy: ") || strings.Contains(host, "team") == strings.Contains(denied.body, "kubectl auth can-i") {
			t.Errorf("%s: %q", name, denied.body)
		}
	}
	if b.dials() != 0 {
		t.Errorf("%d were dialled", b.dials())
	}
}

func TestServe_RefusesBeforeAnythingIsLookedUp(t *testing.T) {
	b := newBed(t, fine, nil)
	const own = "Heliostat dashboard proxy: "
	for name, c := range map[string]struct {
		request string
		code    int
	}{
		"a path in two readings": {"GET /team/demo/%2e%2e/x HTTP/1.1\r\n", 400}, "an absolute form": {"GET http://h/team/demo/ HTTP/1.1\r\n", 400},
		"h2c":                          {"GET /team/demo/ HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n", 400},
		"h2c without Connection":       {"GET /team/demo/ HTTP/1.1\r\nUpgrade: h2c\r\n", 400},
		"TLS":                          {"GET /team/demo/ HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: TLS/1.0\r\n", 400},
		"a list":                       {"GET /team/demo/ HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket, h2c\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n", 400},
		"two protocols":                {"GET /team/demo/ HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n", 400},
		"a WebSocket by POST":          {"POST /team/demo/ HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n", 400},
		"a WebSocket with a body":      {"GET /team/demo/ HTTP/1.1\r\nContent-Length: 1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n", 400},
		"a WebSocket without key":      {"GET /team/demo/ HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n", 400},
		"a WebSocket of another time":  {"GET /team/demo/ HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 8\r\n", 400},
		"an upgrade to nothing":        {"GET /team/demo/ HTTP/1.1\r\nConnection: Upgrade\r\n", 400},
		"a WebSocket of another site":  {"GET /team/demo/ HTTP/1.1\r\nOrigin: https://evil\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n", 421},
		"a method":                     {"PROPFIND /team/demo/ HTTP/1.1\r\n", 405},
		"a WebSocket to the proxy own": {"GET /-/x HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n", 400},
		"no such path":                 {"GET /-/x HTTP/1.1\r\n", 404},
	} {
		answer, err := http.ReadResponse(bufio.NewReader(strings.NewReader(b.raw(t, c.request+"Host: h\r\nAuthorization: Bearer alice-token\r\nConnection: close\r\n\r\n"))), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != c.code || !strings.HasPrefix(string(text), own) {
			t.Errorf("%s: %d %q, %v", name, answer.StatusCode, text, err)
		}
	}
	if len(b.kubernetes.All()) != 0 || b.dials() != 0 {
		t.Errorf("Kubernetes was asked %d times, and %d were dialled", len(b.kubernetes.All()), b.dials())
	}
}

// TestServe_ReplaysAttacksOfBrowsers: CVE-2025-62593 rebinds a name to the dashboard and submits a job; CVE-2026-27482 deletes
// by a request that Ray did not count among those of browsers.
func TestServe_ReplaysAttacksOfBrowsers(t *testing.T) {
	seen := &recorder{}
	b := newBed(t, seen.ServeHTTP, nil)
	own := b.front.URL
	for name, c := range map[string]struct {
		method, path string
		headers      []string
		code         int
	}{
		"a rebound name":                    {"POST", "/team/demo/api/jobs/", []string{"Host", "evil.example.com", "Cookie", "session=alice", "Origin", "https://evil.example.com", "Sec-Fetch-Site", "same-origin", "User-Agent", "other"}, 421},
		"a rebound name, old browser":       {"POST", "/team/demo/api/jobs/", []string{"Host", "evil.example.com", "Cookie", "session=alice", "User-Agent", "other"}, 421},
		"another site without Sec-Fetch":    {"POST", "/team/demo/api/jobs/", []string{"Cookie", "session=alice", "Origin", "https://evil.example.com", "User-Agent", "other"}, 403},
		"no Origin and no Sec-Fetch":        {"POST", "/team/demo/api/jobs/", []string{"Cookie", "session=alice", "User-Agent", "other"}, 403},
		"DELETE of another site":            {"DELETE", "/team/demo/api/serve/applications/", []string{"Cookie", "session=alice", "Origin", "https://evil.example.com", "Sec-Fetch-Site", "cross-site"}, 403},
		"DELETE by a form's headers":        {"DELETE", "/team/demo/api/jobs/x", []string{"Cookie", "session=alice", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		"a profile by a link":               {"GET", "/team/demo/worker/traceback?pid=1", page("cross-site")[2:], 403},
		"a program without a token":         {"GET", "/team/demo/api/version", nil, 401},
		"without a session":                 {"POST", "/team/demo/api/jobs/", []string{"Origin", own, "Sec-Fetch-Site", "same-origin"}, 401},
		"the dashboard's own page, a write": {"POST", "/team/demo/api/jobs/", []string{"Cookie", "session=alice", "Origin", own, "Sec-Fetch-Site", "same-origin", "User-Agent", "Mozilla/5.0"}, 200},
		"a link to the start":               {"GET", "/team/demo/", page("cross-site")[2:], 200},
	} {
		before := len(seen.seen)
		answer := b.send(t, c.method, c.path, nil, append([]string{"Authorization", "-"}, c.headers...)...)
		if answer.code != c.code || (len(seen.seen) > before) != (c.code == 200) {
			t.Errorf("%s: %d %q, %d came", name, answer.code, answer.body, len(seen.seen)-before)
		}
	}
}

// TestServe_LeavesSignInToItself: a browser comes there from the page's origin, by a post too.
func TestServe_LeavesSignInToItself(t *testing.T) {
	b := newBed(t, fine, func(n *proxy.Needs) {
		n.SignIn = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Method+" "+r.URL.Path) })
	})
	answer := b.send(t, http.MethodPost, "/-/callback", nil, "Authorization", "-", "Sec-Fetch-Site", "cross-site", "Origin", "https://page.example.com")
	if answer.code != http.StatusOK || answer.body != "POST /-/callback" {
		t.Errorf("%+v", answer)
	}
	if answer := b.send(t, http.MethodPost, "/-/resume", nil, "Authorization", "-", "Sec-Fetch-Site", "cross-site", "Origin", "https://page.example.com"); answer.code != http.StatusForbidden {
		t.Errorf("the button: %+v", answer)
	}
}

func TestServe_RefusesServiceWorkers(t *testing.T) {
	b := newBed(t, fine, nil)
	if answer := b.get(t, "/team/demo/sw.js", "Service-Worker", "script"); answer.code != http.StatusForbidden || b.dials() != 0 {
		t.Errorf("%+v", answer)
	}
}

func TestServe_LeadsBrowsersToTheSlash(t *testing.T) {
	b := newBed(t, fine, nil)
	if answer := b.get(t, "/team/demo?a=b", page("none")...); answer.code != http.StatusPermanentRedirect || answer.header.Get("Location") != "/team/demo/?a=b" {
		t.Errorf("a browser gets %+v", answer)
	}
	if answer := b.get(t, "/team/demo"); answer.code != http.StatusOK {
		t.Errorf("a program gets %+v", answer)
	}
	if answer := b.get(t, "/", page("cross-site")...); answer.code != http.StatusOK || !strings.Contains(answer.body, `href="https://page.example.com/"`) {
		t.Errorf("the root is %+v", answer)
	}
}

// TestServe_GivesEachItsOriginBelowAWildcard: what a session signs in goes to the origin of its object alone.
func TestServe_GivesEachItsOriginBelowAWildcard(t *testing.T) {
	b := newBed(t, fine, withWildcard)
	for path, want := range map[string]string{
		"/team/demo/?a=b":          "https://demo--team.ray.example.com/?a=b",
		"/services/team/sort":      "https://" + naming.ServiceHost("team", "sort") + ".ray.example.com/",
		"/-/clusters/team/demo/":   "https://demo--team.ray.example.com/",
		"/team/there-is-no-such/x": "https://there-is-no-such--team.ray.example.com/x",
	} {
		if answer := b.get(t, path, page("none")...); answer.header.Get("Location") != want || answer.code != http.StatusPermanentRedirect {
			t.Errorf("%s: %+v", path, answer)
		}
	}
	fetch := []string{"Authorization", "-", "Cookie", "session=alice", "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors"}
	if answer := b.get(t, "/team/demo/api/version", fetch...); answer.code != http.StatusForbidden || b.dials() != 0 {
		t.Errorf("a script gets %+v", answer)
	}
	for _, headers := range [][]string{nil, append(fetch, "Host", "demo--team.ray.example.com")} {
		path := map[bool]string{true: "/team/demo/api/version", false: "/api/version"}[headers == nil]
		if answer := b.get(t, path, headers...); answer.code != http.StatusOK {
			t.Errorf("%s: %+v", path, answer)
		}
	}
}

// stopped suspends the cluster.
func (b *bed) stopped(t *testing.T, reason string) {
	t.Helper()
	b.RemovePod(b.head.Name)
	b.PutCluster("demo", func(c *v1beta1.ComputeCluster) {
		c.Spec.Suspend = new(reason == "SuspendedBySpec")
		c.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSuspended, Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Unix(0, 0)}}
	})
}

func TestServe_SaysSinceWhenAClusterIsSuspended(t *testing.T) {
	for reason, command := range map[string]string{
		"SuspendedBySpec": `kubectl patch computecluster demo -n team --type merge -p '{"spec":{"suspend":false}}'`,
		"SuspendedIdle":   `kubectl annotate computecluster demo -n team heliostat.dev/resume="$(date)" --overwrite`,
	} {
		b := newBed(t, fine, nil)
		b.stopped(t, reason)
		answer := b.get(t, "/team/demo/api/version")
		if answer.code != http.StatusServiceUnavailable || answer.header.Get("Retry-After") != "30" || !strings.Contains(answer.body, "since 1970-01-01T00:00:00Z. Run: "+command) {
			t.Errorf("a program gets %+v", answer)
		}
		answer = b.get(t, "/team/demo/", page("none")...)
		if answer.code != http.StatusServiceUnavailable || !strings.Contains(answer.body, `action="/-/resume"`) || strings.Contains(answer.body, "<script") ||
			!strings.Contains(answer.header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("a browser gets %+v", answer)
		}
		if len(b.resumed) != 0 {
			t.Errorf("reads have resumed %v", b.resumed)
		}
	}
}

func TestServe_ResumesByTheButton(t *testing.T) {
	own := func(b *bed, more ...string) []string {
		return append([]string{"Authorization", "-", "Cookie", "session=alice", "Origin", b.front.URL, "Sec-Fetch-Site", "same-origin", "Content-Type", "application/x-www-form-urlencoded"}, more...)
	}
	b := newBed(t, fine, withWildcard)
	post := func(form string, headers ...string) reply {
		return b.send(t, http.MethodPost, "/-/resume", strings.NewReader(form), headers...)
	}
	if answer := post("kind=computeclusters&namespace=team&name=demo", own(b)...); answer.code != http.StatusSeeOther || answer.header.Get("Location") != "/-/clusters/team/demo/" {
		t.Errorf("%+v", answer)
	}
	// Below the wildcard the origin says which object it is, and not what a script there may write.
	if answer := post("kind=computeclusters&namespace=team&name=other", own(b, "Host", "demo--team.ray.example.com")...); answer.code != http.StatusSeeOther || answer.header.Get("Location") != "/" {
		t.Errorf("%+v", answer)
	}
	if len(b.resumed) != 2 || b.resumed[1] != "computeclusters team/demo" || b.resumed[0] != b.resumed[1] {
		t.Errorf("it has resumed %v", b.resumed)
	}
	if known := <-b.known; known.Verb != "patch" || known.Name != "demo" || !known.IsChange {
		t.Errorf("it is known as %+v", known)
	}
	for name, c := range map[string]struct {
		form    string
		headers []string
		code    int
	}{
		"another site":  {"kind=computeclusters&namespace=team&name=demo", own(b, "Origin", "https://evil", "Sec-Fetch-Site", "cross-site"), 403},
		"no session":    {"kind=computeclusters&namespace=team&name=demo", own(b, "Cookie", "-"), 401},
		"no object":     {"kind=pods&namespace=team&name=demo", own(b), 400},
		"a path":        {"kind=computeclusters&namespace=team&name=demo/../x", own(b), 400},
		"no form":       {"{}", own(b, "Content-Type", "text/plain"), 415},
		"a large form":  {"name=" + strings.Repeat("x", 5<<10), own(b), 400},
		"what is stuck": {"kind=computeclusters&namespace=team&name=stuck", own(b), 409},
	} {
		if answer := post(c.form, c.headers...); answer.code != c.code {
			t.Errorf("%s: %+v", name, answer)
		}
	}
	if answer := b.get(t, "/-/resume", own(b)...); answer.code != http.StatusMethodNotAllowed || len(b.resumed) != 2 {
		t.Errorf("GET: %+v", answer)
	}
}

func TestServe_ShowsNoButtonWithoutTheRight(t *testing.T) {
	b := newBed(t, fine, func(n *proxy.Needs) { n.Access = onlyProxy{n.Access} })
	b.stopped(t, "SuspendedBySpec")
	if answer := b.get(t, "/team/demo/", page("none")...); strings.Contains(answer.body, "<form") || !strings.Contains(answer.body, "kubectl patch") {
		t.Errorf("%+v", answer)
	}
}

func TestServe_ShowsHowFarAHeadIs(t *testing.T) {
	b := newBed(t, nil, nil)
	b.head.Status.ContainerStatuses = nil
	b.PutPod(b.head)
	answer := b.get(t, "/team/demo/api/version")
	if answer.code != http.StatusServiceUnavailable || answer.header.Get("Retry-After") != "5" || !strings.Contains(answer.body, "Phases: Accepted Done, HeadReady Current (the image <of> pod)") {
		t.Errorf("a program gets %+v", answer)
	}
	answer = b.get(t, "/team/demo/", page("none")...)
	if !strings.Contains(answer.body, "the image &lt;of&gt; pod") || !strings.Contains(answer.body, `<a href="">Look again</a>`) {
		t.Errorf("a browser gets %+v", answer)
	}
	// One that runs and does not answer yet is the same.
	b.head.Status = headstest.Head(b.cluster, 1, headIP).Status
	b.head.Status.Conditions[0].Status = corev1.ConditionFalse
	b.PutPod(b.head)
	b.network.Lead(headIP+":8265", nil)
	if answer := b.get(t, "/team/demo/api/version"); answer.code != http.StatusServiceUnavailable || !strings.Contains(answer.body, "Phases: ") {
		t.Errorf("it gets %+v", answer)
	}
}

// TestServe_ExplainsTokens: Ray's own words would send the caller to a token that they cannot have.
func TestServe_ExplainsTokens(t *testing.T) {
	for _, code := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, map[int]string{401: "Unauthorized: Missing authentication token", 403: "Forbidden: Invalid authentication token"}[code], code)
		}, nil)
		if answer := b.get(t, "/team/demo/api/version"); answer.code != http.StatusServiceUnavailable || !strings.Contains(answer.body, "does not let the server in") {
			t.Errorf("%d: %+v", code, answer)
		}
		b.PutSecret(headstest.Secret(b.cluster, naming.TokenSecret("demo"), v1beta1.TokenKey, "another-token"))
		answer := b.get(t, "/team/demo/api/version")
		if answer.code != http.StatusServiceUnavailable || !strings.Contains(answer.body, "not the one that head pod") || strings.Contains(answer.body, "another-token") {
			t.Errorf("%d, changed: %+v", code, answer)
		}
	}
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "Profiling is disabled", http.StatusForbidden)
	}, nil)
	if answer := b.get(t, "/team/demo/worker/traceback"); answer.code != http.StatusForbidden || answer.body != "Profiling is disabled\n" {
		t.Errorf("another refusal of Ray's is %+v", answer)
	}
}

func TestServe_SaysWhatFailedInItsOwnWords(t *testing.T) {
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/silent":
			<-r.Context().Done()
		case "/nothing":
			panic(http.ErrAbortHandler)
		default:
			connection, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(connection, "\x00garbage "+headstest.Token+"\r\n\r\n")
				_ = connection.Close()
			}
		}
	}, func(n *proxy.Needs) { n.AnswerWithin = 50 * time.Millisecond })
	for path, code := range map[string]int{"/silent": 504, "/nothing": 502, "/garbage": 502} {
		for _, at := range []string{"/team/demo", "/services/team/sort"} {
			if answer := b.get(t, at+path); answer.code != code || !strings.HasPrefix(answer.body, "Heliostat dashboard proxy: ") || strings.Contains(answer.body, headstest.Token) {
				t.Errorf("%s%s: %+v", at, path, answer)
			}
		}
	}
	b.network.Lead(headIP+":8265", nil)
	b.network.Break()
	if answer := b.get(t, "/team/demo/x"); answer.code != 502 || !strings.Contains(answer.body, "network policy") {
		t.Errorf("it gets %+v", answer)
	}
	b.service.Spec.ServeConfig.Raw = []byte(`{"http_options": {"ssl_certfile": "/tls.crt"}}`)
	if answer := b.get(t, "/services/team/sort/"); answer.code != 502 || !strings.Contains(answer.body, "terminate HTTPS at the Gateway") {
		t.Errorf("HTTPS: %+v", answer)
	}
	if strings.Contains(b.log.String(), headstest.Token) {
		t.Error("the token is in the log")
	}
}

// TestServe_SaysThatANetworkKeepsItOut: packets that a policy drops are a connection that takes too long.
func TestServe_SaysThatANetworkKeepsItOut(t *testing.T) {
	var services struct{ serve.Reader }
	b := newBed(t, fine, func(n *proxy.Needs) {
		n.Services = serve.New(&services, func(context.Context, string) (net.Conn, error) { return nil, os.ErrDeadlineExceeded }, n.Clock)
	})
	services.Reader = b
	if answer := b.get(t, "/services/team/sort/"); answer.code != 502 || !strings.Contains(answer.body, "network policy") {
		t.Errorf("it gets %+v", answer)
	}
}

func TestServe_SaysWhenKubernetesDoesNotAnswer(t *testing.T) {
	b := newBed(t, fine, nil)
	if answer := b.get(t, "/team/demo/", "Authorization", "Bearer nobody"); answer.code != http.StatusUnauthorized || !strings.Contains(answer.body, "RAY_JOB_HEADERS") {
		t.Errorf("%+v", answer)
	}
	b.kubernetes.Break(true)
	if answer := b.get(t, "/team/demo/"); answer.code != http.StatusServiceUnavailable || answer.header.Get("Retry-After") != "1" || b.dials() != 0 {
		t.Errorf("%+v", answer)
	}
	if answer := b.get(t, "/team/demo/", append(page("none"), "Cookie", "-")...); answer.code != http.StatusSeeOther || answer.header.Get("Location") != "/-/signin" {
		t.Errorf("a browser without a session gets %+v", answer)
	}
}

// TestServe_SendsARequestOnce has a head end kept connections as soon as something comes in on one, which it may have
// carried out.
func TestServe_SendsARequestOnce(t *testing.T) {
	var came atomic.Int32
	b := newBed(t, nil, nil)
	listener := b.network.Listen(headIP + ":8265")
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = connection.Close() }()
				reader := bufio.NewReader(connection)
				for i := range 2 {
					request, err := http.ReadRequest(reader)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, request.Body)
					if came.Add(1); i == 0 {
						_, _ = io.WriteString(connection, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine")
					}
				}
			}()
		}
	}()
	for _, c := range []struct {
		method  string
		body    io.Reader
		headers []string
	}{
		{http.MethodGet, nil, nil}, {http.MethodHead, nil, nil}, {http.MethodDelete, nil, nil}, {http.MethodPost, nil, []string{"Idempotency-Key", "k"}},
		{http.MethodPost, strings.NewReader("x"), nil}, {http.MethodPut, nil, []string{"X-Idempotency-Key", "k"}},
	} {
		came.Store(0)
		if answer := b.get(t, "/team/demo/x"); answer.code != http.StatusOK {
			t.Fatalf("%+v", answer)
		}
		if answer := b.send(t, c.method, "/team/demo/x", c.body, c.headers...); answer.code != http.StatusBadGateway || came.Load() != 2 {
			t.Errorf("%s: %d, and %d came", c.method, answer.code, came.Load())
		}
	}
}

// TestServe_DialsNoReusedAddress: what is at the address of a pod that is gone gets nothing.
func TestServe_DialsNoReusedAddress(t *testing.T) {
	for at, name := range map[string]func(b *bed) string{
		"/team/demo/":          func(b *bed) string { return b.head.Name },
		"/services/team/sort/": func(b *bed) string { return b.pod.Name },
	} {
		seen := &recorder{}
		b := newBed(t, seen.ServeHTTP, nil)
		if answer := b.get(t, at); answer.code != http.StatusOK {
			t.Fatalf("%s: %+v", at, answer)
		}
		b.network.Break()         // the pod takes its connections along
		b.PutLive(name(b), nil)   // and the cache still has it
		b.clock.Step(time.Second) // what was read just now counts for as long
		before := b.dials()
		if answer := b.get(t, at); answer.code < 500 || b.dials() != before || len(seen.seen) != 1 {
			t.Errorf("%s: %+v, %d came", at, answer, len(seen.seen))
		}
	}
}

// TestServe_TriesAnotherPod: one that cannot be connected to has got nothing of the request.
func TestServe_TriesAnotherPod(t *testing.T) {
	seen := &recorder{}
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // each request has a connection of its own
		seen.ServeHTTP(w, r)
	}, nil)
	at := naming.Place{Group: "cpu", Slot: 1, Epoch: 1}
	another := b.pod.DeepCopy()
	another.Name, another.UID, another.Status.PodIP = naming.Pod(b.owner.Name, b.owner.UID, at), "uid-of-another", "10.1.0.8"
	another.Labels = naming.PodLabels(b.owner.Name, at)
	another.Labels[naming.ServeLabel("sort")] = v1beta1.ServeOn
	b.PutPod(another)
	for i := range 20 {
		if answer := b.send(t, http.MethodPost, "/services/team/sort/x", strings.NewReader("the body")); answer.code != http.StatusOK {
			t.Fatalf("%d: %+v", i, answer)
		}
		if _, body := seen.last(t); body != "the body" || len(seen.seen) != i+1 {
			t.Fatalf("%d came with %q", len(seen.seen), body)
		}
	}
}
