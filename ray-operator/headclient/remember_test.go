package headclient_test

import (
	"context"
	"errors"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

func TestRemember_ReadsOnceUntilRefused(t *testing.T) {
	reads, failure := 0, error(nil)
	remembered := headclient.Remember(func(context.Context) (string, error) {
		reads++
		return "token", failure
	})
	steps := []struct {
		name  string
		heard headclient.Kind
		fails bool
		reads int
	}{
		{"reads at first", "", false, 1},
		{"reads no more", "", false, 1},
		{"keeps it where the head is away", headclient.Unavailable, false, 1},
		{"reads what was refused", headclient.Unauthenticated, false, 2},
		{"tells that it cannot be read", headclient.Unauthenticated, true, 3},
		{"reads again after a failure", "", false, 4},
	}
	for _, step := range steps {
		if failure = nil; step.fails {
			failure = errors.New("gone")
		}
		if step.heard != "" {
			remembered.Heard(&headclient.Error{Kind: step.heard, Err: errors.New("no")})
		}
		token, err := remembered.Token()(t.Context())
		if (err != nil) != step.fails || err == nil && token != "token" || reads != step.reads {
			t.Errorf("%s: token %q, error %v, %d reads, want %d", step.name, token, err, reads, step.reads)
		}
	}
}

func TestRemember_GivesNoTokenWhereThereIsNone(t *testing.T) {
	remembered := headclient.Remember(nil)
	remembered.Heard(nil)
	if remembered.Token() != nil {
		t.Error("there is a token")
	}
}
