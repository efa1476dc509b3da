package hostile

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	scalelink "github.com/heliostat-dev/heliostat/proto/gen/heliostat/scalelink/v1"
	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc/autoscaler"
)

// GCS is what the GCS of a hostile head says.
var GCS = sync.OnceValue(func() []Manner {
	nodes := &autoscaler.ClusterResourceState{}
	for range 100_000 {
		nodes.NodeStates = append(nodes.NodeStates, &autoscaler.NodeState{NodeId: []byte("a"), InstanceId: "\x1b[31m", Status: autoscaler.NodeStatus_RUNNING})
	}
	deep := bytes.Repeat(protowire.AppendTag(nil, 1, protowire.StartGroupType), 1<<20)
	return append(floods(),
		answering(pack(&autoscaler.GetClusterResourceStateReply{ClusterResourceState: nodes})),
		answering(deep),
		answering(make([]byte, longest)),
		answering([]byte("what is this")),
		answering(nil),
		calls(untilItEnds),
	)
})

// Autoscaler is what listens in the place of a hostile head's autoscaler: words that want all there is and nothing, as
// fast as they are taken, and words that no autoscaler says.
var Autoscaler = sync.OnceValue(func() []Manner {
	word := func(head string, replicas int32) *scalelink.Word {
		return &scalelink.Word{Head: head, Targets: []*scalelink.Target{{Group: "cpu", Replicas: replicas, Reason: "\x1b[31mI say so"}, {Group: "none", Replicas: 10_000}}}
	}
	return append(floods(),
		following(func(head string) [][]byte { return [][]byte{pack(word(head, 10_000)), pack(word(head, 0))} }),
		following(func(head string) [][]byte {
			large := word(head, 1)
			large.Trouble = strings.Repeat("x", 3<<20)
			return [][]byte{pack(large)}
		}),
		following(func(head string) [][]byte {
			many := word(head, 1)
			many.Leaving = make([]*scalelink.Leaver, 100_000)
			for i := range many.Leaving {
				many.Leaving[i] = &scalelink.Leaver{}
			}
			return [][]byte{pack(many)}
		}),
		following(func(string) [][]byte { return [][]byte{make([]byte, longest)} }),
		calls(untilItEnds),
	)
})

// untilItEnds answers nothing for as long as the caller waits.
func untilItEnds(stream grpc.ServerStream) error {
	<-stream.Context().Done()
	return stream.Context().Err()
}

// floods are what any server of HTTP/2 may do.
func floods() []Manner {
	frames := func(write func(*http2.Framer) error) string {
		var out bytes.Buffer
		_ = write(http2.NewFramer(&out, nil)) // memory refuses nothing
		return out.String()
	}
	settings := frames(func(f *http2.Framer) error { return f.WriteSettings() })
	return []Manner{
		endless(settings, frames(func(f *http2.Framer) error { return f.WritePing(false, [8]byte{}) })),
		endless(settings, settings),
		endless(settings+frames(func(f *http2.Framer) error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}})
		}), frames(func(f *http2.Framer) error { return f.WriteContinuation(1, false, make([]byte, 16<<10)) })),
		endless("", "\x00"),
		silent,
	}
}

// answering answers each call with the same bytes.
func answering(answer []byte) Manner {
	return calls(func(stream grpc.ServerStream) error {
		var request []byte
		return errors.Join(stream.RecvMsg(&request), stream.SendMsg(answer))
	})
}

// following repeats words to each caller that follows.
func following(words func(head string) [][]byte) Manner {
	return calls(func(stream grpc.ServerStream) error {
		var request []byte
		if err := stream.RecvMsg(&request); err != nil {
			return err
		}
		method, _ := grpc.MethodFromServerStream(stream)
		switch {
		case strings.HasSuffix(method, "/Challenge"):
			return stream.SendMsg(pack(&scalelink.Nonce{Nonce: make([]byte, 32)}))
		case !strings.HasSuffix(method, "/Follow"):
			return stream.SendMsg([]byte(nil))
		}
		var claim scalelink.Claim
		if err := proto.Unmarshal(request, &claim); err != nil {
			return err
		}
		said := words(claim.GetHead())
		for begin := time.Now(); time.Since(begin) < patience; {
			for _, word := range said {
				if err := stream.SendMsg(word); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func pack(message proto.Message) []byte {
	wire, _ := proto.Marshal(message) // of messages that are made here
	return wire
}

// calls answers the calls of gRPC on a connection.
func calls(answer func(grpc.ServerStream) error) Manner {
	return func(connection net.Conn) {
		server := grpc.NewServer(grpc.ForceServerCodec(verbatim{}), grpc.MaxSendMsgSize(1<<30),
			grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error { return answer(stream) }))
		defer server.Stop()
		_ = server.Serve(&single{Conn: connection, closed: make(chan struct{})}) // it ends with the connection
	}
}

// verbatim is a codec of bytes.
type verbatim struct{}

// Marshal gives the bytes.
func (verbatim) Marshal(v any) ([]byte, error) {
	data, isBytes := v.([]byte)
	if !isBytes {
		return nil, errors.New("marshal a message: it is no slice of bytes")
	}
	return data, nil
}

// Unmarshal keeps the bytes.
func (verbatim) Unmarshal(data []byte, v any) error {
	into, isBytes := v.(*[]byte)
	if !isBytes {
		return errors.New("unmarshal a message: it goes into no slice of bytes")
	}
	*into = bytes.Clone(data)
	return nil
}

// Name is that of gRPC's own codec.
func (verbatim) Name() string { return "proto" }

// single is a listener with one connection, and that connection.
type single struct {
	net.Conn
	once, taken sync.Once
	closed      chan struct{}
}

// Accept gives the connection once, and then waits for its end.
func (s *single) Accept() (net.Conn, error) {
	var first net.Conn
	s.taken.Do(func() { first = s })
	if first != nil {
		return first, nil
	}
	<-s.closed
	return nil, io.EOF
}

// Addr is that of this end.
func (s *single) Addr() net.Addr { return s.LocalAddr() }

// Close ends the connection.
func (s *single) Close() (err error) {
	s.once.Do(func() { err = s.Conn.Close(); close(s.closed) })
	return err
}
