// Package faultproxy stands between a client and a server that speak HTTP/1.1 and lets
// happen to their requests what happens in networks: lost, late, doubled or cut requests
// and replies, and answers by someone else.
//
// In: an address to listen at, one to pass on to, a seed, and how often each fault is to
// come. Out: requests and replies, byte for byte where nothing befalls them, and how often
// each fault came. Each client's connection is one connection to the server, so that who
// has two answers over one connection has them from one process.
//
// It must never send anything that no client has sent, and never pass off an answer of
// its own as one of the server: what it makes up is an error or no answer at all.
package faultproxy

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// Fault is what befalls a request.
type Fault int

// The faults.
const (
	// Pass is none.
	Pass Fault = iota
	// DropRequest breaks the connection before the server has seen anything.
	DropRequest
	// TruncateRequest gives the server a part of the request and breaks both connections.
	TruncateRequest
	// DelayRequest delivers late, also to a server whose client has given up meanwhile.
	DelayRequest
	// Duplicate delivers twice, and gives one of the two replies.
	Duplicate
	// Hang never answers; the request is delivered or not.
	Hang
	// DropReply delivers, and resets the connection after a part of the reply, or none.
	DropReply
	// TruncateReply delivers, and ends the connection in order after a part of the reply.
	TruncateReply
	// DelayReply answers late.
	DelayReply
	// Refuse answers 500, 502 or 503 without asking the server.
	Refuse
	// Garbage delivers, and answers with what no such server says.
	Garbage

	faults
)

var names = [faults]string{
	"none", "request dropped", "request cut", "request delayed", "request doubled", "hung",
	"reply dropped", "reply cut", "reply delayed", "refused by another", "garbage for a reply",
}

// String is the fault in words.
func (f Fault) String() string { return names[f] }

// Rates says how probable each fault is for a request, from 0 to 1 and 1 together at most;
// what is left is Pass.
type Rates map[Fault]float64

// Even gives each fault the same chance, of which the sum is whole.
func Even(whole float64) Rates {
	rates := Rates{}
	for f := Pass + 1; f < faults; f++ {
		rates[f] = whole / float64(faults-1)
	}
	return rates
}

// Proxy passes requests on. Its methods may be called at any time.
type Proxy struct {
	listener net.Listener
	server   string
	ctx      context.Context //nolint:containedctx // the life of the connections
	end      context.CancelFunc
	open     sync.WaitGroup

	mu     sync.Mutex
	random *rand.Rand
	rates  Rates
	delay  time.Duration
	counts map[Fault]int
	reply  func(*http.Request)
}

// Listen begins to pass requests on from an address to that of a server, without faults.
// The seed decides which faults come once there are any.
func Listen(address, server string, seed uint64) (*Proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for the requests to %s: %w", server, err)
	}
	p := &Proxy{
		listener: listener, server: server, counts: map[Fault]int{},
		random: rand.New(rand.NewPCG(seed, seed)),
	}
	p.ctx, p.end = context.WithCancel(context.Background())
	p.open.Go(p.accept)
	return p, nil
}

// Address is the host:port that it listens at.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Fail sets how probable each fault is from now on, none for nil, and how long a delay
// takes at most.
func (p *Proxy) Fail(rates Rates, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rates, p.delay = maps.Clone(rates), delay
}

// AtReply has a function called each time that the server has replied and the client does
// not know it yet. It is called with what was asked, by one connection at a time each; nil
// ends it.
func (p *Proxy) AtReply(call func(*http.Request)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reply = call
}

// Counts is how often each fault has come.
func (p *Proxy) Counts() map[Fault]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// Close breaks all connections and waits until nothing of it runs.
func (p *Proxy) Close() {
	p.end()
	_ = p.listener.Close()
	p.open.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.open.Go(func() { (&link{Proxy: p, client: client}).serve() })
	}
}

// choose decides what befalls the next request.
func (p *Proxy) choose() Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, chosen := p.random.Float64(), Pass
	for f := Pass + 1; f < faults; f++ {
		if at -= p.rates[f]; at < 0 {
			chosen = f
			break
		}
	}
	p.counts[chosen]++
	return chosen
}

// draw is a number from 0 up to below n; 0 where n is 0.
func (p *Proxy) draw(n int) int {
	if n <= 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.random.IntN(n)
}

// late waits for a part of the longest delay.
func (p *Proxy) late() {
	p.mu.Lock()
	pause := time.Duration(p.random.Float64() * float64(p.delay))
	p.mu.Unlock()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-p.ctx.Done():
	case <-timer.C:
	}
}

func (p *Proxy) replied(request *http.Request) {
	p.mu.Lock()
	call := p.reply
	p.mu.Unlock()
	if call != nil {
		call(request)
	}
}
