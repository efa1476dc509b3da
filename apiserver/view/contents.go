package view

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// contents are the objects and pods that a view holds, with what they are found by. The view's lock guards them.
type contents struct {
	objects map[Key]*held
	byUID   map[types.UID]Key
	owned   map[types.UID]map[Key]bool
	pods    map[types.UID]*podSet
	podOf   map[types.NamespacedName]types.UID
	counts  map[Place]int
	// dirty are the objects whose lines have changed since they were taken last.
	dirty map[Key]bool
}

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

func newContents() *contents {
	return &contents{
		objects: map[Key]*held{}, byUID: map[types.UID]Key{}, owned: map[types.UID]map[Key]bool{}, pods: map[types.UID]*podSet{},
		podOf: map[types.NamespacedName]types.UID{}, counts: map[Place]int{}, dirty: map[Key]bool{},
	}
}

func (c *contents) clustersOf(key Key) []*v1beta1.ComputeCluster {
	one, is := c.objects[key]
	if !is {
		return nil
	}
	keys := []Key{key}
	if key.Kind != Clusters {
		keys = keys[:0]
		for cluster := range c.owned[one.uid] {
			keys = append(keys, cluster)
		}
		if name := refersTo(one.object); name != "" {
			keys = append(keys, Key{Clusters, key.Namespace, name})
		}
		slices.SortFunc(keys, Key.Compare)
	}
	var found []*v1beta1.ComputeCluster
	for _, key := range slices.Compact(keys) {
		if one, is := c.objects[key]; is {
			if cluster, is := one.object.(*v1beta1.ComputeCluster); is {
				found = append(found, cluster)
			}
		}
	}
	return found
}

// touch makes a line again after something that it follows from has changed.
func (c *contents) touch(key Key) {
	one := c.objects[key]
	if one == nil {
		c.dirty[key] = true
		return
	}
	if line := one.base.with(c.gpusNow(key.Kind, one.version)); one.line == nil || !line.Same(one.line) {
		one.line = line
		c.dirty[key] = true
	}
}

// touchOwner makes the line of an owner again, where there is one.
func (c *contents) touchOwner(owner types.UID) {
	if key, is := c.byUID[owner]; is {
		c.touch(key)
	}
}

// gpusNow returns how many GPUs the pods of an object's own clusters request.
func (c *contents) gpusNow(kind string, of *version) int64 {
	if kind == Clusters {
		return c.gpusOf(of.uid)
	}
	sum := int64(0)
	for key := range c.owned[of.uid] {
		sum += c.gpusOf(c.objects[key].uid)
	}
	return sum
}

func (c *contents) gpusOf(cluster types.UID) int64 {
	if set := c.pods[cluster]; set != nil {
		return set.gpus
	}
	return 0
}

// put takes an object in as it is now.
func (c *contents) put(kind string, object Object) {
	key := Key{kind, object.GetNamespace(), object.GetName()}
	before := c.objects[key]
	after := &held{object: object, version: &version{uid: object.GetUID(), base: lineOf(kind, object)}}
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil && kind == Clusters {
		after.owner = owner.UID
	}
	if before != nil {
		c.unlink(key, before.version)
		after.line = before.line
	}
	c.objects[key] = after
	c.byUID[after.uid] = key
	c.counts[Place{kind, key.Namespace}]++
	if after.owner != "" {
		if c.owned[after.owner] == nil {
			c.owned[after.owner] = map[Key]bool{}
		}
		c.owned[after.owner][key] = true
	}
	c.touch(key)
	c.touchOwner(after.owner)
	if before != nil && before.owner != after.owner {
		c.touchOwner(before.owner)
	}
}

// remove forgets an object.
func (c *contents) remove(key Key) {
	if before := c.objects[key]; before != nil {
		c.unlink(key, before.version)
		delete(c.objects, key)
		c.touch(key)
		c.touchOwner(before.owner)
	}
}

// unlink takes an object out of what it is found by.
func (c *contents) unlink(key Key, one *version) {
	if c.byUID[one.uid] == key {
		delete(c.byUID, one.uid)
	}
	if place := (Place{key.Kind, key.Namespace}); c.counts[place] > 1 {
		c.counts[place]--
	} else {
		delete(c.counts, place)
	}
	if of := c.owned[one.owner]; of != nil {
		delete(of, key)
		if len(of) == 0 {
			delete(c.owned, one.owner)
		}
	}
}

// putPod takes a pod in as it is now. It returns, for each cluster whose pods take other GPUs now, how many fewer.
func (c *contents) putPod(pod *corev1.Pod) map[types.UID]int64 {
	name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	owner := clusterOf(pod)
	fewer := map[types.UID]int64{}
	if former, is := c.podOf[name]; is {
		fewer[former] += c.dropPod(name, former)
	}
	if owner != "" {
		if c.pods[owner] == nil {
			c.pods[owner] = &podSet{byName: map[string]heldPod{}}
		}
		one := heldPod{pod: pod, gpus: gpusOf(pod)}
		c.pods[owner].byName[pod.Name] = one
		c.pods[owner].gpus += one.gpus
		c.podOf[name] = owner
		fewer[owner] -= one.gpus
	}
	c.touchClusters(fewer)
	return fewer
}

// removePod forgets a pod, and returns the same as putPod.
func (c *contents) removePod(name types.NamespacedName) map[types.UID]int64 {
	fewer := map[types.UID]int64{}
	if owner, is := c.podOf[name]; is {
		fewer[owner] = c.dropPod(name, owner)
		c.touchClusters(fewer)
	}
	return fewer
}

// dropPod takes a pod out of those of its cluster, and returns its GPUs.
func (c *contents) dropPod(name types.NamespacedName, owner types.UID) int64 {
	set := c.pods[owner]
	gpus := set.byName[name.Name].gpus
	set.gpus -= gpus
	delete(set.byName, name.Name)
	if len(set.byName) == 0 {
		delete(c.pods, owner)
	}
	delete(c.podOf, name)
	return gpus
}

// touchClusters makes the lines again of clusters whose pods take other GPUs, and of those that they were made for.
func (c *contents) touchClusters(fewer map[types.UID]int64) {
	for uid, by := range fewer {
		if key, is := c.byUID[uid]; is && by != 0 {
			c.touch(key)
			c.touchOwner(c.objects[key].owner)
		}
	}
}

func (c *contents) versionOf(key Key) *version {
	if one := c.objects[key]; one != nil {
		return one.version
	}
	return nil
}

// removeUnlisted forgets what a source has no more.
func (c *contents) removeUnlisted(from source, listed map[types.NamespacedName]bool) {
	isIn := func(namespace string) bool {
		return from.namespace == metav1.NamespaceAll || from.namespace == namespace
	}
	if from.kind == Pods {
		for name := range c.podOf {
			if isIn(name.Namespace) && !listed[name] {
				c.removePod(name)
			}
		}
		return
	}
	for key := range c.objects {
		name := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
		if key.Kind == from.kind && isIn(key.Namespace) && !listed[name] {
			c.remove(key)
		}
	}
}
