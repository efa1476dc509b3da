package rights_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/rights"
)

func secretKey(name string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named(name)}}
}

func configMapKey(name string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named(name)}}
}

func secretVariables(name string) corev1.EnvFromSource {
	return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named(name)}}
}

func configMapVariables(name string) corev1.EnvFromSource {
	return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named(name)}}
}

// environments are the variables of a container, with what they need. ENV stands for the path of what holds them.
var environments = map[string]struct {
	env  []corev1.EnvVar
	from []corev1.EnvFromSource
	want string
}{
	"a value":         {env: []corev1.EnvVar{{Name: "A", Value: "secret"}}},
	"a field":         {env: []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{}}}}},
	"no source":       {env: []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{}}}},
	"a Secret":        {env: []corev1.EnvVar{{ValueFrom: secretKey("s")}}, want: "secret ENV.env s"},
	"no Secret":       {env: []corev1.EnvVar{{ValueFrom: secretKey("")}}},
	"ConfigMap":       {env: []corev1.EnvVar{{ValueFrom: configMapKey("m")}}, want: "config-map ENV.env m"},
	"no map":          {env: []corev1.EnvVar{{ValueFrom: configMapKey("")}}},
	"a second":        {env: []corev1.EnvVar{{Name: "A"}, {ValueFrom: secretKey("s")}}, want: "secret ENV.env s"},
	"all of one":      {from: []corev1.EnvFromSource{secretVariables("s")}, want: "secret ENV.envFrom s"},
	"all of none":     {from: []corev1.EnvFromSource{secretVariables(""), configMapVariables(""), {Prefix: "A"}}},
	"all of a map":    {from: []corev1.EnvFromSource{configMapVariables("m")}, want: "config-map ENV.envFrom m"},
	"all of a second": {from: []corev1.EnvFromSource{{}, secretVariables("s")}, want: "secret ENV.envFrom s"},
	"one of each": {
		env:  []corev1.EnvVar{{ValueFrom: secretKey("a")}, {ValueFrom: configMapKey("b")}},
		from: []corev1.EnvFromSource{secretVariables("c"), configMapVariables("d")},
		want: "secret ENV.env a; secret ENV.envFrom c; config-map ENV.env b; config-map ENV.envFrom d",
	},
}

func TestDemands_AreForWhatVariablesName(t *testing.T) {
	t.Parallel()
	at := func(want, path string) string { return strings.ReplaceAll(want, "ENV", path) }
	for name, c := range environments {
		t.Run("container with "+name, func(t *testing.T) {
			containerNeeds(t, func(container *container) {
				container.Env, container.EnvFrom = c.env, c.from
			}, at(c.want, "POD.containers[*]"))
		})
		t.Run("podDefaults with "+name, func(t *testing.T) {
			spec := &v1beta1.ComputeClusterSpec{PodDefaults: &v1beta1.PodDefaults{Env: c.env, EnvFrom: c.from}}
			if have, want := ofSpec(t, spec), at(c.want, "spec.podDefaults"); have != want {
				t.Errorf("needs %q, want %q", have, want)
			}
		})
		if c.from != nil {
			continue
		}
		t.Run("job with "+name, func(t *testing.T) {
			job := &v1beta1.ClusterJob{Spec: v1beta1.ClusterJobSpec{Env: c.env}}
			if have, want := written(rights.OfJob(job, rights.ChartSite())), at(c.want, "spec"); have != want {
				t.Errorf("needs %q, want %q", have, want)
			}
		})
	}
}

func volume(source corev1.VolumeSource) func(*pod) {
	return func(p *pod) { p.Volumes = append(p.Volumes, corev1.Volume{Name: "v", VolumeSource: source}) }
}

func claimed(claims ...corev1.PodResourceClaim) func(*pod) {
	return func(p *pod) { p.ResourceClaims = claims }
}

// podObjects are pod templates by the objects that they name, with what they need.
var podObjects = map[string]struct {
	edit func(*pod)
	want string
}{
	"a Secret": {volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}), "secret POD.volumes s"},
	"a ConfigMap": {volume(corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("m")},
	}), "config-map POD.volumes m"},
	"a claim": {volume(corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"},
	}), "claim POD.volumes c"},
	"projections": {projection(
		corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: named("a")}},
		corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named("b")}},
		corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: named("c")}},
		corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named("d")}},
	), "secret POD.volumes a; secret POD.volumes c; config-map POD.volumes b; config-map POD.volumes d"},
	"projections of no name": {projection(
		corev1.VolumeProjection{Secret: &corev1.SecretProjection{}},
		corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{}},
	), ""},
	"a pull secret": {func(p *pod) {
		p.ImagePullSecrets = []corev1.LocalObjectReference{named("s")}
	}, "secret POD.imagePullSecrets s"},
	"a pull secret of no name": {func(p *pod) { p.ImagePullSecrets = []corev1.LocalObjectReference{{}} }, ""},
	"a resource claim": {claimed(
		corev1.PodResourceClaim{Name: "a", ResourceClaimName: new("c")},
	), "resource-claim POD.resourceClaims c"},
	"a template of resource claims": {claimed(
		corev1.PodResourceClaim{Name: "a", ResourceClaimTemplateName: new("t")},
	), "resource-claim-template POD.resourceClaims t"},
	"both": {claimed(
		corev1.PodResourceClaim{ResourceClaimTemplateName: new("a")}, corev1.PodResourceClaim{ResourceClaimName: new("a")},
	), "resource-claim POD.resourceClaims a; resource-claim-template POD.resourceClaims a"},
	"resource claims of no name": {claimed(
		corev1.PodResourceClaim{Name: "a"},
		corev1.PodResourceClaim{ResourceClaimName: new(""), ResourceClaimTemplateName: new("")},
	), ""},
}

