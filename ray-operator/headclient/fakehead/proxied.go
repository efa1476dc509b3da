package fakehead

import (
	"cmp"
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
func (s *serving) Proxied(instance string) Proxied {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	seen := Proxied{Port: s.proxies.http, Routes: map[string]map[string]json.RawMessage{}}
	for _, one := range s.cluster.hosts() {
		if one.Instance == instance {
			seen.State = cmp.Or(s.proxies.state(one, s.clock.Now(), s.delay/2), seen.State)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.apps)) {
		one := s.apps[name]
		if one.route == nil {
			continue
		}
		for _, deployment := range one.inOrder() {
			if at := slices.IndexFunc(deployment.replicas, (*replica).serves); at >= 0 {
				seen.Routes[*one.route] = deployment.replicas[at].config
				break
			}
		}
	}
	return seen
}
