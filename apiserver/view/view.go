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
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
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

// version is an object as it was at one resourceVersion.
type version struct {
	uid types.UID
	// owner is the UID of what a cluster was made for.
	owner types.UID
	// base is the line without GPUs, which follow from other objects.
	base *Line
}

// held is an object as it is now.
type held struct {
	*version
	object Object
	line   *Line
}

// heldPod is a pod and the GPUs that it takes.
type heldPod struct {
	pod  *corev1.Pod
	gpus int64
}

// podSet are the pods of one cluster.
type podSet struct {
	byName map[string]heldPod
	gpus   int64
}

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

	mu      sync.RWMutex
	at      Position
	past    []trail
	synced  []bool
	lost    []error
	objects map[Key]*held
	byUID   map[types.UID]Key
	owned   map[types.UID]map[Key]bool
	pods    map[types.UID]*podSet
	podOf   map[types.NamespacedName]types.UID
	counts  map[Place]int
	dirty   map[Key]bool
	waiting int
	moved   chan struct{}
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
		objects: map[Key]*held{}, byUID: map[types.UID]Key{}, owned: map[types.UID]map[Key]bool{}, pods: map[types.UID]*podSet{},
		podOf: map[types.NamespacedName]types.UID{}, counts: map[Place]int{}, dirty: map[Key]bool{},
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
	one, is := v.objects[key]
	if !is {
		return nil, nil, false
	}
	return one.object, one.line, true
}

// ClustersOf returns the clusters of an object by name: itself, those that were made for it, and the one that it
// refers to.
func (v *View) ClustersOf(key Key) []*v1alpha1.ComputeCluster {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.clustersOf(key)
}

func (v *View) clustersOf(key Key) []*v1alpha1.ComputeCluster {
	one, is := v.objects[key]
	if !is {
		return nil
	}
	keys := []Key{key}
	if key.Kind != Clusters {
		keys = keys[:0]
		for cluster := range v.owned[one.uid] {
			keys = append(keys, cluster)
		}
		if name := refersTo(one.object); name != "" {
			keys = append(keys, Key{Clusters, key.Namespace, name})
		}
		slices.SortFunc(keys, Key.Compare)
	}
	var found []*v1alpha1.ComputeCluster
	for _, key := range slices.Compact(keys) {
		if one, is := v.objects[key]; is {
			if cluster, is := one.object.(*v1alpha1.ComputeCluster); is {
				found = append(found, cluster)
			}
		}
	}
	return found
}

