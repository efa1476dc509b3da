package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// speaker is a caller of the API below /v1.
type speaker struct {
	*portal
	token string
}

// says sends a request, and returns the code of the answer and its JSON.
func (s speaker) says(ctx context.Context, method, path, body string, headers ...string) (int, map[string]any, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	came, err := s.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = came.Body.Close() }()
	text, err := io.ReadAll(came.Body)
	if err != nil {
		return 0, nil, err
	}
	answer := map[string]any{}
	if err := json.Unmarshal(text, &answer); err != nil {
		return came.StatusCode, nil, fmt.Errorf("read %q: %w", text, err)
	}
	return came.StatusCode, answer, nil
}

// must sends a request that must be answered with a code.
func (s speaker) must(t *testing.T, code int, route, body string, headers ...string) map[string]any {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	came, answer, err := s.says(t.Context(), method, path, body, headers...)
	if err != nil || came != code {
		t.Fatalf("%s %s is %d, want %d: %v, %v", method, path, came, code, answer, err)
	}
	return answer
}

// portalCluster returns the body of a create of a cluster.
func portalCluster(t *testing.T, more string) string {
	t.Helper()
	var fields map[string]any
	must(t, json.Unmarshal([]byte(`{"apiVersion":"heliostat.dev/v1beta1","kind":"ComputeCluster","metadata":{"name":"demo"},
		"spec":{"rayVersion":"2.60.0","workerGroups":[{"name":"cpu","replicas":1}]}}`), &fields))
	body := map[string]any{"object": fields}
	must(t, json.Unmarshal([]byte(more), &body))
	text, err := json.Marshal(body)
	must(t, err)
	return string(text)
}

// TestServer_ServesThePortal from the first look to the end of a cluster, with the permissions of Kubernetes' own roles.
func TestServer_ServesThePortal(t *testing.T) {
	t.Parallel()
	p, namespace := startServer(t), newNamespace(t)
	editor, viewer := speaker{p, account(t, namespace, "editor", "edit")}, speaker{p, account(t, namespace, "viewer", "view")}
	here := "/v1/namespaces/" + namespace
	for _, one := range []speaker{editor, viewer} {
		one.waits(t, namespace)
	}
	if me := editor.must(t, 200, "GET /v1/me", ""); me["name"] != "system:serviceaccount:"+namespace+":editor" || me["method"] != "Token" {
		t.Errorf("the caller is %v", me)
	}
	editor.mistakes(t, here)
	if code, _, err := viewer.says(t.Context(), "POST", here+"/objects", portalCluster(t, `{}`)); err != nil || code != 403 {
		t.Errorf("a viewer's create is %d, %v", code, err)
	}
	next := editor.watches(t, "/v1/objects/watch?namespaces="+namespace)
	next("ready", "")
	first := editor.must(t, 201, "POST "+here+"/objects", portalCluster(t, `{}`), "Idempotency-Key", "k")
	again := editor.must(t, 200, "POST "+here+"/objects", portalCluster(t, `{}`), "Idempotency-Key", "k")
	if uid := uidOf(first); uid == "" || uid != uidOf(again) {
		t.Errorf("the same call again makes %v", again)
	}
	editor.must(t, 409, "POST "+here+"/objects", portalCluster(t, `{}`))
	next("put", "demo")
	viewer.looks(t, here)
	viewer.knows(t, namespace, "clusterjobs[list] clusterjobs/log[get] clusterjobschedules[list] clusterservices[list] "+
		"clusterservices/log[get] computeclusters[list]")
	editor.knows(t, namespace, "clusterjobs[create delete list patch] clusterjobs/log[get] clusterjobschedules[create delete list patch] "+
		"clusterservices[create delete list patch] clusterservices/log[get] "+
		"clusterservices/proxy[get] computeclusters[create delete list patch] computeclusters/proxy[create get]")
	editor.acts(t, here, viewer)
	speaker{p, account(t, namespace, "nobody", "")}.learnsNothing(t, here)
	must(t, shared.Delete(t.Context(), &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "demo"}}))
	next("del", "demo")
	if lines := p.log.String(); !strings.Contains(lines, `"verb":"scale"`) || strings.Contains(lines, editor.token) {
		t.Errorf("the audit lines are\n%s", lines)
	}
}

// knows what its role lets it do in a namespace.
func (s speaker) knows(t *testing.T, namespace, want string) {
	t.Helper()
	all, _ := s.must(t, 200, "GET /v1/namespaces", "")["namespaces"].([]any)
	var got []string
	for _, one := range all {
		found, _ := one.(map[string]any)
		permissions, _ := found["permissions"].([]any)
		for _, one := range permissions {
			permission, _ := one.(map[string]any)
			got = append(got, fmt.Sprint(permission["resource"], permission["verbs"]))
		}
		if found["name"] != namespace {
			t.Errorf("a namespace is %v", found["name"])
		}
	}
	if strings.Join(got, " ") != want {
		t.Errorf("it can do %q, want %q", got, want)
	}
}

