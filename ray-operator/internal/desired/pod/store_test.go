package pod_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// stored is a cluster with a control store.
func stored(store v1beta1.ControlStore) *v1beta1.ComputeCluster {
	cluster := testkit.Cluster("demo", testkit.Group("cpu", 1))
	cluster.Spec.ControlStore = &store
	return cluster
}

func key(name, key string) *v1beta1.SecretKey { return &v1beta1.SecretKey{Name: name, Key: key} }

// given says everything about a Redis of the user's.
func given() *v1beta1.GivenRedis {
	return &v1beta1.GivenRedis{
		Address: "rediss://redis.example.com:6390", Namespace: "team/a",
		UsernameSecret: key("login", "user"), PasswordSecret: key("login", "password"),
		TLS: &v1beta1.RedisTLS{CASecret: key("trust", "ca.pem"), CertificateSecret: key("mine", "cert"), KeySecret: key("mine", "private")},
	}
}

// stores are one of each kind.
func stores() map[string]v1beta1.ControlStore {
	return map[string]v1beta1.ControlStore{
		"redis": {Redis: given()}, "managed": {ManagedRedis: &v1beta1.ManagedRedis{}}, "embedded": {Embedded: &v1beta1.EmbeddedStore{}},
	}
}

func TestGoldenOfStores(t *testing.T) {
	for kind, store := range stores() {
		testkit.Golden(t, "head-"+kind, pod.Head(stored(store), 3))
	}
	testkit.Golden(t, "worker-stored", worker(stored(stores()["managed"])))
}

// TestWhereTheStoreIs: what the operator itself needs to know of a store.
func TestWhereTheStoreIs(t *testing.T) {
	plain := &v1beta1.GivenRedis{Address: "redis://r:6379"}
	for name, test := range map[string]struct {
		store                     *v1beta1.ControlStore
		namespace, address, claim string
	}{
		"none":             {},
		"nothing said":     {store: &v1beta1.ControlStore{}},
		"redis":            {&v1beta1.ControlStore{Redis: plain}, "demo-uid", "redis://r:6379", ""},
		"with a namespace": {&v1beta1.ControlStore{Redis: given()}, "team/a", "rediss://redis.example.com:6390", ""},
		"managed":          {&v1beta1.ControlStore{ManagedRedis: &v1beta1.ManagedRedis{}}, "heliostat", "redis://demo-redis.default.svc:6379", "demo-store"},
		"embedded":         {&v1beta1.ControlStore{Embedded: &v1beta1.EmbeddedStore{}}, "", "", "demo-store"},
		"existing claim":   {&v1beta1.ControlStore{Embedded: &v1beta1.EmbeddedStore{ExistingClaim: "mine"}}, "", "", "mine"},
	} {
		cluster := testkit.Cluster("demo")
		cluster.Spec.ControlStore = test.store
		have := []string{pod.StoreNamespace(cluster), pod.StoreAddress(cluster), pod.StoreClaim(cluster)}
		if want := []string{test.namespace, test.address, test.claim}; !slices.Equal(have, want) {
			t.Errorf("%s: %q, want %q", name, have, want)
		}
	}
}

// TestCredentialsAreReferences: the pod's spec names keys of Secrets, and the two options
// are the only ones in which the kubelet expands anything.
func TestCredentialsAreReferences(t *testing.T) {
	cluster := stored(v1beta1.ControlStore{Redis: given()})
	cluster.Spec.Head.RayStartParams = map[string]string{"temp-dir": "/tmp/$(RAY_STORE_PASSWORD)"}
	cluster.Spec.PodDefaults = &v1beta1.PodDefaults{Env: []corev1.EnvVar{{Name: "RAY_STORE_PASSWORD", Value: "spied"}}}
	head := pod.Head(cluster, 1)
	var expanded []string
	for _, arg := range ray(t, head).Args {
		if strings.Contains(strings.ReplaceAll(arg, "$$(", ""), "$(") {
			expanded = append(expanded, arg)
		}
	}
	if want := []string{"--redis-password=$(RAY_STORE_PASSWORD)", "--redis-username=$(RAY_STORE_USERNAME)"}; !slices.Equal(expanded, want) {
		t.Errorf("the kubelet expands %q, want %q", expanded, want)
	}
	variables(t, head) // each once
	want := map[string]corev1.SecretKeySelector{
		"RAY_STORE_USERNAME": {LocalObjectReference: corev1.LocalObjectReference{Name: "login"}, Key: "user"},
		"RAY_STORE_PASSWORD": {LocalObjectReference: corev1.LocalObjectReference{Name: "login"}, Key: "password"},
	}
	have := map[string]corev1.SecretKeySelector{}
	for _, variable := range ray(t, head).Env {
		if strings.HasPrefix(variable.Name, "RAY_STORE_") && variable.ValueFrom != nil {
			have[variable.Name] = *variable.ValueFrom.SecretKeyRef
		}
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("credentials (- want):\n%s", diff)
	}
}

