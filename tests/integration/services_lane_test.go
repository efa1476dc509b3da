package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/internal/fakekubeproxy"
	"github.com/heliostat-dev/heliostat/tests/internal/killafter"
	"github.com/heliostat-dev/heliostat/tests/internal/loadgen"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// lane is a service in a namespace of its own, with the operator that manages it there, and
// with clients.
type lane struct {
	*course
	name       types.NamespacedName
	kubeconfig string
	// front is the host:port at which clients reach the service.
	front string
	fuse  killafter.Fuse
	// first is the sort of change that it begins with, version that of the last edit, serving that
	// which serves once the change has ended.
	first, version, serving int

	operators sync.Mutex
	// operator is the last one of all that were hired.
	operator *operator
	hired    []*operator
	done     bool
}

// Rates of each service's requests a second, and how long those take at most that ask for it.
const (
	freshRate, keptRate, longRate = 60, 60, 5
	keptConnections               = 6
	longestRequest                = 400 * time.Millisecond
)

// drainSeconds is more than longestRequest and the time that Kubernetes' controller of EndpointSlices
// takes when it finds that what it knows is out of date: it tries again after a second, and then two.
const drainSeconds = 5

// lag is how long after a change of EndpointSlices connections are led by it.
const lag = 100 * time.Millisecond

// newLane makes the service, and what leads to it, for the course. All ends with the test.
func newLane(t *testing.T, c *course, number int) *lane {
	t.Helper()
	namespace := newNamespace(t)
	l := &lane{course: c, name: types.NamespacedName{Namespace: namespace, Name: "echo"}, first: 3 * number, version: 1, serving: 1}
	shared.heads.make(t, namespace, making{where: c.where, ready: func(one *head) {
		c.where.begun(one, applicationOfLane, workersOfLane)
		one.proxy.AtReply(func(request *http.Request) {
			if request.Method != http.MethodGet {
				l.fuse.Wrote() // what a head was told is a step as well
			}
		})
	}})
	must(t, l.prepare())
	must(t, l.hire())
	t.Cleanup(l.dismiss)
	must(t, shared.Create(t.Context(), l.service()))
	must(t, l.open())
	return l
}

// prepare makes the operator's way to the API server.
func (l *lane) prepare() error {
	listener, err := l.where.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	l.kubeconfig, err = lead(l.t, listener, killafter.Watch{Wrote: l.fuse.Wrote})
	return err
}

// hire starts an operator that has nothing but the land, and the way out to the API server.
func (l *lane) hire() error {
	l.operators.Lock()
	defer l.operators.Unlock()
	if l.done {
		return nil
	}
	o := &operator{t: l.t}
	err := l.where.Do(func() error {
		return o.start([]string{
			"--kubeconfig=" + l.kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0", "--watch-namespaces=" + l.name.Namespace,
		})
	})
	if err == nil {
		l.operator, l.hired = o, append(l.hired, o)
	}
	return err
}

// crash kills the operator in the middle of what it does, and hires another.
func (l *lane) crash() {
	l.operators.Lock()
	o := l.operator
	l.operators.Unlock()
	o.end.Do(o.kill)
	if err := l.hire(); err != nil {
		l.t.Errorf("after a crash: %v", err)
	}
}

// dismiss lets the service go, and then the operator.
func (l *lane) dismiss() {
	l.fuse.Disarm()
	if l.t.Failed() {
		l.t.Logf("%s: the operators' logs end with\n%s", l.name, l.told())
	}
	if err := shared.DropServices(context.WithoutCancel(l.t.Context()), l.name.Namespace, limit); err != nil {
		l.t.Error(err)
	}
	l.operators.Lock()
	defer l.operators.Unlock()
	l.done = true
	l.operator.end.Do(l.operator.kill)
}

// told are the last lines of the last operators.
func (l *lane) told() string {
	l.operators.Lock()
	defer l.operators.Unlock()
	var told strings.Builder
	for _, o := range l.hired[max(0, len(l.hired)-3):] {
		lines := strings.Split(o.log.String(), "\n")
		told.WriteString(strings.Join(lines[max(0, len(lines)-60):], "\n"))
	}
	return told.String()
}

// workersOfLane is how many workers each version has, with a replica on each.
const workersOfLane = 2

// applicationOfLane is the name of its application.
const applicationOfLane = "echo"

// service is what the lane begins with.
func (l *lane) service() *v1beta1.ClusterService {
	workers, now, second, drain, half := int32(workersOfLane), int32(0), int32(1), int32(drainSeconds), int32(50)
	return &v1beta1.ClusterService{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.name.Namespace, Name: l.name.Name},
		Spec: v1beta1.ClusterServiceSpec{
			ServeConfig:     replicated(l.version),
			UpgradeStrategy: &v1beta1.ServiceUpgradeStrategy{DrainSeconds: &drain, RetireAfterSeconds: &now, Surge: &v1beta1.Surge{StepPercent: &half, IntervalSeconds: &second}},
			ClusterTemplate: &v1beta1.ClusterTemplate{Spec: v1beta1.ComputeClusterSpec{
				RayVersion: "2.60.0", Image: image(l.version), WorkerGroups: []v1beta1.WorkerGroup{{Name: "cpu", Replicas: &workers}},
			}},
		},
	}
}

