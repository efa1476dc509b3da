package passthrough

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
)

func requestOf(t *testing.T, method, target string) *http.Request {
	t.Helper()
	parsed, err := url.ParseRequestURI(target)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Request{Method: method, URL: parsed, RequestURI: target}
}

// TestRead_KnowsEachRoute has a row for each path of the table and each form of an object's path.
func TestRead_KnowsEachRoute(t *testing.T) {
	const at = "/apis/heliostat.dev/v1beta1"
	rows := map[string]string{
		"GET " + at + "/computeclusters":                                                      "objects list computeclusters",
		"GET " + at + "/namespaces/n/computeclusters":                                         "objects list computeclusters n",
		"GET " + at + "/namespaces/n/computeclusters?watch=true":                              "objects watch computeclusters n stream",
		"GET " + at + "/namespaces/n/computeclusters?watch=":                                  "objects watch computeclusters n stream",
		"GET " + at + "/namespaces/n/computeclusters?watch=False":                             "objects list computeclusters n",
		"GET " + at + "/namespaces/n/computeclusters?watch=0&watch=1":                         "objects list computeclusters n",
		"GET " + at + "/namespaces/n/computeclusters?watch=1&fieldSelector=metadata.name%3Dc": "objects watch computeclusters n c stream",
		"GET " + at + "/namespaces/n/computeclusters/c":                                       "objects get computeclusters n c",
		"GET " + at + "/namespaces/n/computeclusters/c?watch=true":                            "objects get computeclusters n c",
		"GET " + at + "/namespaces/n/computeclusters/":                                        "objects list computeclusters n",
		"PUT " + at + "/namespaces/n/computeclusters/c/status":                                "objects update computeclusters/status n c",
		"POST " + at + "/namespaces/n/clusterjobs?dryRun=All":                                 "objects create clusterjobs n",
		"PATCH " + at + "/namespaces/n/clusterservices/s":                                     "objects patch clusterservices n s",
		"DELETE " + at + "/namespaces/n/clusterjobs/j":                                        "objects delete clusterjobs n j",
		"DELETE " + at + "/namespaces/n/clusterjobs":                                          "objects deletecollection clusterjobs n",
		"GET " + at + "/watch/computeclusters":                                                "objects watch computeclusters stream",
		"POST " + at + "/watch/namespaces/n/computeclusters/c":                                "objects watch computeclusters n c stream",
		"GET " + at + "/kinds-of-tomorrow":                                                    "objects list kinds-of-tomorrow",
		"GET " + at + "/namespaces/n":                                                         "objects get namespaces n n",
		"GET /api/v1/events":                                                                  "events list events",
		"GET /api/v1/namespaces/n/events?watch=1":                                             "events watch events n stream",
		"GET /apis/events.k8s.io/v1/namespaces/n/events":                                      "events list events n",
		"GET /apis/events.k8s.io/v1/events":                                                   "events list events",
		"GET /openapi/v3":                                                                     "openapi",
		"GET /openapi/v3" + at:                                                                "openapi",
	}
	for path, one := range fixed {
		rows[one.method+" "+path] = one.name
		rows[one.method+" "+path+"/"] = one.name
	}
	for row, want := range rows {
		method, target, _ := strings.Cut(row, " ")
		got, refusal := Read(requestOf(t, method, target))
		if refusal != nil {
			t.Errorf("%s is refused: %v", row, refusal)
			continue
		}
		have := strings.Join(strings.Fields(strings.Join([]string{
			got.Route, got.Verb, strings.TrimSuffix(got.Resource+"/"+got.Subresource, "/"), got.Namespace, got.Name, map[bool]string{true: "stream"}[got.IsStream],
		}, " ")), " ")
		if have != want {
			t.Errorf("%s is %q, want %q", row, have, want)
		}
	}
}

