package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/tests/internal/fakeserveproxy"
	"github.com/heliostat-dev/heliostat/tests/internal/podnet"
)

// land is where pods have addresses that Kubernetes takes for those of pods, which loopback's
// are not: the addresses of an island. Workers there are nodes of their cluster's fake head,
// and where Serve has a proxy on one it listens in its pod.
type land struct {
	*podnet.Island
	mu      sync.Mutex
	number  int
	workers map[types.UID]*worker
}

// newLand makes one that ends with the test.
func newLand(t *testing.T) *land {
	t.Helper()
	made, err := podnet.New()
	must(t, err)
	l := &land{Island: made, workers: map[types.UID]*worker{}}
	t.Cleanup(func() {
		for _, one := range l.all() {
			one.end()
		}
		made.Close()
	})
	return l
}

// all are the workers that there ever were.
func (l *land) all() []*worker {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*worker
	for _, one := range l.workers {
		all = append(all, one)
	}
	return all
}

// address is one that no pod had before.
func (l *land) address() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next()
}

// next is address for who holds the lock.
func (l *land) next() string {
	l.number++
	return fmt.Sprintf("10.250.%d.%d", l.number/250, l.number%250+1)
}

// begin begins what runs in a worker's pod, if it has not begun, and gives its address.
func (l *land) begin(pod *corev1.Pod) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one := l.workers[pod.UID]; one != nil {
		return one.address
	}
	one := &worker{
		pod: pod.UID, name: pod.Name, where: l, address: l.next(),
		cluster: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[v1beta1.LabelCluster]},
	}
	l.workers[pod.UID] = one
	ctx, stop := context.WithCancel(context.Background())
	one.stop = stop
	one.work.Go(func() { one.run(ctx) })
	return one.address
}

// end ends what runs in a pod.
func (l *land) end(pod types.UID) {
	l.mu.Lock()
	one := l.workers[pod]
	l.mu.Unlock()
	if one != nil {
		one.end()
	}
}

// closeKept has the proxies of a cluster close the connections that clients keep.
func (l *land) closeKept(cluster types.NamespacedName) {
	for _, one := range l.all() {
		if proxy := one.listening(); one.cluster == cluster && proxy != nil {
			proxy.CloseKept()
		}
	}
}

// settling is how often a worker looks what is new on its head.
const settling = 50 * time.Millisecond

// worker is the node of Ray in a pod.
type worker struct {
	pod     types.UID
	name    string
	cluster types.NamespacedName
	address string
	where   *land
	stop    context.CancelFunc
	work    sync.WaitGroup

	// head is the one that the node has joined, under an ID; they are the goroutine's own.
	head *head
	id   headclient.NodeID
	// proxy is Serve's, nil where there is none.
	mu    sync.Mutex
	proxy *fakeserveproxy.Proxy
}

// run is the life of the node.
func (w *worker) run(ctx context.Context) {
	ticker := time.NewTicker(settling)
	defer ticker.Stop()
	for {
		w.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look does what is due: it joins a head that is new, and begins and ends the proxy.
func (w *worker) look(ctx context.Context) {
	if leading := shared.heads.leading(w.cluster); leading != nil && leading != w.head {
		w.head, w.id = leading, leading.fake.Join(fakehead.Member{Instance: string(w.pod), IP: w.address})
		leading.join()
	}
	if w.head == nil {
		return
	}
	w.head.fake.Runs() // what is due on a fake head comes about when somebody looks
	seen, proxy := w.head.fake.Proxied(string(w.pod)), w.listening()
	switch {
	case seen.State != "" && proxy == nil:
		if err := w.serve(w.head.fake, seen.Port); err != nil {
			fmt.Fprintf(os.Stderr, "the proxy in pod %s cannot listen: %v\n", w.name, err)
		}
	case seen.State == "" && proxy != nil:
		w.has(nil)
		w.work.Go(func() { proxy.Leave(ctx) })
	}
}

// serve begins the proxy.
func (w *worker) serve(on *fakehead.Head, port int32) error {
	listener, err := w.where.Listen(net.JoinHostPort(w.address, strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	w.has(fakeserveproxy.New(listener, w.name, func() fakeserveproxy.Leads { return leads(on.Proxied(string(w.pod))) }))
	return nil
}

// leads is what a proxy leads to: the versions that the args of applications have.
func leads(seen fakehead.Proxied) fakeserveproxy.Leads {
	to := fakeserveproxy.Leads{Draining: seen.State == "DRAINING", Versions: map[string]string{}}
	for route, config := range seen.Routes {
		var args struct {
			Version int `json:"version"`
		}
		_ = json.Unmarshal(config["args"], &args) // one without a version is version 0
		to.Versions[route] = strconv.Itoa(args.Version)
	}
	return to
}

func (w *worker) has(proxy *fakeserveproxy.Proxy) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.proxy = proxy
}

func (w *worker) listening() *fakeserveproxy.Proxy {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.proxy
}

// end is the end of the pod: its proxy answers nobody any more, not those either who have
// asked already.
func (w *worker) end() {
	w.stop()
	if proxy := w.listening(); proxy != nil {
		proxy.Close()
	}
	w.work.Wait()
	if proxy := w.listening(); proxy != nil { // it began meanwhile
		proxy.Close()
	}
	if w.head != nil {
		w.head.fake.Kill(w.id)
	}
}

// quick is how long it takes on heads of a land until what was asked for runs.
const quick = 300 * time.Millisecond

// begun makes a head ready to serve: it is quick, and runs what closes kept connections. Before
// so many workers have joined there is no room for the application: a fake head would let
// replicas run on its own node.
func (l *land) begun(one *head, application string, workers int32) {
	one.fake.Hold(application)
	one.joined = func() {
		if workers--; workers == 0 {
			one.fake.Heal(application)
		}
	}
	one.fake.SetDeployDelay(quick)
	one.fake.SetStartDelay(quick)
	one.fake.Join(fakehead.Member{Instance: string(one.pod), Head: true, IP: one.address})
	one.fake.SetProgram(func(run fakehead.Run) (fakehead.Process, bool) {
		closing := strings.HasPrefix(run.ID, "heliostat-close-")
		if closing {
			l.closeKept(types.NamespacedName{Namespace: one.name.Namespace, Name: one.cluster})
		}
		// It was due when it says, and is done a while after it came about.
		return fakehead.Process{Takes: time.Since(run.At) + quick}, closing
	})
}
