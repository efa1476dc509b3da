package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/apiserver/connections"
	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/apiserver/phases"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/proxy"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/route"
	services "github.com/heliostat-dev/heliostat/dashboard-proxy/serve"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/problem"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Dashboards says where clusters and services are served.
type Dashboards struct {
	// Address is host:port to listen on, always with TLS; empty or "0" turns off.
	Address string
	// URL is the https address by which browsers reach that, and PageURL that of the page and the API.
	URL, PageURL *url.URL
	// Wildcard is the host[:port] below which each object has an origin of its own; empty where there is none.
	Wildcard string
	// MaxUpload is how many bytes the body of a request may have.
	MaxUpload int64
	// MaxFiles is how many files the process can have open, of which each WebSocket needs two; 0 is that there is no limit.
	MaxFiles uint64
	// Drain is for how long WebSockets go on when the server ends. Ray's client does not follow a job again whose WebSocket
	// was closed.
	Drain time.Duration
}

// isOff reports whether clusters are not served.
func (d Dashboards) isOff() bool { return d.Address == "" || d.Address == "0" }

// addressOf returns where browsers open an object of a kind of the view; empty where it has no dashboard.
func (d Dashboards) addressOf(kind, namespace, name string) string {
	if d.isOff() {
		return ""
	}
	site, shared := route.Site{Wildcard: d.Wildcard}, "https://"+d.URL.Host
	switch kind {
	case view.Clusters:
		return site.AddressOf(shared, route.Cluster, namespace, name)
	case view.Services:
		return site.AddressOf(shared, route.Service, namespace, name)
	}
	return ""
}

// dashboards is what every request to the dashboards' origin meets.
type dashboards struct {
	front *front
	proxy *proxy.Proxy
}

func newDashboards(
	ctx context.Context, cfg Config, front *front, portal *portal, registry prometheus.Registerer,
) (*dashboards, error) {
	objects := shown{found{portal.view}, portal, cfg}
	needs := proxy.Needs{
		Access: visitors{front.kubernetes}, Heads: portal.heads, Objects: objects, Clock: cfg.Clock, Log: cfg.Log,
		Services:  services.New(reads{objects.found, reader{portal.view, portal.own}}, nil, cfg.Clock),
		Origin:    cfg.Dashboards.URL,
		Site:      route.Site{Wildcard: cfg.Dashboards.Wildcard, Labels: newLabels(portal.view, cfg.Clock)},
		PageURL:   cfg.Dashboards.PageURL.String(),
		MaxUpload: cfg.Dashboards.MaxUpload, MaxSockets: proxy.SocketsFor(cfg.Dashboards.MaxFiles),
	}
	if by := cfg.Identity.FrontProxy; by != nil {
		needs.IdentityHeaders = []string{by.UserHeader, by.GroupHeader, by.UIDHeader, by.ExtraHeaderPrefix}
	}
	if front.clusters != nil {
		needs.Sessions, needs.SignIn = front.clusters, front.clusters
	}
	made := proxy.New(outlast(ctx, cfg.Dashboards.Drain, cfg.Clock), needs)
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "heliostat_server_websockets",
		Help: "Open WebSockets to dashboards and services.",
	}, func() float64 { return float64(made.Sockets()) })
	if err := registry.Register(open); err != nil {
		return nil, fmt.Errorf("register the metrics: %w", err)
	}
	return &dashboards{front: front, proxy: made}, nil
}

// outlast returns a context that ends so long after another one.
func outlast(ctx context.Context, by time.Duration, on clock.WithDelayedExecution) context.Context {
	late, end := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		if by == 0 {
			end()
			return
		}
		on.AfterFunc(by, end)
	})
	return late
}

// dashboardRoutes name requests to the dashboards' origin in metrics.
var dashboardRoutes = map[string]string{
	"cluster": "ProxyCluster", "service": "ProxyService", "own": "ProxyOwn", "root": "ProxyRoot", "none": "ProxyNone",
}

// ServeHTTP implements http.Handler.
func (d *dashboards) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := d.front.clock.Now()
	id := idOf(r.Header)
	r.Header.Set(requestID, id)
	to := d.front.limit(w, r)
	defer to.finish()
	out := &answer{ResponseWriter: to, id: id}
	out.Header().Set(requestID, id)
	var known proxy.Request
	visit := &visit{}
	r = r.WithContext(context.WithValue(r.Context(), visitKey{}, visit))
	defer func() {
		if known.Code != http.StatusSwitchingProtocols { // a WebSocket goes on, until its connection is closed
			visit.end()
		}
	}()
	defer func() { // also where an answer that was begun is broken off
		asked := request{
			route: dashboardRoutes[known.Route], verb: known.Verb, resource: known.Resource, namespace: known.Namespace, name: known.Name,
			isChange: known.IsChange, isStream: known.IsStream,
		}
		code, took := out.codeFor(r.Context()), d.front.clock.Since(began)
		if known.Code != 0 {
			code = known.Code
		}
		d.front.metrics.answered(asked, code, took)
		if asked.isChange {
			from, _, _ := net.SplitHostPort(r.RemoteAddr) // Go's own text
			d.front.audit(asked, entry{id: id, from: from, code: code, took: took, owner: nameOf(known.Caller)})
		}
	}()
	d.serve(out, r, &known)
}

