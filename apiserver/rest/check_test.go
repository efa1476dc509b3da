package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/heliostat-dev/heliostat/portal/problem"
)

// routeOf returns the route of a call.
func routeOf(t *testing.T, call string) *Route {
	t.Helper()
	routes := Routes()
	for i := range routes {
		if routes[i].Call == call {
			return &routes[i]
		}
	}
	t.Fatalf("there is no call %s", call)
	return nil
}

// answered returns what a refusal says: its code, field and remedy; "" for none.
func answered(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var p *problem.Problem
	if !errors.As(err, &p) || p.Remedy == "" || p.Detail == "" {
		t.Fatalf("%v is no problem with a remedy", err)
	}
	field := p.Reason
	if len(p.Errors) > 0 {
		field = p.Errors[0].Field
	}
	return http.StatusText(p.Code) + ", " + field + ": " + p.Remedy
}

// readMessageOf reads a query for a call.
func readMessageOf(t *testing.T, call, query string) string {
	t.Helper()
	_, err := messageOf(routeOf(t, call), nil, query)
	return answered(t, err)
}

func TestMessageOf_RefusesWhatIsNotKnown(t *testing.T) {
	for name, c := range map[string]struct{ call, query, want string }{
		"none":                         {"ListObjects", "", ""},
		"lists may be repeated":        {"ListObjects", "kinds=jobs&kinds=clusters&limit=5", ""},
		"a misspelt parameter":         {"ListObjects", "phase=Ready", `Bad Request, query.phase: write "phases"`},
		"a name of the protocol":       {"ListSubmissions", "page_size=3", "Bad Request, query.page_size: leave it out"},
		"a value of the path":          {"GetObject", "name=b", "Bad Request, query.name: leave it out"},
		"a parameter twice":            {"ListObjects", "limit=5&limit=6", "Bad Request, query.limit: give it once"},
		"a text for a number":          {"ListObjects", "limit=many", "Bad Request, query.limit: correct it"},
		"a number that is too large":   {"ListObjects", "limit=4294967296", "Bad Request, query.limit: correct it"},
		"a word for a flag":            {"ReadLog", "follow=yes", "Bad Request, query.follow: correct it"},
		"a broken escape":              {"ListObjects", "text=%zz", "Bad Request, query: escape it as URLs are"},
		"a change takes no parameters": {"CreateObject", "dryRun=true", "Bad Request, query.dryRun: leave it out"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := readMessageOf(t, c.call, c.query); got != c.want {
				t.Errorf("it is %q, want %q", got, c.want)
			}
		})
	}
}

