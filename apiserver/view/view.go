// Package view is what the server knows of our kinds and of their pods: objects, one line for each, pages of
// lines.
//
// In: what the API server says to the server's own account, by reflectors that Run starts; queries with the rights of a
// caller. Out: lines, which are made once per change and shared; objects without their managedFields, and pods without
// what nobody reads; the position at which all this holds, and what was different at a former one.
//
// It must never show a line that a query's May does not cover, write to Kubernetes, or change an object that it was
// given away. What it hands out is shared: no caller may change it.
package view

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Kinds of objects. Pods have no line of their own.
const (
	Clusters  = "clusters"
	Jobs      = "jobs"
	Schedules = "schedules"
	Services  = "services"
	Pods      = "pods"
)

// kinds are those that have lines, in the order of their names; those that are read have pods behind them.
var (
	kinds = []string{Clusters, Jobs, Schedules, Services}
	read  = []string{Clusters, Jobs, Schedules, Services, Pods}
)

// Kinds returns the kinds that have lines.
func Kinds() []string { return slices.Clone(kinds) }

// KindOf returns the kind of an object; one that is of no kind with lines is a pod.
func KindOf(object any) string {
	switch object.(type) {
	case *v1beta1.ComputeCluster:
		return Clusters
	case *v1beta1.ClusterJob:
		return Jobs
	case *v1beta1.ClusterJobSchedule:
		return Schedules
	case *v1beta1.ClusterService:
		return Services
	}
	return Pods
}

// Resource returns the plural by which Kubernetes knows a kind, as reviews of rights have it.
func Resource(kind string) string {
	switch kind {
	case Clusters:
		return "computeclusters"
	case Jobs:
		return "clusterjobs"
	case Schedules:
		return "clusterjobschedules"
	case Services:
		return "clusterservices"
	}
	return kind
}

// Object is an object of Kubernetes.
type Object interface {
	metav1.Object
	runtime.Object
}

// Key names an object.
type Key struct{ Kind, Namespace, Name string }

// Compare orders keys by kind, namespace and name.
func (k Key) Compare(other Key) int {
	for _, pair := range [][2]string{{k.Kind, other.Kind}, {k.Namespace, other.Namespace}} {
		if order := strings.Compare(pair[0], pair[1]); order != 0 {
			return order
		}
	}
	return strings.Compare(k.Name, other.Name)
}

// String returns the key as paths have it.
func (k Key) String() string { return k.Namespace + "/" + k.Kind + "/" + k.Name }

// Place is a kind in a namespace.
type Place struct{ Kind, Namespace string }

// source is what one reflector reads.
type source struct{ kind, namespace string }

// View holds objects, their lines and their recent past. It may be used by many goroutines.
type View struct {
	sources []source
	layout  uint32
	keep    int
	// changes gets a token when there is something to take.
	changes chan struct{}

	mu       sync.RWMutex
	at       Position
	past     []trail
	synced   []bool
	lost     []error
	contents *contents
	waiting  int
	moved    chan struct{}
}

// New returns an empty view of some namespaces, or of all where none are named. Run fills it, and in tests its stores
// do.
func New(namespaces ...string) *View {
	namespaces = slices.Compact(slices.Sorted(slices.Values(namespaces)))
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	v := &View{
		changes: make(chan struct{}, 1), moved: make(chan struct{}), keep: max(keptSteps/len(namespaces), leastSteps),
		contents: newContents(),
	}
	hash := fnv.New32a()
	for _, namespace := range namespaces {
		for _, kind := range read {
			v.sources = append(v.sources, source{kind, namespace})
			_, _ = hash.Write([]byte(kind + "/" + namespace + "\n")) // never fails
		}
	}
	v.layout = hash.Sum32()
	v.at = make(Position, len(v.sources))
	v.past, v.synced, v.lost = make([]trail, len(v.sources)), make([]bool, len(v.sources)), make([]error, len(v.sources))
	return v
}

// IsSynced reports whether everything was read once.
func (v *View) IsSynced() bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return !slices.Contains(v.synced, false)
}

// Lost returns why the view may be behind the API server, and nil where it is not.
func (v *View) Lost() error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return errors.Join(v.lost...)
}

// Find returns an object without its managedFields, and its line.
func (v *View) Find(key Key) (Object, *Line, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	one, is := v.contents.objects[key]
	if !is {
		return nil, nil, false
	}
	return one.object, one.line, true
}

// ClustersOf returns the clusters of an object by name: itself, those that were made for it, and the one that it
// refers to.
func (v *View) ClustersOf(key Key) []*v1beta1.ComputeCluster {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.contents.clustersOf(key)
}

// PodsOf returns the pods of an object's clusters, by the UID of their owner, in the order of their names. Those of a
// managed control store are not among them: no cluster owns them.
func (v *View) PodsOf(key Key) []*corev1.Pod {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var found []*corev1.Pod
	for _, cluster := range v.contents.clustersOf(key) {
		if set := v.contents.pods[cluster.UID]; set != nil {
			for _, one := range set.byName {
				found = append(found, one.pod)
			}
		}
	}
	slices.SortFunc(found, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// Changes is a channel that has a token when there is something to Take.
func (v *View) Changes() <-chan struct{} { return v.changes }

// Take returns the lines that have changed since it was called last, nil for those that are gone, and the position at
// which the view is with them. It has one caller.
func (v *View) Take() (map[Key]*Line, Position) {
	v.mu.Lock()
	defer v.mu.Unlock()
	taken := make(map[Key]*Line, len(v.contents.dirty))
	for key := range v.contents.dirty {
		if one := v.contents.objects[key]; one != nil {
			taken[key] = one.line
		} else {
			taken[key] = nil
		}
	}
	clear(v.contents.dirty)
	return taken, slices.Clone(v.at)
}

// advance notes that a source was read up to a resourceVersion.
func (v *View) advance(s int, rv uint64) {
	v.at[s] = rv
	select {
	case v.changes <- struct{}{}:
	default:
	}
	if v.waiting > 0 {
		close(v.moved)
		v.moved = make(chan struct{})
	}
}

// parseVersion reads a resourceVersion. Kubernetes promises since 1.35 that those of one kind are numbers that grow.
func parseVersion(text string) (uint64, error) {
	rv, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read resourceVersion %q: %w", text, err)
	}
	return rv, nil
}

// PodsOwnedBy returns the pods of a cluster by its UID.
func (v *View) PodsOwnedBy(uid types.UID) []*corev1.Pod {
	v.mu.RLock()
	defer v.mu.RUnlock()
	set := v.contents.pods[uid]
	if set == nil {
		return nil
	}
	found := make([]*corev1.Pod, 0, len(set.byName))
	for _, one := range set.byName {
		found = append(found, one.pod)
	}
	return found
}

// Places returns the kinds and namespaces that hold objects.
func (v *View) Places() []Place {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return slices.Collect(maps.Keys(v.contents.counts))
}

// Namespaces returns the namespaces that hold objects, in order.
func (v *View) Namespaces() []string {
	var names []string
	for _, place := range v.Places() {
		names = append(names, place.Namespace)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Keys returns what names the objects of a kind, in no order.
func (v *View) Keys(kind string) []Key {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var all []Key
	for key := range v.contents.objects {
		if key.Kind == kind {
			all = append(all, key)
		}
	}
	return all
}
