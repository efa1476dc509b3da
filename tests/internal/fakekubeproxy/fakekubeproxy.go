// Package fakekubeproxy leads connections to the endpoints of one Service, as kube-proxy does on a
// node, where there is no node.
//
// In: the Service's EndpointSlices, as the API server tells of them, and a way to connect to
// their addresses. Out: for each connection that is accepted one to an endpoint that is ready,
// chosen by chance, which stays where it is whatever becomes of the endpoint's readiness.
//
// It must never know more than kube-proxy: what changes counts here after a lag, an endpoint
// that refuses is not asked again, and no other one is tried instead.
package fakekubeproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Options are how a Proxy goes about it.
type Options struct {
	// Dial connects to the host:port of an endpoint.
	Dial func(address string) (net.Conn, error)
	// Lag is how long after a change it counts.
	Lag time.Duration
	// Refused, unless it is nil, is told of each endpoint that took no connection. The client is told
	// after it has returned.
	Refused func(endpoint string, why error)
}

// Proxy leads connections to a Service.
type Proxy struct {
	Options
	ctx   context.Context //nolint:containedctx // the life of the connections
	ended sync.WaitGroup

	mu sync.Mutex
	// written are the addresses that connections are led to, version the number of the change
	// that they are of, and noted that of the last one that was seen.
	written        []string
	version, noted int
}

// Follow begins to follow the EndpointSlices of a Service, until the context ends.
func Follow(ctx context.Context, api kubernetes.Interface, service types.NamespacedName, options Options) (*Proxy, error) {
	p := &Proxy{Options: options, ctx: ctx}
	factory := informers.NewSharedInformerFactoryWithOptions(api, 0, informers.WithNamespace(service.Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = discoveryv1.LabelServiceName + "=" + service.Name }))
	informer := factory.Discovery().V1().EndpointSlices().Informer()
	note := func(any) { p.note(informer.GetStore()) }
	handler := cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(any, any) { note(nil) }, DeleteFunc: note}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return nil, fmt.Errorf("watch the EndpointSlices of Service %s: %w", service, err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return p, nil
}

// note writes what the slices say now, after the lag.
func (p *Proxy) note(store cache.Store) {
	var found []string
	for _, obj := range store.List() {
		if slice, ok := obj.(*discoveryv1.EndpointSlice); ok {
			found = append(found, ready(slice)...)
		}
	}
	p.mu.Lock()
	p.noted++
	version := p.noted
	p.mu.Unlock()
	time.AfterFunc(p.Lag, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if version > p.version {
			p.written, p.version = found, version
		}
	})
}

// ready are the addresses of a slice that take connections: of each endpoint that is not known
// to be unready, with the first port.
func ready(slice *discoveryv1.EndpointSlice) []string {
	if len(slice.Ports) == 0 || slice.Ports[0].Port == nil {
		return nil
	}
	var found []string
	for _, endpoint := range slice.Endpoints {
		if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
			for _, address := range endpoint.Addresses {
				found = append(found, net.JoinHostPort(address, strconv.Itoa(int(*slice.Ports[0].Port))))
			}
		}
	}
	return found
}

// Endpoints are the addresses that connections are led to now, in order.
func (p *Proxy) Endpoints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(slices.Values(p.written))
}

// Serve leads those to an endpoint whom a listener accepts, until the context ends. It may be
// called for several.
func (p *Proxy) Serve(listener net.Listener) {
	context.AfterFunc(p.ctx, func() { _ = listener.Close() })
	p.ended.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // closed
			}
			p.ended.Go(func() { p.lead(client) })
		}
	})
}

// Wait waits until nothing of it runs, once the context has ended.
func (p *Proxy) Wait() { p.ended.Wait() }

// lead connects a client with an endpoint, and passes on what either says.
func (p *Proxy) lead(client net.Conn) {
	defer func() { _ = client.Close() }()
	endpoint, err := p.connect()
	if err != nil {
		reset(client)
		return
	}
	defer func() { _ = endpoint.Close() }()
	keep := context.AfterFunc(p.ctx, func() {
		_ = client.Close()
		_ = endpoint.Close()
	})
	defer keep()
	var both sync.WaitGroup
	both.Go(func() { pass(endpoint, client) })
	both.Go(func() { pass(client, endpoint) })
	both.Wait()
}

// connect connects to an endpoint that is chosen by chance.
func (p *Proxy) connect() (net.Conn, error) {
	p.mu.Lock()
	written := p.written
	p.mu.Unlock()
	if len(written) == 0 {
		return nil, errors.New("find an endpoint: there is none")
	}
	address := written[rand.IntN(len(written))]
	endpoint, err := p.Dial(address)
	if err != nil && p.Refused != nil {
		p.Refused(address, err)
	}
	return endpoint, err
}

// pass passes on what one side says, and that it says no more. A side that is cut cuts the
// other one.
func pass(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		reset(to)
		reset(from)
		return
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // it may be closed already
	}
}

// reset ends a connection as one that nobody has.
func reset(connection net.Conn) {
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // it may be closed already
	}
	_ = connection.Close()
}

// Address is where a Service takes connections: its address with its first port. It fails
// where it has none.
func Address(service *corev1.Service) (string, error) {
	if net.ParseIP(service.Spec.ClusterIP) == nil || len(service.Spec.Ports) == 0 {
		return "", fmt.Errorf("find the address of Service %s: it has %q and %d ports", service.Name, service.Spec.ClusterIP, len(service.Spec.Ports))
	}
	return net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(service.Spec.Ports[0].Port))), nil
}