// TestNoCredentials: a Redis without user and password gets no such option.
func TestNoCredentials(t *testing.T) {
	head := pod.Head(stored(v1beta1.ControlStore{Redis: &v1beta1.GivenRedis{Address: "redis://r:6379"}}), 1)
	if args := strings.Join(ray(t, head).Args, " "); strings.Contains(args, "redis") {
		t.Error(args)
	}
	env := variables(t, head)
	if env["RAY_REDIS_ADDRESS"] != "redis://r:6379" || env["RAY_external_storage_namespace"] != "demo-uid" || len(head.Spec.Volumes) != 2 {
		t.Errorf("%v and %d volumes", env, len(head.Spec.Volumes))
	}
	for name := range env {
		if strings.HasPrefix(name, "RAY_STORE_") || strings.HasPrefix(name, "RAY_REDIS_") && name != "RAY_REDIS_ADDRESS" {
			t.Errorf("%s is set", name)
		}
	}
}

// TestEachEpochHasAUser in a managed Redis, and the intent stays the same.
func TestEachEpochHasAUser(t *testing.T) {
	cluster := stored(stores()["managed"])
	for epoch, want := range map[int64]string{1: "head-1", 12: "head-12"} {
		head := pod.Head(cluster, epoch)
		if user := argument(t, head, "redis-username"); user != want {
			t.Errorf("epoch %d: user %q", epoch, user)
		}
		if head.Annotations[v1beta1.AnnotationIntent] != pod.Intent(cluster, "") {
			t.Errorf("epoch %d: another intent", epoch)
		}
	}
}

// TestTrust: each certificate that is given is mounted, whole Secrets are not, and the server
// is named where it has a name.
func TestTrust(t *testing.T) {
	for name, test := range map[string]struct {
		address string
		tls     *v1beta1.RedisTLS
		server  string
		files   map[string]string
	}{
		"no TLS":           {address: "redis://r.example:6379"},
		"TLS":              {address: "rediss://r.example:6379", server: "r.example"},
		"nothing said":     {address: "rediss://r.example:6379", tls: &v1beta1.RedisTLS{}, server: "r.example"},
		"an address":       {address: "rediss://10.0.0.1:6379"},
		"a longer address": {address: "rediss://[fd00::1]:6379"},
		"authority": {
			address: "rediss://r:6379", tls: &v1beta1.RedisTLS{CASecret: key("a", "b")}, server: "r", files: map[string]string{"RAY_REDIS_CA_CERT": "a/b"},
		},
		"certificate": {
			address: "rediss://r:6379", tls: &v1beta1.RedisTLS{CertificateSecret: key("a", "c"), KeySecret: key("x", "y")}, server: "r",
			files: map[string]string{"RAY_REDIS_CLIENT_CERT": "a/c", "RAY_REDIS_CLIENT_KEY": "x/y"},
		},
		"no address":             {address: "rediss://"},
		"a name with digits":     {address: "rediss://redis-1:6379", server: "redis-1"},
		"a name like an address": {address: "rediss://10.0.0.1.example:6379", server: "10.0.0.1.example"},
	} {
		t.Run(name, func(t *testing.T) {
			head := pod.Head(stored(v1beta1.ControlStore{Redis: &v1beta1.GivenRedis{Address: test.address, TLS: test.tls}}), 1)
			env := variables(t, head)
			if env["RAY_REDIS_SERVER_NAME"] != test.server {
				t.Errorf("the server is called %q, want %q", env["RAY_REDIS_SERVER_NAME"], test.server)
			}
			have := mounted(t, head)
			for variable, want := range test.files {
				if from := have[env[variable]]; from != want {
					t.Errorf("%s is %q from %q, want %q", variable, env[variable], from, want)
				}
			}
			if len(have) != len(test.files) {
				t.Errorf("mounted are %v", have)
			}
			isTLS := func(v corev1.Volume) bool { return v.Name == naming.VolumeStoreTLS }
			if there := slices.ContainsFunc(head.Spec.Volumes, isTLS); there != (len(test.files) > 0) {
				t.Errorf("the volume of certificates is there: %v, with %d files", there, len(test.files))
			}
		})
	}
}

