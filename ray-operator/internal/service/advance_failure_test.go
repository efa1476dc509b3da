package service

import (
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// TestFailed_IsTriedAgainUnderOtherCircumstances: what bears on the fate of a version, and nothing else.
func TestFailed_IsTriedAgainUnderOtherCircumstances(t *testing.T) {
	for name, c := range map[string]struct {
		edit    func(*v1beta1.ClusterService)
		isAgain bool
	}{
		"the same":      {func(*v1beta1.ClusterService) {}, false},
		"a health path": {func(s *v1beta1.ClusterService) { s.Spec.HealthPath = "/text/health" }, true},
		"a strategy": {func(s *v1beta1.ClusterService) {
			s.Spec.UpgradeStrategy = &v1beta1.ServiceUpgradeStrategy{Type: v1beta1.ServiceUpgradeInPlace}
		}, true},
		"a deadline": {func(s *v1beta1.ClusterService) {
			s.Spec.UpgradeStrategy = &v1beta1.ServiceUpgradeStrategy{HealthyDeadlineSeconds: number(9)}
		}, true},
		"a group's size":      {func(s *v1beta1.ClusterService) { s.Spec.ClusterTemplate.Spec.WorkerGroups[0].Replicas = number(9) }, true},
		"the annotation":      {func(s *v1beta1.ClusterService) { s.Annotations = map[string]string{v1beta1.AnnotationRetry: "1"} }, true},
		"another annotation":  {func(s *v1beta1.ClusterService) { s.Annotations = map[string]string{"team": "1"} }, false},
		"who gets in":         {func(s *v1beta1.ClusterService) { s.Spec.Service = &v1beta1.ServeService{} }, false},
		"a suspension":        {func(s *v1beta1.ClusterService) { s.Spec.Suspend = new(true) }, false},
		"another application": {func(s *v1beta1.ClusterService) { s.Spec.ServeConfig = serveConfig("app:v3") }, true},
	} {
		s := serves(t)
		d := &draft{view: s.read()}
		d.target = Revision{ID: "v2"}
		d.record.noteFailure("v2", circumstances(d.service), &Fault{Reason: "ApplicationFailed"})
		c.edit(s.service)
		d.record.clearFailure(d.target.ID, circumstances(d.service))
		if isAgain := d.record.Failed == ""; isAgain != c.isAgain || isAgain != (d.record.FailedAs == "") || isAgain != (d.record.Fault == nil) {
			t.Errorf("%s: tried again: %t, want %t (%s)", name, isAgain, c.isAgain, d.record.String())
		}
		d.record.noteFailure("v2", circumstances(d.service), nil)
		d.record.Candidate = &Version{}
		d.service.Annotations = map[string]string{v1beta1.AnnotationRetry: "2"}
		if d.record.clearFailure(d.target.ID, circumstances(d.service)); d.record.Failed == "" {
			t.Errorf("%s: it is tried again while it is being taken back", name)
		}
		d.target.ID = "v3"
		if d.record.clearFailure(d.target.ID, circumstances(d.service)); d.record.Failed != "" {
			t.Errorf("%s: another version is held up", name)
		}
	}
}
