package service

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/services"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/upgrade"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// now is the time of all decisions, in Unix seconds.
const now = 10_000

func at() time.Time { return time.Unix(now, 0) }

func number(n int32) *int32 { return &n }

// serveConfig asks for one application with an import path.
func serveConfig(path string) runtime.RawExtension {
	return runtime.RawExtension{Raw: fmt.Appendf(nil, `{"applications":[{"name":"text","route_prefix":"/text","import_path":%q}]}`, path)}
}

// text is a service with a cluster of its own with two workers.
func text() *v1beta1.ClusterService {
	cpu := v1beta1.WorkerGroup{Name: "cpu", Replicas: number(2)}
	return &v1beta1.ClusterService{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "text", UID: "text-uid", Generation: 1, Finalizers: []string{v1beta1.FinalizerServe}},
		Spec: v1beta1.ClusterServiceSpec{
			ServeConfig: serveConfig("app:v1"),
			ClusterTemplate: &v1beta1.ClusterTemplate{Spec: v1beta1.ComputeClusterSpec{
				RayVersion: "2.60.0", WorkerGroups: []v1beta1.WorkerGroup{cpu},
			}},
		},
	}
}

// situation is a service in a world made by hand.
type situation struct {
	service *v1beta1.ClusterService
	seen    Seen
}

// serves is a situation in which version 1 serves on cluster 1.
func serves(t *testing.T) *situation {
	t.Helper()
	s := &situation{service: text(), seen: Seen{
		Revisions: map[string]Revision{}, Clusters: map[int]*Cluster{}, Standing: map[string]reconcile.Fixture{},
	}}
	revision := s.keep(t)
	s.seen.Record = Record{Version: recordVersion, Clusters: 1, Active: Version{Cluster: 1, Pods: revision.Pods, Revision: revision.ID, Good: revision.ID, At: now - 1000, Healthy: now - 900}}
	s.runs(1, true)
	s.takes(&s.seen.Record.Active)
	return s
}

// shares is a situation in which version 1 serves on a cluster that is not the service's own.
func shares(t *testing.T) *situation {
	t.Helper()
	s := serves(t)
	cluster := s.seen.Clusters[1]
	s.service.Spec.ClusterRef, s.service.Spec.ClusterTemplate = &v1beta1.ClusterReference{Name: cluster.Name}, nil
	s.seen.Clusters, s.seen.Revisions = map[int]*Cluster{0: cluster}, map[string]Revision{}
	revision := s.keep(t)
	active := &s.seen.Record.Active
	active.Cluster, active.Pods, active.Revision, active.Good = 0, "", revision.ID, revision.ID
	s.seen.Record.Clusters = 0
	s.seen.Record.noteApplication("text")
	s.takes(active)
	return s
}

// keep keeps the revision that the spec asks for now.
func (s *situation) keep(t *testing.T) Revision {
	t.Helper()
	revision, err := revisionOf(s.service)
	if err != nil {
		t.Fatal(err)
	}
	revision.Number = int64(len(s.seen.Revisions) + 1)
	object := revision.toObject(s.service, revision.Number)
	kept, err := parseRevision(object)
	if err != nil {
		t.Fatal(err)
	}
	s.seen.Revisions[kept.ID] = kept
	return kept
}

// runs has a cluster with a head and two workers that answer, with requests or without.
func (s *situation) runs(cluster int, open bool) *Cluster {
	name := naming.ServiceCluster("text", "text-uid", cluster)
	made := &Cluster{ComputeCluster: &v1beta1.ComputeCluster{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name), Annotations: map[string]string{v1beta1.AnnotationRevisionCluster: strconv.Itoa(cluster)},
			Labels: map[string]string{v1beta1.LabelService: "text"},
		},
		Spec: *s.service.Spec.ClusterTemplate.Spec.DeepCopy(),
	}}
	made.Answer = services.Answer{At: at(), Probes: map[services.Probe]services.Reply{}, Serving: headclient.Serving{
		Running: true, Applications: map[string]headclient.Application{"text": {
			Name: "text", State: headclient.ApplicationRunning, Declarative: true, Deployments: []headclient.Deployment{{Name: "D", Wanted: 2, Running: 2}},
		}},
	}}
	made.Heard = true
	for i, role := range []string{v1beta1.RoleHead, v1beta1.RoleWorker, v1beta1.RoleWorker} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: fmt.Sprintf("%s-%d", name, i), UID: types.UID(fmt.Sprintf("%s-%d", name, i)),
				Labels: map[string]string{v1beta1.LabelCluster: name, v1beta1.LabelRole: role, v1beta1.LabelEpoch: "1"},
			},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.0.%d.%d", cluster, i), Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		}
		if open && role == v1beta1.RoleWorker {
			pod.Labels[naming.ServeLabel("text")] = v1beta1.ServeOn
		}
		made.addPod(pod)
		made.Answer.Serving.Targets = append(made.Answer.Serving.Targets, headclient.Target{Protocol: "HTTP", Instance: string(pod.UID), IP: pod.Status.PodIP, Port: 8000})
		made.answers(pod, true)
	}
	s.seen.Clusters[cluster] = made
	return made
}

