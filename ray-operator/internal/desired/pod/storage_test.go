package pod_test

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

func claim(name, size string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: testkit.Resources("storage", size)},
		},
	}
}

// TestAuthentication: the mode is always said, and the token is that of the Secret
// which the spec means.
func TestAuthentication(t *testing.T) {
	for name, test := range map[string]struct {
		given  *v1beta1.Authentication
		mode   string
		secret string
	}{
		"nothing said":   {nil, "token", "demo-token"},
		"said":           {&v1beta1.Authentication{Mode: v1beta1.AuthenticationToken}, "token", "demo-token"},
		"mode left out":  {&v1beta1.Authentication{}, "token", "demo-token"},
		"a Secret":       {&v1beta1.Authentication{Mode: v1beta1.AuthenticationToken, SecretName: "mine"}, "token", "mine"},
		"switched off":   {&v1beta1.Authentication{Mode: v1beta1.AuthenticationDisabled}, "disabled", ""},
		"a Secret alone": {&v1beta1.Authentication{SecretName: "mine"}, "token", "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := testkit.Cluster("demo", testkit.Group("cpu", 1))
			cluster.Spec.Authentication = test.given
			if have := pod.TokenSecret(cluster); have != test.secret || pod.TokenRequired(cluster) != (test.secret != "") {
				t.Errorf("Secret %q, required %v", have, pod.TokenRequired(cluster))
			}
			for _, built := range []*corev1.Pod{pod.Head(cluster, 1), worker(cluster)} {
				env := variables(t, built)
				if env["RAY_AUTH_MODE"] != test.mode {
					t.Errorf("%s: mode %q, want %q", built.Name, env["RAY_AUTH_MODE"], test.mode)
				}
				checkToken(t, built, env["RAY_AUTH_TOKEN_PATH"], test.secret)
			}
		})
	}
}

// checkToken asserts that a pod mounts the one key of a Secret where Ray looks for it,
// or that it mounts nothing.
func checkToken(t *testing.T, built *corev1.Pod, path, secret string) {
	t.Helper()
	volume := slices.IndexFunc(built.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == naming.VolumeToken })
	mount := slices.IndexFunc(ray(t, built).VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == naming.VolumeToken })
	if secret == "" {
		if volume >= 0 || mount >= 0 || path != "" {
			t.Errorf("%s has a token without authentication: %q", built.Name, path)
		}
		return
	}
	if volume < 0 || mount < 0 {
		t.Fatalf("%s has no token", built.Name)
	}
	source, at := built.Spec.Volumes[volume].Secret, ray(t, built).VolumeMounts[mount]
	want := &corev1.SecretVolumeSource{
		SecretName: secret, DefaultMode: new(int32(0o444)), Items: []corev1.KeyToPath{{Key: "auth_token", Path: "auth_token"}},
	}
	if !reflect.DeepEqual(source, want) {
		t.Errorf("%s: %+v", built.Name, source)
	}
	if path != at.MountPath || at.SubPath != "auth_token" || !at.ReadOnly {
		t.Errorf("%s looks for its token in %s and finds it in %+v", built.Name, path, at)
	}
}

// TestClaims: a volume of each template's name, of the slot's own claim, in any epoch.
func TestClaims(t *testing.T) {
	group := templated()
	group.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim("scratch", "1Gi"), claim("models", "9Gi")}
	cluster := testkit.Cluster("demo", group)
	for _, epoch := range []int64{1, 2} {
		built := pod.Worker(cluster, &cluster.Spec.WorkerGroups[0], 7, epoch)
		found := map[string]string{}
		for _, volume := range built.Spec.Volumes {
			if volume.PersistentVolumeClaim != nil {
				found[volume.Name] = volume.PersistentVolumeClaim.ClaimName
			}
		}
		for _, name := range []string{"scratch", "models"} {
			if want := naming.Claim("demo", "demo-uid", "own", 7, name); found[name] != want {
				t.Errorf("epoch %d: the volume %s is %q, want %s", epoch, name, found[name], want)
			}
		}
		if len(found) != 2 {
			t.Errorf("claims %v", found)
		}
	}
}

// TestSharedVolumes: head and workers mount each, by the claim of the user's or the cluster's.
func TestSharedVolumes(t *testing.T) {
	cluster := testkit.Cluster("demo", templated())
	cluster.Spec.SharedVolumes = []v1beta1.SharedVolume{
		{Name: "data", MountPath: "/data", ClaimName: "mine", ReadOnly: new(true)},
		{Name: "out", MountPath: "/out", Claim: &v1beta1.SharedVolumeClaim{}},
	}
	for _, built := range []*corev1.Pod{pod.Head(cluster, 1), pod.Worker(cluster, &cluster.Spec.WorkerGroups[0], 0, 1)} {
		for name, want := range map[string]struct {
			claim, path string
			readOnly    bool
		}{"shared-data": {"mine", "/data", true}, "shared-out": {"demo-shared-out", "/out", false}} {
			volume := slices.IndexFunc(built.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
			mount := slices.IndexFunc(ray(t, built).VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == name })
			if volume < 0 || mount < 0 {
				t.Errorf("%s has no %s", built.Name, name)
				continue
			}
			source, at := built.Spec.Volumes[volume].PersistentVolumeClaim, ray(t, built).VolumeMounts[mount]
			if source.ClaimName != want.claim || source.ReadOnly != want.readOnly || at.MountPath != want.path || at.ReadOnly != want.readOnly {
				t.Errorf("%s has %+v at %+v, want %+v", built.Name, source, at, want)
			}
		}
	}
}

// TestSharedMemory: one volume at /dev/shm where the memory is known, and never a
// second one.
func TestSharedMemory(t *testing.T) {
	for name, test := range map[string]struct {
		container corev1.Container
		params    map[string]string
		want      int
	}{
		"sized by default":     {container: corev1.Container{}, want: 1},
		"no memory":            {container: corev1.Container{Resources: corev1.ResourceRequirements{Limits: testkit.Resources("cpu", "1")}}, want: 0},
		"one of the user's":    {container: corev1.Container{VolumeMounts: []corev1.VolumeMount{{Name: "own", MountPath: "/dev/shm/"}}}, want: 0},
		"a mount elsewhere":    {container: corev1.Container{VolumeMounts: []corev1.VolumeMount{{Name: "own", MountPath: "/dev/shm2"}}}, want: 1},
		"a directory of Ray's": {container: corev1.Container{}, params: map[string]string{"plasma-directory": "/mnt/plasma"}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			test.container.Name = "ray"
			group := testkit.Group("g", 1)
			group.Template, group.RayStartParams = testkit.Template(test.container), test.params
			built := worker(testkit.Cluster("demo", group))
			mounts := slices.DeleteFunc(slices.Clone(ray(t, built).VolumeMounts), func(m corev1.VolumeMount) bool { return m.MountPath != naming.PathShared })
			volumes := slices.DeleteFunc(slices.Clone(built.Spec.Volumes), func(v corev1.Volume) bool { return v.Name != naming.VolumeShared })
			if len(mounts) != test.want || len(volumes) != test.want {
				t.Fatalf("mounts %+v, volumes %+v", mounts, volumes)
			}
			if test.want == 1 && (volumes[0].EmptyDir.Medium != corev1.StorageMediumMemory || mounts[0].ReadOnly || mounts[0].Name != naming.VolumeShared) {
				t.Errorf("%+v at %+v", volumes[0], mounts[0])
			}
			if argument(t, built, "plasma-directory") != test.params["plasma-directory"] {
				t.Error("plasma-directory is lost")
			}
		})
	}
}
