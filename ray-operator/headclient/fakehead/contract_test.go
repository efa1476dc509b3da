package fakehead_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/headtest"
)

// TestContract judges the fake by the cases that real heads are judged by.
func TestContract(t *testing.T) {
	fake, err := fakehead.Start(clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	fake.SetToken("the-token")
	fake.SetStartDelay(20 * time.Millisecond)
	fake.SetDeployDelay(20 * time.Millisecond)
	fake.Crash("dying", "RuntimeError: it dies of this")
	fake.Join(fakehead.Member{Instance: "head-uid", Type: "head", Head: true})
	one := map[string]float64{"CPU": 1}
	fake.Join(fakehead.Member{Instance: "first-uid", Type: "cpu", Total: one})
	second := fake.Join(fakehead.Member{Instance: "second-uid", Type: "cpu", Total: one})
	started := func(end func()) (func(), error) { return end, nil }
	head := headtest.Head{
		Address: fake.Address(), Jobs: fake.JobsAddress(), Token: "the-token", Version: fakehead.Version,
		First: "first-uid", Second: "second-uid", Type: "cpu",
		Occupy:    func() (func(), error) { return started(fake.Occupy(second)) },
		Connect:   func() (func(), error) { return started(fake.Connect("user")) },
		Detach:    func() (func(), error) { return started(fake.Detach("user", "left-behind")) },
		Submit:    func() (func(), error) { return started(fake.Submit("job-1")) },
		Want:      func(wish headtest.Wish) (func(), error) { return started(want(fake, wish)) },
		Processes: func(text string) (int, error) { return fake.Processes(text), nil },
		Output: func(job string) ([]byte, error) {
			said, known := fake.Output(job)
			if !known {
				return nil, errors.New("it has no output")
			}
			return []byte(said), nil
		},
		Empty:  func(job string) error { fake.EmptyOutput(job); return nil },
		Remove: func(job string) error { fake.RemoveOutput(job); return nil },
		Now:    time.Now,
		Within: 5 * time.Second,
	}
	for _, c := range slices.Concat(headtest.ServeCases(), headtest.Cases()) {
		t.Run(c.Name, func(t *testing.T) { c.Run(t, head) })
	}
	if why := fake.Died(); why != "" {
		t.Errorf("the client killed the head: %s", why)
	}
}

// want makes a wish of a fake head.
func want(fake *fakehead.Head, wish headtest.Wish) (end func()) {
	ask := fakehead.Ask{Shape: wish.Shape, Count: wish.Count}
	for label, value := range wish.Labels {
		ask.Selectors = []headclient.Selector{{{Label: label, Values: []string{value}}}}
	}
	switch wish.Kind {
	case headtest.Group:
		group := fakehead.Group{Strategy: wish.Strategy, Bundles: []fakehead.Ask{ask}, Tasks: wish.Inside}
		if wish.Within != "" {
			group.Locality = headclient.Locality{Label: wish.Within, Strategy: headclient.StrictPack}
		}
		return fake.Gather(group)
	case headtest.Floor:
		fake.Floor(ask)
		return func() {}
	default:
		return fake.Want(ask)
	}
}
