package controlstore

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// kept are the answers of a Redis with the marker of claim.
func kept() map[string]string {
	return map[string]string{"HMGET RAYns@heliostat": list(bulk("uid-1"), bulk("team/demo"), bulk("1"), bulk("1"), bulk("0"))}
}

// TestVisit_ConfirmsOnItsConnection: with two commands, and without another connection.
func TestVisit_ConfirmsOnItsConnection(t *testing.T) {
	t.Parallel()
	f := startFake(t, &fake{canned: kept()})
	var connections atomic.Int32
	client := Client{Connect: func(ctx context.Context, address string) (net.Conn, error) {
		connections.Add(1)
		return headclient.ConnectAnywhere(ctx, address)
	}}
	visit := client.Visit(Server{Address: f.address}, claim())
	defer visit.Close()
	if visit.Confirm(t.Context()) {
		t.Error("it confirms what was never asked")
	}
	within, cancel := context.WithCancel(t.Context())
	expect(t, visit.Ask(within), reason.StoreServes)
	cancel() // the connection outlives the question
	before := len(f.commands())
	for range 3 {
		if !visit.Confirm(t.Context()) {
			t.Fatal("a store that serves is not confirmed")
		}
	}
	after := f.commands()[before:]
	if text := strings.Join(after, "\n"); len(after) != 6 || !strings.Contains(text, "HDEL RAYns@heliostat ") || connections.Load() != 1 {
		t.Errorf("%d connections, and of %d commands at first, then:\n%s", connections.Load(), before, text)
	}
}

// TestVisit_ConfirmsNothingThatChanged: then all is asked again, which says what is wrong.
func TestVisit_ConfirmsNothingThatChanged(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ command, answer string }{
		"the marker is gone":       {"HMGET RAYns@heliostat", plain["HMGET"]},
		"it is another's":          {"HMGET RAYns@heliostat", list(bulk("uid-2"), bulk("team/demo"), bulk("1"), bulk("1"), bulk("0"))},
		"it is of a later epoch":   {"HMGET RAYns@heliostat", list(bulk("uid-1"), bulk("team/demo"), bulk("1"), bulk("2"), bulk("0"))},
		"it takes no writes":       {"HDEL", "-READONLY You can't write against a read only replica.\r\n"},
		"the keys are elsewhere":   {"HDEL", "-MOVED 1 127.0.0.1:7001\r\n"},
		"it may not be asked":      {"HDEL", "-NOPERM this user has no permissions\r\n"},
		"it closes the connection": {"HDEL", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFake(t, &fake{canned: kept()})
			visit := anywhere.Visit(Server{Address: f.address}, claim())
			defer visit.Close()
			expect(t, visit.Ask(t.Context()), reason.StoreServes)
			f.say(test.command, test.answer)
			if visit.Confirm(t.Context()) {
				t.Error("it is confirmed")
			}
		})
	}
}