// answers has the proxy of a pod answer or fail, as often as is believed.
func (c *Cluster) answers(pod *corev1.Pod, ok bool) {
	probe := services.Probe{Pod: pod.UID, Address: address(pod, 8000), Path: "/-/healthz"}
	c.Answer.Probes[probe] = services.Reply{OK: ok, Times: failing, Why: "status 500"}
}

// takes has a version's head have taken what is asked of it.
func (s *situation) takes(version *Version) {
	cluster := s.seen.Clusters[version.Cluster]
	version.Taken, version.Took, version.Head = s.read().stateOf(*version).digest(), version.Revision, string(cluster.Head.UID)
	cluster.Answer.Taken = version.Taken
}

// upgrades is a situation in which version 2 is on its way on cluster 2.
func upgrades(t *testing.T, edit func(*v1beta1.ClusterServiceSpec)) *situation {
	t.Helper()
	s := serves(t)
	s.upgrade(t, edit)
	return s
}

// turns has version 1 be what the spec asks for after an edit.
func (s *situation) turns(t *testing.T, edit func(*v1beta1.ClusterServiceSpec)) {
	t.Helper()
	edit(&s.service.Spec)
	revision, active := s.keep(t), &s.seen.Record.Active
	active.Pods, active.Revision, active.Good = revision.Pods, revision.ID, revision.ID
	s.takes(active)
}

// upgrade begins one to version 2 on cluster 2.
func (s *situation) upgrade(t *testing.T, edit func(*v1beta1.ClusterServiceSpec)) {
	t.Helper()
	s.service.Spec.ClusterTemplate.Spec.Image = "ray:new"
	if edit != nil {
		edit(&s.service.Spec)
	}
	revision := s.keep(t)
	s.seen.Record.Clusters, s.seen.Record.Began = 2, now-100
	s.seen.Record.Candidate = &Version{Cluster: 2, Pods: revision.Pods, Revision: revision.ID, At: now - 100}
	s.seen.Record.Shift = upgrade.Begin(termsOf(s.service), time.Unix(now-100, 0))
	s.runs(2, false)
	s.takes(s.seen.Record.Candidate)
	s.takes(&s.seen.Record.Active)
}

// read returns what the stages read.
func (s *situation) read() view {
	s.seen.Target, s.seen.TargetError = revisionOf(s.service)
	return view{service: s.service, seen: &s.seen, now: at(), record: s.seen.Record, revisions: revisions{known: s.seen.Revisions}}
}

// proxies are those that its stages ask.
func (s *situation) proxies() proxies {
	v := s.read()
	return proxiesOf(v, v.states())
}

// advanced is what route takes of it, with versions of some health.
func (s *situation) advanced(versions assessment) advanced {
	return newAdvanced(s.read(), decision{}, versions)
}

// provisions is what provides for it, with versions of some health.
func (s *situation) provisions(versions assessment) *provisioner {
	return &provisioner{routed: routed{advanced: s.advanced(versions)}, closing: map[string]headclient.Closing{}}
}

func (s *situation) decide() Plan { return s.decideAt(at()) }

func (s *situation) decideAt(now time.Time) Plan {
	s.seen.Target, s.seen.TargetError = revisionOf(s.service)
	return Decide(s.service, s.seen, desired.Site{}, now)
}
