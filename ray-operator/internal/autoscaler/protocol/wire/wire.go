// Package wire encodes what operator and autoscaler send each other: snapshots as Orders, decisions as Word.
//
// In: snapshots and decisions, or the bytes of a message that somebody sent. Out: the bytes to
// send, the same for the same content, or snapshots and decisions that hold to all bounds; and the
// gRPC client and server options that both ends share.
//
// It must never let a message of any writer through that is out of bounds, give memory
// to more parts than fit, or lose more of a message than the ends of texts for people.
package wire

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Limits of messages, in bytes on the wire.
const (
	MaxSnapshot = 16 << 20
	MaxDecision = 4 << 20
)

// Limits on what a message holds.
const (
	// MaxGroups is how many groups a cluster may have by its schema.
	MaxGroups = 64
	// MaxPods is twice what a group may have: those that leave count too.
	MaxPods       = 20_000
	MaxInfeasible = 1_000
	// MaxReplicas is a group's by its schema, MaxNodes a cluster's.
	MaxReplicas = 10_000
	MaxNodes    = 100_000
	// MaxKinds is how many resources or labels a group's node may have.
	MaxKinds = 1_000
	// MaxName and MaxText are in bytes: of what is compared, where no name in Kubernetes or
	// Ray is longer, and of what people read.
	MaxName = 253
	MaxText = 512
	// MaxTime is the longest duration that the schema of a cluster takes.
	MaxTime = 365 * 24 * time.Hour
	// maxParts is how many messages, texts and entries of maps a message may hold. Two bytes
	// on the wire become a struct of a hundred, so the length alone bounds nothing. All of
	// the above at once is a quarter of it for pods, and groups that have a thousand labels
	// each do not go with 20,000 pods.
	maxParts = 200_000
)

// ErrBounds is what every failure to write or read a message wraps.
var ErrBounds = errors.New("out of bounds")

// check holds the first thing that was found wrong with a message.
type check struct{ err error }

func (c *check) fail(format string, arguments ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: "+format, append([]any{ErrBounds}, arguments...)...)
	}
}

func (c *check) atMost(what string, count, most int) {
	if count > most {
		c.fail("%d %s, at most %d fit", count, what, most)
	}
}

// number is one that both ends can hold.
func (c *check) number(what string, value, least, most int64) {
	if value < least || value > most {
		c.fail("%s is %d, not within %d and %d", what, value, least, most)
	}
}

// name is a text that is compared: it is not cut, and holds nothing that cannot be seen.
func (c *check) name(what, name string) {
	if name == "" {
		c.fail("%s is empty", what)
	}
	c.nameOrNone(what, name)
}

func (c *check) nameOrNone(what, name string) {
	switch {
	case len(name) > MaxName:
		c.fail("%s has %d bytes, at most %d fit", what, len(name), MaxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unseen):
		c.fail("%s %q has characters that cannot be shown", what, name)
	}
}

func unseen(r rune) bool { return !unicode.IsPrint(r) }

func (c *check) duration(what string, value time.Duration) {
	if value < 0 || value > MaxTime {
		c.fail("%s is %s, not within 0 and %s", what, value, MaxTime)
	}
}

func (c *check) amount(what string, value float64) {
	if !(value >= 0) || math.IsInf(value, 0) {
		c.fail("%s is %v, which is no amount", what, value)
	}
}

// unique tells what comes twice in a list.
func (c *check) unique(what string, seen map[string]bool, name string) {
	if seen[name] {
		c.fail("%s %q is there twice", what, name)
	}
	seen[name] = true
}

// Text is a text for people, fit to be shown: valid, in one line, cut at a character where
// it is longer than MaxText.
func Text(said string) string {
	if len(said) > MaxText {
		end := MaxText
		for end > 0 && !utf8.RuneStart(said[end]) {
			end--
		}
		said = said[:end]
	}
	return strings.Map(func(r rune) rune {
		if unseen(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(said, ""))
}

// marshal is a message on the wire, the same bytes for the same content.
func marshal(message proto.Message, most int) (Frame, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	if err != nil {
		return nil, err
	}
	if len(data) > most {
		return nil, fmt.Errorf("%w: the message has %d bytes, at most %d fit", ErrBounds, len(data), most)
	}
	return data, nil
}

// unmarshal reads a message, if it is of a bearable size. Fields that we do not know are
// those of another version, and are dropped.
func unmarshal(data Frame, message proto.Message, most int) error {
	if len(data) > most {
		return fmt.Errorf("%w: the message has %d bytes, at most %d fit", ErrBounds, len(data), most)
	}
	if _, err := parts(data, message.ProtoReflect().Descriptor(), maxParts); err != nil {
		return err
	}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, message); err != nil {
		return fmt.Errorf("%w: %w", ErrBounds, err)
	}
	return nil
}

// parts counts what reading a message would make, and stops above a limit. Our messages do
// not hold themselves, so it ends.
func parts(data []byte, of protoreflect.MessageDescriptor, limit int) (int, error) {
	count := 0
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return 0, fmt.Errorf("%w: %w", ErrBounds, protowire.ParseError(n))
		}
		size := protowire.ConsumeFieldValue(number, kind, data[n:])
		if size < 0 {
			return 0, fmt.Errorf("%w: %w", ErrBounds, protowire.ParseError(size))
		}
		value := data[n : n+size]
		data = data[n+size:]
		field := of.Fields().ByNumber(number)
		if field == nil || kind != protowire.BytesType {
			continue
		}
		count++
		if field.Message() != nil {
			inner, _ := protowire.ConsumeBytes(value) // its length was checked above
			below, err := parts(inner, field.Message(), limit-count)
			if err != nil {
				return 0, err
			}
			count += below
		}
		if count > limit {
			return 0, fmt.Errorf("%w: more than %d parts", ErrBounds, maxParts)
		}
	}
	return count, nil
}
