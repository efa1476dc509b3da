package serving

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Board puts together what several services want of one cluster, because Serve is asked for
// all applications at once. A part that nobody has stated yet, as after a restart of the
// operator, takes nothing away: what the head shows beside the parts stays.
type Board struct {
	source Source

	mu sync.Mutex
	// parts are what is wanted of each cluster, by service.
	parts map[types.NamespacedName]map[types.NamespacedName]Want
}

// NewBoard puts wants together for a source.
func NewBoard(source Source) *Board {
	return &Board{source: source, parts: map[types.NamespacedName]map[types.NamespacedName]Want{}}
}

// Want says what a service wants of a cluster, in place of what it said before. It never
// blocks; saying the same again changes nothing.
func (b *Board) Want(cluster, service types.NamespacedName, want Want) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.parts[cluster] == nil {
		b.parts[cluster] = map[types.NamespacedName]Want{}
	}
	b.parts[cluster][service] = want
	b.source.Want(cluster, together(b.parts[cluster], want.At))
}

// Forget ends what a service wants of all clusters but those that are kept. It takes no
// application away.
func (b *Board) Forget(service types.NamespacedName, keep ...types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for cluster, parts := range b.parts {
		if _, wants := parts[service]; !wants || slices.Contains(keep, cluster) {
			continue
		}
		delete(parts, service)
		if len(parts) == 0 {
			delete(b.parts, cluster)
			b.source.Forget(cluster)
		}
	}
}

// Last is what was heard last from the head that is the pod of this UID, with Taken and Refused
// as far as they are about what the service wants. It is false before the first answer or
// failure, and for another head than the one wanted.
func (b *Board) Last(cluster, service types.NamespacedName, head types.UID) (Answer, bool) {
	answer, heard := b.source.Last(cluster, head)
	answer.Taken = digestOf(answer.Taken, service)
	answer.RefusedDigest = digestOf(answer.RefusedDigest, service)
	b.mu.Lock()
	defer b.mu.Unlock()
	if part := b.parts[cluster][service]; part.Config == nil || part.Config.Digest != answer.RefusedDigest {
		answer.Refused, answer.RefusedDigest = "", ""
	}
	return answer, heard
}

// Services are those that want something of a cluster.
func (b *Board) Services(cluster types.NamespacedName) []types.NamespacedName {
	b.mu.Lock()
	defer b.mu.Unlock()
	return inOrder(b.parts[cluster])
}

func inOrder(parts map[types.NamespacedName]Want) []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(parts), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
}

// together is what all services want of one head. Of options that only one can have, the first
// by name has its way; those that Serve reads at its start are the same for all.
func together(parts map[types.NamespacedName]Want, at Place) Want {
	whole := Want{At: at}
	var digests []string
	for _, service := range inOrder(parts) {
		part := parts[service]
		if whole.Every == 0 || part.Every > 0 && part.Every < whole.Every {
			whole.Every = part.Every
		}
		for _, probe := range part.Probes {
			if !slices.Contains(whole.Probes, probe) {
				whole.Probes = append(whole.Probes, probe)
			}
		}
		if len(parts) == 1 {
			whole.Close = part.Close // of others' connections nobody decides
		}
		if part.Config != nil {
			whole.Config = whole.Config.with(part.Config)
			whole.Config.Taken = whole.Config.Taken && part.At.Head == at.Head
			whole.Config.Alone = whole.Config.Alone && len(parts) == 1
			digests = append(digests, service.Name+"="+part.Config.Digest)
		}
	}
	if whole.Config != nil {
		// One that names an application wins over one that gives it up: it has taken it over.
		whole.Config.Drop = slices.DeleteFunc(whole.Config.Drop, func(name string) bool { _, is := whole.Config.Applications[name]; return is })
		whole.Config.Digest = strings.Join(digests, " ")
	}
	return whole
}

// with is a configuration with another's applications in it; nil is none.
func (c *Config) with(part *Config) *Config {
	if c == nil {
		c = &Config{Options: part.Options, Applications: map[string]json.RawMessage{}, Taken: true, Alone: true}
	}
	maps.Copy(c.Applications, part.Applications)
	c.Drop = append(c.Drop, part.Drop...)
	c.Taken, c.Alone = c.Taken && part.Taken, c.Alone && part.Alone
	return c
}

// digestOf is a service's part of a digest of all, empty if it has none. Names of services have
// no blank and no '='.
func digestOf(all string, service types.NamespacedName) string {
	for _, part := range strings.Fields(all) {
		if name, digest, ok := strings.Cut(part, "="); ok && name == service.Name {
			return digest
		}
	}
	return ""
}
