package logs

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

const headIP = "10.1.0.1"

// bed is cluster demo with a head and job train, in a bubble of time.
type bed struct {
	t         *testing.T
	network   *headstest.Network
	listener  *headstest.Listener
	fake      *fakehead.Head
	objects   *kube.Objects
	console   *console.Console
	out, said syncBuffer
}

// syncBuffer is a buffer that a command writes while a test reads.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(part []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(part)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// run runs a test in a bubble of time.
func run(t *testing.T, test func(t *testing.T, b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		site, network := headstest.New(), headstest.NewNetwork()
		cluster := site.PutCluster("demo", nil)
		pod := headstest.Head(cluster, 1, headIP)
		pod.Labels[v1beta1.LabelCluster] = "demo"
		secret := headstest.Secret(cluster, naming.TokenSecret("demo"), v1beta1.TokenKey, headstest.Token)
		job := &v1beta1.ClusterJob{ObjectMeta: metav1.ObjectMeta{Namespace: headstest.Namespace, Name: "train", UID: "u"}}
		b := &bed{t: t, network: network, listener: network.Listen(headIP + ":8265")}
		b.fake = fakehead.StartOn(clock.RealClock{}, network.Listen("gcs:1"), b.listener)
		b.fake.SetToken(headstest.Token)
		made := fake.NewClientBuilder().WithScheme(kube.Scheme()).WithObjects(cluster, pod, secret, job).
			WithStatusSubresource(&v1beta1.ClusterJob{}).Build()
		b.objects = &kube.Objects{WithWatch: made, Namespace: headstest.Namespace}
		b.console = &console.Console{Clock: clock.RealClock{},
			IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &b.out, ErrOut: &b.said},
			Connect:   func() (*kube.Objects, error) { return b.objects, nil },
			Forward: func(ctx context.Context, to types.NamespacedName, port int) (net.Conn, error) {
				if to.Name != pod.Name {
					return nil, fmt.Errorf("there is no pod %s", to.Name)
				}
				return network.Connect(ctx, fmt.Sprintf("%s:%d", headIP, port))
			}}
		defer func() {
			network.Break()
			b.fake.Close()
		}()
		test(t, b)
	})
}

// submit runs an entrypoint as an attempt of the job.
func (b *bed) submit(number int32, entrypoint string) v1beta1.JobAttempt {
	b.t.Helper()
	clusters := away.Clusters{Console: b.console, Objects: b.objects}
	conversation, err := clusters.Converse(b.t.Context(), "demo")
	if err != nil {
		b.t.Fatal(err)
	}
	id := fmt.Sprintf("train-%d", number)
	if err := conversation.Submit(b.t.Context(), headclient.Submission{ID: id, Entrypoint: entrypoint}); err != nil {
		b.t.Fatal(err)
	}
	if err := conversation.Close(); err != nil {
		b.t.Fatal(err)
	}
	return v1beta1.JobAttempt{Number: number, SubmissionID: id, ClusterName: "demo"}
}

// tell writes the status of the job.
func (b *bed) tell(isOver bool, attempts ...v1beta1.JobAttempt) {
	b.t.Helper()
	job := &v1beta1.ClusterJob{}
	if err := b.objects.Get(b.t.Context(), client.ObjectKey{Namespace: headstest.Namespace, Name: "train"}, job); err != nil {
		b.t.Fatal(err)
	}
	job.Status.Phase, job.Status.Attempts = v1beta1.PhaseRunning, attempts
	if now := metav1.Now(); isOver {
		job.Status.Phase, job.Status.EndTime = v1beta1.PhaseFailed, &now
	}
	if err := b.objects.Status().Update(b.t.Context(), job); err != nil {
		b.t.Fatal(err)
	}
}

// cluster is the one that the job runs on.
func (b *bed) cluster() *v1beta1.ComputeCluster {
	b.t.Helper()
	cluster := &v1beta1.ComputeCluster{}
	if err := b.objects.Get(b.t.Context(), client.ObjectKey{Namespace: headstest.Namespace, Name: "demo"}, cluster); err != nil {
		b.t.Fatal(err)
	}
	return cluster
}

// removeHead deletes the head's pod and breaks its connections.
func (b *bed) removeHead() {
	b.t.Helper()
	if err := b.objects.DeleteAllOf(b.t.Context(), &corev1.Pod{}, client.InNamespace(headstest.Namespace)); err != nil {
		b.t.Fatal(err)
	}
	b.network.Lead(headIP+":8265", nil)
	b.network.Break()
}