type visitKey struct{}

// visit is a request to the dashboards' origin, and what keeps its connection open.
type visit struct{ giveBack func() }

// begin keeps the connection open: the caller is known.
func (v *visit) begin(ctx context.Context) {
	if v.giveBack == nil {
		v.giveBack = connections.Use(ctx)
	}
}

func (v *visit) end() {
	if v.giveBack != nil {
		v.giveBack()
	}
}

// visitors identifies callers for the proxy, and keeps their connections open.
type visitors struct{ *access.Kubernetes }

// IdentifyLately implements proxy.Access.
func (v visitors) IdentifyLately(ctx context.Context, r *http.Request) (*access.Caller, error) {
	known, err := connections.Ask(ctx)
	if err != nil {
		why := problem.Of(err)
		return nil, &proxy.Refusal{Code: why.Code, Text: why.Error(), RetryAfter: why.RetryAfter}
	}
	defer known()
	caller, err := v.Kubernetes.IdentifyLately(ctx, r)
	if one, is := ctx.Value(visitKey{}).(*visit); is && err == nil {
		one.begin(ctx)
	}
	return caller, err
}

// serve answers a request. One that panics fails alone, and the log has the stack.
func (d *dashboards) serve(out *answer, r *http.Request, known *proxy.Request) {
	defer func() {
		cause := recover()
		switch {
		case cause == nil:
			return
		case cause != http.ErrAbortHandler: //nolint:errorlint // a value that was thrown is compared as net/http does
			d.front.log.Error("A request panicked", "route", known.Route, "requestID", out.id, "cause", cause, "stack",
				string(debug.Stack()))
		}
		panic(http.ErrAbortHandler) // an answer that is not whole must not look as if it were
	}()
	d.proxy.Serve(out, r, known)
}

// nameOf returns the name of a caller, for audit lines.
func nameOf(caller *access.Caller) <-chan string {
	name := make(chan string, 1)
	if name <- "unauthenticated"; caller != nil {
		<-name
		name <- caller.User().Username
	}
	return name
}

// serving returns what serves a listener, and then waits until the WebSockets have ended, or were ended.
func (d *dashboards) serving(by *http.Server) func(ctx context.Context, listener net.Listener) error {
	return func(ctx context.Context, listener net.Listener) error {
		defer d.proxy.Wait()
		return serve(ctx, listener, by)
	}
}

// shown is what the proxy shows of objects, and changes of them.
type shown struct {
	found
	portal *portal
	cfg    Config
}

// Phases implements proxy.Objects.
func (s shown) Phases(of route.Kind, namespace, name string) []proxy.Phase {
	key := view.Key{Kind: kindOf(of), Namespace: namespace, Name: name}
	object, _, is := s.view.Find(key)
	if !is {
		return nil
	}
	var all []proxy.Phase
	in := explain.Input{Object: object, Clusters: s.view.ClustersOf(key), Pods: s.view.PodsOf(key), Now: s.cfg.Clock.Now()}
	for _, one := range phases.Of(in) {
		all = append(all, proxy.Phase{Name: one.Name, State: one.State, WaitsFor: one.WaitsFor})
	}
	return all
}

// Resume implements proxy.Objects.
func (s shown) Resume(ctx context.Context, caller *access.Caller, of route.Kind, namespace, name string) error {
	ctx, cancel := context.WithTimeout(ctx, resumeWithin)
	defer cancel()
	if why := s.portal.api.Resume(ctx, caller, kindOf(of), namespace, name); why != nil {
		return &proxy.Refusal{Code: why.Code, Text: why.Error(), RetryAfter: why.RetryAfter}
	}
	return nil
}

// resumeWithin is how long the API server may take to resume something.
const resumeWithin = 20 * time.Second

// kindOf returns a kind as the view knows it.
func kindOf(of route.Kind) string {
	if of == route.Service {
		return view.Services
	}
	return view.Clusters
}

// reads is what the pods of services are found by.
type reads struct {
	found
	reader
}

// FindService implements serve.Reader.
func (r reads) FindService(namespace, name string) (*v1beta1.ClusterService, bool) {
	object, _, _ := r.found.view.Find(view.Key{Kind: view.Services, Namespace: namespace, Name: name})
	service, is := object.(*v1beta1.ClusterService)
	return service, is
}

// ClustersOf implements serve.Reader.
func (r reads) ClustersOf(namespace, service string) []*v1beta1.ComputeCluster {
	return r.found.view.ClustersOf(view.Key{Kind: view.Services, Namespace: namespace, Name: service})
}

// PodsOf implements serve.Reader.
func (r reads) PodsOf(cluster types.UID) []*corev1.Pod { return r.found.view.PodsOwnedBy(cluster) }
