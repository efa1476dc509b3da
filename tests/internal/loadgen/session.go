package loadgen

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// session sends messages over a WebSocket, each of which must come back from the same
// process, and then closes it properly.
type session struct {
	plan      *Plan
	transport *http.Transport
}

func (s session) ask(ctx context.Context, number int, due time.Time) reply {
	said := reply{opened: true}
	ctx, stop := context.WithTimeout(ctx, s.plan.Session+s.plan.Timeout)
	defer stop()
	socket, err := s.open(ctx)
	if err != nil {
		said.err = err
		return said
	}
	said.parts = append(said.parts, since(due))
	if said.err = s.talk(ctx, socket, &said, number); said.err != nil {
		_ = socket.CloseNow() // it has failed already
		return said
	}
	if err := socket.Close(websocket.StatusNormalClosure, ""); err != nil {
		said.err = fmt.Errorf("close the session: %w", err)
	}
	return said
}

func (s session) open(ctx context.Context) (*websocket.Conn, error) {
	once := &http.Client{Transport: s.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	header := http.Header{}
	s.plan.authorize(header)
	socket, response, err := websocket.Dial(ctx, s.plan.URL+"/ws", &websocket.DialOptions{HTTPClient: once, Host: s.plan.Host, HTTPHeader: header})
	if response != nil && response.Body != nil {
		defer func() { _ = response.Body.Close() }() // what is wanted of it was read
	}
	if err == nil {
		return socket, nil
	}
	if response == nil || response.StatusCode == http.StatusSwitchingProtocols {
		return nil, fmt.Errorf("open a session: %w", err)
	}
	var text []byte
	if response.Body != nil {
		text, _ = io.ReadAll(io.LimitReader(response.Body, most)) // the status is failure enough
	}
	return nil, statusError{response.StatusCode, cut(text)}
}

// talk sends messages until the session is over, each when it is due and the one before has
// come back.
func (s session) talk(ctx context.Context, socket *websocket.Conn, said *reply, number int) error {
	begin := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for message := 0; time.Duration(message)*s.plan.Pace < s.plan.Session; message++ {
		due := begin.Add(time.Duration(message) * s.plan.Pace)
		timer.Reset(time.Until(due))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for message %d: %w", message, ctx.Err())
		}
		if err := s.echoed(ctx, socket, said, fmt.Sprintf("session %d message %d", number, message)); err != nil {
			return fmt.Errorf("message %d: %w", message, err)
		}
		said.parts = append(said.parts, since(due))
	}
	return nil
}

// echoed sends a message and reads what comes back.
func (s session) echoed(ctx context.Context, socket *websocket.Conn, said *reply, message string) error {
	if err := socket.Write(ctx, websocket.MessageText, []byte(message)); err != nil {
		return fmt.Errorf("send it: %w", err)
	}
	_, text, err := socket.Read(ctx)
	if err != nil {
		return fmt.Errorf("read its answer: %w", err)
	}
	var from answer
	if err := json.Unmarshal(text, &from); err != nil {
		return garbled("%v: %q", err, cut(text))
	}
	if from.Said != message {
		return garbled("sent %q, %q came back", message, from.Said)
	}
	if said.from != (answer{}) && from.replica() != said.from.replica() {
		return garbled("it is from %s, those before from %s", from.replica(), said.from.replica())
	}
	said.from = from
	return nil
}
