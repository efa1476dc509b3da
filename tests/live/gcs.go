package live

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
)

// gcsPort is where a head's global control service listens.
const gcsPort = 6379

// GCS asks a head's global control service which nodes it lists.
type GCS struct {
	connection *grpc.ClientConn
	token      string
}

// DialGCS prepares to ask the head at an address, with its token, or without one where
// it is empty. Nothing is sent yet, so it works before the head listens. It tries to
// connect every 50 ms: gRPC's own back-off would add up to seconds to what is measured. A cluster with encryption needs
// TLS, another one nil.
func DialGCS(ip, token string, encryption *tls.Config) (*GCS, error) {
	transport := insecure.NewCredentials()
	if encryption != nil {
		transport = credentials.NewTLS(encryption)
	}
	every := backoff.Config{BaseDelay: poll, Multiplier: 1, MaxDelay: poll}
	connection, err := grpc.NewClient("passthrough:///"+net.JoinHostPort(ip, fmt.Sprint(gcsPort)),
		grpc.WithTransportCredentials(transport), grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{})),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: every, MinConnectTimeout: time.Second}))
	if err != nil {
		return nil, fmt.Errorf("prepare to ask the head at %s: %w", ip, err)
	}
	return &GCS{connection: connection, token: token}, nil
}

// Close ends the connection.
func (g *GCS) Close() error { return g.connection.Close() }

// Alive is the number of nodes that are listed as alive.
func (g *GCS) Alive(ctx context.Context) (int, error) {
	nodes, err := g.Instances(ctx)
	return len(nodes), err
}

// Instances are the nodes that are listed as alive, each by its RAY_CLOUD_INSTANCE_ID, which
// is the UID of its pod.
func (g *GCS) Instances(ctx context.Context) ([]string, error) {
	ctx, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	if g.token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+g.token)
	}
	var reply []byte
	if err := g.connection.Invoke(ctx, "/ray.rpc.NodeInfoGcsService/GetAllNodeInfo", []byte{}, &reply); err != nil {
		return nil, fmt.Errorf("ask the head for its nodes: %w", err)
	}
	return alive(reply)
}

// alive are the instances of the nodes of a GetAllNodeInfoReply that are alive.
func alive(reply []byte) ([]string, error) {
	var alive []string
	err := fields(reply, func(number protowire.Number, value []byte, _ uint64) error {
		if number != 2 { // GetAllNodeInfoReply.node_info_list
			return nil
		}
		state, instance := uint64(0), "" // GcsNodeInfo.state is absent where it is ALIVE
		if err := fields(value, func(number protowire.Number, text []byte, value uint64) error {
			switch number {
			case 7:
				state = value
			case 13:
				instance = string(text)
			}
			return nil
		}); err != nil {
			return err
		}
		if state == 0 {
			alive = append(alive, instance)
		}
		return nil
	})
	return alive, err
}

// fields visits the fields of a message: value for those of length-delimited type,
// number for varints.
func fields(message []byte, visit func(field protowire.Number, value []byte, number uint64) error) error {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return fmt.Errorf("read the head's answer: %w", protowire.ParseError(n))
		}
		message = message[n:]
		var value []byte
		var number uint64
		switch kind {
		case protowire.BytesType:
			value, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(message)
		default:
			n = protowire.ConsumeFieldValue(field, kind, message)
		}
		if n < 0 {
			return fmt.Errorf("read the head's answer: %w", protowire.ParseError(n))
		}
		message = message[n:]
		if err := visit(field, value, number); err != nil {
			return err
		}
	}
	return nil
}

// raw passes messages through as bytes, so that no generated code is needed.
type raw struct{}

var errNotBytes = errors.New("not bytes")

// Marshal gives the bytes of a message as they are.
func (raw) Marshal(v any) ([]byte, error) {
	message, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("marshal %T: %w", v, errNotBytes)
	}
	return message, nil
}

// Unmarshal keeps the bytes of a message.
func (raw) Unmarshal(data []byte, v any) error {
	message, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("unmarshal %T: %w", v, errNotBytes)
	}
	*message = append([]byte(nil), data...)
	return nil
}

// Name is the content subtype that Ray expects.
func (raw) Name() string { return "proto" }
