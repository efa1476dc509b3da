package serve_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/serve"
	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// site is a namespace with the service sort on a cluster of its own, with one pod that takes requests.
type site struct {
	service *v1beta1.ClusterService
	cluster *v1beta1.ComputeCluster
	pod     *corev1.Pod
	// live is the pod as it is now; nil is gone. Silent is that the API server does not answer.
	live   *corev1.Pod
	silent error
	clock  *clocktesting.FakeClock
	dialed []string
}

func newSite() *site {
	s := &site{clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	s.service = &v1beta1.ClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "sort", UID: "uid-of-sort"}}
	s.service.Spec.ServeConfig = runtime.RawExtension{Raw: []byte(`{"applications": []}`)}
	s.cluster = &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: naming.ServiceCluster("sort", "uid-of-sort", 1), UID: "uid-of-cluster",
		Labels:          map[string]string{v1beta1.LabelService: "sort"},
		Annotations:     map[string]string{v1beta1.AnnotationRevisionCluster: "1"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.service, v1beta1.GroupVersion.WithKind("ClusterService"))},
	}}
	s.pod = podOf(s.cluster, 0)
	s.live = s.pod.DeepCopy()
	return s
}

func podOf(cluster *v1beta1.ComputeCluster, slot int) *corev1.Pod {
	at := naming.Place{Group: "cpu", Slot: slot, Epoch: 1}
	labels := naming.PodLabels(cluster.Name, at)
	labels[naming.ServeLabel("sort")] = v1beta1.ServeOn
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Namespace, Name: naming.Pod(cluster.Name, cluster.UID, at), UID: types.UID(fmt.Sprintf("pod-%d", slot)), Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cluster, v1beta1.GroupVersion.WithKind("ComputeCluster"))},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.1.0.7", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

func (s *site) FindService(namespace, name string) (*v1beta1.ClusterService, bool) {
	return s.service, namespace == s.service.Namespace && name == s.service.Name
}

func (s *site) ClustersOf(string, string) []*v1beta1.ComputeCluster {
	return []*v1beta1.ComputeCluster{s.cluster}
}

func (s *site) PodsOf(owner types.UID) []*corev1.Pod {
	if owner != s.cluster.UID {
		return nil
	}
	return []*corev1.Pod{s.pod}
}

func (s *site) Pod(_ context.Context, _, name string) (*corev1.Pod, error) {
	if s.silent != nil {
		return nil, s.silent
	}
	if s.live == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	return s.live, nil
}

func (s *site) services() *serve.Services {
	return serve.New(s, func(_ context.Context, address string) (net.Conn, error) {
		s.dialed = append(s.dialed, address)
		here, there := net.Pipe()
		return here, there.Close()
	}, s.clock)
}

func TestFind_LeadsToThePortOfTheSpec(t *testing.T) {
	for config, want := range map[string]string{
		`{"applications": []}`: "10.1.0.7:8000",
		`{"http_options": {"port": 8123, "ssl_certfile": null}}`:    "10.1.0.7:8123",
		`{"http_options": {"port": 70000}}`:                         "10.1.0.7:8000",
		`{"http_options": {"host": "0.0.0.0", "ssl_certfile": ""}}`: "10.1.0.7:8000",
	} {
		s := newSite()
		s.service.Spec.ServeConfig.Raw = []byte(config)
		// What others may write says other places.
		s.service.Status.URL, s.service.Status.Active = "http://169.254.169.254", &v1beta1.ServiceVersion{ClusterName: "evil"}
		s.service.Annotations = map[string]string{"heliostat.dev/url": "http://10.0.0.1"}
		all, err := s.services().Find("team", "sort")
		if err != nil || len(all) != 1 {
			t.Fatalf("%s: %v, %v", config, all, err)
		}
		connection, err := s.services().Connect(t.Context(), all[0])
		if err != nil || len(s.dialed) != 1 || s.dialed[0] != want {
			t.Fatalf("%s leads to %v, %v", config, s.dialed, err)
		}
		_ = connection.Close()
	}
}

func TestFind_TakesTheClusterOfItsSpec(t *testing.T) {
	s := newSite()
	s.service.Spec.ClusterRef = &v1beta1.ClusterReference{Name: "shared"}
	s.cluster.Name, s.cluster.OwnerReferences = "shared", nil
	s.pod = podOf(s.cluster, 0)
	if all, err := s.services().Find("team", "sort"); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}

