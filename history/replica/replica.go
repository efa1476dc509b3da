// Package replica orders the replicas of the archiver for a cluster.
//
// In: the UID of a cluster, and the addresses of all replicas. Out: the same addresses, the preferred one first. Collectors send to
// that one, and who reads asks it first, so both must be given the same addresses.
//
// It must never depend on the order in which the addresses were given. It is pure.
package replica

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"
)

// Order returns the replicas in the order in which a cluster has them, by rendezvous hashing.
func Order(cluster string, replicas []string) []string {
	weight := func(replica string) []byte {
		sum := sha256.Sum256([]byte(cluster + "\x00" + replica))
		return sum[:]
	}
	return slices.SortedFunc(slices.Values(replicas), func(a, b string) int {
		return cmp.Or(bytes.Compare(weight(b), weight(a)), cmp.Compare(a, b))
	})
}
