package fakehead

import (
	"cmp"
	"time"
)

// proxyDrain is how long a proxy stays that is not needed any more: 30 s without a request,
// which is looked at every 5 s.
const proxyDrain = 35 * time.Second

// proxies are those of Serve: where they listen, and that of each node that needs one.
type proxies struct {
	location string
	// http and grpc are ports, grpc 0 where nothing is served over it.
	http, grpc int32
	on         map[*node]*proxy
	sick       map[string]bool // those that fail, by instance
}

type proxy struct {
	since time.Time
	left  time.Time // when it began to drain, zero if it does not
}

// open sets where proxies are, and where they listen.
func (p *proxies) open(form *serveForm) {
	p.location, p.http, p.grpc = form.Location, 8000, 0
	if form.HTTP.Port != nil {
		p.http = *form.HTTP.Port
	}
	if len(form.GRPC.Functions) > 0 {
		p.grpc = 9000
		if form.GRPC.Port != nil {
			p.grpc = *form.GRPC.Port
		}
	}
}

// settle gives each node that needs one a proxy, and lets others drain.
func (p *proxies) settle(nodes []*node, needed map[*node]time.Time, now time.Time) {
	for _, one := range nodes {
		since, need := needed[one]
		known := p.on[one]
		switch {
		case known == nil && need && !one.dead:
			p.on[one] = &proxy{since: since}
		case known != nil && (one.dead || known.gone(need, now)):
			delete(p.on, one)
		}
	}
}

// gone reports whether a proxy is over, and when it is not needed lets it drain.
func (p *proxy) gone(needed bool, now time.Time) bool {
	switch {
	case needed:
		p.left = time.Time{}
	case p.left.IsZero():
		p.left = now
	}
	return !needed && !now.Before(p.left.Add(proxyDrain))
}

// state is what Serve says of the proxy of a node, which takes a while to start; empty where there is none.
func (p *proxies) state(on *node, now time.Time, start time.Duration) string {
	known := p.on[on]
	switch {
	case known == nil:
		return ""
	case !known.left.IsZero():
		return "DRAINING"
	case p.sick[on.Instance]:
		return "UNHEALTHY"
	case now.Before(known.since.Add(start)):
		return "STARTING"
	default:
		return "HEALTHY"
	}
}

// groups are where requests can go: one group for each protocol, as soon as there is a proxy.
func (p *proxies) groups(begun bool, healthy []*node) []map[string]any {
	groups := []map[string]any{}
	for protocol, port := range map[string]int32{"HTTP": p.http, "gRPC": p.grpc} {
		if !begun || port == 0 {
			continue
		}
		targets := []map[string]any{}
		for _, one := range healthy {
			targets = append(targets, map[string]any{"ip": cmp.Or(one.IP, "127.0.0.1"), "port": port, "instance_id": one.Instance, "name": "SERVE_PROXY_ACTOR-" + one.id.String()})
		}
		groups = append(groups, map[string]any{
			"targets": targets, "route_prefix": "/", "protocol": protocol, "app_name": "", "ingress_request_router_targets": []any{}, "ingress_deployment_name": "",
		})
	}
	return groups
}