// TestFind_TakesNoOther changes one thing each, in the cache and as it is now: neither is ever dialled.
func TestFind_TakesNoOther(t *testing.T) {
	for name, change := range map[string]func(s *site, pod *corev1.Pod){
		"a pod without the label":       func(_ *site, p *corev1.Pod) { delete(p.Labels, naming.ServeLabel("sort")) },
		"a pod whose label is off":      func(_ *site, p *corev1.Pod) { p.Labels[naming.ServeLabel("sort")] = "false" },
		"a pod with another's label":    func(_ *site, p *corev1.Pod) { p.Labels = map[string]string{naming.ServeLabel("other"): "true"} },
		"a pod without an owner":        func(_ *site, p *corev1.Pod) { p.OwnerReferences = nil },
		"a pod of another cluster":      func(_ *site, p *corev1.Pod) { p.OwnerReferences[0].UID = "other" },
		"a pod that is not led by it":   func(_ *site, p *corev1.Pod) { p.OwnerReferences[0].Controller = nil },
		"a pod with a name of its own":  func(_ *site, p *corev1.Pod) { p.Name = "mine" },
		"a pod that says another place": func(_ *site, p *corev1.Pod) { p.Labels[v1beta1.LabelSlot] = "3" },
		"a pod that is not ready":       func(_ *site, p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse },
		"a pod without conditions":      func(_ *site, p *corev1.Pod) { p.Status.Conditions = nil },
		"a pod that ends":               func(_ *site, p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} },
		"a pod that failed":             func(_ *site, p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
		"a cluster that says it is the service's": func(s *site, _ *corev1.Pod) {
			s.cluster.OwnerReferences[0].UID = "other"
		},
		"a cluster that a user put there":  func(s *site, _ *corev1.Pod) { s.cluster.Labels = nil },
		"a cluster with a name of its own": func(s *site, _ *corev1.Pod) { s.cluster.Annotations[v1beta1.AnnotationRevisionCluster] = "2" },
	} {
		s := newSite()
		change(s, s.pod)
		var u *heads.Unavailable
		if all, err := s.services().Find("team", "sort"); !errors.As(err, &u) || u.Code != "NoEndpoints" || !u.Temporary {
			t.Errorf("%s: %v, %v", name, all, err)
		}
		if strings.HasPrefix(name, "a cluster") {
			continue
		}
		s = newSite()
		all, err := s.services().Find("team", "sort")
		if err != nil {
			t.Fatal(err)
		}
		change(s, s.live)
		if _, err := s.services().Connect(t.Context(), all[0]); err == nil || len(s.dialed) > 0 {
			t.Errorf("%s now: %v is dialled, %v", name, s.dialed, err)
		}
	}
}

func TestConnect_DialsWhatIsThereNow(t *testing.T) {
	for name, change := range map[string]func(s *site){
		"a pod that is gone":             func(s *site) { s.live = nil },
		"another pod with its name":      func(s *site) { s.live.UID = "new" },
		"a pod on the node's network":    func(s *site) { s.live.Spec.HostNetwork = true },
		"loopback":                       func(s *site) { s.live.Status.PodIP = "127.0.0.1" },
		"the node's metadata":            func(s *site) { s.live.Status.PodIP = "169.254.169.254" },
		"a name":                         func(s *site) { s.live.Status.PodIP = "kubernetes.default" },
		"no address":                     func(s *site) { s.live.Status.PodIP = "" },
		"a cluster that is gone by then": func(s *site) { s.cluster.UID = "new" },
	} {
		s := newSite()
		all, err := s.services().Find("team", "sort")
		if err != nil {
			t.Fatal(err)
		}
		change(s)
		if _, err := s.services().Connect(t.Context(), all[0]); err == nil || len(s.dialed) > 0 {
			t.Errorf("%s: %v is dialled, %v", name, s.dialed, err)
		}
	}
	moved := newSite() // an address counts as it is now
	all, err := moved.services().Find("team", "sort")
	if err != nil {
		t.Fatal(err)
	}
	moved.live.Status.PodIP = "10.1.0.8"
	if _, err := moved.services().Connect(t.Context(), all[0]); err != nil || moved.dialed[0] != "10.1.0.8:8000" {
		t.Errorf("%v, %v", moved.dialed, err)
	}
}

