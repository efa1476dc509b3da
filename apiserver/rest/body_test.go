package rest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/limits"
	"github.com/heliostat-dev/heliostat/portal/problem"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// post returns a request with a body whose length it says, unless that is unknown.
func post(t *testing.T, path string, body io.Reader, length int64) *http.Request {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, body).WithContext(t.Context())
	r.Header.Set("Content-Type", "application/json")
	r.ContentLength = length
	return r
}

func TestReceive_BoundsBodiesByTheirCall(t *testing.T) {
	b := newBed(t, "*")
	for path, most := range map[string]int{
		"/v1/namespaces/team-a/objects":                   MaxBody,
		"/v1/namespaces/team-a/clusters/demo/submissions": MaxBody,
		"/v1/convert": MaxBody,
		"/v1/namespaces/team-a/clusters/demo:suspend": smallBody,
		"/v1/namespaces/team-a/clusters/demo:scale":   smallBody,
	} {
		for _, length := range []int64{-1, int64(most) + 1} { // unknown, and known
			w, r := httptest.NewRecorder(), post(t, path, strings.NewReader(strings.Repeat(" ", most+1)), length)
			request, err := b.api.Read(r)
			if err != nil {
				t.Fatal(err)
			}
			if b.api.Serve(w, r, request, &access.Caller{}); w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), strconv.Itoa(most>>10)+" KiB") {
				t.Errorf("%s with a length of %d is %d: %s", path, length, w.Code, w.Body)
			}
		}
		w, r := httptest.NewRecorder(), post(t, path, strings.NewReader(strings.Repeat(" ", most)), -1)
		request, err := b.api.Read(r)
		if err != nil {
			t.Fatal(err)
		}
		if received, err := b.api.Receive(w, r, request, &access.Caller{}); err != nil || len(received.body) != most {
			t.Errorf("%s with as much as it may have is %v", path, err)
		}
	}
}

// TestServe_ReadsNoObjectWithoutAnyRight: who may create nothing has nothing read, not even what is wrong with it.
func TestServe_ReadsNoObjectWithoutAnyRight(t *testing.T) {
	const broken = `{"object":[`
	if code, answer := newBed(t).send(t, http.MethodPost, "/v1/namespaces/team-a/objects", broken); code != http.StatusForbidden || answer["remedy"] == "" {
		t.Errorf("without rights it is %d, %v", code, answer)
	}
	if code, _ := newBed(t, "create clusterservices team-a").send(t, http.MethodPost, "/v1/namespaces/team-a/objects", broken); code != http.StatusBadRequest {
		t.Errorf("with a right to another kind it is %d", code)
	}
}

// standing is a body that stands still until its connection's deadline is over.
type standing struct {
	*httptest.ResponseRecorder
	begun, over chan struct{}
}

func (s *standing) Read([]byte) (int, error) {
	close(s.begun)
	<-s.over
	return 0, errors.New("the deadline is over")
}

// SetReadDeadline is how net/http's connections are told.
func (s *standing) SetReadDeadline(time.Time) error {
	close(s.over)
	return nil
}

func TestReceive_EndsABodyThatStandsStill(t *testing.T) {
	b, now := newBed(t, "*"), clocktesting.NewFakeClock(time.Now())
	b.api.portal.Clock = now
	caller := &standing{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	r := post(t, "/v1/namespaces/team-a/objects", caller, 100)
	request, err := b.api.Read(r)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := b.api.Receive(caller, r, request, &access.Caller{})
		ended <- err
	}()
	<-caller.begun
	now.Step(messageWithin)
	if err := <-ended; !errors.Is(err, errLate) {
		t.Errorf("it ends by %v", err)
	}
}

// leaver goes as the last byte of a body comes. A deadline takes a second to be set.
type leaver struct {
	*httptest.ResponseRecorder
	leave            func()
	hasEnded, isLate atomic.Bool
}

// Read implements io.Reader.
func (l *leaver) Read(into []byte) (int, error) {
	l.leave()
	return copy(into, "{}"), io.EOF
}

// SetReadDeadline is what http.ResponseController looks for.
func (l *leaver) SetReadDeadline(time.Time) error {
	<-time.After(time.Second)
	l.isLate.Store(l.hasEnded.Load())
	return nil
}

