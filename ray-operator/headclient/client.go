// Package headclient speaks to the head of a Ray cluster: to its global control service
// (GCS) over gRPC, about nodes, what runs on them and waits for them, and their leaving; to
// the job API and the Serve API of its dashboard over HTTP; and to the proxies of Serve.
//
// In: an address that the caller derived from a pod it owns, and the cluster's token. Out:
// plain values, or an *Error whose Kind says what sort of failure it was. Whatever a head
// says is hostile until checked: ids, numbers, lengths and the number of parts are bounded.
//
// It must never send what can kill a GCS (a state version that was read earlier, a node id
// that has not 28 bytes), never repeat a call by itself, never follow the head elsewhere,
// and never put a token into an error.
package headclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc/autoscaler"
)

// DefaultTimeout is how long a call may take: half of what Ray's own autoscaler allows.
const DefaultTimeout = 5 * time.Second

// Limits on what a head may send, in bytes.
const (
	// DefaultMaxReply is a reply's. A node takes about 1 KiB, and the heads of many clusters
	// that are not ours to trust are asked at the same time.
	DefaultMaxReply = 8 << 20
	// RayMaxReply is what Ray itself allows, for who asks one head only.
	RayMaxReply = 512 << 20
	// maxHeader is of the headers of a reply.
	maxHeader = 64 << 10
)

// A connection's buffers, in bytes: requests are small, and there are many connections.
const buffer = 4 << 10

// idle is after how long without a call a connection is given up. The next call makes a
// new one.
const idle = 15 * time.Second

// Token gives the cluster's token. It is called before each call to a head; Remember keeps that from being a read each time.
type Token func(context.Context) (string, error)

// Connect makes a connection to host:port.
type Connect func(ctx context.Context, address string) (net.Conn, error)

// orAnywhere returns the Connect, or ConnectAnywhere where there is none.
func (c Connect) orAnywhere() Connect {
	if c == nil {
		return ConnectAnywhere
	}
	return c
}

// ConnectAnywhere is the Connect that refuses no address.
func ConnectAnywhere(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// Options say how to speak to a head.
type Options struct {
	// Connect makes the connections; ConnectAnywhere where it is nil.
	Connect Connect
	// Token is nil for a cluster without authentication.
	Token Token
	// Trust is nil for a cluster without encryption.
	Trust Trust
	// Timeout is each call's; DefaultTimeout where it is zero.
	Timeout time.Duration
	// MaxReply is how many bytes a reply of GCS may have; DefaultMaxReply where it is zero.
	MaxReply int
	// Permit is asked right before anything is sent that changes what a head does, and refuses it by an error; nil
	// permits all.
	Permit func() error
	// Memory is what this client shares with others to read large answers; nil is no limit.
	Memory *Memory
}

// Client speaks to one head. It may be used by many goroutines.
type Client struct {
	address    string
	options    Options
	connection *grpc.ClientConn
	autoscaler autoscaler.AutoscalerStateServiceClient
	nodes      rpc.NodeInfoGcsServiceClient
	jobs       rpc.JobInfoGcsServiceClient
	actors     rpc.ActorInfoGcsServiceClient
	store      rpc.InternalKVGcsServiceClient
	reported   atomic.Int64 // the version of the last Report
}

// Dial prepares to speak to the GCS at host:port. It sends nothing: the first call connects.
func Dial(address string, options Options) (*Client, error) {
	if err := checkAddress(address); err != nil {
		return nil, fail(Invalid, "prepare to ask the head", err)
	}
	if options.Timeout <= 0 {
		options.Timeout = DefaultTimeout
	}
	if options.MaxReply <= 0 {
		options.MaxReply = DefaultMaxReply
	}
	connection, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(options.Connect.orAnywhere().Over(options.Trust)), grpc.WithNoProxy(), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(options.MaxReply)),
		grpc.WithMaxHeaderListSize(maxHeader), grpc.WithIdleTimeout(idle),
		grpc.WithReadBufferSize(buffer), grpc.WithWriteBufferSize(buffer),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 2, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: options.Timeout,
		}))
	if err != nil {
		return nil, fail(Invalid, "prepare to ask the head at "+address, err)
	}
	return &Client{
		address: address, options: options, connection: connection,
		autoscaler: autoscaler.NewAutoscalerStateServiceClient(connection),
		nodes:      rpc.NewNodeInfoGcsServiceClient(connection),
		jobs:       rpc.NewJobInfoGcsServiceClient(connection),
		actors:     rpc.NewActorInfoGcsServiceClient(connection),
		store:      rpc.NewInternalKVGcsServiceClient(connection),
	}, nil
}

func checkAddress(address string) error {
	if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
		return fmt.Errorf("the address %q is not host:port", address)
	}
	return nil
}

// Close gives the connection up; calls under way fail.
func (c *Client) Close() error {
	if err := c.connection.Close(); err != nil {
		return fmt.Errorf("close the connection to the head at %s: %w", c.address, err)
	}
	return nil
}

// Alive asks whether GCS answers, and gives its Ray's version. It is the cheapest call.
func (c *Client) Alive(ctx context.Context) (version string, err error) {
	const act = "ask whether the head lives"
	reply, done, err := call(ctx, c, act, c.nodes.CheckAlive, &rpc.CheckAliveRequest{})
	if err != nil {
		return "", err
	}
	defer done()
	switch {
	case reply.IsLeader != nil && !reply.GetIsLeader():
		return "", c.fail(Refused, act, errors.New("it does not lead the cluster"))
	case len(reply.GetRayVersion()) > maxName:
		return "", c.fail(Protocol, act, fmt.Errorf("its version has %d bytes", len(reply.GetRayVersion())))
	}
	return reply.GetRayVersion(), nil
}