// replicated asks for an application with a replica for each worker, in a version.
func replicated(version int) runtime.RawExtension {
	return runtime.RawExtension{Raw: fmt.Appendf(nil, `{"applications":[{"name":%q,"route_prefix":"/","import_path":"echo:app","args":{"version":%d},`+
		`"deployments":[{"name":"Echo","num_replicas":%d}]}]}`, applicationOfLane, version, workersOfLane)}
}

// image is one that needs other pods than all others.
func image(version int) string { return fmt.Sprintf("echo:%d", version) }

// edit asks for the next version: on other pods, or on those that there are. It gives its
// number.
func (l *lane) edit(pods bool) (int, error) {
	l.version++
	return l.version, shared.EditService(l.t.Context(), l.name, func(spec *v1beta1.ClusterServiceSpec) error {
		spec.ServeConfig = replicated(l.version)
		if pods {
			spec.ClusterTemplate.Spec.Image = image(l.version)
		}
		return nil
	})
}

// set asks for a spec that there was.
func (l *lane) set(former v1beta1.ClusterServiceSpec) error {
	return shared.EditService(l.t.Context(), l.name, func(spec *v1beta1.ClusterServiceSpec) error {
		*spec = former
		return nil
	})
}

// open leads clients to the service, and those too who go by its own address in the land.
func (l *lane) open() error {
	ctx, stop := context.WithCancel(context.WithoutCancel(l.t.Context()))
	proxy, err := fakekubeproxy.Follow(ctx, shared.Kubernetes, l.name, fakekubeproxy.Options{Dial: l.where.Dial, Lag: lag, Refused: l.refused})
	if err != nil {
		stop()
		return err
	}
	l.t.Cleanup(func() {
		stop()
		proxy.Wait()
	})
	outside, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for clients: %w", err)
	}
	proxy.Serve(outside)
	l.front = outside.Addr().String()
	var address string
	if err := live.Until(ctx, limit, "the Service", func(ctx context.Context) error {
		var service corev1.Service
		if err := shared.Get(ctx, l.name, &service); err != nil {
			return err
		}
		address, err = fakekubeproxy.Address(&service)
		return err
	}); err != nil {
		return err
	}
	inside, err := l.where.Listen(address)
	if err != nil {
		return fmt.Errorf("listen at the Service's address: %w", err)
	}
	proxy.Serve(inside)
	return nil
}

// refused reports whether Kubernetes still took an endpoint for ready when that took no connection: its
// controller of EndpointSlices may be late by seconds.
func (l *lane) refused(endpoint string, why error) {
	at, listed := time.Now(), "it is in no EndpointSlice any more"
	var found discoveryv1.EndpointSliceList
	if err := shared.List(l.t.Context(), &found, client.InNamespace(l.name.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: l.name.Name}); err != nil {
		listed = err.Error()
	}
	for _, slice := range found.Items {
		for _, one := range slice.Endpoints {
			if host, _, _ := net.SplitHostPort(endpoint); slices.Contains(one.Addresses, host) {
				listed = fmt.Sprintf("EndpointSlice %s has it with %v", slice.Name, one.Conditions)
			}
		}
	}
	l.t.Logf("%s: %s: %v; %s", at.Format(time.StampMilli), l.name, why, listed)
}

// load is what clients ask the service.
func (l *lane) load() loadgen.Plan {
	return loadgen.Plan{
		URL: "http://" + l.front, Rates: map[loadgen.Sort]float64{loadgen.Fresh: freshRate, loadgen.Kept: keptRate, loadgen.Long: longRate},
		Connections: keptConnections, Timeout: 20 * time.Second, Longest: longestRequest, Session: time.Second, Pace: time.Second,
	}
}

// run changes the service until the course is over, or something goes wrong.
func (l *lane) run() {
	for i := l.first; !l.over() && !l.t.Failed(); i++ {
		sort, _ := l.pick(i)
		step := l.turn(sort.name)
		l.fuse.Arm(step, l.crash)
		version, err := sort.play(l)
		if err == nil {
			err = l.serves(version)
		}
		wrote, killed := l.fuse.Disarm()
		if err != nil {
			l.t.Errorf("%s: %s, the operator killed after write %d: %v, of %d: %v", l.name, sort.name, step, killed, wrote, err)
			return
		}
		l.serving = version
		l.passed(sort.name, step, killed)
	}
}

// serves waits until the service is as it should be, and fails unless it then answers in a
// version.
func (l *lane) serves(version int) error {
	ctx := l.t.Context()
	if _, err := shared.UntilServing(ctx, l.name, limit); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.front+"/?said=who", nil)
	if err != nil {
		return fmt.Errorf("make a request: %w", err)
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return fmt.Errorf("ask who serves: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("read who serves: %w", err)
	}
	var said struct{ Version string }
	if err := json.Unmarshal(text, &said); err != nil || said.Version != fmt.Sprint(version) {
		return fmt.Errorf("it serves, and answers %q, want version %d: %w", text, version, err)
	}
	return nil
}
