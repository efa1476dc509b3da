package services

import (
	"context"
	"sync"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// proxies answer as a test says.
type proxies struct {
	mu     sync.Mutex
	errors map[string]error
	hung   map[string]bool
	asked  map[string]int
	now    int
	most   int // that were asked at a time
}

func (p *proxies) ask(ctx context.Context, probe Probe) error {
	address := probe.Address
	p.mu.Lock()
	p.asked[address+probe.Path]++
	p.now++
	p.most = max(p.most, p.now)
	err, hung := p.errors[address], p.hung[address]
	p.mu.Unlock()
	if hung {
		<-ctx.Done()
		err = &headclient.Error{Kind: headclient.Timeout, Act: "ask", Err: ctx.Err()}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now--
	return err
}

func (p *proxies) set(change func(*proxies)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}
