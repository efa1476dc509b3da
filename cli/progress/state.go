package progress

import (
	"fmt"
	"strings"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/apiserver/phases"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// State returns in words how far an object is: the phases that are done, the one that it is in, counts, what that one
// waits for, and what helps. Nothing in it changes with time alone.
func State(in explain.Input) string {
	var done int
	var names []string
	waitsFor := ""
	all := phases.Of(in)
	for _, phase := range all {
		switch phase.State {
		case phases.Done:
			done++
		case phases.Current, phases.Failed:
			names = append(names, phase.Name+suffix(phase.State))
			waitsFor = phase.WaitsFor
		}
	}
	if len(all) == 0 { // a schedule has none
		return explain.Headline(in.Object).Message
	}
	text := fmt.Sprintf("%d/%d", done, len(all))
	if len(names) == 0 && done > 0 {
		names = append(names, all[done-1].Name)
	}
	text += " " + strings.Join(names, " ")
	if counts := counts(in); counts != "" {
		text += ", " + counts
	}
	if waitsFor == "" {
		return text
	}
	if remedy := phases.Obstacle(in).Remedy; remedy != "" {
		waitsFor += ". " + remedy
	}
	return text + ": " + waitsFor
}

func suffix(state string) string {
	if state == phases.Failed {
		return " failed"
	}
	return ""
}

// counts says how many workers a cluster has of those that it wants, and the shares of a service's versions.
func counts(in explain.Input) string {
	switch object := in.Object.(type) {
	case *v1beta1.ComputeCluster:
		if workers := object.Status.Workers; workers.Desired > 0 {
			return fmt.Sprintf("%d of %d workers", workers.Ready, workers.Desired)
		}
	case *v1beta1.ClusterJob:
		if object.Status.Attempt > 1 {
			return fmt.Sprintf("attempt %d", object.Status.Attempt)
		}
	case *v1beta1.ClusterService:
		if active, next := object.Status.Active, object.Status.Candidate; next != nil && active != nil {
			return fmt.Sprintf("version %d has %d %%, version %d %d %%", active.Revision, active.TrafficPercent, next.Revision,
				next.TrafficPercent)
		}
	}
	return ""
}
