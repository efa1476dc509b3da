package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// grouped is cluster demo with a head and two workers of group gpu.
func grouped() (*v1beta1.ComputeCluster, []corev1.Pod) {
	cluster := headstest.New().PutCluster("demo", func(c *v1beta1.ComputeCluster) {
		c.Spec.WorkerGroups = []v1beta1.WorkerGroup{{Name: "gpu"}, {Name: "cpu"}}
	})
	head := headstest.Head(cluster, 1, headIP)
	head.Name = "demo-head-1"
	pods := []corev1.Pod{*head}
	for i := range 2 {
		worker := head.DeepCopy()
		worker.Name = fmt.Sprintf("demo-gpu-%d", 1-i)
		worker.Labels = map[string]string{v1beta1.LabelRole: v1beta1.RoleWorker, v1beta1.LabelGroup: "gpu"}
		pods = append(pods, *worker)
	}
	stranger := head.DeepCopy()
	stranger.Name, stranger.OwnerReferences = "stranger", nil
	pods = append(pods, *stranger)
	for i := range pods {
		pods[i].Labels[v1beta1.LabelCluster] = "demo"
		pods[i].Status.Phase = corev1.PodRunning
	}
	return cluster, pods
}

func TestChoose_TakesPodsOfTheClusterAlone(t *testing.T) {
	cluster, pods := grouped()
	for name, c := range map[string]struct {
		of   podChoice
		want []string
		code int
	}{
		"the head":            {podChoice{}, []string{pods[0].Name}, outcome.Done},
		"a group":             {podChoice{group: "gpu"}, []string{"demo-gpu-0", "demo-gpu-1"}, outcome.Done},
		"a pod":               {podChoice{pod: "demo-gpu-1"}, []string{"demo-gpu-1"}, outcome.Done},
		"a group without any": {podChoice{group: "cpu"}, nil, outcome.Refused},
		"no such group":       {podChoice{group: "gpus"}, nil, outcome.Usage},
		"no such pod":         {podChoice{pod: "demo-gpu-7"}, nil, outcome.Usage},
		"a stranger's pod":    {podChoice{pod: "stranger"}, nil, outcome.Usage},
	} {
		got, err := c.of.choose(cluster, pods)
		if !slices.Equal(got, c.want) || outcome.Code(err) != c.code {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestCutTime_TakesWholeLinesBehindATime(t *testing.T) {
	at := began()
	stamp := func(seconds int) string { return at.Add(time.Duration(seconds) * time.Second).Format(time.RFC3339Nano) }
	for name, c := range map[string]struct {
		line, text string
		isNew      bool
	}{
		"a line behind it":  {stamp(1) + " a b\n", "a b\n", true},
		"an empty line":     {stamp(1) + " \n", "\n", true},
		"the same time":     {stamp(0) + " a\n", "a\n", false},
		"before it":         {stamp(-1) + " a\n", "a\n", false},
		"a part of a line":  {stamp(1) + " a", "a", false},
		"a line of no time": {"a b\n", "b\n", false},
		"nothing":           {"", "", false},
	} {
		if _, text, isNew := cutTime(c.line, at); text != c.text || isNew != c.isNew {
			t.Errorf("%s: %q, %v", name, text, isNew)
		}
	}
}

func began() time.Time { return time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC) }

// breaking is a log whose connection breaks after some bytes.
type breaking struct {
	io.Reader
	err error
}

func (b *breaking) Read(part []byte) (int, error) {
	count, err := b.Reader.Read(part)
	if errors.Is(err, io.EOF) {
		err = b.err
	}
	return count, err
}

func (b *breaking) Close() error { return nil }

// logged runs a command over pods, each with its lines; the connection breaks after ever more bytes.
func logged(t *testing.T, choice podChoice, isFollowed bool, end func(*kube.Objects)) (out, said string, err error) {
	t.Helper()
	cluster, pods := grouped()
	made := fake.NewClientBuilder().WithScheme(kube.Scheme()).WithObjects(cluster)
	for i := range pods {
		made = made.WithObjects(&pods[i])
	}
	objects := &kube.Objects{WithWatch: made.Build(), Namespace: headstest.Namespace}
	var printed, notes bytes.Buffer
	reads := map[string]int{}
	c := &console.Console{Clock: clock.RealClock{}, IOStreams: genericiooptions.IOStreams{Out: &printed, ErrOut: &notes},
		StreamLog: func(_ context.Context, of console.Container, after time.Time, _ bool) (io.ReadCloser, error) {
			var text string
			for i := range 10 {
				if at := began().Add(time.Duration(i) * time.Second); !at.Before(after.Truncate(time.Second)) {
					text += fmt.Sprintf("%s %s of %s line %d\n", at.Format(time.RFC3339Nano), of.Name, of.Pod.Name, i)
				}
			}
			reads[of.Pod.Name]++
			if most := 60 * reads[of.Pod.Name]; isFollowed && most < len(text) {
				return &breaking{strings.NewReader(text[:most]), errors.New("connection reset")}, nil
			}
			if end != nil {
				end(objects)
			}
			return &breaking{strings.NewReader(text), io.EOF}, nil
		}}
	of := podOutput{console: c, objects: objects, cluster: cluster, choice: choice, isFollowed: isFollowed}
	err = of.print(t.Context())
	return printed.String(), notes.String(), err
}

func TestPodOutput_PrintsRaysContainers(t *testing.T) {
	out, _, err := logged(t, podChoice{}, false, nil)
	if err != nil || strings.Count(out, "\n") != 10 || !strings.HasPrefix(out, "ray of demo-head-1 line 0\n") {
		t.Errorf("%v: %q", err, out)
	}
	out, _, err = logged(t, podChoice{group: "gpu"}, false, nil)
	if err != nil || strings.Count(out, "\n") != 20 || !strings.HasPrefix(out, "demo-gpu-0: ray of demo-gpu-0 line 0\n") {
		t.Errorf("%v: %q", err, out)
	}
}

// TestPodOutput_FollowsThroughLostConnections has each line once, and an end with the pod's.
func TestPodOutput_FollowsThroughLostConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := func(objects *kube.Objects) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: headstest.Namespace, Name: "demo-head-1"}}
			if err := objects.Delete(t.Context(), pod); err != nil {
				t.Error(err)
			}
		}
		out, said, err := logged(t, podChoice{}, true, ends)
		var want string
		for i := range 10 {
			want += fmt.Sprintf("ray of demo-head-1 line %d\n", i)
		}
		if err != nil || out != want {
			t.Errorf("%v: %q", err, out)
		}
		if !strings.Contains(said, "pod demo-head-1 has ended") || !strings.Contains(said, "does not answer") {
			t.Errorf("it says %q", said)
		}
	})
}

func TestCheckFlags_RefusesThoseOfOtherKinds(t *testing.T) {
	for name, c := range map[string]struct {
		kind  kube.Kind
		given []string
		isBad bool
	}{
		"an attempt of a job":            {kube.Job, []string{"attempt", "follow"}, false},
		"a group of a cluster":           {kube.Cluster, []string{"group"}, false},
		"a deployment of a service":      {kube.Service, []string{"deployment"}, false},
		"a group of a job":               {kube.Job, []string{"group"}, true},
		"a pod of a service":             {kube.Service, []string{"pod"}, true},
		"an attempt of a cluster":        {kube.Cluster, []string{"attempt"}, true},
		"a service through the server":   {kube.Service, []string{"server"}, false},
		"a cluster through the server":   {kube.Cluster, []string{"server"}, true},
		"a group and a pod of a cluster": {kube.Cluster, []string{"group", "pod"}, true},
	} {
		err := checkFlags(c.kind, func(flag string) bool { return slices.Contains(c.given, flag) })
		if (err != nil) != c.isBad {
			t.Errorf("%s: %v", name, err)
		}
	}
}
