package live

import (
	"context"
	"maps"
	"slices"

	"github.com/heliostat-dev/heliostat/tests/internal/packets"
)

// Capture searches what passes between pods of the local Kubernetes that LOCALKUBE and LOCALKUBE_NAME name, until it is
// closed. It captures in the networks of all nodes, as each pod's interface leads there: so it sees what pods of one
// node or of two, the operator, kubelets and the API server say to pods.
//
// It does not see what processes of one pod say to each other, a port that a kubelet forwards among them. A node that
// boots again meanwhile has a new network, in which nothing is captured.
func Capture(ctx context.Context) (*packets.Capture, error) {
	networks, err := Networks(ctx)
	if err != nil {
		return nil, err
	}
	return packets.Open(slices.Collect(maps.Values(networks))...)
}