func TestDemands_AreForObjectsThatPodsName(t *testing.T) {
	t.Parallel()
	for name, c := range podObjects {
		t.Run(name, func(t *testing.T) { podNeeds(t, c.edit, c.want) })
	}
}

// claims are claims that are made, and whether they need a right.
var claims = map[string]struct {
	spec  corev1.PersistentVolumeClaimSpec
	needs bool
}{
	"a volume":     {corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}, true},
	"data":         {corev1.PersistentVolumeClaimSpec{DataSource: &corev1.TypedLocalObjectReference{}}, true},
	"data by ref":  {corev1.PersistentVolumeClaimSpec{DataSourceRef: &corev1.TypedObjectReference{}}, true},
	"a class":      {corev1.PersistentVolumeClaimSpec{StorageClassName: new("fast")}, false},
	"nothing":      {corev1.PersistentVolumeClaimSpec{}, false},
	"other labels": {corev1.PersistentVolumeClaimSpec{Selector: &metav1.LabelSelector{}}, false},
}

// What a claim is made from needs a right, in a pod's volume and in a group, behind a claim that is plain.
func TestDemands_AreForClaimsOfData(t *testing.T) {
	t.Parallel()
	for name, c := range claims {
		t.Run(name, func(t *testing.T) {
			inPod, inGroup := "", ""
			if c.needs {
				inPod, inGroup = "data NODE", "data spec.workerGroups[1]"
			}
			podNeeds(t, func(p *pod) {
				for _, template := range []*corev1.PersistentVolumeClaimTemplate{nil, {}, {Spec: c.spec}} {
					volume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: template}})(p)
				}
			}, inPod)
			spec := &v1beta1.ComputeClusterSpec{WorkerGroups: []v1beta1.WorkerGroup{{}, {
				VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{}, {Spec: c.spec}},
			}}}
			if have := ofSpec(t, spec); have != inGroup {
				t.Errorf("a group needs %q, want %q", have, inGroup)
			}
		})
	}
}

// clusterObjects are clusters by the objects that they name outside of templates, with what they need.
var clusterObjects = map[string]struct {
	spec v1beta1.ComputeClusterSpec
	want string
}{
	"pull secrets": {v1beta1.ComputeClusterSpec{PodDefaults: &v1beta1.PodDefaults{
		ImagePullSecrets: []corev1.LocalObjectReference{{}, named("a"), named("b")},
	}}, "secret spec.podDefaults.imagePullSecrets a; secret spec.podDefaults.imagePullSecrets b"},
	"a priority class": {v1beta1.ComputeClusterSpec{
		PodDefaults: &v1beta1.PodDefaults{PriorityClassName: "high"},
	}, "priority-class spec.podDefaults.priorityClassName high"},
	"a claim of the store": {v1beta1.ComputeClusterSpec{ControlStore: &v1beta1.ControlStore{
		Embedded: &v1beta1.EmbeddedStore{ExistingClaim: "c"},
	}}, "claim spec.controlStore.embedded.existingClaim c"},
	"a store of its own": {v1beta1.ComputeClusterSpec{ControlStore: &v1beta1.ControlStore{
		Embedded: &v1beta1.EmbeddedStore{StorageClassName: new("fast")},
	}}, ""},
	"a Redis": {v1beta1.ComputeClusterSpec{ControlStore: &v1beta1.ControlStore{Redis: &v1beta1.GivenRedis{
		UsernameSecret: key("a"), PasswordSecret: key("b"),
		TLS: &v1beta1.RedisTLS{CASecret: key("c"), CertificateSecret: key("d"), KeySecret: key("e")},
	}}}, "own-secret spec.controlStore.redis.usernameSecret a; own-secret spec.controlStore.redis.passwordSecret b; " +
		"own-secret spec.controlStore.redis.tls.caSecret c; own-secret spec.controlStore.redis.tls.certificateSecret d; " +
		"own-secret spec.controlStore.redis.tls.keySecret e"},
	"a Redis without TLS": {v1beta1.ComputeClusterSpec{ControlStore: &v1beta1.ControlStore{
		Redis: &v1beta1.GivenRedis{PasswordSecret: key("b")},
	}}, "own-secret spec.controlStore.redis.passwordSecret b"},
	"a Redis for all": {v1beta1.ComputeClusterSpec{ControlStore: &v1beta1.ControlStore{
		Redis: &v1beta1.GivenRedis{UsernameSecret: key(""), TLS: &v1beta1.RedisTLS{}},
	}}, ""},
	"a token": {v1beta1.ComputeClusterSpec{
		Authentication: &v1beta1.Authentication{Mode: v1beta1.AuthenticationToken, SecretName: "t"},
	}, "own-secret spec.authentication.secretName t"},
}

func key(name string) *v1beta1.SecretKey { return &v1beta1.SecretKey{Name: name, Key: "k"} }

func TestDemands_AreForObjectsThatClustersName(t *testing.T) {
	t.Parallel()
	for name, c := range clusterObjects {
		t.Run(name, func(t *testing.T) {
			if have := ofSpec(t, &c.spec); have != c.want {
				t.Errorf("needs %q, want %q", have, c.want)
			}
		})
	}
}
