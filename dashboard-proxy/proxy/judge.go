package proxy

import (
	"net/http"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/gate"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/route"
)

// judge returns why a request does not come from where it must.
func (p *Proxy) judge(r *http.Request, target route.Target, facts gate.Facts) error {
	facts.Own = p.originOf(r.Host, target)
	facts.HasAuthorization = hasAuthorization(r) && !p.Access.IsFromProxy(r)
	facts.IsAnonymous = !hasAuthorization(r) && len(r.Header["Cookie"]) == 0 && !p.Access.IsFromProxy(r) && !isNavigation(r)
	// Ray's dashboard routes by fragment, so its start is the one page that others link to.
	facts.IsLinkable = target.Path == "/"
	return gate.Judge(facts)
}

// originOf returns the origin that a request must come from, and nothing where its Host is not served.
func (p *Proxy) originOf(host string, target route.Target) string {
	host = route.CleanHost(host)
	if target.IsBelowWildcard || host == route.CleanHost(p.Origin.Host) {
		return "https://" + host
	}
	return ""
}
