package wire

import (
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

// inbox has messages that came and were not taken yet. There are never more than the room that was given.
type inbox struct {
	first chan *pb.AppendRequest
	ready chan struct{}

	mutex    sync.Mutex
	room     int // what the collector may send
	waiting  int // what the messages took of it
	messages []*pb.AppendRequest
	ended    error
}

func newInbox() *inbox {
	return &inbox{first: make(chan *pb.AppendRequest, 1), ready: make(chan struct{}, 1)}
}

// fill receives until the stream ends, or more comes than there is room for.
func (b *inbox) fill(stream interface {
	Recv() (*pb.AppendRequest, error)
}) {
	first, err := stream.Recv()
	if size := cost(first); err == nil && size > maxHello {
		err = status.Errorf(codes.ResourceExhausted, "a first message of %d bytes, at most %d fit", size, maxHello)
	}
	if err == nil {
		b.first <- first
	} else {
		close(b.first)
	}
	for err == nil {
		var message *pb.AppendRequest
		if message, err = stream.Recv(); err == nil {
			err = b.put(message)
		}
	}
	b.mutex.Lock()
	b.ended = err
	b.mutex.Unlock()
	b.wake()
}

func (b *inbox) put(message *pb.AppendRequest) error {
	size := cost(message)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if size > b.room {
		return status.Errorf(codes.ResourceExhausted, "a message of %d bytes, and there was room for %d", size, b.room)
	}
	b.room -= size
	b.waiting += size
	b.messages = append(b.messages, message)
	b.wake()
	return nil
}

func (b *inbox) wake() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// take returns what came since, and how the stream ended, if it did.
func (b *inbox) take() ([]*pb.AppendRequest, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	messages := b.messages
	b.messages, b.waiting = nil, 0
	return messages, b.ended
}

// left returns how much room the collector has or has used for messages that wait.
func (b *inbox) left() int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.room + b.waiting
}

func (b *inbox) add(room int) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.room += room
}

// giveBack takes room back that the collector does not need.
func (b *inbox) giveBack(bytes uint64) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if bytes > uint64(b.room) {
		return fmt.Errorf("%d bytes of room are given back, of %d: %w", bytes, b.room, ErrInvalid)
	}
	b.room -= int(bytes)
	return nil
}
