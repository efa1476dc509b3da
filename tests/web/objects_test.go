package web

import (
	"context"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/tests/internal/fakekubelet"
	"github.com/heliostat-dev/heliostat/tests/live"
)

const (
	headIP    = "10.1.0.1"
	otherIP   = "10.1.0.2"
	headToken = "a-token-of-the-cluster-demo-0123456789"
)

// moment is a time of testdata/objects.yaml.
var moment = regexp.MustCompile(`\$\{(-[0-9hms]+)\}`)

// makeObjects makes the objects of testdata/objects.yaml with their statuses, pods of two of them, and a head that runs
// the job train.
func (b *bed) makeObjects() {
	b.t.Helper()
	text, err := os.ReadFile("testdata/objects.yaml")
	must(b.t, err)
	now := time.Now().Add(-time.Second)
	text = moment.ReplaceAllFunc(text, func(found []byte) []byte {
		ago, err := time.ParseDuration(string(found[2 : len(found)-1]))
		must(b.t, err)
		return []byte(now.Add(ago).UTC().Format(time.RFC3339))
	})
	must(b.t, fakekubelet.Run(b.t.Context(), b.Kubernetes, fakekubelet.Options{
		Nodes: []string{"node-1", "node-2"}, Address: addressOf,
		Room: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1k"), corev1.ResourceMemory: resource.MustParse("1Ti"),
			corev1.ResourcePods: resource.MustParse("1k"), "nvidia.com/gpu": resource.MustParse("13"),
		},
	}))
	objects, err := live.Decode(text)
	must(b.t, err)
	for _, object := range objects {
		must(b.t, b.put(b.t.Context(), object))
	}
	b.keepVersion("sort", 3, `{"serveConfig":{"applications":[{"name":"sort","import_path":"sort:former"}]}}`)
	b.makePods("demo", map[string]int{"cpu": 2, "gpu": 1}, "1")
	b.makePods("training", map[string]int{"a100": 3}, "8")
	b.startHead()
	preset, err := os.ReadFile("../../examples/portal/preset.yaml")
	must(b.t, err)
	must(b.t, b.Apply(b.t.Context(), live.ReleaseNamespace, preset))
}

// put makes an object, and gives it its status.
func (b *bed) put(ctx context.Context, object *unstructured.Unstructured) error {
	if object.GetNamespace() == "" {
		object.SetNamespace(b.namespace)
	}
	status := object.Object["status"]
	if err := b.Create(ctx, object); err != nil {
		return fmt.Errorf("make %s: %w", object.GetName(), err)
	}
	object.Object["status"] = status
	if err := b.Status().Update(ctx, object); err != nil {
		return fmt.Errorf("give %s its status: %w", object.GetName(), err)
	}
	return nil
}

// keepVersion keeps a version of a service, as the operator does, which an undo finds.
func (b *bed) keepVersion(service string, number int64, data string) {
	b.t.Helper()
	owner := &v1beta1.ClusterService{}
	must(b.t, b.Get(b.t.Context(), types.NamespacedName{Namespace: b.namespace, Name: service}, owner))
	must(b.t, b.Create(b.t.Context(), &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.namespace, Name: naming.ServiceRevision(service, strconv.FormatInt(number, 10)),
			Labels:          naming.ServiceLabels(service),
			OwnerReferences: ownedBy("ClusterService", owner),
		},
		Data: runtime.RawExtension{Raw: []byte(data)}, Revision: number,
	}))
}

// ownedBy says that an object belongs to another one.
func ownedBy(kind string, owner client.Object) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: v1beta1.GroupVersion.String(), Kind: kind, Name: owner.GetName(), UID: owner.GetUID(),
		Controller: new(true),
	}}
}

// addressOf gives heads their addresses: that of demo is the fake head's.
func addressOf(pod *corev1.Pod) (string, error) {
	if pod.Labels[v1beta1.LabelRole] != v1beta1.RoleHead {
		return "", nil
	}
	return map[string]string{"demo": headIP, "training": otherIP}[pod.Labels[v1beta1.LabelCluster]], nil
}

// makePods makes the pods of a cluster: a head, and workers of groups that ask for GPUs.
func (b *bed) makePods(cluster string, groups map[string]int, gpus string) {
	b.t.Helper()
	owner := &v1beta1.ComputeCluster{}
	must(b.t, b.Get(b.t.Context(), types.NamespacedName{Namespace: b.namespace, Name: cluster}, owner))
	b.makePod(owner, naming.Place{Epoch: 1}, "")
	for group, count := range groups {
		for slot := range count {
			want := ""
			if group != "cpu" {
				want = gpus
			}
			b.makePod(owner, naming.Place{Epoch: 1, Group: group, Slot: slot}, want)
		}
	}
}

func (b *bed) makePod(owner *v1beta1.ComputeCluster, at naming.Place, gpus string) {
	b.t.Helper()
	limits := corev1.ResourceList{}
	if gpus != "" {
		limits["nvidia.com/gpu"] = resource.MustParse(gpus)
	}
	must(b.t, b.Create(b.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.Namespace, Name: naming.Pod(owner.Name, owner.UID, at), Labels: naming.PodLabels(owner.Name, at),
			OwnerReferences: ownedBy("ComputeCluster", owner),
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: v1beta1.ContainerRay, Image: "ray",
			Resources: corev1.ResourceRequirements{Limits: limits, Requests: limits},
		}}},
	}))
}

