package rest

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/problem"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// raw sends bytes as they are.
type raw struct{ encoding.Codec }

func (raw) Marshal(message any) ([]byte, error) {
	if text, is := message.([]byte); is {
		return text, nil
	}
	return nil, errors.New("it is no bytes")
}
func (raw) Unmarshal([]byte, any) error { return nil }
func (raw) Name() string                { return "proto" }

// open opens a call by its full name, whose message is not sent.
func open(t *testing.T, connection *grpc.ClientConn, method string) grpc.ClientStream {
	t.Helper()
	call, err := connection.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, grpc.ForceCodec(raw{}))
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// answerOnce is around a call that is answered.
func answerOnce(ctx context.Context, _ *Call, answer func(context.Context) error) error {
	return answer(ctx)
}

// methods are the full names of all calls of the protocol, and of one that it has not.
func methods() []string {
	all := []string{"/heliostat.v1.Portal/DropObjects"}
	for _, one := range heliostatv1.Portal_ServiceDesc.Methods {
		all = append(all, "/heliostat.v1.Portal/"+one.MethodName)
	}
	for _, one := range heliostatv1.Portal_ServiceDesc.Streams {
		all = append(all, "/heliostat.v1.Portal/"+one.StreamName)
	}
	return all
}

// TestGRPC_WaitsForNoMessageOfNobody: each call of somebody without a token is refused though its message never comes.
func TestGRPC_WaitsForNoMessageOfNobody(t *testing.T) {
	b := newBed(t, "*")
	b.unidentified = access.ErrNoToken
	connection := b.connect(t, answerOnce)
	for _, method := range methods() {
		if err := open(t, connection, method).RecvMsg(new([]byte)); status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s is %v", method, err)
		}
	}
}

// TestGRPC_ReadsNoMessageWithoutAPlace: a message that cannot be read is refused for the place, and not for what it is.
func TestGRPC_ReadsNoMessageWithoutAPlace(t *testing.T) {
	full := problem.New(http.StatusTooManyRequests, "TooManyRequests", "full", "wait")
	connection := newBed(t, "*").connect(t, func(context.Context, *Call, func(context.Context) error) error { return full })
	for _, method := range methods() {
		call := open(t, connection, method)
		_, _ = call.SendMsg([]byte{0xff}), call.CloseSend() // fails where the call has ended already
		if err := call.RecvMsg(new([]byte)); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "full") {
			t.Errorf("%s is %v", method, err)
		}
	}
}

func TestGRPC_EndsAMessageThatStandsStill(t *testing.T) {
	b, now := newBed(t, "*"), clocktesting.NewFakeClock(time.Now())
	b.api.portal.Clock = now
	connection := b.connect(t, answerOnce)
	call := open(t, connection, "/heliostat.v1.Portal/GetMe")
	ended := make(chan error, 1)
	go func() { ended <- call.RecvMsg(new([]byte)) }()
	took, err := step(t, now, ended)
	if took > messageWithin+lookEach || status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "not whole") {
		t.Errorf("it ends after %v by %v", took, err)
	}
}

// TestGRPC_IdentifiesCallsApart: a question that is slow delays no other call of its connection.
func TestGRPC_IdentifiesCallsApart(t *testing.T) {
	b := newBed(t, "*")
	asked, answer := make(chan struct{}), make(chan struct{})
	b.identifying = func(r *http.Request) {
		if r.Header.Get("Slow") != "" {
			close(asked)
			<-answer
		}
	}
	client := heliostatv1.NewPortalClient(b.connect(t, answerOnce))
	ended := make(chan error, 1)
	go func() {
		_, err := client.GetMe(metadata.AppendToOutgoingContext(t.Context(), "slow", "yes"), &heliostatv1.GetMeRequest{})
		ended <- err
	}()
	<-asked
	if _, err := client.GetMe(t.Context(), &heliostatv1.GetMeRequest{}); err != nil {
		t.Errorf("another call is %v", err)
	}
	close(answer)
	if err := <-ended; err != nil {
		t.Errorf("the slow call is %v", err)
	}
}

