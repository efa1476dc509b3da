package live

import (
	"context"
	"fmt"
	"io"
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
