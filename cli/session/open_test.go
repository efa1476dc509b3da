package session

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/cli/console"
)

// resolves returns how a machine finds each host at some addresses, and none where there are none.
func resolves(addresses ...string) console.Resolve {
	return func(context.Context, string) ([]netip.Addr, error) {
		var found []netip.Addr
		for _, one := range addresses {
			found = append(found, netip.MustParseAddr(one))
		}
		if found == nil {
			return nil, errors.New("no such host")
		}
		return found, nil
	}
}

// opened runs open until the test ends, and returns the address that it printed.
func opened(t *testing.T, resolve console.Resolve) (printed *url.URL) {
	t.Helper()
	c, out := newConsole(t)
	c.Resolve = resolve
	ctx, interrupt := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- execute(ctx, c, "open", "demo") }()
	t.Cleanup(func() {
		interrupt()
		if err := <-done; err != nil {
			t.Errorf("it ends with %v", err)
		}
	})
	printed, err := url.Parse(out.first(t))
	if err != nil {
		t.Fatal(err)
	}
	return printed
}

// browser returns a client that keeps cookies where it is to, and finds each host on this machine, as browsers do.
func browser(t *testing.T, keepsCookies bool) *http.Client {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
	}}}
	if keepsCookies {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		client.Jar = jar
	}
	return client
}

// places are how a machine finds names below localhost, and how the printed address begins then.
func places() map[string]struct {
	resolve console.Resolve
	isName  bool
} {
	return map[string]struct {
		resolve console.Resolve
		isName  bool
	}{
		"names lead to this machine": {resolves("127.0.0.1", "::1"), true},
		"names lead to 127.0.0.1":    {resolves("127.0.0.1"), true},
		"names lead nowhere":         {resolves(), false},
		"names lead elsewhere":       {resolves("127.0.0.1", "192.0.2.1"), false},
		"names lead to others here":  {resolves("127.0.0.1", "127.0.0.53"), false},
	}
}

// does returns an edit of a request that sets headers, each name followed by its value.
func does(headers ...string) func(*http.Request) {
	return func(r *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
}

// TestOpen_LetsOnlyItsBrowserIn has a browser with the printed address, and others that guess.
func TestOpen_LetsOnlyItsBrowserIn(t *testing.T) {
	for name, place := range places() {
		t.Run(name, func(t *testing.T) {
			printed := opened(t, place.resolve)
			if isName := strings.HasSuffix(printed.Hostname(), ".localhost") && printed.Path == "/"; isName != place.isName {
				t.Fatalf("it prints %s", printed)
			}
			mine, stranger, start := browser(t, true), browser(t, false), *printed
			start.RawQuery = ""
			jobs, own := start.String()+"api/jobs/", does("Sec-Fetch-Site", "same-origin")
			answer(t, mine, printed.String(), does("Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"))
			if code, body := answer(t, mine, jobs, own); code != http.StatusOK {
				t.Errorf("the browser gets %d: %s", code, body)
			}
			for name, edit := range map[string]func(*http.Request){
				"nothing":         own,
				"another secret":  func(r *http.Request) { own(r); r.AddCookie(&http.Cookie{Name: cookie, Value: "x"}) },
				"a wrong address": func(r *http.Request) { own(r); r.URL.RawQuery = "key=x" },
			} {
				if code, _ := answer(t, stranger, jobs, edit); code != http.StatusForbidden {
					t.Errorf("with %s a stranger gets %d, want 403", name, code)
				}
			}
			for _, host := range []string{"evil.example", "127.0.0.1", "localhost:" + printed.Port(), "x." + printed.Host} {
				if code, _ := answer(t, mine, jobs, func(r *http.Request) { own(r); r.Host = host }); code != http.StatusMisdirectedRequest {
					t.Errorf("as %s the browser gets %d, want 421", host, code)
				}
			}
		})
	}
}

// TestOpen_RefusesOtherPages replays what pages of other origins have the browser send, which knows the cookie.
func TestOpen_RefusesOtherPages(t *testing.T) {
	for name, place := range places() {
		t.Run(name, func(t *testing.T) {
			printed := opened(t, place.resolve)
			mine, start, other := browser(t, true), *printed, "http://127.0.0.1:1"
			start.RawQuery = ""
			answer(t, mine, printed.String(), does("Sec-Fetch-Site", "none"))
			socket := []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-Websocket-Version", "13", "Sec-Websocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="}
			own := "http://" + printed.Host
			for name, c := range map[string]struct {
				path    string
				headers []string
				passes  bool
			}{
				"own request":                 {"api/jobs/", []string{"Sec-Fetch-Site", "same-origin"}, true},
				"own request, older browser":  {"api/jobs/", []string{"Origin", own}, true},
				"own WebSocket":               {"api/jobs/x/logs/tail", append(socket, "Origin", own), true},
				"link to the start":           {"", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, true},
				"fetch of another port":       {"api/jobs/", []string{"Sec-Fetch-Site", "same-site", "Origin", other}, false},
				"image on another site":       {"api/jobs/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "image"}, false},
				"link to what has an effect":  {"api/jobs/", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, false},
				"frame on another port":       {"", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, false},
				"older browser, another port": {"api/jobs/", []string{"Origin", other}, false},
				"older browser, image":        {"api/jobs/", nil, false},
				"a token exempts nobody":      {"api/jobs/", []string{"Sec-Fetch-Site", "same-site", "Origin", other, "Authorization", "Bearer x"}, false},
				"WebSocket of another port":   {"api/jobs/x/logs/tail", append(socket, "Origin", other), false},
				"WebSocket of a file":         {"api/jobs/x/logs/tail", append(socket, "Origin", "null"), false},
				"WebSocket without Origin":    {"api/jobs/x/logs/tail", socket, false},
				"service worker":              {"sw.js", []string{"Sec-Fetch-Site", "same-origin", "Service-Worker", "script"}, false},
			} {
				code, _ := answer(t, mine, start.String()+c.path, does(append([]string{}, c.headers...)...))
				if passes := code != http.StatusForbidden; passes != c.passes {
					t.Errorf("%s: %d", name, code)
				}
			}
			code, _ := answer(t, mine, start.String()+"api/jobs/", does("Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c", "HTTP2-Settings", "AAMAAABkAAQAAP__", "Sec-Fetch-Site", "same-origin"))
			if code != http.StatusBadRequest {
				t.Errorf("another protocol: %d, want 400", code)
			}
		})
	}
}

// TestOpen_SendsItsCookieToNoOtherPort has a browser that visits other servers of this machine. Cookies know no ports.
func TestOpen_SendsItsCookieToNoOtherPort(t *testing.T) {
	for name, place := range places() {
		t.Run(name, func(t *testing.T) {
			printed, second := opened(t, place.resolve), opened(t, place.resolve)
			mine := browser(t, true)
			for _, one := range []*url.URL{printed, second} {
				answer(t, mine, one.String(), does("Sec-Fetch-Site", "none"))
			}
			for _, one := range []*url.URL{printed, second} {
				if kept := mine.Jar.Cookies(one); len(kept) != 1 || kept[0].Value != one.Query().Get("key") {
					t.Errorf("at its own address it has %v", kept)
				}
			}
			seen := ""
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen += r.Header.Get("Cookie") }))
			defer server.Close()
			_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
			for _, host := range []string{"127.0.0.1", "localhost", "other.localhost"} {
				for _, path := range []string{"/", "/api/jobs/", "/x/"} {
					answer(t, mine, "http://"+net.JoinHostPort(host, port)+path, nil)
				}
			}
			if seen != "" {
				t.Errorf("another port sees the cookie %q", seen)
			}
		})
	}
}

