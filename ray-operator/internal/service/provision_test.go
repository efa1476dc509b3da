package service

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/services"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// TestSized: groups have their share of the replicas, rounded up, and get back what they had.
func TestSized(t *testing.T) {
	cluster := &v1beta1.ComputeCluster{Spec: v1beta1.ComputeClusterSpec{WorkerGroups: []v1beta1.WorkerGroup{
		{Name: "a", Replicas: number(10)}, {Name: "b", Replicas: number(3)}, {Name: "c"},
	}}}
	cluster.Annotations = map[string]string{}
	for _, step := range []struct {
		percent int
		want    [3]int32
		noted   bool
	}{
		{100, [3]int32{10, 3, 0}, false}, {25, [3]int32{3, 1, 0}, true}, {50, [3]int32{5, 2, 0}, true}, {0, [3]int32{}, true}, {100, [3]int32{10, 3, 0}, false},
	} {
		sizeGroups(cluster, step.percent)
		for i, want := range step.want {
			if have := or(cluster.Spec.WorkerGroups[i].Replicas, 0); have != want {
				t.Errorf("at %d %% group %d has %d replicas, want %d", step.percent, i, have, want)
			}
		}
		if _, noted := cluster.Annotations[v1beta1.AnnotationFullReplicas]; noted != step.noted {
			t.Errorf("at %d %% the whole is noted: %v", step.percent, noted)
		}
	}
	cluster.Spec.Autoscaling = &v1beta1.Autoscaling{}
	if sizeGroups(cluster, 25); *cluster.Spec.WorkerGroups[0].Replicas != 10 {
		t.Error("a group is sized that an autoscaler sizes")
	}
}

// TestFalse_IsNoChange: a switch that is false says what one says that is not there. So there is nothing to write, no
// other version, and no other circumstances to try a failed version under.
func TestFalse_IsNoChange(t *testing.T) {
	no := new(bool)
	s := serves(t)
	s.service.Spec.ClusterTemplate.Spec.ControlStore = &v1beta1.ControlStore{ManagedRedis: &v1beta1.ManagedRedis{}}
	s.service.Spec.ClusterTemplate.Spec.Head.Service = &v1beta1.HeadServiceSpec{}
	before, err := revisionOf(s.service)
	if err != nil {
		t.Fatal(err)
	}
	under := circumstances(s.service)
	template := &s.service.Spec.ClusterTemplate.Spec
	template.Suspend, template.WorkerGroups[0].Suspend = no, no
	template.Head.Service.Headless, template.ControlStore.ManagedRedis.Retain = no, no
	after, err := revisionOf(s.service)
	if err != nil || after.ID != before.ID || after.Pods != before.Pods {
		t.Errorf("the version is %s with pods %s, want %s with %s: %v", after.ID, after.Pods, before.ID, before.Pods, err)
	}
	if now := circumstances(s.service); now != under {
		t.Errorf("the circumstances are %s, want %s", now, under)
	}
	s = serves(t)
	if changes := s.decide().Change; len(changes) != 0 {
		t.Fatalf("a cluster that is as it must be is changed: %v", changes)
	}
	cluster := s.seen.Clusters[1]
	cluster.Spec.Suspend, cluster.Spec.WorkerGroups[0].Suspend = no, no
	if changes := s.decide().Change; len(changes) != 0 {
		t.Errorf("a cluster is changed for a switch that is false: %v", changes[0].Wanted.Spec)
	}
}

// TestWant_TakenIsOfOneHead: a head that took another's place has no configuration.
func TestWant_TakenIsOfOneHead(t *testing.T) {
	for head, want := range map[types.UID]bool{"the one that took it": true, "another": false} {
		s := serves(t)
		s.seen.Record.Active.Head = "the one that took it"
		s.seen.Clusters[1].Head.UID, s.seen.Clusters[1].Answer.Taken = head, ""
		wants := s.decide().Wants
		if len(wants) != 1 || wants[0].Config == nil || wants[0].Config.Taken != want {
			t.Errorf("head %q: %+v, want the configuration taken: %t", head, wants, want)
		}
	}
}

// TestWant_RetriesWhatNothingCanReplace: what was healthy, and a first version. Another one is taken back.
func TestWant_RetriesWhatNothingCanReplace(t *testing.T) {
	for name, c := range map[string]struct {
		situation *situation
		edit      func(*Record)
		want      []bool // by cluster
	}{
		"healthy before": {situation: serves(t), want: []bool{true}},
		"a first one":    {situation: serves(t), edit: func(r *Record) { r.Active.Good = "" }, want: []bool{true}},
		"a change":       {situation: serves(t), edit: func(r *Record) { r.Active.Good, r.Active.Healthy = "former", now-1 }, want: []bool{false}},
		"a candidate":    {situation: upgrades(t, nil), want: []bool{true, false}},
	} {
		if c.edit != nil {
			c.edit(&c.situation.seen.Record)
		}
		var have []bool
		for _, want := range c.situation.decide().Wants {
			have = append(have, want.Config.Retry)
		}
		if !slices.Equal(have, c.want) {
			t.Errorf("%s: %v, want %v", name, have, c.want)
		}
	}
}

