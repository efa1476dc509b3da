// Package client asks the replicas of the archiver for what they keep.
//
// In: the addresses of all replicas, and calls of history.v1.Read. Out: one answer for all replicas. The one that a cluster prefers is
// asked first, and another one where that fails; what only one of them has yet is merged in.
//
// It must never judge who may read something: its caller has. It holds no more of a file than a piece.
package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/heliostat-dev/heliostat/history/replica"
	"github.com/heliostat-dev/heliostat/history/wire"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

// Client asks all replicas. It may be used by many goroutines.
type Client struct {
	addresses   []string
	replicas    map[string]pb.ReadClient
	connections []*grpc.ClientConn
}

const (
	// answerWithin is how long a replica may take for an answer before another one is asked.
	answerWithin = 10 * time.Second
	// connectWithin is how long a connection may take.
	connectWithin = 3 * time.Second
	// maxAnswer is how many bytes an answer may have. A page of files has at most two MiB.
	maxAnswer = 16 << 20
)

// New returns a client of replicas at addresses, each host:port. The caller closes it.
func New(addresses []string, secure credentials.TransportCredentials, more ...grpc.DialOption) (*Client, error) {
	if len(addresses) == 0 {
		return nil, errors.New("connect to archivers: no address is given")
	}
	c := &Client{addresses: slices.Clone(addresses), replicas: map[string]pb.ReadClient{}}
	slow := backoff.DefaultConfig
	slow.MaxDelay = answerWithin
	options := append(wire.DialOptions(), grpc.WithTransportCredentials(secure),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: slow, MinConnectTimeout: connectWithin}))
	for _, address := range addresses {
		connection, err := grpc.NewClient("passthrough:///"+address, append(options, more...)...)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("connect to archiver %s: %w", address, err), c.Close())
		}
		c.connections, c.replicas[address] = append(c.connections, connection), pb.NewReadClient(connection)
	}
	return c, nil
}

// Close ends all connections.
func (c *Client) Close() error {
	var all []error
	for _, one := range c.connections {
		all = append(all, one.Close())
	}
	return errors.Join(all...)
}

// isFinal reports whether another replica would answer no better.
func isFinal(ctx context.Context, err error) bool {
	return err == nil || ctx.Err() != nil || status.Code(err) == codes.InvalidArgument
}

// worse returns of two failures the one that says more: that something is not found is less than that nobody could look.
func worse(first, second error) error {
	if status.Code(first) == codes.NotFound && second != nil {
		return second
	}
	return cmp.Or(first, second)
}

// ask asks replicas one after another, in the order of a cluster, until one answers.
func ask[T any](ctx context.Context, c *Client, key string, call func(context.Context, pb.ReadClient) (T, error)) (answer T, err error) {
	var failure error
	for _, address := range replica.Order(key, c.addresses) {
		answer, err = within(ctx, func(ctx context.Context) (T, error) { return call(ctx, c.replicas[address]) })
		if isFinal(ctx, err) {
			return answer, err
		}
		failure = worse(failure, err)
	}
	return answer, failure
}

// within makes a call that may take a while.
func within[T any](ctx context.Context, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	return call(ctx)
}

// ListRecords returns a page of records. All replicas have the same ones.
func (c *Client) ListRecords(ctx context.Context, r *pb.ListRecordsRequest) (*pb.ListRecordsResponse, error) {
	return ask(ctx, c, "", func(ctx context.Context, one pb.ReadClient) (*pb.ListRecordsResponse, error) {
		return one.ListRecords(ctx, r)
	})
}

// GetRecord returns all that is kept of an object.
func (c *Client) GetRecord(ctx context.Context, r *pb.GetRecordRequest) (*pb.GetRecordResponse, error) {
	return ask(ctx, c, r.GetUid(), func(ctx context.Context, one pb.ReadClient) (*pb.GetRecordResponse, error) {
		return one.GetRecord(ctx, r)
	})
}

// DeleteHistory removes what is kept of an object. The replica that writes does it.
func (c *Client) DeleteHistory(ctx context.Context, r *pb.DeleteHistoryRequest) error {
	_, err := ask(ctx, c, r.GetUid(), func(ctx context.Context, one pb.ReadClient) (*pb.DeleteHistoryResponse, error) {
		return one.DeleteHistory(ctx, r)
	})
	return err
}

// collecting is the state of an archive that may have bytes which one replica alone has.
const collecting = "Collecting"

// ListFiles returns a page of the files of an archive. While pods still send, the lists of all replicas are merged. A page may then have
// some more files than its limit.
func (c *Client) ListFiles(ctx context.Context, r *pb.ListFilesRequest) (*pb.ListFilesResponse, error) {
	var found *pb.ListFilesResponse
	var failure error
	for _, address := range replica.Order(r.GetClusterUid(), c.addresses) {
		page, err := within(ctx, func(ctx context.Context) (*pb.ListFilesResponse, error) { return c.replicas[address].ListFiles(ctx, r) })
		switch {
		case err != nil && isFinal(ctx, err):
			return nil, err
		case err != nil:
			failure = worse(failure, err)
			continue
		case found == nil:
			found = page
		default:
			found = merge(found, page)
		}
		if found.GetArchiveState() != collecting {
			return found, nil
		}
	}
	if found == nil {
		return nil, failure
	}
	return found, nil
}

// Piece is what comes next of a file: bytes, or a range that no replica has.
type Piece struct {
	Offset  int64
	Data    []byte
	Missing *pb.Missing
}

// End is where the piece ends. It is 2⁶² behind a range without an end.
func (p Piece) End() int64 {
	switch {
	case p.Missing == nil:
		return p.Offset + int64(len(p.Data))
	case p.Missing.GetLength() == 0:
		return endless
	default:
		return p.Offset + p.Missing.GetLength()
	}
}

// endless is behind the last byte that a file can have.
const endless = 1 << 62

// ReadFile gives take the pieces of a file from an offset on, each byte once and in order, up to where no replica has more. A piece is
// valid until take returns, and an error of take ends the reading.
func (c *Client) ReadFile(ctx context.Context, r *pb.ReadFileRequest, take func(Piece) error) error {
	reading := &reading{client: c, request: r, take: take, at: r.GetOffset(), left: r.GetLimit()}
	return reading.run(ctx)
}

// pieces opens a file at a replica, and gives pieces to take until the replica has no more.
func (c *Client) pieces(ctx context.Context, address string, r *pb.ReadFileRequest, take func(Piece) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.replicas[address].ReadFile(ctx, r)
	if err != nil {
		return err
	}
	for {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := take(Piece{Offset: answer.GetOffset(), Data: answer.GetData(), Missing: answer.GetMissing()}); err != nil {
			return &takeError{err}
		}
	}
}

// takeError is an error of who takes pieces.
type takeError struct{ cause error }

// Error implements error.
func (e *takeError) Error() string { return e.cause.Error() }