// startHead starts the head of demo, with the job train on it.
func (b *bed) startHead() {
	b.t.Helper()
	gcs, err := b.island.Listen(headIP + ":6379")
	must(b.t, err)
	web, err := b.island.Listen(headIP + ":8265")
	must(b.t, err)
	b.head = fakehead.StartOn(clock.RealClock{}, gcs, web)
	b.t.Cleanup(b.head.Close)
	b.head.SetToken(headToken)
	b.head.SetStartDelay(0)
	b.head.SetProgram(func(run fakehead.Run) (fakehead.Process, bool) {
		name, count, _ := strings.Cut(run.Entrypoint, " ")
		if name != "hostile" {
			return fakehead.Process{}, false
		}
		lines, _ := strconv.Atoi(count)
		return fakehead.Process{Hangs: true, Lines: hostileLines(lines)}, true
	})
	owner := b.keepToken("demo")
	b.tell(owner, "Unhealthy", "the probe of demo failed")
	name := naming.Pod(owner.Name, owner.UID, naming.Place{Epoch: 1})
	pod := &corev1.Pod{}
	must(b.t, live.Until(b.t.Context(), 30*time.Second, "the head of demo to run", func(ctx context.Context) error {
		err := b.Get(ctx, types.NamespacedName{Namespace: b.namespace, Name: name}, pod)
		if err == nil && pod.Status.PodIP != headIP {
			err = fmt.Errorf("its address is %q", pod.Status.PodIP)
		}
		return err
	}))
	must(b.t, b.run(b.t.Context(), "train", trainScript))
}

// tell makes a warning about a cluster.
func (b *bed) tell(about *v1beta1.ComputeCluster, reason, message string) {
	b.t.Helper()
	must(b.t, b.Create(b.t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: about.Namespace, Name: about.Name + ".1"},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: v1beta1.GroupVersion.String(), Kind: "ComputeCluster", Namespace: about.Namespace, Name: about.Name, UID: about.UID,
		},
		Type: corev1.EventTypeWarning, Reason: reason, Message: message, LastTimestamp: metav1.Now(), Count: 1,
	}))
}

// keepToken makes the Secret with the token of a cluster, and returns the cluster.
func (b *bed) keepToken(name string) *v1beta1.ComputeCluster {
	b.t.Helper()
	owner := &v1beta1.ComputeCluster{}
	must(b.t, b.Get(b.t.Context(), types.NamespacedName{Namespace: b.namespace, Name: name}, owner))
	must(b.t, b.Create(b.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: b.namespace, Name: naming.TokenSecret(name), OwnerReferences: ownedBy("ComputeCluster", owner),
		},
		Data: map[string][]byte{v1beta1.TokenKey: []byte(headToken)},
	}))
	return owner
}

// trainScript writes something at once, and then a line each second for a while.
var trainScript = func() string {
	var script strings.Builder
	script.WriteString("echo 'loading data from s3://corpus'")
	for epoch := range 400 {
		fmt.Fprintf(&script, "; sleep 1; echo 'epoch %d: loss %.4f'", epoch+1, 2.5/float64(epoch+2))
	}
	return script.String()
}()

// run submits an entrypoint on demo as the next attempt of a job that there is.
func (b *bed) run(ctx context.Context, name, entrypoint string) error {
	asking, err := headclient.DialJobs(headIP+":8265", headclient.Options{
		Token:   func(context.Context) (string, error) { return headToken, nil },
		Connect: func(_ context.Context, address string) (net.Conn, error) { return b.island.Dial(address) },
	})
	if err != nil {
		return fmt.Errorf("ask the fake head: %w", err)
	}
	defer func() { _ = asking.Close() }()
	job, cluster, pod := &v1beta1.ClusterJob{}, &v1beta1.ComputeCluster{}, &corev1.Pod{}
	for name, into := range map[string]client.Object{name: job, "demo": cluster} {
		if err := b.Get(ctx, types.NamespacedName{Namespace: b.namespace, Name: name}, into); err != nil {
			return fmt.Errorf("find %s: %w", name, err)
		}
	}
	head := naming.Pod(cluster.Name, cluster.UID, naming.Place{Epoch: 1})
	if err := b.Get(ctx, types.NamespacedName{Namespace: b.namespace, Name: head}, pod); err != nil {
		return fmt.Errorf("find the head: %w", err)
	}
	number := job.Status.Attempt + 1
	if len(job.Status.Attempts) == 0 {
		number = 1
	}
	id := fmt.Sprintf("%s-%d", name, number)
	if err := asking.Submit(ctx, headclient.Submission{ID: id, Entrypoint: entrypoint}); err != nil {
		return fmt.Errorf("submit %s: %w", id, err)
	}
	now := metav1.Now()
	job.Status.Attempt, job.Status.Phase, job.Status.ClusterName = number, v1beta1.PhaseRunning, cluster.Name
	job.Status.Attempts = append(job.Status.Attempts, v1beta1.JobAttempt{
		Number: number, SubmissionID: id, ClusterName: cluster.Name, ClusterUID: cluster.UID,
		HeadName: pod.Name, HeadUID: pod.UID,
		Session: b.head.Session(), SubmitTime: &now, StartTime: &now,
	})
	return b.Status().Update(ctx, job)
}

// hostileLines are lines that a careless page would run, obey, or choke on.
func hostileLines(count int) []string {
	lines := []string{
		"<script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\">",
		"\x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x07link\x1b]8;;\x07 \x1b[2Jcleared",
		"\u202eright to left\u202c and \u200fmarks\u200e",
		"progress 10 %\rprogress 90 %",
		"end of the first lines",
		"long " + strings.Repeat("x", 1<<20),
	}
	for i := range count {
		lines = append(lines, fmt.Sprintf("line %d of many, with some words to make it as long as lines are", i+1))
	}
	return lines
}
