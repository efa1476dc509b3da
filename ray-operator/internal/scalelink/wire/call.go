package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/scalelink/v1"
)

// What gRPC says over HTTP/2: the type of a body, where it says how a call ended, and the
// prefix of a message, which is a byte for compression, of which we take none, and four for
// its length.
const (
	contentType             = "application/grpc"
	statusName, messageName = "Grpc-Status", "Grpc-Message"
	prefixLength            = 5
)

// Dialer connects to an address.
type Dialer func(ctx context.Context, address string) (net.Conn, error)

// Caller makes streams to autoscalers, each on a connection of its own. It speaks gRPC by
// means of net/http, because each connection of grpc-go's client needs 67 KiB.
type Caller struct{ transport *http.Transport }

// NewCaller makes a Caller that connects by dial.
func NewCaller(dial Dialer) *Caller {
	transport := &http.Transport{
		DialContext:        func(ctx context.Context, _, address string) (net.Conn, error) { return dial(ctx, address) },
		Protocols:          new(http.Protocols),
		DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: ping, PingTimeout: pong,
			MaxReceiveBufferPerConnection: window, MaxReceiveBufferPerStream: window,
		},
	}
	transport.Protocols.SetUnencryptedHTTP2(true)
	return &Caller{transport}
}

// Stream is one on which an autoscaler is followed. One goroutine may order while another
// receives.
type Stream struct {
	connection     *http.ClientConn
	address, token string
	words          *http.Response
}

// Follow makes a stream to the autoscaler at host:port beside a head, with a token if it is
// not empty, and returns when the autoscaler has accepted it, or with a status. The stream
// lives at most as long as the context.
func (c *Caller) Follow(ctx context.Context, address, head, token string) (*Stream, error) {
	claim, err := proto.Marshal(&pb.Claim{Head: head})
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	connection, err := c.transport.NewClientConn(ctx, "http", address)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	s := &Stream{connection: connection, address: address, token: token}
	if s.words, err = s.call(ctx, pb.ScaleService_Follow_FullMethodName, claim); err != nil { //nolint:bodyclose // Close does
		s.Close()
		return nil, err
	}
	return s, nil
}

// Order gives orders, and returns when the autoscaler has taken them, or with a status.
func (s *Stream) Order(ctx context.Context, orders Frame) error {
	response, err := s.call(ctx, pb.ScaleService_Order_FullMethodName, orders)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // what was not read is not wanted
	if _, err := io.Copy(io.Discard, io.LimitReader(response.Body, maxHeader)); err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	if err := ended(response.Trailer); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// call makes a call with one message, and returns when the answer has begun and is no
// refusal.
func (s *Stream) call(ctx context.Context, method string, message []byte) (*http.Response, error) {
	body := make([]byte, prefixLength, prefixLength+len(message))
	binary.BigEndian.PutUint32(body[1:], uint32(len(message)))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.address+method, bytes.NewReader(append(body, message...)))
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	request.Header = http.Header{"Content-Type": {contentType}, "Te": {"trailers"}, "User-Agent": {"heliostat"}}
	if s.token != "" {
		request.Header.Set(authorization, scheme+s.token)
	}
	response, err := s.connection.RoundTrip(request)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	switch header := response.Header; {
	case response.StatusCode != http.StatusOK || !strings.HasPrefix(header.Get("Content-Type"), contentType):
		err = status.Errorf(codes.Internal, "it answers %d with a body of type %q, which is not gRPC", response.StatusCode, header.Get("Content-Type"))
	case header.Get(statusName) != "":
		err = ended(header)
	}
	if err != nil {
		_ = response.Body.Close() // it is of no use
		return nil, err
	}
	return response, nil
}

// Receive waits for a word. Its failure is a status, or io.EOF for an orderly end. Memory is
// given to a word as it comes, not as it says to be long.
func (s *Stream) Receive() (Frame, error) {
	var prefix [prefixLength]byte
	if n, err := io.ReadFull(s.words.Body, prefix[:]); errors.Is(err, io.EOF) && n == 0 {
		return nil, ended(s.words.Trailer)
	} else if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	length := binary.BigEndian.Uint32(prefix[1:])
	if prefix[0] != 0 || length > MaxWord {
		return nil, status.Error(codes.ResourceExhausted, fmt.Sprintf("a word of %d bytes, compressed: %v; at most %d fit, as they are", length, prefix[0] != 0, MaxWord))
	}
	var word bytes.Buffer
	if _, err := io.CopyN(&word, s.words.Body, int64(length)); err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return word.Bytes(), nil
}

// Close ends the stream and its connection.
func (s *Stream) Close() {
	if s.words != nil {
		_ = s.words.Body.Close() // what was not read is not wanted
	}
	_ = s.connection.Close() // it fails only where it is closed already
}

// ended is how a call ended by its trailer: never nil.
func ended(trailer http.Header) error {
	code, err := strconv.ParseUint(trailer.Get(statusName), 10, 32)
	if err != nil {
		return status.Error(codes.Unavailable, "it ended the stream without a status")
	}
	if code == uint64(codes.OK) {
		return io.EOF
	}
	message := trailer.Get(messageName)
	if plain, err := url.PathUnescape(message); err == nil {
		message = plain
	}
	return status.Error(codes.Code(code), message)
}