// TestConnect_GoesByWhatWasReadLately where the API server does not answer, and only there.
func TestConnect_GoesByWhatWasReadLately(t *testing.T) {
	for name, c := range map[string]struct {
		after   time.Duration
		change  func(s *site)
		isTaken bool
	}{
		"known in the last second": {time.Second - 1, func(s *site) { s.live = nil }, true},
		"gone, and that is said":   {time.Second, func(s *site) { s.live = nil }, false},
		"silence":                  {25*time.Second - 1, func(s *site) { s.silent = errors.New("connection refused") }, true},
		"a pod that has moved":     {time.Second, func(s *site) { s.live.Status.PodIP = "" }, false},
		"silence for too long":     {25 * time.Second, func(s *site) { s.silent = errors.New("connection refused") }, false},
		"silence, and the cache says it is not ready": {time.Second, func(s *site) {
			s.silent, s.pod.Status.Conditions[0].Status = errors.New("connection refused"), corev1.ConditionFalse
		}, false},
		"silence, and the cache says another address": {time.Second, func(s *site) {
			s.silent, s.pod.Status.PodIP = errors.New("connection refused"), "10.1.0.9"
		}, false},
		"silence, and the cache has no such pod": {time.Second, func(s *site) {
			s.silent, s.pod.UID = errors.New("connection refused"), "new"
		}, false},
	} {
		s := newSite()
		services := s.services()
		all, err := services.Find("team", "sort")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := services.Connect(t.Context(), all[0]); err != nil {
			t.Fatal(err)
		}
		s.clock.Step(c.after)
		c.change(s)
		if _, err := services.Connect(t.Context(), all[0]); (err == nil) != c.isTaken || (len(s.dialed) == 2) != c.isTaken {
			t.Errorf("%s: %v is dialled, %v", name, s.dialed, err)
		}
	}
}

func TestFind_SaysWhyThereIsNone(t *testing.T) {
	s := newSite()
	if _, err := s.services().Find("team", "other"); !errors.Is(err, serve.ErrMissing) {
		t.Errorf("another name: %v", err)
	}
	if _, err := s.services().Find("other", "sort"); !errors.Is(err, serve.ErrMissing) {
		t.Errorf("another namespace: %v", err)
	}
	s.service.Spec.ServeConfig.Raw = []byte(`{"http_options": {"ssl_certfile": "/tls.crt"}}`)
	if _, err := s.services().Find("team", "sort"); !errors.Is(err, serve.ErrHTTPS) {
		t.Errorf("HTTPS: %v", err)
	}
	for name, c := range map[string]struct {
		change     func(service *v1beta1.ClusterService)
		code, says string
	}{
		"InvalidSpec": {func(s *v1beta1.ClusterService) { s.Spec.ServeConfig.Raw = []byte(`{"http_options": 1}`) }, "InvalidSpec", "serveConfig"},
		"foreign":     {func(s *v1beta1.ClusterService) { s.Spec.ManagedBy = "kueue.x-k8s.io/multikueue" }, "ManagedElsewhere", "multikueue"},
		"suspended": {func(s *v1beta1.ClusterService) {
			s.Spec.Suspend = new(true)
			s.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSuspended, Status: metav1.ConditionTrue, LastTransitionTime: metav1.Unix(0, 0)}}
		}, "SuspendedBySpec", "since 1970-01-01T00:00:00Z"},
		"not ready": {func(s *v1beta1.ClusterService) {
			s.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: "ClusterSuspended", Message: "cluster c is suspended"}}
		}, "ClusterSuspended", "cluster c is suspended"},
		"of no known reason": {func(s *v1beta1.ClusterService) {
			s.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Evil", Message: "<script>"}}
		}, "NoEndpoints", "no pod that takes requests"},
	} {
		s := newSite()
		s.pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
		c.change(s.service)
		var u *heads.Unavailable
		if _, err := s.services().Find("team", "sort"); !errors.As(err, &u) || u.Code != c.code || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "<") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
