package serving

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Board keeps what several services want of one cluster, because Serve is asked for all
// applications at once. A part that nobody has stated yet, as after a restart of the operator,
// takes nothing away: what the head shows beside the parts stays.
type Board struct {
	source Source

	mu sync.Mutex
	// wants are what is wanted of each cluster, by service.
	wants map[types.NamespacedName]map[types.NamespacedName]Want
}

// NewBoard returns a Board for a source.
func NewBoard(source Source) *Board {
	return &Board{source: source, wants: map[types.NamespacedName]map[types.NamespacedName]Want{}}
}

// Want says what a service wants of a cluster, in place of what it said before. It never
// blocks; saying the same again changes nothing.
func (b *Board) Want(cluster, service types.NamespacedName, want Want) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.wants[cluster] == nil {
		b.wants[cluster] = map[types.NamespacedName]Want{}
	}
	b.wants[cluster][service] = want
	b.source.Want(cluster, together(b.wants[cluster], want.At))
}

// Forget ends what a service wants of all clusters but those that are kept. It takes no
// application away.
func (b *Board) Forget(service types.NamespacedName, keep ...types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for cluster, wants := range b.wants {
		if _, is := wants[service]; !is || slices.Contains(keep, cluster) {
			continue
		}
		delete(wants, service)
		if len(wants) == 0 {
			delete(b.wants, cluster)
			b.source.Forget(cluster)
		}
	}
}

// Last is what was heard last from the head that is the pod of this UID, with the Outcome of what
// the service wants. It is false before the first answer or
// failure, and for another head than the one wanted.
func (b *Board) Last(cluster, service types.NamespacedName, head types.UID) (Answer, bool) {
	answer, heard := b.source.Last(cluster, head)
	answer.Outcome, answer.Parts = answer.Parts[service], nil
	b.mu.Lock()
	defer b.mu.Unlock()
	if want := b.wants[cluster][service]; want.Config == nil || want.Config.Digest != answer.RefusedDigest {
		answer.Refused, answer.RefusedDigest = "", ""
	}
	return answer, heard
}

// Services are those that want something of a cluster.
func (b *Board) Services(cluster types.NamespacedName) []types.NamespacedName {
	b.mu.Lock()
	defer b.mu.Unlock()
	return inOrder(b.wants[cluster])
}

// inOrder returns services in the order of their names.
func inOrder[V any](of map[types.NamespacedName]V) []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(of), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
}

// together is what all services want of one head. What another head took counts for nothing.
func together(wanted map[types.NamespacedName]Want, at Place) Wants {
	whole := Wants{At: at, Parts: map[types.NamespacedName]*Config{}}
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
		if want.Close.ID > whole.Close.ID { // named by their times: a later one closes what an earlier one would
			whole.Close = want.Close
		}
		if want.Config != nil {
			part := *want.Config
			part.Taken = part.Taken && want.At.Head == at.Head
			part.Alone = part.Alone && len(wanted) == 1
			whole.Parts[service] = &part
		}
	}
	for service, part := range whole.Parts {
		part.Drop = slices.DeleteFunc(slices.Clone(part.Drop), func(name string) bool { return namedBy(whole.Parts, service, name) })
	}
	return whole
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
