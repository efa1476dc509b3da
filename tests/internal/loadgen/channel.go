package loadgen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"
)

// Methods of the service that Ray's package has for tests: ray.serve.UserDefinedService. The name of a message is what is
// said, and the greeting of a response is an answer as JSON.
const (
	callMethod   = "/ray.serve.UserDefinedService/Method1"
	streamMethod = "/ray.serve.UserDefinedService/Streaming"
)

// channels opens the channels over which gRPC calls go. A call that a server has seen is never sent again.
func (p *Plan) channels() ([]*grpc.ClientConn, error) {
	var all []*grpc.ClientConn
	for range p.Connections {
		one, err := grpc.NewClient("passthrough:///"+p.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDisableRetry(), grpc.WithDefaultCallOptions(grpc.ForceCodec(text{})))
		if err != nil {
			return nil, fmt.Errorf("open a channel to %s: %w", p.GRPC, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// text is the codec of messages whose first field is a string, which is all that counts of them.
type text struct{}

// Name returns the name of the codec.
func (text) Name() string { return "proto" }

// Marshal encodes a *string.
func (text) Marshal(message any) ([]byte, error) {
	said, ok := message.(*string)
	if !ok {
		return nil, fmt.Errorf("encode a message: %T is no string", message)
	}
	return protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), *said), nil
}

// Unmarshal decodes into a *string.
func (text) Unmarshal(data []byte, message any) error {
	said, ok := message.(*string)
	if !ok {
		return fmt.Errorf("decode a message: %T is no string", message)
	}
	for len(data) > 0 {
		number, sort, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, sort, data); n < 0 {
			return protowire.ParseError(n)
		}
		if number == 1 && sort == protowire.BytesType {
			value, _ := protowire.ConsumeString(data[:n]) // its length was checked
			*said = value
		}
		data = data[n:]
	}
	return nil
}

// call sends gRPC calls over channels that are kept, each in its turn.
type call struct {
	plan     *Plan
	channels []*grpc.ClientConn
}

func (c call) ask(ctx context.Context, number int, due time.Time) reply {
	ctx, stop := context.WithTimeout(ctx, c.plan.Timeout)
	defer stop()
	asked, answered := fmt.Sprintf("call %d", number), ""
	var said reply
	if said.err = c.channels[number%len(c.channels)].Invoke(ctx, callMethod, &asked, &answered); said.err != nil {
		return said
	}
	said.parts = []part{since(due)}
	if err := json.Unmarshal([]byte(answered), &said.from); err != nil {
		said.err = garbled("%v: %q", err, cut([]byte(answered)))
	} else if said.from.Said != asked {
		said.err = garbled("asked %q, it answers to %q", asked, said.from.Said)
	}
	return said
}

// callStream sends gRPC calls that are answered in messages, each of which has its number.
type callStream struct{ call }

func (c callStream) ask(ctx context.Context, number int, due time.Time) reply {
	ctx, stop := context.WithTimeout(ctx, c.plan.Session+c.plan.Timeout)
	defer stop()
	said := reply{}
	said.err = c.receive(ctx, number, &said, due)
	return said
}

// receive reads the messages of one call, all from the same process, up to the end.
func (c callStream) receive(ctx context.Context, number int, said *reply, due time.Time) error {
	stream, err := c.channels[number%len(c.channels)].NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, streamMethod)
	if err != nil {
		return err
	}
	messages := int(c.plan.Session / c.plan.Pace)
	asked := fmt.Sprintf("%d %g", messages, c.plan.Pace.Seconds())
	if err := stream.SendMsg(&asked); err != nil && !errors.Is(err, io.EOF) { // the reason comes with what is received
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for count := 0; ; count++ {
		var line string
		if err := stream.RecvMsg(&line); errors.Is(err, io.EOF) {
			if count != messages {
				return garbled("it ended well after %d of %d messages", count, messages)
			}
			return nil
		} else if err != nil {
			return err
		}
		came := since(due)
		if err := said.take([]byte(line), count, messages); err != nil {
			return err
		}
		said.parts, due = append(said.parts, came), came.at.Add(c.plan.Pace)
	}
}
