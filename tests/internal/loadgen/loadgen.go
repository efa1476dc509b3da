// Package loadgen asks a service at constant rates, whatever it answers and however long it
// takes, and counts what became of each request.
//
// In: the address of a service that speaks as examples/serve/echo does, and how many
// requests of each sort a second. Out: a Report, by the phases that its caller names.
//
// It must never ask twice for one request, follow a redirect, wait for an answer before it
// sends the next request, or leave out a request that was not answered. What it measures
// counts from when a request was due, not from when it was sent.
package loadgen

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Sort of a request.
type Sort string

// Sorts of requests.
const (
	// Fresh requests have a connection of their own.
	Fresh Sort = "fresh"
	// Kept requests are sent over connections that are kept. They have a body that cannot be
	// read again, so that no library sends it again behind our back.
	Kept Sort = "kept"
	// Long requests ask the server to take its time.
	Long Sort = "long"
	// Stream requests are answered bit by bit.
	Stream Sort = "stream"
	// WebSocket is a session in which each message comes back.
	WebSocket Sort = "websocket"
	// GRPC calls are answered at once, GRPCStream calls message by message, over channels that are kept.
	GRPC       Sort = "grpc"
	GRPCStream Sort = "grpc-stream"
)

// Sorts are all of them.
func Sorts() []Sort { return []Sort{Fresh, Kept, Long, Stream, WebSocket, GRPC, GRPCStream} }

// Plan is what to send where.
type Plan struct {
	// URL that the paths of requests are put after, without a slash at its end.
	URL string
	// Host of requests, where it is not that of the URL. A certificate must be for it.
	Host string
	// GRPC is the host and port of gRPC calls.
	GRPC string
	// Authority signs the certificate of a URL with https; nil is the machine's own.
	Authority *x509.CertPool
	// Token is sent as Authorization, where there is one.
	Token string
	// Rates are how many requests of a sort are sent a second; a sort without one is left out.
	Rates map[Sort]float64
	// Connections is how many are kept, and how many channels.
	Connections int
	// Timeout is how long a request may take beyond what it asks the server to take. A request
	// that was not answered until then has failed.
	Timeout time.Duration
	// Longest is what long requests ask the server to take: from a third of it to all of it.
	Longest time.Duration
	// Session is how long a WebSocket session or a stream lasts, Pace how long after one of its
	// messages or chunks comes the next.
	Session, Pace time.Duration
}

// Check tells what is wrong with a plan.
func (p *Plan) Check() error {
	switch {
	case p.URL == "":
		return fmt.Errorf("read the plan: there is no URL")
	case p.Timeout <= 0 || p.Longest <= 0 || p.Pace <= 0 || p.Session < p.Pace:
		return fmt.Errorf("read the plan: the timeout, long requests and the pace of sessions must take some time, and sessions no less than their pace")
	case p.Rates[Kept]+p.Rates[GRPC]+p.Rates[GRPCStream] > 0 && p.Connections < 1:
		return fmt.Errorf("read the plan: kept requests need a connection at least")
	case p.Rates[GRPC]+p.Rates[GRPCStream] > 0 && p.GRPC == "":
		return fmt.Errorf("read the plan: gRPC calls need a host and port")
	}
	for sort, rate := range p.Rates {
		if rate < 0 || rate > 10_000 {
			return fmt.Errorf("read the plan: %g requests a second of sort %s: it must be from 0 to 10000", rate, sort)
		}
	}
	return nil
}

// reply is what became of one request.
type reply struct {
	// from is who answered, as far as anything came.
	from answer
	// parts of which its answer consists.
	parts []part
	// opened tells that it was sent over a connection that was not used before.
	opened bool
	err    error
}

// part is something that came, how long it took beyond what it had to take, and when.
type part struct {
	took time.Duration
	at   time.Time
}

// since is a part that comes now and should have come at a time.
func since(due time.Time) part {
	now := time.Now()
	return part{took: now.Sub(due), at: now}
}

// asker sends one request, whose number counts from 0 in its sort. It counts times from when
// the request was due.
type asker interface {
	ask(ctx context.Context, number int, due time.Time) reply
}

// Run sends until the context ends, and waits until each request that was sent is answered or
// has failed. It fails where the address for gRPC is none.
func (p *Plan) Run(ctx context.Context, ledger *Ledger) error {
	channels, err := p.channels()
	if err != nil {
		return err
	}
	defer func() {
		for _, one := range channels {
			_ = one.Close() // every call has ended
		}
	}()
	askers := map[Sort]asker{
		Fresh: plain{plan: p, transports: p.transports(1, false)}, Kept: kept{plain{plan: p, transports: p.transports(p.Connections, true)}},
		Long:   slow{plain{plan: p, transports: p.transports(1, false)}},
		Stream: stream{plain{plan: p, transports: p.transports(1, false)}}, WebSocket: session{plan: p, transport: p.transports(1, false)[0]},
		GRPC: call{p, channels}, GRPCStream: callStream{call{p, channels}},
	}
	var flows sync.WaitGroup
	for sort, asker := range askers {
		if rate := p.Rates[sort]; rate > 0 {
			every := time.Duration(float64(time.Second) / rate)
			flows.Go(func() { flow(ctx, every, func(number int, due time.Time) { ledger.count(sort, due, number, asker) }) })
		}
	}
	flows.Wait()
	return nil
}

// flow sends one request after another when it is due. A request never waits for another.
func flow(ctx context.Context, every time.Duration, send func(number int, due time.Time)) {
	var flying sync.WaitGroup
	defer flying.Wait()
	begin := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for number := 0; ; number++ {
		due := begin.Add(time.Duration(number) * every)
		timer.Reset(time.Until(due))
		select {
		case <-timer.C:
			flying.Go(func() { send(number, due) })
		case <-ctx.Done():
			return
		}
	}
}

// transports are as many connections as may be kept, or one that makes a new one each time.
func (p *Plan) transports(n int, kept bool) []*http.Transport {
	all := make([]*http.Transport, n)
	for i := range all {
		all[i] = &http.Transport{
			DisableKeepAlives: !kept, MaxIdleConnsPerHost: 1, DisableCompression: true,
			TLSClientConfig: &tls.Config{RootCAs: p.Authority, ServerName: p.Host, MinVersion: tls.VersionTLS12},
		}
	}
	return all
}

// authorize adds the token to the header of a request.
func (p *Plan) authorize(header http.Header) {
	if p.Token != "" {
		header.Set("Authorization", "Bearer "+p.Token)
	}
}
