package overview

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-dev/heliostat/apiserver/verbs"
	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

func clusterOf(name, version string) verbs.Object {
	return &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, ResourceVersion: version}}
}

func TestShown_ReturnsWhatChanged(t *testing.T) {
	last := shown{}
	for _, c := range []struct {
		all           []verbs.Object
		changed, gone []string
	}{
		{[]verbs.Object{clusterOf("x", "1"), clusterOf("y", "1")}, []string{"x", "y"}, nil},
		{[]verbs.Object{clusterOf("x", "1"), clusterOf("y", "1")}, nil, nil},
		{[]verbs.Object{clusterOf("x", "2"), clusterOf("y", "1"), clusterOf("z", "1")}, []string{"x", "z"}, nil},
		{[]verbs.Object{clusterOf("y", "1")}, nil, []string{"a cluster/x", "a cluster/z"}},
		{[]verbs.Object{clusterOf("x", "2"), clusterOf("y", "1")}, []string{"x"}, nil},
	} {
		changed, gone := last.next(c.all)
		var names []string
		for _, one := range changed {
			names = append(names, one.GetName())
		}
		if !slices.Equal(names, c.changed) || !slices.Equal(gone, c.gone) {
			t.Errorf("%v changed and %v are gone, want %v and %v", names, gone, c.changed, c.gone)
		}
	}
}

// TestTop_WatchesWhatChanges has a cluster that changes, an API server that is silent for a while, and Ctrl-C.
func TestTop_WatchesWhatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		isSilent := false
		made := fake.NewClientBuilder().WithScheme(kube.Scheme()).WithObjects(clusterOf("x", ""), clusterOf("y", "")).
			WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if isSilent {
					return errors.New("connection refused")
				}
				return c.List(ctx, list, options...)
			}}).Build()
		var out, said bytes.Buffer
		c := &console.Console{Clock: clock.RealClock{}, IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &said},
			Connect: func() (*kube.Objects, error) { return &kube.Objects{WithWatch: made, Namespace: "a"}, nil }}
		command := top(c)
		command.SilenceErrors, command.SilenceUsage = true, true
		command.SetArgs([]string{"clusters", "-w"})
		ctx, interrupt := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- command.ExecuteContext(ctx) }()
		pass := func(during time.Duration) {
			<-time.After(during)
			synctest.Wait()
		}
		pass(time.Minute)
		cluster := &v1beta1.ComputeCluster{}
		if err := made.Get(ctx, client.ObjectKey{Namespace: "a", Name: "y"}, cluster); err != nil {
			t.Fatal(err)
		}
		cluster.Status.Phase = v1beta1.PhaseReady
		if err := made.Update(ctx, cluster); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		isSilent = true
		pass(time.Minute)
		isSilent = false
		if err := made.Delete(ctx, cluster); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		interrupt()
		if err := <-done; outcome.Code(err) != outcome.Detached {
			t.Errorf("it ends with %v", err)
		}
		var rows []string
		for line := range strings.Lines(out.String()) {
			rows = append(rows, strings.Join(strings.Fields(line)[:2], " "))
		}
		if want := []string{"NAME PHASE", "cluster/x Pending", "cluster/y Pending", "cluster/y Ready"}; !slices.Equal(rows, want) {
			t.Errorf("it prints %q, want %q", rows, want)
		}
		for _, says := range []string{"does not answer", "a cluster/y is not in the list any more"} {
			if strings.Count(said.String(), says) != 1 {
				t.Errorf("it does not say %q once: %s", says, said.String())
			}
		}
	})
}
