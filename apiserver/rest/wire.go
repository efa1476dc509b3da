package rest

import (
	"fmt"
	"net/http"

	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/heliostat-dev/heliostat/portal/problem"
)

// codec is Protocol Buffers whose messages are kept as they came: what they would become is judged before they are read.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(grpcproto.Name)} }

// wireMessage is a message as it came.
type wireMessage struct{ wire []byte }

// Unmarshal implements encoding.CodecV2.
func (codec) Unmarshal(data mem.BufferSlice, into any) error {
	one, is := into.(*wireMessage)
	if !is {
		return fmt.Errorf("keep a message in a %T: only a wireMessage can", into)
	}
	one.wire = data.Materialize()
	return nil
}

// readMessage reads a message whose values were counted.
func readMessage(wire []byte, into proto.Message) error {
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(wire, into); err != nil {
		return unreadable()
	}
	return nil
}

func unreadable() error {
	return problem.Bad("message", "is broken", "send what proto/heliostat/v1 declares")
}

// counter counts the values that reading a message would make. Two bytes on the wire become a value of a hundred.
type counter struct{ values int }

// countMessage returns how many values a message has, or why it is not read.
func countMessage(wire []byte, of protoreflect.MessageDescriptor) (int, error) {
	c := &counter{}
	err := c.count(wire, of, 1) // a message is a level itself, as a body of JSON is
	return c.values, err
}

// count counts the values of a message that lies on a level.
func (c *counter) count(wire []byte, of protoreflect.MessageDescriptor, level int) error {
	switch of.FullName() {
	case "google.protobuf.Struct", "google.protobuf.ListValue":
		if level++; level > MaxDepth {
			return tooDeep()
		}
	}
	for own := ownFields(of); len(wire) > 0; own-- {
		number, kind, n := protowire.ConsumeTag(wire)
		if n < 0 {
			return unreadable()
		}
		size := protowire.ConsumeFieldValue(number, kind, wire[n:])
		if size < 0 {
			return unreadable()
		}
		value := wire[n : n+size]
		wire = wire[n+size:]
		if own <= 0 {
			c.values++
		}
		if c.values > MaxValues {
			return tooMany()
		}
		field := of.Fields().ByNumber(number)
		if field == nil || kind != protowire.BytesType {
			continue
		}
		inner, _ := protowire.ConsumeBytes(value) // its length was checked above
		switch {
		case field.Message() != nil:
			if err := c.count(inner, field.Message(), level); err != nil {
				return err
			}
		case field.IsPacked():
			if c.values += len(inner); c.values > MaxValues { // at least a byte each
				return tooMany()
			}
		}
	}
	return nil
}

// ownFields returns how many fields of a message are the value itself, and none in it: a key and a value of an entry, and the
// one of a Value.
func ownFields(of protoreflect.MessageDescriptor) int {
	switch {
	case of.IsMapEntry():
		return 2
	case of.FullName() == "google.protobuf.Value":
		return 1
	}
	return 0
}

// namespaceOf returns the namespace of a message that is not read yet; empty where it has none.
func namespaceOf(wire []byte, of protoreflect.MessageDescriptor) string {
	field := of.Fields().ByName("namespace")
	namespace := ""
	for len(wire) > 0 && field != nil {
		number, kind, n := protowire.ConsumeField(wire)
		if n < 0 {
			return ""
		}
		if number == field.Number() && kind == protowire.BytesType {
			_, _, head := protowire.ConsumeTag(wire)
			text, _ := protowire.ConsumeBytes(wire[head:n]) // its length was checked above
			namespace = string(text)
		}
		wire = wire[n:]
	}
	return namespace
}

// tooMany returns that what was sent has more values than it may have.
func tooMany() error {
	return problem.New(http.StatusRequestEntityTooLarge, "RequestEntityTooLarge",
		fmt.Sprintf("the body has more than %d values", MaxValues), "send a smaller object")
}

// tooLong returns that what was sent has more bytes than it may have.
func tooLong(most int64) error {
	return problem.New(http.StatusRequestEntityTooLarge, "RequestEntityTooLarge",
		fmt.Sprintf("the body of the request has more than %d KiB", most>>10), "send less")
}
