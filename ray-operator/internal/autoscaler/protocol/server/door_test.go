package server

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/protocoltest"
)

// stranger is a connection that has proved no token.
func (b *bench) stranger() net.Conn {
	b.t.Helper()
	connection, err := b.listener.DialContext(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// flood writes until the other end has had enough, and gives how much it took.
func flood(connection net.Conn, begin, again []byte) (took int) {
	data := begin
	for took < 16<<20 {
		n, err := connection.Write(data)
		if took += n; err != nil {
			return took
		}
		data = again
	}
	return took
}

// floods are what hostile code may say: bytes to begin with, and bytes to repeat.
func floods(t *testing.T) map[string][2][]byte {
	t.Helper()
	frames := func(write func(*http2.Framer) error) []byte {
		var out bytes.Buffer
		if err := write(http2.NewFramer(&out, nil)); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	var header bytes.Buffer
	encoder := hpack.NewEncoder(&header)
	for _, field := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":authority", "a"}, {":path", "/heliostat.scalelink.v1.ScaleService/Order"},
		{"content-type", "application/grpc"},
	} {
		if err := encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
			t.Fatal(err)
		}
	}
	preface := append([]byte(http2.ClientPreface), frames(func(f *http2.Framer) error { return f.WriteSettings() })...)
	open := frames(func(f *http2.Framer) error {
		return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: header.Bytes(), EndHeaders: true})
	})
	part := bytes.Repeat([]byte("x"), 16<<10)
	return map[string][2][]byte{
		"garbage":  {part, part},
		"pings":    {preface, bytes.Repeat(frames(func(f *http2.Framer) error { return f.WritePing(false, [8]byte{}) }), 100)},
		"settings": {preface, bytes.Repeat(frames(func(f *http2.Framer) error { return f.WriteSettings() }), 100)},
		"a large header": {append(preface, frames(func(f *http2.Framer) error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: header.Bytes()})
		})...), frames(func(f *http2.Framer) error { return f.WriteContinuation(1, false, part) })},
		"large orders": {append(append([]byte(nil), preface...), append(open, frames(func(f *http2.Framer) error { return f.WriteData(1, false, []byte{0, 0, 0xff, 0xff, 0xff}) })...)...), frames(func(f *http2.Framer) error { return f.WriteData(1, false, part) })},
	}
}

// TestStrangersMaySayLittle: each hostile beginning ends soon, and the operator hears and
// is heard meanwhile.
func TestStrangersMaySayLittle(t *testing.T) {
	for name, said := range floods(t) {
		t.Run(name, func(t *testing.T) {
			run(t, Options{Token: func() (string, error) { return "secret", nil }}, func(t *testing.T, b *bench) {
				operator := b.connect("secret")
				b.order(operator, 1)
				connection := b.stranger()
				go func() { // what is answered is read, or the other end would wait
					buffer := make([]byte, 1<<10)
					for {
						if _, err := connection.Read(buffer); err != nil {
							return
						}
					}
				}()
				// What is read is counted; what its buffers have taken besides is not.
				if took := flood(connection, said[0], said[1]); took > introduction+512<<10 {
					t.Errorf("%d bytes were taken", took)
				}
				b.has(1)
				b.say(2)
				heard(t, operator, 2, 1)
				b.order(operator, 3)
				b.has(3)
			})
		})
	}
}

