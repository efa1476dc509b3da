package headclient

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc/autoscaler"
)

// maxParts is how many messages, entries of maps and elements of lists a reply may hold.
// Two bytes on the wire become a struct of up to 300, so the length alone bounds nothing.
// A node has about 40 parts: it is enough for 5,000 of them.
const maxParts = 200_000

// parts is how many a reply may hold where it may be longer than by default: 4 million in
// 512 MiB, enough for 10,000 nodes and as many shapes, gangs and bundles as Ray tells of.
func (o Options) parts() int { return max(maxParts, o.MaxReply/128) }

// codec is Protocol Buffers for one call, with a look at a message before memory is given to it.
type codec struct {
	parts int
	of    *exchange
}

var (
	errNotMessage = errors.New("it is not a message of Protocol Buffers")
	errTooMany    = errors.New("it has too many parts")
)

// Marshal is the message on the wire.
func (codec) Marshal(v any) ([]byte, error) {
	message, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("marshal %T: %w", v, errNotMessage)
	}
	return proto.Marshal(message)
}

// Unmarshal looks at a message, and reads it if it is of a bearable size: at once, or where it is of a call when that has
// ended.
func (c codec) Unmarshal(data []byte, v any) error {
	message, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("unmarshal %T: %w", v, errNotMessage)
	}
	count, err := parts(data, message.ProtoReflect().Descriptor(), c.parts)
	if err != nil {
		return err
	}
	if c.of == nil {
		return unmarshal(data, message)
	}
	c.of.message, c.of.data, c.of.parts = message, data, count
	return nil
}

// unmarshal reads a message. Fields that we have no use for are kept of what is sent back as it came, and dropped else.
func unmarshal(data []byte, message proto.Message) error {
	_, isSentBack := message.(*autoscaler.GetClusterResourceStateReply)
	if err := (proto.UnmarshalOptions{DiscardUnknown: !isSentBack}).Unmarshal(data, message); err != nil {
		return status.Error(codes.Internal, "it is not a message of Protocol Buffers: "+err.Error())
	}
	return nil
}

// Name is the content subtype that every server of gRPC knows.
func (codec) Name() string { return "proto" }

// parts counts what reading a message would make, and stops above a limit. Our messages
// do not hold themselves, so it ends.
func parts(data []byte, of protoreflect.MessageDescriptor, limit int) (int, error) {
	count := 0
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return 0, protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(number, kind, data[n:])
		if size < 0 {
			return 0, protowire.ParseError(size)
		}
		value := data[n : n+size]
		data = data[n+size:]
		field := of.Fields().ByNumber(number)
		if field == nil || kind != protowire.BytesType {
			continue
		}
		count++
		if field.Message() != nil {
			inner, _ := protowire.ConsumeBytes(value) // its length was checked above
			below, err := parts(inner, field.Message(), limit-count)
			if err != nil {
				return 0, err
			}
			count += below
		}
		if count > limit {
			return 0, errTooMany
		}
	}
	return count, nil
}
