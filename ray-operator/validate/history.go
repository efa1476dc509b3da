package validate

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Expressions for where a node n has the directory of Ray's sessions: the mounts of the Ray container at it or above it, and whether
// the volume v is of the pod alone.
const (
	sessionPath   = "n.spec.?rayStartParams[?'temp-dir'].orValue('" + naming.PathSession + "')"
	sessionMounts = "n.ray.?volumeMounts.orValue([]).filter(m, (" + sessionPath + " + '/').startsWith(m.mountPath.endsWith('/') ? m.mountPath : m.mountPath + '/'))"
	ownVolume     = "(n.pod.?volumes.orValue([]).exists(v, v.name == m.name && (has(v.emptyDir) || has(v.ephemeral))) || n.claims.exists(c, c.?metadata.?name.orValue('') == m.name))"
)

// keepsOutputs reports whether a spec has its outputs kept, whatever an installation's default is.
func keepsOutputs(cluster *v1beta1.ComputeCluster) bool {
	return cluster.Spec.History != nil && cluster.Spec.History.Keep == v1beta1.HistoryOutputs
}

// isAtOrAbove reports whether a directory is a path or above it.
func isAtOrAbove(directory, path string) bool {
	return strings.HasPrefix(path+"/", strings.TrimSuffix(directory, "/")+"/")
}

// sessionPath returns the directory of Ray's sessions.
func (n *node) sessionPath() string {
	if given, isGiven := n.spec.RayStartParams["temp-dir"]; isGiven {
		return given
	}
	return naming.PathSession
}

// sharedSession returns the mount of the Ray container by which other pods share the directory of its sessions, nil where none does.
func (n *node) sharedSession() *corev1.VolumeMount {
	path := n.sessionPath()
	var found *corev1.VolumeMount
	for i := range n.ray.VolumeMounts {
		mount := &n.ray.VolumeMounts[i]
		if isAtOrAbove(mount.MountPath, path) && (found == nil || len(mount.MountPath) > len(found.MountPath)) {
			found = mount
		}
	}
	if found == nil || n.isOwnVolume(found.Name) {
		return nil
	}
	return found
}

// isOwnVolume reports whether a volume is of each pod alone.
func (n *node) isOwnVolume(name string) bool {
	isClaim := n.group != nil && slices.ContainsFunc(n.group.VolumeClaimTemplates, func(c corev1.PersistentVolumeClaim) bool { return c.Name == name })
	return isClaim || slices.ContainsFunc(n.pod.Volumes, func(v corev1.Volume) bool {
		return v.Name == name && (v.EmptyDir != nil || v.Ephemeral != nil)
	})
}

// historyRules are about the collector in the pods of a cluster.
var historyRules = []Rule{
	{
		ID: "history-container", Field: "NODE.template.spec", By: Policy,
		Refused: "a container must not be named " + v1beta1.ContainerHistory + ", because the operator adds one with this name", Remedy: "choose another name",
		Holds: "!(n.containers + n.inits).exists(c, c.name == '" + v1beta1.ContainerHistory + "')",
		inner: func(n *node, bad report) {
			n.containers(func(path *field.Path, c *corev1.Container) {
				if c.Name == v1beta1.ContainerHistory {
					bad.at(path.Child("name"), c.Name)
				}
			})
		},
	},
	{
		ID: "history-mount", Field: "NODE.template.spec.containers[*].volumeMounts", By: Policy,
		Refused: "the volume " + naming.VolumeHistory + " must be mounted by the collector alone, whose token for the archive it holds", Remedy: "take the mount out",
		Holds: "(n.containers + n.inits).all(c, c.?volumeMounts.orValue([]).all(m, m.name != '" + naming.VolumeHistory + "'))",
		inner: func(n *node, bad report) {
			n.containers(func(path *field.Path, c *corev1.Container) {
				each(bad, path, "volumeMounts", c.VolumeMounts, func(m *corev1.VolumeMount) bool { return m.Name == naming.VolumeHistory })
			})
		},
	},
	{
		ID: "history-shared", Field: "NODE.template.spec.containers[ray].volumeMounts", By: Policy,
		Refused: "with history.keep Outputs a volume at or above the directory of Ray's sessions (" + naming.PathSession + ", or temp-dir) must not be shared with other pods, whose files the collector would send too",
		Remedy:  "use an emptyDir or a volumeClaimTemplate there, or set history.keep to Records",
		Holds: fmt.Sprintf("variables.cluster.?history.?keep.orValue('') != '%s' || [%s].all(all, all.all(m, %s || all.exists(o, size(o.mountPath) > size(m.mountPath))))",
			v1beta1.HistoryOutputs, sessionMounts, ownVolume),
		inner: inRay(func(n *node, bad report) {
			if mount := n.sharedSession(); keepsOutputs(n.cluster) && mount != nil {
				bad.at(n.rayPath.Child("volumeMounts"), mount.MountPath)
			}
		}),
	},
	{
		ID: "history-shared-volume", Field: "spec.sharedVolumes", By: Policy,
		Refused: "with history.keep Outputs a shared volume must not be at or above the directory of Ray's sessions (" + naming.PathSession + ", or temp-dir)",
		Remedy:  "choose another mountPath, or set history.keep to Records",
		Holds: fmt.Sprintf("variables.cluster.?history.?keep.orValue('') != '%s' || !%s.exists(v, (%s + '/').startsWith(v.mountPath + '/'))",
			v1beta1.HistoryOutputs, sharedVolumes, sessionPath),
		node: func(n *node, bad report) {
			if keepsOutputs(n.cluster) {
				each(bad, field.NewPath("spec"), "sharedVolumes", n.cluster.Spec.SharedVolumes, func(v *v1beta1.SharedVolume) bool { return isAtOrAbove(v.MountPath, n.sessionPath()) })
			}
		},
	},
}
