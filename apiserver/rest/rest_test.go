package rest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/access"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

const (
	aCluster = `{"apiVersion":"heliostat.dev/v1beta1","kind":"ComputeCluster","metadata":{"name":"new"},"spec":{"rayVersion":"2.60.0"}}`
	unnamed  = `{"apiVersion":"heliostat.dev/v1beta1","kind":"ComputeCluster","spec":{"rayVersion":"2.60.0"}}`
)

// TestRoutes_AreRefusedWithoutTheirPermission has a row for each call: what it answers to a caller without rights, and to one
// with every right.
func TestRoutes_AreRefusedWithoutTheirPermission(t *testing.T) {
	rows := map[string]row{
		"GetMe":             {path: "/v1/me", without: 200, withAll: 200},
		"ListNamespaces":    {path: "/v1/namespaces", without: 200, withAll: 200, isPartial: true},
		"ListObjects":       {path: "/v1/objects", without: 200, withAll: 200, isPartial: true},
		"ListPresets":       {path: "/v1/namespaces/team-a/presets", without: 200, withAll: 200},
		"ConvertManifests":  {path: "/v1/convert", body: `{"manifests":"apiVersion: ray.io/v1\nkind: RayCluster"}`, without: 200, withAll: 200},
		"GetObject":         {path: "/v1/namespaces/team-a/clusters/demo", without: 403, withAll: 200},
		"CreateObject":      {path: "/v1/namespaces/team-a/objects", body: `{"object":` + aCluster + `}`, without: 403, withAll: 201, changes: true},
		"SuspendObject":     {path: "/v1/namespaces/team-a/clusters/demo:suspend", without: 403, withAll: 200, changes: true},
		"ResumeObject":      {path: "/v1/namespaces/team-a/clusters/demo:resume", without: 403, withAll: 200},
		"ScaleObject":       {path: "/v1/namespaces/team-a/clusters/demo:scale", body: `{"replicas":3}`, without: 403, withAll: 200, changes: true},
		"StopObject":        {path: "/v1/namespaces/team-a/jobs/train:stop", without: 403, withAll: 200, changes: true},
		"RetryObject":       {path: "/v1/namespaces/team-a/jobs/train:retry", without: 403, withAll: 409},
		"UndoObject":        {path: "/v1/namespaces/team-a/jobs/train:undo", without: 403, withAll: 400},
		"WatchObjects":      {path: "/v1/objects/watch", without: 403},
		"ListHistory":       {path: "/v1/history", without: 409, withAll: 409},
		"GetHistory":        {path: "/v1/namespaces/team-a/clusters/demo/history", without: 403, withAll: 409},
		"DeleteHistory":     {path: "/v1/namespaces/team-a/clusters/demo/history", without: 403, withAll: 409},
		"ListFiles":         {path: "/v1/namespaces/team-a/clusters/demo/files", without: 403, withAll: 409},
		"ReadFile":          {path: "/v1/namespaces/team-a/clusters/demo/files/raylet.out", without: 403, withAll: 409},
		"DownloadFiles":     {path: "/v1/namespaces/team-a/clusters/demo/files:download", without: 403, withAll: 409},
		"ReadLog":           {path: "/v1/namespaces/team-a/jobs/train/log", without: 403, withAll: 404},
		"ReadSubmissionLog": {path: "/v1/namespaces/team-a/clusters/demo/submissions/s/log", without: 403, withAll: 404},
		"ListRounds":        {path: "/v1/namespaces/team-a/jobs/train/rounds?process=worker/0", without: 403, withAll: 400},
		"ListReplicas":      {path: "/v1/namespaces/team-a/services/answer/replicas", without: 403, withAll: 404},
		"ReadReplicaLog":    {path: "/v1/namespaces/team-a/services/answer/replicas/r/log", without: 403, withAll: 404},
		"ListSubmissions":   {path: "/v1/namespaces/team-a/clusters/demo/submissions", without: 403, withAll: 404},
		"GetSubmission":     {path: "/v1/namespaces/team-a/clusters/demo/submissions/s", without: 403, withAll: 404},
		"CreateSubmission":  {path: "/v1/namespaces/team-a/clusters/demo/submissions", body: `{"entrypoint":"x"}`, without: 403, withAll: 404},
		"StopSubmission":    {path: "/v1/namespaces/team-a/clusters/demo/submissions/s:stop", without: 403, withAll: 404},
	}
	for _, route := range Routes() {
		row, is := rows[route.Call]
		if !is {
			t.Errorf("the call %s has no row", route.Call)
			continue
		}
		t.Run(route.Call, func(t *testing.T) {
			row.isRefused(t, route)
			if row.withAll != 0 {
				row.isAnswered(t, route)
			}
		})
	}
}