// PodsOf returns the pods of an object's clusters, by the UID of their owner, in the order of their names. Those of a
// managed control store are not among them: no cluster owns them.
func (v *View) PodsOf(key Key) []*corev1.Pod {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var found []*corev1.Pod
	for _, cluster := range v.clustersOf(key) {
		if set := v.pods[cluster.UID]; set != nil {
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
	taken := make(map[Key]*Line, len(v.dirty))
	for key := range v.dirty {
		if one := v.objects[key]; one != nil {
			taken[key] = one.line
		} else {
			taken[key] = nil
		}
	}
	clear(v.dirty)
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

// touch makes a line again after something that it follows from has changed.
func (v *View) touch(key Key) {
	one := v.objects[key]
	if one == nil {
		v.dirty[key] = true
		return
	}
	if line := one.base.with(v.gpusNow(key.Kind, one.version)); one.line == nil || !line.Same(one.line) {
		one.line = line
		v.dirty[key] = true
	}
}

// touchOwner makes the line of an owner again, where there is one.
func (v *View) touchOwner(owner types.UID) {
	if key, is := v.byUID[owner]; is {
		v.touch(key)
	}
}

// gpusNow returns how many GPUs the pods of an object's own clusters request.
func (v *View) gpusNow(kind string, of *version) int64 {
	if kind == Clusters {
		return v.gpusOf(of.uid)
	}
	sum := int64(0)
	for key := range v.owned[of.uid] {
		sum += v.gpusOf(v.objects[key].uid)
	}
	return sum
}

func (v *View) gpusOf(cluster types.UID) int64 {
	if set := v.pods[cluster]; set != nil {
		return set.gpus
	}
	return 0
}

// put takes an object in as it is now, and returns how it was.
func (v *View) put(kind string, object Object) {
	key := Key{kind, object.GetNamespace(), object.GetName()}
	before := v.objects[key]
	after := &held{object: object, version: &version{uid: object.GetUID(), base: lineOf(kind, object)}}
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil && kind == Clusters {
		after.owner = owner.UID
	}
	if before != nil {
		v.unlink(key, before.version)
		after.line = before.line
	}
	v.objects[key] = after
	v.byUID[after.uid] = key
	v.counts[Place{kind, key.Namespace}]++
	if after.owner != "" {
		if v.owned[after.owner] == nil {
			v.owned[after.owner] = map[Key]bool{}
		}
		v.owned[after.owner][key] = true
	}
	v.touch(key)
	v.touchOwner(after.owner)
	if before != nil && before.owner != after.owner {
		v.touchOwner(before.owner)
	}
}

// remove forgets an object.
func (v *View) remove(key Key) {
	if before := v.objects[key]; before != nil {
		v.unlink(key, before.version)
		delete(v.objects, key)
		v.touch(key)
		v.touchOwner(before.owner)
	}
}

// unlink takes an object out of what it is found by.
func (v *View) unlink(key Key, one *version) {
	if v.byUID[one.uid] == key {
		delete(v.byUID, one.uid)
	}
	if place := (Place{key.Kind, key.Namespace}); v.counts[place] > 1 {
		v.counts[place]--
	} else {
		delete(v.counts, place)
	}
	if of := v.owned[one.owner]; of != nil {
		delete(of, key)
		if len(of) == 0 {
			delete(v.owned, one.owner)
		}
	}
}

// putPod takes a pod in as it is now. It returns, for each cluster whose pods take other GPUs now, how many fewer.
func (v *View) putPod(pod *corev1.Pod) map[types.UID]int64 {
	name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	owner := clusterOf(pod)
	fewer := map[types.UID]int64{}
	if former, is := v.podOf[name]; is {
		fewer[former] += v.dropPod(name, former)
	}
	if owner != "" {
		if v.pods[owner] == nil {
			v.pods[owner] = &podSet{byName: map[string]heldPod{}}
		}
		one := heldPod{pod: pod, gpus: gpusOf(pod)}
		v.pods[owner].byName[pod.Name] = one
		v.pods[owner].gpus += one.gpus
		v.podOf[name] = owner
		fewer[owner] -= one.gpus
	}
	v.touchClusters(fewer)
	return fewer
}

// removePod forgets a pod, and returns the same as putPod.
func (v *View) removePod(name types.NamespacedName) map[types.UID]int64 {
	fewer := map[types.UID]int64{}
	if owner, is := v.podOf[name]; is {
		fewer[owner] = v.dropPod(name, owner)
		v.touchClusters(fewer)
	}
	return fewer
}

// dropPod takes a pod out of those of its cluster, and returns its GPUs.
func (v *View) dropPod(name types.NamespacedName, owner types.UID) int64 {
	set := v.pods[owner]
	gpus := set.byName[name.Name].gpus
	set.gpus -= gpus
	delete(set.byName, name.Name)
	if len(set.byName) == 0 {
		delete(v.pods, owner)
	}
	delete(v.podOf, name)
	return gpus
}

// touchClusters makes the lines again of clusters whose pods take other GPUs, and of those that they were made for.
func (v *View) touchClusters(fewer map[types.UID]int64) {
	for uid, by := range fewer {
		if key, is := v.byUID[uid]; is && by != 0 {
			v.touch(key)
			v.touchOwner(v.objects[key].owner)
		}
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
	set := v.pods[uid]
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
func (v *View) Places() []Place { return v.places() }

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
	for key := range v.objects {
		if key.Kind == kind {
			all = append(all, key)
		}
	}
	return all
}
