package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/route"
	"github.com/heliostat-dev/heliostat/portal/heads"
)

// agent is the proxy's name. Ray refuses those of browsers, and the gate has judged them.
const agent = "heliostat-dashboard-proxy"

// toHeads are the headers of requests that heads get.
var toHeads = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Content-Encoding", "Content-Type", "If-Match", "If-Modified-Since", "If-None-Match",
	"If-Range", "If-Unmodified-Since", "Pragma", "Range", "Traceparent", "Tracestate", "X-Request-Id",
}

// ofSockets are those that open a WebSocket.
var ofSockets = []string{"Sec-Websocket-Extensions", "Sec-Websocket-Key", "Sec-Websocket-Protocol", "Sec-Websocket-Version"}

// notToServices are headers that no application gets: credentials, what says who a user is, what is for one connection,
// and what the gate has judged.
var notToServices = []string{
	"Authorization", "X-Ray-Authorization", "Cookie", "Cookie2", "Proxy-Authorization", "Proxy-Authenticate", "Proxy-Connection", "Connection", "Keep-Alive", "Te",
	"Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings", "Expect", "User-Agent", "Origin", "Referer", "Forwarded", "Via", "X-Real-Ip", "True-Client-Ip",
	"Service-Worker", "Access-Control-Request-Method", "Access-Control-Request-Headers", "Content-Length", "Host",
}

// notToServicesBy begin the names of further ones.
var notToServicesBy = []string{"Sec-Fetch-", "X-Forwarded-", "X-Remote-", "X-Original-", "Impersonate-", "X-Auth-Request-"}

// fromUpstreams are headers of answers that nobody gets: they would act on the whole origin, sign a browser in or out, lead
// it elsewhere, or let other origins read.
var fromUpstreams = []string{
	"Set-Cookie", "Set-Cookie2", "Service-Worker-Allowed", "Clear-Site-Data", "Alt-Svc", "Strict-Transport-Security", "Public-Key-Pins",
	"Public-Key-Pins-Report-Only", "Report-To", "Reporting-Endpoints", "Nel", "Expect-Ct", "Www-Authenticate", "Proxy-Authenticate", "Authentication-Info",
	"Proxy-Authentication-Info", "Refresh", "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Access-Control-Allow-Headers",
	"Access-Control-Allow-Methods", "Access-Control-Allow-Private-Network", "Access-Control-Expose-Headers", "Access-Control-Max-Age", "X-Request-Id",
	"Content-Security-Policy-Report-Only", "Cross-Origin-Opener-Policy-Report-Only", "Cross-Origin-Embedder-Policy-Report-Only",
}

// rewrite makes the request that the upstream gets.
func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	x := exchangeOf(r.In.Context())
	at, err := x.target.URL("")
	if err != nil { // Read has refused such a path
		at = &url.URL{Scheme: "http", Path: "/"}
	}
	r.Out.URL, r.Out.Trailer = at, nil
	r.Out.Header = p.headersFor(x, r.In.Header, r.Out.Header)
	if r.In.Method == http.MethodGet || r.In.Method == http.MethodHead {
		r.Out.Body, r.Out.ContentLength, r.Out.TransferEncoding = nil, 0, nil
	}
}

// headersFor returns the headers that the upstream gets, of those that are left once what Connection names is gone.
func (p *Proxy) headersFor(x *exchange, in, left http.Header) http.Header {
	header := http.Header{}
	if x.target.Kind == route.Cluster {
		for _, name := range toHeads {
			if values := left[name]; values != nil && !isHeldByAny(values, x.token) {
				header[name] = slices.Clone(values)
			}
		}
		if token := x.way.Token(); token != "" {
			header.Set("Authorization", "Bearer "+token)
			header.Set("X-Ray-Authorization", "Bearer "+token) // for a Ray before 2.53
		}
	} else {
		for name, values := range left {
			if !isKept(name, p.IdentityHeaders) && !isHeldByAny(values, x.token) {
				header[name] = slices.Clone(values)
			}
		}
		for _, name := range ofSockets {
			header.Del(name)
		}
	}
	header.Set("User-Agent", agent)
	if x.isSocket {
		for _, name := range ofSockets {
			if values := in[name]; values != nil && !isHeldByAny(values, x.token) {
				header[name] = slices.Clone(values)
			}
		}
		header["Connection"], header["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
	}
	return header
}

// shortToken is how long a token is at least that can be told from other words of a request.
const shortToken = 8

// isHeldBy reports whether a text holds a token, plain or escaped.
func isHeldBy(text, token string) bool {
	if len(token) < shortToken {
		return false
	}
	plain, err := url.PathUnescape(text)
	return strings.Contains(text, token) || err == nil && strings.Contains(plain, token)
}

func isHeldByAny(texts []string, token string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return isHeldBy(text, token) })
}