// waits until a speaker's role is in force in a namespace.
func (s speaker) waits(t *testing.T, namespace string) {
	t.Helper()
	eventually(t, "the role to be in force", func(ctx context.Context) error {
		code, answer, err := s.says(ctx, "GET", "/v1/objects?namespaces="+namespace, "")
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("it is %d, %v", code, answer)
		}
		return err
	})
}

// mistakes shows that a dry run has all errors at once, and a misspelt field the nearest name.
func (s speaker) mistakes(t *testing.T, here string) {
	t.Helper()
	bad := s.must(t, 422, "POST "+here+"/objects", portalCluster(t, `{"dryRun":true,"object":{"apiVersion":"heliostat.dev/v1beta1",
		"kind":"ComputeCluster","metadata":{"name":"demo"},"spec":{"rayVersion":"1.0","workerGroups":[{"name":"a"},{"name":"a"}]}}}`))
	if errors, _ := bad["errors"].([]any); len(errors) < 2 {
		t.Errorf("the dry run says %v", bad)
	}
	unknown := s.must(t, 400, "POST "+here+"/objects", portalCluster(t, `{"object":{"apiVersion":"heliostat.dev/v1beta1",
		"kind":"ComputeCluster","metadata":{"name":"demo"},"spec":{"rayVersionn":"2.60.0"}}}`))
	if unknown["remedy"] != `write "rayVersion"` {
		t.Errorf("a misspelt field is %v", unknown)
	}
}

// looks shows that a list has the cluster, and that its line says what the chain of causes begins with.
func (s speaker) looks(t *testing.T, here string) {
	t.Helper()
	list := s.must(t, 200, "GET /v1/objects?kinds=clusters&namespaces="+path.Base(here), "")
	if lines, _ := list["lines"].([]any); len(lines) != 1 {
		t.Errorf("the list is %v", list)
	}
	seen := s.must(t, 200, "GET "+here+"/clusters/demo", "")
	if why, _ := seen["why"].([]any); len(why) == 0 || seen["line"].(map[string]any)["code"] != why[0].(map[string]any)["code"] {
		t.Errorf("why is %v", seen["why"])
	}
}

// acts shows that each verb changes an object once, and that a viewer has none.
func (s speaker) acts(t *testing.T, here string, viewer speaker) {
	t.Helper()
	for _, action := range []struct {
		verb, body string
		isChanged  bool
	}{{"scale", `{"replicas":3}`, true}, {"scale", `{"replicas":3}`, false}, {"suspend", "", true}, {"suspend", "", false}, {"resume", "", true}, {"resume", "", false}} {
		if did := s.must(t, 200, "POST "+here+"/clusters/demo:"+action.verb, action.body); did["isChanged"] != action.isChanged {
			t.Errorf("%s %s has changed: %v", action.verb, action.body, did["isChanged"])
		}
		if code, answer, err := viewer.says(t.Context(), "POST", here+"/clusters/demo:"+action.verb, action.body); err != nil || code != 403 {
			t.Errorf("a viewer's %s is %d, %v, %v", action.verb, code, answer, err)
		}
	}
	s.must(t, 201, "POST "+here+"/objects", `{"object":{"apiVersion":"heliostat.dev/v1beta1","kind":"ClusterService",
		"metadata":{"name":"api"},"spec":{"clusterRef":{"name":"demo"},"serveConfig":{"applications":[{"name":"a","import_path":"a:b"}]}}}}`)
	if none := s.must(t, 409, "POST "+here+"/services/api:undo", ""); none["reason"] != "NoEarlierVersion" {
		t.Errorf("an undo of the first version is %v", none)
	}
}

// learnsNothing shows that a caller without rights learns nothing, not even what is there, and one without a good token why.
func (s speaker) learnsNothing(t *testing.T, here string) {
	t.Helper()
	was, other := s.must(t, 403, "GET "+here+"/clusters/demo", ""), s.must(t, 403, "GET "+here+"/clusters/none", "")
	if was["detail"] != other["detail"] {
		t.Errorf("what is there is refused by %v, what is not by %v", was, other)
	}
	if all := s.must(t, 200, "GET /v1/objects", ""); len(all["lines"].([]any)) > 0 {
		t.Errorf("nobody is shown %v", all)
	}
	for name, token := range map[string]string{"no": "", "a garbage": "garbage", "an expired": expired} {
		if refused := (speaker{s.portal, token}).must(t, 401, "GET /v1/me", ""); refused["reason"] != "Unauthorized" || refused["remedy"] == nil {
			t.Errorf("%s token is refused by %v", name, refused)
		}
	}
}