// TestReceive_SetsNoDeadlineAfterItsEnd: HTTP/2 panics where a request has been answered, which ends the server.
func TestReceive_SetsNoDeadlineAfterItsEnd(t *testing.T) {
	b := newBed(t, "*")
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		caller := &leaver{ResponseRecorder: httptest.NewRecorder(), leave: leave}
		r := post(t, "/v1/namespaces/team-a/objects", caller, 100).WithContext(ctx)
		request, err := b.api.Read(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.api.Receive(caller, r, request, &access.Caller{}); err == nil {
			t.Error("who has gone is answered")
		}
		caller.hasEnded.Store(true)
		<-time.After(time.Minute)
		if caller.isLate.Load() {
			t.Error("a deadline is set after the end")
		}
	})
}

// TestBodies_TakeWhatIsCountedForThem: about half of what is allocated for a body is garbage before the end.
func TestBodies_TakeWhatIsCountedForThem(t *testing.T) {
	fill := func(unit string, count int) []byte {
		return []byte(`{"object":{"apiVersion":"heliostat.dev/v1beta1","kind":"ComputeCluster","a":[` + strings.Repeat(unit+",", count) + unit + `]}}`)
	}
	for name, body := range map[string][]byte{
		"zeros":         fill("0", MaxValues-10),
		"empty lists":   fill("[]", MaxValues/2-10),
		"empty objects": fill("{}", MaxValues/2-10),
		"members":       fill(`{"a":0}`, MaxValues/2-10),
		"texts":         fill(`"`+strings.Repeat("é", 40)+`"`, 12_000),
		"one text":      fill(`"`+strings.Repeat("\u2028", 300_000)+`"`, 0),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, "*")
			values, err := countJSON(body)
			if err != nil || len(body) > MaxBody {
				t.Fatalf("a body of %d bytes: %v", len(body), err)
			}
			w, r := httptest.NewRecorder(), post(t, "/v1/namespaces/team-a/objects", bytes.NewReader(body), int64(len(body)))
			request, err := b.api.Read(r)
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			b.api.Serve(w, r, request, &access.Caller{})
			runtime.ReadMemStats(&after)
			took, counted := int(after.TotalAlloc-before.TotalAlloc), len(body)*byteMemory+values*valueMemory
			if w.Code != http.StatusBadRequest {
				t.Errorf("it is answered with %d: %s", w.Code, w.Body)
			}
			t.Logf("%d bytes with %d values: %d KiB of %d KiB", len(body), values, took>>10, counted>>10)
			if took > 2*counted {
				t.Errorf("%d bytes with %d values take %d KiB, and %d KiB are counted", len(body), values, took>>10, counted>>10)
			}
		})
	}
}

// TestCreateObject_JudgesOneLargeManifestAtATime: a small one waits for none.
func TestCreateObject_JudgesOneLargeManifestAtATime(t *testing.T) {
	p := newBed(t, "*").api.portal
	over, err := p.turns.Take(t.Context(), limits.Holder{User: "another"})
	if err != nil {
		t.Fatal(err)
	}
	create := func(ctx context.Context, padding int) error {
		object, err := structpb.NewStruct(map[string]any{
			"apiVersion": v1beta1.GroupVersion.String(), "kind": "ComputeCluster",
			"metadata": map[string]any{"name": "a", "annotations": map[string]any{"a": strings.Repeat("a", padding)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.CreateObject(ctx, &heliostatv1.CreateObjectRequest{Namespace: "team-a", Object: object})
		return err
	}
	ctx := withCaller(t.Context(), &access.Caller{})
	gone, leave := context.WithCancel(ctx)
	leave()
	if err := create(gone, 0); problem.Of(err).Code != http.StatusUnprocessableEntity {
		t.Errorf("a small one: %v", err)
	}
	if err := create(gone, smallBody); !errors.Is(err, context.Canceled) {
		t.Errorf("a large one beside another: %v", err)
	}
	over()
	if err := create(ctx, smallBody); problem.Of(err).Code != http.StatusUnprocessableEntity {
		t.Errorf("a large one alone: %v", err)
	}
}

// TestPresetMaps_AreReadOneAtATimeOfACaller: those of a namespace take as much memory as a caller may have.
func TestPresetMaps_AreReadOneAtATimeOfACaller(t *testing.T) {
	p := newBed(t, "*").api.portal
	caller := &access.Caller{}
	giveBack, err := p.listing.Take(t.Context(), senderOf(caller), limits.MaxMemoryEach)
	if err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithCancel(withCaller(t.Context(), caller))
	cancel()
	if _, err := presetMaps(impatient, p, "team-a"); problem.Of(err).Code != http.StatusTooManyRequests {
		t.Errorf("a second one at once is %v", err)
	}
	giveBack()
	if _, err := presetMaps(withCaller(t.Context(), caller), p, "team-a"); err != nil {
		t.Error(err)
	}
}
