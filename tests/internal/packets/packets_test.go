package packets

import (
	"encoding/base64"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// token is a secret of the length that the operator gives its own.
const token = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"

// echo answers all that is sent to a listener.
func echo(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(connection, connection) }()
	}
}

// say sends each text to an echo and waits until it is back, so that no two are in one segment.
func (w *wire) say(listener net.Listener, texts ...string) {
	w.t.Helper()
	connection, err := w.dial(w.t.Context(), "tcp4", listener.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	for _, text := range texts {
		if _, err := io.WriteString(connection, text); err != nil {
			w.t.Fatal(err)
		}
		if _, err := io.ReadFull(connection, make([]byte, len(text))); err != nil {
			w.t.Fatal(err)
		}
	}
}

// found holds what a capture found against what it must, and that it lost nothing.
func (w *wire) found(c *Capture, want map[string]int) {
	w.t.Helper()
	if got := c.Found(); !maps.Equal(got, want) {
		w.t.Errorf("it found %v, want %v", got, want)
	}
	if packets, dropped := c.Count(); packets == 0 || dropped != 0 {
		w.t.Errorf("%d packets, %d dropped", packets, dropped)
	}
}

// TestCapture_CountsWhatIsSent, and so twice what an echo sends back.
func TestCapture_CountsWhatIsSent(t *testing.T) {
	w := newWire(t)
	c, listener := w.capture(), w.listen()
	go echo(listener)
	c.Seek("whole", []byte(token))
	c.Seek("whole", []byte(token))
	c.Seek("split", []byte("0123456789abcdef-split"))
	c.Seek("never", []byte("0123456789abcdef-never"))
	w.say(listener, "Authorization: Bearer "+token+"\r\n")
	w.found(c, map[string]int{"whole": 2, "split": 0, "never": 0})
	w.say(listener, "a 0123", "4567", "89abcdef-spl", "it b")
	w.found(c, map[string]int{"whole": 2, "split": 2, "never": 0})
	w.say(listener, token+base64.StdEncoding.EncodeToString([]byte("user:"+token)))
	w.found(c, map[string]int{"whole": 6, "split": 2, "never": 0})
}

func TestCapture_DoesNotSearchWhatCameEarlier(t *testing.T) {
	w := newWire(t)
	c, listener := w.capture(), w.listen()
	go echo(listener)
	c.Seek("another", make([]byte, 64)) // so that the capture has a tail
	connection, err := w.dial(t.Context(), "tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	for _, text := range []string{token, "after"} {
		if _, err := io.WriteString(connection, text); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(connection, make([]byte, len(text))); err != nil {
			t.Fatal(err)
		}
		c.Found()
		c.Seek("token", []byte(token))
	}
	w.found(c, map[string]int{"another": 0, "token": 0})
}

// protocols are those of a server and its client: one alone, so that nothing else is agreed on.
func protocols(set func(*http.Protocols, bool)) *http.Protocols {
	p := new(http.Protocols)
	set(p, true)
	return p
}

// TestCapture_FindsHeadersThatNothingEncrypts, for which HTTP/2 has a Huffman code.
func TestCapture_FindsHeadersThatNothingEncrypts(t *testing.T) {
	w := newWire(t)
	for name, test := range map[string]struct {
		protocols *http.Protocols
		encrypted bool
		want      int
	}{
		"HTTP/1":          {protocols((*http.Protocols).SetHTTP1), false, 2},
		"HTTP/2":          {protocols((*http.Protocols).SetUnencryptedHTTP2), false, 2},
		"HTTP/1 over TLS": {protocols((*http.Protocols).SetHTTP1), true, 0},
		"HTTP/2 over TLS": {protocols((*http.Protocols).SetHTTP2), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := w.capture()
			c.Seek("token", []byte(token))
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer "+token || r.Header.Get("Cookie") != "name=team; token="+token {
					t.Errorf("over %s came %v", r.Proto, r.Header)
				}
			}))
			_ = server.Listener.Close() // it listens where the test runs
			server.Listener, server.Config.Protocols = w.listen(), test.protocols
			server.EnableHTTP2 = test.protocols.HTTP2()
			start := server.Start
			if test.encrypted {
				start = server.StartTLS
			}
			start()
			defer server.Close()
			transport := server.Client().Transport.(*http.Transport).Clone()
			transport.DialContext, transport.Protocols = w.dial, test.protocols
			if test.encrypted {
				transport.TLSClientConfig.ServerName = "example.com" // the name in its certificate
			}
			defer transport.CloseIdleConnections()
			request := httptest.NewRequest(http.MethodGet, server.URL, http.NoBody)
			request.RequestURI = "" // of a client's request
			request.Header = http.Header{"Authorization": {"Bearer " + token}, "Cookie": {"name=team; token=" + token}}
			answer, err := transport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.ProtoMajor == 2 != strings.HasPrefix(name, "HTTP/2") {
				t.Errorf("the answer is of %s", answer.Proto)
			}
			w.found(c, map[string]int{"token": test.want})
		})
	}
}

// TestCapture_SaysWhatWasDropped where the kernel has no room for what nobody reads.
func TestCapture_SaysWhatWasDropped(t *testing.T) {
	w := newWire(t)
	s, err := listen(file(w.node), 4096)
	if err != nil {
		t.Fatal(err)
	}
	listener := w.listen()
	go echo(listener)
	w.say(listener, token, token, token)
	c, err := open(receiveBuffer, []string{file(w.service)})
	if err != nil {
		t.Fatal(err)
	}
	c.sockets = append(c.sockets, s)
	s.start(c)
	c.Close()
	packets, dropped := c.Count()
	if dropped == 0 || packets <= dropped {
		t.Errorf("%d packets, %d dropped", packets, dropped)
	}
	c.Close()
	if again, still := c.Count(); again != packets || still != dropped {
		t.Errorf("closed twice: %d packets, %d dropped, before %d and %d", again, still, packets, dropped)
	}
}

func TestOpen_FailsWhereThereIsNoNetwork(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for _, networks := range [][]string{nil, {missing}, {"/proc/self/ns/net", missing}, {"/proc/self/ns/mnt"}} {
		if c, err := Open(networks...); err == nil {
			c.Close()
			t.Errorf("it captures in %v", networks)
		}
	}
}

func TestSeek_PanicsForShortSecrets(t *testing.T) {
	c := &Capture{counts: map[string]int{}}
	defer func() {
		if recover() == nil {
			t.Error("it seeks what may stand anywhere")
		}
	}()
	c.Seek("short", make([]byte, LeastSecret-1))
}
