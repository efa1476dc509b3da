package gate_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/gate"
)

const own, evil = "https://dashboards.example.com", "https://evil.example.com"

func codeOf(t *testing.T, err error) int {
	t.Helper()
	var refusal *gate.Refusal
	if err != nil && !errors.As(err, &refusal) {
		t.Fatalf("it is no refusal: %v", err)
	}
	if refusal == nil {
		return http.StatusOK
	}
	return refusal.Code
}

// page is what a browser sends for a navigation to the start of a dashboard.
func page(site string) gate.Facts {
	return gate.Facts{Method: http.MethodGet, Own: own, Site: site, Mode: "navigate", Dest: "document", IsLinkable: true}
}

func with(f gate.Facts, change func(*gate.Facts)) gate.Facts {
	change(&f)
	return f
}

// TestJudge_HoldsTheElevenCases has those that were tried in a browser between two sub-domains, and their neighbours.
func TestJudge_HoldsTheElevenCases(t *testing.T) {
	fetch := func(site, origin, method string) gate.Facts {
		return gate.Facts{Method: method, Own: own, Site: site, Origin: origin, Mode: "cors", Dest: "empty"}
	}
	socket := func(origin string) gate.Facts {
		return gate.Facts{Method: http.MethodGet, Own: own, Origin: origin, IsWebSocket: true, IsLinkable: true}
	}
	for name, c := range map[string]struct {
		facts gate.Facts
		want  int
	}{
		"own page":                        {page("same-origin"), 200},
		"typed address":                   {page("none"), 200},
		"own fetch":                       {fetch("same-origin", "", "GET"), 200},
		"own POST":                        {fetch("same-origin", own, "POST"), 200},
		"own WebSocket":                   {socket(own), 200},
		"own WebSocket with port":         {socket(own + ":443"), 200},
		"link from another site":          {page("cross-site"), 200},
		"link from a sibling":             {page("same-site"), 200},
		"deep link from another site":     {with(page("cross-site"), func(f *gate.Facts) { f.IsLinkable = false }), 403},
		"frame on another site":           {with(page("cross-site"), func(f *gate.Facts) { f.Dest = "iframe" }), 403},
		"image on a sibling":              {with(page("same-site"), func(f *gate.Facts) { f.Mode, f.Dest = "no-cors", "image" }), 403},
		"form of a sibling":               {with(page("same-site"), func(f *gate.Facts) { f.Method, f.Origin = "POST", evil }), 403},
		"POST of a sibling":               {fetch("same-site", evil, "POST"), 403},
		"DELETE of another site":          {fetch("cross-site", evil, "DELETE"), 403},
		"fetch of a sibling":              {fetch("same-site", evil, "GET"), 403},
		"WebSocket of a sibling":          {socket(evil), 403},
		"WebSocket of a file":             {socket("null"), 403},
		"WebSocket by http":               {socket("http://dashboards.example.com"), 403},
		"WebSocket of a longer name":      {socket(own + ".evil.com"), 403},
		"WebSocket without Origin":        {socket(""), 403},
		"WebSocket that says same-origin": {with(socket(evil), func(f *gate.Facts) { f.Site = "same-origin" }), 403},
		"old browser, own POST":           {fetch("", own, "POST"), 200},
		"old browser, POST of another":    {fetch("", evil, "POST"), 403},
		"old browser, POST without":       {fetch("", "", "POST"), 403},
		"old browser, start":              {with(page(""), func(f *gate.Facts) { f.Mode, f.Dest = "", "" }), 200},
		"old browser, HEAD of the start":  {with(page(""), func(f *gate.Facts) { f.Method = "HEAD" }), 403},
		"old browser, deep":               {fetch("", "", "GET"), 403},
		"program without a token":         {gate.Facts{Method: "GET", IsAnonymous: true}, 200},
		"fetch without a cookie":          {with(fetch("cross-site", "", "GET"), func(f *gate.Facts) { f.IsAnonymous = true }), 403},
		"POST without a cookie":           {with(fetch("", evil, "POST"), func(f *gate.Facts) { f.IsAnonymous = true }), 403},
		"garbage in Sec-Fetch-Site":       {fetch("Same-Origin", "", "GET"), 403},
	} {
		if got := codeOf(t, gate.Judge(c.facts)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestJudge_RefusesOtherHosts(t *testing.T) {
	for name, facts := range map[string]gate.Facts{
		"page": page("none"), "POST": with(page("same-origin"), func(f *gate.Facts) { f.Method = "POST" }),
		"WebSocket": with(page(""), func(f *gate.Facts) { f.IsWebSocket, f.Origin = true, own }),
		"WebSocket with a token": with(page(""), func(f *gate.Facts) {
			f.IsWebSocket, f.Origin, f.HasAuthorization = true, own, true
		}),
	} {
		if got := codeOf(t, gate.Judge(with(facts, func(f *gate.Facts) { f.Own = "" }))); got != http.StatusMisdirectedRequest {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// TestJudge_ExemptsTokens: no browser sends one by itself. A WebSocket with an Origin is a browser's all the same.
func TestJudge_ExemptsTokens(t *testing.T) {
	foreign := gate.Facts{Method: "DELETE", Own: own, Site: "cross-site", Origin: evil, HasAuthorization: true}
	for name, c := range map[string]struct {
		facts gate.Facts
		want  int
	}{
		"any request":                           {foreign, 200},
		"by any Host":                           {with(foreign, func(f *gate.Facts) { f.Own = "" }), 200},
		"a WebSocket without Origin":            {gate.Facts{Method: "GET", IsWebSocket: true, HasAuthorization: true}, 200},
		"a WebSocket from here":                 {gate.Facts{Method: "GET", IsWebSocket: true, HasAuthorization: true, Own: own, Origin: own}, 200},
		"but not a WebSocket from another site": {with(foreign, func(f *gate.Facts) { f.IsWebSocket = true }), 403},
	} {
		if got := codeOf(t, gate.Judge(c.facts)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestRead_RefusesOtherProtocols: behind an upgrade to one could be requests that nobody judges.
func TestRead_RefusesOtherProtocols(t *testing.T) {
	socket := map[string]string{"Connection": "keep-alive, Upgrade", "Upgrade": "WebSocket", "Sec-Websocket-Key": "x", "Sec-Websocket-Version": "13", "Origin": evil}
	for name, c := range map[string]struct {
		header   map[string]string
		isSocket bool
		want     int
	}{
		"none":               {map[string]string{"Origin": evil, "Connection": "keep-alive"}, false, 200},
		"a WebSocket":        {socket, true, 200},
		"HTTP/2":             {map[string]string{"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "Http2-Settings": "x"}, false, 400},
		"an upgrade to none": {map[string]string{"Connection": "Upgrade"}, false, 400},
		"an old WebSocket":   {map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-Websocket-Key": "x", "Sec-Websocket-Version": "8"}, false, 400},
	} {
		r := &http.Request{Method: http.MethodGet, ProtoMajor: 1, Header: http.Header{}}
		for key, value := range c.header {
			r.Header.Set(key, value)
		}
		facts, err := gate.Read(r)
		if codeOf(t, err) != c.want || facts.IsWebSocket != c.isSocket || facts.Origin != c.header["Origin"] {
			t.Errorf("%s: %+v, %v", name, facts, err)
		}
	}
}
