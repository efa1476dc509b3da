package service

import (
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// TestFailed_IsTriedAgainUnderOtherCircumstances: what bears on the fate of a version, and nothing else.
func TestFailed_IsTriedAgainUnderOtherCircumstances(t *testing.T) {
	for name, c := range map[string]struct {
		edit    func(*v1alpha1.ClusterService)
		isAgain bool
	}{
		"the same":      {func(*v1alpha1.ClusterService) {}, false},
		"a health path": {func(s *v1alpha1.ClusterService) { s.Spec.HealthPath = "/text/health" }, true},
		"a strategy": {func(s *v1alpha1.ClusterService) {
			s.Spec.Upgrade = &v1alpha1.Upgrade{Strategy: v1alpha1.UpgradeInPlace}
		}, true},
		"a deadline": {func(s *v1alpha1.ClusterService) {
			s.Spec.Upgrade = &v1alpha1.Upgrade{HealthyDeadlineSeconds: number(9)}
		}, true},
		"a group's size":      {func(s *v1alpha1.ClusterService) { s.Spec.ClusterTemplate.Spec.WorkerGroups[0].Replicas = number(9) }, true},
		"the annotation":      {func(s *v1alpha1.ClusterService) { s.Annotations = map[string]string{v1alpha1.AnnotationRetry: "1"} }, true},
		"another annotation":  {func(s *v1alpha1.ClusterService) { s.Annotations = map[string]string{"team": "1"} }, false},
		"who gets in":         {func(s *v1alpha1.ClusterService) { s.Spec.Service = &v1alpha1.ServeService{} }, false},
		"a suspension":        {func(s *v1alpha1.ClusterService) { s.Spec.Suspend = true }, false},
		"another application": {func(s *v1alpha1.ClusterService) { s.Spec.ServeConfig = serveConfig("app:v3") }, true},
	} {
		s := serves(t)
		p := &planner{service: s.service, record: s.seen.Record, target: Revision{ID: "v2"}}
		p.condemn("v2", &Fault{Reason: "ApplicationFailed"})
		c.edit(s.service)
		p.forgive()
		if isAgain := p.record.Failed == ""; isAgain != c.isAgain || isAgain != (p.record.FailedAs == "") || isAgain != (p.record.Fault == nil) {
			t.Errorf("%s: tried again: %t, want %t (%s)", name, isAgain, c.isAgain, p.record.String())
		}
		p.condemn("v2", nil)
		p.record.Candidate = &Side{}
		p.service.Annotations = map[string]string{v1alpha1.AnnotationRetry: "2"}
		if p.forgive(); p.record.Failed == "" {
			t.Errorf("%s: it is tried again while it is being taken back", name)
		}
		p.target.ID = "v3"
		if p.forgive(); p.record.Failed != "" {
			t.Errorf("%s: another version is held up", name)
		}
	}
}
