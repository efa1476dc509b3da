package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/bench/jobs"
	"github.com/heliostat-dev/heliostat/tests/internal/hostile"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Counts of TestHostileTenants_StopNobody, unless variables give others: honest clusters, objects beside each sort of
// hostile servers, and seconds.
const (
	honestClusters = 10
	hostileObjects = 5
	hostileSeconds = 6
	// calmShare is how much longer they are hostile than all is calm before.
	calmShare = 2
	// editPause is the time from one edit of an honest cluster to the next.
	editPause = 150 * time.Millisecond
)

// TestHostileTenants_StopNobody: beside a hostile Redis, a hostile Sentinel or a hostile head, of which every answer is
// another one, the operator goes on within its memory, and honest clusters wait no longer. It times requests.
func TestHostileTenants_StopNobody(t *testing.T) {
	figures := &live.Tenants{
		Honest: number(t, "HELIOSTAT_HONEST", honestClusters), Objects: number(t, "HELIOSTAT_HOSTILE", hostileObjects),
		Seconds: number(t, "HELIOSTAT_HOSTILE_SECONDS", hostileSeconds),
	}
	h := newHonest(t, figures.Honest)
	bad := newAdversaries(t, figures.Objects)
	o := &operator{t: t}
	figures.MemoryLimit = o.limitMemory(t)
	o.begin("--namespace="+live.ReleaseNamespace, "--autoscaler-image=none", "--watch-namespaces="+strings.Join(append(h.namespaces(), bad.namespaces()...), ","))
	h.ready(t)

	while := time.Duration(figures.Seconds) * time.Second
	figures.Calm = h.edit(t, while/calmShare)
	bad.begin(t)
	figures.Beside = h.edit(t, while)

	bad.wereAsked(t)
	figures.Memory, figures.Asked = o.peakMemory(t), bad.asked()
	t.Log(figures)
	must(t, jobs.Save(figures))
	bad.saysNothingGood(t)
	for _, broken := range figures.Broken() {
		if broken != "honest clusters waited" || *judging {
			t.Error(broken)
		}
	}
	bad.leave(t)
}

// limitMemory lets the operator know the limit of the chart's container, as the chart does, and gives it in MiB.
func (o *operator) limitMemory(t *testing.T) float64 {
	t.Helper()
	limit, env := memoryOf(t, "templates/deployment.yaml")
	o.env = append(o.env, env)
	return float64(limit) / (1 << 20)
}

// memoryOf returns the memory limit of the chart's container in a template, in bytes, and the variable by which the chart lets
// Go know it.
func memoryOf(t *testing.T, template string, settings ...string) (limit int64, env string) {
	t.Helper()
	out, err := live.Helm(t.Context(), "../..", append([]string{"template", live.ReleaseName, "../../helm-chart/heliostat", "--namespace", live.ReleaseNamespace, "--show-only", template}, settings...)...)
	must(t, err)
	objects, err := live.Decode([]byte(out))
	must(t, err)
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		var deployment appsv1.Deployment
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment))
		container := deployment.Spec.Template.Spec.Containers[0]
		limit = container.Resources.Limits.Memory().Value()
		for _, variable := range container.Env {
			if variable.Name == "GOMEMLIMIT" {
				env = "GOMEMLIMIT=" + variable.Value
			}
		}
	}
	if limit == 0 || env == "" {
		t.Fatalf("the chart gives the container of %s %d bytes and %q", template, limit, env)
	}
	return limit, env
}

// peakMemory is the most that the operator had resident since it began, in MiB.
func (o *operator) peakMemory(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", o.command.Process.Pid))
	must(t, err)
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kibibytes float64
	_, err = fmt.Sscan(rest, &kibibytes)
	must(t, err)
	return kibibytes / 1024
}

// honest are the clusters of tenants who want nothing but compute. Their heads answer, and the memory of each fifth is in
// a Redis.
type honest struct {
	clusters []types.NamespacedName
	// edits counts those of all clusters.
	edits int
}

func newHonest(t *testing.T, n int) *honest {
	t.Helper()
	h, b := &honest{}, newBed(t)
	var namespace string
	var objects []client.Object
	for i := range n {
		if i%10 == 0 {
			namespace = newNamespace(t)
		}
		cluster := newCluster(namespace, fmt.Sprintf("c%d", i), 1)
		if i%5 == 0 {
			cluster = b.cluster(b.namespace, fmt.Sprintf("c%d", i), "", 1)
			cluster.Spec.WorkerGroups[0].Template = nil
		}
		h.clusters = append(h.clusters, client.ObjectKeyFromObject(cluster))
		objects = append(objects, cluster)
	}
	for _, namespace := range h.namespaces() {
		headsIn(t, namespace, func(*head) {})
	}
	for _, object := range objects {
		must(t, shared.Create(t.Context(), object))
	}
	return h
}

