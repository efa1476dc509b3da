package loadgen

import (
	"fmt"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// serveCalls answers gRPC calls on a listener by what handle says, and returns the server.
func serveCalls(t *testing.T, listener net.Listener, handle func(method, said string, stream grpc.ServerStream) error) *grpc.Server {
	t.Helper()
	server := grpc.NewServer(grpc.ForceServerCodec(text{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		var said string
		if err := stream.RecvMsg(&said); err != nil {
			return err
		}
		return handle(method, said, stream)
	}))
	go func() { _ = server.Serve(listener) }() // it ends with the test
	t.Cleanup(server.Stop)
	return server
}

// answerCall answers a call as it should be.
func answerCall(method, said string, stream grpc.ServerStream) error {
	if method == callMethod {
		greeting := string(line(answer{Said: said}))
		return stream.SendMsg(&greeting)
	}
	var messages int
	var pace float64
	if _, err := fmt.Sscan(said, &messages, &pace); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	for i := range messages {
		greeting := string(line(answer{Chunk: i, Of: messages}))
		if err := stream.SendMsg(&greeting); err != nil {
			return err
		}
		<-time.After(time.Duration(pace * float64(time.Second)))
	}
	return nil
}

// listen returns a listener of this machine.
func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// calling returns a short plan for a sort of gRPC calls to an address.
func calling(address net.Addr, sort Sort) *Plan {
	plan := short("http://127.0.0.1", sort)
	plan.GRPC = address.String()
	return plan
}

func TestCalls_AreAnsweredByAServiceThatIsWell(t *testing.T) {
	for sort, parts := range map[Sort]int{GRPC: 1, GRPCStream: 4} {
		t.Run(string(sort), func(t *testing.T) {
			listener := listen(t)
			serveCalls(t, listener, answerCall)
			count, _ := run(t, calling(listener.Addr(), sort))
			if count.Failed > 0 || count.Versions["1"] != count.Sent || count.Parts != parts*count.Sent {
				t.Errorf("%d of %d failed: %+v; %d parts, versions %v", count.Failed, count.Sent, count.Failures, count.Parts, count.Versions)
			}
		})
	}
}

func TestCalls_ThatFailAreCountedWithTheirStatus(t *testing.T) {
	for name, test := range map[string]struct {
		sort   Sort
		cause  Cause
		handle func(method, said string, stream grpc.ServerStream) error
	}{
		"a status": {GRPC, "gRPC status NotFound", func(string, string, grpc.ServerStream) error { return status.Error(codes.NotFound, "no") }},
		"another answer": {GRPC, Garbled, func(method, _ string, stream grpc.ServerStream) error {
			return answerCall(method, "something else", stream)
		}},
		"a stream that ends early": {GRPCStream, Garbled, func(method, _ string, stream grpc.ServerStream) error {
			return answerCall(method, "1 0", stream)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			listener := listen(t)
			serveCalls(t, listener, test.handle)
			count, _ := run(t, calling(listener.Addr(), test.sort))
			if count.Causes[test.cause] != count.Sent {
				t.Errorf("causes of %d: %v; want all %s", count.Sent, count.Causes, test.cause)
			}
		})
	}
}

// TestCalls_TellWhatIsCutFromWhatDrains: a server that says goodbye loses no call, and one that stops loses some.
func TestCalls_TellWhatIsCutFromWhatDrains(t *testing.T) {
	for name, test := range map[string]struct {
		end   func(*grpc.Server)
		loses bool
	}{
		"drained": {(*grpc.Server).GracefulStop, false},
		"cut":     {(*grpc.Server).Stop, true},
	} {
		t.Run(name, func(t *testing.T) {
			first, address := listen(t), ""
			address = first.Addr().String()
			server := serveCalls(t, first, answerCall)
			plan := calling(first.Addr(), GRPCStream)
			time.AfterFunc(60*time.Millisecond, func() {
				for listening := false; !listening; { // another one takes the port, as a pod behind a Service does
					_ = first.Close()
					second, err := net.Listen("tcp", address)
					if listening = err == nil; listening {
						serveCalls(t, second, answerCall)
					}
				}
				test.end(server)
			})
			count, _ := run(t, plan)
			if (count.Failed > 0) != test.loses {
				t.Errorf("%d of %d failed: %+v", count.Failed, count.Sent, count.Failures)
			}
		})
	}
}
