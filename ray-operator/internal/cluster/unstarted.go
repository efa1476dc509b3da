package cluster

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/scale"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// isUnstarted reports whether a pod is there to stay and its Ray container never ran, as where its image is misspelt or
// no node has room.
func (p Pod) isUnstarted() bool {
	return p.counts() && p.Status.Phase == corev1.PodPending && !p.hasRun()
}

// isCorrected reports whether a pod never started and the spec has changed since it was built. Nothing is lost with it,
// so it is replaced under every upgrade strategy.
func (i intents) isCorrected(p Pod) bool { return p.isUnstarted() && i.isOld(p) }

// correctHead begins an epoch with another head where the one that is there is corrected. Nobody has joined that head:
// workers wait for the next one. Where some of these run and are out of date, all are made again.
func (p *planner) correctHead() bool {
	if p.head == nil || !p.intents.isCorrected(*p.head) {
		return false
	}
	p.keepsSession = !slices.ContainsFunc(p.intents.old(p.seen.Pods, p.Turn), func(old Pod) bool { return !old.isUnstarted() })
	p.Unstarted = append(p.Unstarted, *p.head)
	p.beginEpoch(telemetry.Event{Finding: reason.NeverStarted.Of("head pod " + p.head.Name), Action: "Replace"})
	return true
}

// correct finds the replicas with a worker that is corrected. One with several hosts is of use only as a whole, so all of
// it leaves. A slot with claims is waited for.
func (m *members) correct(judged intents) {
	corrected := map[int]bool{}
	for slot, worker := range m.bySlot {
		if !judged.isCorrected(worker) {
			continue
		}
		corrected[slot/m.hosts] = true
		if len(m.group.VolumeClaimTemplates) > 0 {
			m.vacating++
		}
	}
	for i := range m.slots {
		if corrected[m.slots[i].Index/m.hosts] {
			m.slots[i].Retire = true
		}
	}
}

// retireAll has workers leave that must: those that are corrected at once, the others as planned.
func (p *planner) retireAll(m *members, slots []scale.Slot) {
	var unstarted []Pod
	for _, slot := range slots {
		worker := m.bySlot[slot.Index]
		if p.intents.isCorrected(worker) {
			unstarted = append(unstarted, worker)
			continue
		}
		p.exit(worker, cmp.Or(p.retire(worker), p.companion(m, slot.Index)))
	}
	for i, worker := range unstarted {
		removal := Removal{Pod: worker, Why: "it never started, and its spec was corrected"}
		if i == 0 { // once for all of them
			finding := reason.NeverStarted.Of(fmt.Sprintf("%d of the workers of %s", len(unstarted), m.group.Name))
			removal.Event = &telemetry.Event{Finding: finding, Related: worker.Pod, Action: "Replace"}
		}
		p.Delete = append(p.Delete, removal)
	}
	p.Unstarted = append(p.Unstarted, unstarted...)
}
