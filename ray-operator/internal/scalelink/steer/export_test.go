package steer

import (
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/scalelink/wire"
)

// NewLink makes a Link that connects as a test says.
func NewLink(clock clock.Clock, dial wire.Dialer) *Link { return newLink(clock, dial) }
