package services

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// shown are applications by their names.
func shown(applications ...headclient.Application) map[string]headclient.Application {
	all := map[string]headclient.Application{}
	for _, one := range applications {
		all[one.Name] = one
	}
	return all
}

// but is an application with a difference.
func but(one headclient.Application, change func(*headclient.Application)) headclient.Application {
	change(&one)
	return one
}

func imperative(a *headclient.Application) { a.Declarative, a.Deployed = false, nil }
func deleting(a *headclient.Application)   { a.State = headclient.ApplicationDeleting }

// unionAlone is union where no other service is there.
func unionAlone(config *Config, there map[string]headclient.Application) (json.RawMessage, string) {
	return union(config, neighbours{options: config.Options}, there)
}

func TestUnion(t *testing.T) {
	a, b := string(ask("a")), string(ask("b"))
	theirs := application("theirs", `{"name":"theirs","route_prefix":"/t","args":{"n":12345678901234567890,"text":"<&>"}}`)
	for name, c := range map[string]struct {
		config Config
		there  map[string]headclient.Application
		want   string
	}{
		"nothing":      {want: `{"applications":[]}`},
		"ours by name": {config: *config("", "b", "a"), want: `{"applications":[` + a + `,` + b + `]}`},
		"with options": {
			config: Config{Options: json.RawMessage(`{"proxy_location":"EveryNode","http_options":{"port":8000}}`)},
			want:   `{"applications":[],"http_options":{"port":8000},"proxy_location":"EveryNode"}`,
		},
		"what others have stays as it is": {
			config: *config("", "a"), there: shown(theirs), want: `{"applications":[` + a + `,` + string(theirs.Deployed) + `]}`,
		},
		"ours as they are asked for": {
			config: *config("", "a"), there: shown(application("a", `{"name":"a","route_prefix":"/old"}`)), want: `{"applications":[` + a + `]}`,
		},
		"what is dropped goes": {
			config: Config{Drop: []string{"theirs"}}, there: shown(theirs), want: `{"applications":[]}`,
		},
		"what is dropped and wanted is ours": {
			config: Config{Applications: map[string]json.RawMessage{"a": ask("a")}, Drop: []string{"a"}}, there: shown(application("a", a)), want: `{"applications":[` + a + `]}`,
		},
		"what goes is not called back": {
			config: *config("", "a"), there: shown(but(theirs, deleting)), want: `{"applications":[` + a + `]}`,
		},
		"what goes has no route, nor name": {
			config: *config("", "a"),
			there:  shown(but(application("theirs", `{"name":"theirs","route_prefix":"/a"}`), deleting), but(but(application("a", a), imperative), deleting)),
			want:   `{"applications":[` + a + `]}`,
		},
		"what came otherwise stays by itself": {
			config: *config("", "a"), there: shown(but(theirs, imperative)), want: `{"applications":[` + a + `]}`,
		},
		"one without a name is the default one": {
			there: shown(but(application("default", `{"import_path":"m:x"}`), func(a *headclient.Application) { a.RoutePrefix = "/" })),
			want:  `{"applications":[{"import_path":"m:x"}]}`,
		},
		"two without a route do not meet": {
			config: Config{Applications: map[string]json.RawMessage{"a": json.RawMessage(`{"name":"a","route_prefix":null}`)}},
			there:  shown(application("theirs", `{"name":"theirs","route_prefix":null}`)),
			want:   `{"applications":[{"name":"a","route_prefix":null},{"name":"theirs","route_prefix":null}]}`,
		},
		"a route in a dropped one is free": {
			config: Config{Applications: map[string]json.RawMessage{"a": ask("a")}, Drop: []string{"theirs"}},
			there:  shown(application("theirs", `{"name":"theirs","route_prefix":"/a"}`)), want: `{"applications":[` + a + `]}`,
		},
	} {
		document, why := unionAlone(&c.config, c.there)
		if diff := cmp.Diff(c.want, string(document)); why != "" || diff != "" {
			t.Errorf("%s: %s%s", name, why, diff)
		}
	}
}

// ofText is a configuration of one application.
func ofText(name, form string) *Config {
	return &Config{Applications: map[string]json.RawMessage{name: json.RawMessage(form)}}
}

