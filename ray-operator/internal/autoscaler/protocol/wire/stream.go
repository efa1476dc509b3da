package wire

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/proto"
)

// What both ends hold to.
const (
	// Pause is how long either end waits after a message that it has read. SendPause is how
	// long it waits after one that it has sent, which is more, so that no message of an
	// honest end is ever kept waiting behind an older one.
	Pause     = 100 * time.Millisecond
	SendPause = 125 * time.Millisecond
	// Greeting is how long the other end has to answer the call or to make one.
	Greeting = 5 * time.Second
	// An operator that has heard nothing for ping asks whether anyone is there, and hangs up
	// when it is not answered within pong: a dead end is noticed after 18 s. The autoscaler
	// asks only if it is not asked.
	ping, pong           = 10 * time.Second, 8 * time.Second
	serverPing, hastiest = 14 * time.Second, 5 * time.Second
	// window is how many bytes of a message may be on the way before they are read. gRPC
	// takes no less.
	window = 64 << 10
	// streams is how many calls a connection may have at a time: one to follow, one for
	// orders.
	streams = 2
	// buffer is in bytes, of an autoscaler's connections.
	buffer = 4 << 10
	// maxHeader is in bytes: what gRPC says itself.
	maxHeader = 16 << 10
)

// Frame is a message on the wire.
type Frame []byte

// codec is Protocol Buffers, with a look at a message before memory is given to it. A Frame
// is handed over as it is.
type codec struct{}

var errNotMessage = errors.New("it is no message")

// Marshal is the message on the wire.
func (codec) Marshal(v any) ([]byte, error) {
	switch message := v.(type) {
	case Frame:
		return message, nil
	case proto.Message:
		return proto.Marshal(message)
	default:
		return nil, fmt.Errorf("marshal %T: %w", v, errNotMessage)
	}
}

// Unmarshal reads a message, if it is of a bearable size.
func (codec) Unmarshal(data []byte, v any) error {
	message, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("unmarshal %T: %w", v, errNotMessage)
	}
	return unmarshal(data, message, MaxSnapshot)
}

// Name is the content subtype that every server of gRPC knows.
func (codec) Name() string { return "proto" }

// ServerOptions are those of an autoscaler's server.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodec(codec{}), grpc.MaxRecvMsgSize(MaxSnapshot), grpc.MaxSendMsgSize(MaxDecision),
		grpc.MaxHeaderListSize(maxHeader), grpc.MaxConcurrentStreams(streams), grpc.ConnectionTimeout(Greeting),
		grpc.ReadBufferSize(buffer), grpc.WriteBufferSize(buffer),
		grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(window),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: serverPing, Timeout: pong}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: hastiest, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true),
	}
}