// notFound is the code that a reply's own status has for what is not there.
const notFound = 17

// call makes one call, once, within the timeout, and sorts what can go wrong. The replies
// of some of Ray's services carry a status of their own. The caller calls done, which is
// never nil, when it has read the reply.
func call[Request, Reply any](ctx context.Context, c *Client, act string,
	method func(context.Context, Request, ...grpc.CallOption) (Reply, error), request Request,
) (reply Reply, done func(), err error) {
	var none Reply
	nothing := func() {}
	authorized, err := c.authorize(ctx)
	if err != nil {
		return none, nothing, c.fail(Unauthenticated, act, err)
	}
	limited, stop := context.WithTimeout(authorized, c.options.Timeout)
	defer stop()
	x := &exchange{act: act, outer: ctx, ctx: limited, memory: c.options.Memory}
	reply, err = method(limited, request, grpc.Trailer(&x.trailer), grpc.ForceCodec(codec{parts: c.options.parts(), of: x}))
	if err == nil {
		err = x.decode()
	}
	if err = c.sort(x, reply, err); err != nil {
		x.done()
		return none, nothing, err
	}
	return reply, x.done, nil
}

// exchange is one call under way.
type exchange struct {
	act string
	// outer is the caller's context, ctx what is left of it for this call.
	outer, ctx context.Context //nolint:containedctx // gRPC hands a codec none
	trailer    metadata.MD
	// message is what the bytes of data must be read into, which have so many parts.
	message proto.Message
	data    []byte
	parts   int
	// memory is shared with others; giveBack gives back what was taken of it, full says why there was none.
	memory   *Memory
	giveBack func()
	full     error
}

// decode reads the answer once it is there as a whole: a head that stalls holds nothing of what others need.
func (x *exchange) decode() error {
	if x.giveBack, x.full = x.memory.take(x.ctx, int64(x.parts)*partMemory+int64(len(x.data))); x.full != nil {
		return x.full
	}
	err := unmarshal(x.data, x.message)
	x.data = nil
	return err
}

// done gives back what was taken.
func (x *exchange) done() {
	if x.giveBack != nil {
		x.giveBack()
	}
}

// sort tells what went wrong with a call, nil if nothing did.
func (c *Client) sort(x *exchange, reply any, err error) error {
	switch {
	case err != nil && x.outer.Err() != nil: // the caller's own end
		return c.fail(kindOf(status.Code(err)), x.act, context.Cause(x.outer))
	case x.full != nil:
		return c.fail(Timeout, x.act, x.full)
	case err != nil && outlived(x.outer, x.ctx, err):
		return c.fail(Timeout, x.act, context.DeadlineExceeded)
	case err != nil:
		return c.fail(kindOf(status.Code(err)), x.act, explain(err, x.trailer))
	}
	if within, ok := reply.(interface{ GetStatus() *rpc.GcsStatus }); ok && within.GetStatus().GetCode() != 0 {
		kind := Refused
		if within.GetStatus().GetCode() == notFound {
			kind = NotFound
		}
		return c.fail(kind, x.act, fmt.Errorf("status %d: %s",
			within.GetStatus().GetCode(), text(within.GetStatus().GetMessage())))
	}
	return nil
}

// outlived reports whether a call ended because the caller's time did. The head knows that time
// and may be first to say so, before the caller's context knows it is over.
func outlived(ctx, limited context.Context, err error) bool {
	theirs, bounded := ctx.Deadline()
	ours, _ := limited.Deadline()
	return bounded && ours.Equal(theirs) && status.Code(err) == codes.DeadlineExceeded
}

// authorize adds the token to a call, in the one form that Ray takes.
func (c *Client) authorize(ctx context.Context) (context.Context, error) {
	token, err := c.options.token(ctx)
	if err != nil || token == "" {
		return ctx, err
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), nil
}

// permits reports why what is about to be sent must not be, if it changes something.
func (o Options) permits(changes bool) error {
	if !changes || o.Permit == nil {
		return nil
	}
	return o.Permit()
}

// token is read for each call; it is empty where none must be sent.
func (o Options) token(ctx context.Context) (string, error) {
	if o.Token == nil {
		return "", nil
	}
	token, err := o.Token(ctx)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	if !sendable(token) {
		return "", errors.New("the token is empty, too long, or has characters other than visible ASCII")
	}
	return token, nil
}

// sendable reports whether a token fits into a header's value.
func sendable(token string) bool {
	for _, b := range []byte(token) {
		if b <= ' ' || b > '~' {
			return false
		}
	}
	return token != "" && len(token) <= maxHeader/2
}

// explain is what a head said about a call that failed. Ray puts its words into a trailer
// that is meant for something else, as plain text.
func explain(err error, trailer metadata.MD) error {
	said := text([]byte(status.Convert(err).Message()))
	for _, words := range trailer.Get("grpc-status-details-bin") {
		said += ": " + text([]byte(words))
	}
	return errors.New(said)
}

// kindOf sorts the codes that Ray and gRPC are seen to use.
func kindOf(code codes.Code) Kind {
	switch code {
	case codes.Unauthenticated, codes.PermissionDenied:
		return Unauthenticated
	case codes.Unavailable, codes.Canceled:
		return Unavailable
	case codes.DeadlineExceeded:
		return Timeout
	case codes.Aborted, codes.InvalidArgument, codes.NotFound, codes.FailedPrecondition:
		return Refused
	case codes.Unimplemented:
		return Unsupported
	default:
		return Protocol
	}
}
