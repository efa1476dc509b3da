package live

// IPv6Label is of the specs that make accept plays on a Kubernetes that has IPv6 alone, and IPv6TestLabel of those that make
// test plays there as well.
const IPv6Label, IPv6TestLabel = "ipv6", "ipv6-test"
