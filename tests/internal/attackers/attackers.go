// Package attackers stands for callers of the server for portals who wish nobody well: some without a token, some with the
// token of an account without rights, and a tenant with a namespace of their own.
//
// In: orders, which say where the server listens and how many callers there are. Out: a report of what was sent, and how it
// was answered. Calm callers send as many requests, and each is refused for want of a token.
//
// It must never connect to anything but the server, nor judge an answer.
package attackers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Listeners of the server.
const (
	REST       = "REST"
	GRPC       = "gRPC"
	Dashboards = "dashboards"
)

// Listeners returns all of them.
func Listeners() []string { return []string{REST, GRPC, Dashboards} }

// Refused is the sort of requests of calm attackers.
const Refused = "refused for want of a token"

// Sorts returns the names of all sorts of requests that hostile attackers send.
func Sorts() []string {
	all := [][]attack{accountEnds, accountHolds, tenantEnds, tenantHolds}
	for _, listener := range Listeners() {
		ends, holds := withoutToken(listener)
		all = append(all, ends, holds)
	}
	var names []string
	for _, one := range slices.Concat(all...) {
		names = append(names, one.name)
	}
	return names
}

// Orders say what attackers do.
type Orders struct {
	// Addresses are those of the server's listeners, host:port.
	Addresses map[string]string
	// Anonymous is how many connections without a token each listener has at once.
	Anonymous int
	// Accounts are tokens of accounts without rights, and Tenant that of an editor of Namespace, whose clusters and presets are
	// hostile as well.
	Accounts  []string
	Tenant    string
	Namespace string
	// Clusters of the tenant, whose heads answer without end.
	Clusters []string
	// IsCalm has each request refused for want of a token, one a connection.
	IsCalm bool
	// PerSecond is how many requests all attackers send together; 0 is as many as they can.
	PerSecond int
	// Seconds is how long they go on. Where it is 0, each sends Rounds requests one after the other, and they end with those that
	// end by themselves.
	Seconds, Rounds int
	// Streams is how many requests those who never end theirs have on a connection.
	Streams int
}

// Report is what attackers did.
type Report struct {
	// Requests counts all that were sent, and Seconds is how long that took.
	Requests int     `json:"requests"`
	Seconds  float64 `json:"seconds"`
	// Answers count the answers to each sort of requests: a code of HTTP or gRPC, or "none" where the connection ended before one.
	Answers map[string]map[string]int `json:"answers"`
}

// PerSecond returns how many requests were sent in a second.
func (r Report) PerSecond() float64 { return float64(r.Requests) / max(r.Seconds, 1e-3) }

// Obey reads orders as JSON, and writes the report when they are done.
func Obey(in io.Reader, out io.Writer) error {
	var orders Orders
	if err := json.NewDecoder(in).Decode(&orders); err != nil {
		return fmt.Errorf("read the orders of attackers: %w", err)
	}
	report, err := Run(context.Background(), orders)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(report); err != nil {
		return fmt.Errorf("write what attackers did: %w", err)
	}
	return nil
}

// siege is one run of all attackers.
type siege struct {
	Orders
	turns <-chan time.Time

	mutex  sync.Mutex
	report Report
}

// Run attacks until the orders are done.
func Run(ctx context.Context, orders Orders) (Report, error) {
	s := &siege{Orders: orders, report: Report{Answers: map[string]map[string]int{}}}
	if orders.Seconds == 0 && orders.Rounds == 0 {
		return s.report, errors.New("attack the server: the orders have no end")
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	if orders.Seconds > 0 {
		ctx, end = context.WithTimeout(ctx, time.Duration(orders.Seconds)*time.Second)
		defer end()
	}
	if orders.PerSecond > 0 {
		ticker := time.NewTicker(time.Second / time.Duration(orders.PerSecond))
		defer ticker.Stop()
		s.turns = ticker.C
	}
	began := time.Now()
	var senders, holders sync.WaitGroup
	for number, one := range s.attackers() {
		one.number = number
		if one.holds && !s.IsCalm {
			holders.Go(func() { one.attack(ctx) })
			continue
		}
		senders.Go(func() { one.attack(ctx) })
	}
	senders.Wait()
	if orders.Seconds > 0 {
		<-ctx.Done() // also where each sender waits for nothing
	}
	end()
	holders.Wait()
	s.report.Seconds = time.Since(began).Seconds()
	return s.report, nil
}

// attackers are all callers. Half of those without a token never end their requests, and so does each account beside those that
// it ends.
func (s *siege) attackers() []*attacker {
	var all []*attacker
	for _, listener := range Listeners() {
		ends, holds := withoutToken(listener)
		for i := range s.Anonymous {
			one := &attacker{siege: s, listener: listener, holds: i%2 == 1, attacks: ends}
			if one.holds {
				one.attacks = holds
			}
			all = append(all, one)
		}
	}
	for _, token := range s.Accounts {
		all = append(all, &attacker{siege: s, listener: REST, token: token, attacks: accountEnds},
			&attacker{siege: s, listener: REST, token: token, holds: true, attacks: accountHolds})
	}
	if s.Tenant == "" {
		return all
	}
	all = append(all, &attacker{siege: s, listener: REST, token: s.Tenant, attacks: tenantEnds})
	for range 4 * len(tenantHolds) {
		all = append(all, &attacker{siege: s, listener: REST, token: s.Tenant, holds: true, attacks: tenantHolds})
	}
	return all
}

// attacker is a caller with one connection at a time, from an address of its own.
type attacker struct {
	*siege
	number          int
	listener, token string
	// holds is that its requests do not end by themselves.
	holds   bool
	attacks []attack
}

// attack is a sort of requests.
type attack struct {
	name string
	// listener is where they are sent; empty is the attacker's.
	listener string
	send     func(ctx context.Context, a *attacker) (answer string)
}

// attack sends one sort of requests after the other. Neighbours begin with different ones.
func (a *attacker) attack(ctx context.Context) {
	for round := 0; a.Seconds > 0 || round < a.Rounds; round++ {
		one := a.attacks[(a.number/2+round)%len(a.attacks)]
		if a.IsCalm {
			one = attack{name: Refused, listener: one.listener, send: refused}
		}
		if !a.takeTurn(ctx) {
			return
		}
		on := *a
		if one.listener != "" {
			on.listener = one.listener
		}
		if answer := one.send(ctx, &on); answer != "" {
			a.note(one.name, answer)
		}
	}
}

// takeTurn waits for the turn of a request, which it counts, and reports whether there is one.
func (s *siege) takeTurn(ctx context.Context) bool {
	if s.turns != nil {
		select {
		case <-s.turns:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return false
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.report.Requests++
	return true
}

func (s *siege) note(name, answer string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.report.Answers[name] == nil {
		s.report.Answers[name] = map[string]int{}
	}
	s.report.Answers[name][answer]++
}
