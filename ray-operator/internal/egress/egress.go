// Package egress connects the operator to addresses that tenants and their servers name.
//
// In: rules from the operator's flags, and host:port from a spec, from the answer of another server or from a pod.
// Out: a TCP connection, or a *RefusedError that says which sort of address was refused.
//
// It must never send a packet to an address that its rules refuse. It decides after each look-up of a name, so an
// answer of DNS that changes between two look-ups gains nothing.
package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/metadata"
)

// Rules say where the operator connects to.
type Rules struct {
	// Local lets loopback addresses and Own in: for an operator that runs outside of Kubernetes.
	Local bool
	// Own are the operator's own addresses.
	Own []netip.Addr
	// APIServer is where the API server listens.
	APIServer []netip.AddrPort
	// Allow are the only addresses to connect to; none is all that are not refused.
	Allow []netip.Prefix
}

// RefusedError is a connection that the rules do not allow.
type RefusedError struct {
	// Sort says what sort of address it is, in the plural: "loopback addresses". The address itself is not told, as it
	// may come from a look-up that the reader of the status could not make.
	Sort string
}

func (r *RefusedError) Error() string { return "the operator does not connect to " + r.Sort }

// Connect makes a TCP connection to host:port. Its errors are those of net.Dialer, which may wrap a *RefusedError.
func (r Rules) Connect(ctx context.Context, address string) (net.Conn, error) {
	dialer := net.Dialer{ControlContext: func(_ context.Context, _, at string, _ syscall.RawConn) error {
		where, err := netip.ParseAddrPort(at)
		if err != nil {
			return fmt.Errorf("read the address to connect to: %w", err)
		}
		if sort := r.refuses(where); sort != "" {
			return &RefusedError{Sort: sort}
		}
		return nil
	}}
	return dialer.DialContext(ctx, "tcp", address)
}

// Narrowed returns the rules with the only addresses to connect to.
func (r Rules) Narrowed(allow []netip.Prefix) Rules {
	r.Allow = allow
	return r
}

// refuses returns the sort of address that an address is refused for, empty if it is not.
func (r Rules) refuses(at netip.AddrPort) string {
	address := plain(at.Addr())
	switch {
	case slices.ContainsFunc(r.APIServer, func(server netip.AddrPort) bool { return server == netip.AddrPortFrom(address, at.Port()) }):
		return "the API server"
	case !r.Local && address.IsLoopback():
		return "loopback addresses"
	case !r.Local && slices.Contains(r.Own, address):
		return "its own addresses"
	case address.IsLinkLocalUnicast():
		return "link-local addresses"
	case within(address, metadata.Closed()):
		return "a cloud's metadata addresses"
	case address.IsUnspecified(), address.IsMulticast(), within(address, nowhere):
		return "addresses that no single host has"
	case len(r.Allow) > 0 && !within(address, r.Allow):
		return "addresses outside of the chart's controlStore.allow"
	}
	return ""
}

// nowhere are "this network" and what is reserved, the broadcast address included.
var nowhere = prefixes("0.0.0.0/8", "240.0.0.0/4")

// translated is where NAT64 holds the addresses of IPv4, in their last four bytes.
var translated = netip.MustParsePrefix("64:ff9b::/96")

// plain returns the address of IPv4 that an address of IPv6 stands for, or the address without a zone.
func plain(address netip.Addr) netip.Addr {
	address = address.Unmap().WithZone("")
	if translated.Contains(address) {
		all := address.As16()
		return netip.AddrFrom4([4]byte(all[12:]))
	}
	return address
}

func within(address netip.Addr, ranges []netip.Prefix) bool {
	return slices.ContainsFunc(ranges, func(one netip.Prefix) bool { return one.Contains(address) })
}

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}