// mounted are the files that a head sees of Secrets with certificates, as SECRET/KEY by path.
func mounted(t *testing.T, head *corev1.Pod) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, volume := range head.Spec.Volumes {
		i := slices.IndexFunc(ray(t, head).VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume.Name })
		if volume.Name != naming.VolumeStoreTLS || i < 0 {
			continue
		}
		for _, source := range volume.Projected.Sources {
			for _, item := range source.Secret.Items {
				files[ray(t, head).VolumeMounts[i].MountPath+"/"+item.Path] = source.Secret.Name + "/" + item.Key
			}
		}
	}
	return files
}

func TestStoreEndpoint(t *testing.T) {
	for address, want := range map[string][2]string{
		"redis://r.example:6379": {"r.example", "6379"}, "rediss://[fd00::1]:65535": {"fd00::1", "65535"}, "redis://10.0.0.1:1": {"10.0.0.1", "1"},
		"redis://r": {}, "r:6379": {}, "": {}, "redis://:6379": {"", "6379"},
	} {
		if host, port := pod.StoreEndpoint(address); host != want[0] || port != want[1] {
			t.Errorf("%q is host %q and port %q, want %q", address, host, port, want)
		}
	}
}

// TestReconnect: workers with any store wait long, heads and workers without one do not, and
// the user's word stands.
func TestReconnect(t *testing.T) {
	const variable = "RAY_gcs_rpc_server_reconnect_timeout_s"
	for kind, store := range stores() {
		cluster := stored(store)
		if seconds := variables(t, worker(cluster))[variable]; seconds != "3600" {
			t.Errorf("%s: a worker waits %q", kind, seconds)
		}
		if seconds, set := variables(t, pod.Head(cluster, 1))[variable]; set {
			t.Errorf("%s: the head waits %q", kind, seconds)
		}
		for name := range variables(t, worker(cluster)) {
			if strings.Contains(name, "REDIS") || strings.Contains(name, "storage") {
				t.Errorf("%s: a worker has %s", kind, name)
			}
		}
		cluster.Spec.PodDefaults = &v1beta1.PodDefaults{Env: []corev1.EnvVar{{Name: variable, Value: "9"}}}
		if seconds := variables(t, worker(cluster))[variable]; seconds != "9" {
			t.Errorf("%s: a worker waits %q, the user says 9", kind, seconds)
		}
	}
	if seconds, set := variables(t, worker(testkit.Cluster("demo", testkit.Group("cpu", 1))))[variable]; set {
		t.Errorf("without a store a worker waits %q", seconds)
	}
}

// TestEmbeddedIsWritable for a user who is not root, unless the template says who owns it;
// no other head's volumes change hands.
// TestGrantStore_LeavesVolumesOfUsers: one of them may have the name of the embedded store's.
func TestGrantStore_LeavesVolumesOfUsers(t *testing.T) {
	cluster := testkit.Cluster("demo")
	cluster.Spec.Head.Template = testkit.Template()
	cluster.Spec.Head.Template.Spec.Volumes = []corev1.Volume{{Name: naming.VolumeStore}}
	if group := pod.GrantStore(cluster, pod.Head(cluster, 1)).Spec.SecurityContext.FSGroup; group != nil {
		t.Errorf("a head without a store has the group %d", *group)
	}
}

func TestEmbeddedIsWritable(t *testing.T) {
	ray, own, once, always := int64(1000), int64(7), corev1.FSGroupChangeOnRootMismatch, corev1.FSGroupChangeAlways
	for name, test := range map[string]struct {
		store  v1beta1.ControlStore
		said   *corev1.PodSecurityContext
		group  *int64
		policy *corev1.PodFSGroupChangePolicy
	}{
		"nothing said": {stores()["embedded"], nil, &ray, &once},
		"a user said":  {stores()["embedded"], &corev1.PodSecurityContext{RunAsUser: &own}, &ray, &once},
		"a group said": {stores()["embedded"], &corev1.PodSecurityContext{FSGroup: &own}, &own, nil},
		"how said":     {stores()["embedded"], &corev1.PodSecurityContext{FSGroupChangePolicy: &always}, &ray, &always},
		"redis":        {stores()["redis"], nil, nil, nil},
		"managed":      {stores()["managed"], nil, nil, nil},
	} {
		cluster := stored(test.store)
		if test.said != nil {
			cluster.Spec.Head.Template = testkit.Template()
			cluster.Spec.Head.Template.Spec.SecurityContext = test.said.DeepCopy()
		}
		have := pod.GrantStore(cluster, pod.Head(cluster, 1)).Spec.SecurityContext
		if !reflect.DeepEqual(have.FSGroup, test.group) || !reflect.DeepEqual(have.FSGroupChangePolicy, test.policy) {
			t.Errorf("%s: %+v", name, have)
		}
		if group := worker(cluster).Spec.SecurityContext.FSGroup; group != nil {
			t.Errorf("%s: a worker has the group %d", name, *group)
		}
	}
}