func TestRead_RefusesAllElse(t *testing.T) {
	rows := map[string]int{
		"GET /": 404, "GET /metrics": 404, "GET /healthz": 404, "GET /logs": 404, "GET /v1/me": 404, "GET /debug/pprof/": 404,
		"GET /openapi/v2": 404, "GET /openapi/v3/api/v1": 404,
		"GET /api/v1/namespaces": 404, "GET /api/v1/namespaces/n/secrets": 404, "GET /api/v1/namespaces/n/pods/p/log": 404,
		"POST /api/v1/namespaces/n/pods/events/exec": 404, "GET /api/v1/namespaces/n/services/events/proxy": 404,
		"GET /api/v1/proxy/namespaces/n/events": 404, "GET /api/v1/watch/events": 404, "GET /api/v1/watch/namespaces/n/events": 404,
		"GET /api/v1/namespaces/events": 404, "GET /api/v1/namespaces/n/events/e": 404, "GET /api/v1/namespaces/n/events/e/x": 404,
		"GET /apis/apps/v1/deployments": 404, "GET /apis/heliostat.dev/v1/computeclusters": 404, "GET /apis/heliostat.dev.evil/v1beta1/x": 404,
		"GET /apis/heliostat.dev/v1beta1x": 404, "POST /apis/authorization.k8s.io/v1/subjectaccessreviews": 404,
		"POST /apis/authentication.k8s.io/v1/tokenreviews": 404,
		"POST /api/v1/namespaces/n/events":                 405, "DELETE /apis/events.k8s.io/v1/namespaces/n/events": 405, "POST /version": 405,
		"GET /apis/authorization.k8s.io/v1/selfsubjectaccessreviews": 405,
		"HEAD /version": 405, "OPTIONS /version": 405, "TRACE /version": 405, "get /version": 405,
		"GET //version": 400, "GET /apis//heliostat.dev/v1beta1": 400, "GET /version//": 400, "GET /apis/heliostat.dev/v1beta1/../../../api/v1/secrets": 400,
		"GET /apis/heliostat.dev/v1beta1/./computeclusters": 400, "GET /apis/heliostat.dev/v1beta1/..": 400,
		"GET /apis/heliostat.dev/v1beta1/%2e%2e/x": 400, "GET /apis/heliostat.dev/v1beta1/a%2fb": 400, "GET /apis/heliostat.dev/v1beta1/%61": 400,
		"GET /apis/heliostat.dev/v1beta1/a%00": 400, "GET /apis/heliostat.dev/v1beta1/a%5cb": 400, "GET /apis/heliostat.dev/v1beta1/a%3bb": 400,
		"GET /apis/heliostat.dev/v1beta1/a;b": 400, "GET /apis/heliostat.dev/v1beta1/%C3%A4": 400, "GET /apis/heliostat.dev/v1beta1/a%25b": 400,
		"GET http://evil/version": 400, "GET https://evil/apis": 400,
		"GET /version?a=%zz": 400, "GET /version?a;b": 400,
		"GET /api/v1/events?fieldSelector=a&fieldSelector=b": 400, "GET /api/v1/events?fieldSelector=a%3Db%5C": 400, "GET /api/v1/events?fieldSelector=a": 400,
	}
	for row, want := range rows {
		method, target, _ := strings.Cut(row, " ")
		_, refusal := Read(requestOf(t, method, target))
		if got := refusal; got == nil || got.Code != want {
			t.Errorf("%s is %+v, want %d", row, got, want)
		}
	}
}

// TestRead_ConfinesEvents: whatever a caller selects, the API server selects among events about our kinds.
func TestRead_ConfinesEvents(t *testing.T) {
	for target, want := range map[string]string{
		"/api/v1/events": "involvedObject.apiVersion=heliostat.dev/v1beta1",
		"/api/v1/namespaces/n/events?fieldSelector=":                            "involvedObject.apiVersion=heliostat.dev/v1beta1",
		"/apis/events.k8s.io/v1/events?fieldSelector=regarding.apiVersion%3Dv1": "regarding.apiVersion=heliostat.dev/v1beta1,regarding.apiVersion=v1",
		"/apis/events.k8s.io/v1/events?limit=5&fieldSelector=type!%3DNormal":    "regarding.apiVersion=heliostat.dev/v1beta1,type!=Normal",
	} {
		request, refusal := Read(requestOf(t, http.MethodGet, target))
		if refusal != nil {
			t.Errorf("%s: %v", target, refusal)
			continue
		}
		query, err := url.ParseQuery(request.query)
		if got := query["fieldSelector"]; err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%s: the selector is %q, %v, want %s", target, got, err, want)
		}
		if strings.Contains(target, "limit=5") != (query.Get("limit") == "5") {
			t.Errorf("%s: the query is %s", target, request.query)
		}
	}
}

// FuzzRead: what passes is one of the paths that are served, reads the same to every reader, and is confined.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"/apis/heliostat.dev/v1beta1/namespaces/n/computeclusters?watch=1", "/api/v1/events?fieldSelector=a%3Db%5C", "/api/v1/namespaces/n/events",
		"/apis/heliostat.dev/v1beta1/..%2f", "//", "/version/", "/watch", "/apis/events.k8s.io/v1/events?fieldSelector=a%3Db%2Cc%3Dd",
	} {
		f.Add(http.MethodGet, seed)
		f.Add(http.MethodPost, seed)
	}
	f.Fuzz(func(t *testing.T, method, target string) {
		parsed, err := url.ParseRequestURI(target)
		if err != nil {
			return
		}
		request, refusal := Read(&http.Request{Method: method, URL: parsed})
		if refusal != nil {
			refusal.Write(httptest.NewRecorder())
			return
		}
		if path := parsed.EscapedPath(); strings.ContainsAny(path, "%\\;?#") || strings.Contains(path, "//") || strings.Contains(path+"/", "/../") {
			t.Errorf("%q passes", target)
		}
		_ = request.attributes()
		switch request.Route {
		case RouteObjects:
			if !strings.HasPrefix(parsed.Path, ours+"/") {
				t.Errorf("%q is of our kinds", target)
			}
		case RouteEvents:
			if method != http.MethodGet || !isConfined(request.query) {
				t.Errorf("%s %q reads all events: %s", method, target, request.query)
			}
		default:
			if fixed[strings.TrimSuffix(parsed.Path, "/")].name != request.Route {
				t.Errorf("%q is %s", target, request.Route)
			}
		}
	})
}

// isConfined reports whether a query selects events about our kinds alone, as the API server reads it.
func isConfined(text string) bool {
	query, err := url.ParseQuery(text)
	if err != nil || len(query["fieldSelector"]) != 1 {
		return false
	}
	selector, err := fields.ParseSelector(query.Get("fieldSelector"))
	return err == nil && slices.ContainsFunc(selector.Requirements(), func(one fields.Requirement) bool {
		return strings.HasSuffix(one.Field, ".apiVersion") && one.Operator == "=" && one.Value == "heliostat.dev/v1beta1"
	})
}
