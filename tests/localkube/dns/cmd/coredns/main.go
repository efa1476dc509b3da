// Command coredns is CoreDNS with the few plugins that a local cluster needs,
// in the order in which a query passes them.
//
// In: a Corefile. Out: answers for the names of one cluster. It forwards
// nothing: a name outside the cluster is not known here.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	dnsserver.Directives = []string{"errors", "ready", "cache", "kubernetes"}
	coremain.Run()
}