// row is what a call answers to a caller without rights, and to one with every right; 0 is not asked.
type row struct {
	path, body       string
	without, withAll int
	// changes is that the call writes, and isPartial that it shows what may be seen.
	changes, isPartial bool
}

// isRefused asks without rights.
func (w row) isRefused(t *testing.T, route Route) {
	t.Helper()
	poor := newBed(t)
	code, answer := poor.send(t, route.Method, w.path, w.body)
	if code != w.without || len(poor.written) > 0 {
		t.Errorf("without rights it is %d, want %d: %v; written is %q", code, w.without, answer, poor.written)
	}
	if w.isPartial && fmt.Sprint(answer) != fmt.Sprint(map[string]any{"lines": []any{}, "continue": "", "cursor": answer["cursor"]}) &&
		fmt.Sprint(answer) != "map[namespaces:[]]" {
		t.Errorf("without rights it shows %v", answer)
	}
	if w.without != http.StatusForbidden {
		return
	}
	missing := strings.Replace(w.path, "demo", "missing", 1)
	if again, other := poor.send(t, route.Method, missing, w.body); again != http.StatusForbidden || other["detail"] != answer["detail"] {
		t.Errorf("of what is not there it says %v, else %v", other, answer)
	}
}

// isAnswered asks with all rights.
func (w row) isAnswered(t *testing.T, route Route) {
	t.Helper()
	rich := newBed(t, "*")
	code, answer := rich.send(t, route.Method, w.path, w.body)
	if code != w.withAll || len(rich.written) > 0 != w.changes {
		t.Errorf("with all rights it is %d, want %d: %v; written is %q", code, w.withAll, answer, rich.written)
	}
	if declared := Codes(route); !slices.Contains(declared, code) && code != http.StatusBadRequest {
		t.Errorf("it answers %d, and declares %v", code, declared)
	}
}

func TestListObjects_ShowsWhatMayBeListed(t *testing.T) {
	b := newBed(t, "list computeclusters team-a")
	code, answer := b.send(t, "GET", "/v1/objects", "")
	if lines, is := answer["lines"].([]any); code != 200 || !is || len(lines) != 1 || lines[0].(map[string]any)["name"] != "demo" {
		t.Errorf("the caller is shown %v", answer)
	}
	if code, answer := b.send(t, "GET", "/v1/objects?namespaces=team-b", ""); code != 403 || !strings.Contains(fmt.Sprint(answer["detail"]), "team-b") {
		t.Errorf("of a namespace that is named and hidden it says %d, %v", code, answer)
	}
	if code, answer := b.send(t, "GET", "/v1/objects?kinds=pods&sort=x&limit=501", ""); code != 400 || len(answer["errors"].([]any)) != 3 {
		t.Errorf("three mistakes are %d, %v", code, answer)
	}
}

func TestGetObject_HidesWhatMayNotBeListed(t *testing.T) {
	code, answer := newBed(t, "get computeclusters team-a").send(t, "GET", "/v1/namespaces/team-a/clusters/demo", "")
	if code != 200 || fmt.Sprint(answer["hidden"]) != "[pods]" || answer["object"].(map[string]any)["kind"] != "ComputeCluster" {
		t.Errorf("it is %d, %v", code, answer)
	}
	if answer["dashboard"] != "clusters team-a/demo" {
		t.Errorf("its dashboard is at %v", answer["dashboard"])
	}
	events, _ := answer["events"].([]any)
	if len(events) != 2 || events[0].(map[string]any)["reason"] != "New" || events[1].(map[string]any)["count"] != 3.0 {
		t.Errorf("the events are %v", events)
	}
	if why, phases := answer["why"].([]any), answer["phases"].([]any); len(why) == 0 || len(phases) == 0 {
		t.Errorf("why is %v, and the phases are %v", why, phases)
	}
	crowded := newBed(t, "*")
	crowded.noEvents = access.ErrManyEvents
	if code, answer := crowded.send(t, "GET", "/v1/namespaces/team-a/clusters/demo", ""); code != 200 || fmt.Sprint(answer["hidden"]) != "[events]" {
		t.Errorf("beside too many events it is %d, %v", code, answer)
	}
	if code, _ := newBed(t, "*").send(t, "GET", "/v1/namespaces/team-a/clusters/none", ""); code != 404 {
		t.Errorf("what is not there is %d", code)
	}
}

