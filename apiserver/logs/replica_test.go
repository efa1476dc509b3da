package logs

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// replica deploys an application, and returns its one replica.
func (b *bed) replica() heads.Replica {
	b.t.Helper()
	head, err := b.heads.FindHead(b.on)
	if err != nil {
		b.t.Fatal(err)
	}
	c, err := b.heads.Converse(b.t.Context(), head)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	config := json.RawMessage(`{"applications": [{"name": "first", "route_prefix": "/", "import_path": "module:app", "deployments": [{"name": "Model"}]}]}`)
	if err := c.Serve().Deploy(b.t.Context(), config); err != nil {
		b.t.Fatal(err)
	}
	pass(time.Minute)
	service := &v1beta1.ClusterService{}
	service.Namespace = b.on.Namespace
	service.Status.Active = &v1beta1.ServiceVersion{ClusterName: "demo", Applications: []v1beta1.ApplicationStatus{{Name: "first"}}}
	deployments, err := b.heads.ListDeployments(b.t.Context(), service)
	all := heads.ReplicasOf(deployments)
	if err != nil || len(all) != 1 || all[0].Application != "first" || !all[0].HasLog() {
		b.t.Fatalf("the replicas are %+v, %v", all, err)
	}
	return all[0]
}

// log begins to read the log of a replica.
func (b *bed) log(ctx context.Context, of heads.Replica, options Options) *told {
	r := &told{done: make(chan struct{})}
	b.goRead(r, func() error { return b.logs.ReadReplica(ctx, b.on, of, options, r.take) })
	return r
}

func TestReadReplica_GoesOnFromAnOffset(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		of := b.replica()
		before := b.log(t.Context(), of, Options{})
		before.ends(t, Running, "ServiceServes")
		if before.text() == "" || before.offset != int64(len(before.text())) {
			t.Fatalf("until now it is %q to offset %d", before.text(), before.offset)
		}
		ctx, leave := context.WithCancel(t.Context())
		dials := b.network.Dials(firstIP + ":8265")
		var readers []*told
		for range 20 {
			readers = append(readers, b.log(ctx, of, Options{Offset: before.offset, Follow: true}))
		}
		pass(5 * time.Second)
		if !b.fake.KillReplica("first", "its last line") {
			t.Fatal("there is no replica")
		}
		pass(5 * time.Second)
		for _, r := range readers {
			if !strings.HasSuffix(r.text(), "its last line\n") || r.offset != before.offset+int64(len(r.text())) {
				t.Errorf("a reader has %q to offset %d", r.text(), r.offset)
			}
		}
		if more := b.network.Dials(firstIP+":8265") - dials; more != 1 {
			t.Errorf("20 readers are %d connections", more)
		}
		leave()
		for _, r := range readers {
			<-r.done
		}
	})
}

func TestReadReplica_SaysWhyThereIsNone(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		of := b.replica()
		gone := of
		gone.Log.File = strings.Replace(of.Log.File, of.ID, "other", 1)
		for name, c := range map[string]struct {
			of      heads.Replica
			options Options
			sort    heads.Sort
			code    string
		}{
			"behind the end": {of, Options{Offset: 1 << 20}, heads.Conflict, "OutputShorter"},
			"no such file":   {gone, Options{Follow: true}, heads.NotFound, "OutputGone"},
			"a bad offset":   {of, Options{Offset: -1}, "", ""},
		} {
			r := b.log(t.Context(), c.of, c.options)
			<-r.done
			var refused *heads.Refusal
			if c.code == "" && errors.Is(r.err, ErrInvalid) {
				continue
			}
			if !errors.As(r.err, &refused) || refused.Sort != c.sort || refused.Code != c.code || refused.Message == "" {
				t.Errorf("%s: %v", name, r.err)
			}
		}
		b.RemoveCluster("demo")
		r := b.log(t.Context(), of, Options{})
		<-r.done
		var unavailable *heads.Unavailable
		if !errors.As(r.err, &unavailable) {
			t.Errorf("without a cluster: %v", r.err)
		}
	})
}

func TestReadReplica_EndsWhenItsFileGoes(t *testing.T) {
	run(t, func(t *testing.T, b *bed) {
		of := b.replica()
		r := b.log(t.Context(), of, Options{Follow: true})
		pass(5 * time.Second)
		b.fake.Restart()
		end := r.ends(t, Broken, "OutputGone")
		if !strings.Contains(end.Message, "replica "+of.ID) {
			t.Errorf("it says %q", end.Message)
		}
	})
}
