package service

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestStrandedPods_AreLeftBehind: a former cluster goes without them, and an event says what to do.
func TestStrandedPods_AreLeftBehind(t *testing.T) {
	for stranded := range 4 {
		s := serves(t)
		former := s.runs(2, false) // a head and two workers
		s.seen.Record.Clusters, s.seen.Record.Retiring = 2, []Retired{{Cluster: 2, At: now - long, Unused: true}}
		former.Stranded, former.StrandsIn = former.Pods[:stranded], time.Second
		for _, pod := range former.Pods {
			pod.Spec.NodeName = "old"
		}
		plan := s.decide()
		told := 0
		for _, event := range plan.Events {
			if strings.Contains(event.Finding.Text, "kubectl taint node old node.kubernetes.io/out-of-service=nodeshutdown:NoExecute") {
				told++
			}
		}
		all := stranded == len(former.Pods)
		if goes := len(plan.Discard) == 1; goes != all || (told == stranded) != (all || stranded == 0) || !all && plan.Wake != time.Second {
			t.Errorf("%d of %d are stranded: %s, %d events, wake %s", stranded, len(former.Pods), &plan, told, plan.Wake)
		}
	}
}

// TestStrandedPods_KeepNoSuspension, which one that may yet end does.
func TestStrandedPods_KeepNoSuspension(t *testing.T) {
	for _, all := range []bool{false, true} {
		s := serves(t)
		s.service.Spec.Suspend = new(true)
		s.seen.Record.Drained = now - long
		cluster := s.runs(1, false)
		if all {
			cluster.Stranded = append([]*corev1.Pod(nil), cluster.Pods...)
		}
		if plan := s.decide(); (plan.Phase == "Suspended") != all {
			t.Errorf("all are stranded: %t; the service is %s", all, plan.Phase)
		}
	}
}
