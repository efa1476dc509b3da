package fakekubeproxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/heliostat-dev/heliostat/tests/internal/fakekubeproxy"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// bed is a Service whose endpoints are servers that say their names, and repeat what they are
// told.
type bed struct {
	*fakekubeproxy.Proxy
	t       *testing.T
	api     *fake.Clientset
	front   string
	servers map[string]string // by address
	refused chan string
}

const lag = 50 * time.Millisecond

func open(t *testing.T, names ...string) *bed {
	t.Helper()
	b := &bed{t: t, api: fake.NewClientset(), servers: map[string]string{}, refused: make(chan string, 1)}
	for i, name := range names {
		b.servers[net.JoinHostPort("10.0.0."+string(rune('1'+i)), "8000")] = b.server(name)
	}
	ctx, stop := context.WithCancel(t.Context())
	proxy, err := fakekubeproxy.Follow(ctx, b.api, types.NamespacedName{Namespace: "default", Name: "echo"}, fakekubeproxy.Options{
		Lag: lag, Dial: func(address string) (net.Conn, error) {
			if b.servers[address] == "" {
				return nil, errors.New("nobody listens there")
			}
			return (&net.Dialer{}).DialContext(t.Context(), "tcp", b.servers[address])
		},
		Refused: func(endpoint string, why error) {
			select {
			case b.refused <- endpoint + ": " + why.Error():
			default: // one is known already
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Proxy = proxy
	listener := b.listen()
	b.front = listener.Addr().String()
	proxy.Serve(listener)
	t.Cleanup(func() {
		stop()
		proxy.Wait()
	})
	return b
}

func (b *bed) listen() net.Listener {
	b.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(b.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func (b *bed) server(name string) string {
	listener := b.listen()
	go func() {
		for {
			accepted, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = accepted.Close() }()
				_, _ = io.WriteString(accepted, name)
				_, _ = io.Copy(accepted, accepted)
			}()
		}
	}()
	return listener.Addr().String()
}

// slice says which of the addresses 10.0.0.1 to 10.0.0.n are ready.
func (b *bed) slice(ready ...bool) {
	b.t.Helper()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "echo-1", Labels: map[string]string{discoveryv1.LabelServiceName: "echo"}},
		Ports:      []discoveryv1.EndpointPort{{Port: new(int32(8000))}},
	}
	for i := range ready {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{"10.0.0." + string(rune('1'+i))}, Conditions: discoveryv1.EndpointConditions{Ready: &ready[i]},
		})
	}
	slices := b.api.DiscoveryV1().EndpointSlices("default")
	_, err := slices.Update(b.t.Context(), slice, metav1.UpdateOptions{})
	if err != nil {
		_, err = slices.Create(b.t.Context(), slice, metav1.CreateOptions{})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// leads waits until the proxy leads to so many.
func (b *bed) leads(n int) {
	b.t.Helper()
	err := live.Until(b.t.Context(), time.Minute, "the endpoints to be known", func(context.Context) error {
		if len(b.Endpoints()) != n {
			return errors.New("they are not")
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// call opens a connection, and gives who answers; empty where nobody does.
func (b *bed) call() (net.Conn, string) {
	b.t.Helper()
	connection, err := (&net.Dialer{}).DialContext(b.t.Context(), "tcp", b.front)
	if err != nil { // it may be reset before it is known to be there
		return nil, ""
	}
	b.t.Cleanup(func() { _ = connection.Close() })
	name := make([]byte, 1)
	if _, err := io.ReadFull(connection, name); err != nil {
		return nil, ""
	}
	return connection, string(name)
}

func TestConnectionsGoToEndpointsThatAreReadyAndStayThere(t *testing.T) {
	b := open(t, "a", "b")
	if _, who := b.call(); who != "" {
		t.Errorf("without endpoints %q answers", who)
	}
	b.slice(true, true)
	b.leads(2)
	if want := []string{"10.0.0.1:8000", "10.0.0.2:8000"}; !slices.Equal(b.Endpoints(), want) {
		t.Errorf("the endpoints are %v, want %v", b.Endpoints(), want)
	}
	kept := map[string]net.Conn{}
	for range 100 {
		connection, who := b.call()
		kept[who] = connection
	}
	if len(kept) != 2 || kept["a"] == nil || kept["b"] == nil {
		t.Fatalf("of a hundred connections all go to %v", kept)
	}
	b.slice(false, true)
	b.leads(1)
	for range 20 {
		if _, who := b.call(); who != "b" {
			t.Errorf("%q answers, which is not ready", who)
		}
	}
	said := make([]byte, 5)
	if _, err := io.WriteString(kept["a"], "still"); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(kept["a"], said); err != nil || string(said) != "still" {
		t.Errorf("over the kept connection comes %q, %v", said, err)
	}
}

func TestAnEndpointThatRefusesIsAFailure(t *testing.T) {
	b := open(t, "a")
	b.slice(true, true) // nobody is the second one
	b.leads(2)
	answers := map[string]int{}
	for range 100 {
		_, who := b.call()
		answers[who]++
	}
	if answers[""] == 0 || answers["a"] == 0 {
		t.Errorf("the answers are %v, want failures among them", answers)
	}
	if have, want := <-b.refused, "10.0.0.2:8000: nobody listens there"; have != want {
		t.Errorf("it tells %q, want %q", have, want)
	}
}

func TestTheAddressOfAService(t *testing.T) {
	for want, spec := range map[string]corev1.ServiceSpec{
		"10.0.0.9:80": {ClusterIP: "10.0.0.9", Ports: []corev1.ServicePort{{Port: 80}, {Port: 90}}},
		"":            {ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 80}}},
	} {
		if have, err := fakekubeproxy.Address(&corev1.Service{Spec: spec}); have != want || (err == nil) != (want != "") {
			t.Errorf("%+v: %q, %v", spec, have, err)
		}
	}
}
