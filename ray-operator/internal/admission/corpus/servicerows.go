package corpus

import (
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// withGRPC makes the proxies speak gRPC.
const withGRPC = `{"grpc_options":{"grpc_servicer_functions":["app.main:add"]}}`

var serviceRows = []offerRow{
	{Name: "a good service", Edit: func(*offer) {}},
	{Name: "a good service of its own cluster", Edit: onOwn},
	{Name: "a full service of its own cluster", Edit: both(servedMeta(some, some), headTakes(true), asked("/text/v1?probe=1"),
		front(func(s *v1beta1.ServeService) { s.Type, s.Labels, s.Annotations = "LoadBalancer", some, some }),
		frontPorts(v1beta1.ServePort{Name: "http", Port: 80}, v1beta1.ServePort{Name: "grpc", Port: 9000}), serve(withGRPC),
		upgraded(func(u *v1beta1.ServiceUpgradeStrategy) {
			u.Type, u.Surge = "Surge", &v1beta1.Surge{MaxSurgePercent: ptr(int32(50)), StepPercent: ptr(int32(50)), IntervalSeconds: ptr(int32(0))}
			u.HealthyDeadlineSeconds, u.DrainSeconds, u.RetireAfterSeconds, u.AutoRollback = ptr(int32(10)), ptr(int32(0)), ptr(int32(86400)), ptr(false)
			u.Gateway = &v1beta1.ServiceGateway{ParentRef: v1beta1.GatewayReference{Name: "public", Namespace: "infra", SectionName: "http"}, Hostnames: []string{"text.example.com"}}
		}), serviceSpec(func(s *offers) { s.Suspend = new(true) }))},
	{Name: "a service's name of 50", Edit: serviceNamed(long(50))},
	{Name: "a service's name of 51", Rule: "service-name", Edit: serviceNamed(long(51))},
	{Name: "a service's name with a dot", Rule: "service-name", Edit: serviceNamed("a.b")},
	{Name: "a service of no cluster", Rule: "service-where", Edit: serviceSpec(func(s *offers) { s.ClusterRef, s.ClusterTemplate = nil, nil })},
	{Name: "a service of two clusters", Rule: "service-where", Edit: both(onOwn, serviceSpec(func(s *offers) { s.ClusterRef = &v1beta1.ClusterReference{Name: "demo"} }))},
	{Name: "a service's cluster without a name", Rule: "required", Edit: onExisting("")},
	{Name: "a service's cluster in capitals", Rule: "home-cluster-name", Edit: onExisting("Demo")},
	{Name: "a service's cluster with too long a name", Rule: "long-text", Edit: onExisting(long(51))},
	{Name: "another cluster of a service", Rule: "service-cluster-fixed", Before: unchanged, Edit: onExisting("other")},
	{Name: "a cluster of its own for a service", Rule: "service-stays", Before: unchanged, Edit: onOwn},
	{Name: "a cluster that exists for a service", Rule: "service-stays", Before: onOwn, Edit: onExisting("demo")},
	{Name: "another template of a service", Before: onOwn, Edit: inServed(version("2.59.0"), groups(1))},
	{Name: "other applications", Before: unchanged, Edit: app(`"name":"other","route_prefix":"/other"`)},
	{Name: "other proxies", Before: unchanged, Edit: proxy(`"port":8100`)},
	{Name: "bad proxies", Rule: "serve-port-taken", Before: unchanged, Edit: proxy(`"port":8265`)},
	{Name: "a service is suspended", Before: unchanged, Edit: serviceSpec(func(s *offers) { s.Suspend = new(true) })},
	{Name: "a service of another manager", Edit: serviceManaged("kueue.x-k8s.io/multikueue")},
	{Name: "a service's manager without a domain", Rule: "managed-by", Edit: serviceManaged("kueue")},
	{Name: "a service's manager changed", Rule: "service-managed-by-fixed", Before: serviceManaged("a.b/c"), Edit: serviceManaged("a.b/d")},
	{Name: "a service's default manager said", Before: serviceManaged(""), Edit: serviceManaged(v1beta1.ManagedByOperator)},
	{Name: "a Service of no type", Rule: "unknown-word", Edit: front(func(s *v1beta1.ServeService) { s.Type = "ExternalName" })},
	{Name: "a label of ours on a Service", Rule: "service-metadata", Edit: front(func(s *v1beta1.ServeService) { s.Labels = ours })},
	{Name: "an annotation of ours on a Service", Rule: "service-metadata", Edit: front(func(s *v1beta1.ServeService) { s.Annotations = ours })},
	{Name: "a label's value on a Service", Rule: "service-labels", Edit: front(func(s *v1beta1.ServeService) { s.Labels = badValue })},
	{Name: "an annotation's key on a Service", Rule: "service-annotations", Edit: front(func(s *v1beta1.ServeService) { s.Annotations = badKey })},
	{Name: "peers of a service", Edit: frontPeers(anyone, block("10.0.0.0/8", "10.1.0.0/16"))},
	{Name: "an empty peer of a service", Rule: "service-peer", Edit: frontPeers(networkingv1.NetworkPolicyPeer{})},
	{Name: "the server as the only peer of a service", Edit: frontServer(networkingv1.NetworkPolicyPeer{})},
	{Name: "the server beside other peers of a service", Edit: both(frontServer(networkingv1.NetworkPolicyPeer{}), frontPeers(anyone))},
	{Name: "the server and pods as one peer of a service", Rule: "service-peer", Edit: frontServer(anyone)},
	{Name: "the server and a block as one peer of a service", Rule: "service-peer", Edit: frontServer(block("10.0.0.0/8"))},
	{Name: "a block for a service that is none", Rule: "service-block", Edit: frontPeers(block("10.0.0.1/8"))},
	{Name: "too many peers of a service", Rule: "long-list", Edit: frontPeers(slices.Repeat([]networkingv1.NetworkPolicyPeer{anyone}, 33)...)},
	{Name: "two ports alike", Rule: "service-port-twice", Edit: both(serve(withGRPC), frontPorts(v1beta1.ServePort{Name: "http", Port: 80}, v1beta1.ServePort{Name: "grpc", Port: 80}))},
	{Name: "two ports of one name", Rule: "duplicate", Edit: frontPorts(v1beta1.ServePort{Name: "http", Port: 80}, v1beta1.ServePort{Name: "http", Port: 81})},
	{Name: "an additional port", Edit: frontPorts(v1beta1.ServePort{Name: "sidecar", Port: 9100})},
	{Name: "an additional port that leads elsewhere", Edit: both(frontPorts(v1beta1.ServePort{Name: "http", Port: 80}, v1beta1.ServePort{Name: "sidecar", Port: 8080, TargetPort: 9100, NodePort: 30100}),
		front(func(s *v1beta1.ServeService) { s.Type = "NodePort" }))},
	{Name: "a port's name in capitals", Rule: "port-name", Edit: frontPorts(v1beta1.ServePort{Name: "Sidecar", Port: 9100})},
	{Name: "a port's name of 64", Rule: "long-text", Edit: frontPorts(v1beta1.ServePort{Name: long(64), Port: 9100})},
	{Name: "a target port for HTTP", Rule: "service-port-proxy", Edit: frontPorts(v1beta1.ServePort{Name: "http", Port: 80, TargetPort: 8000})},
	{Name: "a target port of 65536", Rule: "out-of-bounds", Edit: frontPorts(v1beta1.ServePort{Name: "sidecar", Port: 80, TargetPort: 65536})},
	{Name: "an additional port of Ray", Rule: "service-port-ray", Edit: frontPorts(v1beta1.ServePort{Name: "dashboard", Port: 8265})},
	{Name: "an additional port that leads to Ray", Rule: "service-port-ray", Edit: frontPorts(v1beta1.ServePort{Name: "gcs", Port: 80, TargetPort: 6379})},
	{Name: "an additional port of the number that leads elsewhere", Edit: frontPorts(v1beta1.ServePort{Name: "sidecar", Port: 8265, TargetPort: 9100})},
	{Name: "HTTP's default as an additional port", Rule: "service-port-default", Edit: frontPorts(v1beta1.ServePort{Name: "sidecar", Port: 8000})},
	{Name: "HTTP's default as the port of gRPC", Rule: "service-port-default", Edit: both(serve(withGRPC), frontPorts(v1beta1.ServePort{Name: "grpc", Port: 8000}))},
	{Name: "HTTP's default where HTTP has another", Edit: frontPorts(v1beta1.ServePort{Name: "http", Port: 80}, v1beta1.ServePort{Name: "sidecar", Port: 8000, TargetPort: 9100})},
	{Name: "gRPC's default as an additional port", Rule: "service-port-default", Edit: both(serve(withGRPC), frontPorts(v1beta1.ServePort{Name: "sidecar", Port: 9000}))},
	{Name: "gRPC's default where nobody speaks it", Edit: frontPorts(v1beta1.ServePort{Name: "sidecar", Port: 9000})},
	{Name: "too many ports", Rule: "long-list", Edit: frontPorts(manyPorts(33)...)},
	{Name: "a port below all numbers", Rule: "out-of-bounds", Edit: frontPorts(v1beta1.ServePort{Name: "http", Port: -1})},
	{Name: "HTTP's port without a number", Edit: frontPorts(v1beta1.ServePort{Name: "http"})},
	{Name: "an additional port without a number", Rule: "service-port-number", Edit: frontPorts(v1beta1.ServePort{Name: "sidecar"})},
	{Name: "HTTP's default where HTTP has no number", Rule: "service-port-default", Edit: frontPorts(v1beta1.ServePort{Name: "http"}, v1beta1.ServePort{Name: "sidecar", Port: 8000, TargetPort: 9100})},
	{Name: "a port for gRPC", Edit: both(serve(withGRPC), frontPorts(v1beta1.ServePort{Name: "grpc", Port: 9000}))},
	{Name: "a port for gRPC that nobody speaks", Rule: "service-grpc", Edit: both(serve(`{"grpc_options":{"grpc_servicer_functions":[]}}`), frontPorts(v1beta1.ServePort{Name: "grpc", Port: 9000}))},
	{Name: "the head of a cluster of others takes requests", Edit: both(onExisting("demo"), headTakes(true))},
	{Name: "the head alone takes requests", Edit: both(inServed(groups(0)), headTakes(true))},
	{Name: "the head alone takes no requests", Rule: "service-head", Edit: both(inServed(groups(0)), headTakes(false))},
	{Name: "a head with workers takes no requests", Edit: both(onOwn, headTakes(false))},
}

func unchanged(*offer) {}

var upgradeRows = []offerRow{
	{Name: "an upgrade on a cluster of others", Rule: "service-upgrade-where", Edit: both(upgraded(func(*v1beta1.ServiceUpgradeStrategy) {}), serviceSpec(func(s *offers) {
		s.ClusterRef, s.ClusterTemplate = &v1beta1.ClusterReference{Name: "demo"}, nil
	}))},
	{Name: "no upgrade", Edit: upgraded(func(u *v1beta1.ServiceUpgradeStrategy) { u.Type = "None" })},
	{Name: "no upgrade, with the figures of those in progress", Edit: upgraded(func(u *v1beta1.ServiceUpgradeStrategy) {
		u.Type, u.Surge = "None", &v1beta1.Surge{MaxSurgePercent: ptr(int32(50)), StepPercent: ptr(int32(10)), IntervalSeconds: ptr(int32(0))}
	})},
	{Name: "an upgrade in place", Edit: upgraded(func(u *v1beta1.ServiceUpgradeStrategy) { u.Type = "InPlace" })},
	{Name: "a surge of an upgrade in place", Rule: "service-upgrade-in-place", Edit: upgraded(func(u *v1beta1.ServiceUpgradeStrategy) {
		u.Type, u.Surge = "InPlace", &v1beta1.Surge{MaxSurgePercent: ptr(int32(50)), StepPercent: ptr(int32(50))}
	})},
	{Name: "an upgrade of no sort", Rule: "unknown-word", Edit: upgraded(func(u *v1beta1.ServiceUpgradeStrategy) { u.Type = "Rolling" })},
	{Name: "a step as large as the surge", Edit: steps(ptr(int32(30)), ptr(int32(30)))},
	{Name: "a step above the surge", Rule: "service-upgrade-step", Edit: steps(ptr(int32(31)), ptr(int32(30)))},
	{Name: "the default step above the surge", Rule: "service-upgrade-step", Edit: steps(nil, ptr(int32(19)))},
	{Name: "the largest step", Edit: steps(ptr(int32(100)), nil)},
	{Name: "no step", Rule: "out-of-bounds", Edit: steps(ptr(int32(0)), nil)},
	{Name: "no time to become healthy", Rule: "out-of-bounds", Edit: upgraded(func(u *v1beta1.ServiceUpgradeStrategy) { u.HealthyDeadlineSeconds = ptr(int32(9)) })},
}

var gatewayRows = []offerRow{
	{Name: "a gateway", Edit: hosted()},
	{Name: "a listener of a gateway elsewhere", Edit: both(hosted("text.example.com", "*.example.org", "localhost"), upgraded(func(u *v1beta1.ServiceUpgradeStrategy) {
		u.Gateway.ParentRef.Name, u.Gateway.ParentRef.Namespace, u.Gateway.ParentRef.SectionName = "a.b", "infra", "http"
	}))},
	{Name: "a gateway without a name", Rule: "required", Edit: gated(func(g *v1beta1.ServiceGateway) { g.ParentRef.Name = "" })},
	{Name: "a gateway in capitals", Rule: "gateway-name", Edit: gated(func(g *v1beta1.ServiceGateway) { g.ParentRef.Name = "Public" })},
	{Name: "a gateway with too long a name", Rule: "long-text", Edit: gated(func(g *v1beta1.ServiceGateway) { g.ParentRef.Name = long(254) })},
	{Name: "a gateway's namespace with a dot", Rule: "gateway-namespace", Edit: gated(func(g *v1beta1.ServiceGateway) { g.ParentRef.Namespace = "a.b" })},
	{Name: "a gateway's namespace too long", Rule: "long-text", Edit: gated(func(g *v1beta1.ServiceGateway) { g.ParentRef.Namespace = long(64) })},
	{Name: "a listener with a blank", Rule: "gateway-listener", Edit: gated(func(g *v1beta1.ServiceGateway) { g.ParentRef.SectionName = "a b" })},
	{Name: "a listener with too long a name", Rule: "long-text", Edit: gated(func(g *v1beta1.ServiceGateway) { g.ParentRef.SectionName = long(254) })},
	{Name: "a hostname in capitals", Rule: "gateway-hostnames", Edit: hosted("Example.com")},
	{Name: "a hostname with a port", Rule: "gateway-hostnames", Edit: hosted("example.com:80")},
	{Name: "a wildcard within a hostname", Rule: "gateway-hostnames", Edit: hosted("a.*.com")},
	{Name: "an empty hostname", Rule: "gateway-hostnames", Edit: hosted("")},
	{Name: "too long a hostname", Rule: "long-text", Edit: hosted(long(254))},
	{Name: "a hostname twice", Rule: "duplicate", Edit: hosted("a.b", "a.b")},
	{Name: "sixteen hostnames", Edit: hosted(hostnames(16)...)},
	{Name: "seventeen hostnames", Rule: "long-list", Edit: hosted(hostnames(17)...)},
	{Name: "a gateway before HTTPS", Rule: "gateway-tls", Edit: both(hosted(), proxy(`"ssl_certfile":"/tls/crt","ssl_keyfile":"/tls/key"`))},
	{Name: "a gateway on a cluster of others", Rule: "service-upgrade-where", Edit: both(hosted(), serviceSpec(func(s *offers) {
		s.ClusterRef, s.ClusterTemplate = &v1beta1.ClusterReference{Name: "demo"}, nil
	}))},
}

// hostnames are so many.
func hostnames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("host-%d.example.com", i)
	}
	return names
}

