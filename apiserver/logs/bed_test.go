package logs

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
)

const (
	firstIP, secondIP = "10.1.0.1", "10.1.0.2"
	fileCall          = "GET /api/v0/logs/file"
)

// bed is cluster demo with a head, in a bubble of time.
type bed struct {
	*headstest.Site
	t       *testing.T
	network *headstest.Network
	// listener is the fake head's, at the first address.
	listener *headstest.Listener
	cluster  *v1beta1.ComputeCluster
	fake     *fakehead.Head
	heads    *heads.Heads
	logs     *Logs
	on       heads.Reference
}

// run runs a test in a bubble of time.
func run(t *testing.T, test func(t *testing.T, b *bed)) {
	t.Helper()
	runWith(t, 64<<20, nil, test)
}

// runWith is run with so much room for outputs, and a cluster of the test's choice.
func runWith(t *testing.T, room int64, change func(*v1beta1.ComputeCluster), test func(t *testing.T, b *bed)) {
	t.Helper()
	directory := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{
			Site: headstest.New(), t: t, network: headstest.NewNetwork(),
			on: heads.Reference{Namespace: headstest.Namespace, Name: "demo"},
		}
		b.cluster = b.PutCluster("demo", change)
		b.PutPod(headstest.Head(b.cluster, 1, firstIP))
		b.listener = b.network.Listen(firstIP + ":8265")
		b.fake = fakehead.StartOn(clock.RealClock{}, b.network.Listen("gcs:1"), b.listener)
		b.fake.SetToken(headstest.Token)
		b.heads = heads.New(heads.Settings{
			Clusters: b, Reader: b, Random: strings.NewReader(""), Options: headclient.Options{Connect: b.network.Connect},
		})
		b.logs = New(Settings{Heads: b.heads, Jobs: b, Clock: clock.RealClock{}, Directory: directory, Bytes: room})
		defer func() {
			if err := b.logs.Close(); err != nil {
				t.Error(err)
			}
			b.network.Break()
			b.fake.Close()
		}()
		test(t, b)
	})
}

// pass lets time pass, and all that is due be done.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// submit runs an entrypoint as one of Ray's own jobs.
func (b *bed) submit(id, entrypoint string) {
	b.t.Helper()
	if _, _, err := b.heads.Submit(b.t.Context(), b.on, headclient.Submission{ID: id, Entrypoint: entrypoint}); err != nil {
		b.t.Fatal(err)
	}
}

// attempt is the first attempt of a job on the first head.
func (b *bed) attempt(id string) v1beta1.JobAttempt {
	return v1beta1.JobAttempt{
		Number: 1, SubmissionID: id, ClusterName: "demo", ClusterUID: b.cluster.UID,
		HeadName: "demo-head", HeadUID: "head-demo-1",
	}
}

// putAttempts is what the status of job train says of its attempts.
func (b *bed) putAttempts(attempts ...v1beta1.JobAttempt) {
	status := v1beta1.ClusterJobStatus{Attempts: attempts}
	if len(attempts) > 0 {
		status.Attempt = attempts[len(attempts)-1].Number
	}
	b.PutJob("train", status)
}

// over is an attempt that has ended.
func over(attempt v1beta1.JobAttempt, reason string, exit *int32) v1beta1.JobAttempt {
	at := metav1.Now()
	attempt.EndTime, attempt.Reason, attempt.ExitCode, attempt.LogState = &at, reason, exit, v1beta1.LogLost
	return attempt
}

// file is what the file of a job holds.
func (b *bed) file(id string) string {
	b.t.Helper()
	said, is := b.fake.Output(id)
	if !is {
		b.t.Fatalf("job %s has no output", id)
	}
	return said
}

// told is what a reader was told.
type told struct {
	mu      sync.Mutex
	said    bytes.Buffer
	offset  int64
	notices []Notice
	end     *End
	err     error
	done    chan struct{}
	// before is called before each event is taken.
	before func(Event) error
}

func (r *told) take(e Event) error {
	if r.before != nil {
		if err := r.before(e); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said.Write(e.Data)
	r.offset = e.Offset
	switch {
	case r.end != nil:
		panic("an event comes behind the end")
	case e.Notice != nil:
		r.notices = append(r.notices, *e.Notice)
	case e.End != nil:
		r.end = e.End
	}
	return nil
}

// text is what was said until now.
func (r *told) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said.String()
}

// codes are those of the notices until now.
func (r *told) codes() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var codes []string
	for _, notice := range r.notices {
		codes = append(codes, notice.Code)
	}
	return strings.Join(codes, " ")
}

// submission begins to read one of Ray's own jobs.
func (b *bed) submission(ctx context.Context, id string, options Options) *told {
	r := &told{done: make(chan struct{})}
	b.goRead(r, func() error { return b.logs.ReadSubmission(ctx, b.on, id, options, r.take) })
	return r
}

// follow submits one of Ray's own jobs, and begins to follow it when it runs.
func (b *bed) follow(ctx context.Context, id, entrypoint string) *told {
	b.t.Helper()
	b.submit(id, entrypoint)
	pass(2 * time.Second)
	r := b.submission(ctx, id, Options{Follow: true})
	pass(2 * time.Second)
	return r
}

// job begins to read an attempt of job train.
func (b *bed) job(ctx context.Context, attempt int32, options Options) *told {
	r := &told{done: make(chan struct{})}
	of := JobReference{Namespace: headstest.Namespace, Name: "train", Attempt: attempt}
	b.goRead(r, func() error { return b.logs.ReadJob(ctx, of, options, r.take) })
	return r
}

func (b *bed) goRead(r *told, read func() error) {
	go func() {
		defer close(r.done)
		r.err = read()
	}()
}

// ends waits for the end of a read, and fails unless it has an outcome and a code.
func (r *told) ends(t *testing.T, outcome Outcome, code string) *End {
	t.Helper()
	<-r.done
	if r.err != nil || r.end == nil || r.end.Outcome != outcome || r.end.Code != code || r.end.Message == "" {
		t.Fatalf("it ends with %+v, %v, after notices of %q; want %s, %s", r.end, r.err, r.codes(), outcome, code)
	}
	return r.end
}

// serve answers as a head does, by a handler of the test's.
func (b *bed) serve(handler http.Handler) *http.Server {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	listener := b.network.Listen(firstIP + ":8265")
	go func() { _ = server.Serve(listener) }()
	return server
}

// exit is an exit code.
func exit(code int32) *int32 { return &code }