func (h *honest) namespaces() []string {
	all := map[string]bool{}
	for _, name := range h.clusters {
		all[name.Namespace] = true
	}
	return slices.Sorted(maps.Keys(all))
}

func (h *honest) ready(t *testing.T) {
	t.Helper()
	for _, name := range h.clusters {
		ready(t, name)
	}
}

// edit changes how many workers the clusters have, one after the other, and gives how soon the operator made a pod for each
// that asks for one more. Before it deletes one it asks the head which workers are idle, up to a second later.
func (h *honest) edit(t *testing.T, while time.Duration) live.Reactions {
	t.Helper()
	began := shared.audit.now(t)
	pause := time.NewTicker(editPause)
	defer pause.Stop()
	for begin := time.Now(); time.Since(begin) < while; <-pause.C {
		scaleTo(t, h.clusters[h.edits%len(h.clusters)], int32(2-h.edits/len(h.clusters)%2))
		h.edits++
	}
	var times []float64
	eventually(t, "the operator to have answered each edit", func(context.Context) error {
		var waiting map[types.NamespacedName]time.Time
		if times, waiting = h.reactions(t, began); len(waiting) > 0 {
			return fmt.Errorf("these edits wait: %v", waiting)
		}
		return nil
	})
	return live.ReactionsOf(times)
}

// reactions reads from the audit log how many milliseconds after edits of clusters the operator made a pod, and which edits
// wait for the operator to write any. The log is in the order of answers, and an edit may be answered after what it caused.
func (h *honest) reactions(t *testing.T, from live.Mark) (times []float64, waiting map[types.NamespacedName]time.Time) {
	t.Helper()
	var all []timed
	must(t, shared.audit.Since(from, func(line []byte) error {
		if !bytes.Contains(line, []byte(`"computeclusters"`)) && !bytes.Contains(line, []byte(`"pods"`)) {
			return nil
		}
		var r timed
		err := json.Unmarshal(line, &r)
		all = append(all, r)
		return err
	}))
	slices.SortStableFunc(all, func(a, b timed) int { return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp) })
	waiting = map[types.NamespacedName]time.Time{}
	for _, r := range all {
		name := types.NamespacedName{Namespace: r.ObjectRef.Namespace, Name: r.ObjectRef.Name}
		switch {
		case r.UserAgent != agent && r.what() == "patch computeclusters" && slices.Contains(h.clusters, name):
			if _, overtaken := waiting[name]; overtaken { // by an edit that takes it back
				delete(waiting, name)
				continue
			}
			waiting[name] = r.RequestReceivedTimestamp
		case r.UserAgent == agent && r.isWrite() && r.ObjectRef.Resource == "pods":
			name.Name, _, _ = strings.Cut(name.Name, "-")
			if edited, waits := waiting[name]; waits && r.Verb == "create" {
				times = append(times, float64(r.RequestReceivedTimestamp.Sub(edited).Microseconds())/1000)
			}
			delete(waiting, name)
		}
	}
	return times, waiting
}

// timed is a request with when it came.
type timed struct {
	request
	RequestReceivedTimestamp time.Time
}

// adversaries are the objects of hostile tenants, with the servers that these lead the operator to, by their sort.
type adversaries struct {
	objects []client.Object
	servers map[string][]*hostile.Server
}

// newAdversaries makes n objects beside a hostile Redis each, as many beside a Sentinel, and as many on hostile heads. They
// are not created yet.
func newAdversaries(t *testing.T, n int) *adversaries {
	t.Helper()
	elsewhere := []string{"169.254.169.254:80", "[fe80::1]:6379", "0.0.0.0:6379", "224.0.0.1:6379", strings.TrimPrefix(shared.Config.Host, "https://"), "localhost:1"}
	a := &adversaries{servers: map[string][]*hostile.Server{}}
	redis, sentinels, heads := newNamespace(t), newNamespace(t), newNamespace(t)
	for i := range n {
		for sort, where := range map[string]struct {
			namespace string
			manners   []hostile.Manner
		}{live.HostileRedis: {redis, hostile.Redis(elsewhere...)}, live.HostileSentinel: {sentinels, hostile.Sentinel(elsewhere...)}} {
			server := opposing(t, where.manners, i)
			a.servers[sort] = append(a.servers[sort], server)
			cluster := newCluster(where.namespace, fmt.Sprintf("c%d", i), 0)
			cluster.Spec.ControlStore = &v1beta1.ControlStore{Redis: &v1beta1.GivenRedis{Address: "redis://" + server.Address()}}
			a.objects = append(a.objects, cluster)
		}
		a.objects = append(a.objects, onHostileHead(heads, i))
	}
	shared.heads.make(t, heads, making{raw: func(pod *corev1.Pod) (string, error) { return a.head(t, pod) }})
	for _, namespace := range []string{redis, sentinels, heads} {
		(&bed{t: t}).cleansUp(namespace)
	}
	return a
}

