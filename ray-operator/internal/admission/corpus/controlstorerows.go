package corpus

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

type (
	redis    = v1beta1.GivenRedis
	managedR = v1beta1.ManagedRedis
	embedded = v1beta1.EmbeddedStore
)

// stored gives a cluster a control store in place of the one that it has.
func stored(change func(*v1beta1.ControlStore)) edit {
	return spec(func(s *v1beta1.ComputeClusterSpec) {
		s.ControlStore = &v1beta1.ControlStore{}
		change(s.ControlStore)
	})
}

func onRedis(changes ...func(*redis)) edit {
	return stored(func(s *v1beta1.ControlStore) {
		s.Redis = &redis{Address: "redis://redis:6379"}
		both(changes...)(s.Redis)
	})
}

// onTLS is a Redis with TLS of which all is said.
func onTLS(changes ...func(*redis)) edit {
	return onRedis(slices.Insert(changes, 0, func(r *redis) {
		*r = redis{
			Address: "rediss://redis.example.com:6380", Namespace: "team-a_B.c:d/1",
			UsernameSecret: secretKey("redis", "user"), PasswordSecret: secretKey("redis", "password"),
			TLS: &v1beta1.RedisTLS{
				CASecret: secretKey("ca", "ca.crt"), CertificateSecret: secretKey("tls", "tls.crt"), KeySecret: secretKey("tls", "tls.key"),
				ServerName: "redis.example.com",
			},
		}
	})...)
}

func onManaged(changes ...func(*managedR)) edit {
	return stored(func(s *v1beta1.ControlStore) {
		s.ManagedRedis = &managedR{}
		both(changes...)(s.ManagedRedis)
	})
}

func onEmbedded(changes ...func(*embedded)) edit {
	return stored(func(s *v1beta1.ControlStore) {
		s.Embedded = &embedded{}
		both(changes...)(s.Embedded)
	})
}

func secretKey(name, key string) *v1beta1.SecretKey {
	return &v1beta1.SecretKey{Name: name, Key: key}
}

func address(text string) edit { return onRedis(func(r *redis) { r.Address = text }) }

func namespaced(name string) edit { return onRedis(func(r *redis) { r.Namespace = name }) }

func password(name, key string) edit {
	return onRedis(func(r *redis) { r.PasswordSecret = secretKey(name, key) })
}

func redisSize(pairs ...string) edit {
	return onManaged(func(m *managedR) { m.Size = resources(pairs...) })
}

func managedVolume(storage, class *string) edit {
	return onManaged(func(m *managedR) { m.Storage, m.StorageClassName = amount(storage), class })
}

func embeddedVolume(storage, class *string, modes ...corev1.PersistentVolumeAccessMode) edit {
	return onEmbedded(func(e *embedded) { e.Storage, e.StorageClassName, e.AccessModes = amount(storage), class, modes })
}

func amount(text *string) *resource.Quantity {
	if text == nil {
		return nil
	}
	return ptr(resource.MustParse(*text))
}

func existing(name string, changes ...func(*embedded)) edit {
	return onEmbedded(append(changes, func(e *embedded) { e.ExistingClaim = name })...)
}

func noStore(c *cluster) { c.Spec.ControlStore = nil }

