package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heliostat-dev/heliostat/tests/bench/beside"
	"github.com/heliostat-dev/heliostat/tests/bench/dashboards"
	"github.com/heliostat-dev/heliostat/tests/bench/portals"
	"github.com/heliostat-dev/heliostat/tests/live"
)

const (
	listPath = "/v1/objects?limit=100"
	// asked is how many requests go to the API in each part of a round, one each askEach.
	asked   = 2000
	askEach = 5 * time.Millisecond
	warmUps = 100
	// An upload sends a part each partEach: 1 MiB a second, so that this program leaves time to the server.
	partSize = 64 << 10
	partEach = time.Second / 16
)

// busy asks the API while nothing else goes on, and while uploads and WebSockets are as many as there can be.
func (m *measurement) busy(ctx context.Context) (round dashboards.Busy, err error) {
	server, err := m.startServer(ctx)
	if err != nil {
		return round, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	if err := live.Until(ctx, beside.StartLimit, "the server to have read all objects", func(ctx context.Context) error {
		_, err := m.askOnce(ctx, &http.Client{Transport: &http.Transport{TLSClientConfig: trusting()}}, server)
		return err
	}); err != nil {
		return round, err
	}
	if round.Calm, err = m.ask(ctx, server); err != nil {
		return round, err
	}
	opened, err := m.openAll(ctx, server, maxSockets)
	defer closeAll(opened)
	if err != nil && !errors.Is(err, errFull) {
		return round, err
	}
	round.Open = len(opened)
	if _, err := m.openOne(server, m.tokens[0]); errors.Is(err, errFull) {
		round.Refused++
	}
	ctx, end := context.WithCancel(ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer end()
	var sending atomic.Int32
	for i := range dashboards.Uploads {
		wait.Go(func() { _, _ = m.upload(ctx, server, m.tokens[i%2], &sending) }) // it is broken off at the end
	}
	err = live.Until(ctx, time.Minute, "all uploads to be under way", func(context.Context) error {
		if now := sending.Load(); now < dashboards.Uploads {
			return fmt.Errorf("%d are", now)
		}
		return nil
	})
	if err != nil {
		return round, err
	}
	code, err := m.upload(ctx, server, m.tokens[0], &atomic.Int32{})
	if err == nil && code == http.StatusServiceUnavailable {
		round.Refused++
	}
	if round.Busy, err = m.ask(ctx, server); err != nil {
		return round, err
	}
	round.Uploads = int(sending.Load())
	return round, nil
}

// ask asks the API again and again, at a steady rate.
func (m *measurement) ask(ctx context.Context, of *end) (portals.Times, error) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting(), ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	ticker := time.NewTicker(askEach)
	defer ticker.Stop()
	var took []float64
	for i := range warmUps + asked {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return portals.Times{}, fmt.Errorf("ask the API: %w", ctx.Err())
		}
		each, err := m.askOnce(ctx, client, of)
		if err != nil {
			return portals.Times{}, err
		}
		if i >= warmUps {
			took = append(took, float64(each.Microseconds())/1000)
		}
	}
	return portals.TimesOf(took), nil
}

// askOnce asks the API for a list, and returns how long that took.
func (m *measurement) askOnce(ctx context.Context, client *http.Client, of *end) (time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, of.api+listPath, http.NoBody)
	if err != nil {
		return 0, fmt.Errorf("ask the API: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+m.tokens[0])
	began := time.Now()
	answer, err := client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("ask the API: %w", err)
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close() // it was read
	switch {
	case err != nil:
		return 0, fmt.Errorf("ask the API: %w", err)
	case answer.StatusCode != http.StatusOK:
		return 0, fmt.Errorf("ask the API: it answers %d: %s", answer.StatusCode, body)
	}
	return time.Since(began), nil
}

// upload sends a body that does not end, and returns the code of the answer where there is one.
func (m *measurement) upload(ctx context.Context, to *end, token string, sending *atomic.Int32) (int, error) {
	body := &steady{ctx: ctx, sending: sending}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, to.url(uploadPath), body)
	if err != nil {
		return 0, fmt.Errorf("upload: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := newClient().Do(request)
	if err != nil {
		return 0, fmt.Errorf("upload: %w", err)
	}
	_ = answer.Body.Close() // only the code is wanted
	return answer.StatusCode, nil
}

// steady is a body that goes on at a steady rate until a context ends.
type steady struct {
	ctx     context.Context
	sending *atomic.Int32
	sent    int
}

// Read implements io.Reader. The third part is only asked for when the first has gone out.
func (s *steady) Read(into []byte) (int, error) {
	if err := pause(s.ctx, partEach); err != nil {
		return 0, err
	}
	if s.sent++; s.sent == countedAfter {
		s.sending.Add(1)
	}
	return min(len(into), partSize), nil
}

// countedAfter is after how many parts an upload counts as one that is under way.
const countedAfter = 32
