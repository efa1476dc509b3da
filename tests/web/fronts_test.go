package web

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// Host names that only gateways know the server by.
const (
	pageHost     = "page.example.test"
	clustersHost = "clusters.example.test"
)

// edge is the Gateway of the chart's routes. The Secret outer has the certificate that browsers see, of an Ingress too.
const edge = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: tests}
spec: {controllerName: ` + live.TraefikController + `}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  gatewayClassName: tests
  listeners: [{name: https, protocol: HTTPS, port: 443, tls: {certificateRefs: [{name: outer}]}}]
`

// TestFronts opens the page and a dashboard by what the chart makes for gateways that others wrote: Traefik follows its
// Ingresses at one address, and its HTTPRoutes with their BackendTLSPolicies at another one.
func TestFronts(t *testing.T) {
	cluster, err := live.Open(t.Context())
	must(t, err)
	must(t, cluster.InstallGatewayAPI(t.Context(), "../..", time.Minute))
	b := makeBed(t, front{page: "https://" + pageHost, dashboards: "https://" + clustersHost, settings: []string{
		"--set", "server.url=https://" + pageHost, "--set", "server.dashboards.enabled=true,server.dashboards.host=" + clustersHost,
		"--set", "server.ingress.enabled=true,server.ingress.tlsSecretName=outer",
		"--set", "server.httpRoute.enabled=true,server.httpRoute.parentRefs[0].name=edge",
	}})
	b.makeEdge()
	b.startOther((&origins{}).head("training"))
	program, err := live.BuildTraefik(t.Context(), "../..")
	must(t, err)
	token := b.account("anna", "edit", b.namespace)
	for at, follows := range map[string][]string{
		"10.0.0.4": {
			"Ingress", "--providers.kubernetesingress=true", "--entrypoints.https.http.tls=true",
			"--serverstransport.rootcas=" + b.file("tls.crt"),
		},
		"10.0.0.5": {"HTTPRoute", "--providers.kubernetesgateway=true"},
	} {
		b.startTraefik(program, at+":443", follows[1:]...)
		settings, err := json.Marshal(map[string]string{
			"url": b.page, "dashboards": b.dashboards, "namespace": b.namespace, "editor": token, "front": follows[0], "at": at,
		})
		must(t, err)
		t.Run(follows[0], func(t *testing.T) { b.play(t, "fronts.mjs", settings) })
	}
}

// makeEdge makes what a cluster has that is no part of the chart: a Gateway with a certificate, and endpoints of the
// server, which has no pod here. The ConfigMap with its authority is the operator's to fill.
func (b *bed) makeEdge() {
	b.t.Helper()
	ctx := b.t.Context()
	certificate, err := os.ReadFile(b.file("tls.crt"))
	must(b.t, err)
	key, err := os.ReadFile(b.file("tls.key"))
	must(b.t, err)
	must(b.t, b.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: live.ReleaseNamespace, Name: "outer"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
	}))
	server := live.ReleaseName + "-server"
	must(b.t, b.Update(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: live.ReleaseNamespace, Name: server + "-tls"}, Data: map[string]string{"ca.crt": string(certificate)},
	}))
	for service, at := range map[string]string{server: serverAddress, server + "-dashboards": dashboardsAddress} {
		must(b.t, b.Create(ctx, endpointOf(b.t, service, at)))
	}
	must(b.t, b.Apply(ctx, live.ReleaseNamespace, []byte(edge)))
}

// endpointOf returns a slice by which the port https of a Service leads to an address.
func endpointOf(t *testing.T, service, address string) *discoveryv1.EndpointSlice {
	t.Helper()
	at, err := netip.ParseAddrPort(address)
	must(t, err)
	name, port, isReady := "https", int32(at.Port()), true
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: live.ReleaseNamespace, Name: service + "-of-tests", Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{at.Addr().String()}, Conditions: discoveryv1.EndpointConditions{Ready: &isReady},
		}},
		Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
	}
}

// startTraefik starts Traefik in the island, and waits until it listens.
func (b *bed) startTraefik(program, address string, flags ...string) {
	b.t.Helper()
	command := exec.Command(program, append(append(live.QuietTraefik(), "--entrypoints.https.address="+address), flags...)...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	must(b.t, b.island.Do(command.Start))
	b.t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it was killed
	})
	must(b.t, live.Until(b.t.Context(), time.Minute, "Traefik to listen", func(context.Context) error {
		connection, err := b.island.Dial(address)
		if err != nil {
			return err
		}
		return connection.Close()
	}))
}
