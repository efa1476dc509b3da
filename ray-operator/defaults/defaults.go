// Package defaults has the sizes that a Ray container gets where a spec says nothing of them.
//
// In: what is said. Out: memory, object store and shared memory, which pods are built with and rules are judged by.
//
// It is pure, and it never looks at a spec or a pod.
package defaults

import "k8s.io/apimachinery/pkg/api/resource"

// memory is that of a head and of a worker. Measured on Ray 2.60: a head keeps about 1.2 GiB resident, a worker 0.45 GiB,
// before any task.
var memory = map[bool]resource.Quantity{true: resource.MustParse("4Gi"), false: resource.MustParse("2Gi")}

// Memory returns the memory of a Ray container of which nothing else is said.
func Memory(isHead bool) resource.Quantity { return memory[isHead].DeepCopy() }

// Shares of the memory limit: the object store gets the 30 % that Ray itself takes
// by default, up to Ray's own default bound of 200 GB, and /dev/shm a tenth more than
// the object store. Ray compares the two when it starts: where /dev/shm is smaller it
// falls back to a file on disk, and above 10 GB it does not start. Ray refuses an
// object store below 75 MiB.
const (
	objectStorePercent = 30
	sharedPercent      = 110
	minObjectStore     = 75 << 20
	maxObjectStore     = 200_000_000_000
)

// ObjectStore returns the size of the object store in bytes for a memory limit in bytes.
func ObjectStore(memory int64) int64 {
	return min(max(memory/100*objectStorePercent, minObjectStore), maxObjectStore)
}

// SharedMemory returns the size of /dev/shm in bytes for an object store in bytes.
func SharedMemory(store int64) int64 { return store / 100 * sharedPercent }

// ObjectStoreOf returns an object store in bytes that makes /dev/shm as large as wanted.
func ObjectStoreOf(shared int64) int64 { return shared/sharedPercent*100 + 100 }