func uidOf(answer map[string]any) string {
	object, _ := answer["object"].(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	return fmt.Sprint(metadata["uid"])
}

// expired is a token that nobody has signed, and that says of itself that its time is over: {"iss":"x","exp":1}.
const expired = "e30.eyJpc3MiOiJ4IiwiZXhwIjoxfQ.c2ln"

// watches begins a watch, and returns what waits for an event of a type about a name.
func (s speaker) watches(t *testing.T, path string) func(kind, name string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+s.token)
	came, err := s.client.Do(r)
	must(t, err)
	t.Cleanup(func() { _ = came.Body.Close() })
	lines := bufio.NewReader(came.Body)
	return func(kind, name string) {
		t.Helper()
		for is := false; ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				t.Fatalf("the watch shows no %s of %s: %v", kind, name, err)
			}
			if bytes.HasPrefix(line, []byte("event: ")) {
				is = string(line) == "event: "+kind+"\n"
			}
			if is && bytes.HasPrefix(line, []byte("data: ")) && bytes.Contains(line, []byte(`"`+name)) {
				return
			}
		}
	}
}

// TestServer_FindsHeads by their pods and tokens, and says why one does not answer.
func TestServer_FindsHeads(t *testing.T) {
	t.Parallel()
	p, namespace := startServer(t), newNamespace(t)
	watching(t, namespace)
	editor, viewer := speaker{p, account(t, namespace, "editor", "edit")}, speaker{p, account(t, namespace, "viewer", "view")}
	must(t, shared.Create(t.Context(), newCluster(namespace, "demo", 0)))
	ready(t, types.NamespacedName{Namespace: namespace, Name: "demo"})
	submissions := "/v1/namespaces/" + namespace + "/clusters/demo/submissions"
	eventually(t, "the server to ask the head", func(ctx context.Context) error {
		code, answer, err := editor.says(ctx, "GET", submissions, "")
		if err == nil && (code != 503 || answer["reason"] != "HeadUnreachable") {
			err = fmt.Errorf("it is %d, %v", code, answer)
		}
		return err
	})
	if code, answer, err := viewer.says(t.Context(), "GET", submissions, ""); err != nil || code != 403 {
		t.Errorf("a viewer is answered %d, %v, %v", code, answer, err)
	}
	must(t, shared.Edit(t.Context(), types.NamespacedName{Namespace: namespace, Name: "demo"}, func(spec *v1beta1.ComputeClusterSpec) { spec.Suspend = new(true) }))
	eventually(t, "the server to know of the suspension", func(ctx context.Context) error {
		code, answer, err := editor.says(ctx, "GET", submissions, "")
		if err == nil && (code != 409 || answer["reason"] != "SuspendedBySpec") {
			err = fmt.Errorf("it is %d, %v", code, answer)
		}
		return err
	})
}

// TestServer_MakesObjectsOfPresets that an administrator has made beside the server, and in a user's namespace.
func TestServer_MakesObjectsOfPresets(t *testing.T) {
	t.Parallel()
	p, namespace := startServer(t), newNamespace(t)
	editor := speaker{p, account(t, namespace, "editor", "edit")}
	here := "/v1/namespaces/" + namespace
	must(t, shared.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "notebook", Labels: map[string]string{"heliostat.dev/preset": ""}},
		Data: map[string]string{
			"title":       "A notebook's cluster",
			"schema.json": `{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"workers":{"type":"integer","minimum":0,"maximum":4,"default":1}}}`,
			"manifest.yaml": `{apiVersion: heliostat.dev/v1beta1, kind: ComputeCluster, metadata: {name: "${name}"},
				spec: {rayVersion: 2.60.0, workerGroups: [{name: cpu, replicas: "${workers}"}]}}`,
		},
	}))
	eventually(t, "the preset", func(ctx context.Context) error {
		code, answer, err := editor.says(ctx, "GET", here+"/presets", "")
		if err == nil && (code != 200 || !strings.Contains(fmt.Sprint(answer), "A notebook's cluster")) {
			err = fmt.Errorf("%d, %v", code, answer)
		}
		return err
	})
	refused := editor.must(t, 422, "POST "+here+"/objects", `{"preset":"notebook","options":{"name":"anna","workers":5},"dryRun":true}`)
	if errors, _ := refused["errors"].([]any); len(errors) != 1 || !strings.Contains(fmt.Sprint(errors), "workers") {
		t.Errorf("an option out of its bounds is %v", refused)
	}
	made := editor.must(t, 201, "POST "+here+"/objects", `{"preset":"notebook","options":{"name":"anna","workers":2}}`)
	if text := fmt.Sprint(made["object"]); !strings.Contains(text, "replicas:2") || !strings.Contains(text, "name:anna") {
		t.Errorf("the preset makes %s", text)
	}
}

// TestServer_EndsAPortalsWatchWithItsRight with a bye that says why.
func TestServer_EndsAPortalsWatchWithItsRight(t *testing.T) {
	t.Parallel()
	p, namespace := startServer(t), newNamespace(t)
	viewer := speaker{p, account(t, namespace, "viewer", "view")}
	viewer.waits(t, namespace)
	next := viewer.watches(t, "/v1/objects/watch?namespaces="+namespace)
	next("ready", "")
	must(t, shared.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "viewer"}}))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		next("bye", "")
	}()
	select {
	case <-ended:
	case <-time.After(serverLimit):
		t.Error("the watch does not end")
	}
}
