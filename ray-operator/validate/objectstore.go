package validate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/defaults"
)

// mostObjects is how much of a container's memory the object store may take, in percent: /dev/shm is a tenth larger, and
// Ray's own processes need the rest.
const mostObjects = 80

// sizedMemory returns the memory of a node's Ray container: that of its template, else that of size, else the default.
// There is none where the template gives resources without memory.
func (n *node) sizedMemory() (resource.Quantity, bool) {
	if memory, given := n.memory(); given {
		return memory, true
	}
	if n.ray != nil && len(n.ray.Resources.Requests)+len(n.ray.Resources.Limits) > 0 {
		return resource.Quantity{}, false
	}
	if memory, given := n.spec.Size[corev1.ResourceMemory]; given {
		return memory, true
	}
	return defaults.Memory(n.group == nil), true
}

// SharedMemory returns how large the operator's /dev/shm is for the memory of a node's Ray container and its
// objectStoreMemory, 0 where that is not given. All are in bytes.
func SharedMemory(memory, store int64) int64 {
	if store == 0 {
		store = defaults.ObjectStore(memory)
	}
	return defaults.SharedMemory(store)
}

// StoreForShared returns an objectStoreMemory in whole MiB that makes /dev/shm as large as wanted, or the largest that the
// memory of the Ray container allows. All are in bytes.
func StoreForShared(wanted, memory int64) int64 {
	const mebibyte = 1 << 20
	least := defaults.ObjectStoreOf(wanted)/mebibyte + 1
	return min(least, memory/100*mostObjects/mebibyte) * mebibyte
}

// objectStoreRules are about the size of Ray's object store.
var objectStoreRules = []Rule{
	{
		ID: "object-store-most", Field: "NODE.objectStoreMemory", By: Policy,
		Refused: fmt.Sprintf("the object store must have at most %d %% of the container's memory, which must be set", mostObjects),
		Remedy:  "lower it, or raise memory",
		Holds: fmt.Sprintf("!has(n.spec.objectStoreMemory) || "+
			"[n.ray.?resources.?limits.?memory.or(n.ray.?resources.?requests.?memory).or("+
			"size(n.ray.?resources.?limits.orValue({})) + size(n.ray.?resources.?requests.orValue({})) > 0 ? optional.none() : "+
			"n.spec.?size.?memory.or(optional.of(dyn(n.head ? '%s' : '%s'))))].all(m, m.hasValue() && "+
			"quantity(string(n.spec.objectStoreMemory)).asApproximateFloat() * 100.0 <= quantity(string(m.value())).asApproximateFloat() * %d.0)",
			memoryText(true), memoryText(false), mostObjects),
		node: func(n *node, bad report) {
			store := n.spec.ObjectStoreMemory
			if store == nil {
				return
			}
			memory, known := n.sizedMemory()
			if !known || store.AsApproximateFloat64()*100 > memory.AsApproximateFloat64()*mostObjects {
				bad.at(n.path.Child("objectStoreMemory"), store.String())
			}
		},
	},
}

func memoryText(isHead bool) string {
	memory := defaults.Memory(isHead)
	return memory.String()
}
