package netpol

import (
	"fmt"
	"strings"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
)

// renderSets is the input of "ipset restore" that brings every set up to date.
// Each one is filled under a temporary name and swapped in, so that no packet
// ever meets a set that is half full. Leftovers of an attempt that was cut short
// are reused.
func renderSets(sets []Set) string {
	var b strings.Builder
	for _, set := range sets {
		next := set.Name + "t"
		fmt.Fprintf(&b, "create %s %s family %s -exist\n", set.Name, set.Kind, ofSets[set.Family])
		fmt.Fprintf(&b, "create %s %s family %s -exist\nflush %s\n", next, set.Kind, ofSets[set.Family], next)
		for _, member := range set.Members {
			fmt.Fprintf(&b, "add %s %s\n", next, member)
		}
		fmt.Fprintf(&b, "swap %s %s\ndestroy %s\n", next, set.Name, next)
	}
	return b.String()
}

// ofSets is what ipset calls the families.
var ofSets = map[plan.Family]string{plan.IPv4: "inet", plan.IPv6: "inet6"}

// renderDestroy is the input of "ipset restore" that removes sets by name.
func renderDestroy(names []string) string {
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "destroy %s\n", name)
	}
	return b.String()
}

// renderChains is the input of "iptables-restore --noflush", or of its twin for
// IPv6, that makes chains of one family and removes the stale ones, as one
// transaction.
//
// The mangle table is used because packets meet its FORWARD before that of the
// filter table, where kube-proxy accepts some of them ahead of everyone else.
// A chain that a packet returns from has let it pass; leaving one pod, it must
// still pass the chain of the pod that it goes to.
func renderChains(chains []Chain, stale []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*mangle\n:%s - [0:0]\n", entryChain)
	for _, name := range stale {
		// Declared, it is emptied first: a chain with rules cannot go.
		fmt.Fprintf(&b, ":%s - [0:0]\n", name)
	}
	for _, chain := range chains {
		fmt.Fprintf(&b, ":%s - [0:0]\n", chain.Name())
	}
	fmt.Fprintf(&b, "-A %s -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN\n", entryChain)
	for _, chain := range chains {
		fmt.Fprintf(&b, "-A %s %s %s -j %s\n", entryChain, ends[chain.Direction].own, chain.Address, chain.Name())
	}
	for _, chain := range chains {
		renderChain(&b, chain)
	}
	for _, name := range stale {
		fmt.Fprintf(&b, "-X %s\n", name)
	}
	b.WriteString("COMMIT\n")
	return b.String()
}

// ends are the matches for the guarded pod and for its peer at the other end.
var ends = map[Direction]struct{ own, other, otherSet string }{
	Ingress: {"-d", "-s", "src"},
	Egress:  {"-s", "-d", "dst"},
}

func renderChain(b *strings.Builder, chain Chain) {
	name, end := chain.Name(), ends[chain.Direction]
	fmt.Fprintf(b, "-A %s %s %s -j RETURN\n", name, end.other, chain.Address)
	for _, rule := range chain.Rules {
		fmt.Fprintf(b, "-A %s", name)
		if rule.Protocol != "" {
			fmt.Fprintf(b, " -p %s", rule.Protocol)
		}
		if rule.Port != 0 {
			fmt.Fprintf(b, " --dport %d:%d", rule.Port, rule.EndPort)
		}
		switch rule.Kind {
		case PortSet:
			fmt.Fprintf(b, " -m set --match-set %s %s,dst", rule.Set, end.otherSet)
		case AddressSet, NetSet:
			fmt.Fprintf(b, " -m set --match-set %s %s", rule.Set, end.otherSet)
		}
		b.WriteString(" -j RETURN\n")
	}
	fmt.Fprintf(b, "-A %s -j DROP\n", name)
}