var healthRows = []offerRow{
	{Name: "a path to ask", Edit: asked("/")},
	{Name: "a path to ask without a slash", Rule: "health-path", Edit: asked("healthz")},
	{Name: "a path to ask with a blank", Rule: "health-path", Edit: asked("/a b")},
	{Name: "a path to ask too long", Rule: "long-text", Edit: asked("/" + long(1024))},
	{Name: "a path to ask at an application", Edit: both(asked("/text?a=/other"), app(`"route_prefix":"/text"`))},
	{Name: "a path to ask below an application", Edit: both(asked("/text/v1"), app(`"route_prefix":"/text"`))},
	{Name: "a path to ask beside an application", Rule: "health-route", Edit: both(asked("/texts"), app(`"route_prefix":"/text"`))},
	{Name: "a path to ask at what only others call", Rule: "health-route", Edit: both(asked("/"), app(`"route_prefix":null`))},
	{Name: "a path to ask over HTTPS", Rule: "health-tls", Edit: both(asked("/"), proxy(`"ssl_certfile":"/tls/crt","ssl_keyfile":"/tls/key"`))},
}

var ownServiceRows = []offerRow{
	{Name: "labels of a service's cluster", Edit: servedMeta(some, map[string]string{"Example.com/A": "a b\n"})},
	{Name: "a label of ours on a service's cluster", Rule: "own-cluster-metadata", Edit: servedMeta(ours, nil)},
	{Name: "a label's value on a service's cluster", Rule: "own-cluster-labels", Edit: servedMeta(badValue, nil)},
	{Name: "an annotation's key on a service's cluster", Rule: "own-cluster-annotations", Edit: servedMeta(nil, badKey)},
	{Name: "a service's cluster that is suspended", Rule: "own-cluster-suspend", Edit: inServed(spec(func(s *v1beta1.ComputeClusterSpec) { s.Suspend = new(true) }))},
	{Name: "a service's cluster of another manager", Rule: "own-cluster-managed-by", Edit: inServed(managed("a.b/c"))},
	{Name: "a service's cluster that sleeps when idle", Rule: "own-cluster-idle", Edit: inServed(idle(60, v1beta1.IdleSuspend))},
	{Name: "a service's cluster that tells when idle", Edit: inServed(idle(60, v1beta1.IdleNone))},
	{Name: "a namespace for all of a service's clusters", Rule: "service-store", Edit: inServed(spec(func(s *v1beta1.ComputeClusterSpec) {
		s.ControlStore = &v1beta1.ControlStore{Redis: &v1beta1.GivenRedis{Address: "redis://redis:6379", Namespace: "a"}}
	}))},
	{Name: "a claim for all of a service's clusters", Rule: "service-store", Edit: inServed(spec(func(s *v1beta1.ComputeClusterSpec) {
		s.ControlStore = &v1beta1.ControlStore{Embedded: &v1beta1.EmbeddedStore{ExistingClaim: "a"}}
	}))},
	{Name: "a shared volume of each of a service's clusters", Rule: "service-shared-volume", Edit: inServed(sharing(asGiven, claimed(ptr("1Gi"), nil)))},
	{Name: "a shared volume of all of a service's clusters", Edit: inServed(sharing(asGiven))},
	{Name: "another control store of a service's cluster", Before: inServed(spec(func(s *v1beta1.ComputeClusterSpec) {
		s.ControlStore = &v1beta1.ControlStore{ManagedRedis: &v1beta1.ManagedRedis{}}
	})), Edit: inServed(spec(func(s *v1beta1.ComputeClusterSpec) {
		s.ControlStore = &v1beta1.ControlStore{Embedded: &v1beta1.EmbeddedStore{}}
	}))},
}