// TestGetObject_WaitsForWhatWasJustCreated: the API server has it, and the view does a moment later.
func TestGetObject_WaitsForWhatWasJustCreated(t *testing.T) {
	b := newBed(t, "*")
	fields, err := toFields(cluster("team-a", "new"))
	if err != nil {
		t.Fatal(err)
	}
	b.objects[access.ObjectName{Resource: "computeclusters", Namespace: "team-a", Name: "new"}] = fields
	go func() { _ = b.view.Store("clusters", "").Update(cluster("team-a", "new")) }()
	if code, answer := b.send(t, "GET", "/v1/namespaces/team-a/clusters/new", ""); code != http.StatusOK {
		t.Errorf("it is %d, %v", code, answer)
	}
}

func TestScaleObject_NeedsANumber(t *testing.T) {
	for _, body := range []string{"", "{}", `{"replicas":null}`} {
		b := newBed(t, "*")
		if code, answer := b.send(t, "POST", "/v1/namespaces/team-a/clusters/demo:scale", body); code != http.StatusBadRequest || len(b.written) > 0 {
			t.Errorf("%q is %d, %v; written is %q", body, code, answer, b.written)
		}
	}
}

// TestListNamespaces_SaysWhatCanBeDone in each of two namespaces, of 21 permissions: by one question for each, where the API
// server can list rules, after those about all namespaces.
func TestListNamespaces_SaysWhatCanBeDone(t *testing.T) {
	for isIncomplete, reviews := range map[bool]int{false: 21 + 2, true: 21 + 2 + 21 + 9} {
		b := newBed(t, "list computeclusters team-a", "create clusterjobs team-a", "get clusterjobs/log team-a", "get computeclusters team-b")
		b.isIncomplete = isIncomplete
		_, answer := b.send(t, "GET", "/v1/namespaces", "")
		want := map[string]any{"namespaces": []any{map[string]any{"name": "team-a", "permissions": []any{
			map[string]any{"resource": "clusterjobs", "verbs": []any{"create"}}, map[string]any{"resource": "clusterjobs/log", "verbs": []any{"get"}},
			map[string]any{"resource": "computeclusters", "verbs": []any{"list"}},
		}}}}
		if diff := cmp.Diff(want, answer); diff != "" || b.asked != reviews {
			t.Errorf("where rules are incomplete (%t) it asks %d times, want %d: %s", isIncomplete, b.asked, reviews, diff)
		}
		_, again := b.send(t, "GET", "/v1/namespaces", "")
		if diff := cmp.Diff(want, again); diff != "" || b.asked != reviews+21 {
			t.Errorf("where rules are incomplete (%t) it asks of namespaces again, %d times in all: %s", isIncomplete, b.asked, diff)
		}
	}
}

func TestCreateObject_IsCarriedOutOnce(t *testing.T) {
	b := newBed(t, "*")
	send := func(body string, headers ...string) (int, string) {
		code, answer := b.send(t, "POST", "/v1/namespaces/team-a/objects", body, headers...)
		object, _ := answer["object"].(map[string]any)
		metadata, _ := object["metadata"].(map[string]any)
		return code, fmt.Sprint(metadata["name"])
	}
	code, name := send(`{"object":`+unnamed+`}`, "Idempotency-Key", "k")
	if again, same := send(`{"object":`+unnamed+`}`, "Idempotency-Key", "k"); code != 201 || again != 200 || same != name || !strings.HasPrefix(name, "clusters-") {
		t.Errorf("the first call is %d and makes %s, the second is %d and finds %s", code, name, again, same)
	}
	if code, _ := send(`{"object":`+strings.Replace(unnamed, "2.60", "2.59", 1)+`}`, "Idempotency-Key", "k"); code != 409 {
		t.Errorf("another body with the same key is %d", code)
	}
	if code, another := send(`{"object":`+unnamed+`}`, "Idempotency-Key", "l"); code != 201 || another == name {
		t.Errorf("another key is %d and makes %s", code, another)
	}
	if code, _ := send(`{"object":` + unnamed + `}`); code != 400 {
		t.Errorf("no name and no key is %d", code)
	}
	if code, _ := send(`{"object":` + aCluster + `,"dryRun":true}`); code != 200 || len(b.written) != 2 {
		t.Errorf("a dry run is %d, and written is %q", code, b.written)
	}
	if code, _ := send(`{"object":`+unnamed+`}`, "Idempotency-Key", strings.Repeat("k", 129)); code != 400 {
		t.Errorf("a long key is %d", code)
	}
}

