package feed

import (
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// Types of events.
const (
	// Sync begins a full state: what a watcher had before counts no more. Its detail says why it comes.
	Sync = "sync"
	// Put is a line that is new or has changed, and Del names one that is gone or does not match any more.
	Put = "put"
	Del = "del"
	// Ready is that a full state is over, or that the view has caught up after a Stale.
	Ready = "ready"
	// Stale is that the API server does not answer: lines may be out of date. The stream goes on.
	Stale = "stale"
	// Bye is the last event. Its detail says why.
	Bye = "bye"
)

// Event is something that a watcher is told. What it points to is shared: no caller may change it.
type Event struct {
	// ID is where a watch goes on after this event.
	ID   string
	Type string
	// Line is the line of a Put. That of a Del has only its key and its UID. Others have none.
	Line *view.Line
	// Detail says why, for Sync, Stale, Bye, and Ready after a Stale.
	Detail string

	encoded func() []byte
}

// Encoded returns the event as JSON of the message Change without its ID. It is made once for all watchers.
func (e Event) Encoded() []byte {
	if e.encoded != nil {
		return e.encoded()
	}
	return encode(e)
}

// Proto returns the event as the API has it.
func (e Event) Proto() *heliostatv1.Change {
	message := &heliostatv1.Change{Id: e.ID, Type: e.Type, Detail: e.Detail}
	if e.Line != nil {
		message.Line = e.Line.Proto()
	}
	return message
}

func encode(e Event) []byte {
	e.ID = ""
	text, err := protojson.Marshal(e.Proto())
	if err != nil { // texts of Kubernetes are UTF-8
		return []byte(`{}`)
	}
	return text
}
