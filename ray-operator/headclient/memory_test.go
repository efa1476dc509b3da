package headclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc/autoscaler"
)

// over is a context that has ended.
func over(t *testing.T) context.Context {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	return ctx
}

func TestMemory_GivesTurns(t *testing.T) {
	const most = 4 * smallMemory
	memory := NewMemory(most)
	take := func(ctx context.Context, bytes int64) (func(), bool) {
		giveBack, err := memory.take(ctx, bytes)
		return giveBack, err == nil
	}
	giveBack, is := take(t.Context(), 10*most)
	if !is {
		t.Fatal("more than there is is not bounded by what there is")
	}
	if _, is := take(over(t), 2*smallMemory); is {
		t.Error("there is more than there is")
	}
	if _, is := take(over(t), smallMemory); !is {
		t.Error("a small answer waits")
	}
	giveBack()
	giveBack() // a second time is nothing
	if again, is := take(t.Context(), most); !is {
		t.Error("nothing was given back")
	} else {
		again()
	}
	var none *Memory
	if _, err := none.take(over(t), 10*most); err != nil {
		t.Errorf("no memory has a limit: %v", err)
	}
}

// bomb is a reply that is small on the wire and large in memory.
func bomb() []byte {
	nodes := make([]byte, 0, 2*(maxParts-10))
	for range maxParts - 10 {
		nodes = protowire.AppendBytes(protowire.AppendTag(nodes, 3, protowire.BytesType), nil)
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), nodes)
}

func TestCodec_WaitsForMemory(t *testing.T) {
	memory, answer := NewMemory(2*smallMemory), bomb()
	giveBack, err := memory.take(t.Context(), 2*smallMemory)
	if err != nil {
		t.Fatal(err)
	}
	read := func(ctx context.Context) (*exchange, error) {
		x := &exchange{act: "ask", outer: t.Context(), ctx: ctx, memory: memory}
		for range 2 { // gRPC looks for a second message
			if err := (codec{parts: maxParts, of: x}).Unmarshal(answer, &autoscaler.ClusterSurveyReply{}); err != nil {
				t.Fatal(err)
			}
		}
		return x, x.decode()
	}
	x, err := read(over(t))
	if sorted := (&Client{}).sort(x, nil, err); err == nil || KindOf(sorted) != Timeout {
		t.Errorf("without memory: %v, told as %v", err, sorted)
	}
	giveBack()
	if x, err = read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if nodes := len(x.message.(*autoscaler.ClusterSurveyReply).GetClusterResourceState().GetNodeStates()); nodes != maxParts-10 {
		t.Errorf("%d nodes were read", nodes)
	}
	if _, err := memory.take(over(t), 2*smallMemory); err == nil {
		t.Error("a reply that is being read takes no memory")
	}
	x.done()
	if _, err := memory.take(over(t), 2*smallMemory); err == nil {
		t.Error("a context that has ended takes memory")
	}
	if again, err := memory.take(t.Context(), 2*smallMemory); err != nil {
		t.Errorf("nothing was given back: %v", err)
	} else {
		again()
	}
}

// TestMemory_BoundsHostileHeads: many answers at once take no more than a few.
func TestMemory_BoundsHostileHeads(t *testing.T) {
	const heads, most = 20, 256 << 20
	memory, answer := NewMemory(64<<20), bomb()
	var readers sync.WaitGroup
	peak, stop, stopped := uint64(0), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapInuse)
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	for range heads {
		readers.Go(func() {
			x := &exchange{outer: t.Context(), ctx: t.Context(), memory: memory}
			reply := &autoscaler.ClusterSurveyReply{}
			if err := errors.Join((codec{parts: maxParts, of: x}).Unmarshal(answer, reply), x.decode()); err != nil {
				t.Error(err)
			}
			runtime.KeepAlive(reply)
			x.done()
		})
	}
	readers.Wait()
	close(stop)
	<-stopped
	t.Logf("%d answers of %d KiB took %d MiB at most", heads, len(answer)>>10, peak>>20)
	if peak > most {
		t.Errorf("they took %d MiB, at most %d may be", peak>>20, most>>20)
	}
}

func TestServing_WaitsForMemory(t *testing.T) {
	var applications []string
	for i := range 9000 {
		applications = append(applications, fmt.Sprintf(`"app%d":{"status":"RUNNING","message":"%s","deployments":{}}`, i, strings.Repeat("x", 20)))
	}
	body := `{"applications":{` + strings.Join(applications, ",") + `}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(body)) // who hung up does not hear it
	}))
	defer server.Close()
	memory := NewMemory(2 * smallMemory)
	ask := func(ctx context.Context) error {
		head, err := DialServe(server.Listener.Addr().String(), Options{Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = head.Close() }() // it was asked
		_, err = head.Serving(ctx)
		return err
	}
	giveBack, err := memory.take(t.Context(), 2*smallMemory)
	if err != nil {
		t.Fatal(err)
	}
	soon, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	if err := ask(soon); KindOf(err) != Timeout {
		t.Errorf("without memory: %v", err)
	}
	giveBack()
	if err := ask(t.Context()); KindOf(err) == Timeout {
		t.Errorf("with memory: %v", err)
	}
	if again, err := memory.take(t.Context(), 2*smallMemory); err != nil {
		t.Errorf("nothing was given back: %v", err)
	} else {
		again()
	}
}
