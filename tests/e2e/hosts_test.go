package e2e

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// A replica of two hosts, and one worker beside it, in a cluster that is then resized, suspended and
// deleted for being idle.
var _ = Describe("a cluster with a replica of two hosts", Ordered, func() {
	var team *env

	BeforeAll(func(ctx SpecContext) {
		team = made(ctx, "hosts", "clusters/hosts.yaml", nil)
	}, NodeTimeout(limit))

	It("tells each host which one it is, and where the other is", func(ctx SpecContext) {
		for i, host := range team.group(ctx, "pair") {
			seen := strings.Fields(exec(ctx, &host, "sh", "-c", "echo $HELIOSTAT_REPLICA_INDEX $HELIOSTAT_HOST_INDEX $HELIOSTAT_REPLICA_HOSTNAMES"))
			Expect(seen).To(HaveLen(3))
			Expect(seen[:2]).To(Equal([]string{"0", fmt.Sprint(i)}))
			for j, name := range strings.Split(seen[2], ",") {
				ip := exec(ctx, &host, "python3", "-c", "import socket, sys; print(socket.gethostbyname(sys.argv[1]), end='')", name)
				Expect(ip).To(Equal(team.group(ctx, "pair")[j].Status.PodIP))
			}
		}
	}, SpecTimeout(limit))

	resized(func() *env { return team })
	suspended(func() *env { return team })
	idles(func() *env { return team })
})