func TestReadBody_RefusesWhatIsNoMessage(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70)
	for name, c := range map[string]struct{ call, body, want string }{
		"nothing":                    {"SuspendObject", "", ""},
		"an object as it likes":      {"CreateObject", `{"object":{"any":{"thing":[1,null]}},"dryRun":true}`, ""},
		"numbers":                    {"CreateSubmission", `{"entrypoint":"x","entrypointNumCpus":0.5,"entrypointMemory":1000000000000,"metadata":{"a":"b"}}`, ""},
		"a number that is rounded":   {"CreateObject", `{"object":{"a":[{"b":9007199254740993}]}}`, "Bad Request, object.a[0].b: use the path of Kubernetes' own API, or a number up to 9007199254740992"},
		"the largest whole number":   {"CreateObject", `{"object":{"b":9223372036854775807}}`, "Bad Request, object.b: use the path of Kubernetes' own API, or a number up to 9007199254740992"},
		"a number that is infinite":  {"CreateObject", `{"object":{"b":1e999}}`, "Bad Request, object.b: give a smaller one"},
		"numbers that are kept":      {"CreateObject", `{"object":{"a":1e3,"b":0.1,"c":-9007199254740992,"d":1.0}}`, ""},
		"a scale to zero":            {"ScaleObject", `{"replicas":0}`, ""},
		"a misspelt field":           {"ScaleObject", `{"replica":3}`, `Bad Request, replica: write "replicas"`},
		"a field of the path":        {"ScaleObject", `{"namespace":"b"}`, "Bad Request, namespace: give one of group, replicas"},
		"a text for a number":        {"ScaleObject", `{"replicas":"3"}`, "Bad Request, replicas: give one, without quotes"},
		"half a worker":              {"ScaleObject", `{"replicas":1.5}`, "Bad Request, replicas: give one, without quotes"},
		"a number that is too large": {"ScaleObject", `{"replicas":4294967296}`, "Bad Request, replicas: give one, without quotes"},
		"a number for a text":        {"CreateObject", `{"preset":3}`, "Bad Request, preset: put it into quotes"},
		"a text for a flag":          {"CreateObject", `{"dryRun":"true"}`, "Bad Request, dryRun: give one of them, without quotes"},
		"a list for an object":       {"CreateObject", `{"object":[]}`, "Bad Request, object: send a JSON object"},
		"a number in a map of texts": {"CreateSubmission", `{"metadata":{"a":1}}`, "Bad Request, metadata.a: put it into quotes"},
		"a list":                     {"CreateObject", `[]`, "Bad Request, body: send a JSON object"},
		"broken JSON":                {"CreateObject", `{"object":`, "Bad Request, body: send one JSON object"},
		"two values":                 {"CreateObject", `{} {}`, "Bad Request, body: send one JSON object"},
		"what is no JSON behind it":  {"CreateObject", `{}}`, "Bad Request, body: send one JSON object"},
		"half of a letter":           {"CreateObject", `{"preset":"\ud800"}`, "Bad Request, body: send both halves, or the letter itself"},
		"halves of two letters":      {"CreateObject", `{"preset":"\ud83d\u0041"}`, "Bad Request, body: send both halves, or the letter itself"},
		"halves in a wrong order":    {"CreateObject", `{"preset":"\ude00\ud83d"}`, "Bad Request, body: send both halves, or the letter itself"},
		"both halves":                {"CreateObject", `{"preset":"\\ud800 \ud83d\ude00\ud83d\ude00\u0041"}`, ""},
		"values that lie deep":       {"CreateObject", deep, "Bad Request, body: send a flatter one"},
		"a field twice":              {"ScaleObject", `{"replicas":1,"replicas":2}`, "Bad Request, replicas: give it once"},
		"a field of an object twice": {"CreateObject", `{"object":{"a":[{"b":1,"b":1}]}}`, "Bad Request, object.a[0].b: give it once"},
		"a text of a map twice":      {"CreateSubmission", `{"metadata":{"a":"b","a":"c"}}`, "Bad Request, metadata.a: give it once"},
		"a text that is no UTF-8":    {"CreateObject", "{\"preset\":\"\xff\"}", "Bad Request, body: send it as UTF-8"},
		"an amount that is infinite": {"CreateSubmission", `{"entrypointResources":{"a":1e999}}`, "Bad Request, entrypointResources.a: give a smaller one"},
		"braces in a text":           {"CreateObject", `{"preset":"` + strings.Repeat("{", 70) + `\""}`, ""},
		"many values":                {"CreateObject", `{"object":{"a":[` + strings.Repeat("0,", MaxValues-3) + `0]}}`, ""},
		"a value too many":           {"CreateObject", `{"object":{"a":[` + strings.Repeat("0,", MaxValues-2) + `0]}}`, "Request Entity Too Large, RequestEntityTooLarge: send a smaller object"},
		"commas in a text":           {"CreateObject", `{"preset":"` + strings.Repeat(",", 2*MaxValues) + `"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := countJSON([]byte(c.body))
			if route := routeOf(t, c.call); err == nil {
				err = readBody(route, route.message.New().Interface(), "application/json; charset=utf-8", []byte(c.body))
			}
			if got := answered(t, err); got != c.want {
				t.Errorf("it is %q, want %q", got, c.want)
			}
		})
	}
	scale := routeOf(t, "ScaleObject")
	if err := readBody(scale, scale.message.New().Interface(), "application/yaml", []byte("replicas: 3")); !strings.HasPrefix(answered(t, err), "Unsupported Media Type") {
		t.Errorf("YAML is %v", err)
	}
}

// TestReadBody_ReadsAsProtojsonDoes: what is taken becomes the message that others would read of the same text.
func TestReadBody_ReadsAsProtojsonDoes(t *testing.T) {
	for call, text := range map[string]string{
		"CreateObject": `{"object":{"kind":"ClusterJob","a":[1,-2.5,1e3,null,true,"é\u2028",{"":{}},[[]]]},"dryRun":true,"preset":null,"idempotencyKey":"k"}`,
		"CreateSubmission": `{"id":"","entrypoint":"x","runtimeEnv":{"pip":["a"]},"metadata":{"a":"b"},"entrypointNumCpus":0.5,"entrypointMemory":9007199254740993,` +
			`"entrypointResources":{"a":2}}`,
		"ScaleObject": `{"group":"cpu","replicas":0}`,
	} {
		route := routeOf(t, call)
		have, want := route.message.New().Interface(), route.message.New().Interface()
		if err := readBody(route, have, "application/json", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := protojson.Unmarshal([]byte(text), want); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(want, have) {
			t.Errorf("%s is read as %v, want %v", text, have, want)
		}
	}
}

// TestReadBody_PutsNoPathTogetherInVain: a name of 100 KiB above 50,000 values would take gigabytes.
func TestReadBody_PutsNoPathTogetherInVain(t *testing.T) {
	route := routeOf(t, "CreateObject")
	body := []byte(`{"object":{"` + strings.Repeat("n", 100<<10) + `":[` + strings.Repeat("0,", MaxValues-10) + `0]}}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := readBody(route, route.message.New().Interface(), "application/json", body); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("it takes %d MiB", took>>20)
	}
}

