package passthrough

import (
	"net/http"
	"sync"
)

// Bounds of what goes on at once. A watch takes about 80 KiB, so all of them fit into what the chart gives a server.
const (
	MaxStreams     = 2000
	MaxStreamsEach = 100
	maxRequests    = 500
	maxEach        = 100
)

// places counts what goes on at once, by whose it is.
type places struct {
	each, all int
	// full are the answers where a caller has no place left, and where nobody has.
	full, fullOfAll *Refusal

	mutex sync.Mutex
	by    map[string]int
	taken int
}

func newStreams() *places {
	return &places{each: MaxStreamsEach, all: MaxStreams, by: map[string]int{},
		full:      later(5, "the caller has 100 watches open, and no more fit: end some, or watch all namespaces at once"),
		fullOfAll: later(5, "the server has as many watches open as it can: try again"),
	}
}

func newRequests() *places {
	return &places{each: maxEach, all: maxRequests, by: map[string]int{},
		full:      later(1, "the caller has 100 requests under way, and no more fit: send fewer at once"),
		fullOfAll: later(1, "the server has as many requests under way as it can: try again"),
	}
}

func later(seconds int, message string) *Refusal {
	return &Refusal{Code: http.StatusTooManyRequests, RetryAfter: seconds, Message: message}
}

// take takes a place until it is given back, or refuses it.
func (p *places) take(key string) (giveBack func(), refusal *Refusal) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.by[key] >= p.each {
		return nil, p.full
	}
	if p.taken >= p.all {
		return nil, p.fullOfAll
	}
	p.by[key]++
	p.taken++
	return func() { p.giveBack(key) }, nil
}

func (p *places) giveBack(key string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.taken--
	if p.by[key]--; p.by[key] == 0 {
		delete(p.by, key)
	}
}

func (p *places) count() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.taken
}
