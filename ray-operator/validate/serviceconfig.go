package validate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/serveconfig"
)

// first is the one part of a kind that is there once at most, empty where it is not there.
func (s *serving) first(kind string) map[string]any {
	if parts := s.parts[kind]; len(parts) > 0 {
		return parts[0].of
	}
	return nil
}

// speaksGRPC reports whether there are gRPC methods to serve.
func (s *serving) speaksGRPC() bool {
	functions, _ := s.first("grpc")["grpc_servicer_functions"].([]any)
	return len(functions) > 0
}

// speaksGRPC is an expression for that.
const speaksGRPC = "variables.grpc[0].exists(o, [o.of.?grpc_servicer_functions.orValue(dyn(null))].exists(f, type(f) == list && size(f) > 0))"

// isSaid tells a text that is there and not empty, and said is an expression for it.
func isSaid(of map[string]any, key string) bool {
	text, _ := of[key].(string)
	return text != ""
}

func said(key string) string {
	return fmt.Sprintf("[o.of.?%s.orValue(dyn(''))].exists(v, type(v) == string && v != '')", key)
}

// isThere tells a field that is there and not null, and there is an expression for it.
func isThere(of map[string]any, key string) bool { return of[key] != nil }

func there(key string) string { return fmt.Sprintf("o.of.?%s.orValue(dyn(null)) != null", key) }

// portsOfRay are those of a pod that no proxy can have, Ray's and the autoscaler's, beside 8000, which is Serve's.
var portsOfRay = []int32{naming.PortGCS, naming.PortDashboard, naming.PortDashboardTLS, naming.PortClient, naming.PortMetrics, agentPort, naming.PortScale, naming.PortScaleMetrics}

// ReservedPorts returns the ports of a pod that no proxy and no port of a service can lead to: those of Ray and of the autoscaler.
func ReservedPorts() []int32 { return slices.Clone(portsOfRay) }

// portList writes them, with another separator before the last one.
func portList(last string) string {
	words := make([]string, len(portsOfRay))
	for i, port := range portsOfRay {
		words[i] = strconv.Itoa(int(port))
	}
	end := len(words) - 1
	return strings.Join(words[:end], ", ") + last + words[end]
}

// takenPort is that a proxy would have a port of Ray's own.
func takenPort(kind string) flaw {
	return flaw{
		in: kind, key: "port", when: "o.of.?port.orValue(0) in [" + portList(", ") + "]",
		wrong: func(of map[string]any) bool {
			port, ok := of["port"].(float64)
			return ok && slices.ContainsFunc(portsOfRay, func(taken int32) bool { return float64(taken) == port })
		},
	}
}

// everybody are the addresses at which a proxy listens to everybody.
var everybody = []string{"", "0.0.0.0", "::"}

