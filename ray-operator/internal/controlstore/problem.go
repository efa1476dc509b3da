package controlstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"unicode"

	"github.com/redis/go-redis/v9"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/egress"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// problem is a finding as an error.
func problem(finding reason.Finding) error { return &fault.Terminal{Finding: finding} }

// maxWords is how much of what a server says is passed on.
const maxWords = 200

// said is what a server answered in place of a result, for people: without credentials,
// line breaks and excess.
func (l *connection) said(words string) string {
	// Redis repeats what it did not understand, and that could be a password.
	words, _, _ = strings.Cut(words, ", with args beginning")
	for _, secret := range l.secrets {
		if secret != "" {
			words = strings.ReplaceAll(words, secret, "...")
		}
	}
	return clean(words)
}

// clean is a text of a server's that can stand in a status.
func clean(words string) string {
	words = strings.Map(func(char rune) rune {
		if !unicode.IsPrint(char) || char == unicode.ReplacementChar {
			return ' '
		}
		return char
	}, words)
	if runes := []rune(words); len(runes) > maxWords {
		words = string(runes[:maxWords]) + "..."
	}
	return strings.TrimSpace(words)
}

// reply is the error that a server answered with, if err is one.
func reply(err error) (string, bool) {
	var answered redis.Error
	if errors.As(err, &answered) && !errors.Is(err, redis.Nil) {
		return strings.TrimPrefix(answered.Error(), "ERR "), true
	}
	return "", false
}

// code is the first word of an error reply, by which programs tell errors apart.
func code(words string) string {
	first, _, _ := strings.Cut(words, " ")
	return first
}

// wrong is err, which a command came to, as a finding. Text that changes from one time to
// the next, such as our own port, must not get in: a status would be written each second.
func (l *connection) wrong(command string, err error) error {
	if finding, found := fault.Finding(err); found {
		return problem(finding)
	}
	words, answered := reply(err)
	if !answered {
		return l.cut(err)
	}
	said := l.said(words)
	switch code(words) {
	case "NOPERM":
		return problem(reason.StoreNotPermitted.Of(user(l.server), l.name(), clean(command)+": "+said, grant(l.server, l.place, l.namespace)))
	case "WRONGPASS", "NOAUTH":
		return problem(reason.StoreWrongPassword.Of(l.name(), said))
	case "LOADING":
		return problem(reason.StoreLoading.Of(l.name()))
	case "READONLY", "MISCONF", "MASTERDOWN", "NOREPLICAS":
		return problem(reason.StoreReadOnly.Of(l.name(), said))
	case "OOM":
		return problem(reason.StoreFull.Of(l.name(), said))
	case "MOVED", "ASK":
		return problem(reason.StoreUnsupported.Of(l.name(), "it is a Redis Cluster of more than one shard"))
	case "DENIED", "BUSY", "max":
		return problem(reason.StoreUnreachable.Of(l.name(), said))
	default: // CLUSTERDOWN, unknown commands, whatever else it cannot do
		return problem(reason.StoreUnsupported.Of(l.name(), clean(command)+": "+said))
	}
}

// isFull reports whether an error is that a store is out of memory.
func isFull(err error) bool {
	finding, found := fault.Finding(err)
	return found && finding.Code == reason.StoreFull.Code
}

// cut is an error of the connection as a finding.
func (l *connection) cut(err error) error {
	if untrusted := distrust(err); untrusted != "" {
		return problem(reason.StoreNotTrusted.Of(l.name(), untrusted))
	}
	if refused := (&egress.RefusedError{}); errors.As(err, &refused) {
		return problem(reason.StoreNotAllowed.Of(l.name(), refused.Error()))
	}
	for _, broken := range []error{errGarbage, errTLS, errHuge} {
		if errors.Is(err, broken) {
			return problem(reason.StoreUnsupported.Of(l.name(), broken.Error()))
		}
	}
	if away := absence(err); away != "" {
		if handshake := (&handshakeError{}); errors.As(err, &handshake) {
			away += " to TLS; if it speaks none, its address must begin with redis://"
		}
		return problem(reason.StoreUnreachable.Of(l.name(), away))
	}
	return problem(reason.StoreUnsupported.Of(l.name(), "its answers are not those of Redis"))
}

// distrust says why TLS did not come about, empty if something else went wrong.
func distrust(err error) string {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		operation *net.OpError
		handshake *handshakeError
	)
	switch {
	case errors.As(err, &record):
		return "it does not speak TLS, and the address begins with rediss://"
	case errors.As(err, &authority):
		return "its certificate is by an authority that is not trusted"
	case errors.As(err, &host):
		return "its certificate is for another name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired: // its text has the time
		return "its certificate has expired, or is not valid yet"
	case errors.As(err, &operation) && (operation.Op == "remote error" || operation.Op == "local error"):
		return clean(operation.Err.Error())
	case errors.As(err, &handshake) && absence(handshake.err) == "":
		return clean(handshake.err.Error())
	default:
		return ""
	}
}

// handshakeError is whatever ended a handshake.
type handshakeError struct{ err error }

func (h *handshakeError) Error() string { return "shake hands: " + h.err.Error() }
func (h *handshakeError) Unwrap() error { return h.err }

// absence says why nobody answered, empty if somebody did.
func absence(err error) string {
	var (
		name    *net.DNSError
		number  syscall.Errno
		network net.Error
	)
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return "there is no host of this name"
	case errors.As(err, &name):
		return "its name cannot be looked up"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "no answer in time"
	case errors.As(err, &number):
		return number.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, context.Canceled):
		return "it closed the connection"
	case network != nil:
		return "the network failed"
	default:
		return ""
	}
}