// TestReadBody_RepeatsNoLongName: one of a mebibyte became an answer of ten.
func TestReadBody_RepeatsNoLongName(t *testing.T) {
	route, long := routeOf(t, "CreateObject"), `"`+strings.Repeat("ä", 100_000)+`":`
	for name, body := range map[string]string{
		"no field":   `{` + long + `1}`,
		"twice":      `{"object":{` + long + `1,` + long + `1}}`,
		"below it":   `{"object":{` + long + `{"a":1e999}}}`,
		"in options": `{"options":{` + long + `9007199254740993}}`,
	} {
		err := readBody(route, route.message.New().Interface(), "application/json", []byte(body))
		answered(t, err)
		if text := err.Error(); len(text) > 1000 || !utf8.ValidString(text) || !strings.Contains(text, "ää…") {
			t.Errorf("%s: the refusal has %d bytes", name, len(text))
		}
	}
}

// FuzzReadBody reads any body for any call: it must not panic, and what is taken has no more values than were counted.
func FuzzReadBody(f *testing.F) {
	for _, seed := range []string{`{}`, `{"object":{"kind":"ClusterJob"}}`, `{"replicas":3}`, `{"metadata":{"a":"b"}}`, `[`, "\x00", `{"a":"\ud800"}`} {
		f.Add(uint8(0), []byte(seed))
	}
	routes := Routes()
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		route := &routes[int(which)%len(routes)]
		values, err := countJSON(body)
		if err != nil {
			answered(t, err)
			return
		}
		message := route.message.New().Interface()
		if err := readBody(route, message, "application/json", body); err != nil {
			answered(t, err)
			return
		}
		text, err := protojson.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		var made any
		if err := json.Unmarshal(text, &made); err != nil || valuesOf(made) > values+1 {
			t.Errorf("%d values are counted as %d (%v)", valuesOf(made), values, err)
		}
	})
}

// valuesOf returns how many values there are in one, with itself.
func valuesOf(value any) int {
	count := 1
	switch value := value.(type) {
	case map[string]any:
		for _, inner := range value {
			count += valuesOf(inner)
		}
	case []any:
		for _, inner := range value {
			count += valuesOf(inner)
		}
	}
	return count
}

func TestFind_TakesTheRouteThatSpellsOutMost(t *testing.T) {
	for name, c := range map[string]struct{ method, path, want string }{
		"a list":                    {"GET", "/v1/objects", "ListObjects"},
		"its watch":                 {"GET", "/v1/objects/watch", "WatchObjects"},
		"one object":                {"GET", "/v1/namespaces/a/clusters/b", "GetObject"},
		"presets are no kind":       {"GET", "/v1/namespaces/a/presets", "ListPresets"},
		"a verb":                    {"POST", "/v1/namespaces/a/jobs/b:stop", "StopObject"},
		"submissions":               {"GET", "/v1/namespaces/a/clusters/b/submissions", "ListSubmissions"},
		"the stop of one":           {"POST", "/v1/namespaces/a/clusters/b/submissions/c:stop", "StopSubmission"},
		"replicas":                  {"GET", "/v1/namespaces/a/services/b/replicas", "ListReplicas"},
		"the log of one":            {"GET", "/v1/namespaces/a/services/b/replicas/c/log", "ReadReplicaLog"},
		"rounds":                    {"GET", "/v1/namespaces/a/jobs/b/rounds", "ListRounds"},
		"an output":                 {"GET", "/v1/namespaces/a/jobs/b/log", "ReadLog"},
		"a method it has not":       {"DELETE", "/v1/namespaces/a/clusters/b", "[GET]"},
		"a verb that is not there":  {"POST", "/v1/namespaces/a/jobs/b:start", "[]"},
		"a namespace that is empty": {"GET", "/v1/namespaces//clusters/b", "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			parts, verb := split(c.path)
			route, others := find(Routes(), c.method, parts, verb)
			got := "[" + strings.Join(others, " ") + "]"
			if route != nil {
				got = route.Call
			}
			if got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
		})
	}
}

func TestRoutes_HaveAPathAndAPermission(t *testing.T) {
	calls := map[string]bool{}
	for _, route := range Routes() {
		calls[route.Call] = true
		if !strings.HasPrefix(route.Path, "/v1/") {
			t.Errorf("the call %s has the path %q", route.Call, route.Path)
		}
		if _, is := permissions[route.Call]; !is {
			t.Errorf("the call %s has no row in permissions", route.Call)
		}
	}
	if len(permissions) != len(calls) {
		t.Errorf("there are %d rows in permissions for %d calls", len(permissions), len(calls))
	}
}
