package pod_test

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// intentRows are edits of a cluster, and whose intent they change: the group's, the head's.
var intentRows = map[string]struct {
	edit          func(*v1beta1.ComputeCluster)
	changes, head bool
}{
	"replicas": {edit: func(c *v1beta1.ComputeCluster) { *c.Spec.WorkerGroups[0].Replicas = 9 }},
	"another group": {edit: func(c *v1beta1.ComputeCluster) {
		c.Spec.WorkerGroups = append(c.Spec.WorkerGroups, testkit.Group("x", 1))
	}},
	"labels of ours":  {edit: func(c *v1beta1.ComputeCluster) { c.Labels = map[string]string{"a": "b"} }},
	"cluster's image": {edit: func(c *v1beta1.ComputeCluster) { c.Spec.Image = "other" }, head: true},
	"group's image":   {edit: func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Image = "other" }, changes: true},
	"version":         {edit: func(c *v1beta1.ComputeCluster) { c.Spec.RayVersion = "2.59.0" }, changes: true, head: true},
	"pull policy":     {edit: func(c *v1beta1.ComputeCluster) { c.Spec.ImagePullPolicy = "Always" }, changes: true, head: true},
	"size":            {edit: func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Size["cpu"] = resource.MustParse("9") }, changes: true},
	"size, said alike": {edit: func(c *v1beta1.ComputeCluster) {
		c.Spec.WorkerGroups[0].Size["cpu"] = resource.MustParse("3.5")
	}},
	"rayResources":   {edit: func(c *v1beta1.ComputeCluster) { delete(c.Spec.WorkerGroups[0].RayResources, "CPU") }, changes: true},
	"rayStartParams": {edit: func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].RayStartParams["a"] = "b" }, changes: true},
	"labels":         {edit: func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Labels["market"] = "x" }, changes: true},
	"template":       {edit: func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Template = testkit.Template() }, changes: true},
	"podDefaults": {edit: func(c *v1beta1.ComputeCluster) {
		c.Spec.PodDefaults = &v1beta1.PodDefaults{PriorityClassName: "batch"}
	}, changes: true, head: true},
	"empty podDefaults": {edit: func(c *v1beta1.ComputeCluster) {
		c.Spec.PodDefaults = &v1beta1.PodDefaults{Labels: map[string]string{}, Env: []corev1.EnvVar{}}
	}},
	"no authentication": {edit: func(c *v1beta1.ComputeCluster) {
		c.Spec.Authentication = &v1beta1.Authentication{Mode: v1beta1.AuthenticationDisabled}
	}, changes: true, head: true},
	"authentication, said": {edit: func(c *v1beta1.ComputeCluster) {
		c.Spec.Authentication = &v1beta1.Authentication{Mode: v1beta1.AuthenticationToken}
	}},
	"a Secret of the user": {edit: func(c *v1beta1.ComputeCluster) {
		c.Spec.Authentication = &v1beta1.Authentication{SecretName: "mine"}
	}, changes: true, head: true},
	"one host, said": {edit: func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].HostsPerReplica = 1 }},
	"two hosts":      {edit: func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].HostsPerReplica = 2 }, changes: true},
	"claims": {edit: func(c *v1beta1.ComputeCluster) {
		c.Spec.WorkerGroups[0].VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim("data", "1Gi")}
	}, changes: true},
	"a shared volume": {edit: sharing(v1beta1.SharedVolume{Name: "data", MountPath: "/data", ClaimName: "mine"}), changes: true, head: true},
	"no shared volume, said": {edit: func(c *v1beta1.ComputeCluster) {
		c.Spec.SharedVolumes = []v1beta1.SharedVolume{}
	}},
	"what no pod has": {edit: func(c *v1beta1.ComputeCluster) {
		seconds := int32(9)
		c.Spec.WorkerGroups[0].DrainSeconds, c.Spec.WorkerGroups[0].Suspend, c.Spec.Suspend = &seconds, new(true), new(true)
		c.Spec.Network = &v1beta1.Network{Isolation: v1beta1.Disabled}
		c.Spec.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{Type: v1beta1.ClusterUpgradeRecreate}
		c.Spec.IdlePolicy = &v1beta1.IdlePolicy{AfterSeconds: 60}
		c.Spec.Head.Service = &v1beta1.HeadServiceSpec{Type: corev1.ServiceTypeNodePort}
		c.Spec.Head.Ingress = &v1beta1.IngressSpec{Host: "ray.example"}
	}},
	"autoscaling": {edit: func(c *v1beta1.ComputeCluster) { c.Spec.Autoscaling = &v1beta1.Autoscaling{} }, head: true},
	"head's size": {edit: func(c *v1beta1.ComputeCluster) { c.Spec.Head.Size = testkit.Resources("cpu", "2") }, head: true},
}

func TestIntent(t *testing.T) {
	base := func() *v1beta1.ComputeCluster { return testkit.Cluster("demo", sized()) }
	was, wasHead := pod.Intent(base(), "gpu"), pod.Intent(base(), "")
	for name, test := range intentRows {
		t.Run(name, func(t *testing.T) {
			cluster := base()
			test.edit(cluster)
			if changed := pod.Intent(cluster, "gpu") != was; changed != test.changes {
				t.Errorf("the group's intent changed: %v, want %v", changed, test.changes)
			}
			if changed := pod.Intent(cluster, "") != wasHead; changed != test.head {
				t.Errorf("the head's intent changed: %v, want %v", changed, test.head)
			}
		})
	}
	small, large := base(), base()
	small.Spec.WorkerGroups[0].VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim("data", "1Gi")}
	large.Spec.WorkerGroups[0].VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim("data", "2Gi")}
	if pod.Intent(small, "gpu") == pod.Intent(large, "gpu") {
		t.Error("the size of a claim is no part of the intent")
	}
	autoscaledIntents(t)
	sharedIntents(t)
	if intent := pod.Intent(base(), "no-such-group"); intent != "" {
		t.Errorf("a group that is not there has the intent %q", intent)
	}
}

