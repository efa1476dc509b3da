package headclient

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
)

// besideValue is how many bytes a reply may have beside the value that it is about.
const besideValue = 1 << 10

// Value asks for a value of the GCS' internal key-value store, which any code on the cluster can write. NotFound tells
// that there is none, and Protocol that it has more bytes than the limit: those are not read.
func (c *Client) Value(ctx context.Context, namespace, key string, limit int) ([]byte, error) {
	act := "ask for key " + text([]byte(key))
	get := func(ctx context.Context, request *rpc.InternalKVGetRequest, options ...grpc.CallOption) (*rpc.InternalKVGetReply, error) {
		return c.store.InternalKVGet(ctx, request, append(options, grpc.MaxCallRecvMsgSize(limit+besideValue))...)
	}
	reply, done, err := call(ctx, c, act, get, &rpc.InternalKVGetRequest{Namespace: []byte(namespace), Key: []byte(key)})
	if err != nil {
		return nil, err
	}
	defer done()
	if len(reply.GetValue()) > limit {
		return nil, c.fail(Protocol, act, fmt.Errorf("it has %d bytes, more than %d", len(reply.GetValue()), limit))
	}
	return reply.GetValue(), nil
}

// DeleteValue deletes a value of the GCS' internal key-value store. It succeeds too where there is none.
func (c *Client) DeleteValue(ctx context.Context, namespace, key string) error {
	act := "delete key " + text([]byte(key))
	if err := c.options.permits(true); err != nil {
		return c.fail(Unavailable, act, err)
	}
	_, done, err := call(ctx, c, act, c.store.InternalKVDel, &rpc.InternalKVDelRequest{Namespace: []byte(namespace), Key: []byte(key)})
	done()
	return err
}
