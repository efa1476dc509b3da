package service

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// asleep has Serve run nothing on cluster 1, so that it names the head's proxy alone.
func (s *situation) asleep() *Cluster {
	c := s.seen.Clusters[1]
	s.says(1, "HEALTHY", "DOWNSCALE_COMPLETED", 0, 0)
	c.Answer.Serving.Targets = c.Answer.Serving.Targets[:1]
	for _, pod := range c.Pods[1:] {
		c.answers(pod, false)
	}
	return c
}

// opened has requests led to some pods and to no other.
func (c *Cluster) opened(pods ...*corev1.Pod) {
	for _, pod := range c.Pods {
		delete(pod.Labels, naming.ServeLabel("text"))
		if slices.Contains(pods, pod) {
			pod.Labels[naming.ServeLabel("text")] = v1beta1.ServeOn
		}
	}
}

func names(pods []*corev1.Pod) string {
	var all []string
	for _, pod := range pods {
		all = append(all, pod.Name[strings.LastIndexByte(pod.Name, '-')+1:])
	}
	return strings.Join(all, " ")
}

// TestSleep_HeadTakesTheRequests from when Serve has no proxy on a worker until one answers there again.
func TestSleep_HeadTakesTheRequests(t *testing.T) {
	no := false
	for name, c := range map[string]struct {
		is          func(*situation, *Cluster)
		open, close string
		ready       bool
	}{
		"the last replica has gone":  {func(_ *situation, _ *Cluster) {}, "0", "1 2", true},
		"the head was not asked yet": {func(_ *situation, c *Cluster) { clear(c.Answer.Probes) }, "", "", true},
		"the workers have gone too":  {func(_ *situation, c *Cluster) { c.Pods = c.Pods[:1] }, "0", "", true},
		"a first version":            {func(s *situation, c *Cluster) { c.opened(); s.seen.Record.Active.Good = "" }, "0", "", true},
		"a request has called one":   {func(s *situation, c *Cluster) { c.opened(c.Head); s.says(1, "UPSCALING", "AUTOSCALING", 0, 1) }, "", "", true},
		"its worker does not answer": {func(s *situation, c *Cluster) {
			c.opened(c.Head)
			s.says(1, "UPSCALING", "AUTOSCALING", 0, 1)
			c.lists1()
		}, "", "", true},
		"it runs, its worker does not": {func(s *situation, c *Cluster) {
			c.opened(c.Head)
			s.says(1, "HEALTHY", "UPSCALE_COMPLETED", 1, 1)
			c.lists1()
		}, "", "", true},
		"its worker answers": {func(s *situation, c *Cluster) {
			c.opened(c.Head)
			s.says(1, "HEALTHY", "UPSCALE_COMPLETED", 1, 1)
			c.lists1()
			c.answers(c.Pods[1], true)
		}, "1", "0", true},
		"a replica that dies is no sleep": {func(s *situation, c *Cluster) {
			s.says(1, "UNHEALTHY", "HEALTH_CHECK_FAILED", 0, 1)
			one := c.Answer.Serving.Applications["text"]
			one.State = headclient.ApplicationUnhealthy
			c.Answer.Serving.Applications["text"] = one
		}, "", "", false},
		"the user keeps it from the head": {func(s *situation, c *Cluster) {
			s.service.Spec.Service = &v1beta1.ServeService{HeadEndpoints: &no}
			c.Pods = c.Pods[:1]
		}, "", "", false},
	} {
		s := serves(t)
		c.is(s, s.asleep())
		plan := s.decide()
		if got := names(plan.Open); got != c.open {
			t.Errorf("%s: requests are led to %q too, want %q; %s", name, got, c.open, plan.Finding.Text)
		}
		if got := names(plan.Close); got != c.close {
			t.Errorf("%s: requests are no more led to %q, want %q", name, got, c.close)
		}
		if bad := warns(plan.Finding); bad == c.ready {
			t.Errorf("%s: %s: %s", name, plan.Finding.Code, plan.Finding.Text)
		}
	}
}

// lists1 has the head name the proxy of the first worker, too.
func (c *Cluster) lists1() {
	c.Answer.Serving.Targets = append(c.Answer.Serving.Targets, headclient.Target{Protocol: "HTTP", Instance: string(c.Pods[1].UID), IP: c.Pods[1].Status.PodIP, Port: 8000})
}

// TestSleep_NothingIsAskedThatWakes: a healthPath is a request to an application.
func TestSleep_NothingIsAskedThatWakes(t *testing.T) {
	for name, c := range map[string]struct {
		least  int
		asleep bool
		want   string
	}{
		"it never sleeps":                 {1, false, "/text/health"},
		"it may":                          {0, false, idlePath},
		"it does by what its code allows": {1, true, idlePath},
	} {
		s := serves(t)
		s.turns(t, func(spec *v1beta1.ClusterServiceSpec) {
			spec.ServeConfig, spec.HealthPath = scaledConfig("app:v1", c.least, 4), "/text/health"
		})
		if c.asleep {
			s.asleep()
		}
		for _, want := range s.decide().Wants {
			for _, probe := range want.Probes {
				if probe.Path != c.want {
					t.Errorf("%s: asked for %s, want %s", name, probe.Path, c.want)
				}
			}
		}
	}
}
