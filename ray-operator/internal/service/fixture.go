package service

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pass"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// fix chooses what to do about an object of a fixed name; wanted is nil where there must be
// none.
func (p *planner) fix(kind string, wanted client.Object) {
	p.fixTo(kind, p.seen.Standing[kind], wanted, pass.Holds)
}

// fixTo chooses what to do about what stands where something is wanted; holds reports whether the
// one is as the other.
func (p *planner) fixTo(kind string, standing Standing, wanted client.Object, holds func(seen, wanted client.Object) bool) {
	switch {
	case standing.Foreign && wanted != nil:
		conflict := reason.NameConflict.Of(kind + " " + wanted.GetName())
		p.Conflict = &conflict
		if kind == kindService { // nobody could reach it
			p.Finding, p.Stalled, p.Serving = conflict, true, false
		}
		p.lookAgain() // nobody tells of what is not ours
	case standing.Foreign:
	case wanted == nil && standing.Object != nil:
		p.Fixtures = append(p.Fixtures, Fixing{Seen: standing.Object})
	case wanted == nil:
	case standing.Object == nil:
		p.Fixtures = append(p.Fixtures, Fixing{Wanted: pass.Marked(wanted)})
	default:
		if marked := pass.Marked(wanted); !holds(standing.Object, marked) {
			p.Fixtures = append(p.Fixtures, Fixing{Wanted: marked, Seen: standing.Object})
		}
	}
}

// budget keeps evictions from taking more than one of the pods that serve at a time. It
// follows how many there are.
func (p *planner) budget() {
	opened := map[*corev1.Pod]bool{}
	for _, cluster := range p.seen.Clusters {
		for _, pod := range cluster.Pods {
			if p.opened(pod) && pod.DeletionTimestamp == nil {
				opened[pod] = true
			}
		}
	}
	for _, pod := range p.Open {
		opened[pod] = true
	}
	for _, pod := range p.Close {
		delete(opened, pod)
	}
	if len(opened) == 0 {
		p.fix(kindBudget, nil)
		return
	}
	p.fix(kindBudget, desired.ServeBudget(p.service, len(opened)))
}
