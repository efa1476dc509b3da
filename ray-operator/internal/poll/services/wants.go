package services

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// Wants is what all services together want of one head. What they want deployed is kept apart.
type Wants struct {
	// Parts are the configurations to deploy, by service; a service that only reads has none.
	Parts map[types.NamespacedName]*Config
	// Probes, Close and Every are as in Want.
	Probes []Probe
	Close  headclient.Closing
	Every  time.Duration
}

// Together returns what services together want of one head. A part that nobody has stated yet, as after a restart of the
// operator, takes nothing away: what the head shows beside the parts stays.
func Together(wanted map[types.NamespacedName]Want) Wants {
	whole := Wants{Parts: map[types.NamespacedName]*Config{}}
	for _, service := range inOrder(wanted) {
		want := wanted[service]
		if whole.Every == 0 || want.Every > 0 && want.Every < whole.Every {
			whole.Every = want.Every
		}
		for _, probe := range want.Probes {
			if !slices.Contains(whole.Probes, probe) {
				whole.Probes = append(whole.Probes, probe)
			}
		}
		whole.Close = joinClosings(whole.Close, want.Close)
		if want.Config != nil {
			part := *want.Config
			part.Alone = part.Alone && len(wanted) == 1
			whole.Parts[service] = &part
		}
	}
	for service, part := range whole.Parts {
		part.Drop = slices.DeleteFunc(slices.Clone(part.Drop), func(name string) bool { return namedBy(whole.Parts, service, name) })
	}
	return whole
}

// joinClosings returns what closes the connections of both: jobs are named by their times, and the later one closes what the
// earlier one would, with all the pods that leave.
func joinClosings(a, b headclient.Closing) headclient.Closing {
	if b.ID > a.ID {
		a, b = b, a
	}
	if len(b.Leaving) > 0 {
		a.Leaving = append(slices.Clone(a.Leaving), b.Leaving...)
		slices.Sort(a.Leaving)
		a.Leaving = slices.Compact(a.Leaving)
	}
	return a
}

// inOrder returns services in the order of their names.
func inOrder[V any](of map[types.NamespacedName]V) []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(of), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
}

// namedBy reports whether another service's part names an application: one that asks for it wins
// over one that gives it up.
func namedBy(parts map[types.NamespacedName]*Config, but types.NamespacedName, name string) bool {
	for service, part := range parts {
		if _, names := part.Applications[name]; names && service != but {
			return true
		}
	}
	return false
}
