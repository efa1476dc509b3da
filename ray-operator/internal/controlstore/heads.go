package controlstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// fence makes the ACL user of the claim's head, and removes those of all other heads.
// Redis closes the connections of a user who is removed, so that a former head which lives
// on somewhere writes no more. Where all is so already, nothing is written.
func (p prefix) fence(ctx context.Context, claim Claim) error {
	mine := naming.StoreUser(claim.Epoch)
	replies, err := p.ask(ctx, []any{"ACL", "USERS"}, []any{"ACL", "GETUSER", mine})
	if err != nil {
		return err
	}
	if err := p.check(replies); err != nil {
		return err
	}
	var commands [][]any
	if !knows(replies[1], p.server.HeadPassword) {
		commands = append(commands, p.rules(mine))
	}
	if others := former(replies[0], mine); len(others) > 0 {
		commands = append(commands, append([]any{"ACL", "DELUSER"}, others...))
	}
	if len(commands) == 0 {
		return nil
	}
	return p.together(ctx, commands...)
}

// rules are the words that make a head's user: what Ray does, on its cluster's keys, and
// nothing else. What is there of the user before is forgotten.
func (p prefix) rules(name string) []any {
	words := []any{
		"ACL", "SETUSER", name, "reset", "on", ">" + p.server.HeadPassword, "resetchannels",
		"~" + pattern(p.namespace), "~" + dummy,
	}
	for _, command := range rayCommands() {
		words = append(words, "+"+command)
	}
	return words
}

// former are the users of other heads.
func former(users *redis.Cmd, mine string) []any {
	all, _ := users.StringSlice()
	var others []any
	for _, name := range all {
		if epoch, is := strings.CutPrefix(name, "head-"); is && strings.Trim(epoch, "0123456789") == "" && name != mine {
			others = append(others, name)
		}
	}
	return others
}

// knows reports whether what ACL GETUSER says is of a user who may log in with this password
// and no other.
func knows(user *redis.Cmd, password string) bool {
	if errors.Is(user.Err(), redis.Nil) {
		return false
	}
	sum := sha256.Sum256([]byte(password))
	fields, _ := user.Slice()
	on, known := false, false
	for i := 0; i+1 < len(fields); i += 2 {
		values, _ := fields[i+1].([]any)
		switch fields[i] {
		case "flags":
			on = slices.Contains(values, any("on"))
		case "passwords":
			known = len(values) == 1 && values[0] == any(hex.EncodeToString(sum[:]))
		}
	}
	return on && known
}