// TestCreateObject_LeavesTheNameToKubernetes: rules are asked about a name of the form that it will have.
func TestCreateObject_LeavesTheNameToKubernetes(t *testing.T) {
	for prefix, want := range map[string]int{"train-": 201, "Train-": 422, strings.Repeat("t", 45): 201, strings.Repeat("t", 46): 422} {
		b := newBed(t, "*")
		body := strings.Replace(aCluster, `"name":"new"`, `"generateName":"`+prefix+`"`, 1)
		code, answer := b.send(t, "POST", "/v1/namespaces/team-a/objects", `{"object":`+body+`}`)
		if code != want {
			t.Errorf("from %s it is %d, want %d: %v", prefix, code, want, answer)
		}
		if object, is := answer["object"].(map[string]any); is && object["metadata"].(map[string]any)["name"] != nil {
			t.Errorf("from %s the API server is sent the name %v", prefix, object["metadata"])
		}
	}
}

func TestCreateObject_HasAllErrorsAtOnce(t *testing.T) {
	b := newBed(t, "*")
	body := strings.Replace(aCluster, `"rayVersion":"2.60.0"`, `"rayVersion":"1.0","workerGroups":[{"name":"A"},{"name":"A"}]`, 1)
	code, answer := b.send(t, "POST", "/v1/namespaces/team-a/objects", `{"object":`+body+`,"dryRun":true}`)
	errors, _ := answer["errors"].([]any)
	if code != 422 || len(errors) < 3 {
		t.Fatalf("it is %d, %v", code, answer)
	}
	for _, one := range errors {
		found := one.(map[string]any)
		if !strings.HasPrefix(fmt.Sprint(found["field"]), "object.") || found["rule"] == nil || found["remedy"] == nil {
			t.Errorf("an error is %v", found)
		}
	}
	b.refuses = apierrors.NewForbidden(schema.GroupResource{Resource: "computeclusters"}, "new", fmt.Errorf("quota"))
	if code, answer := b.send(t, "POST", "/v1/namespaces/team-a/objects", `{"object":`+aCluster+`}`); code != 403 || !strings.Contains(fmt.Sprint(answer["detail"]), "quota") {
		t.Errorf("what the API server refuses is %d, %v", code, answer)
	}
	for name, body := range map[string]string{
		"nothing": `{}`, "both": `{"object":` + aCluster + `,"preset":"p"}`, "options without a preset": `{"object":` + aCluster + `,"options":{}}`,
		"a preset that is not there": `{"preset":"p"}`,
	} {
		if code, answer := b.send(t, "POST", "/v1/namespaces/team-a/objects", body); code != 400 || answer["remedy"] == nil {
			t.Errorf("%s: it is %d, %v", name, code, answer)
		}
	}
}

func TestCreateObject_NamesAValueThatDoesNotFit(t *testing.T) {
	for spec, want := range map[string][2]string{
		`{"rayVersion":2.6}`:                    {"object.spec.rayVersion is a number, and must be a text", "write it in quotes"},
		`{"head":{"size":{"memory":"plenty"}}}`: {`object.spec.head.size.memory is "plenty", which is no quantity`, "write one such as 4, 500m or 16Gi"},
		// Reading it would take hours, and as much memory as there is.
		`{"head":{"size":{"memory":"1e-1000000000"}}}`:                     {`object has a quantity that takes too long to read: the exponent of "1e-1000000000" is too long`, "write the number out"},
		`{"head":{"size":{"memory":"` + strings.Repeat("9", 1001) + `"}}}`: {`object has a quantity that takes too long to read: the number ` + strings.Repeat("9", 40) + `… has more than 1000 digits`, "write a shorter one"},
	} {
		body := strings.Replace(aCluster, `{"rayVersion":"2.60.0"}`, spec, 1)
		code, answer := newBed(t, "*").send(t, "POST", "/v1/namespaces/team-a/objects", `{"object":`+body+`}`)
		if code != 400 || answer["detail"] != want[0] || answer["remedy"] != want[1] {
			t.Errorf("%s is answered %d, %v", spec, code, answer)
		}
	}
}