// TestProxy_KeepsTheNameAndThePath has a head that redirects, and that would tell other sites where it was.
func TestProxy_KeepsTheNameAndThePath(t *testing.T) {
	at := &door{host: "127.0.0.1:1", path: "/name/", secret: "s"}
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:1/name/a%2Fb?c=d", nil)
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	request.AddCookie(&http.Cookie{Name: cookie, Value: "s"})
	var asked string
	at.guard(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = r.RequestURI + " " + r.URL.EscapedPath() })).ServeHTTP(recorder, request)
	if !strings.HasSuffix(asked, " /a%2Fb") || recorder.Header().Get("Referrer-Policy") != "same-origin" {
		t.Errorf("the head is asked for %q, and the answer has %v", asked, recorder.Header())
	}
	for location, want := range map[string]string{"/x?y": "/name/x?y", "z": "/name/api/z", "http://dashboard/x": "/name/x", "https://other/x": "https://other/x"} {
		answer := &http.Response{Header: http.Header{"Location": {location}, "Referrer-Policy": {"unsafe-url"}, "Set-Cookie": {"a=b"}},
			Request: httptest.NewRequest(http.MethodGet, "http://dashboard/api/x", nil)}
		if at.clean(answer); answer.Header.Get("Location") != want || len(answer.Header) != 1 {
			t.Errorf("%s becomes %v, want %s alone", location, answer.Header, want)
		}
	}
}

// TestListenLocally_HoldsEachLoopbackAddress: a browser tries them all, and none may be somebody else's.
func TestListenLocally_HoldsEachLoopbackAddress(t *testing.T) {
	listeners, err := listenLocally(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range listeners {
		defer one.Close()
		at, err := netip.ParseAddrPort(one.Addr().String())
		if err != nil || !at.Addr().IsLoopback() || portOf(one) != portOf(listeners[0]) {
			t.Errorf("it listens at %s (%v)", one.Addr(), err)
		}
	}
	if probe, err := net.Listen("tcp", "[::1]:0"); err == nil {
		_ = probe.Close()
		if len(listeners) != 2 {
			t.Errorf("it listens at %d addresses, want both", len(listeners))
		}
	}
}
