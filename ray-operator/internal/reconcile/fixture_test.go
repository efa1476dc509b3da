package reconcile_test

import (
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
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
		"made of something else": {func(s *appsv1.StatefulSet) { s.Annotations[v1beta1.AnnotationApplied] = "x" }, false},
	} {
		wanted := reconcile.Marked(fixture())
		seen, _ := wanted.DeepCopyObject().(*appsv1.StatefulSet)
		test.change(seen)
		if have := reconcile.Holds(seen, wanted); have != test.want {
			t.Errorf("%s: %v", name, have)
		}
	}
}

// TestFix_LeavesOthersObjects: what is not the owner's, or is yet to go, is neither mended nor removed.
func TestFix_LeavesOthersObjects(t *testing.T) {
	there := reconcile.Marked(fixture())
	edited := fixture()
	edited.Labels["app"] = "other"
	for name, c := range map[string]struct {
		presence reconcile.Presence
		wanted   client.Object
		want     string
	}{
		"none is made":                      {reconcile.Absent, fixture(), "create Set"},
		"none is wanted":                    {reconcile.Absent, nil, ""},
		"one that holds is left":            {reconcile.Ours, fixture(), ""},
		"one that differs is mended":        {reconcile.Ours, edited, "mend Set"},
		"one that is not wanted is removed": {reconcile.Ours, nil, "delete Set"},
		"another's is left":                 {reconcile.Foreign, edited, ""},
		"another's stays":                   {reconcile.Foreign, nil, ""},
		"one that goes is waited for":       {reconcile.Terminating, edited, ""},
		"one that goes is left to go":       {reconcile.Terminating, nil, ""},
	} {
		standing := reconcile.Fixture{Presence: c.presence, Object: there}
		have := ""
		for _, fixing := range reconcile.Fix("Set", standing, c.wanted, reconcile.Holds) {
			have += fixing.String()
			if (fixing.Act == reconcile.Make) != (fixing.Seen == nil) || (fixing.Act == reconcile.Remove) != (fixing.Wanted == nil) {
				t.Errorf("%s: %s with %v, %v", name, fixing, fixing.Seen, fixing.Wanted)
			}
		}
		if have != c.want {
			t.Errorf("%s: %q, want %q", name, have, c.want)
		}
	}
}

// TestFix_KeepsTheSecondIPFamily: the API server adds it under a dual-stack policy, and refuses to take it away.
func TestFix_KeepsTheSecondIPFamily(t *testing.T) {
	service := func(families ...corev1.IPFamily) *corev1.Service {
		return &corev1.Service{Spec: corev1.ServiceSpec{IPFamilies: families, IPFamilyPolicy: new(corev1.IPFamilyPolicyPreferDualStack)}}
	}
	there := reconcile.Marked(service(corev1.IPv4Protocol)).(*corev1.Service)
	there.Spec.IPFamilies = append(there.Spec.IPFamilies, corev1.IPv6Protocol)
	standing := reconcile.Fixture{Presence: reconcile.Ours, Object: there}
	if have := reconcile.Fix("Service", standing, service(corev1.IPv4Protocol), reconcile.Holds); len(have) > 0 {
		t.Errorf("%v", have)
	}
	edited := service(corev1.IPv4Protocol)
	edited.Labels = map[string]string{"team": "a"}
	have := reconcile.Fix("Service", standing, edited, reconcile.Holds)
	if len(have) != 1 || len(have[0].Wanted.(*corev1.Service).Spec.IPFamilies) != 2 {
		t.Errorf("%v", have)
	}
}

func TestPresenceOf_IsByUID(t *testing.T) {
	owner := metav1.NewControllerRef(&v1beta1.ClusterService{ObjectMeta: metav1.ObjectMeta{Name: "text", UID: "now"}}, v1beta1.GroupVersion.WithKind("ClusterService"))
	former, other, away := *owner, *owner, errors.New("no answer")
	former.UID, other.UID, other.Name = "then", "else", "chat"
	forged := *owner
	forged.APIVersion = "v1"
	for name, c := range map[string]struct {
		err    error
		owner  *metav1.OwnerReference
		isGone bool
		want   reconcile.Presence
	}{
		"not found":              {err: apierrors.NewNotFound(schema.GroupResource{}, "text"), want: reconcile.Absent},
		"not read":               {err: away, want: reconcile.Absent},
		"the owner's":            {owner: owner, want: reconcile.Ours},
		"the owner's, deleted":   {owner: owner, isGone: true, want: reconcile.Terminating},
		"a former owner's":       {owner: &former, want: reconcile.Terminating},
		"another owner's":        {owner: &other, want: reconcile.Foreign},
		"another group's":        {owner: &forged, want: reconcile.Foreign},
		"nobody's":               {want: reconcile.Foreign},
		"another's, and deleted": {owner: &other, isGone: true, want: reconcile.Foreign},
	} {
		set := fixture()
		if c.owner != nil {
			set.OwnerReferences = []metav1.OwnerReference{*c.owner}
		}
		if c.isGone {
			set.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		have, err := reconcile.PresenceOf(c.err, set, owner)
		if have != c.want || (err != nil) != errors.Is(c.err, away) {
			t.Errorf("%s: %d, %v, want %d", name, have, err, c.want)
		}
	}
}
