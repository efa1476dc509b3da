package controlstore

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// TestPermit_IsNeededForWhatChanges: without it a store is only looked at, and what serves already goes on.
func TestPermit_IsNeededForWhatChanges(t *testing.T) {
	t.Parallel()
	users := map[string]string{"ACL USERS": list(bulk("head-1"), bulk("head-7")), "ACL GETUSER": "$-1\r\n"}
	for name, test := range map[string]struct {
		canned map[string]string
		server Server
		act    func(Client, Server) error
		served bool
	}{
		"a new claim":   {nil, Server{}, ask, false},
		"a former head": {users, Server{HeadPassword: "x"}, ask, false},
		"a sweep":       {nil, Server{}, sweepIt, false},
		"all is well":   {kept(), Server{}, ask, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFake(t, &fake{canned: test.canned})
			client := anywhere
			client.Permit = func() error { return errors.New("another leads") }
			test.server.Address = f.address
			if err := test.act(client, test.server); (err == nil) != test.served {
				t.Errorf("%v, want it to serve: %t", err, test.served)
			}
			for _, command := range f.commands() {
				scratch := strings.Contains(command, scratchKey("ns")) || strings.HasSuffix(command, "heliostat-probe")
				word, _, _ := strings.Cut(command, " ")
				changes := word == "HSET" || word == "HSETNX" || word == "DEL" || word == "UNLINK" || strings.HasPrefix(command, "ACL SET") || strings.HasPrefix(command, "ACL DEL")
				if changes && !scratch {
					t.Errorf("it was sent %q", command)
				}
			}
		})
	}
}

func ask(client Client, server Server) error {
	verdict := client.Ask(context.Background(), server, claim())
	if verdict.Finding.Code == reason.StoreServes.Code {
		return nil
	}
	return errors.New(verdict.Finding.Text)
}

func sweepIt(client Client, server Server) error {
	_, err := client.Sweep(context.Background(), server, "ns", "uid-1")
	return err
}
