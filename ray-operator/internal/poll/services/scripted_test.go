package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/polltest"
)

var cluster = types.NamespacedName{Namespace: "team", Name: "demo"}

// verb is a call that a head can be asked to answer.
type verb string

const (
	session verb = "Session"
	serving verb = "Serving"
	deploy  verb = "Deploy"
	read    verb = "LastLine"
	closing verb = "CloseKept"
)

type fault = polltest.Fault

// scripted is a head that answers as a test says, and does what Serve does. One that is blind never says more than twice in a
// row that it has no Serve.
type scripted struct {
	polltest.Script[verb]
	session string
	running bool
	apps    map[string]headclient.Application
	more    func(*headclient.Serving) // changes what is said
	lines   map[headclient.Log]string

	refuses string                     // what a configuration must not have in it
	silent  int                        // how often in a row it said that it has no Serve
	times   []time.Time                // of reads of what Serve does
	puts    []string                   // documents that reached the head
	showed  map[string]json.RawMessage // what others had when it was last read
	closes  []string                   // IDs for which connections were to be closed
}

func newHead() *scripted {
	head := &scripted{
		Script: polltest.NewScript[verb](answers), session: "s1", apps: map[string]headclient.Application{}, lines: map[headclient.Log]string{},
	}
	head.ReadsToken = true
	return head
}

func failure(kind headclient.Kind) error { return polltest.Failure(kind) }

// talk is a conversation with a scripted head.
type talk struct {
	*polltest.Talk[verb]
	head *scripted
}

// do brings a call to the head.
func (c *talk) do(ctx context.Context, verb verb, process func(f fault) error) error {
	return c.Do(ctx, verb, "", process)
}

func (c *talk) Session(ctx context.Context) (who headclient.Session, err error) {
	err = c.do(ctx, session, func(fault) error {
		who = headclient.Session{Name: c.head.session, Version: "2.60.0"}
		return nil
	})
	return who, err
}

func (c *talk) Serving(ctx context.Context) (said headclient.Serving, err error) {
	err = c.do(ctx, serving, func(f fault) error {
		h := c.head
		h.times = append(h.times, time.Now())
		h.showed = map[string]json.RawMessage{}
		if h.silent++; !h.running || f.Blind && h.silent < believed {
			return nil
		}
		h.silent = 0
		said = headclient.Serving{Running: true, Applications: maps.Clone(h.apps)}
		for name, app := range h.apps {
			if app.State == headclient.ApplicationDeleting {
				delete(h.apps, name) // it is gone when it is asked for again
			} else if app.Declarative {
				h.showed[name] = app.Deployed
			}
		}
		if h.more != nil {
			h.more(&said)
		}
		return nil
	})
	return said, err
}

func (c *talk) Deploy(ctx context.Context, config json.RawMessage) error {
	return c.do(ctx, deploy, func(fault) error {
		h := c.head
		h.puts = append(h.puts, string(config))
		asked, err := named(config)
		if err == nil && h.refuses != "" && strings.Contains(string(config), h.refuses) {
			err = errors.New("refused")
		}
		if err != nil {
			return &headclient.Error{Kind: headclient.Refused, Act: "deploy", Err: err}
		}
		for name, shown := range h.showed {
			if theirs(name) && string(asked[name]) != string(shown) {
				h.Break("%s was shown, and %q deployed", name, asked[name])
			}
		}
		h.running = true
		for name, app := range h.apps {
			if app.Declarative && asked[name] == nil {
				app.State = headclient.ApplicationDeleting
				h.apps[name] = app
			}
		}
		for name, config := range asked {
			h.apps[name] = application(name, string(config))
		}
		return nil
	})
}

// CloseKept is done when it is asked for the second time.
func (c *talk) CloseKept(ctx context.Context, closed headclient.Closing) (done bool, err error) {
	err = c.do(ctx, closing, func(fault) error {
		c.head.closes = append(c.head.closes, closed.ID)
		done = len(c.head.closes) > 1
		return nil
	})
	return done, err
}

func (c *talk) LastLine(ctx context.Context, log headclient.Log) (text string, err error) {
	err = c.do(ctx, read, func(fault) error {
		text = c.head.lines[log]
		return nil
	})
	return text, err
}

// theirs reports whether an application is not ours, by its name.
func theirs(name string) bool { return name[0] == 't' }

// application is one that runs, and came by a configuration.
func application(name, config string) headclient.Application {
	form, _ := parse(json.RawMessage(config))
	return headclient.Application{
		Name: name, State: headclient.ApplicationRunning, RoutePrefix: form.route, Declarative: true, Deployed: json.RawMessage(config),
	}
}

