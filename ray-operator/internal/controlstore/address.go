package controlstore

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// place is where a server listens.
type place struct {
	host, port string
	tls        bool
}

func (p place) String() string { return net.JoinHostPort(p.host, p.port) }

// parse reads redis://HOST:PORT or rediss://HOST:PORT. The schema of the API lets nothing
// else through; what comes here otherwise is told like an address where nobody answers.
func parse(address string) (place, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "redis" && parsed.Scheme != "rediss" || parsed.User != nil {
		return place{}, problem(reason.StoreUnreachable.Of("its address", "it is not redis://HOST:PORT or rediss://HOST:PORT"))
	}
	port, err := strconv.ParseUint(parsed.Port(), 10, 16)
	if parsed.Hostname() == "" || err != nil || port == 0 {
		return place{}, problem(reason.StoreUnreachable.Of(parsed.Host, "its address has no host, or no port that there is"))
	}
	return place{host: parsed.Hostname(), port: parsed.Port(), tls: parsed.Scheme == "rediss"}, nil
}

// markerKey holds whose a prefix is.
func markerKey(namespace string) string { return naming.StorePrefix(namespace) + "heliostat" }

// scratchKey is where commands are tried. Nothing stays there.
func scratchKey(namespace string) string { return naming.StorePrefix(namespace) + "heliostat-probe" }

// pattern is the glob that matches what begins with the prefix of a namespace, and nothing
// else: what globs would take for a wildcard is escaped.
func pattern(namespace string) string {
	var text strings.Builder
	for _, char := range []byte(naming.StorePrefix(namespace)) {
		if strings.IndexByte(`*?[]\^`, char) >= 0 {
			text.WriteByte('\\')
		}
		text.WriteByte(char)
	}
	return text.String() + "*"
}

// CleanUp is the command line for bash that removes all keys of a namespace by hand. It
// asks for the password and holds none. The user is empty where there is none to name.
func CleanUp(address, username, namespace string) string {
	at, err := parse(address)
	if err != nil {
		return "" // nothing was ever written there
	}
	return string(cleanUp(Server{Username: username}, at, namespace))
}

func cleanUp(server Server, at place, namespace string) reason.Command {
	cli := client(server, at)
	if server.Username != "" {
		cli += " --user " + quoted(server.Username)
	}
	return reason.Command("read -rsp 'Password, or nothing: ' REDISCLI_AUTH; [ -z \"$REDISCLI_AUTH\" ] || export REDISCLI_AUTH; " +
		cli + " --scan --pattern " + quoted(pattern(namespace)) + " | xargs -r -d '\\n' -n 1 " + cli + " UNLINK")
}

// grant is the command that gives a server's user what Ray and the operator need. It is for
// an administrator, so it does not name the user that lacks a right as the one to log in.
func grant(server Server, at place, namespace string) reason.Command {
	words := []string{client(server, at), "ACL SETUSER", quoted(user(server)), quoted("~" + pattern(namespace)), quoted("~" + dummy)}
	for _, command := range append(rayCommands(), ownCommands()...) {
		words = append(words, "+"+command)
	}
	return reason.Command(strings.Join(words, " "))
}

// client is redis-cli as it reaches a server.
func client(server Server, at place) string {
	words := "redis-cli -h " + quoted(at.host) + " -p " + at.port
	if at.tls {
		words += " --tls"
		if server.CA != nil {
			words += " --cacert ca.crt"
		}
		if server.Certificate != nil {
			words += " --cert tls.crt --key tls.key"
		}
	}
	return words
}

// user is the ACL user that a server takes us for.
func user(server Server) string {
	if server.Username == "" {
		return "default"
	}
	return server.Username
}

// quoted is a word for a shell.
func quoted(word string) string {
	plain := func(char rune) bool {
		return char >= 'a' && char <= 'z' || char >= 'A' && char <= 'Z' || char >= '0' && char <= '9' || strings.ContainsRune("-_.:/@", char)
	}
	if word != "" && strings.TrimFunc(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
