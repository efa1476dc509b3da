package job

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// TestList_WatchesJobs: a job that changes has another line, and the others have not.
func TestList_WatchesJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobOf := func(name string) *v1beta1.ClusterJob {
			return &v1beta1.ClusterJob{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
		}
		made := fake.NewClientBuilder().WithScheme(kube.Scheme()).WithObjects(jobOf("x"), jobOf("y")).Build()
		var out bytes.Buffer
		c := &console.Console{Clock: clock.RealClock{}, IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &bytes.Buffer{}},
			Connect: func() (*kube.Objects, error) { return &kube.Objects{WithWatch: made, Namespace: "a"}, nil }}
		command := list(c)
		command.SilenceErrors, command.SilenceUsage = true, true
		command.SetArgs([]string{"-w"})
		ctx, interrupt := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- command.ExecuteContext(ctx) }()
		<-time.After(time.Minute)
		running := &v1beta1.ClusterJob{}
		if err := made.Get(ctx, client.ObjectKey{Namespace: "a", Name: "y"}, running); err != nil {
			t.Fatal(err)
		}
		running.Status.Phase = v1beta1.PhaseRunning
		if err := made.Update(ctx, running); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		interrupt()
		if err := <-done; outcome.Code(err) != outcome.Detached {
			t.Errorf("it ends with %v", err)
		}
		var rows []string
		for line := range strings.Lines(out.String()) {
			rows = append(rows, strings.Join(strings.Fields(line)[:2], " "))
		}
		if got, want := strings.Join(rows, ", "), "NAME PHASE, x Pending, y Pending, y Running"; got != want {
			t.Errorf("the rows are %s, want %s", got, want)
		}
	})
}
