// Package gate judges whether a request to an origin that serves dashboards comes from that origin.
//
// In: what a browser says of a request: Host, Origin, Sec-Fetch-*, and whether the request brings a credential that no
// browser sends by itself. Out: nothing, or a Refusal. The dashboard proxy and heliostat open both ask it.
//
// It is pure. It must never judge a WebSocket by anything but its Origin: browsers send no Sec-Fetch-Site with all of them,
// and CORS does not cover them. It must never let a request of another origin through that does more than open a page.
package gate

import (
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Facts are what is known of a request.
type Facts struct {
	Method string
	// Origin, Site, Mode and Dest are the headers Origin, Sec-Fetch-Site, -Mode and -Dest.
	Origin, Site, Mode, Dest string
	// Own is the origin that the request must come from, such as https://dashboards.example.com. It is empty where the
	// Host is none that is served.
	Own         string
	IsWebSocket bool
	// HasAuthorization: the request brings a token in the header Authorization, and nothing else signs it in.
	HasAuthorization bool
	// IsAnonymous: nothing signs the request in, and it opens no page.
	IsAnonymous bool
	// IsLinkable: other pages may link to the path.
	IsLinkable bool
}

// Read returns the facts that a request says by itself. An error is a *Refusal: the request asks for another protocol than a
// WebSocket, and what follows on its connection could be a request that nobody has judged.
func Read(r *http.Request) (Facts, error) {
	isSocket, err := isWebSocket(r)
	return Facts{
		Method: r.Method, IsWebSocket: isSocket, Origin: r.Header.Get("Origin"), Site: r.Header.Get("Sec-Fetch-Site"),
		Mode: r.Header.Get("Sec-Fetch-Mode"), Dest: r.Header.Get("Sec-Fetch-Dest"),
	}, err
}

// isWebSocket reports whether a request opens a WebSocket.
func isWebSocket(r *http.Request) (bool, error) {
	asked := r.Header["Upgrade"]
	isAsked := httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade")
	if len(asked) == 0 && !isAsked && len(r.Header["Http2-Settings"]) == 0 {
		return false, nil
	}
	isOne := len(asked) == 1 && strings.EqualFold(asked[0], "websocket") && isAsked && len(r.Header["Http2-Settings"]) == 0
	isBare := r.Method == http.MethodGet && r.ProtoMajor == 1 && r.ContentLength == 0 && len(r.TransferEncoding) == 0
	if !isOne || !isBare || len(r.Header["Sec-Websocket-Key"]) != 1 || r.Header.Get("Sec-Websocket-Version") != "13" {
		return false, &Refusal{http.StatusBadRequest,
			"the request asks for another protocol, or for a WebSocket in another form than RFC 6455: leave out the header Upgrade"}
	}
	return true, nil
}

// Refusal is why a request does not pass. It is an error.
type Refusal struct {
	Code int
	// Text says what is wrong and what helps.
	Text string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

// Judge returns nil where a request passes, or a *Refusal.
func Judge(f Facts) error {
	if f.IsWebSocket {
		return judgeSocket(f)
	}
	if f.HasAuthorization || f.isProgram() {
		return nil
	}
	if f.Own == "" {
		return misdirected()
	}
	switch f.Site {
	case "same-origin", "none":
		return nil
	case "":
		if f.Origin != "" && isOwn(f) || f.Origin == "" && f.isLink() {
			return nil
		}
	default:
		if f.isLink() && f.Mode == "navigate" && f.Dest == "document" {
			return nil
		}
	}
	return &Refusal{http.StatusForbidden, "the request comes from another site: open the dashboard itself, or send a token in the header Authorization"}
}

// judgeSocket judges a WebSocket. A program sends no Origin, and must bring a token then.
func judgeSocket(f Facts) error {
	switch {
	case f.Origin == "" && f.HasAuthorization:
		return nil
	case f.Own == "":
		return misdirected()
	case f.Origin != "" && isOwn(f):
		return nil
	}
	return &Refusal{http.StatusForbidden, "the WebSocket comes from another site: open it from the dashboard itself, or without an Origin and with a token in the header Authorization"}
}

// isLink reports whether a request can come from a link: it opens a page, and does nothing else.
func (f Facts) isLink() bool { return f.Method == http.MethodGet && f.IsLinkable }

// isProgram reports whether a request is of a program that has forgotten its token, and must be told so.
func (f Facts) isProgram() bool { return f.IsAnonymous && f.Site == "" && f.Origin == "" }

func isOwn(f Facts) bool { return strings.EqualFold(strings.TrimSuffix(f.Origin, ":443"), f.Own) }

func misdirected() *Refusal {
	return &Refusal{http.StatusMisdirectedRequest, "the Host of the request is not one of the dashboards: use the address that the page shows"}
}
