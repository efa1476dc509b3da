package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// follower watches lines as a portal does: what it has follows from the events, and after a bye it goes on at another server.
type follower struct {
	token, path string
	serving     *atomic.Pointer[[]*portal]
	turn        int
	// at is where it watches, once the answer has begun.
	at      atomic.Pointer[portal]
	isReady atomic.Bool

	mutex sync.Mutex
	// has are the lines by kind and name.
	has  map[string]shownLine
	last string
	// syncs are why full states came.
	syncs  []string
	byes   int
	faults []string
}

// shownLine is what is compared of a line. GPUs change with the cluster's pods, and not with its resourceVersion.
type shownLine struct {
	Kind, Name, ResourceVersion string
	GPUs                        int
}

// lineChange is the data of an event.
type lineChange struct {
	Line   shownLine
	Detail string
}

// follow watches until the context ends. begun is called when the first answer has begun.
func (f *follower) follow(ctx context.Context, begun func()) {
	f.has = map[string]shownLine{}
	begin := sync.OnceFunc(begun)
	defer begin()
	for ctx.Err() == nil {
		serving := *f.serving.Load()
		p := serving[f.turn%len(serving)]
		if err := f.watch(ctx, p, begin); err != nil && ctx.Err() == nil {
			f.fault(err.Error())
			return
		}
	}
}

// watch watches at one server until it says bye.
func (f *follower) watch(ctx context.Context, p *portal, begun func()) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+f.path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+f.token)
	f.mutex.Lock()
	if f.last != "" {
		r.Header.Set("Last-Event-ID", f.last)
	}
	f.mutex.Unlock()
	var came *http.Response
	err = live.Until(ctx, limit, "a server to answer", func(context.Context) (err error) { // 503 says to ask again
		//nolint:bodyclose // it is closed here where it is refused, and below where it is read
		if came, err = p.client.Do(r); err == nil && came.StatusCode != http.StatusOK {
			err = errors.Join(fmt.Errorf("a watch is answered with %s", came.Status), came.Body.Close())
		}
		return err
	})
	if err != nil {
		return err
	}
	defer func() { _ = came.Body.Close() }()
	f.at.Store(p)
	begun()
	kind := ""
	lines := bufio.NewReader(came.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return fmt.Errorf("a watch ends without a bye: %w", err)
		}
		switch field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); field {
		case "id":
			f.mutex.Lock()
			f.last = value
			f.mutex.Unlock()
		case "event":
			kind = value
		case "data":
			if f.take(kind, value); kind == "bye" {
				return nil
			}
		}
	}
}

// take goes by an event.
func (f *follower) take(kind, data string) {
	var is lineChange
	if err := json.Unmarshal([]byte(data), &is); err != nil {
		f.fault("an event cannot be read: " + err.Error())
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	key := is.Line.Kind + "/" + is.Line.Name
	before, isThere := f.has[key]
	switch kind {
	case "sync":
		f.syncs = append(f.syncs, is.Detail)
		clear(f.has)
	case "ready":
		f.isReady.Store(true)
	case "put":
		if isThere && (is.Line == before || numberOf(is.Line.ResourceVersion) < numberOf(before.ResourceVersion)) {
			f.faults = append(f.faults, fmt.Sprintf("%+v came after %+v", is.Line, before))
		}
		f.has[key] = is.Line
	case "del":
		if !isThere {
			f.faults = append(f.faults, key+" is gone and was not there")
		}
		delete(f.has, key)
	case "bye":
		f.byes++
	}
}

// knows reports whether it has what rolling.touch made.
func (f *follower) knows(name string) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.has["clusters/"+name].GPUs == 1 && f.has["jobs/"+name].Name != "" && f.has["schedules/"+name].Name != "" &&
		f.has["services/"+name].Name != ""
}

func (f *follower) fault(what string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.faults = append(f.faults, what)
}

func (f *follower) faultsSoFar() []string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return slices.Clone(f.faults)
}

func numberOf(version string) uint64 {
	n, _ := strconv.ParseUint(version, 10, 64) // zero where it is none: then what comes next is judged
	return n
}
