package validate

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

var (
	// The least that the schema takes of a store's volume and of a managed Redis' memory.
	leastStore = resource.MustParse("100Mi")
	leastRedis = resource.MustParse("64Mi")

	redisAddress = regexp.MustCompile(`^rediss?://([a-zA-Z0-9]([-a-zA-Z0-9.]{0,251}[a-zA-Z0-9])?|[[][0-9a-fA-F:.]+[]]):` +
		`([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$`)
	rayNamespace = regexp.MustCompile(`^[-_.:/a-zA-Z0-9]+$`)
	beforeRocks  = regexp.MustCompile(`^2[.]5[2-6][.]`)
	storeMount   = regexp.MustCompile(`^/+var/+lib/+heliostat/+store(/.*)?$`)

	// storeNames are the names of the volumes of a head with a control store.
	storeNames = []string{naming.VolumeStore, naming.VolumeStoreTLS}
	storeModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod, corev1.ReadWriteOnce, corev1.ReadWriteMany}

	storePath = field.NewPath("spec", "controlStore")
)

// storeOf is a cluster's control store, empty where it has none.
func storeOf(c *v1beta1.ComputeCluster) v1beta1.ControlStore {
	if c.Spec.ControlStore == nil {
		return v1beta1.ControlStore{}
	}
	return *c.Spec.ControlStore
}

// kinds tells which kinds of store are given.
func kinds(s *v1beta1.ControlStore) [3]bool {
	return [3]bool{s.Redis != nil, s.ManagedRedis != nil, s.Embedded != nil}
}

// stored makes a rule's function of a question about a control store and the field below it
// that is wrong when the answer is yes.
func stored(child string, wrong func(s *v1beta1.ControlStore) bool) func(*v1beta1.ComputeCluster, report) {
	return func(c *v1beta1.ComputeCluster, bad report) {
		if s := c.Spec.ControlStore; s != nil && wrong(s) {
			bad.at(below(storePath, child), nil)
		}
	}
}

// restored does the same for two states of a store. A store that comes or goes is the
// matter of another rule.
func restored(child string, wrong func(before, after *v1beta1.ControlStore) bool) func(before, after *v1beta1.ComputeCluster, bad report) {
	return func(before, after *v1beta1.ComputeCluster, bad report) {
		if was, is := before.Spec.ControlStore, after.Spec.ControlStore; was != nil && is != nil && wrong(was, is) {
			bad.at(below(storePath, child), nil)
		}
	}
}

// redisStore makes such a question of one about a Redis of the user's.
func redisStore(wrong func(r *v1beta1.GivenRedis) bool) func(*v1beta1.ControlStore) bool {
	return func(s *v1beta1.ControlStore) bool { return s.Redis != nil && wrong(s.Redis) }
}

// embedded makes such a question of one about an embedded store.
func embedded(wrong func(e *v1beta1.EmbeddedStore) bool) func(*v1beta1.ControlStore) bool {
	return func(s *v1beta1.ControlStore) bool { return s.Embedded != nil && wrong(s.Embedded) }
}

// secretKey is a reference to a Secret with its place.
type secretKey struct {
	path *field.Path
	key  *v1beta1.SecretKey
}

// secretKeys are those that a store gives.
func secretKeys(c *v1beta1.ComputeCluster) []secretKey {
	r := storeOf(c).Redis
	if r == nil {
		return nil
	}
	at := storePath.Child("redis")
	all := []secretKey{{at.Child("usernameSecret"), r.UsernameSecret}, {at.Child("passwordSecret"), r.PasswordSecret}}
	if t := r.TLS; t != nil {
		at = at.Child("tls")
		all = append(all, secretKey{at.Child("caSecret"), t.CASecret}, secretKey{at.Child("certificateSecret"), t.CertificateSecret},
			secretKey{at.Child("keySecret"), t.KeySecret})
	}
	return slices.DeleteFunc(all, func(k secretKey) bool { return k.key == nil })
}

// storeVolume is the volume that a store asks for, with its place.
type storeVolume struct {
	path      *field.Path
	storage   *resource.Quantity
	className *string
	modes     []corev1.PersistentVolumeAccessMode
	existing  string
}

func (v *storeVolume) class() string {
	if v.className == nil {
		return ""
	}
	return *v.className
}

// storeVolumes are the volumes of a store: of a good one, at most one.
func storeVolumes(c *v1beta1.ComputeCluster) []storeVolume {
	var all []storeVolume
	s := storeOf(c)
	if m := s.ManagedRedis; m != nil {
		all = append(all, storeVolume{path: storePath.Child("managedRedis"), storage: new(managedStorage(m)), className: m.StorageClassName})
	}
	if e := s.Embedded; e != nil {
		all = append(all, storeVolume{storePath.Child("embedded"), e.Storage, e.StorageClassName, e.AccessModes, e.ExistingClaim})
	}
	return all
}