func sharing(volumes ...v1beta1.SharedVolume) func(*v1beta1.ComputeCluster) {
	return func(c *v1beta1.ComputeCluster) { c.Spec.SharedVolumes = volumes }
}

// sharedIntents: of a shared volume, what the pod mounts is part of it.
func sharedIntents(t *testing.T) {
	t.Helper()
	of := func(volumes ...v1beta1.SharedVolume) string {
		cluster := testkit.Cluster("demo", sized())
		sharing(volumes...)(cluster)
		return pod.Intent(cluster, "gpu")
	}
	claim := func(size string) *v1beta1.SharedVolumeClaim {
		return &v1beta1.SharedVolumeClaim{Storage: new(resource.MustParse(size)), Retain: new(size == "2Gi")}
	}
	data, other := v1beta1.SharedVolume{Name: "data", MountPath: "/data", Claim: claim("1Gi")}, v1beta1.SharedVolume{Name: "other", MountPath: "/other", ClaimName: "a"}
	if of(data, other) != of(other, data) {
		t.Error("the order of shared volumes is part of the intent")
	}
	for name, test := range map[string]struct {
		edit    func(*v1beta1.SharedVolume)
		changes bool
	}{
		"size and who keeps it": {func(v *v1beta1.SharedVolume) { v.Claim = claim("2Gi") }, false},
		"readOnly, said":        {func(v *v1beta1.SharedVolume) { v.ReadOnly = new(false) }, false},
		"readOnly":              {func(v *v1beta1.SharedVolume) { v.ReadOnly = new(true) }, true},
		"mountPath":             {func(v *v1beta1.SharedVolume) { v.MountPath = "/mnt" }, true},
		"name":                  {func(v *v1beta1.SharedVolume) { v.Name = "mnt" }, true},
		"claimName":             {func(v *v1beta1.SharedVolume) { v.Claim, v.ClaimName = nil, "a" }, true},
	} {
		edited := data
		test.edit(&edited)
		if changed := of(edited) != of(data); changed != test.changes {
			t.Errorf("%s of a shared volume changes the intent: %v, want %v", name, changed, test.changes)
		}
	}
}

// autoscaledIntents: of autoscaling its size alone is part of a head.
func autoscaledIntents(t *testing.T) {
	t.Helper()
	was := pod.Intent(autoscaled(), "")
	for name, test := range map[string]struct {
		edit    func(*v1beta1.ComputeCluster)
		changes bool
	}{
		"size":          {func(c *v1beta1.ComputeCluster) { c.Spec.Autoscaling.Size = testkit.Resources("cpu", "1") }, true},
		"no size, said": {func(c *v1beta1.ComputeCluster) { c.Spec.Autoscaling.Size = corev1.ResourceList{} }, false},
		"all else": {func(c *v1beta1.ComputeCluster) {
			nine := int32(9)
			c.Spec.Autoscaling.IdleTimeoutSeconds, c.Spec.Autoscaling.MaxNodes, c.Spec.Autoscaling.Pace = &nine, &nine, v1beta1.PaceAggressive
			group := &c.Spec.WorkerGroups[0]
			group.MinReplicas, group.MaxReplicas, group.IdleTimeoutSeconds, group.Priority, group.CapacityTimeoutSeconds = &nine, &nine, &nine, &nine, &nine
		}, false},
	} {
		if changed := pod.Intent(autoscaled(test.edit), "") != was; changed != test.changes {
			t.Errorf("%s of autoscaling changes the head's intent: %v, want %v", name, changed, test.changes)
		}
	}
	if group := testkit.Cluster("demo", testkit.Group("cpu", 1)); pod.Intent(group, "cpu") != pod.Intent(autoscaled(), "cpu") {
		t.Error("autoscaling is part of a worker's intent")
	}
}

// TestIntentIsKept holds the hash of version 1: if it changed, a new operator would
// call every running pod out of date.
func TestIntentIsKept(t *testing.T) {
	if intent := pod.Intent(testkit.Cluster("demo", sized()), "gpu"); intent != keptIntent {
		t.Errorf("intent %s, want %s: give a changed form a new version", intent, keptIntent)
	}
}

const keptIntent = "v1-jkp4hgba6a75n"

// TestIntentsAreKept_WithNewerLibraries: a cluster with something of every type that a pod's template can have keeps its
// hashes, so a library whose types marshal to other JSON calls no pod out of date: another order of fields, a field that is
// written though it is empty, or one that is filled in. The file is that of the first commit of v1beta1, and never written
// again; types that come later get another.
func TestIntentsAreKept_WithNewerLibraries(t *testing.T) {
	text, err := os.ReadFile("testdata/former/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cluster v1beta1.ComputeCluster
	if err := yaml.UnmarshalStrict(text, &cluster); err != nil {
		t.Fatal(err)
	}
	for group, want := range map[string]string{"": "v1-52n46ifqg4wdc", "name": "v1-5t2ja4jkmsp6e"} {
		if intent := pod.Intent(&cluster, group); intent != want {
			t.Errorf("the intent of group %q is %s, want %s", group, intent, want)
		}
	}
}
