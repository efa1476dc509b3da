package rest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// stuck is a caller who does not read. Writes end with a deadline, and messages with the test.
type stuck struct {
	grpc.ServerStream
	ctx    context.Context //nolint:containedctx // grpc's interface returns one
	header http.Header
	begun  chan struct{}
	ended  chan struct{}
	once   sync.Once
}

func newStuck(ctx context.Context) *stuck {
	return &stuck{ctx: ctx, header: http.Header{}, begun: make(chan struct{}), ended: make(chan struct{})}
}

func (s *stuck) Header() http.Header { return s.header }
func (s *stuck) WriteHeader(int)     {}
func (s *stuck) FlushError() error   { return nil }

func (s *stuck) Write([]byte) (int, error) {
	s.once.Do(func() { close(s.begun) })
	<-s.ended
	return 0, errors.New("the deadline is over")
}

func (s *stuck) SetWriteDeadline(time.Time) error {
	select {
	case <-s.ended:
	default:
		close(s.ended)
	}
	return nil
}

func (s *stuck) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream: the message is there.
func (*stuck) RecvMsg(any) error { return nil }

func (s *stuck) SendMsg(any) error {
	s.once.Do(func() { close(s.begun) })
	<-s.ctx.Done()
	return s.ctx.Err()
}

// step lets time go on until a call has ended, and returns how long that took.
func step(t *testing.T, now *clocktesting.FakeClock, ended <-chan error) (time.Duration, error) {
	t.Helper()
	for took := time.Duration(0); took < 10*time.Minute; took += lookEach {
		select {
		case err := <-ended:
			return took, err
		case <-time.After(20 * time.Millisecond):
			now.Step(lookEach)
		}
	}
	t.Fatal("it does not end")
	return 0, nil
}

func TestWatch_EndsWhereNothingIsRead(t *testing.T) {
	b, now := newBed(t, "*"), clocktesting.NewFakeClock(time.Now())
	b.api.portal.Clock = now
	ctx := withCaller(t.Context(), &access.Caller{})
	ended, caller := make(chan error, 1), newStuck(ctx)
	go func() {
		ended <- b.api.serveWatch(caller, httptest.NewRequest(http.MethodGet, "/v1/objects/watch", nil).WithContext(ctx), &heliostatv1.WatchObjectsRequest{})
	}()
	<-caller.begun
	if took, _ := step(t, now, ended); took > 30*time.Second {
		t.Errorf("it ends after %v", took)
	}
}

func TestGRPC_EndsAStreamWhereNothingIsRead(t *testing.T) {
	b, now := newBed(t, "*"), clocktesting.NewFakeClock(time.Now())
	b.api.portal.Clock = now
	calls := &calls{api: b.api, around: func(ctx context.Context, _ *Call, answer func(context.Context) error) error { return answer(ctx) }}
	ended, caller := make(chan error, 1), newStuck(t.Context())
	go func() {
		ended <- calls.serve("/heliostat.v1.Portal/WatchObjects", caller, func(stream grpc.ServerStream) error {
			return stream.SendMsg(&heliostatv1.Change{})
		})
	}()
	<-caller.begun
	if took, err := step(t, now, ended); took > 30*time.Second || status.Code(err) != codes.Unavailable {
		t.Errorf("it ends after %v with %v", took, err)
	}
}

// TestReadLog_EndsForAStuckReader: a text is written by as many calls as its reader takes, and its right is asked about
// beside them.
func TestReadLog_EndsForAStuckReader(t *testing.T) {
	b, now := newBed(t, "get clusterjobs/log "+headstest.Namespace), clocktesting.NewFakeClock(time.Now())
	b.api.portal.Clock = now
	b.site.PutJob("train", v1beta1.ClusterJobStatus{
		Attempts: []v1beta1.JobAttempt{{
			Number: 1, ClusterName: "demo", ClusterUID: "gone", SubmissionID: "train-1", Reason: "EntrypointFailed",
			EndTime: &metav1.Time{Time: time.Now()}, LastLines: []string{"one", "two"}, LogState: v1beta1.LogTruncated,
		}},
	})
	b.put(t, view.Jobs, &v1beta1.ClusterJob{ObjectMeta: meta(headstest.Namespace, "train")})
	ctx := withCaller(t.Context(), &access.Caller{})
	ended, caller := make(chan error, 1), newStuck(ctx)
	go func() {
		defer func() { ended <- recover().(error) }()
		asked := &heliostatv1.ReadLogRequest{Namespace: headstest.Namespace, Name: "train"}
		_ = b.api.serveLog(caller, httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx), asked)
	}()
	<-caller.begun
	b.mutex.Lock()
	b.may = nil
	b.mutex.Unlock()
	if took, err := step(t, now, ended); took > 30*time.Second || !errors.Is(err, http.ErrAbortHandler) {
		t.Errorf("it ends after %v with %v", took, err)
	}
}
