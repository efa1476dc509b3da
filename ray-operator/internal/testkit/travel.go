package testkit

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// travel tells the story and then starts, at revisions of a cluster, a job or a pod, an operator
// that sees the world as it was then: all of it, or only its clusters, its jobs, or its pods.
// What it does must do no harm, and once it sees the present, all must be as at the end
// of the story. It gives how many such visits there were.
func (s Scenario) travel(t *testing.T, of choice, want state) (visited int64) {
	t.Helper()
	w := NewWorld(t)
	w.trouble.forgets = s.AnyOutput
	s.Run(w)
	story := w.revisions[:len(w.revisions):len(w.revisions)]
	all := worthVisiting(story)
	step := 1
	if of == samplePoints {
		step = (len(all) + visits - 1) / visits
	}
	for i := 0; i < len(all); i += step {
		visited++
		w.visit(all[i])
		if diff := want.diff(s.end(w)); diff != "" {
			event := story[all[i].revision]
			t.Fatalf("an operator that saw %q as of revision %d (%s %T %s) changed the end (- before, + after):\n%s",
				all[i].kind, all[i].revision, event.Type, event.Object, event.Object.GetName(), diff)
		}
	}
	return visited
}

// worthVisiting are the visits that a story is worth.
func worthVisiting(story []Event) []visit {
	var all []visit
	for _, kind := range []string{"", clusterKind, jobKind, serviceKind, "Pod"} {
		for i, event := range story {
			if worthAVisit(event, kind) {
				all = append(all, visit{kind, i})
			}
		}
	}
	return all
}

// visit is a look at a kind of objects, or for "" at all, as of a revision.
type visit struct {
	kind     string
	revision int
}

func worthAVisit(event Event, kind string) bool {
	switch event.Object.(type) {
	case *v1beta1.ComputeCluster, *v1beta1.ClusterJob, *v1beta1.ClusterService, *corev1.Pod:
		return kind == "" || kindOf(event.Object) == kind
	default:
		return false
	}
}

// visit starts an operator whose cache holds the past of what is visited, and the present
// of all else.
func (w *World) visit(at visit) {
	w.Helper()
	behind := late{kind: at.kind}
	for _, event := range w.revisions[at.revision+1:] {
		if at.kind == "" || kindOf(event.Object) == at.kind {
			behind.by++
		}
	}
	w.view = newView(labelled)
	for _, event := range w.revisions {
		w.view.push(event)
	}
	w.operator.start()
	w.Ray.restart()
	w.Scaler.restart()
	w.Jobs.restart()
	w.Serving.restart()
	w.History.past = true
	w.wake(w.view.deliver(behind))
	for range 2 {
		for _, request := range w.waiting() {
			w.pass(request)
		}
		w.Jobs.step()
		w.Serving.step()
	}
	w.History.past = false
	w.wake(w.view.deliver(late{}))
	w.rest()
}
