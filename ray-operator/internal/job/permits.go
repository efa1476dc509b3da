package job

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
)

// permits remembers up to when something of each job need not be looked at again. The zero value is ready.
type permits struct {
	mu    sync.Mutex
	until map[types.UID]time.Time
}

func (p *permits) keepUntil(job types.UID, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil {
		p.until = map[types.UID]time.Time{}
	}
	for other, end := range p.until {
		if until.Sub(end) > reconcile.Recheck {
			delete(p.until, other) // it has been over for long
		}
	}
	p.until[job] = until
}

func (p *permits) lastUntil(job types.UID) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.until[job]
}
