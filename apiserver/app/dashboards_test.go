package app

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/route"
	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// stopped is a cluster that is suspended.
func stopped() *v1beta1.ComputeCluster {
	cluster := headstest.New().PutCluster("demo", func(c *v1beta1.ComputeCluster) {
		c.Spec.Suspend, c.ResourceVersion = new(true), "4"
		c.TypeMeta = metav1.TypeMeta{APIVersion: "heliostat.dev/v1beta1", Kind: "ComputeCluster"}
		c.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSuspended, Status: metav1.ConditionTrue, Reason: "SuspendedBySpec", LastTransitionTime: metav1.Unix(0, 0)}}
	})
	return cluster
}

// newDashboardsBed is the listener for dashboards, with one cluster in the view.
func newDashboardsBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{registry: newRegistry(), log: &lines{}}
	b.upstream = accesstest.Start(t, "alice-token", "alice", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(stopped())
	})
	cfg := Config{Log: slog.New(slog.NewJSONHandler(b.log, nil)), Clock: clock.RealClock{}, Dashboards: Dashboards{
		Address: ":1", URL: &url.URL{Scheme: "https", Host: "dashboards.example.com"}, PageURL: &url.URL{Scheme: "https", Host: "page.example.com"},
		Wildcard: "ray.example.com", MaxUpload: 1 << 20,
	}, SignIn: signInOf(t, "https://page.example.com", "https://dashboards.example.com", "ray.example.com")}
	kubernetes := b.upstream.Kubernetes(t, cfg.Clock)
	ctx, end := context.WithCancel(t.Context())
	front, portal, err := newFront(ctx, cfg, kubernetes, b.registry)
	if err != nil {
		t.Fatal(err)
	}
	if err := portal.view.Store(view.Clusters, "").Replace([]any{stopped()}, "5"); err != nil {
		t.Fatal(err)
	}
	clusters, err := newDashboards(ctx, cfg, front, portal, b.registry)
	if err != nil {
		t.Fatal(err)
	}
	b.server = httptest.NewUnstartedServer(nil)
	b.server.Config = newServer(clusters, nil, cfg.Log, cfg.Clock)
	b.server.StartTLS()
	t.Cleanup(func() {
		end()
		b.server.Close()
	})
	return b
}

func TestOutlast_EndsLater(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Unix(0, 0))
	ctx, end := context.WithCancel(t.Context())
	late, soon := outlast(ctx, time.Minute, now), outlast(ctx, 0, now)
	end()
	<-soon.Done()
	for !now.HasWaiters() {
		goruntime.Gosched()
	}
	now.Step(time.Minute - 1)
	if late.Err() != nil {
		t.Error("it has ended too early")
	}
	now.Step(1)
	<-late.Done()
}

// ask returns the code and the text of an answer.
func (b *bed) ask(t *testing.T, method, path, form string, headers ...string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, b.server.URL+path, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "dashboards.example.com"
	for i := 0; i < len(headers); i += 2 {
		if request.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			request.Host = headers[i+1]
		}
	}
	answer, err := b.server.Client().Transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.Header.Get(requestID) == "" {
		t.Fatalf("%v, %v", answer.Header, err)
	}
	return answer.StatusCode, string(text)
}

func TestDashboards_SayWhatTheViewKnows(t *testing.T) {
	b := newDashboardsBed(t)
	token := []string{"Authorization", "Bearer alice-token"}
	for at, headers := range map[string][]string{"/team/demo/api/version": token, "/api/version": append([]string{"Host", "demo--team.ray.example.com"}, token...)} {
		if code, text := b.ask(t, "GET", at, "", headers...); code != http.StatusServiceUnavailable || !strings.Contains(text, "since 1970-01-01T00:00:00Z. Run: kubectl patch computecluster demo -n team") {
			t.Errorf("%s: %d %s", at, code, text)
		}
	}
	if code, _ := b.ask(t, "GET", "/team/none/", "", token...); code != http.StatusForbidden {
		t.Errorf("what is absent: %d", code)
	}
	if code, text := b.ask(t, "GET", "/team/demo/", ""); code != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s", code, text)
	}
}

// TestDashboards_LeadBrowsersToSignIn, and take what the page's origin posts, which no gate would let through.
func TestDashboards_LeadBrowsersToSignIn(t *testing.T) {
	b := newDashboardsBed(t)
	for _, row := range []struct {
		what, host, mode string
		code             int
		want             string
	}{
		{"GET /team/demo/?a=b", "demo--team.ray.example.com", "navigate", 200, `href="/-/go?to=%2Fteam%2Fdemo%2F%3Fa%3Db"`},
		{"GET /api/version", "demo--team.ray.example.com", "cors", 401, "has no bearer token"},
		{"GET /-/step.js", "demo--team.ray.example.com", "no-cors", 200, "location.replace"},
		{"POST /-/callback", "dashboards.example.com", "navigate", 200, "signed=no"},
		{"GET /-/nothing", "dashboards.example.com", "navigate", 404, "nothing has this address"},
	} {
		method, path, _ := strings.Cut(row.what, " ")
		site := map[bool]string{true: "cross-site", false: "same-origin"}[row.mode == "navigate" && method == "POST"]
		code, text := b.ask(t, method, path, "code=x", "Host", row.host, "Sec-Fetch-Mode", row.mode, "Sec-Fetch-Site", site,
			"Content-Type", "application/x-www-form-urlencoded")
		if code != row.code || !strings.Contains(text, row.want) {
			t.Errorf("%s: %d %s", row.what, code, text)
		}
	}
}

