package explain_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// hold fails the test where a link is not fit to be sent.
func hold(t *testing.T, cause explain.Cause) {
	t.Helper()
	for _, text := range []string{cause.Code, cause.Message, cause.Remedy} {
		if len(text) > 4<<10 || !utf8.ValidString(text) {
			t.Errorf("%d bytes in %q", len(text), text)
		}
	}
	if cause.Kind == "" || cause.Code == "" {
		t.Errorf("a link about nothing: %+v", cause)
	}
}

// FuzzExplain: whatever an API server may return for an object, its clusters and its pods.
func FuzzExplain(f *testing.F) {
	cluster := clusterOf("demo", unready(reason.HeadStarting.Of("demo-head")))
	job := jobOf("train", unready(reason.ClusterStarting.Of("demo", "x")))
	job.Status.ClusterName = "demo"
	service := serviceOf("serve", unready(reason.ServeSilent.Of("demo", "10:00", "x")))
	service.Status.Active = &v1beta1.ServiceVersion{ClusterName: "demo"}
	encode := func(value any) []byte {
		content, err := json.Marshal(value)
		if err != nil {
			f.Fatal(err)
		}
		return content
	}
	for _, object := range []any{cluster, job, service} {
		for _, pod := range []*corev1.Pod{unschedulable(podOf(cluster, "demo-head", "")), starting(podOf(cluster, "demo-cpu-0", "cpu"))} {
			f.Add(encode(object), encode(cluster), encode(pod))
		}
	}
	f.Add([]byte(`{"status": {"conditions": [null, {}], "groups": [{}], "attempts": [{}], "active": {}}}`), []byte("{}"), []byte("{}"))
	f.Fuzz(func(t *testing.T, object, cluster, pod []byte) {
		in := explain.Input{Clusters: []*v1beta1.ComputeCluster{{}}, Pods: []*corev1.Pod{{}}, Now: now}
		_ = json.Unmarshal(cluster, in.Clusters[0]) // what could be read counts
		_ = json.Unmarshal(pod, in.Pods[0])
		for _, kind := range []runtime.Object{&v1beta1.ComputeCluster{}, &v1beta1.ClusterJob{}, &v1beta1.ClusterService{}} {
			_ = json.Unmarshal(object, kind)
			in.Object = kind
			chain := explain.Explain(in)
			if len(chain) == 0 || len(chain) > 32 || chain[0] != explain.Headline(kind) {
				t.Fatalf("%d links, and the first is not the headline", len(chain))
			}
			told := map[explain.Cause]bool{}
			for _, cause := range chain {
				hold(t, cause)
				if told[cause] {
					t.Errorf("told twice: %+v", cause)
				}
				told[cause] = true
			}
		}
	})
}