// TestWant_ListensWhereTheHeadIs: proxies listen on IPv6 where the head is reached by it. What was taken stays taken.
func TestWant_ListensWhereTheHeadIs(t *testing.T) {
	for address, want := range map[string]bool{"10.0.0.7": false, "fd00::7": true} {
		s := serves(t)
		s.seen.Clusters[1].Head.Status.PodIP = address
		config := s.decide().Wants[0].Config
		if have := strings.Contains(string(config.Options), `"host":"::"`); have != want || !config.Taken {
			t.Errorf("a head at %s: %+v with %s", address, config, config.Options)
		}
	}
}

// TestDrainLonger: workers behind HAProxy get its time, unless the user says how long.
func TestDrainLonger(t *testing.T) {
	spec := v1beta1.ComputeClusterSpec{WorkerGroups: []v1beta1.WorkerGroup{{Name: "a"}, {Name: "b"}}}
	spec.WorkerGroups[1].Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(7)),
		Containers:                    []corev1.Container{{Name: "other"}, {Name: "ray", Env: []corev1.EnvVar{{Name: "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S", Value: "5"}}}},
	}}
	drainLonger(&spec, true)
	plain, said := spec.WorkerGroups[0].Template.Spec, spec.WorkerGroups[1].Template.Spec
	if *plain.TerminationGracePeriodSeconds != 180 || plain.Containers[0].Name != "ray" || plain.Containers[0].Env[0].Value != "150" {
		t.Errorf("by default: %+v", plain)
	}
	if *said.TerminationGracePeriodSeconds != 7 || len(said.Containers) != 2 || len(said.Containers[1].Env) != 1 {
		t.Errorf("what the user said became %+v", said)
	}
}

// TestDrainLongerByEnvironment: without a word of it in the configuration it is the workers whose
// environment says HAProxy that get its time.
func TestDrainLongerByEnvironment(t *testing.T) {
	says := func(value string) v1beta1.NodeSpec {
		return v1beta1.NodeSpec{Template: &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "ray", Env: []corev1.EnvVar{{Name: "RAY_SERVE_ENABLE_HA_PROXY", Value: value}}},
		}}}}
	}
	spec := v1beta1.ComputeClusterSpec{WorkerGroups: []v1beta1.WorkerGroup{{Name: "a", NodeSpec: says("1")}, {Name: "b", NodeSpec: says("0")}, {Name: "c"}}}
	drainLonger(&spec, false)
	if grace := spec.WorkerGroups[0].Template.Spec.TerminationGracePeriodSeconds; grace == nil || *grace != 180 {
		t.Errorf("with HAProxy the grace period is %v, want 180", grace)
	}
	if b, c := spec.WorkerGroups[1].Template.Spec, spec.WorkerGroups[2].Template; b.TerminationGracePeriodSeconds != nil || c != nil {
		t.Errorf("without HAProxy the templates are %+v and %+v", b, c)
	}
}

// TestInquire_AsksTheDoorWhileItMatters: once the service is ready nobody looks at what its own address answers.
func TestInquire_AsksTheDoorWhileItMatters(t *testing.T) {
	for ready, want := range map[metav1.ConditionStatus]bool{metav1.ConditionTrue: false, metav1.ConditionFalse: true, metav1.ConditionUnknown: true} {
		s := serves(t)
		door := desired.ServeService(s.service, desired.Ports{HTTP: 8000})
		door.Spec.ClusterIP = "10.1.2.3"
		s.seen.Standing[kindService] = reconcile.Fixture{Presence: reconcile.Ours, Object: door}
		s.service.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: ready}}
		asked := slices.ContainsFunc(s.decide().Wants[0].Probes, func(probe services.Probe) bool { return strings.HasPrefix(probe.Address, "10.1.2.3:") })
		if asked != want {
			t.Errorf("Ready is %s: its address is asked: %t", ready, asked)
		}
	}
}

// TestFixHead_LeadsToTheActiveHead of a cluster of the service's own, and stays while there is none.
func TestFixHead_LeadsToTheActiveHead(t *testing.T) {
	for name, c := range map[string]struct {
		given *situation
		edit  func(*situation)
		want  string
	}{
		"the head of the active version": {serves(t), func(*situation) {}, "text-head " + naming.ServiceCluster("text", "text-uid", 1) + " 1"},
		"the next head of it": {serves(t), func(s *situation) {
			s.seen.Clusters[1].Head.Labels[v1beta1.LabelEpoch] = "2"
		}, "text-head " + naming.ServiceCluster("text", "text-uid", 1) + " 2"},
		"no head":             {serves(t), func(s *situation) { s.seen.Clusters[1].Head = nil }, ""},
		"a cluster of others": {shares(t), func(*situation) {}, ""},
	} {
		c.edit(c.given)
		have := ""
		for _, fixing := range c.given.decide().Fixtures {
			if made, is := fixing.Wanted.(*corev1.Service); is && fixing.Kind == kindHead {
				have = made.Name + " " + made.Spec.Selector[v1beta1.LabelCluster] + " " + made.Spec.Selector[v1beta1.LabelEpoch]
			}
		}
		if have != c.want {
			t.Errorf("%s: %q, want %q", name, have, c.want)
		}
	}
}
