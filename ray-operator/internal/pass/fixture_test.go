package pass_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pass"
)

// fixture returns an object with something of each form that a value can have.
func fixture() *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "demo", Labels: map[string]string{"app": "demo"}}}
	set.Spec.Replicas = new(int32(1))
	set.Spec.Template.Spec.EnableServiceLinks = new(false)
	set.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "redis", Args: []string{"--a", "--b"}, Ports: []corev1.ContainerPort{{ContainerPort: 6379}},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(6379)},
		}},
	}}
	return set
}

// TestHolds_UntilWhatWeSetIsChanged: what others add, or choose where we leave it open, is theirs.
func TestHolds_UntilWhatWeSetIsChanged(t *testing.T) {
	redis := func(set *appsv1.StatefulSet) *corev1.Container { return &set.Spec.Template.Spec.Containers[0] }
	for name, test := range map[string]struct {
		change func(*appsv1.StatefulSet)
		want   bool
	}{
		"nothing":                 {func(*appsv1.StatefulSet) {}, true},
		"times of the API server": {func(s *appsv1.StatefulSet) { s.CreationTimestamp = metav1.NewTime(time.Unix(1, 0)) }, true},
		"a status":                {func(s *appsv1.StatefulSet) { s.Status.ReadyReplicas = 1 }, true},
		"a label more":            {func(s *appsv1.StatefulSet) { s.Labels["more"] = "x" }, true},
		"a label else":            {func(s *appsv1.StatefulSet) { s.Labels["app"] = "other" }, false},
		"a label less":            {func(s *appsv1.StatefulSet) { s.Labels = map[string]string{"more": "x"} }, false},
		"a default number":        {func(s *appsv1.StatefulSet) { redis(s).Ports[0].HostPort = 1 }, true},
		"another number":          {func(s *appsv1.StatefulSet) { redis(s).Ports[0].ContainerPort = 1 }, false},
		"a default text":          {func(s *appsv1.StatefulSet) { redis(s).Ports[0].Protocol = corev1.ProtocolTCP }, true},
		"another text":            {func(s *appsv1.StatefulSet) { redis(s).Args[0] = "--c" }, false},
		"an entry more":           {func(s *appsv1.StatefulSet) { redis(s).Args = append(redis(s).Args, "--c") }, true},
		"an entry less":           {func(s *appsv1.StatefulSet) { redis(s).Args = redis(s).Args[:1] }, false},
		"a default pointer":       {func(s *appsv1.StatefulSet) { s.Spec.RevisionHistoryLimit = new(int32(10)) }, true},
		"another pointer":         {func(s *appsv1.StatefulSet) { s.Spec.Replicas = new(int32(0)) }, false},
		"a pointer less":          {func(s *appsv1.StatefulSet) { s.Spec.Replicas = nil }, false},
		"false made true":         {func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.EnableServiceLinks = new(true) }, false},
		"a switch turned on":      {func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.HostNetwork = true }, false},
		"a quantity in other words": {func(s *appsv1.StatefulSet) {
			redis(s).Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1000m")
		}, true},
		"another quantity": {func(s *appsv1.StatefulSet) {
			redis(s).Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
		}, false},
		"a port by name":         {func(s *appsv1.StatefulSet) { redis(s).ReadinessProbe.TCPSocket.Port = intstr.FromString("p") }, false},
		"made of something else": {func(s *appsv1.StatefulSet) { s.Annotations[v1alpha1.AnnotationApplied] = "x" }, false},
	} {
		wanted := pass.Marked(fixture())
		seen, _ := wanted.DeepCopyObject().(*appsv1.StatefulSet)
		test.change(seen)
		if have := pass.Holds(seen, wanted); have != test.want {
			t.Errorf("%s: %v", name, have)
		}
	}
}
