package headclient_test

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
)

// TestPermit_IsNeededForWhatChanges: without it no act is sent, and all questions are.
func TestPermit_IsNeededForWhatChanges(t *testing.T) {
	head := start(t)
	node := head.Join(fakehead.Member{Instance: "uid"})
	if err := converse(t, head.JobsAddress(), headclient.Options{}).Submit(t.Context(), headclient.Submission{ID: "known", Entrypoint: "hang"}); err != nil {
		t.Fatal(err)
	}
	over := errors.New("another leads")
	options := headclient.Options{Permit: func() error { return over }}
	client := dial(t, head.Address(), options)
	calls := asks(t, head.JobsAddress(), options)
	maps.Copy(calls, serveAsks(t, head.JobsAddress(), options))
	maps.Copy(calls, map[string]func(context.Context) error{
		"State": func(ctx context.Context) error { _, err := client.State(ctx); return err },
		"Drain": func(ctx context.Context) error {
			_, err := client.Drain(ctx, headclient.Drain{Node: node, Reason: headclient.Preemption})
			return err
		},
		"Resize": func(ctx context.Context) error {
			_, err := client.Resize(ctx, node, map[string]float64{"CPU": 1})
			return err
		},
		"Kill": func(ctx context.Context) error { _, err := client.KillSubmission(ctx, "known"); return err },
		"Upload": func(ctx context.Context) error {
			return converse(t, head.JobsAddress(), options).Upload(ctx, "a.zip", []byte("zip"))
		},
		"DeleteValue": func(ctx context.Context) error { return client.DeleteValue(ctx, "heliostat", "key") },
		"CloseKept": func(ctx context.Context) error {
			_, err := serve(t, head.JobsAddress(), options).CloseKept(ctx, headclient.Closing{ID: "close-1"})
			return err
		},
	})
	delete(calls, "Follow") // it ends with the job
	acts := map[string]bool{
		"Submit": true, "Stop": true, "Forget": true, "Deploy": true, "Drain": true, "Resize": true, "Kill": true, "CloseKept": true,
		"Upload": true, "DeleteValue": true,
	}
	for name, ask := range calls {
		err := ask(t.Context())
		if refused := errors.Is(err, over); refused != acts[name] || refused && headclient.KindOf(err) != headclient.Unavailable {
			t.Errorf("%s: %v, want it refused: %t", name, err, acts[name])
		}
	}
	if head.Calls("DrainNode")+head.Calls("ResizeRayletResourceInstances")+head.Calls("KillActorViaGcs")+head.Calls("InternalKVDel") > 0 {
		t.Error("something was sent to the GCS")
	}
	if jobs, err := converse(t, head.JobsAddress(), headclient.Options{}).List(t.Context()); err != nil || len(jobs) != 1 {
		t.Errorf("the head has %+v, %v", jobs, err)
	}
}