var serveRows = []offerRow{
	{Name: "no serveConfig", Rule: "serve-missing", Edit: serviceSpec(func(s *offers) { s.ServeConfig = runtime.RawExtension{} })},
	{Name: "a serveConfig as a text", Rule: "serve-no-object", Edit: config(`"applications: []"`)},
	{Name: "a serveConfig as a list", Rule: "serve-no-object", Edit: config(`[]`)},
	{Name: "an empty serveConfig", Rule: "serve-applications", Edit: config(`{}`)},
	{Name: "no application", Rule: "serve-applications", Edit: config(`{"applications":[]}`)},
	{Name: "applications as null", Rule: "serve-list", Edit: config(`{"applications":null}`)},
	{Name: "applications as an object", Rule: "serve-list", Edit: config(`{"applications":{"name":"text","import_path":"a:b"}}`)},
	{Name: "an application as a text", Rule: "serve-list", Edit: config(`{"applications":["app:app"]}`)},
	{Name: "fields that nobody knows", Edit: both(serve(`{"fromTomorrow":{"a":[1,null]},"http_options":{"fromTomorrow":1},"logging_config":{"fromTomorrow":true}}`),
		app(`"fromTomorrow":[],"Name":"not a name"`), dep(`"fromTomorrow":"a"`), actor(`"fromTomorrow":0`))},
	{Name: "64 applications", Edit: many(64, 0)},
	{Name: "65 applications", Rule: "serve-too-many", Edit: many(65, 0)},
	{Name: "256 deployments", Edit: many(4, 64)},
	{Name: "256 deployments of one application", Edit: many(1, 256)},
	{Name: "257 deployments", Rule: "serve-too-many", Edit: many(1, 257)},
	{Name: "a target capacity", Rule: "serve-capacity", Edit: both(onOwn, serve(`{"target_capacity":50}`))},
	{Name: "a target capacity on a cluster of others", Rule: "serve-capacity", Edit: serve(`{"target_capacity":100}`)},
	{Name: "no target capacity", Edit: serve(`{"target_capacity":null}`)},
	{Name: "what is logged", Edit: both(serve(`{"logging_config":{"encoding":"JSON","log_level":"DEBUG","logs_dir":null,"enable_access_log":false,"additional_log_standard_attrs":["name"]}}`),
		app(`"logging_config":{"log_level":20}`), dep(`"logging_config":{"encoding":"TEXT"}`))},
	{Name: "what is logged as null", Edit: both(serve(`{"logging_config":null}`), app(`"logging_config":null`))},
	{Name: "what is logged of a deployment as null", Rule: "serve-object", Edit: dep(`"logging_config":null`)},
	{Name: "an unknown encoding", Rule: "serve-encoding", Edit: serve(`{"logging_config":{"encoding":"YAML"}}`)},
	{Name: "an unknown level", Rule: "serve-log-level", Edit: app(`"logging_config":{"log_level":"LOUD"}`)},
	{Name: "a level between two", Rule: "serve-log-level", Edit: app(`"logging_config":{"log_level":25}`)},
	{Name: "a flag as a text", Rule: "serve-flag", Edit: dep(`"logging_config":{"enable_access_log":"true"}`)},
	{Name: "attributes as a text", Rule: "serve-text-list", Edit: serve(`{"logging_config":{"additional_log_standard_attrs":"name"}}`)},
	{Name: "what is traced", Edit: serve(`{"tracing_config":{"enabled":true,"exporter_import_path":"a:b","sampling_ratio":0}}`)},
	{Name: "more than everything traced", Rule: "serve-ratio", Edit: serve(`{"tracing_config":{"sampling_ratio":1.1}}`)},
	{Name: "variables of the controller", Edit: serve(`{"controller_options":{"runtime_env":{"env_vars":{"RAY_SERVE_ENABLE_HA_PROXY":"1"}}}}`)},
	{Name: "no options of the controller", Edit: serve(`{"controller_options":null}`)},
	{Name: "no environment of the controller", Edit: config(`{"applications":[{"name":"text","import_path":"app.main:app"}],"controller_options":{"runtime_env":null}}`)},
	{Name: "packages of the controller", Rule: "serve-controller", Edit: serve(`{"controller_options":{"runtime_env":{"env_vars":{"A":"1"},"pip":["a"]}}}`)},
	{Name: "a number as a variable of the controller", Rule: "serve-texts", Edit: serve(`{"controller_options":{"runtime_env":{"env_vars":{"A":1}}}}`)},
	{Name: "a variable of the controller without a name", Rule: "serve-texts", Edit: serve(`{"controller_options":{"runtime_env":{"env_vars":{"":"a"}}}}`)},
	{Name: "the controller's environment as a list", Rule: "serve-object", Edit: serve(`{"controller_options":{"runtime_env":[]}}`)},
}