// managedStorage is what the API server's default makes of it.
func managedStorage(m *v1beta1.ManagedRedis) resource.Quantity {
	if m.Storage == nil {
		return resource.MustParse("1Gi")
	}
	return *m.Storage
}

// same reports whether two states of a volume ask for the same. The order of access modes
// means nothing.
func (v *storeVolume) same(other *storeVolume) bool {
	sized := (v.storage == nil) == (other.storage == nil) && (v.storage == nil || v.storage.Cmp(*other.storage) == 0)
	classed := (v.className == nil) == (other.className == nil) && v.class() == other.class()
	return sized && classed && v.existing == other.existing &&
		slices.Equal(slices.SortedFunc(slices.Values(v.modes), cmp.Compare), slices.SortedFunc(slices.Values(other.modes), cmp.Compare))
}

func storeTexts(c *v1beta1.ComputeCluster, bad report) {
	if r := storeOf(c).Redis; r != nil {
		text(bad, storePath, "redis.address", r.Address, 300)
		text(bad, storePath, "redis.namespace", r.Namespace, 128)
		if r.TLS != nil {
			text(bad, storePath, "redis.tls.serverName", r.TLS.ServerName, maxText)
		}
	}
	for _, k := range secretKeys(c) {
		text(bad, k.path, "name", k.key.Name, maxText)
		text(bad, k.path, "key", k.key.Key, maxText)
	}
	if m := storeOf(c).ManagedRedis; m != nil {
		text(bad, storePath, "managedRedis.image", m.Image, maxImage)
	}
	for _, v := range storeVolumes(c) {
		text(bad, v.path, "storageClassName", v.class(), maxText)
		text(bad, v.path, "existingClaim", v.existing, maxText)
	}
}

func storeLists(c *v1beta1.ComputeCluster, bad report) {
	if m := storeOf(c).ManagedRedis; m != nil {
		count(bad, storePath, "managedRedis.size", len(m.Size), len(sizedNames))
	}
	if e := storeOf(c).Embedded; e != nil {
		count(bad, storePath, "embedded.accessModes", len(e.AccessModes), 3)
	}
}

func storeWords(c *v1beta1.ComputeCluster, bad report) {
	if e := storeOf(c).Embedded; e != nil {
		for i, mode := range e.AccessModes {
			oneOf(bad, storePath.Child("embedded", "accessModes").Index(i), mode, storeModes...)
		}
	}
}

// noStore begins the expressions of rules that ask heads of clusters with a control store.
const noStore = "!n.head || !has(variables.cluster.controlStore) || "

// inStored asks only heads of clusters with a control store.
func inStored(check func(n *node, bad report)) func(*node, report) {
	return func(n *node, bad report) {
		if n.group == nil && n.cluster.Spec.ControlStore != nil {
			check(n, bad)
		}
	}
}

func isStoreVariable(e *corev1.EnvVar) bool { return slices.Contains(storeVariables, e.Name) }

// useStore helps those who set a store's variables by hand.
const useStore = "use controlStore"

var setsStore = "only the operator may configure Ray's control store, with " + strings.Join(storeVariables, ", ")

// controlStoreRules are about the control store and what goes with it alone.
var controlStoreRules = slices.Concat(storeRules, redisRules, volumeRules, storedPodRules)

// storeRules are about the store as a whole.
var storeRules = []Rule{
	{
		ID: "store-kind", Field: "spec.controlStore", By: Expression,
		Refused: "controlStore must have exactly one of redis, managedRedis and embedded", Remedy: "set one",
		cluster: stored("", func(s *v1beta1.ControlStore) bool {
			given := kinds(s)
			return len(slices.DeleteFunc(given[:], func(one bool) bool { return !one })) != 1
		}),
	},
	{
		ID: "store-fixed", Field: "spec.controlStore", By: Expression,
		Refused: "controlStore must not be added or removed after creation", Remedy: "create a new cluster",
		change: func(before, after *v1beta1.ComputeCluster, bad report) {
			if (before.Spec.ControlStore == nil) != (after.Spec.ControlStore == nil) {
				bad.at(storePath, nil)
			}
		},
	},
	{
		ID: "store-kind-fixed", Field: "spec.controlStore", By: Expression,
		Refused: "the kind of a control store is immutable", Remedy: "create a new cluster",
		change: restored("", func(before, after *v1beta1.ControlStore) bool { return kinds(before) != kinds(after) }),
	},
	{
		ID: "store-version", Field: "spec.controlStore.embedded", By: Expression,
		Refused: "rayVersion must be 2.57 or later for the embedded control store", Remedy: "raise it, or use managedRedis",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if storeOf(c).Embedded != nil && beforeRocks.MatchString(c.Spec.RayVersion) {
				bad.at(storePath.Child("embedded"), nil)
			}
		},
	},
}

