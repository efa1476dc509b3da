package serve

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// How long what was read of a pod counts. An API server that is away or slow for a moment would stop every service whose
// requests need a new connection; without it, no other pod is started that could get the address.
const (
	// freshFor is for how long nobody asks again, and knownFor for how long it counts where the API server does not answer.
	freshFor = time.Second
	knownFor = 25 * time.Second
	// waitKnown is how long an answer is waited for where the pod is known, and readWithin how long one question lasts.
	waitKnown  = time.Second
	readWithin = 5 * time.Second
	maxKnown   = 10_000
)

// errSilent is that nobody said what the pod is now.
var errSilent = errors.New("read the pod: no answer")

// reads are the addresses of pods as they were last read.
type reads struct {
	clock clock.PassiveClock
	kept  *lru.Cache
	asked singleflight.Group
}

// knownIP is an address of a pod, and when it was read.
type knownIP struct {
	ip netip.Addr
	at time.Time
}

func newReads(now clock.PassiveClock) *reads { return &reads{clock: now, kept: lru.New(maxKnown)} }

// find returns what was read of a pod less than knownFor ago.
func (r *reads) find(uid types.UID) (knownIP, bool) {
	found, _ := r.kept.Get(uid)
	one, is := found.(knownIP)
	return one, is && r.clock.Since(one.at) < knownFor
}

// findIP returns the address of an endpoint's pod.
func (s *Services) findIP(ctx context.Context, to Endpoint) (netip.Addr, error) {
	known, isKnown := s.reads.find(to.UID)
	isKnown = isKnown && s.isStill(to, known.ip)
	if isKnown && s.reads.clock.Since(known.at) < freshFor {
		return known.ip, nil
	}
	if isKnown {
		limited, cancel := context.WithTimeout(ctx, waitKnown)
		defer cancel()
		ip, err := s.readIP(limited, to)
		if errors.Is(err, errSilent) && ctx.Err() == nil {
			return known.ip, nil
		}
		return ip, err
	}
	return s.readIP(ctx, to)
}

// isStill reports whether the cache has an endpoint's pod with an address, and nothing against it.
func (s *Services) isStill(to Endpoint, ip netip.Addr) bool {
	for _, pod := range s.reader.PodsOf(to.Cluster) {
		if pod.UID == to.UID {
			cached, err := s.judge(pod, to)
			return err == nil && cached == ip
		}
	}
	return false
}

// readIP reads the pod of an endpoint, once for all who ask at the same time.
func (s *Services) readIP(ctx context.Context, to Endpoint) (netip.Addr, error) {
	answers := s.reads.asked.DoChan(string(to.UID)+" "+to.Service, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readWithin) // it is for all that wait
		defer cancel()
		at := s.reads.clock.Now()
		pod, err := s.reader.Pod(ctx, to.Namespace, to.Pod)
		switch {
		case apierrors.IsNotFound(err):
			return netip.Addr{}, errOther
		case err != nil:
			return netip.Addr{}, fmt.Errorf("%w: %w", errSilent, err)
		}
		ip, err := s.judge(pod, to)
		if err == nil {
			s.reads.kept.Add(to.UID, knownIP{ip, at})
		}
		return ip, err
	})
	select {
	case <-ctx.Done():
		return netip.Addr{}, fmt.Errorf("%w: %w", errSilent, ctx.Err())
	case answer := <-answers:
		ip, _ := answer.Val.(netip.Addr)
		return ip, answer.Err
	}
}