func TestConfigThatCannotBeSent(t *testing.T) {
	for name, c := range map[string]struct {
		config *Config
		why    string
	}{
		"options that are none":     {config: &Config{Options: json.RawMessage(`[]`)}, why: "the options of Serve are no JSON object"},
		"options null":              {config: &Config{Options: json.RawMessage(`null`)}, why: "the options of Serve are no JSON object"},
		"options with applications": {config: &Config{Options: json.RawMessage(`{"applications":[]}`)}, why: "the options of Serve have applications of their own"},
		"ours is none":              {config: ofText("a", `"a"`), why: `application "a" cannot be read: its configuration is no JSON object`},
		"ours is nothing":           {config: &Config{Applications: map[string]json.RawMessage{"a": nil}}, why: `application "a" cannot be read: it has no configuration`},
		"ours has another name":     {config: ofText("a", `{"name":"b"}`), why: `application "a" calls itself "b"`},
		"ours has no name":          {config: ofText("a", `{}`), why: `application "a" calls itself "default"`},
		"ours has a number":         {config: ofText("a", `{"name":1}`), why: `application "a" cannot be read: its name is no text`},
		"ours has null":             {config: ofText("default", `{"name":null}`), why: `application "default" cannot be read: its name is no text`},
		"ours has a strange route":  {config: ofText("a", `{"name":"a","route_prefix":1}`), why: `application "a" cannot be read: its route_prefix is no text`},
	} {
		document, why := unionAlone(c.config, nil)
		if diff := cmp.Diff(c.why, why); document != nil || diff != "" {
			t.Errorf("%s: %s%s", name, document, diff)
		}
	}
}

func TestTheirsComeFirst(t *testing.T) {
	onRoute := func(route string) func(*headclient.Application) {
		return func(a *headclient.Application) { a.RoutePrefix = route }
	}
	for name, c := range map[string]struct {
		config *Config
		there  map[string]headclient.Application
		why    string
	}{
		"a name is taken": {
			config: config("", "a"), there: shown(but(application("a", string(ask("a"))), imperative)),
			why: `application "a" of somebody else has this name, and was not deployed by a configuration`,
		},
		"a route is taken": {
			config: config("", "a"), there: shown(application("theirs", `{"name":"theirs","route_prefix":"/a"}`)), why: `application "theirs" of somebody else has the route /a`,
		},
		"a route is still taken": {
			config: config("", "a"), there: shown(but(application("theirs", `{"name":"theirs","route_prefix":"/t"}`), onRoute("/a"))),
			why: `application "theirs" of somebody else has the route /a`,
		},
		"a route is about to be taken": {
			config: config("", "a"), there: shown(but(application("theirs", `{"name":"theirs","route_prefix":"/a"}`), onRoute(""))),
			why: `application "theirs" of somebody else has the route /a`,
		},
		"a route is taken by what came otherwise": {
			config: config("", "a"), there: shown(but(application("theirs", `{"name":"theirs","route_prefix":"/a"}`), imperative)),
			why: `application "theirs" of somebody else has the route /a`,
		},
		"a name that is dropped, of what came otherwise": {
			config: &Config{Applications: map[string]json.RawMessage{"a": ask("a")}, Drop: []string{"theirs"}},
			there:  shown(but(application("theirs", `{"name":"theirs","route_prefix":"/a"}`), imperative)),
			why:    `application "theirs" of somebody else has the route /a`,
		},
		"both have the default route": {
			config: ofText("a", `{"name":"a"}`), there: shown(application("theirs", `{"name":"theirs"}`)), why: `application "theirs" of somebody else has the route /`,
		},
	} {
		document, why := unionAlone(c.config, c.there)
		if diff := cmp.Diff(c.why, why); document != nil || diff != "" {
			t.Errorf("%s: %s%s", name, document, diff)
		}
	}
}

