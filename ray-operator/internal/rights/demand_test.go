package rights_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/rights"
)

// written returns demands as "NEED FIELD NAME", with "; " between them.
func written(demands []rights.Demand) string {
	all := make([]string, len(demands))
	for i, d := range demands {
		all[i] = strings.TrimSpace(fmt.Sprint(d.Need.ID, " ", d.Field, " ", d.Name))
	}
	return strings.Join(all, "; ")
}

// ofSpec returns what a cluster needs. A job, a schedule and a service that make such a cluster must need the same of its
// fields.
func ofSpec(t *testing.T, spec *v1beta1.ComputeClusterSpec) string {
	t.Helper()
	return ofSpecAt(t, spec, rights.ChartSite())
}

// ofSpecAt does the same where the chart has other values.
func ofSpecAt(t *testing.T, spec *v1beta1.ComputeClusterSpec, site rights.Site) string {
	t.Helper()
	cluster := written(rights.OfCluster(&v1beta1.ComputeCluster{Spec: *spec}, site))
	template := &v1beta1.ClusterTemplate{Spec: *spec}
	want := strings.ReplaceAll(cluster, " spec.", " spec.clusterTemplate.spec.")
	job := &v1beta1.ClusterJob{Spec: v1beta1.ClusterJobSpec{ClusterTemplate: template}}
	if have := written(rights.OfJob(job, site)); have != want {
		t.Errorf("a job needs %q of its cluster, want %q", have, want)
	}
	service := &v1beta1.ClusterService{Spec: v1beta1.ClusterServiceSpec{ClusterTemplate: template}}
	if have := written(rights.OfService(service, site)); have != want {
		t.Errorf("a service needs %q of its cluster, want %q", have, want)
	}
	schedule := &v1beta1.ClusterJobSchedule{}
	schedule.Spec.JobTemplate.Spec.ClusterTemplate = template
	want = strings.ReplaceAll(want, " spec.", " spec.jobTemplate.spec.")
	if have := written(rights.OfSchedule(schedule, site)); have != want {
		t.Errorf("a schedule needs %q of its jobs' cluster, want %q", have, want)
	}
	return cluster
}

// podNeeds checks what a pod template needs, in the head and in a group. In what is wanted, NODE stands for the path of
// either, and POD for that of the pod's spec.
func podNeeds(t *testing.T, edit func(*pod), want string) {
	t.Helper()
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers:     []corev1.Container{{Name: v1beta1.ContainerRay}, {Name: "side"}},
		InitContainers: []corev1.Container{{Name: "init"}},
	}}
	edit(&template.Spec)
	for path, spec := range map[string]*v1beta1.ComputeClusterSpec{
		"spec.head":            {Head: v1beta1.HeadSpec{NodeSpec: v1beta1.NodeSpec{Template: template}}},
		"spec.workerGroups[1]": {WorkerGroups: []v1beta1.WorkerGroup{{}, {NodeSpec: v1beta1.NodeSpec{Template: template}}}},
	} {
		want := strings.NewReplacer("POD", path+".template.spec", "NODE", path).Replace(want)
		if have := ofSpec(t, spec); have != want {
			t.Errorf("needs %q, want %q", have, want)
		}
	}
}

// containerNeeds does the same for a container, wherever it is in the pod.
func containerNeeds(t *testing.T, edit func(*container), want string) {
	t.Helper()
	for _, at := range []func(*pod) *container{
		func(p *pod) *container { return &p.Containers[0] },
		func(p *pod) *container { return &p.Containers[1] },
		func(p *pod) *container { return &p.InitContainers[0] },
	} {
		podNeeds(t, func(p *pod) { edit(at(p)) }, want)
	}
}

// Specs are as empty as Go can make them: nothing in them is named, and nothing is opened.
func TestDemands_AreNoneOfEmptySpecs(t *testing.T) {
	t.Parallel()
	empty := map[string][]rights.Demand{
		"a cluster": rights.OfCluster(&v1beta1.ComputeCluster{}, rights.ChartSite()),
		"a job":     rights.OfJob(&v1beta1.ClusterJob{}, rights.ChartSite()),
		"a service": rights.OfService(&v1beta1.ClusterService{}, rights.ChartSite()),
		"a service with a Service": rights.OfService(&v1beta1.ClusterService{Spec: v1beta1.ClusterServiceSpec{
			Service: &v1beta1.ServeService{}, UpgradeStrategy: &v1beta1.ServiceUpgradeStrategy{}, ClusterRef: &v1beta1.ClusterReference{},
		}}, rights.ChartSite()),
	}
	for name, have := range empty {
		if len(have) > 0 {
			t.Errorf("%s needs %s", name, written(have))
		}
	}
	podNeeds(t, func(*pod) {}, "")
	filled := &v1beta1.ComputeClusterSpec{
		PodDefaults: &v1beta1.PodDefaults{}, Authentication: &v1beta1.Authentication{}, Network: &v1beta1.Network{},
		ControlStore: &v1beta1.ControlStore{},
		Head:         v1beta1.HeadSpec{Service: &v1beta1.HeadServiceSpec{}},
		WorkerGroups: []v1beta1.WorkerGroup{{VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{}}}},
	}
	if have := ofSpec(t, filled); have != "" {
		t.Errorf("a cluster of empty parts needs %s", have)
	}
}

// One name is asked for once, at the field that has it first. A need without names is asked for once.
func TestDemands_NameEachObjectOnce(t *testing.T) {
	t.Parallel()
	podNeeds(t, func(p *pod) {
		p.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "a"}, {Name: "b"}, {Name: "a"}}
		p.Volumes = []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "b"}}},
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "c"}}},
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("a")}}},
		}
	}, "secret POD.imagePullSecrets a; secret POD.imagePullSecrets b; secret POD.volumes c; config-map POD.volumes a")
	hosts := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{HostNetwork: true}}
	spec := &v1beta1.ComputeClusterSpec{WorkerGroups: make([]v1beta1.WorkerGroup, 2)}
	for i := range spec.WorkerGroups {
		spec.WorkerGroups[i].Template = hosts
	}
	if have, want := ofSpec(t, spec), "host spec.workerGroups[0].template.spec"; have != want {
		t.Errorf("two groups need %q, want %q", have, want)
	}
}

func named(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
