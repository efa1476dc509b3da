package rest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/apiserver/feed"
	"github.com/heliostat-dev/heliostat/apiserver/logs"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// kubernetes stands in for package access: it has objects and rights, and notes what is written.
type kubernetes struct {
	// may has what the caller may do, as "verb resource/subresource namespace"; "*" is everything.
	may     []string
	objects map[access.ObjectName]map[string]any
	presets map[string][]*corev1.ConfigMap
	// namespaces are those that are there.
	namespaces map[string]types.UID
	kept       []*appsv1.ControllerRevision
	refuses    error
	// noEvents is why no events are read.
	noEvents error
	// unidentified is why nobody can be identified.
	unidentified error
	// identifying is called for each caller who is identified; nil is nothing.
	identifying func(r *http.Request)
	// written are patches and creates that were carried out.
	written []string
	// isIncomplete is that rules cannot be listed.
	isIncomplete bool
	// asked is how many reviews there were.
	asked int
	mutex sync.Mutex
}

func (k *kubernetes) Identify(_ context.Context, r *http.Request) (*access.Caller, error) {
	if k.identifying != nil {
		k.identifying(r)
	}
	return &access.Caller{}, k.unidentified
}

func (k *kubernetes) May(_ context.Context, _ *access.Caller, what authorizationv1.ResourceAttributes) error {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.asked++
	resource := what.Resource
	if what.Subresource != "" {
		resource += "/" + what.Subresource
	}
	right := strings.TrimSpace(what.Verb + " " + resource + " " + what.Namespace)
	if slices.Contains(k.may, "*") || slices.Contains(k.may, right) {
		return nil
	}
	return access.ErrForbidden
}

// Rules are the rights of a namespace, unless they cannot be listed.
func (k *kubernetes) Rules(_ context.Context, _ *access.Caller, namespace string) (access.Rules, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.asked++
	if k.isIncomplete {
		return nil, access.ErrIncomplete
	}
	var rules access.Rules
	for _, right := range k.may {
		if parts := strings.Fields(right); len(parts) == 3 && parts[2] == namespace {
			rules = append(rules, rbacv1.PolicyRule{Verbs: parts[:1], APIGroups: []string{"heliostat.dev"}, Resources: parts[1:2]})
		}
	}
	return rules, nil
}

func (k *kubernetes) Confirm(ctx context.Context, c *access.Caller, what authorizationv1.ResourceAttributes) error {
	return k.May(ctx, c, what)
}

func (k *kubernetes) FindObject(_ context.Context, _ *access.Caller, of access.ObjectName) (map[string]any, error) {
	if found, is := k.objects[of]; is {
		return found, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: "heliostat.dev", Resource: of.Resource}, of.Name)
}

func (k *kubernetes) PatchObject(ctx context.Context, c *access.Caller, of access.ObjectName, _ types.PatchType, patch []byte) (map[string]any, error) {
	k.written = append(k.written, of.Name+" "+string(patch))
	return k.FindObject(ctx, c, of)
}

func (k *kubernetes) CreateObject(_ context.Context, _ *access.Caller, of access.ObjectName, object map[string]any, isDry bool) (map[string]any, []string, error) {
	if k.refuses != nil {
		return nil, nil, k.refuses
	}
	if _, is := k.objects[of]; is {
		return nil, nil, apierrors.NewAlreadyExists(schema.GroupResource{Group: "heliostat.dev", Resource: of.Resource}, of.Name)
	}
	if !isDry {
		k.objects[of] = maps.Clone(object)
		k.written = append(k.written, "create "+of.Resource)
	}
	return object, []string{"a warning"}, nil
}

func (k *kubernetes) Namespaces(context.Context, *access.Caller) ([]string, error) {
	return nil, access.ErrForbidden
}

func (k *kubernetes) Events(context.Context, *access.Caller, string, types.UID) ([]*eventsv1.Event, error) {
	if k.noEvents != nil {
		return nil, k.noEvents
	}
	return []*eventsv1.Event{
		{Reason: "Old", DeprecatedLastTimestamp: metav1.NewTime(time.Unix(1, 0)), DeprecatedCount: 3},
		{Reason: "New", EventTime: metav1.NewMicroTime(time.Unix(2, 0))},
	}, nil
}

