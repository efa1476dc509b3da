package live

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Divider is a small gateway for one HTTPRoute: it divides requests between the Services of its
// first rule by their weights, exactly, and between a Service's endpoints in turn, and says in
// the route's status what it goes by. It knows neither hostnames nor paths.
type Divider struct {
	// URL is where it answers.
	URL     string
	cluster *Cluster
	route   types.NamespacedName
	server  *http.Server

	mu       sync.Mutex
	backends []Backend
}

// Backend is a Service with its weight and its endpoints, as host:port.
type Backend struct {
	Service   string
	Weight    int
	Endpoints []string
	// credit is what it is owed, turn which endpoint is next.
	credit, turn int
}

// Divide starts a gateway for a route that may come later. It ends with the context.
func (c *Cluster) Divide(ctx context.Context, route types.NamespacedName) (*Divider, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a gateway: %w", err)
	}
	d := &Divider{URL: "http://" + listener.Addr().String(), cluster: c, route: route}
	// Each request has a connection of its own: what becomes of kept ones is for a real gateway to show.
	transport := &http.Transport{DisableKeepAlives: true}
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", endpointOf(r.In.Context()), r.In.Host
	}}
	d.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		endpoint := d.next()
		if endpoint == "" {
			http.Error(w, "nobody to lead to", http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), endpointKey{}, endpoint)))
	})}
	go func() { _ = d.server.Serve(listener) }() // it ends by being closed
	go d.follow(ctx)
	return d, nil
}

type endpointKey struct{}

func endpointOf(ctx context.Context) string {
	endpoint, _ := ctx.Value(endpointKey{}).(string)
	return endpoint
}

// follow goes by the route and its endpoints as they change, until the context ends.
func (d *Divider) follow(ctx context.Context) {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		_ = d.look(ctx) // what fails is seen the next time
		select {
		case <-ctx.Done():
			_ = d.server.Close() // who still asks has had their time
			return
		case <-ticker.C:
		}
	}
}

// look takes over what there is, and then says so.
func (d *Divider) look(ctx context.Context) error {
	var route gatewayv1.HTTPRoute
	if err := d.cluster.Get(ctx, d.route, &route); err != nil {
		return fmt.Errorf("read HTTPRoute %s: %w", d.route, err)
	}
	var backends []Backend
	for _, ref := range route.Spec.Rules[0].BackendRefs {
		endpoints, err := d.endpoints(ctx, string(ref.Name))
		if err != nil {
			return err
		}
		backends = append(backends, Backend{Service: string(ref.Name), Weight: int(*ref.Weight), Endpoints: endpoints})
	}
	d.Set(backends)
	if parents := route.Status.Parents; len(parents) == 1 && len(parents[0].Conditions) > 0 && parents[0].Conditions[0].ObservedGeneration == route.Generation {
		return nil
	}
	return d.cluster.TakeRoute(ctx, &route)
}

// endpoints are those of a Service that are ready, as its slices have them.
func (d *Divider) endpoints(ctx context.Context, service string) ([]string, error) {
	var slicesOf discoveryv1.EndpointSliceList
	if err := d.cluster.List(ctx, &slicesOf, client.InNamespace(d.route.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service}); err != nil {
		return nil, fmt.Errorf("list the endpoints of Service %s: %w", service, err)
	}
	found := map[string]bool{}
	for _, slice := range slicesOf.Items {
		for _, endpoint := range slice.Endpoints {
			if ready := endpoint.Conditions.Ready; ready != nil && *ready && len(slice.Ports) > 0 {
				found[net.JoinHostPort(endpoint.Addresses[0], strconv.Itoa(int(*slice.Ports[0].Port)))] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// Set goes by other backends from now on. Where only endpoints changed, what each is owed stays.
func (d *Divider) Set(backends []Backend) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range backends {
		for _, former := range d.backends {
			if former.Service == backends[i].Service && former.Weight == backends[i].Weight {
				backends[i].credit, backends[i].turn = former.credit, former.turn
			}
		}
	}
	d.backends = backends
}

// next is the endpoint of the next request, empty where there is none: that of the backend that
// is owed most, which gives up what all get together.
func (d *Divider) next() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var chosen *Backend
	whole := 0
	for i := range d.backends {
		one := &d.backends[i]
		one.credit += one.Weight
		whole += one.Weight
		if one.Weight > 0 && (chosen == nil || one.credit > chosen.credit) {
			chosen = one
		}
	}
	if chosen == nil || len(chosen.Endpoints) == 0 {
		return ""
	}
	chosen.credit -= whole
	chosen.turn++
	return chosen.Endpoints[chosen.turn%len(chosen.Endpoints)]
}
