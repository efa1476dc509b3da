package controlstore

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// fake is a server that gives canned replies where a test has some, and otherwise those of
// an empty Redis that lets everybody do everything.
type fake struct {
	address string
	// canned are raw replies by the beginning of a command, "HSET RAY".
	canned map[string]string
	// hello, if not empty, is sent to each client that connects, and the connection closed.
	hello string

	mu   sync.Mutex
	seen []string
}

// anywhere connects to any address.
var anywhere = Client{Connect: headclient.ConnectAnywhere, ConnectGiven: headclient.ConnectAnywhere}

func startFake(t testing.TB, f *fake) *fake {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.address = "redis://" + listener.Addr().String()
	var clients sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		clients.Wait()
	})
	clients.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			clients.Go(func() { f.serve(conn) })
		}
	})
	return f
}

func (f *fake) serve(conn net.Conn) {
	defer conn.Close()
	if f.hello != "" {
		_, _ = io.WriteString(conn, f.hello)
		return
	}
	in := bufio.NewReader(conn)
	for {
		words, err := readCommand(in)
		if err != nil {
			return
		}
		text := strings.Join(words, " ")
		f.mu.Lock()
		f.seen = append(f.seen, text)
		f.mu.Unlock()
		answer := f.answer(text)
		if answer == "" {
			return // hangs up
		}
		// In pieces, so that a test can measure what the other side makes of a large answer.
		piece := make([]byte, 4<<10)
		for answer != "" {
			n := copy(piece, answer)
			if _, err := conn.Write(piece[:n]); err != nil {
				return
			}
			answer = answer[n:]
		}
	}
}

// say changes what is answered to commands that begin so.
func (f *fake) say(beginning, reply string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.canned[beginning] = reply
}

func (f *fake) commands() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.seen...)
}

func readCommand(in *bufio.Reader) ([]string, error) {
	count, err := readCount(in, '*')
	if err != nil {
		return nil, err
	}
	words := make([]string, count)
	for i := range words {
		size, err := readCount(in, '$')
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(in, text); err != nil {
			return nil, err
		}
		words[i] = string(text[:size])
	}
	return words, nil
}

func readCount(in *bufio.Reader, kind byte) (int, error) {
	header, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if header[0] != kind {
		return 0, fmt.Errorf("%q is not of kind %c", header, kind)
	}
	return strconv.Atoi(strings.TrimSpace(header[1:]))
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

func list(parts ...string) string {
	return fmt.Sprintf("*%d\r\n%s", len(parts), strings.Join(parts, ""))
}

// plain are the replies of an empty Redis, by the command's first word.
var plain = map[string]string{
	"HELLO": "-ERR unknown command 'HELLO'\r\n", "AUTH": "+OK\r\n", "PING": "+PONG\r\n",
	"ACL": bulk("default"), "CLUSTER": "-ERR This instance has cluster support disabled\r\n",
	"HSET": ":1\r\n", "HSETNX": ":1\r\n", "HGET": "$-1\r\n", "HEXISTS": ":0\r\n", "HDEL": ":0\r\n", "DEL": ":1\r\n",
	"INCRBY": ":1\r\n", "UNLINK": ":1\r\n", "HSCAN": list(bulk("0"), list()), "SCAN": list(bulk("0"), list()),
	"HMGET": list("$-1\r\n", "$-1\r\n", "$-1\r\n", "$-1\r\n", "$-1\r\n"),
}

func (f *fake) answer(text string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	longest := ""
	for beginning := range f.canned {
		if strings.HasPrefix(text, beginning) && len(beginning) >= len(longest) {
			longest = beginning
		}
	}
	if answer, canned := f.canned[longest]; canned {
		return answer
	}
	switch text {
	case "INFO SENTINEL":
		return bulk("")
	case "INFO SERVER":
		return bulk("# Server\r\nredis_version:7.0.0\r\n")
	}
	word, _, _ := strings.Cut(text, " ")
	if answer, known := plain[word]; known {
		return answer
	}
	return "-ERR unknown command '" + word + "', with args beginning with: \r\n"
}