func ended(attempt v1beta1.JobAttempt, lines ...string) v1beta1.JobAttempt {
	now := metav1.Now()
	attempt.EndTime, attempt.LastLines, attempt.LogState = &now, lines, v1beta1.LogComplete
	return attempt
}

// follow runs the command, and returns how it ended.
func (b *bed) follow(ctx context.Context, args ...string) error {
	command := Command(b.console, "logs job/NAME")
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(append([]string{"job/train"}, args...))
	return command.ExecuteContext(ctx)
}

// begin follows the output beside the test.
func (b *bed) begin(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	go func() { done <- b.follow(ctx, "-f") }()
	pass(10 * time.Second)
	return done
}

// pass lets time pass, and all that is due be done.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestLogs_GoOnWhereTheConnectionBroke(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		first := b.submit(1, "seq 20000; sleep 60; seq 20000; sleep 60; echo last")
		b.tell(false, first)
		done := b.begin(t.Context())
		for range 10 {
			b.network.Break()
			pass(7 * time.Second)
		}
		pass(2 * time.Minute)
		b.tell(true, ended(first))
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		want, _ := b.fake.Output("train-1")
		if got := b.out.String(); got != want || strings.Count(got, "\n20000\n") != 2 {
			t.Errorf("the output is not the job's, byte for byte: %d bytes of %d", len(got), len(want))
		}
		if !strings.Contains(b.said.String(), "does not answer") {
			t.Errorf("nothing is said of the breaks: %q", b.said.String())
		}
	})
}

func TestLogs_FollowTheNextAttempt(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		done := b.begin(t.Context())
		first := b.submit(1, "echo one; exit 1")
		b.tell(false, first)
		pass(10 * time.Second)
		second := b.submit(2, "echo two")
		b.tell(false, ended(first), second)
		pass(10 * time.Second)
		b.tell(true, ended(first), ended(second))
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := b.out.String(); !strings.Contains(got, "one") || strings.Index(got, "two") < strings.Index(got, "one") {
			t.Errorf("it prints %q", got)
		}
		if said := b.said.String(); !strings.Contains(said, "job/train  0/") ||
			!strings.Contains(said, "attempt 2 of job/train") {
			t.Errorf("it says %q", said)
		}
	})
}

// TestLogs_WaitForTheSubmission: the status names an attempt a moment before its head knows it.
func TestLogs_WaitForTheSubmission(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.tell(false, v1beta1.JobAttempt{Number: 1, SubmissionID: "train-1", ClusterName: "demo"})
		done := b.begin(t.Context())
		first := b.submit(1, "echo one")
		pass(10 * time.Second)
		b.tell(true, ended(first))
		if err := <-done; err != nil || b.out.String() == "" {
			t.Errorf("it prints %q: %v", b.out.String(), err)
		}
	})
}

func TestLogs_PrintWhatIsKeptWithoutAHead(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		attempt := v1beta1.JobAttempt{Number: 1, SubmissionID: "train-1", ClusterName: "gone"}
		b.tell(true, ended(attempt, "almost", "oops"))
		if err := b.follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		if b.out.String() != "almost\noops\n" || !strings.Contains(b.said.String(), "last lines") {
			t.Errorf("it prints %q and says %q", b.out.String(), b.said.String())
		}
	})
}

// TestLogs_OutliveTheCluster: a job's own cluster is suspended and goes as soon as the job has ended.
func TestLogs_OutliveTheCluster(t *testing.T) {
	suspended := func(t *testing.T, b *bed) {
		cluster := b.cluster()
		cluster.Spec.Suspend = new(true)
		if err := b.objects.Update(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
	}
	deleted := func(t *testing.T, b *bed) {
		if err := b.objects.Delete(t.Context(), b.cluster()); err != nil {
			t.Fatal(err)
		}
	}
	for name, leave := range map[string]func(*testing.T, *bed){"suspended": suspended, "deleted": deleted} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, b *bed) {
				first := b.submit(1, "echo one; hang")
				b.tell(false, first)
				done := b.begin(t.Context())
				b.removeHead()
				leave(t, b)
				pass(20 * time.Second)
				b.tell(true, ended(first, "one", "two"))
				if err := <-done; err != nil || !strings.HasSuffix(b.out.String(), "\none\ntwo\n") || strings.Contains(b.said.String(), "with -n") {
					t.Errorf("it prints %q: %v", b.out.String(), err)
				}
			})
		})
	}
}

// TestLogs_OutliveTheDriversNode: Ray says that a job is over, and its output has gone, before the status says so.
func TestLogs_OutliveTheDriversNode(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		first := b.submit(1, "echo one")
		pass(10 * time.Second)
		b.fake.RemoveOutput(first.SubmissionID)
		b.tell(false, first)
		done := b.begin(t.Context())
		pass(10 * time.Second)
		b.tell(true, ended(first, "one", "two"))
		if err := <-done; err != nil || b.out.String() != "one\ntwo\n" {
			t.Errorf("it prints %q: %v", b.out.String(), err)
		}
	})
}

// TestLogs_WaitForTheLastLines: an attempt can have ended in the status before the operator has read its last lines.
func TestLogs_WaitForTheLastLines(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		attempt := ended(v1beta1.JobAttempt{Number: 1, SubmissionID: "train-1", ClusterName: "gone"})
		attempt.LogState = ""
		b.tell(true, attempt)
		done := b.begin(t.Context())
		b.tell(true, ended(attempt, "oops"))
		if err := <-done; err != nil || b.out.String() != "oops\n" {
			t.Errorf("it prints %q: %v", b.out.String(), err)
		}
	})
}

func TestRestOf_IsWhatFollows(t *testing.T) {
	kept := []string{"one", "two", "two", "end"}
	for _, c := range []struct {
		name, printed, rest string
		isJoined            bool
	}{
		{"all of it where nothing was printed", "", "one\ntwo\ntwo\nend\n", false},
		{"nothing after the last line", "zero\none\ntwo\ntwo\nend\n", "", true},
		{"nothing after a last line without its end", "one\ntwo\ntwo\nend", "", true},
		{"the end of a line that was begun", "zero\none\ntw", "o\ntwo\nend\n", true},
		{"each line once where lines are equal", "one\ntwo\n", "two\nend\n", true},
		{"all of it after the beginning of a line that many may have", "zero\no", "\none\ntwo\ntwo\nend\n", false},
		{"the end of a line that was whole", "zero\none", "\ntwo\ntwo\nend\n", true},
		{"all of it where lines are missing", "zero\n", "one\ntwo\ntwo\nend\n", false},
		{"all of it on a line of its own", "zer", "\none\ntwo\ntwo\nend\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if rest, isJoined := restOf(c.printed, kept); rest != c.rest || isJoined != c.isJoined {
				t.Errorf("it is %q, %v; want %q, %v", rest, isJoined, c.rest, c.isJoined)
			}
		})
	}
}

func TestLogs_GiveUpAfterFiveMinutes(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.tell(false, b.submit(1, "echo one; hang"))
		done := b.begin(t.Context())
		b.network.Lead(headIP+":8265", nil)
		b.network.Break()
		pass(console.Patience + time.Minute)
		err := <-done
		if outcome.Code(err) != outcome.Failed || !strings.Contains(err.Error(), "follow again: heliostat logs job/train -f -n team") {
			t.Errorf("it ends with %v", err)
		}
		if !strings.HasSuffix(b.out.String(), "\none\n") {
			t.Errorf("it prints %q", b.out.String())
		}
	})
}

func TestLogs_DetachOnInterrupt(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.tell(false, b.submit(1, "echo one; hang"))
		ctx, interrupt := context.WithCancel(t.Context())
		done := b.begin(ctx)
		interrupt()
		if err := <-done; outcome.Code(err) != outcome.Detached || !strings.Contains(err.Error(), "job stop train") {
			t.Errorf("it ends with %v", err)
		}
		if runs := b.fake.Runs(); len(runs) != 1 {
			t.Errorf("the head has %d runs, want 1", len(runs))
		}
	})
}

// TestLogs_NeedTheClustersPod has a pod that only says that it is a head.
func TestLogs_NeedTheClustersPod(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		b.tell(false, b.submit(1, "echo one"))
		pods := &corev1.PodList{}
		if err := b.objects.List(t.Context(), pods); err != nil {
			t.Fatal(err)
		}
		pod := &pods.Items[0]
		pod.OwnerReferences = nil
		if err := b.objects.Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		_, err := (&away.Clusters{Console: b.console, Objects: b.objects}).Converse(t.Context(), "demo")
		if err == nil {
			t.Error("a pod that the cluster does not own gets its token")
		}
	})
}
