package rest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
)

// serves starts a head on which two services share Serve, and puts the first of them into the view.
func (b *bed) serves(t *testing.T) {
	t.Helper()
	cluster := b.site.PutCluster("demo", nil)
	b.site.PutPod(headstest.Head(cluster, 1, "10.1.0.1"))
	fake := fakehead.StartOn(clock.RealClock{}, b.network.Listen("gcs:1"), b.network.Listen("10.1.0.1:8265"))
	fake.SetToken(headstest.Token)
	t.Cleanup(func() {
		b.network.Break()
		fake.Close()
	})
	head, err := b.api.portal.Heads.FindHead(heads.Reference{Namespace: headstest.Namespace, Name: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := b.api.portal.Heads.Converse(t.Context(), head)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	config := json.RawMessage(`{"applications": [
		{"name": "ours", "route_prefix": "/a", "import_path": "module:app", "deployments": [{"name": "Model"}]},
		{"name": "theirs", "route_prefix": "/b", "import_path": "module:app", "deployments": [{"name": "Model"}]}]}`)
	if err := c.Serve().Deploy(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Minute)
	service := &v1beta1.ClusterService{ObjectMeta: meta(headstest.Namespace, "answer")}
	service.Status.Active = &v1beta1.ServiceVersion{ClusterName: "demo", Applications: []v1beta1.ApplicationStatus{{Name: "ours"}}}
	cluster.ResourceVersion = "5"
	b.put(t, view.Clusters, cluster)
	b.put(t, view.Services, service)
}

// text sends a request whose answer is text.
func (b *bed) text(t *testing.T, path string) (int, string) {
	t.Helper()
	w := b.get(t, path)
	return w.Code, w.Body.String()
}

// get returns the answer to a request without a body.
func (b *bed) get(t *testing.T, path string) *httptest.ResponseRecorder {
	t.Helper()
	r, w := httptest.NewRequest(http.MethodGet, path, nil).WithContext(t.Context()), httptest.NewRecorder()
	request, err := b.api.Read(r)
	if err != nil {
		t.Fatal(err)
	}
	b.api.Serve(w, r, request, &access.Caller{})
	return w
}

func TestReplicas_AreTheServicesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, "get clusterservices/log "+headstest.Namespace)
		b.serves(t)
		const path = "/v1/namespaces/" + headstest.Namespace + "/services/answer/replicas"
		code, answer := b.send(t, "GET", path, "")
		all, _ := answer["replicas"].([]any)
		if code != 200 || len(all) != 1 {
			t.Fatalf("the replicas are %d, %v", code, answer)
		}
		deployments, _ := answer["deployments"].([]any)
		if want := map[string]any{"application": "ours", "cluster": "demo", "name": "Model"}; len(deployments) != 1 || !reflect.DeepEqual(deployments[0], want) {
			t.Errorf("the deployments are %v", deployments)
		}
		ours := all[0].(map[string]any)
		want := map[string]any{"application": "ours", "deployment": "Model", "cluster": "demo", "hasLog": true, "state": "RUNNING"}
		for field, value := range want {
			if ours[field] != value {
				t.Errorf("the replica's %s is %v, want %v", field, ours[field], value)
			}
		}
		log := path + "/" + ours["id"].(string) + "/log"
		code, whole := b.text(t, log)
		if code != 200 || len(whole) < 10 || strings.Contains(whole, headstest.Token) {
			t.Fatalf("its log is %d, %q", code, whole)
		}
		if code, rest := b.text(t, log+"?offset=4"); code != 200 || rest != whole[4:] {
			t.Errorf("from an offset it is %d, %q", code, rest)
		}
		if code, answer := b.send(t, "GET", log+"?offset=100000", ""); code != 409 || answer["reason"] != "OutputShorter" {
			t.Errorf("behind its end it is %d, %v", code, answer)
		}
		service := &v1beta1.ClusterService{ObjectMeta: meta(headstest.Namespace, "answer")}
		service.Status.Active = &v1beta1.ServiceVersion{ClusterName: "demo", Applications: []v1beta1.ApplicationStatus{{Name: "theirs"}}}
		b.put(t, view.Services, service)
		if code, answer := b.send(t, "GET", log, ""); code != 404 {
			t.Errorf("another service's replica is %d, %v", code, answer)
		}
	})
}