// TestDashboards_ResumeAsTheCaller: the API server gets the caller's token, and the log has who did it.
func TestDashboards_ResumeAsTheCaller(t *testing.T) {
	b := newDashboardsBed(t)
	code, text := b.ask(t, "POST", "/-/resume", "kind=computeclusters&namespace=team&name=demo", "Authorization", "Bearer alice-token", "Content-Type", "application/x-www-form-urlencoded")
	seen := b.upstream.Seen()
	last := seen[len(seen)-1]
	if code != http.StatusSeeOther || last.Method != http.MethodPatch || !strings.Contains(last.Body, `"suspend":false`) || last.Header.Get("Authorization") != "Bearer alice-token" {
		t.Errorf("%d %s after %s %s", code, text, last.Method, last.Body)
	}
	b.upstream.Deny("alice")
	code, text = b.ask(t, "POST", "/-/resume", "kind=clusterservices&namespace=team&name=demo", "Authorization", "Bearer alice-token", "Content-Type", "application/x-www-form-urlencoded")
	if code != http.StatusForbidden || !strings.HasPrefix(text, "Heliostat dashboard proxy: ") {
		t.Errorf("without the right: %d %s", code, text)
	}
	b.server.Close() // so that all is written
	for _, want := range []string{`"user":"alice"`, `"verb":"patch"`, `"resource":"computeclusters"`, `"namespace":"team","name":"demo","code":303`} {
		if !strings.Contains(b.log.String(), want) {
			t.Errorf("the log has no %s: %s", want, b.log.String())
		}
	}
	if strings.Contains(b.log.String(), "alice-token") {
		t.Error("the token is in the log")
	}
}

func TestDashboards_CountRoutes(t *testing.T) {
	b := newDashboardsBed(t)
	token := []string{"Authorization", "Bearer alice-token"}
	for _, at := range []string{"/team/demo/", "/services/team/sort/", "/-/x", "/", "/a%2fb"} {
		b.ask(t, "GET", at, "", token...)
	}
	b.server.Close()
	families, err := b.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted, gauges := map[string]bool{}, 0
	for _, family := range families {
		if family.GetName() == "heliostat_server_websockets" {
			gauges++
		}
		if family.GetName() != "heliostat_server_requests_total" {
			continue
		}
		for _, one := range family.GetMetric() {
			counted[one.GetLabel()[1].GetValue()+" "+one.GetLabel()[0].GetValue()] = true
		}
	}
	for _, want := range []string{"ProxyCluster 503", "ProxyService 403", "ProxyOwn 404", "ProxyRoot 200", "ProxyNone 400"} {
		if !counted[want] {
			t.Errorf("%s is not counted: %v", want, counted)
		}
	}
	if gauges != 1 {
		t.Error("open WebSockets are not counted")
	}
}

func TestLabels_FollowTheView(t *testing.T) {
	v, now := view.New(), clocktesting.NewFakeClock(time.Now())
	l := newLabels(v, now)
	find := func(label string) string {
		kind, namespace, name, found := l.FindLabel(label)
		if !found {
			return ""
		}
		return string(kind) + " " + namespace + "/" + name
	}
	put := func(kind string, object runtime.Object) {
		t.Helper()
		if err := v.Store(kind, "").Update(object); err != nil {
			t.Fatal(err)
		}
	}
	if got := find("demo--team"); got != "" {
		t.Errorf("nobody's label is %q", got)
	}
	put(view.Clusters, stopped())
	service := &v1beta1.ClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "sort", UID: "s", ResourceVersion: "6"}}
	put(view.Services, service)
	if got := find("demo--team"); got != "" {
		t.Errorf("labels are read again at once: %q", got)
	}
	now.Step(readEach)
	for label, want := range map[string]string{
		"demo--team": string(route.Cluster) + " team/demo", naming.ServiceHost("team", "sort"): string(route.Service) + " team/sort", "sort--team": "", "team--demo": "",
	} {
		if got := find(label); got != want {
			t.Errorf("%s is %q, want %q", label, got, want)
		}
	}
	gone := stopped()
	gone.ResourceVersion = "9"
	if err := v.Store(view.Clusters, "").Delete(gone); err != nil {
		t.Fatal(err)
	}
	if got := find("demo--team"); got != "" {
		t.Errorf("a cluster that is gone is %q", got)
	}
}

// TestDashboards_HaveAddresses: each object that has a dashboard has one, however origins are separated.
func TestDashboards_HaveAddresses(t *testing.T) {
	port := Dashboards{Address: ":8444", URL: &url.URL{Scheme: "https", Host: "h:8444", Path: "/"}}
	below := port
	below.Wildcard = "w:8444"
	for _, row := range []struct {
		of                    Dashboards
		kind, namespace, want string
	}{
		{Dashboards{}, view.Clusters, "team", ""},
		{port, view.Jobs, "team", ""},
		{port, view.Schedules, "team", ""},
		{port, view.Clusters, "team", "https://h:8444/team/demo/"},
		{port, view.Clusters, "services", "https://h:8444/-/clusters/services/demo/"},
		{port, view.Services, "team", "https://h:8444/services/team/demo/"},
		{below, view.Clusters, "team", "https://demo--team.w:8444/"},
		{below, view.Services, "team", "https://" + naming.ServiceHost("team", "demo") + ".w:8444/"},
	} {
		if got := row.of.addressOf(row.kind, row.namespace, "demo"); got != row.want {
			t.Errorf("%s in %s is at %q, want %q", row.kind, row.namespace, got, row.want)
		}
	}
}