func (k *kubernetes) Presets(_ context.Context, _ *access.Caller, namespace string) ([]*corev1.ConfigMap, error) {
	return k.presets[namespace], nil
}

func (k *kubernetes) ReleasePresets(_ context.Context, namespace string) ([]*corev1.ConfigMap, error) {
	return k.presets[namespace], nil
}

func (k *kubernetes) NamespaceUID(_ context.Context, name string) (types.UID, error) {
	return k.namespaces[name], nil
}

func (k *kubernetes) NamespaceUIDs(context.Context) (map[string]types.UID, error) {
	return k.namespaces, nil
}

func (k *kubernetes) Revisions(context.Context, string, string, types.UID) ([]*appsv1.ControllerRevision, error) {
	return k.kept, nil
}

// bed is an API with two clusters, a job and a schedule in two namespaces.
type bed struct {
	*kubernetes
	api  *API
	view *view.View
	// site has what is read of heads and outputs, and network leads to heads.
	site    *headstest.Site
	network *headstest.Network
}

func newBed(t *testing.T, may ...string) *bed {
	t.Helper()
	b := &bed{kubernetes: &kubernetes{may: may, objects: map[access.ObjectName]map[string]any{}, presets: map[string][]*corev1.ConfigMap{}}, view: view.New()}
	now := clock.RealClock{}
	b.site, b.network = headstest.New(), headstest.NewNetwork()
	clusters := heads.New(heads.Settings{Clusters: b.site, Reader: b.site, Random: rand.Reader,
		Options: headclient.Options{Connect: b.network.Connect}})
	output := logs.New(logs.Settings{Heads: clusters, Jobs: b.site, Clock: now, Directory: t.TempDir()})
	t.Cleanup(func() { _ = output.Close() })
	b.api = New(Needs{
		Access: b, View: b.view, Feed: feed.New(b.view, now), Heads: clusters, Logs: output, Namespace: "release",
		AddressOf: func(kind, namespace, name string) string { return kind + " " + namespace + "/" + name },
		Log:       slog.New(slog.DiscardHandler), Clock: now,
	})
	b.put(t, view.Clusters, cluster("team-a", "demo"), cluster("team-b", "other"))
	b.put(t, view.Jobs, &v1beta1.ClusterJob{ObjectMeta: meta("team-a", "train")})
	b.put(t, view.Schedules, schedule("team-a", "nightly"))
	b.put(t, view.Services)
	b.put(t, view.Pods)
	return b
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: "5"}
}

func cluster(namespace, name string) *v1beta1.ComputeCluster {
	c := &v1beta1.ComputeCluster{ObjectMeta: meta(namespace, name)}
	c.Spec.WorkerGroups = []v1beta1.WorkerGroup{{Name: "cpu", Replicas: new(int32(1))}}
	return c
}

func schedule(namespace, name string) *v1beta1.ClusterJobSchedule {
	last, next := metav1.Unix(60, 0), metav1.Unix(120, 0)
	s := &v1beta1.ClusterJobSchedule{ObjectMeta: meta(namespace, name)}
	s.Spec.Schedule = "* * * * *"
	s.Status = v1beta1.ClusterJobScheduleStatus{LastScheduleTime: &last, NextScheduleTime: &next, ActiveJobs: 1}
	return s
}

// put gives the view all objects of a kind, and those of clusters to Kubernetes too.
func (b *bed) put(t *testing.T, kind string, all ...view.Object) {
	t.Helper()
	list := make([]any, 0, len(all))
	for _, one := range all {
		list = append(list, one)
		fields, err := toFields(one)
		if err != nil {
			t.Fatal(err)
		}
		b.objects[access.ObjectName{Resource: view.Resource(kind), Namespace: one.GetNamespace(), Name: one.GetName()}] = fields
	}
	if err := b.view.Store(kind, "").Replace(list, "5"); err != nil {
		t.Fatal(err)
	}
}

// send sends a request, and returns the code of the answer and its JSON.
func (b *bed) send(t *testing.T, method, path, body string, headers ...string) (int, map[string]any) {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body)).WithContext(t.Context())
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	if request, err := b.api.Read(r); err != nil {
		b.api.Refuse(w, err)
	} else {
		b.api.Serve(w, r, request, &access.Caller{})
	}
	text, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	answer := map[string]any{}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("%s %s is answered with %d and %q", method, path, w.Code, text)
	}
	return w.Code, answer
}