var proxyRows = []offerRow{
	{Name: "the options of the proxies", Edit: both(proxy(`"host":"::","port":8000,"root_path":"/serve","request_timeout_s":null,"keep_alive_timeout_s":0,"ssl_ca_certs":null`),
		serve(`{"proxy_location":"EveryNode","grpc_options":{"port":9000,"request_timeout_s":1.5,"enable_reflection":false}}`))},
	{Name: "all addresses", Edit: proxy(`"host":"0.0.0.0"`)},
	{Name: "no host", Edit: proxy(`"host":""`)},
	{Name: "one address", Rule: "serve-host", Edit: proxy(`"host":"127.0.0.1"`)},
	{Name: "a host as null", Rule: "serve-text", Edit: proxy(`"host":null`)},
	{Name: "options as null", Rule: "serve-object", Edit: serve(`{"http_options":null}`)},
	{Name: "options as a text", Rule: "serve-object", Edit: serve(`{"grpc_options":"port: 9000"}`)},
	{Name: "a port as a text", Rule: "serve-port", Edit: proxy(`"port":"8000"`)},
	{Name: "a port too high", Rule: "serve-port", Edit: proxy(`"port":65536`)},
	{Name: "half a port", Rule: "serve-port", Edit: serve(`{"grpc_options":{"port":9000.5}}`)},
	{Name: "a port of the GCS", Rule: "serve-port-taken", Edit: proxy(`"port":6379`)},
	{Name: "a port of the metrics", Rule: "serve-port-taken", Edit: serve(`{"grpc_options":{"port":8080}}`)},
	{Name: "a port of the agent", Rule: "serve-port-taken", Edit: proxy(`"port":52365`)},
	{Name: "one port for all", Rule: "serve-port-twice", Edit: both(serve(withGRPC), proxy(`"port":9000`))},
	{Name: "one port for all, said the other way", Rule: "serve-port-twice", Edit: both(serve(withGRPC), serve(`{"grpc_options":{"port":8000}}`))},
	{Name: "the port of a gRPC that nobody speaks", Edit: config(`{"applications":[{"name":"text","import_path":"app.main:app"}],"http_options":{"port":9000}}`)},
	{Name: "servicer functions as a text", Rule: "serve-text-list", Edit: serve(`{"grpc_options":{"grpc_servicer_functions":"app:add"}}`)},
	{Name: "HTTPS", Edit: config(`{"applications":[{"name":"text","import_path":"app.main:app"}],"http_options":{"ssl_certfile":"/tls/crt","ssl_keyfile":"/tls/key","ssl_keyfile_password":"a"}}`)},
	{Name: "a certificate without its key", Rule: "serve-tls", Edit: config(`{"applications":[{"name":"text","import_path":"app.main:app"}],"http_options":{"ssl_certfile":"/tls/crt"}}`)},
	{Name: "a key without its certificate", Rule: "serve-tls", Edit: proxy(`"ssl_keyfile":"/tls/key","ssl_certfile":""`)},
	{Name: "a proxy on the head alone", Edit: both(onOwn, headTakes(true), serve(`{"proxy_location":"HeadOnly"}`))},
	{Name: "a proxy on a head without workers", Edit: both(inServed(groups(0)), front(func(s *v1beta1.ServeService) { s.HeadEndpoints = nil }), serve(`{"proxy_location":"HeadOnly"}`))},
	{Name: "a proxy on a head that takes no requests", Rule: "serve-proxy-head", Edit: both(onOwn, headTakes(false), serve(`{"proxy_location":"HeadOnly"}`))},
	{Name: "a proxy on a head of others", Rule: "serve-proxy-head", Edit: config(`{"applications":[{"name":"text","import_path":"app.main:app"}],"proxy_location":"HeadOnly"}`)},
	{Name: "no proxy", Rule: "serve-proxies", Edit: serve(`{"proxy_location":"Disabled"}`)},
	{Name: "proxies somewhere", Rule: "serve-proxies", Edit: serve(`{"proxy_location":"everynode"}`)},
	{Name: "proxies nowhere", Rule: "serve-proxies", Edit: serve(`{"proxy_location":null}`)},
}

// applicationPair are two applications, with these fields each.
func applicationPair(first, second string) change {
	return config(fmt.Sprintf(`{"applications":[{"import_path":"a:b",%s},{"import_path":"a.b",%s}]}`, first, second))
}
