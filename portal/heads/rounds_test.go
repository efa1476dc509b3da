package heads

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

func TestIsProcessName(t *testing.T) {
	for name, want := range map[string]bool{
		"worker/3": true, "a-b/4095": true, "worker": false, "worker/": false, "worker/03": false, "worker/10000": false, "/3": false,
		"Worker/3": false, "*/3": false, "../3": false, "worker/3/4": false, "worker/-1": false, "": false,
	} {
		if IsProcessName(name) != want {
			t.Errorf("%q: %t", name, !want)
		}
	}
}

func TestListRounds_IsRefusedWithEncryption(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1beta1.AnnotationEncryption: string(v1beta1.Enabled)}}}
	c := &Conversation{Way: &Way{cluster: &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}, pod: pod}}
	var refused *Refusal
	if _, _, err := c.ListRounds(t.Context(), Process{}); !errors.As(err, &refused) || refused.Code != reason.OutputUnreadable.Code {
		t.Errorf("it is %v", err)
	}
}

func TestSortRounds_TakesTheFilesOfTheProcess(t *testing.T) {
	file := func(node, name string) headclient.Log {
		return headclient.Log{Node: node, File: "job-driver-s-worker-3-r" + name}
	}
	found := sortRounds(Process{Submission: "s", Name: "worker/3"}.stem(), []headclient.Log{
		file("b", "10.log.1"), file("a", "2.log"), file("b", "10.log"), file("a", "02.log"), file("a", "3.log.2"),
		{Node: "a", File: "job-driver-s-worker-30-r4.log"}, {Node: "a", File: "5.log"},
	})
	want := []Round{{Number: 2, Log: file("a", "2.log")}, {Number: 10, Log: file("b", "10.log"), HasOlder: true}}
	if !slices.Equal(found, want) || found[1].File(true) != file("b", "10.log.1") {
		t.Errorf("they are %+v", found)
	}
}