// TestTheirsWouldBeLost: nothing is deployed with what did not come back as it was.
func TestTheirsWouldBeLost(t *testing.T) {
	const lost = `application "theirs" of somebody else would be lost: `
	const secret = lost + "its configuration has secrets that Serve does not give back"
	for name, c := range map[string]struct{ deployed, why string }{
		"theirs is not given back":  {"", lost + "it has no configuration"},
		"theirs cannot be read":     {`[]`, lost + "its configuration is no JSON object"},
		"theirs has another name":   {`{"name":"other"}`, lost + `its configuration calls it "other"`},
		"a variable is hidden":      {`{"name":"theirs","runtime_env":{"env_vars":{"A":"<redacted>"}}}`, secret},
		"in another way of writing": {`{"name":"theirs","runtime_env":{"env_vars":{"A":"\u003credacted\u003e"}}}`, secret},
		"a deployment's is hidden": {
			`{"name":"theirs","deployments":[{"name":"d"},{"ray_actor_options":{"runtime_env":{"env_vars":{"A":"<redacted>"}}}}]}`, secret,
		},
		"all of an environment is hidden": {`{"name":"theirs","x":{"serialized_runtime_env":"<redacted>"}}`, secret},
		"an environment in a text":        {`{"name":"theirs","runtime_env_info":{"serialized_runtime_env":"{\"env_vars\": {\"A\": \"<redacted>\"}}"}}`, secret},
		"a variable only tells of it":     {`{"name":"theirs","runtime_env":{"env_vars":{"A":"not <redacted> but so"}}}`, ""},
	} {
		theirs := application("theirs", c.deployed)
		if c.deployed == "" {
			theirs.Deployed = nil
		}
		document, why := unionAlone(config("d1", "a"), shown(theirs))
		if diff := cmp.Diff(c.why, why); (document == nil) != (why != "") || diff != "" {
			t.Errorf("%s: %s%s", name, document, diff)
		}
	}
}

// given is what is asked for, what is there, and what is to come of it.
type given struct {
	config Config
	there  map[string]headclient.Application
	want   map[string]string
}

func givens() *rapid.Generator[given] {
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	form := func(t *rapid.T, name string) string {
		return fmt.Sprintf(`{"name":%q,"route_prefix":"/%s","args":{"n":%d,"text":%q}}`, name, name,
			rapid.Int().Draw(t, "n"), rapid.StringMatching(`[a-z<&>"é ]*`).Draw(t, "text"))
	}
	states := []headclient.ApplicationState{headclient.ApplicationRunning, headclient.ApplicationDeployFailed, headclient.ApplicationDeleting}
	return rapid.Custom(func(t *rapid.T) given {
		g := given{there: map[string]headclient.Application{}, want: map[string]string{}}
		g.config = Config{Applications: map[string]json.RawMessage{}, Drop: rapid.SliceOf(rapid.SampledFrom(names)).Draw(t, "drop")}
		for _, name := range names {
			ours := rapid.Bool().Draw(t, "ours")
			if rapid.Bool().Draw(t, "there") {
				one := application(name, form(t, name))
				one.State = rapid.SampledFrom(states).Draw(t, "state")
				if !ours && rapid.Bool().Draw(t, "imperative") {
					imperative(&one)
				}
				g.there[name] = one
				if one.Declarative && stays(one) && !slices.Contains(g.config.Drop, name) {
					g.want[name] = string(one.Deployed)
				}
			}
			if ours {
				g.want[name] = form(t, name)
				g.config.Applications[name] = json.RawMessage(g.want[name])
			}
		}
		return g
	})
}

// TestUnionLosesNothing: of others everything stays, ours are exactly what was asked for,
// what is dropped is gone, and the same gives the same, in the order of names.
func TestUnionLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := givens().Draw(t, "given")
		document, why := unionAlone(&g.config, g.there)
		if why != "" {
			t.Fatal(why)
		}
		got := map[string]string{}
		all, err := named(document)
		for name, form := range all {
			got[name] = string(form)
		}
		if diff := cmp.Diff(g.want, got); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
		again, _ := unionAlone(&g.config, maps.Clone(g.there))
		if string(again) != string(document) {
			t.Fatalf("once %s, once %s", document, again)
		}
		at := -1
		for _, name := range slices.Sorted(maps.Keys(g.want)) {
			next := strings.Index(string(document), g.want[name])
			if next <= at {
				t.Fatalf("%s is not in order: %s", name, document)
			}
			at = next
		}
	})
}
