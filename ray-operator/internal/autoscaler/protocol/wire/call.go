package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
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
	connection *http.ClientConn
	address    string
	decisions  *http.Response
}

// Follow makes a stream to the autoscaler at host:port beside a head, and proves that it knows the token if that is not
// empty. It returns when the autoscaler has accepted the stream, or with a status. The stream lives at most as long as the
// context.
func (c *Caller) Follow(ctx context.Context, address, head, token string) (*Stream, error) {
	connection, err := c.transport.NewClientConn(ctx, "http", address)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	s := &Stream{connection: connection, address: address}
	if err := s.claim(ctx, head, token); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// claim begins to follow.
func (s *Stream) claim(ctx context.Context, head, token string) error {
	message := &pb.Claim{Head: head}
	if token != "" {
		nonce, err := s.challenge(ctx)
		if err != nil {
			return err
		}
		message.Proof = Prove(token, nonce, head)
	}
	claim, err := proto.Marshal(message)
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	s.decisions, err = s.call(ctx, pb.ScaleService_Follow_FullMethodName, claim) //nolint:bodyclose // Close does
	return err
}

// challenge returns the nonce to prove the token by.
func (s *Stream) challenge(ctx context.Context) ([]byte, error) {
	answer, err := s.ask(ctx, pb.ScaleService_Challenge_FullMethodName, nil)
	if err != nil {
		return nil, err
	}
	var message pb.Nonce
	if err := proto.Unmarshal(answer, &message); err != nil || len(message.GetNonce()) != NonceSize {
		return nil, status.Error(codes.Internal, "it answers a challenge with no nonce")
	}
	return message.GetNonce(), nil
}

// Order sends a snapshot, and returns when the autoscaler has taken it, or with a status.
func (s *Stream) Order(ctx context.Context, snapshot Frame) error {
	_, err := s.ask(ctx, pb.ScaleService_Order_FullMethodName, snapshot)
	return err
}

// ask makes a call that is answered with one small message, and returns that.
func (s *Stream) ask(ctx context.Context, method string, message []byte) (Frame, error) {
	response, err := s.call(ctx, method, message)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // what was not read is not wanted
	body, err := io.ReadAll(io.LimitReader(response.Body, maxHeader))
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	if err := ended(response.Trailer); !errors.Is(err, io.EOF) {
		return nil, err
	}
	answer, err := readFrame(bytes.NewReader(body), maxHeader)
	if errors.Is(err, io.EOF) {
		return nil, status.Error(codes.Internal, "it answers without a message")
	}
	return answer, err
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

// Receive waits for a decision. Its failure is a status, or io.EOF for an orderly end. Memory is
// given to a decision as it comes, not as it says to be long.
func (s *Stream) Receive() (Frame, error) {
	decision, err := readFrame(s.decisions.Body, MaxDecision)
	if errors.Is(err, io.EOF) {
		return nil, ended(s.decisions.Trailer)
	}
	return decision, err
}

// readFrame reads a message of at most so many bytes. It fails with io.EOF where there is none, else with a status.
func readFrame(from io.Reader, most uint32) (Frame, error) {
	var prefix [prefixLength]byte
	if n, err := io.ReadFull(from, prefix[:]); errors.Is(err, io.EOF) && n == 0 {
		return nil, io.EOF
	} else if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	length := binary.BigEndian.Uint32(prefix[1:])
	if prefix[0] != 0 || length > most {
		return nil, status.Errorf(codes.ResourceExhausted, "a message of %d bytes, compressed: %v; at most %d fit, as they are", length, prefix[0] != 0, most)
	}
	var message bytes.Buffer
	if _, err := io.CopyN(&message, from, int64(length)); err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return message.Bytes(), nil
}

// Close ends the stream and its connection.
func (s *Stream) Close() {
	if s.decisions != nil {
		_ = s.decisions.Body.Close() // what was not read is not wanted
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
