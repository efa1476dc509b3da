package service

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// long is how long the operator was away: longer than any drain.
const long = 1000

// lost are the situations in which an operator has noted that nobody is led to a cluster any more,
// or somebody else has, and was away before it took the labels.
func lost() map[string]func(*testing.T) *situation {
	return map[string]func(*testing.T) *situation{
		"the candidate has all requests": func(t *testing.T) *situation {
			s := upgrades(t, nil)
			s.runs(2, true)
			s.takes(s.seen.Record.Candidate)
			shift := &s.seen.Record.Shift
			shift.Traffic, shift.Proven, shift.At = 100, true, time.Unix(now-long, 0)
			return s
		},
		"the candidate was taken back": func(t *testing.T) *situation {
			s := serves(t)
			s.runs(2, true)
			s.seen.Record.Clusters, s.seen.Record.Retiring = 2, []Retired{{Cluster: 2, At: now - long}}
			return s
		},
		"a cluster is not known": func(t *testing.T) *situation {
			s := serves(t)
			s.runs(2, true)
			s.seen.Record.Clusters = 2
			return s
		},
		"the service is deleted": func(t *testing.T) *situation {
			s := serves(t)
			s.service.DeletionTimestamp = &metav1.Time{Time: time.Unix(now-long, 0)}
			return s
		},
		"the service is suspended": func(t *testing.T) *situation {
			s := serves(t)
			s.service.Spec.Suspend, s.seen.Record.Drained = new(true), now-long
			return s
		},
	}
}

// TestRequestsHaveAllTheTimeThoughTheOperatorWasAway: clusters drain from when nobody is led
// there any more, whatever was noted before.
func TestRequestsHaveAllTheTimeThoughTheOperatorWasAway(t *testing.T) {
	for name, after := range lost() {
		s := after(t)
		first := s.decide()
		if len(first.Close) != 2 || len(first.Change)+len(first.Discard) > 0 || first.Record == nil {
			t.Errorf("%s: at first: %s", name, &first)
			continue
		}
		for _, pod := range first.Close {
			delete(pod.Labels, naming.ServeLabel("text"))
		}
		s.seen.Record = first.Record.clone()
		for wait, over := range map[time.Duration]bool{time.Second: false, 59 * time.Second: false, 61*time.Second + closeFor: true} {
			later := s.decideAt(at().Add(wait))
			if freed := len(later.Change) > 0; freed != over {
				t.Errorf("%s: %s later: %s", name, wait, &later)
			}
		}
	}
}

// TestKeptConnectionsAreClosedOnceNobodyIsLedThere: not while the labels are there that lead others.
func TestKeptConnectionsAreClosedOnceNobodyIsLedThere(t *testing.T) {
	s := lost()["the candidate was taken back"](t)
	s.seen.Record.Retiring[0].At = now
	closes := func(after time.Duration) bool {
		for _, want := range s.decideAt(at().Add(after)).Wants {
			if want.Close.ID != "" {
				return true
			}
		}
		return false
	}
	if closes(31 * time.Second) {
		t.Error("they are closed while others come")
	}
	for _, pod := range s.seen.Clusters[2].Pods {
		delete(pod.Labels, naming.ServeLabel("text"))
	}
	if closes(29*time.Second) || !closes(31*time.Second) {
		t.Error("they are not closed in the second half of the drain")
	}
	long := int32(600)
	s.service.Spec.UpgradeStrategy = &v1beta1.ServiceUpgradeStrategy{DrainSeconds: &long}
	if closes(479*time.Second) || !closes(481*time.Second) {
		t.Error("they are not closed in the last two minutes of a long drain")
	}
}

// TestRetire_LeavesTimeForLastAnswers: a connection is closed with its next answer, also where the job that has it so was
// done after the drain.
func TestRetire_LeavesTimeForLastAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		drain, closed int32 // in seconds, from when the cluster had its last requests
		stays         int32
	}{
		"done in the drain":           {60, 35, 60},
		"done at the end of it":       {60, 58, 68},
		"done after it":               {60, 75, 85},
		"done after a short one":      {12, 20, 26},
		"done after a very short one": {1, 3, 4}, // half a second, and looked at each second
	} {
		s := lost()["the candidate was taken back"](t)
		s.service.Spec.UpgradeStrategy = &v1beta1.ServiceUpgradeStrategy{DrainSeconds: &c.drain}
		s.seen.Record.Retiring[0].At = now
		cluster := s.seen.Clusters[2]
		for _, pod := range cluster.Pods {
			delete(pod.Labels, naming.ServeLabel("text"))
		}
		cluster.Answer.Closed, cluster.Answer.ClosedAt = "heliostat-close-10000", at().Add(time.Duration(c.closed)*time.Second)
		goes := c.closed
		for len(s.decideAt(at().Add(time.Duration(goes)*time.Second)).Change) == 0 && goes < 200 {
			goes++
		}
		if goes != c.stays {
			t.Errorf("%s: the cluster goes after %d s, want %d", name, goes, c.stays)
		}
	}
}

