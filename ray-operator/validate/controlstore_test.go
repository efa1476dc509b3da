package validate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/admission/corpus"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// stores are a good control store of each kind, with all of which the head's pod gets more.
func stores() map[string]*v1beta1.ControlStore {
	secret := func(key string) *v1beta1.SecretKey { return &v1beta1.SecretKey{Name: "redis", Key: key} }
	return map[string]*v1beta1.ControlStore{
		"redis": {Redis: &v1beta1.GivenRedis{
			Address: "rediss://redis:6379", UsernameSecret: secret("user"), PasswordSecret: secret("password"),
			TLS: &v1beta1.RedisTLS{CASecret: secret("ca"), CertificateSecret: secret("certificate"), KeySecret: secret("key")},
		}},
		"managed":  {ManagedRedis: &v1beta1.ManagedRedis{}},
		"embedded": {Embedded: &v1beta1.EmbeddedStore{}},
	}
}

// TestRulesKnowWhatAStoreTakes: whatever a head gets for its store is refused in the head's
// template with a store of that kind.
func TestRulesKnowWhatAStoreTakes(t *testing.T) {
	for kind, store := range stores() {
		cluster := corpus.Good()
		cluster.Spec.ControlStore = store
		if errs := judge(t, "ComputeCluster", cluster); len(errs) > 0 {
			t.Fatalf("%s: %v", kind, errs)
		}
		plain, head := pod.Head(corpus.Good(), 1), pod.Head(cluster, 1)
		was, is := &plain.Spec.Containers[0], &head.Spec.Containers[0]
		more := func(what string, edit func(*corev1.PodTemplateSpec, *corev1.Container)) {
			bad := cluster.DeepCopy()
			bad.Spec.Head.Template = testkit.Template(corev1.Container{Name: v1beta1.ContainerRay})
			edit(bad.Spec.Head.Template, &bad.Spec.Head.Template.Spec.Containers[0])
			if len(judge(t, "ComputeCluster", bad)) == 0 {
				t.Errorf("%s: %s is taken in a head's template", kind, what)
			}
		}
		for _, volume := range head.Spec.Volumes {
			if !slices.ContainsFunc(plain.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume.Name }) {
				more("the volume "+volume.Name, func(t *corev1.PodTemplateSpec, _ *corev1.Container) { t.Spec.Volumes = []corev1.Volume{volume} })
			}
		}
		for _, mount := range is.VolumeMounts {
			if !slices.ContainsFunc(was.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == mount.MountPath }) {
				more("a mount at "+mount.MountPath, func(_ *corev1.PodTemplateSpec, c *corev1.Container) { c.VolumeMounts = []corev1.VolumeMount{mount} })
			}
		}
		for _, variable := range is.Env {
			if naming.OwnsVariable(variable.Name) {
				more("the variable "+variable.Name, func(_ *corev1.PodTemplateSpec, c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: variable.Name}} })
			}
		}
	}
}

// ofStores are the variables by which Ray is told where a head's memory is.
var ofStores = []string{
	"RAY_REDIS_ADDRESS", "RAY_external_storage_namespace", "RAY_gcs_storage", "RAY_gcs_storage_path", "RAY_REDIS_CA_CERT",
	"RAY_REDIS_CA_PATH", "RAY_REDIS_CLIENT_CERT", "RAY_REDIS_CLIENT_KEY", "RAY_REDIS_SERVER_NAME",
}

// TestNobodyMakesAStoreByHand: with a store or without, in defaults, heads, workers and jobs,
// whose variables with a source become those of pods.
func TestNobodyMakesAStoreByHand(t *testing.T) {
	for _, name := range ofStores {
		if !naming.OwnsVariable(name) {
			t.Errorf("%s is not the operator's", name)
		}
		env := []corev1.EnvVar{{Name: name, Value: "a"}}
		ray := testkit.Template(corev1.Container{Name: v1beta1.ContainerRay, Env: env})
		for what, edit := range map[string]func(*v1beta1.ComputeClusterSpec){
			"defaults": func(s *v1beta1.ComputeClusterSpec) { s.PodDefaults = &v1beta1.PodDefaults{Env: env} },
			"a head":   func(s *v1beta1.ComputeClusterSpec) { s.Head.Template = ray },
			"a worker": func(s *v1beta1.ComputeClusterSpec) { s.WorkerGroups[0].Template = ray },
		} {
			for _, store := range []*v1beta1.ControlStore{nil, stores()["redis"]} {
				cluster := corpus.Good()
				cluster.Spec.ControlStore = store
				edit(&cluster.Spec)
				if found := judge(t, "ComputeCluster", cluster); len(found) != 1 || found[0].Remedy != "use controlStore" {
					t.Errorf("%s in %s gives %v, want the word of controlStore", name, what, found)
				}
			}
		}
		job := corpus.GoodJob()
		job.Spec.Env = env
		if len(judge(t, "ClusterJob", job)) == 0 {
			t.Errorf("%s is taken of a job", name)
		}
	}
}

// TestNoRefusalTellsAPassword: an address with a password in it is refused without its words.
func TestNoRefusalTellsAPassword(t *testing.T) {
	cluster := corpus.Good()
	cluster.Spec.ControlStore = &v1beta1.ControlStore{Redis: &v1beta1.GivenRedis{Address: "redis://ana:hunter2@redis:6379"}}
	found := judge(t, "ComputeCluster", cluster)
	if len(found) == 0 || strings.Contains(fmt.Sprint(found, found.ErrorList()), "hunter2") {
		t.Errorf("the refusal is %v", found)
	}
}

// TestAJobsStoreStays: a suspended job may change its cluster, but not what the schema fixes,
// and what the API server fills in is no change of a job that runs.
func TestAJobsStoreStays(t *testing.T) {
	job := func(store *v1beta1.ControlStore, suspend bool) *v1beta1.ClusterJob {
		j := corpus.GoodJob()
		j.Spec.ClusterRef, j.Spec.Suspend = nil, new(suspend)
		j.Spec.ClusterTemplate = &v1beta1.ClusterTemplate{Spec: corpus.Good().Spec}
		j.Spec.ClusterTemplate.Spec.ControlStore = store
		return j
	}
	storage := resource.MustParse("1024Mi")
	filled := &v1beta1.ControlStore{ManagedRedis: &v1beta1.ManagedRedis{Storage: &storage, Image: "redis:7"}}
	resized := &v1beta1.ControlStore{ManagedRedis: &v1beta1.ManagedRedis{Image: "redis:8"}}
	for _, c := range []struct {
		name          string
		before, after *v1beta1.ControlStore
		suspend, want bool
	}{
		{"what the API server fills in", stores()["managed"], filled, false, true},
		{"another image of a job that runs", filled, resized, false, false},
		{"another image of a suspended job", filled, resized, true, true},
		{"another kind of a suspended job", filled, stores()["embedded"], true, false},
		{"no store of a suspended job", filled, nil, true, false},
	} {
		if errs := judgeChange(t, "ClusterJob", job(c.before, c.suspend), job(c.after, c.suspend)); (len(errs) == 0) != c.want {
			t.Errorf("%s: %v, want it good: %v", c.name, errs, c.want)
		}
	}
}