// redisRules are about a Redis, the user's or the operator's.
var redisRules = []Rule{
	{
		ID: "store-address", Field: "spec.controlStore.redis.address", By: Expression,
		Refused: "address must be redis://HOST:PORT, or rediss://HOST:PORT with TLS, and contain nothing else", Remedy: "put user and password into usernameSecret and passwordSecret",
		// The value is not told: it may hold a password.
		cluster: stored("redis.address", redisStore(func(r *v1beta1.GivenRedis) bool { return !redisAddress.MatchString(r.Address) })),
	},
	{
		ID: "store-namespace", Field: "spec.controlStore.redis.namespace", By: Expression,
		Refused: "the namespace of a control store must consist of letters, digits and the characters - _ . : /", Remedy: "choose such a name",
		cluster: stored("redis.namespace", redisStore(func(r *v1beta1.GivenRedis) bool {
			return r.Namespace != "" && !rayNamespace.MatchString(r.Namespace)
		})),
	},
	{
		ID: "store-namespace-fixed", Field: "spec.controlStore.redis.namespace", By: Expression,
		Refused: "the namespace of a control store is immutable", Remedy: "create a new cluster",
		change: restored("redis.namespace", func(before, after *v1beta1.ControlStore) bool {
			return before.Redis != nil && after.Redis != nil && before.Redis.Namespace != after.Redis.Namespace
		}),
	},
	{
		ID: "store-username", Field: "spec.controlStore.redis", By: Expression,
		Refused: "usernameSecret must be used with passwordSecret", Remedy: "set passwordSecret too",
		cluster: stored("redis", redisStore(func(r *v1beta1.GivenRedis) bool { return r.UsernameSecret != nil && r.PasswordSecret == nil })),
	},
	{
		ID: "store-tls", Field: "spec.controlStore.redis", By: Expression,
		Refused: "tls must be used with an address that begins with rediss://", Remedy: "change the address, or leave tls out",
		cluster: stored("redis", redisStore(func(r *v1beta1.GivenRedis) bool {
			return r.TLS != nil && !strings.HasPrefix(r.Address, "rediss://")
		})),
	},
	{
		ID: "store-certificate", Field: "spec.controlStore.redis.tls", By: Expression,
		Refused: "certificateSecret and keySecret must be set together", Remedy: "set both or none",
		cluster: stored("redis.tls", redisStore(func(r *v1beta1.GivenRedis) bool {
			return r.TLS != nil && (r.TLS.CertificateSecret == nil) != (r.TLS.KeySecret == nil)
		})),
	},
	{
		ID: "store-server-name", Field: "spec.controlStore.redis.tls.serverName", By: Expression,
		Refused: "serverName must consist of lower-case letters, digits, '-' and '.'", Remedy: "give the name that the certificate is for",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if r := storeOf(c).Redis; r != nil && r.TLS != nil && r.TLS.ServerName != "" && !isObjectName(r.TLS.ServerName) {
				bad.at(storePath.Child("redis", "tls", "serverName"), r.TLS.ServerName)
			}
		},
	},
	{
		ID: "store-secret", Field: "spec.controlStore.redis.usernameSecret.name, spec.controlStore.redis.passwordSecret.name, spec.controlStore.redis.tls.*.name", By: Expression,
		Refused: "the name of a Secret must be a DNS-1123 subdomain", Remedy: "give the name of a Secret in the cluster's namespace",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			for _, k := range secretKeys(c) {
				if !isObjectName(k.key.Name) {
					bad.at(k.path.Child("name"), k.key.Name)
				}
			}
		},
	},
	{
		ID: "store-secret-key", Field: "spec.controlStore.redis.usernameSecret.key, spec.controlStore.redis.passwordSecret.key, spec.controlStore.redis.tls.*.key", By: Expression,
		Refused: "a key of a Secret must consist of letters, digits, '-', '_' and '.', must not be '.', and must not begin with '..'", Remedy: "give such a key",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			for _, k := range secretKeys(c) {
				if len(validation.IsConfigMapKey(k.key.Key)) > 0 {
					bad.at(k.path.Child("key"), k.key.Key)
				}
			}
		},
	},
}

