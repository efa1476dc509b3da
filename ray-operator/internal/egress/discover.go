package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Discover returns the rules for an operator that reaches the API server by a config: with the addresses of its own
// machine or pod, and with those of the API server, as configured and as that tells them itself.
func Discover(ctx context.Context, config *rest.Config, local bool) (Rules, error) {
	rules := Rules{Local: local}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return Rules{}, fmt.Errorf("list the operator's own addresses: %w", err)
	}
	for _, one := range own {
		if prefix, err := netip.ParsePrefix(one.String()); err == nil {
			rules.Own = append(rules.Own, plain(prefix.Addr()))
		}
	}
	told, err := toldAddresses(config)
	if err != nil {
		return Rules{}, err
	}
	for _, hostPort := range append(told, configuredAddress(config)) {
		rules.APIServer = append(rules.APIServer, resolve(ctx, hostPort)...)
	}
	return rules, nil
}

// configuredAddress returns host:port of the API server in a config, empty if there is none.
func configuredAddress(config *rest.Config) string {
	at, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return ""
	}
	return net.JoinHostPort(at.Hostname(), portOf(at))
}

func portOf(at *url.URL) string {
	switch {
	case at.Port() != "":
		return at.Port()
	case at.Scheme == "http":
		return "80"
	default:
		return "443"
	}
}

// toldAddresses returns where the API server tells its clients to reach it, each as host:port.
func toldAddresses(config *rest.Config) ([]string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("build a client: %w", err)
	}
	var versions metav1.APIVersions
	if err := client.RESTClient().Get().AbsPath("/api").Do(context.Background()).Into(&versions); err != nil {
		return nil, fmt.Errorf("ask the API server for its addresses: %w", err)
	}
	told := make([]string, len(versions.ServerAddressByClientCIDRs))
	for i, one := range versions.ServerAddressByClientCIDRs {
		told[i] = one.ServerAddress
	}
	return told, nil
}

// resolve returns the addresses of host:port. A name that cannot be looked up has none: nobody can be led there either.
func resolve(ctx context.Context, hostPort string) []netip.AddrPort {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	if err != nil {
		return nil
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil
	}
	all := make([]netip.AddrPort, len(addresses))
	for i, address := range addresses {
		all[i] = netip.AddrPortFrom(plain(address), uint16(number))
	}
	return all
}