// TestStrangersLeaveSoon, however slowly they speak, and when they are too many.
func TestStrangersLeaveSoon(t *testing.T) {
	run(t, Options{Token: func() (string, error) { return "secret", nil }}, func(t *testing.T, b *bench) {
		operator := b.connect("secret")
		closed := make(chan int, 1000)
		visit := func(i int) {
			connection := b.stranger()
			go func() {
				_, _ = connection.Write([]byte("PRI")) // and nothing more
				buffer := make([]byte, 1<<10)
				for {
					if _, err := connection.Read(buffer); err != nil {
						closed <- i
						return
					}
				}
			}()
			synctest.Wait()
		}
		for i := range newcomers + 20 { // at the same moment; the operator was the first
			visit(i)
		}
		if n := len(closed); n != 21 {
			t.Errorf("%d of %d at once were sent away", n, newcomers+20)
		}
		elapse(patience + time.Second)
		if n := len(closed); n != newcomers+20 {
			t.Errorf("%d of %d have gone after %s", n, newcomers+20, patience+time.Second)
		}
		for len(closed) > 0 {
			<-closed
		}
		for i := range 4 * newcomers { // in four seconds
			visit(i)
			elapse(period/newcomers + time.Millisecond)
		}
		if n := len(closed); n != 4*newcomers-waiting {
			t.Errorf("%d of %d have gone so that at most %d wait", n, 4*newcomers, waiting)
		}
		for i := range len(closed) {
			if first := <-closed; first != i {
				t.Errorf("%d has gone before %d, who came first", first, i)
			}
		}
		b.order(operator, 1)
		b.has(1)
		b.connect("secret") // another operator comes in while others wait
	})
}

// TestWhoLeftIsAStranger: a connection whose stream is over may not stay for good.
func TestWhoLeftIsAStranger(t *testing.T) {
	run(t, Options{}, func(t *testing.T, b *bench) {
		var connection net.Conn
		first, err := protocoltest.ConnectBy(t.Context(), func(ctx context.Context, _ string) (_ net.Conn, err error) {
			connection, err = b.listener.DialContext(ctx)
			return connection, err
		}, "a:1", "head", "")
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close()
		b.connect("")
		<-first.Ended()
		elapse(patience + time.Second)
		if _, err := connection.Write([]byte("x")); err == nil {
			t.Error("who was taken over from is still there")
		}
	})
}

func TestSources(t *testing.T) {
	d := newDoor(nil)
	for from, same := range map[string]string{
		"127.0.0.1:1": "127.7.7.7:2", "[::1]:1": "127.0.0.1:1", "10.0.0.1:1": "10.0.0.1:2", "[::ffff:10.0.0.2]:1": "10.0.0.2:1",
	} {
		if source(at(from)) != source(at(same)) {
			t.Errorf("%s and %s are two sources", from, same)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		d = newDoor(nil)
		for range newcomers {
			if !d.welcome(source(at("127.0.0.1:1"))) {
				t.Error("an early one is not welcome")
			}
		}
		if d.welcome(source(at("127.0.0.2:1"))) {
			t.Error("one too many is welcome")
		}
		if !d.welcome(source(at("10.0.0.1:1"))) {
			t.Error("another source is not welcome")
		}
		elapse(period)
		if !d.welcome(source(at("127.0.0.1:1"))) {
			t.Error("none is welcome any more")
		}
		elapse(period)
		if len(d.recent) != 0 {
			t.Errorf("%v are remembered", d.recent)
		}
	})
}

func at(address string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address)) }

// TestMemoryUnderAttack: hundreds of hostile connections cost a few MiB and not the stream.
func TestMemoryUnderAttack(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Token: func() (string, error) { return "secret", nil }})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	operator, err := protocoltest.Connect(t.Context(), listener.Addr().String(), "head", "secret")
	if err != nil {
		t.Fatal(err)
	}
	defer operator.Close()
	before := inUse()
	all := floods(t)
	for i := range 500 {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = connection.Close() }()
		said := all[[]string{"garbage", "pings", "settings", "a large header", "large orders"}[i%5]]
		_, _ = connection.Write(said[0]) // it may have been sent away already
		_, _ = connection.Write(said[1])
	}
	if grown := inUse() - before; grown > 6<<20 {
		t.Errorf("it needs %d KiB more", grown>>10)
	}
	if err := operator.Order(snapshot(1)); err != nil {
		t.Error(err)
	}
	if err := s.Say(decided(2)); err != nil {
		t.Error(err)
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		_, n := operator.Decision()
		return n > 0, nil
	}); err != nil {
		t.Error("the decision is not heard", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// inUse is what the program needs, in bytes.
func inUse() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapInuse + stats.StackInuse)
}

// TestNoListener: what ends the listener ends the server, with a reason.
func TestNoListener(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := New(Options{}).Serve(t.Context(), listener); err == nil {
		t.Error("a listener that is closed is served")
	}
}