// volumeRules are about the volume behind a managed or an embedded store.
var volumeRules = []Rule{
	{
		ID: "store-storage", Field: "spec.controlStore.managedRedis.storage, spec.controlStore.embedded.storage", By: Expression,
		Refused: "storage of a control store must be at least 100Mi", Remedy: "raise it",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			for _, v := range storeVolumes(c) {
				if v.storage != nil && v.storage.Cmp(leastStore) < 0 {
					bad.at(v.path.Child("storage"), v.storage.String())
				}
			}
		},
	},
	{
		ID: "store-volume-fixed", Field: "spec.controlStore.managedRedis, spec.controlStore.embedded", By: Expression,
		Refused: "the volume of a control store is immutable", Remedy: "create a new cluster, or enlarge the PersistentVolumeClaim",
		change: func(before, after *v1beta1.ComputeCluster, bad report) {
			was := storeVolumes(before)
			for _, v := range storeVolumes(after) {
				if slices.ContainsFunc(was, func(o storeVolume) bool { return o.path.String() == v.path.String() && !o.same(&v) }) {
					bad.at(v.path, nil)
				}
			}
		},
	},
	{
		ID: "store-modes", Field: "spec.controlStore.embedded.accessModes", By: Expression,
		Refused: "ReadWriteOncePod must be the only access mode", Remedy: "use it alone, or leave it out",
		cluster: stored("embedded.accessModes", embedded(func(e *v1beta1.EmbeddedStore) bool {
			return len(e.AccessModes) > 1 && slices.Contains(e.AccessModes, corev1.ReadWriteOncePod)
		})),
	},
	{
		ID: "store-claim-name", Field: "spec.controlStore.embedded.existingClaim", By: Expression,
		Refused: "the name of a claim must be a DNS-1123 subdomain", Remedy: "give the name of a claim in the cluster's namespace",
		cluster: stored("embedded.existingClaim", embedded(func(e *v1beta1.EmbeddedStore) bool {
			return e.ExistingClaim != "" && !isObjectName(e.ExistingClaim)
		})),
	},
	{
		ID: "store-claim", Field: "spec.controlStore.embedded.existingClaim", By: Expression,
		Refused: "existingClaim must not be set with storage, storageClassName, accessModes or retain", Remedy: "set either existingClaim or the others",
		cluster: stored("embedded.existingClaim", embedded(func(e *v1beta1.EmbeddedStore) bool {
			return e.ExistingClaim != "" && (e.Storage != nil || e.StorageClassName != nil || len(e.AccessModes) > 0 || ptr.Deref(e.Retain, false))
		})),
	},
}

// storedPodRules are about what the operator adds to pods for the store. The variables are
// refused without a store too: they would make one that nobody manages.
var storedPodRules = []Rule{
	{
		ID: "store-variable", Field: "spec.podDefaults.env", By: Policy,
		Refused: setsStore, Remedy: useStore,
		Holds: "variables.cluster.?podDefaults.?env.orValue([]).all(e, !(e.name in " + list(storeVariables) + "))",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if d := c.Spec.PodDefaults; d != nil {
				each(bad, nil, "spec.podDefaults.env", d.Env, isStoreVariable)
			}
		},
	},
	{
		ID: "store-ray-variable", Field: "NODE.template.spec.containers[ray].env", By: Policy,
		Refused: setsStore, Remedy: useStore,
		Holds: "n.ray.?env.orValue([]).all(e, !(e.name in " + list(storeVariables) + "))",
		inner: inRay(func(n *node, bad report) { each(bad, n.rayPath, "env", n.ray.Env, isStoreVariable) }),
	},
	{
		ID: "store-volume", Field: "NODE.template.spec.volumes", By: Policy,
		Refused: "with a control store the operator adds the volumes " + strings.Join(storeNames, " and ") + " to the head", Remedy: "choose another name",
		Holds: noStore + "!n.volumes.exists(v, v in " + list(storeNames) + ")",
		inner: inStored(func(n *node, bad report) {
			each(bad, n.podPath(), "volumes", n.pod.Volumes, func(v *corev1.Volume) bool { return slices.Contains(storeNames, v.Name) })
		}),
	},
	{
		ID: "store-mount", Field: "NODE.template.spec.containers[ray].volumeMounts", By: Policy,
		Refused: "with a control store the operator mounts its volume at " + naming.PathStore + " of the head", Remedy: "choose another path",
		Holds: noStore + "n.ray.?volumeMounts.orValue([]).all(m, !m.mountPath.matches('" + storeMount.String() + "'))",
		inner: inStored(inRay(func(n *node, bad report) {
			each(bad, n.rayPath, "volumeMounts", n.ray.VolumeMounts, func(m *corev1.VolumeMount) bool { return storeMount.MatchString(m.MountPath) })
		})),
	},
}
