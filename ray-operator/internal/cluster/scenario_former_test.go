package cluster_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// TestFormer: an operator takes over clusters of a former one, makes what that one did not know, and touches no pod. The
// files in testdata/former are what the operator of the first commit of v1beta1 wrote. They are never written again.
func TestFormer(t *testing.T) {
	var stories []testkit.Scenario
	for _, name := range []string{"plain", "without-groups", "sized", "templated", "second-epoch"} {
		former := readFormer(t, name)
		stories = append(stories, testkit.Scenario{Name: name, Run: func(w *testkit.World) { isTakenOver(w, name, former) }})
	}
	play(t, stories...)
}

// readFormer reads all objects of a cluster of a former operator.
func readFormer(t *testing.T, cluster string) []client.Object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "former", cluster+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(testkit.NewWorld(t).Client.Scheme(), serializer.EnableStrict).UniversalDeserializer()
	var objects []client.Object
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("read %s: %v", cluster, err)
		}
		objects = append(objects, object.(client.Object))
	}
	return objects
}

// isTakenOver lets an operator begin where a former one has left a cluster.
func isTakenOver(w *testkit.World, name string, former []client.Object) {
	w.Away = true
	restoreFormer(w, former)
	w.Settle()
	before, was := w.Pods(name), w.Cluster(name).Status.Epoch
	w.Return()
	w.Settle()
	w.Expect(name, ready, "UpToDate=True")
	if epoch := w.Cluster(name).Status.Epoch; epoch != was {
		w.Fatalf("%s is in epoch %d, want %d", name, epoch, was)
	}
	after := w.Pods(name)
	if had, has := testkit.UIDs(before), testkit.UIDs(after); len(had) == 0 || !slices.Equal(had, has) {
		w.Fatalf("the pods are %v, they were %v", has, had)
	}
	for i, pod := range after {
		if pod.DeletionTimestamp != nil {
			w.Fatalf("pod %s is on its way out", pod.Name)
		}
		if diff := cmp.Diff(before[i].Annotations, pod.Annotations); diff != "" { // also where it would be resized, which no UID shows
			w.Fatalf("the annotations of pod %s have changed:\n%s", pod.Name, diff)
		}
	}
}

// restoreFormer creates the objects of a cluster, the cluster first. They have other UIDs here, also in the record.
func restoreFormer(w *testkit.World, former []client.Object) {
	w.Helper()
	at := slices.IndexFunc(former, func(object client.Object) bool { return isCluster(object) })
	cluster := former[at].DeepCopyObject().(*v1beta1.ComputeCluster)
	status, uid := cluster.Status, cluster.UID
	w.Create(cluster)
	if cluster.UID != uid {
		w.Fatalf("the cluster has the UID %s, and names of pods follow from %s", cluster.UID, uid)
	}
	record, isRecorded := cluster.Annotations[v1beta1.AnnotationRecord]
	for _, object := range former {
		if isCluster(object) {
			continue
		}
		made := object.DeepCopyObject().(client.Object)
		made.SetUID("")
		w.Must(w.Client.Create(w.Ctx, made, client.FieldOwner(kube.FieldOwner)))
		if pod, is := made.(*corev1.Pod); is && pod.Labels[v1beta1.LabelRole] == v1beta1.RoleHead {
			record = strings.ReplaceAll(record, string(object.GetUID()), string(made.GetUID()))
			status.Head.UID = made.GetUID()
		}
	}
	if isRecorded {
		w.Annotate(cluster, v1beta1.AnnotationRecord, record)
	}
	w.Read(cluster)
	cluster.Status = status
	w.Must(w.Client.Status().Update(w.Ctx, cluster))
}

func isCluster(object runtime.Object) bool {
	_, is := object.(*v1beta1.ComputeCluster)
	return is
}
