package validate

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

var (
	// The least that the schema takes of a store's volume and of a managed Redis' memory.
	leastRedis = resource.MustParse("64Mi")

	storeMount = regexp.MustCompile(`^/+var/+lib/+heliostat/+store(/.*)?$`)

	// storeNames are the names of the volumes of a head with a control store.
	storeNames = []string{naming.VolumeStore, naming.VolumeStoreTLS}

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

// restored asks about two states of a store, and reports the field below it where the answer is yes. A store that comes or goes
// is the matter of another rule.
func restored(child string, wrong func(before, after *v1beta1.ControlStore) bool) Rule {
	return Rule{change: func(before, after *v1beta1.ComputeCluster, bad report) {
		if was, is := before.Spec.ControlStore, after.Spec.ControlStore; was != nil && is != nil && wrong(was, is) {
			bad.at(below(storePath, child), nil)
		}
	}}
}

func hasOtherNamespace(before, after *v1beta1.ControlStore) bool {
	return before.Redis != nil && after.Redis != nil && before.Redis.Namespace != after.Redis.Namespace
}

func storeChange(before, after *v1beta1.ComputeCluster, bad report) {
	if (before.Spec.ControlStore == nil) != (after.Spec.ControlStore == nil) {
		bad.at(storePath, nil)
	}
}

func volumeChange(before, after *v1beta1.ComputeCluster, bad report) {
	was := storeVolumes(before)
	for _, v := range storeVolumes(after) {
		if slices.ContainsFunc(was, func(o storeVolume) bool { return o.path.String() == v.path.String() && !o.same(&v) }) {
			bad.at(v.path, nil)
		}
	}
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

// controlStoreRules are about what the operator adds to pods for the store. The variables are
// refused without a store too: they would make one that nobody manages.
var controlStoreRules = []Rule{
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
