package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/nodes"
)

// eventually waits until what is known of the head is as it should be.
func eventually(t *testing.T, watch nodes.Source, cluster types.NamespacedName, right func(nodes.Answer) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		if answer, ok := watch.Last(cluster, "head"); ok {
			last = right(answer)
		} else {
			last = errors.New("nothing is known")
		}
		return last == nil, nil
	})
	if err != nil {
		t.Fatal(last)
	}
}

// TestOverGRPC goes the whole way, and leaves no goroutine behind.
func TestOverGRPC(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	fake, err := fakehead.Start(clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	fake.SetToken("right")
	fake.Join(fakehead.Member{Instance: "head", Head: true})
	fake.Join(fakehead.Member{Instance: "idle", Type: "cpu"})
	finish := fake.Occupy(fake.Join(fakehead.Member{Instance: "busy", Type: "cpu"}))
	leave := fake.Connect("user")

	watch := nodes.New(nodes.DialBy(headclient.Options{}), clock.RealClock{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- watch.Start(ctx) }()
	cluster := types.NamespacedName{Namespace: "team", Name: "demo"}
	wanted := nodes.Target{
		Head: "head", Address: fake.Address(), Every: time.Second, Activity: true,
		Token: func(context.Context) (string, error) { return "wrong", nil },
	}
	watch.Want(cluster, wanted)
	eventually(t, watch, cluster, func(a nodes.Answer) error {
		if a.Failure != headclient.Unauthenticated {
			return fmt.Errorf("with a wrong token: %+v", a)
		}
		return nil
	})
	wanted.Token = func(context.Context) (string, error) { return "right", nil }
	for _, pod := range []types.UID{"idle", "busy"} {
		wanted.Drains = append(wanted.Drains, nodes.Drain{Pod: pod, Reason: headclient.Preemption})
	}
	watch.Want(cluster, wanted)
	eventually(t, watch, cluster, func(a nodes.Answer) error {
		if a.Nodes["idle"].State != headclient.Dead || a.Nodes["busy"].State != headclient.Draining || !a.Use.Active {
			return fmt.Errorf("while it drains: %+v", a)
		}
		return nil
	})
	finish()
	leave()
	eventually(t, watch, cluster, func(a nodes.Answer) error {
		if a.Nodes["busy"].State != headclient.Dead || a.Use.Active || a.Use.IdleSince.IsZero() {
			return fmt.Errorf("after it: %+v", a)
		}
		return nil
	})
	fake.Behave(fakehead.Hung) // an end in the middle of a call
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if why := fake.Died(); why != "" {
		t.Errorf("the watch killed the head: %s", why)
	}
}