// named are the applications of a whole configuration by their names.
func named(config json.RawMessage) (map[string]json.RawMessage, error) {
	var document struct {
		Applications []json.RawMessage `json:"applications"`
	}
	if err := json.Unmarshal(config, &document); err != nil {
		return nil, err
	}
	all := map[string]json.RawMessage{}
	for _, raw := range document.Applications {
		form, err := parse(raw)
		if err != nil {
			return nil, err
		}
		if all[form.name] != nil {
			return nil, fmt.Errorf("%s comes twice", form.name)
		}
		all[form.name] = raw
	}
	return all, nil
}

// set changes the head.
func (s *scripted) set(change func(*scripted)) {
	s.Lock()
	defer s.Unlock()
	change(s)
}

// add puts applications there.
func (s *scripted) add(apps ...headclient.Application) {
	s.set(func(s *scripted) {
		s.running = true
		for _, app := range apps {
			s.apps[app.Name] = app
		}
	})
}

// replace puts another head in its place, which knows nothing.
func (s *scripted) replace(name string) {
	s.set(func(s *scripted) {
		s.Life++
		s.session, s.running, s.apps = name, false, map[string]headclient.Application{}
	})
}

// asked is how often the head was read and deployed to.
func (s *scripted) asked() (reads, puts int) {
	s.Lock()
	defer s.Unlock()
	return len(s.times), len(s.puts)
}

// counts are how many calls of each sort came since they were last asked for.
func (s *scripted) counts() map[verb]int {
	counts := map[verb]int{}
	for _, call := range s.Verbs() {
		counts[call]++
	}
	return counts
}

// names are those of the applications that the head has.
func (s *scripted) names() (names []string) {
	s.set(func(s *scripted) { names = slices.Sorted(maps.Keys(s.apps)) })
	return names
}

// bench is a running Watch over scripted heads by their addresses.
type bench struct {
	*Watch
	*polltest.Bench
	t       *testing.T
	heads   polltest.Heads[*scripted]
	proxies proxies
}

// play runs a test in a bubble of time with a started Watch, and holds it to leave no
// goroutine and no connection, and to break no rule of a conversation.
func play(t *testing.T, test func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start()
		test(t, b)
		for _, problem := range b.close() {
			t.Error(problem)
		}
	})
}

func newBench(t *testing.T) *bench {
	return &bench{t: t, proxies: proxies{errors: map[string]error{}, hung: map[string]bool{}, asked: map[string]int{}}}
}

// close ends the Watch, and tells what is left of it and which rules were broken.
func (b *bench) close() []string {
	b.End()
	return b.heads.Problems()
}

// start starts a Watch that knows nothing: an operator that has just come.
func (b *bench) start() {
	b.Watch = New(func(at Place) (Head, error) {
		head, err := b.heads.At(at.Address)
		if err != nil {
			return nil, err
		}
		return &talk{head.Dial(0, at.Token), head}, nil
	}, b.proxies.ask, clock.RealClock{})
	b.Bench = polltest.Start(b.t, b.Watch)
}

func service(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "team", Name: name}
}

// head adds a head at an address.
func (b *bench) head(address string) *scripted { return b.heads.Put(address, newHead()) }

// Want says what services want of a cluster, in place of all that was said of it.
func (b *bench) Want(cluster types.NamespacedName, all wishes) {
	services := inOrder(all.parts)
	if len(services) == 0 {
		services = append(services, us)
	}
	for _, service := range services {
		b.Watch.Want(cluster, service, Want{At: all.At, Config: all.parts[service], Probes: all.Probes, Close: all.Close, Every: all.Every})
	}
	b.ForgetAll(func(of key) bool { return of.cluster == cluster && !slices.Contains(services, of.service) })
}

// Forget ends what all services want of a cluster.
func (b *bench) Forget(cluster types.NamespacedName) {
	b.ForgetAll(func(of key) bool { return of.cluster == cluster })
}

// Last is what our service knows of a cluster.
func (b *bench) Last(cluster types.NamespacedName, head types.UID) (Answer, bool) {
	return b.Watch.Last(cluster, us, head)
}

// first waits for the first turn's end.
func (b *bench) first() {
	for range 100 {
		if _, ok := b.Last(cluster, "head"); ok {
			return
		}
		b.Pass(20 * time.Millisecond)
	}
	b.t.Fatal("nothing was heard")
}

// last is what our service knows of the cluster.
func (b *bench) last() Answer { return b.lastOf(us) }

// lastOf is what a service knows of the cluster.
func (b *bench) lastOf(service types.NamespacedName) Answer {
	b.t.Helper()
	answer, ok := b.Watch.Last(cluster, service, "head")
	if !ok {
		b.t.Fatal("nothing is known of the head")
	}
	return answer
}

// ask is how a test's application is asked for.
func ask(name string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"name":%q,"route_prefix":"/%s","import_path":"m:%s"}`, name, name, name))
}

// config wants applications of a digest.
func config(digest string, names ...string) *Config {
	config := &Config{Digest: digest, Applications: map[string]json.RawMessage{}}
	for _, name := range names {
		config.Applications[name] = ask(name)
	}
	return config
}

// us is the service that wants what wanted has.
var us = service("demo-a")
