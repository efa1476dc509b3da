package netpol

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
)

// Direction says which end of a connection a chain guards.
type Direction string

// The two directions of a NetworkPolicy, seen from the pod.
const (
	Ingress Direction = "ingress"
	Egress  Direction = "egress"
)

// Ruleset is all that a node has to enforce. It is in a fixed order: the same
// cluster gives a deeply equal Ruleset.
type Ruleset struct {
	// Sets are the peers that Rules refer to, by name.
	Sets []Set
	// Chains hold one entry for each address of an isolated pod of the node and
	// direction. An address without a chain in a direction is open in that direction.
	Chains []Chain
}

// of returns the chains of a family.
func (r Ruleset) of(family plan.Family) []Chain {
	var out []Chain
	for _, chain := range r.Chains {
		if family.Of(chain.Address) {
			out = append(out, chain)
		}
	}
	return out
}

// Chain is what one isolated pod accepts in one direction; everything else that
// opens a connection is dropped. Replies and the pod's traffic to itself pass
// without a rule.
type Chain struct {
	// Pod is namespace/name.
	Pod       string
	Address   netip.Addr
	Direction Direction
	Rules     []Rule
}

// Rule allows what matches all of its fields; an empty field matches anything.
type Rule struct {
	// Set names the Set that the other end must be in.
	Set string
	// Kind is the kind of that Set. A PortSet holds destination ports as well.
	Kind Kind
	// Protocol is "tcp" or "udp".
	Protocol string
	// Port is the first and EndPort the last destination port.
	Port, EndPort uint16
}

// Kind is a type of ipset.
type Kind string

// The kinds of sets, by what a member is.
const (
	// AddressSet has members like 10.244.1.7.
	AddressSet Kind = "hash:ip"
	// NetSet has members like 10.0.0.0/8, or 10.1.0.0/16 followed by
	// " nomatch" for one that is cut out of a wider one.
	NetSet Kind = "hash:net"
	// PortSet has members like 10.244.1.7,tcp:8080, or fd00::7,tcp:8080.
	PortSet Kind = "hash:ip,port"
)

// Set is an ipset.
type Set struct {
	Name    string
	Kind    Kind
	Family  plan.Family
	Members []string
}

// The prefixes that mark what is ours in the node's tables.
const (
	chainPrefix = "LK-"
	setPrefix   = "lk-"
)

// entryChain is where FORWARD enters; it leads to the pods' chains.
const entryChain = chainPrefix + "POLICY"

// Name is the chain's name in the kernel, at most 28 characters long. It stays
// the same for a pod and direction, so that a change replaces the chain. Each
// family has tables of its own: there the pod's chains have the same names.
func (c Chain) Name() string {
	letter := map[Direction]string{Ingress: "I-", Egress: "E-"}[c.Direction]
	return chainPrefix + letter + digest(c.Pod)
}

// setName is the name of the set of a family that key describes, at most 31
// characters long with the suffix of its temporary twin.
func setName(family plan.Family, key string) string {
	return setPrefix + digest(string(family)+" "+key)
}

// digest shortens a text to 16 hexadecimal characters: 64 bits, so that two of
// a few thousand names collide with a probability below 10^-12.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
