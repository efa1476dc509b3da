package fakehead

import (
	"encoding/json"
	"maps"
	"slices"
)

// Proxied is what Serve's proxy on a node would do.
type Proxied struct {
	// State is what Serve says of the proxy, such as HEALTHY; empty where there is none.
	State string
	// Port is where it listens for HTTP.
	Port int32
	// Routes are the applications that have a replica, by route_prefix: each in Serve's form as
	// it was when the oldest of its replicas was begun.
	Routes map[string]map[string]json.RawMessage
}

// Proxied tells what the proxy on the node of an instance would do now.
func (h *Head) Proxied(instance string) Proxied {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settleServe()
	seen := Proxied{Port: h.serve.http, Routes: map[string]map[string]json.RawMessage{}}
	for _, one := range h.serveNodes() {
		if known := h.serve.proxies[one]; known != nil && one.Instance == instance {
			seen.State = h.proxyState(one, known)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.serve.apps)) {
		one := h.serve.apps[name]
		if one.route == nil {
			continue
		}
		for _, deployment := range h.deploymentsOf(name) {
			if at := slices.IndexFunc(deployment.replicas, (*replica).serves); at >= 0 {
				seen.Routes[*one.route] = deployment.replicas[at].config
				break
			}
		}
	}
	return seen
}