// serveRules are about the configuration as a whole and about the proxies.
var serveRules = []Rule{
	ofParts(Rule{
		ID: "serve-proxies", Field: "spec.serveConfig.proxy_location",
		Refused: "proxy_location must be EveryNode or HeadOnly",
		Remedy:  "leave it out for EveryNode",
	}, flaw{
		in: partConfig, key: "proxy_location", when: "'proxy_location' in o.of && !(o.of.proxy_location in ['EveryNode', 'HeadOnly'])",
		wrong: func(of map[string]any) bool {
			place, there := of["proxy_location"]
			return there && place != serveconfig.EveryNode && place != serveconfig.HeadOnly
		},
	}),
	{
		ID: "serve-proxy-head", Field: "spec.serveConfig.proxy_location", By: Policy,
		Refused: "proxy_location HeadOnly must be used with service.headEndpoints true or a cluster without workers, because the head's proxy is then the only one",
		Remedy:  "set service.headEndpoints to true, or leave proxy_location out",
		Holds:   "variables.serve.?proxy_location.orValue(dyn('')) != 'HeadOnly' || object.spec.?service.?headEndpoints.orValue(" + headAlone + ")",
		service: func(s *serving, bad report) {
			takes := s.headAlone()
			if head := s.front().HeadEndpoints; head != nil {
				takes = *head
			}
			if s.config["proxy_location"] == serveconfig.HeadOnly && !takes {
				bad.at(configPath.Child("proxy_location"), nil)
			}
		},
	},
	ofParts(Rule{
		ID: "serve-host", Field: "spec.serveConfig.http_options.host",
		Refused: "host must stand for all addresses, because no client can reach a proxy that listens at one address", Remedy: `leave host out, or give "0.0.0.0" or "::"`,
	}, flaw{
		in: "http", key: "host", when: "type(o.of.?host.orValue(dyn(null))) == string && !(o.of.host in " + list(everybody) + ")",
		wrong: func(of map[string]any) bool {
			host, ok := of["host"].(string)
			return ok && !slices.Contains(everybody, host)
		},
	}),
	ofParts(Rule{
		ID: "serve-port-taken", Field: "spec.serveConfig.http_options.port, spec.serveConfig.grpc_options.port",
		Refused: portList(" and ") + " are Ray's own ports in a pod", Remedy: "choose another, such as 8000 for HTTP and 9000 for gRPC",
	}, takenPort("http"), takenPort("grpc")),
	inLists(Rule{
		ID: "serve-port-twice", Field: "spec.serveConfig.grpc_options.port",
		Refused: "HTTP (default 8000) and gRPC (default 9000) must have different ports", Remedy: "choose another for one of them",
	}, "variables.grpc.map(l, l.filter(o, "+speaksGRPC+" && [(variables.http[0].map(h, h.of.?port.orValue(dyn(8000))) + [dyn(8000)])[0]]"+
		".exists(v, "+numberOf("v", "== o.of.?port.orValue(dyn(9000))")+")).map(o, o.path + '.port'))",
		func(s *serving, bad report) {
			port := portOf(s.first("http"), serveconfig.DefaultHTTPPort)
			if s.speaksGRPC() && port != nil && port == portOf(s.first("grpc"), serveconfig.DefaultGRPCPort) {
				bad.at(configPath.Child("grpc_options", "port"), nil)
			}
		}),
	ofParts(Rule{
		ID: "serve-tls", Field: "spec.serveConfig.http_options",
		Refused: "ssl_certfile and ssl_keyfile must be set together for HTTPS", Remedy: "set both or neither",
	}, flaw{
		in: "http", when: "(" + said("ssl_certfile") + ") != (" + said("ssl_keyfile") + ")",
		wrong: func(of map[string]any) bool { return isSaid(of, "ssl_certfile") != isSaid(of, "ssl_keyfile") },
	}),
	ofParts(Rule{
		ID: "serve-controller", Field: "spec.serveConfig.controller_options.runtime_env",
		Refused: "the runtime_env of Serve's controller must contain only env_vars", Remedy: "set the rest in runtime_env of the applications",
	}, flaw{
		in: "controllerEnvironment", when: "o.of.exists(k, k != 'env_vars')",
		wrong: func(of map[string]any) bool {
			return slices.ContainsFunc(sorted(of), func(key string) bool { return key != "env_vars" })
		},
	}),
	ofParts(Rule{
		ID: "serve-capacity", Field: "spec.serveConfig.target_capacity",
		Refused: "target_capacity must not be set, because the operator sets it during an upgrade, and on a shared cluster it would affect other services",
		Remedy:  "leave it out, and set num_replicas or autoscaling_config of the deployments",
	}, flaw{
		in: partConfig, key: "target_capacity", when: there("target_capacity"),
		wrong: func(of map[string]any) bool { return isThere(of, "target_capacity") },
	}),
}

// portOf is the port of a proxy, nil where it is no number, which is refused as such.
func portOf(options map[string]any, otherwise float64) any {
	port, there := options["port"]
	if !there {
		return otherwise
	}
	if _, isNumber := port.(float64); !isNumber {
		return nil
	}
	return port
}