// TestStoreIntents: what a running head depends on makes it outdated, and nothing else of a
// store does; workers depend on none of it.
func TestStoreIntents(t *testing.T) {
	small, class := resource.MustParse("9Gi"), "fast"
	for name, test := range map[string]struct {
		kind    string
		edit    func(*v1beta1.ControlStore)
		changes bool
	}{
		"none at all":    {"redis", func(s *v1beta1.ControlStore) { *s = v1beta1.ControlStore{} }, true},
		"address":        {"redis", func(s *v1beta1.ControlStore) { s.Redis.Address = "rediss://other:1" }, true},
		"namespace":      {"redis", func(s *v1beta1.ControlStore) { s.Redis.Namespace = "b" }, true},
		"user":           {"redis", func(s *v1beta1.ControlStore) { s.Redis.UsernameSecret.Name = "other" }, true},
		"password":       {"redis", func(s *v1beta1.ControlStore) { s.Redis.PasswordSecret.Key = "other" }, true},
		"authority":      {"redis", func(s *v1beta1.ControlStore) { s.Redis.TLS.CASecret = nil }, true},
		"certificate":    {"redis", func(s *v1beta1.ControlStore) { s.Redis.TLS.CertificateSecret.Key = "x" }, true},
		"server's name":  {"redis", func(s *v1beta1.ControlStore) { s.Redis.TLS.ServerName = "r.example" }, false},
		"another kind":   {"managed", func(s *v1beta1.ControlStore) { *s = stores()["embedded"] }, true},
		"existing claim": {"embedded", func(s *v1beta1.ControlStore) { s.Embedded.ExistingClaim = "mine" }, true},
		"all of a managed one": {"managed", func(s *v1beta1.ControlStore) {
			*s.ManagedRedis = v1beta1.ManagedRedis{Storage: &small, StorageClassName: &class, Image: "redis:8", Size: testkit.Resources("cpu", "1"), Retain: new(true)}
		}, false},
		"all of an embedded one": {"embedded", func(s *v1beta1.ControlStore) {
			*s.Embedded = v1beta1.EmbeddedStore{
				Storage: &small, StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, Retain: new(true),
			}
		}, false},
	} {
		before, after := stored(stores()[test.kind]), stored(stores()[test.kind])
		test.edit(after.Spec.ControlStore)
		if changed := pod.Intent(before, "") != pod.Intent(after, ""); changed != test.changes {
			t.Errorf("%s changes the head's intent: %v, want %v", name, changed, test.changes)
		}
		if pod.Intent(before, "cpu") != pod.Intent(after, "cpu") {
			t.Errorf("%s changes a worker's intent", name)
		}
	}
	silent, empty := stored(v1beta1.ControlStore{Redis: &v1beta1.GivenRedis{Address: "rediss://r:1"}}), stored(v1beta1.ControlStore{Redis: &v1beta1.GivenRedis{Address: "rediss://r:1", TLS: &v1beta1.RedisTLS{}}})
	if pod.Intent(silent, "") != pod.Intent(empty, "") {
		t.Error("a tls that says nothing changes the intent")
	}
	if empty.Spec.ControlStore.Redis.TLS == nil {
		t.Error("taking the intent changed the spec")
	}
	if without := testkit.Cluster("demo", testkit.Group("cpu", 1)); pod.Intent(without, "") == pod.Intent(stored(stores()["managed"]), "") {
		t.Error("a store is no part of the intent")
	}
}

// TestStoresAreNotShared: what is built with a store shares nothing with the spec.
func TestStoresAreNotShared(t *testing.T) {
	for kind, store := range stores() {
		cluster, before := stored(store), stored(stores()[kind])
		built := pod.Head(cluster, 1)
		for i := range built.Spec.Volumes {
			if projected := built.Spec.Volumes[i].Projected; projected != nil {
				projected.Sources[0].Secret.Items[0].Key = "changed"
			}
		}
		for i := range ray(t, built).Env {
			if from := ray(t, built).Env[i].ValueFrom; from != nil && from.SecretKeyRef != nil {
				from.SecretKeyRef.Key = "changed"
			}
		}
		if diff := cmp.Diff(before.Spec, cluster.Spec); diff != "" {
			t.Errorf("%s: building changed the spec:\n%s", kind, diff)
		}
	}
}
