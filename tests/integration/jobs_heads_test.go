package integration

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/tests/internal/faultproxy"
)

// heads are those of the pods that the kubelet runs: in a namespace that asked for them,
// each head pod has an address of its own, with a fake head behind it. On loopback, where most
// are, no EndpointSlice may hold such an address, of which the controller manager complains;
// nobody goes through a Service there.
type heads struct {
	mu sync.Mutex
	// made is how the heads of a namespace are made; the others have none.
	made map[string]making
	// all are those that ever were, in the order of their begin, also when they are gone.
	all    []*head
	number int
}

// making is how heads are made.
type making struct {
	// ready is called with each before anyone can ask it.
	ready func(*head)
	// where is the land that all pods of the namespace are in, nil for heads on loopback.
	where *land
	// raw puts something else than a fake head behind a pod, and gives its address; nil for fake heads.
	raw func(*corev1.Pod) (string, error)
}

// head is a head pod's: its GCS listens at the pod's address, and its job API does behind a
// proxy, or nothing answers there.
type head struct {
	pod     types.UID
	name    types.NamespacedName // of the pod
	cluster string
	address string
	token   string
	fake    *fakehead.Head
	proxy   *faultproxy.Proxy
	mu      sync.Mutex
	gone    bool
	last    []fakehead.Run // of one that is gone
	// joined is called each time that a worker has joined, nil for nothing.
	joined func()
}

// join notes that a worker has joined.
func (h *head) join() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.joined != nil {
		h.joined()
	}
}

// headsIn lets head pods of a namespace have fake heads; ready is called with each before
// anyone can ask it.
func headsIn(t *testing.T, namespace string, ready func(*head)) {
	t.Helper()
	shared.heads.make(t, namespace, making{ready: ready})
}

// make lets a namespace have heads until the test ends.
func (h *heads) make(t *testing.T, namespace string, how making) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.made == nil {
		h.made = map[string]making{}
	}
	h.made[namespace] = how
	t.Cleanup(func() {
		h.mu.Lock()
		delete(h.made, namespace)
		h.mu.Unlock()
		for _, one := range h.of(namespace) {
			one.end()
		}
	})
}

// of are all heads that a namespace ever had.
func (h *heads) of(namespace string) []*head {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.all), func(one *head) bool { return one.name.Namespace != namespace })
}

// find gives the head of a pod, nil where it has none.
func (h *heads) find(pod types.UID) *head {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.all {
		if one.pod == pod {
			return one
		}
	}
	return nil
}

// has reports whether a pod is to have a head.
func (h *heads) has(pod *corev1.Pod) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.made[pod.Namespace].ready != nil && pod.Labels[v1beta1.LabelRole] == v1beta1.RoleHead
}

// land is where the pods of a namespace are, nil where they have no land.
func (h *heads) land(namespace string) *land {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.made[namespace].where
}

// raw is what the pods of a namespace have behind them instead of fake heads, nil where they have these.
func (h *heads) raw(namespace string) func(*corev1.Pod) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.made[namespace].raw
}

// next is an address of loopback that no other head has. Its caller holds the lock.
func (h *heads) next() string {
	h.number++
	return fmt.Sprintf("127.%d.%d.%d", 64+h.number/62500, h.number/250%250+1, h.number%250+1)
}

// leading gives the head of a cluster that lives, nil where there is none.
func (h *heads) leading(cluster types.NamespacedName) *head {
	for _, one := range slices.Backward(h.of(cluster.Namespace)) {
		if one.cluster == cluster.Name && one.lives() {
			return one
		}
	}
	return nil
}

// open makes the head of a pod, or gives the one there is.
func (h *heads) open(pod *corev1.Pod, token string) (*head, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.all {
		if one.pod == pod.UID {
			return one, nil
		}
	}
	one := &head{
		pod: pod.UID, name: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, cluster: pod.Labels[v1beta1.LabelCluster],
	}
	how := h.made[pod.Namespace]
	if err := h.listen(one, how.where); err != nil {
		return nil, err
	}
	one.token = token
	one.fake.SetToken(token)
	if how.ready != nil {
		how.ready(one)
	}
	h.all = append(h.all, one)
	return one, nil
}

// listen finds a free address of loopback: others on this machine may run the same tests. In a
// land any is free, and nobody asks for a GCS.
func (h *heads) listen(one *head, where *land) (err error) {
	if where != nil {
		one.address = where.address()
		if one.fake, err = fakehead.Start(clock.RealClock{}); err != nil {
			return err
		}
		return where.Do(func() (err error) {
			one.proxy, err = faultproxy.Listen(one.address+":8265", one.fake.JobsAddress(), 1)
			return err
		})
	}
	for {
		one.address = h.next()
		one.fake, err = fakehead.StartAt(clock.RealClock{}, one.address+":6379", "127.0.0.1:0")
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return err
		}
		one.proxy, err = faultproxy.Listen(one.address+":8265", one.fake.JobsAddress(), uint64(h.number))
		if err == nil {
			return nil
		}
		one.fake.Close()
		if !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
}

// end is the end of the head's pod: nothing of it answers any more, and what ran has run.
func (h *head) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone {
		return
	}
	h.proxy.Close()
	h.fake.Close()
	h.gone, h.last = true, h.fake.Runs()
}

// lives reports whether the head's pod does.
func (h *head) lives() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.gone
}

// runs are all starts of jobs that there ever were.
func (h *head) runs() []fakehead.Run {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone {
		return h.last
	}
	return h.fake.Runs()
}

// runsIn are all runs on all heads that a namespace ever had, with the heads.
func runsIn(namespace string) []fakehead.Run {
	var all []fakehead.Run
	for _, one := range shared.heads.of(namespace) {
		all = append(all, one.runs()...)
	}
	return all
}