// onHostileHead is a cluster with autoscaling, a job, a cluster whose workers will leave, or a service, each with a head of
// its own.
func onHostileHead(namespace string, i int) client.Object {
	name := fmt.Sprintf("c%d", i)
	switch i % 4 {
	case 0:
		cluster := newCluster(namespace, name, 0)
		cluster.Spec.WorkerGroups[0] = v1beta1.WorkerGroup{Name: "cpu", MaxReplicas: new(int32(3))}
		cluster.Spec.Autoscaling = &v1beta1.Autoscaling{}
		return cluster
	case 1:
		return newJob(namespace, name)
	case 2:
		cluster := newCluster(namespace, name, 2)
		cluster.Spec.WorkerGroups[0].DrainSeconds = nil
		return cluster
	}
	service := servedIn(namespace, name)
	service.Spec.Suspend = new(false)
	return service
}

// head puts hostile servers behind all ports of a head that the operator asks.
func (a *adversaries) head(t *testing.T, pod *corev1.Pod) (string, error) {
	if pod.Labels[v1beta1.LabelRole] != v1beta1.RoleHead {
		return "", nil
	}
	shared.heads.mu.Lock()
	defer shared.heads.mu.Unlock()
	address := shared.heads.next()
	for sort, behind := range map[string]struct {
		port    string
		manners []hostile.Manner
	}{
		live.HostileGCS: {"6379", hostile.GCS()}, live.HostileAutoscaler: {"6380", hostile.Autoscaler()}, live.HostileAPI: {"8265", hostile.Web()},
	} {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(address, behind.port))
		if err != nil {
			return "", fmt.Errorf("listen as a hostile head: %w", err)
		}
		server := hostile.Serve(listener, behind.manners, len(a.servers[sort]))
		t.Cleanup(func() { _ = server.Close() })
		a.servers[sort] = append(a.servers[sort], server)
	}
	return address, nil
}

// asked counts the connections to the servers of each sort.
func (a *adversaries) asked() map[string]int64 {
	shared.heads.mu.Lock()
	defer shared.heads.mu.Unlock()
	counts := map[string]int64{}
	for sort, servers := range a.servers {
		for _, server := range servers {
			counts[sort] += server.Asked()
		}
	}
	return counts
}

// wereAsked waits until servers of each sort were asked, which takes longer on a busy machine.
func (a *adversaries) wereAsked(t *testing.T) {
	t.Helper()
	eventually(t, "each sort of hostile servers to be asked", func(context.Context) error {
		asked := a.asked()
		for _, sort := range live.HostileSorts() {
			if asked[sort] == 0 {
				return fmt.Errorf("connections: %v", asked)
			}
		}
		return nil
	})
}

func (a *adversaries) namespaces() []string {
	all := map[string]bool{}
	for _, object := range a.objects {
		all[object.GetNamespace()] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// begin creates the objects, and has workers leave, over which a GCS is asked.
func (a *adversaries) begin(t *testing.T) {
	t.Helper()
	for _, object := range a.objects {
		must(t, shared.Create(t.Context(), object))
	}
	for _, object := range a.objects {
		if cluster, is := object.(*v1beta1.ComputeCluster); is && len(cluster.Spec.WorkerGroups) > 0 && ptr.Deref(cluster.Spec.WorkerGroups[0].Replicas, 0) > 0 {
			name := client.ObjectKeyFromObject(cluster)
			ready(t, name)
			scaleTo(t, name, 0)
		}
	}
}

// saysNothingGood checks that no control store of theirs is called ready.
func (a *adversaries) saysNothingGood(t *testing.T) {
	t.Helper()
	for _, object := range a.objects {
		cluster, isCluster := object.(*v1beta1.ComputeCluster)
		if !isCluster || cluster.Spec.ControlStore == nil {
			continue
		}
		now, err := shared.Find(t.Context(), client.ObjectKeyFromObject(cluster))
		must(t, err)
		if meta.IsStatusConditionTrue(now.Status.Conditions, v1beta1.ConditionControlStoreReady) {
			t.Errorf("the control store of %s is called ready", client.ObjectKeyFromObject(now))
		}
	}
}

// leave deletes the objects, which nobody holds up.
func (a *adversaries) leave(t *testing.T) {
	t.Helper()
	for _, object := range a.objects {
		must(t, shared.Delete(t.Context(), object))
	}
	for _, namespace := range a.namespaces() {
		emptied(t, namespace)
	}
}
