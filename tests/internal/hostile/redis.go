package hostile

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strings"
)

// Redis is what a hostile Redis says. The addresses are those that it sends its clients on to.
func Redis(elsewhere ...string) []Manner {
	manners := []Manner{
		endless("$1073741824\r\n", "x"),
		endless("*1000000\r\n", "$1\r\na\r\n"),
		endless("%1000000\r\n", "*0\r\n"),
		endless("*1\r\n", "*1\r\n"),
		endless("+", "OK"),
		endless("-ERR ", "no "),
		endless("", "+PONG\r\n"),
		say("*-5\r\n$-7\r\n:x\r\n"),
		say("$99999999999999999999\r\n"),
		say("$5\r\nab"),
		say("HTTP/1.1 200 OK\r\n\r\n"),
		say("-WRONGPASS \x1b[31m\x00\r\n"),
		drip("$1000\r\n"),
		silent,
	}
	for _, address := range elsewhere {
		manners = append(manners, endless("", "-MOVED 1 "+address+"\r\n"))
	}
	return manners
}

// Sentinel is what a hostile Sentinel says: it leads to addresses, has too many primaries, or is no better than a
// hostile Redis.
func Sentinel(elsewhere ...string) []Manner {
	manners := Redis()
	for _, address := range elsewhere {
		manners = append(manners, Leading(address))
	}
	many := []string{strings.Repeat("a", 64<<10), "name with\r\nlines:1"}
	return append(manners, Leading(many...), Leading(slices.Repeat([]string{"10.0.0.1:6379"}, 50_000)...), Leading())
}

// Leading is a Sentinel, as far as one is asked for its primaries, with primaries at addresses.
func Leading(addresses ...string) Manner {
	var primaries strings.Builder
	fmt.Fprintf(&primaries, "*%d\r\n", len(addresses))
	for _, address := range addresses {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			host, port = address, "6379"
		}
		fmt.Fprintf(&primaries, "*4\r\n%s%s%s%s", bulk("ip"), bulk(host), bulk("port"), bulk(port))
	}
	answers := []struct{ asked, answer string }{
		{"WHOAMI", bulk("default")},
		{"SENTINEL\r\n$7\r\nMASTERS", primaries.String()},
		{"SENTINEL", bulk(fmt.Sprintf("# Sentinel\r\nsentinel_masters:%d\r\n", len(addresses)))},
		{"SERVER", bulk("redis_version:7.0.0\r\n")},
		{"HELLO", "-ERR unknown command\r\n"},
		{"PING", "+PONG\r\n"},
	}
	return func(connection net.Conn) {
		for {
			asked := bytes.ToUpper(hear(connection))
			if len(asked) == 0 {
				return
			}
			for command := range bytes.SplitSeq(asked, []byte("*")) {
				for _, a := range answers {
					if bytes.Contains(command, []byte(a.asked)) {
						_, _ = connection.Write([]byte(a.answer)) // who has gone asks no more either
						break
					}
				}
			}
		}
	}
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }
