package cluster

import (
	"slices"
	"strconv"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// missingClaims returns those that a slot still needs; going tells that one is on its way out.
func missingClaims(s situation, group *v1beta1.WorkerGroup, slot int) (missing []*corev1.PersistentVolumeClaim, going bool) {
	for i := range group.VolumeClaimTemplates {
		claim := desired.Claim(s.cluster, group, slot, i)
		there, ok := s.seen.Claims[claim.Name]
		switch {
		case !ok:
			missing = append(missing, claim)
		case there.DeletionTimestamp != nil:
			going = true
		}
	}
	return missing, going
}

// unneededClaims returns the claims of slots that a group has no use for: more than it wants,
// and no pod is in them or about to be.
func unneededClaims(b basis, m *members, replicas int, created []int) (unneeded []*corev1.PersistentVolumeClaim) {
	if ptr.Deref(m.group.Suspend, false) || len(m.group.VolumeClaimTemplates) == 0 {
		return nil
	}
	needed := map[int]bool{}
	for slot := range m.bySlot {
		needed[slot] = true
	}
	for _, slot := range created {
		needed[slot] = true
	}
	for slot := 0; len(needed) < replicas*m.hosts; slot++ {
		needed[slot] = true
	}
	for _, claim := range b.seen.claimsOf(m.group.Name) {
		if slot, err := strconv.Atoi(claim.Labels[v1beta1.LabelSlot]); err != nil || !needed[slot] {
			unneeded = append(unneeded, claim)
		}
	}
	return unneeded
}

// isOrphaned reports whether a claim is of a group that is gone from the spec, and so are its pods.
func isOrphaned(s situation, claim *corev1.PersistentVolumeClaim) bool {
	group := claim.Labels[v1beta1.LabelGroup]
	return claim.DeletionTimestamp == nil && naming.FindGroup(s.cluster, group) == nil &&
		!slices.ContainsFunc(s.seen.Pods, func(worker Pod) bool { return worker.At.Group == group })
}