// isKept reports whether a header is kept from applications, as those are by which a front proxy says who the user is.
func isKept(name string, identity []string) bool {
	name = http.CanonicalHeaderKey(name)
	isBegun := func(by string) bool { return strings.HasPrefix(name, by) }
	isOwn := func(one string) bool { return one != "" && strings.HasPrefix(name, http.CanonicalHeaderKey(one)) }
	return slices.Contains(notToServices, name) || slices.ContainsFunc(notToServicesBy, isBegun) ||
		slices.ContainsFunc(identity, isOwn)
}

// clean takes out of an answer what could harm the origin. An error is that it is not passed on.
func (p *Proxy) clean(answer *http.Response) error {
	x := exchangeOf(answer.Request.Context())
	if err := p.ways.checkToken(x, answer); err != nil {
		return err
	}
	header := answer.Header
	for _, name := range fromUpstreams {
		delete(header, name)
	}
	if x.way != nil && x.way.Token() != "" {
		for name, values := range header {
			if slices.ContainsFunc(values, func(value string) bool { return strings.Contains(value, x.way.Token()) }) {
				delete(header, name)
			}
		}
	}
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Add("Content-Security-Policy", "frame-ancestors 'self'")
	return cleanLocation(x, answer)
}

// cleanLocation makes a redirect one below the target's own prefix.
func cleanLocation(x *exchange, answer *http.Response) error {
	values := answer.Header["Location"]
	if len(values) == 0 {
		return nil
	}
	at, is := locate(x, values[0])
	if is && len(values) == 1 {
		answer.Header["Location"] = []string{at}
		return nil
	}
	delete(answer.Header, "Location")
	if answer.StatusCode < 300 || answer.StatusCode >= 400 {
		return nil
	}
	return fmt.Errorf("%w: it redirects to another place", errBadAnswer)
}

// locate returns where a redirect leads, as a path of the dashboards' origin.
func locate(x *exchange, value string) (string, bool) {
	to, err := url.Parse(value)
	if err != nil || to.User != nil || to.Opaque != "" {
		return "", false
	}
	if to.Host != "" && to.Host != x.host || to.Scheme != "" && to.Scheme != "http" {
		return "", false
	}
	from, err := x.target.URL("")
	if err != nil {
		return "", false
	}
	to.Scheme, to.Host = "", ""
	from.Scheme = ""
	to = from.ResolveReference(to)
	path := to.EscapedPath()
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") {
		return "", false
	}
	at := url.URL{Path: x.target.Prefix + to.Path, RawPath: x.target.Prefix + path, RawQuery: to.RawQuery, Fragment: to.Fragment}
	return at.String(), true
}

// errBadAnswer is that an upstream gave an answer that is not passed on.
var errBadAnswer = errors.New("the answer of the upstream is not passed on")

// forbidden begins what Ray says to a token that it does not know. Other answers of 403 are of its modules.
const forbidden = "Forbidden: Invalid authentication token"

// checkToken returns why a head does not let the server in, instead of Ray's advice, which is for its own users.
func (w *ways) checkToken(x *exchange, answer *http.Response) error {
	if x.target.Kind != route.Cluster {
		return nil
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized:
	case http.StatusForbidden:
		begin := make([]byte, len(forbidden))
		n, err := io.ReadFull(answer.Body, begin)
		answer.Body = &joined{Reader: io.MultiReader(bytes.NewReader(begin[:n]), answer.Body), Closer: answer.Body}
		if err != nil || string(begin) != forbidden {
			return nil // another one, which is passed on as it is
		}
	default:
		return nil
	}
	return w.refused(x)
}

// joined is a body of which a part was read.
type joined struct {
	io.Reader
	io.Closer
}

// refused returns why a head refuses the token, by what its Secret says now.
func (w *ways) refused(x *exchange) error {
	var unavailable *heads.Unavailable
	if err := w.explain(x, nil); errors.As(err, &unavailable) && !unavailable.Temporary {
		return unavailable
	}
	return x.way.Refused()
}

// final is an answer whose headers are set apart until it begins: what an upstream says before is not passed on, and takes
// none of the server's own headers away.
type final struct {
	http.ResponseWriter
	header  http.Header
	isBegun bool
}

// Header implements http.ResponseWriter.
func (f *final) Header() http.Header { return f.header }

// WriteHeader implements http.ResponseWriter.
func (f *final) WriteHeader(code int) {
	if code < http.StatusOK || f.isBegun {
		return
	}
	f.isBegun = true
	for name, values := range f.header {
		f.ResponseWriter.Header()[name] = values
	}
	f.header = f.ResponseWriter.Header() // trailers come later
	f.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (f *final) Write(body []byte) (int, error) {
	f.WriteHeader(http.StatusOK)
	return f.ResponseWriter.Write(body)
}

// Unwrap lets http.ResponseController find what is below.
func (f *final) Unwrap() http.ResponseWriter { return f.ResponseWriter }