// field returns a field of a message, as it is on the wire.
func field(number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

// listOf returns a message whose object has a list of so many empty values: two bytes each.
func listOf(count int) []byte {
	list := field(6, bytes.Repeat(field(1, nil), count))
	entry := append(field(1, []byte("a")), field(2, list)...)
	return append(field(1, []byte("team-a")), field(2, field(1, entry))...)
}

func TestGRPC_BoundsMessages(t *testing.T) {
	b := newBed(t, "*")
	connection := b.connect(t, answerOnce)
	for name, c := range map[string]struct {
		call    string
		message []byte
		code    codes.Code
		says    string
	}{
		"as many values as may be":  {"CreateObject", listOf(MaxValues - 10), codes.InvalidArgument, "kind"},
		"a value too many":          {"CreateObject", listOf(MaxValues), codes.ResourceExhausted, "more than 50000 values"},
		"more than a call may have": {"GetObject", field(1, make([]byte, smallBody)), codes.ResourceExhausted, "more than 64 KiB"},
		"more than any may have":    {"CreateObject", make([]byte, MaxBody+1), codes.ResourceExhausted, "larger than max"},
		"no message":                {"GetObject", []byte{0xff}, codes.InvalidArgument, "message is broken"},
	} {
		t.Run(name, func(t *testing.T) {
			err := connection.Invoke(t.Context(), "/heliostat.v1.Portal/"+c.call, c.message, new([]byte), grpc.ForceCodec(raw{}))
			if status.Code(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it is %v", err)
			}
		})
	}
}

func TestCountMessage_CountsAsOfJSON(t *testing.T) {
	of := (&heliostatv1.CreateObjectRequest{}).ProtoReflect().Descriptor()
	for text, want := range map[string]int{
		`{}`:                              2, // the namespace and the object
		`{"a":null}`:                      3,
		`{"a":1,"b":"x","c":true}`:        5,
		`{"a":[1,2,3]}`:                   6,
		`{"a":[[],{},[[]]],"b":{"c":{}}}`: 9,
	} {
		object := &structpb.Struct{}
		if err := object.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		wire, err := proto.Marshal(&heliostatv1.CreateObjectRequest{Namespace: "team-a", Object: object})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := countMessage(wire, of); got != want || err != nil {
			t.Errorf("%s is %d values (%v), want %d", text, got, err, want)
		}
		if got := namespaceOf(wire, of); got != "team-a" {
			t.Errorf("%s is for namespace %q", text, got)
		}
	}
	// What is said again and again in one value counts each time but once.
	again := field(2, field(1, append(field(1, []byte("a")), field(2, bytes.Repeat(field(6, nil), 10))...)))
	if got, err := countMessage(again, of); got != 2+9 || err != nil {
		t.Errorf("a value that is said ten times is %d values (%v)", got, err)
	}
}

// FuzzCountMessage counts any message: it must not panic, and where it finds nothing wrong the message is small.
func FuzzCountMessage(f *testing.F) {
	for _, seed := range [][]byte{listOf(3), field(2, nil), {0xff}, {0x0b, 0x0c}, nil} {
		f.Add(seed)
	}
	of := (&heliostatv1.CreateObjectRequest{}).ProtoReflect().Descriptor()
	f.Fuzz(func(t *testing.T, wire []byte) {
		_ = namespaceOf(wire, of)
		values, err := countMessage(wire, of)
		if err != nil {
			answered(t, err)
			return
		}
		made := &heliostatv1.CreateObjectRequest{}
		if readMessage(wire, made) != nil || made.GetObject() == nil {
			return
		}
		if got := valuesOf(made.GetObject().AsMap()); got > values {
			t.Errorf("%d values are counted as %d", got, values)
		}
	})
}
