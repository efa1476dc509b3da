package pod

import (
	"cmp"
	"slices"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// intentV1 is version 1 of the normal form of what a user wants of a pod. It holds the
// user's words and none of the operator's defaults, so that a new operator with new
// defaults finds no pod out of date. It may gain a field that is left out where the user
// says nothing of it, which changes no hash of before; any other change gets a later
// version, and pods keep being judged by the version they carry.
type intentV1 struct {
	RayVersion      string
	Image           string            `json:",omitempty"`
	ImagePullPolicy corev1.PullPolicy `json:",omitempty"`
	Node            v1beta1.NodeSpec

	PodDefaults     *v1beta1.PodDefaults                        `json:",omitempty"`
	Unauthenticated bool                                        `json:",omitempty"`
	TokenSecret     string                                      `json:",omitempty"`
	Encrypted       bool                                        `json:",omitempty"`
	EncryptionSize  corev1.ResourceList                         `json:",omitempty"`
	Scheduler       *v1beta1.Scheduler                          `json:",omitempty"`
	HostsPerReplica int                                         `json:",omitempty"` // when above 1
	Claims          map[string]corev1.PersistentVolumeClaimSpec `json:",omitempty"` // by the template's name
	SharedVolumes   []sharedIntent                              `json:",omitempty"` // in the order of their names
	History         *historyIntent                              `json:",omitempty"`
	Autoscaler      *autoscalerIntent                           `json:",omitempty"` // of heads
	Store           *storeIntent                                `json:",omitempty"` // of heads
}

// autoscalerIntent is what of autoscaling is part of a head's pod.
type autoscalerIntent struct {
	Size            corev1.ResourceList     `json:",omitempty"`
	Image           string                  `json:",omitempty"`
	Env             []corev1.EnvVar         `json:",omitempty"`
	SecurityContext *corev1.SecurityContext `json:",omitempty"`
}

// historyIntent is what of history is part of a pod. How long files are kept is no part of it.
type historyIntent struct {
	Keep v1beta1.HistoryKeep `json:",omitempty"`
	Size corev1.ResourceList `json:",omitempty"`
}

// sharedIntent is what of a shared volume a pod mounts. How large a claim of ours is and who keeps it are no part of it.
type sharedIntent struct {
	Name, MountPath string
	ReadOnly        bool   `json:",omitempty"`
	Claim           string `json:",omitempty"` // the user's own
}

// storeIntent is what of a control store a running head depends on. How large the store is
// and what becomes of it later are no part of it.
type storeIntent struct {
	Redis    *v1beta1.GivenRedis `json:",omitempty"`
	Managed  bool                `json:",omitempty"`
	Embedded bool                `json:",omitempty"`
	Claim    string              `json:",omitempty"` // the user's own
}

// Intent is the versioned hash of what the user wants of a group's pods, or of the
// head where group is empty. It is empty for a group that the spec does not name.
func Intent(cluster *v1beta1.ComputeCluster, group string) string {
	spec := &cluster.Spec
	form := intentV1{RayVersion: spec.RayVersion, Image: spec.Image, ImagePullPolicy: spec.ImagePullPolicy, Node: spec.Head.NodeSpec}
	form.access(spec)
	if form.Encrypted, form.Scheduler = naming.EncryptionRequired(cluster), spec.Scheduler; form.Encrypted {
		form.EncryptionSize = spec.Network.EncryptionSize
	}
	if given := spec.Autoscaling; group == "" && given != nil {
		form.Autoscaler = &autoscalerIntent{Size: given.Size, Image: given.Image, Env: given.Env, SecurityContext: given.SecurityContext}
	}
	if group == "" && spec.ControlStore != nil {
		form.store(spec.ControlStore)
	}
	if group != "" {
		found := naming.FindGroup(cluster, group)
		if found == nil {
			return ""
		}
		form.Node = found.NodeSpec
		if found.Image != "" {
			form.Image = found.Image
		}
		form.group(found)
	}
	hash, _ := naming.IntentHash("v1", form) // API types always marshal: they came from JSON
	return hash
}

// access takes what concerns all pods of a cluster alike. Two ways to say the same are
// the same: an empty podDefaults is none, and mode Token is the default.
func (form *intentV1) access(spec *v1beta1.ComputeClusterSpec) {
	if !equality.Semantic.DeepEqual(spec.PodDefaults, &v1beta1.PodDefaults{}) {
		form.PodDefaults = spec.PodDefaults
	}
	if given := spec.Authentication; given != nil {
		form.Unauthenticated = given.Mode == v1beta1.AuthenticationDisabled
		form.TokenSecret = given.SecretName
	}
	if given := spec.History; given != nil && (given.Keep != "" || len(given.Size) > 0) {
		form.History = &historyIntent{Keep: given.Keep, Size: given.Size}
	}
	for i := range spec.SharedVolumes {
		given := &spec.SharedVolumes[i]
		form.SharedVolumes = append(form.SharedVolumes, sharedIntent{given.Name, given.MountPath, ptr.Deref(given.ReadOnly, false), given.ClaimName})
	}
	slices.SortFunc(form.SharedVolumes, func(a, b sharedIntent) int { return cmp.Compare(a.Name, b.Name) })
}

// store takes what concerns a head with a control store. A tls that says nothing is none. The name of the server is the
// operator's to compare.
func (form *intentV1) store(given *v1beta1.ControlStore) {
	form.Store = &storeIntent{Redis: given.Redis, Managed: given.ManagedRedis != nil, Embedded: given.Embedded != nil}
	if given.Embedded != nil {
		form.Store.Claim = given.Embedded.ExistingClaim
	}
	if redis := given.Redis; redis != nil && redis.TLS != nil {
		plain, tls := *redis, *redis.TLS
		tls.ServerName = ""
		if plain.TLS = &tls; tls == (v1beta1.RedisTLS{}) {
			plain.TLS = nil
		}
		form.Store.Redis = &plain
	}
}

// group takes what only workers have.
func (form *intentV1) group(group *v1beta1.WorkerGroup) {
	if hosts := Hosts(group); hosts > 1 {
		form.HostsPerReplica = hosts
	}
	for i := range group.VolumeClaimTemplates {
		if form.Claims == nil {
			form.Claims = map[string]corev1.PersistentVolumeClaimSpec{}
		}
		form.Claims[group.VolumeClaimTemplates[i].Name] = group.VolumeClaimTemplates[i].Spec
	}
}