// storeVolume gives the head a volume of a name, and storeMount its Ray container a mount.
func storeVolume(name string) edit {
	return headTemplate(func(t *tmpl, _ *container) {
		t.Spec.Volumes = []corev1.Volume{{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	})
}

func storeMount(path string) edit {
	return both(storeVolume("mine"), headTemplate(func(_ *tmpl, c *container) { c.VolumeMounts = []corev1.VolumeMount{{Name: "mine", MountPath: path}} }))
}

// The last good rows are what the rich object keeps and gives odd values: all of a Redis of
// the user's.
var controlStoreRows = slices.Concat(managedStoreRows, embeddedStoreRows, storedPodRows, givenStoreRows, storeChangeRows)

var managedStoreRows = []row{
	{Name: "a managed store", Edit: onManaged()},
	{Name: "a managed store of which all is said", Edit: onManaged(func(m *managedR) {
		*m = managedR{Storage: amount(ptr("100Mi")), StorageClassName: ptr("fast.ssd"), Image: "registry.example.com/redis:7.4", Size: resources("cpu", "1m", "memory", "64Mi"), Retain: new(true)}
	})},
	{Name: "a managed store of no class", Edit: managedVolume(nil, ptr(""))},
	{Name: "a managed store too small", Rule: "store-storage", Edit: managedVolume(ptr("99Mi"), nil)},
	{Name: "a managed store of nothing", Rule: "store-storage", Edit: managedVolume(ptr("0"), nil)},
	{Name: "a managed store's class", Rule: "object-name", Edit: managedVolume(nil, ptr("Fast"))},
	{Name: "a managed store's class too long", Rule: "long-text", Edit: managedVolume(nil, ptr(long(254)))},
	{Name: "a managed store's image too long", Rule: "long-text", Edit: onManaged(func(m *managedR) { m.Image = long(1025) })},
	{Name: "a managed store with a GPU", Rule: "store-size-name", Edit: redisSize("nvidia.com/gpu", "1")},
	{Name: "a managed store of five", Rule: "long-list", Edit: redisSize("cpu", "1", "limits.cpu", "1", "memory", "1Gi", "ephemeral-storage", "1Gi", "other", "1")},
	{Name: "a managed store with all that it takes", Edit: redisSize("cpu", "1", "limits.cpu", "1", "memory", "1Gi", "ephemeral-storage", "1Gi")},
	{Name: "a managed store with a limit below cpu", Rule: "store-size-limit", Edit: redisSize("cpu", "2", "limits.cpu", "1")},
	{Name: "a managed store with little memory", Rule: "store-size", Edit: redisSize("memory", "63Mi")},
	{Name: "a managed store with no CPU", Rule: "store-size", Edit: redisSize("cpu", "0")},
}

var embeddedStoreRows = []row{
	{Name: "a managed store of the oldest version", Edit: both(onManaged(), version("2.52.0"))},
	{Name: "an embedded store", Edit: onEmbedded()},
	{Name: "an embedded store of the first version", Edit: both(onEmbedded(), version("2.57.0"))},
	{Name: "an embedded store of which all is said", Edit: both(
		embeddedVolume(ptr("100Mi"), ptr("shared"), corev1.ReadWriteMany, corev1.ReadWriteOnce), func(c *cluster) { c.Spec.ControlStore.Embedded.Retain = new(true) })},
	{Name: "an embedded store of one pod", Edit: embeddedVolume(nil, nil, corev1.ReadWriteOncePod)},
	{Name: "an embedded store of a version too old", Rule: "store-version", Edit: both(onEmbedded(), version("2.56.9"))},
	{Name: "an embedded store too small", Rule: "store-storage", Edit: embeddedVolume(ptr("104857599"), nil)},
	{Name: "an embedded store's class", Rule: "object-name", Edit: embeddedVolume(nil, ptr("a_b"))},
	{Name: "an embedded store's class too long", Rule: "long-text", Edit: embeddedVolume(nil, ptr(long(254)))},
	{Name: "an embedded store that nobody writes", Rule: "unknown-word", Edit: embeddedVolume(nil, nil, corev1.ReadOnlyMany)},
	{Name: "an embedded store of one pod and more", Rule: "store-modes", Edit: embeddedVolume(nil, nil, corev1.ReadWriteOncePod, corev1.ReadWriteOnce)},
	{Name: "an embedded store's mode twice", Rule: "duplicate", Edit: embeddedVolume(nil, nil, corev1.ReadWriteOnce, corev1.ReadWriteOnce)},
	{Name: "an embedded store of four modes", Rule: "long-list", Edit: embeddedVolume(nil, nil, corev1.ReadWriteOnce, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteMany)},
	{Name: "a claim of the user's", Edit: existing("ray.state-1")},
	{Name: "the claim that the operator would make", Edit: existing("demo-store")},
	{Name: "no claim's name", Rule: "store-claim-name", Edit: existing("State")},
	{Name: "a claim's name too long", Rule: "long-text", Edit: existing(long(254))},
	{Name: "a claim of the user's with a size", Rule: "store-claim", Edit: existing("state", func(e *embedded) { e.Storage = amount(ptr("1Gi")) })},
	{Name: "a claim of the user's with a class", Rule: "store-claim", Edit: existing("state", func(e *embedded) { e.StorageClassName = ptr("") })},
	{Name: "a claim of the user's with modes", Rule: "store-claim", Edit: existing("state", func(e *embedded) { e.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce} })},
	{Name: "a claim of the user's to keep", Rule: "store-claim", Edit: existing("state", func(e *embedded) { e.Retain = new(true) })},
}

var redisByHand = []corev1.EnvVar{{Name: "RAY_REDIS_ADDRESS", Value: "redis://redis:6379"}}

var storedPodRows = []row{
	{Name: "a store of pods", Rule: "store-variable", Edit: defaults(func(d *v1beta1.PodDefaults) { d.Env = redisByHand })},
	{Name: "a store of pods beside one", Rule: "store-variable", Edit: both(onRedis(), defaults(func(d *v1beta1.PodDefaults) { d.Env = redisByHand }))},
	{Name: "a store of a head", Rule: "store-ray-variable", Edit: headTemplate(func(_ *tmpl, c *container) { c.Env = []corev1.EnvVar{{Name: "RAY_gcs_storage", Value: "rocksdb"}} })},
	{Name: "a store of a worker", Rule: "store-ray-variable", Edit: inRay(func(c *container) { c.Env = []corev1.EnvVar{{Name: "RAY_external_storage_namespace"}} })},
	{Name: "a sidecar's own store", Edit: inSide(func(c *container) { c.Env = redisByHand })},
	{Name: "a volume of the store's name", Rule: "store-volume", Edit: both(onEmbedded(), storeVolume(naming.VolumeStore))},
	{Name: "a volume of the store's TLS", Rule: "store-volume", Edit: both(onTLS(), storeVolume(naming.VolumeStoreTLS))},
	{Name: "a volume of that name without a store", Edit: both(noStore, storeVolume(naming.VolumeStore))},
	{Name: "a worker's volume of that name", Edit: both(onEmbedded(), inPod(func(p *corev1.PodSpec) {
		p.Volumes = []corev1.Volume{{Name: naming.VolumeStore, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	}))},
	{Name: "a mount at the store", Rule: "store-mount", Edit: both(onEmbedded(), storeMount(naming.PathStore))},
	{Name: "a mount in the store", Rule: "store-mount", Edit: both(onManaged(), storeMount("//var/lib//heliostat/store/a"))},
	{Name: "a mount at the store's TLS", Rule: "ray-mount", Edit: both(onTLS(), storeMount(naming.PathStoreTLS))},
	{Name: "a mount there without a store", Edit: both(noStore, storeMount(naming.PathStore))},
	{Name: "a mount beside the store", Edit: both(onManaged(), storeMount("/var/lib/heliostat/stores"))},
}

var givenStoreRows = []row{
	{Name: "no kind of store", Rule: "store-kind", Edit: stored(func(*v1beta1.ControlStore) {})},
	{Name: "two kinds of store", Rule: "store-kind", Edit: stored(func(s *v1beta1.ControlStore) { s.ManagedRedis, s.Embedded = &managedR{}, &embedded{} })},
	{Name: "three kinds of store", Rule: "store-kind", Edit: stored(func(s *v1beta1.ControlStore) {
		s.Redis, s.ManagedRedis, s.Embedded = &redis{Address: "redis://a:1"}, &managedR{}, &embedded{}
	})},
	{Name: "a store at an address", Edit: address("redis://10.0.0.1:65535")},
	{Name: "a store at an address of IPv6", Edit: address("redis://[2001:db8::1]:6379")},
	{Name: "a store in capitals", Edit: address("redis://Redis.Example.Com:1")},
	{Name: "no address", Rule: "required", Edit: address("")},
	{Name: "an address without a scheme", Rule: "store-address", Edit: address("redis:6379")},
	{Name: "an address of another scheme", Rule: "store-address", Edit: address("http://redis:6379")},
	{Name: "an address without a port", Rule: "store-address", Edit: address("redis://redis")},
	{Name: "an address of port 0", Rule: "store-address", Edit: address("redis://redis:0")},
	{Name: "an address of port 65536", Rule: "store-address", Edit: address("redis://redis:65536")},
	{Name: "an address of a long port", Rule: "store-address", Edit: address("redis://redis:99999999999999999999")},
	{Name: "an address with a user", Rule: "store-address", Edit: address("redis://ana:secret@redis:6379")},
	{Name: "an address with a database", Rule: "store-address", Edit: address("redis://redis:6379/0")},
	{Name: "an address with options", Rule: "store-address", Edit: address("redis://redis:6379?timeout=1")},
	{Name: "two addresses", Rule: "store-address", Edit: address("redis://a:6379,b:6379")},
	{Name: "an address and a line", Rule: "store-address", Edit: address("redis://redis:6379\n")},
	{Name: "an address too long", Rule: "long-text", Edit: address("redis://" + long(300) + ":6379")},
	{Name: "a namespace of 128", Edit: namespaced(long(128))},
	{Name: "a namespace of 129", Rule: "long-text", Edit: namespaced(long(129))},
	{Name: "a namespace with an @", Rule: "store-namespace", Edit: namespaced("a@b")},
	{Name: "a namespace with a star", Rule: "store-namespace", Edit: namespaced("a*")},
	{Name: "a password", Edit: password("redis.auth", "the_password-1.txt")},
	{Name: "a password of no Secret", Rule: "required", Edit: password("", "password")},
	{Name: "a password of a bad Secret", Rule: "store-secret", Edit: password("Redis", "password")},
	{Name: "a password of a Secret too long", Rule: "long-text", Edit: password(long(254), "password")},
	{Name: "a password of no key", Rule: "required", Edit: password("redis", "")},
	{Name: "a password of a bad key", Rule: "store-secret-key", Edit: password("redis", "a/b")},
	{Name: "a password of a key upwards", Rule: "store-secret-key", Edit: password("redis", "..")},
	{Name: "a password of a key here", Rule: "store-secret-key", Edit: password("redis", ".")},
	{Name: "a password of a key too long", Rule: "long-text", Edit: password("redis", long(254))},
	{Name: "a user without a password", Rule: "store-username", Edit: onTLS(func(r *redis) { r.PasswordSecret = nil })},
	{Name: "a user of a bad Secret", Rule: "store-secret", Edit: onTLS(func(r *redis) { r.UsernameSecret.Name = "-" })},
	{Name: "an authority of a bad key", Rule: "store-secret-key", Edit: onTLS(func(r *redis) { r.TLS.CASecret.Key = "a b" })},
	{Name: "TLS without rediss", Rule: "store-tls", Edit: onTLS(func(r *redis) { r.Address = "redis://redis:6379" })},
	{Name: "a server name with a space", Rule: "store-server-name", Edit: onTLS(func(r *redis) { r.TLS.ServerName = "a b" })},
	{Name: "a server name with a capital letter", Rule: "store-server-name", Edit: onTLS(func(r *redis) { r.TLS.ServerName = "Redis.example.com" })},
	{Name: "a server name too long", Rule: "long-text", Edit: onTLS(func(r *redis) { r.TLS.ServerName = long(254) })},
	{Name: "rediss alone", Edit: address("rediss://redis:6379")},
	{Name: "an authority alone", Edit: onTLS(func(r *redis) { r.TLS = &v1beta1.RedisTLS{CASecret: secretKey("ca", "ca.crt")} })},
	{Name: "a certificate without its key", Rule: "store-certificate", Edit: onTLS(func(r *redis) { r.TLS.KeySecret = nil })},
	{Name: "a key without its certificate", Rule: "store-certificate", Edit: onTLS(func(r *redis) { r.TLS.CertificateSecret = nil })},
	{Name: "a store of which all is said", Edit: onTLS()},
}

var storeChangeRows = []row{
	{Name: "a store comes", Rule: "store-fixed", Before: noStore, Edit: onManaged()},
	{Name: "a store goes", Rule: "store-fixed", Before: onRedis(), Edit: noStore},
	{Name: "a managed store becomes embedded", Rule: "store-kind-fixed", Before: onManaged(), Edit: onEmbedded()},
	{Name: "an embedded store becomes the user's", Rule: "store-kind-fixed", Before: onEmbedded(), Edit: onRedis()},
	{Name: "the user's store becomes managed", Rule: "store-kind-fixed", Before: onRedis(), Edit: onManaged()},
	{Name: "the same store elsewhere", Before: namespaced("a"), Edit: onTLS(func(r *redis) { r.Namespace = "a" })},
	{Name: "a namespace changed", Rule: "store-namespace-fixed", Before: namespaced("a"), Edit: namespaced("b")},
	{Name: "a namespace set", Rule: "store-namespace-fixed", Before: namespaced(""), Edit: namespaced("b")},
	{Name: "a namespace taken away", Rule: "store-namespace-fixed", Before: namespaced("a"), Edit: namespaced("")},
	{Name: "a managed store's defaults said", Before: onManaged(), Edit: onManaged(func(m *managedR) { m.Storage, m.Image = amount(ptr("1Gi")), "redis:7" })},
	{Name: "a managed store's defaults in other words", Before: onManaged(), Edit: managedVolume(ptr("1024Mi"), nil)},
	{Name: "a managed store's image and size", Before: onManaged(), Edit: onManaged(func(m *managedR) { m.Image, m.Size, m.Retain = "redis:8", resources("memory", "1Gi"), new(true) })},
	{Name: "a managed store enlarged", Rule: "store-volume-fixed", Before: onManaged(), Edit: managedVolume(ptr("2Gi"), nil)},
	{Name: "a managed store's size taken away", Rule: "store-volume-fixed", Before: managedVolume(ptr("2Gi"), nil), Edit: onManaged()},
	{Name: "a managed store's class set", Rule: "store-volume-fixed", Before: onManaged(), Edit: managedVolume(nil, ptr("a"))},
	{Name: "a managed store's class taken away", Rule: "store-volume-fixed", Before: managedVolume(nil, ptr("")), Edit: onManaged()},
	{Name: "a managed store's class changed", Rule: "store-volume-fixed", Before: managedVolume(nil, ptr("a")), Edit: managedVolume(nil, ptr("b"))},
	{Name: "an embedded store in other words", Before: embeddedVolume(ptr("1Gi"), ptr("a"), corev1.ReadWriteOnce, corev1.ReadWriteMany), Edit: both(
		embeddedVolume(ptr("1024Mi"), ptr("a"), corev1.ReadWriteMany, corev1.ReadWriteOnce), func(c *cluster) { c.Spec.ControlStore.Embedded.Retain = new(true) })},
	{Name: "an embedded store enlarged", Rule: "store-volume-fixed", Before: embeddedVolume(ptr("1Gi"), nil), Edit: embeddedVolume(ptr("2Gi"), nil)},
	{Name: "an embedded store's size set", Rule: "store-volume-fixed", Before: onEmbedded(), Edit: embeddedVolume(ptr("2Gi"), nil)},
	{Name: "an embedded store's class changed", Rule: "store-volume-fixed", Before: embeddedVolume(nil, ptr("a")), Edit: embeddedVolume(nil, ptr("b"))},
	{Name: "an embedded store's modes changed", Rule: "store-volume-fixed", Before: embeddedVolume(nil, nil, corev1.ReadWriteOnce), Edit: embeddedVolume(nil, nil, corev1.ReadWriteMany)},
	{Name: "an embedded store's modes set", Rule: "store-volume-fixed", Before: onEmbedded(), Edit: embeddedVolume(nil, nil, corev1.ReadWriteOnce)},
	{Name: "another claim of the user's", Rule: "store-volume-fixed", Before: existing("a"), Edit: existing("b")},
	{Name: "a claim of the user's set", Rule: "store-volume-fixed", Before: onEmbedded(), Edit: existing("demo-store")},
	{Name: "an embedded store and an older Ray", Rule: "store-version", Before: onEmbedded(), Edit: version("2.56.0")},
}