// TestPart: the connections that clients keep to a pod that leaves a cluster which stays are closed,
// once, before its proxy ends; not those to pods that only have no requests for now.
func TestPart(t *testing.T) {
	for _, c := range []struct {
		name   string
		ago    int64
		leaves func(*situation, *Cluster, *corev1.Pod)
		want   string
	}{
		{"it is drained since a moment", 7, drains, ""},
		{"it is drained", 8, drains, "heliostat-close-9992"},
		{"it is drained since long", 25, drains, "heliostat-close-9975"},
		{"Serve has no use for it", 25, unlisted, "heliostat-close-9975"},
		{"it only has no requests for now", 25, func(*situation, *Cluster, *corev1.Pod) {}, ""},
		{"it has requests again", 25, func(_ *situation, c *Cluster, pod *corev1.Pod) {
			drains(nil, c, pod)
			pod.Labels[naming.ServeLabel("text")] = v1beta1.ServeOn
		}, ""},
		{"it is not ready", 25, func(_ *situation, c *Cluster, pod *corev1.Pod) {
			drains(nil, c, pod)
			pod.Status.Conditions = nil
		}, ""},
		{"Serve has not been heard", 25, func(_ *situation, c *Cluster, pod *corev1.Pod) {
			unlisted(nil, c, pod)
			c.Answer.Serving.Running = false
		}, ""},
		{"the cluster is not the service's own", 25, func(s *situation, c *Cluster, pod *corev1.Pod) {
			drains(nil, c, pod)
			s.service.Spec.ClusterRef, s.service.Spec.ClusterTemplate = &v1beta1.ClusterReference{Name: c.Name}, nil
		}, "heliostat-close-9975"},
	} {
		s := upgrades(t, nil)
		cluster := s.seen.Clusters[1]
		pod := cluster.Pods[1]
		delete(pod.Labels, naming.ServeLabel("text"))
		pod.Annotations = map[string]string{v1beta1.AnnotationClosed: time.Unix(now-c.ago, 0).UTC().Format(time.RFC3339)}
		c.leaves(s, cluster, pod)
		v := s.provisions(assessment{})
		v.closeParting()
		if have := v.closing[cluster.Name].ID; have != c.want || c.ago < 8 && v.wake != time.Duration(8-c.ago)*time.Second {
			t.Errorf("%s: it is to close %q, want %q; it looks again after %s", c.name, have, c.want, v.wake)
		}
	}
}

func drains(_ *situation, _ *Cluster, pod *corev1.Pod) {
	pod.Annotations[v1beta1.AnnotationDrain] = "{}"
}

func unlisted(_ *situation, cluster *Cluster, pod *corev1.Pod) {
	cluster.Answer.Serving.Targets = slices.DeleteFunc(cluster.Answer.Serving.Targets, func(target headclient.Target) bool { return target.Instance == string(pod.UID) })
}

// TestParting_EndsChannelsOfLeavingPods: the gRPC servers of pods that stay, or that another service leads to, go on.
func TestParting_EndsChannelsOfLeavingPods(t *testing.T) {
	for name, c := range map[string]struct {
		led  bool
		want []string
	}{"of the pod that leaves": {false, []string{"10.0.1.9"}}, "of none that another service leads to": {true, nil}} {
		s := upgrades(t, nil)
		cluster := s.seen.Clusters[1]
		pod := cluster.Pods[1]
		pod.Status.PodIP = "10.0.1.9"
		delete(pod.Labels, naming.ServeLabel("text"))
		if c.led {
			pod.Labels[naming.ServeLabel("other")] = v1beta1.ServeOn
		}
		pod.Annotations = map[string]string{v1beta1.AnnotationClosed: time.Unix(now-20, 0).UTC().Format(time.RFC3339)}
		drains(s, cluster, pod)
		v := s.provisions(assessment{})
		v.closeParting()
		closing := v.closing[cluster.Name]
		if closing.ID == "" || !slices.Equal(closing.Leaving, c.want) || closing.Grace != drainOf(s.service) {
			t.Errorf("%s: it closes %+v", name, closing)
		}
	}
}

// TestGoing_ClosesConnectionsOfBothVersions: a candidate that has a share of the requests has clients that keep connections.
func TestGoing_ClosesConnectionsOfBothVersions(t *testing.T) {
	s := upgrades(t, nil)
	s.service.DeletionTimestamp = &metav1.Time{Time: time.Unix(now-40, 0)}
	s.seen.Record.Shift.Traffic, s.seen.Record.Shift.Proven = 50, true
	for _, cluster := range s.seen.Clusters {
		for _, pod := range cluster.Pods {
			delete(pod.Labels, naming.ServeLabel("text"))
		}
	}
	closing := map[string]headclient.Closing{}
	for _, want := range s.decide().Wants {
		closing[want.Cluster.Name] = want.Close
	}
	for _, cluster := range s.seen.Clusters {
		if closed := closing[cluster.Name]; closed.ID == "" || len(closed.Leaving) != len(cluster.Pods) {
			t.Errorf("of ComputeCluster %s with %d pods it closes %+v", cluster.Name, len(cluster.Pods), closed)
		}
	}
}

// TestDrain_BeginsWhenNoSliceListsAPod: until then nodes may send it requests, however long ago its label went.
func TestDrain_BeginsWhenNoSliceListsAPod(t *testing.T) {
	s := serves(t)
	s.service.Spec.Suspend, s.seen.Record.Drained = new(true), now-long
	for _, pod := range s.seen.Clusters[1].Pods {
		delete(pod.Labels, naming.ServeLabel("text"))
	}
	s.seen.Listed = map[types.UID]bool{s.seen.Clusters[1].Pods[1].UID: true}
	listed := s.decide()
	if len(listed.Change) > 0 || listed.Record == nil || listed.Record.Drained != now || listed.Wake != prompt {
		t.Fatalf("a pod that is listed is drained: %s, wake %s", &listed, listed.Wake)
	}
	s.seen.Record, s.seen.Listed = listed.Record.clone(), nil
	for wait, over := range map[time.Duration]bool{59 * time.Second: false, 61*time.Second + closeFor: true} {
		if later := s.decideAt(at().Add(wait)); len(later.Change) > 0 != over {
			t.Errorf("%s after none listed it: %s", wait, &later)
		}
	}
}
