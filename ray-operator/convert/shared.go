package convert

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// pathShared is where Ray keeps its objects, in a volume that the operator adds.
const pathShared = "/dev/shm"

// sharedPart is the volume at /dev/shm of a node on its way.
type sharedPart struct{ *nodePart }

// takeShared takes a volume at /dev/shm out of the Ray container, and keeps its size by objectStoreMemory: the operator
// makes /dev/shm a tenth larger than that.
func (n sharedPart) takeShared(path string, pod *corev1.PodSpec) {
	ray := &pod.Containers[0]
	isShared := func(m corev1.VolumeMount) bool { return strings.TrimRight(m.MountPath, "/") == pathShared }
	at := slices.IndexFunc(n.from.Template.Spec.Containers[0].VolumeMounts, isShared)
	if at < 0 {
		return
	}
	name := n.from.Template.Spec.Containers[0].VolumeMounts[at].Name
	wanted, limited := sizeOf(pod, name)
	ray.VolumeMounts = slices.DeleteFunc(ray.VolumeMounts, isShared)
	path = fmt.Sprintf("%s.containers[0].volumeMounts[%d]", path, at)
	if dropUnmounted(pod, name); hasVolume(pod, name) {
		n.change(path, n.to+".objectStoreMemory", "the operator adds the volume at "+pathShared+" of the Ray container, which other "+
			"containers do not see; let them exchange files with Ray in another volume")
		return
	}
	memory, sized := n.memory(ray)
	switch {
	case !sized:
		n.change(path, n.to+".objectStoreMemory", "without memory in resources Ray gets no volume at "+pathShared+"; set it")
	case !limited:
		n.change(path, n.to+".objectStoreMemory", fmt.Sprintf("%s had no limit of its own, and has %s now, a tenth more than "+
			"objectStoreMemory; set that for more", pathShared, quantityOf(n.shared(memory))))
	case n.shared(memory) >= wanted:
		n.adjust(path, n.to+".objectStoreMemory", fmt.Sprintf("the operator adds a volume at %s, a tenth larger than "+
			"objectStoreMemory: here %s", pathShared, quantityOf(n.shared(memory))))
	default:
		n.growStore(path, wanted, memory)
	}
}

// growStore sets an object store by which /dev/shm is as large as before, as far as memory allows that.
func (n sharedPart) growStore(path string, wanted, memory int64) {
	to := n.to + ".objectStoreMemory"
	if store := validate.StoreForShared(wanted, memory); validate.SharedMemory(memory, store) > n.shared(memory) {
		n.made.ObjectStoreMemory = resource.NewQuantity(store, resource.BinarySI)
	}
	if n.shared(memory) < wanted {
		n.change(path, to, fmt.Sprintf("%s had %s and has %s now, a tenth more than objectStoreMemory, which may be 80 %% of memory at "+
			"most; raise memory if programs need more", pathShared, quantityOf(wanted), quantityOf(n.shared(memory))))
		return
	}
	n.change(path, to, fmt.Sprintf("objectStoreMemory becomes %s, so that %s, a tenth larger, has %s as before; lower it if Ray's "+
		"objects must not fill that", n.made.ObjectStoreMemory, pathShared, quantityOf(wanted)))
}

// shared is the size of /dev/shm in bytes.
func (n sharedPart) shared(memory int64) int64 {
	var store int64
	if n.made.ObjectStoreMemory != nil {
		store = n.made.ObjectStoreMemory.Value()
	}
	return validate.SharedMemory(memory, store)
}

// memory is that of the Ray container in bytes: the default where it has no resources.
func (n sharedPart) memory(ray *corev1.Container) (int64, bool) {
	if len(ray.Resources.Limits)+len(ray.Resources.Requests) == 0 {
		size := resource.MustParse(n.defaultMemory())
		return size.Value(), true
	}
	memory, sized := amount(ray, corev1.ResourceMemory)
	return memory.Value(), sized
}

// quantityOf writes bytes as Kubernetes does, in whole MiB.
func quantityOf(bytes int64) string {
	return resource.NewQuantity(bytes>>20<<20, resource.BinarySI).String()
}

// sizeOf returns the limit of a volume in bytes, if it is a directory that has one.
func sizeOf(pod *corev1.PodSpec, name string) (int64, bool) {
	for _, volume := range pod.Volumes {
		if volume.Name == name && volume.EmptyDir != nil && volume.EmptyDir.SizeLimit != nil {
			return volume.EmptyDir.SizeLimit.Value(), true
		}
	}
	return 0, false
}

// dropUnmounted takes volumes out that no container mounts any more.
func dropUnmounted(pod *corev1.PodSpec, names ...string) {
	isMounted := func(name string) bool {
		return slices.ContainsFunc(slices.Concat(pod.InitContainers, pod.Containers), func(c corev1.Container) bool {
			mounts := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == name })
			return mounts || slices.ContainsFunc(c.VolumeDevices, func(d corev1.VolumeDevice) bool { return d.Name == name })
		})
	}
	pod.Volumes = slices.DeleteFunc(pod.Volumes, func(v corev1.Volume) bool { return slices.Contains(names, v.Name) && !isMounted(v.Name) })
	if len(pod.Volumes) == 0 {
		pod.Volumes = nil
	}
	for i := range pod.Containers {
		if len(pod.Containers[i].VolumeMounts) == 0 {
			pod.Containers[i].VolumeMounts = nil
		}
	}
}

func hasVolume(pod *corev1.PodSpec, name string) bool {
	return slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == name })
}

// renameVolumes gives volumes other names where the operator adds one of theirs.
func (n *nodePart) renameVolumes(path string, pod *corev1.PodSpec) {
	for i := range pod.Volumes {
		name := pod.Volumes[i].Name
		if !slices.Contains(validate.OwnVolumes(), name) {
			continue
		}
		other := name + "-own"
		for hasVolume(pod, other) {
			other += "-own"
		}
		pod.Volumes[i].Name = other
		for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
			for j := range containers {
				for k := range containers[j].VolumeMounts {
					if mount := &containers[j].VolumeMounts[k]; mount.Name == name {
						mount.Name = other
					}
				}
			}
		}
		at := slices.IndexFunc(n.from.Template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
		n.adjust(fmt.Sprintf("%s.volumes[%d].name", path, at), n.to+".template", "the operator adds a volume of this name, so that yours "+
			"becomes "+other)
	}
}

// defaultMemory is what a Ray container gets without resources.
func (n *nodePart) defaultMemory() string {
	if n.isHead {
		return "4Gi"
	}
	return "2Gi"
}