// TestCreateObject_AsksForTheRightFirst: what is wrong with a manifest is for callers with the right to create it.
func TestCreateObject_AsksForTheRightFirst(t *testing.T) {
	example := examplePreset(t)
	for name, body := range map[string]string{
		"an unknown field":         `{"object":{"apiVersion":"heliostat.dev/v1beta1","kind":"ComputeCluster","x":1}}`,
		"another version":          `{"object":{"apiVersion":"v1","kind":"ComputeCluster"}}`,
		"a spec that breaks rules": `{"object":` + strings.Replace(aCluster, "2.60.0", "1", 1) + `}`,
		"an option out of bounds":  `{"preset":"` + example.Name + `","options":{"workers":-1}}`,
		"a key that is too long":   `{"object":` + unnamed + `,"idempotencyKey":"` + strings.Repeat("k", 129) + `"}`,
	} {
		for rights, want := range map[string]int{"get computeclusters team-a": 403, "create computeclusters team-a": 0} {
			b := newBed(t, rights)
			example.Namespace = "team-a"
			b.presets["team-a"] = []*corev1.ConfigMap{example}
			code, answer := b.send(t, "POST", "/v1/namespaces/team-a/objects", body)
			if isAsWanted := code == want || want == 0 && (code == 400 || code == 422); !isAsWanted || len(b.written) > 0 {
				t.Errorf("%s, with the right to %s: it is %d, %v", name, rights, code, answer)
			}
		}
	}
}

func TestRead_RefusesPathsThatAreNotPlain(t *testing.T) {
	b := newBed(t, "*")
	for path, want := range map[string]int{
		"/v1/namespaces/a%2fb/clusters/c": 400, "/v1//objects": 400, "/v1/namespaces/../objects": 400, "/v1/namespaces/A/clusters/c": 400,
		"/v1/namespaces/a/pods/c": 404, "/v1/none": 404, "/v1/objects?kindz=jobs": 400,
	} {
		if code, answer := b.send(t, "GET", path, ""); code != want || answer["remedy"] == nil {
			t.Errorf("%s is %d, want %d: %v", path, code, want, answer)
		}
	}
	if code, answer := b.send(t, "DELETE", "/v1/namespaces/a/clusters/c", ""); code != 405 || answer["remedy"] != "use GET" {
		t.Errorf("a method that the path has not is %d, %v", code, answer)
	}
	if code, answer := b.send(t, "GET", DocumentPath, ""); code != 200 || answer["openapi"] == nil {
		t.Errorf("the document is %d", code)
	}
}

func TestListObjects_ChecksBeforeItAsks(t *testing.T) {
	many := strings.Repeat("&namespaces=a", 201)
	for _, query := range []string{"kinds=pods&namespaces=team-a", "labels=" + many, "kinds=jobs&namespaces="} {
		b := newBed(t)
		if code, answer := b.send(t, "GET", "/v1/objects?"+query, ""); code != 400 || b.asked > 0 {
			t.Errorf("%.40s is %d after %d reviews: %v", query, code, b.asked, answer["detail"])
		}
	}
}

func TestSubmissions_NeedAnIDByGRPCToo(t *testing.T) {
	p := newBed(t, "*").api.portal
	ctx := withCaller(t.Context(), &access.Caller{})
	on := &heliostatv1.GetSubmissionRequest{Namespace: "team-a", Name: "demo"}
	for call, want := range map[string]bool{"GetSubmission": true, "StopSubmission": true, "ReadSubmissionLog": true, "CreateSubmission": false} {
		if err := p.permitAt(ctx, call, on, ""); (err != nil) != want {
			t.Errorf("%s without an ID is %v", call, err)
		}
	}
}

func TestObjects_AreNotMissingBeforeAllAreRead(t *testing.T) {
	b := newBed(t, "*")
	b.api.portal.View = view.New()
	for _, path := range []string{"/v1/objects", "/v1/namespaces/team-a/clusters/demo"} {
		if code, answer := b.send(t, "GET", path, ""); code != 503 {
			t.Errorf("%s is %d, %v", path, code, answer)
		}
	}
}
