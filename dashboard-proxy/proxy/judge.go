package proxy

import (
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/gate"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/route"
)

// isWebSocket reports whether a request opens a WebSocket. One that asks for another protocol is refused: what follows on
// its connection could be a request that nobody has judged.
func isWebSocket(r *http.Request) (bool, error) {
	asked := r.Header["Upgrade"]
	isAsked := httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade")
	if len(asked) == 0 && !isAsked && len(r.Header["Http2-Settings"]) == 0 {
		return false, nil
	}
	isOne := len(asked) == 1 && strings.EqualFold(asked[0], "websocket") && isAsked && len(r.Header["Http2-Settings"]) == 0
	isBare := r.Method == http.MethodGet && r.ProtoMajor == 1 && r.ContentLength == 0 && len(r.TransferEncoding) == 0
	if !isOne || !isBare || len(r.Header["Sec-Websocket-Key"]) != 1 || r.Header.Get("Sec-Websocket-Version") != "13" {
		return false, &Refusal{Code: http.StatusBadRequest,
			Text: "the request asks for another protocol, or for a WebSocket in another form than RFC 6455: leave out the header Upgrade"}
	}
	return true, nil
}

// judge returns why a request does not come from where it must.
func (p *Proxy) judge(r *http.Request, target route.Target, isSocket bool) error {
	return gate.Judge(gate.Facts{
		Method: r.Method, Own: p.originOf(r.Host, target), IsWebSocket: isSocket,
		Origin: r.Header.Get("Origin"), Site: r.Header.Get("Sec-Fetch-Site"),
		Mode: r.Header.Get("Sec-Fetch-Mode"), Dest: r.Header.Get("Sec-Fetch-Dest"),
		HasAuthorization: hasAuthorization(r) && !p.Access.IsFromProxy(r),
		IsAnonymous:      !hasAuthorization(r) && len(r.Header["Cookie"]) == 0 && !p.Access.IsFromProxy(r) && !isNavigation(r),
		// Ray's dashboard routes by fragment, so its start is the one page that others link to.
		IsLinkable: target.Path == "/",
	})
}

// originOf returns the origin that a request must come from, and nothing where its Host is not served.
func (p *Proxy) originOf(host string, target route.Target) string {
	host = route.CleanHost(host)
	if target.IsBelowWildcard || host == route.CleanHost(p.Origin.Host) {
		return "https://" + host
	}
	return ""
}
