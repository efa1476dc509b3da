package live

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// Forward leads from a port of this machine to a port of a pod by way of its kubelet, as
// kubectl port-forward does, so that no NetworkPolicy is in the way. It gives the address
// here and the way to end it; it fails where the pod does not run.
func (c *Cluster) Forward(ctx context.Context, pod types.NamespacedName, port int) (address string, stop func(), err error) {
	transport, upgrader, err := spdy.RoundTripperFor(c.Config)
	if err != nil {
		return "", nil, fmt.Errorf("prepare to forward a port: %w", err)
	}
	url := c.Kubernetes.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	end, ready, failed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	var said strings.Builder
	forwarder, err := portforward.New(dialer, []string{fmt.Sprintf("0:%d", port)}, end, ready, io.Discard, &said)
	if err != nil {
		return "", nil, fmt.Errorf("prepare to forward port %d of pod %s: %w", port, pod, err)
	}
	go func() { failed <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-failed:
		return "", nil, fmt.Errorf("forward port %d of pod %s: %w: %s", port, pod, err, said.String())
	case <-ctx.Done():
		close(end)
		return "", nil, fmt.Errorf("forward port %d of pod %s: %w", port, pod, ctx.Err())
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		close(end)
		return "", nil, fmt.Errorf("forward port %d of pod %s: %w", port, pod, err)
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local), func() { close(end) }, nil
}

// Lead leads from a port of this machine to an address until it is ended. Connections break when who is behind the address
// ends, and new ones find who comes after it.
func Lead(to string) (address string, end func() error, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("lead to %s: %w", to, err)
	}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return // it was ended
			}
			go join(near, to)
		}
	}()
	return listener.Addr().String(), listener.Close, nil
}

// join passes on what comes, in both ways, until one side ends.
func join(near net.Conn, to string) {
	defer func() { _ = near.Close() }() // the other side sees that it is over
	far, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }() // likewise
	over := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		go func() {
			_, _ = io.Copy(way[0], way[1]) // however it ended, it is over
			over <- struct{}{}
		}()
	}
	<-over
}
