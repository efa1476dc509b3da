package headtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// ServeModule is what must be importable on all nodes as ServeFile for ServeCases: one
// application that answers and one whose replicas die when they start.
const (
	ServeFile   = "/tmp/contract/contract_serve.py"
	ServeModule = `from ray import serve

@serve.deployment
class Echo:
    def __call__(self, request):
        return "echo"

@serve.deployment
class Dying:
    def __init__(self):
        raise RuntimeError("it dies of this")

echo, dying = Echo.bind(), Dying.bind()
`
)

// environment makes the module importable; a name changes it.
func environment(name string) map[string]any {
	return map[string]any{"env_vars": map[string]string{"PYTHONPATH": strings.TrimSuffix(ServeFile, "/contract_serve.py"), "NAME": name}}
}

// ServeCases are what is true of Serve, in the order in which they must run. They need a
// head on which it was never started, and leave it started with nothing deployed; of the
// head's functions they use none.
func ServeCases() []Case {
	return []Case{
		{"Serve does nothing before it was asked to", idleServe},
		{"Serve refuses what cannot be, and says why", refusedConfig},
		{"an application runs, and is told of with its replicas and proxies", deployed},
		{"an application that is asked for again keeps its replicas", keepsReplicas},
		{"an application with another environment gets new replicas", replaced},
		{"an application that cannot be imported fails, and others do not", notImported},
		{"an application whose replicas die fails with what they said", dying},
		{"a share of the capacity is told of", capacity},
		{"an application that is not asked for any more goes", undeployed},
		{"Serve knows its token", serveToken},
		{"a log that is not there is not found", noLog},
	}
}

// serving dials the Serve API of a head with its right token.
func serving(t testing.TB, head Head) *headclient.Serve {
	t.Helper()
	return servingWith(t, head, func(context.Context) (string, error) { return head.Token, nil })
}

func servingWith(t testing.TB, head Head, token headclient.Token) *headclient.Serve {
	t.Helper()
	conversation, err := headclient.DialServe(head.Jobs, headclient.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conversation.Close(); err != nil {
			t.Error(err)
		}
	})
	return conversation
}

// application is one in Serve's form, whose replicas need little room.
func application(name, attribute, environmentName string) map[string]any {
	deployment := map[string]any{"name": strings.ToUpper(attribute[:1]) + attribute[1:], "num_replicas": 1, "ray_actor_options": map[string]any{"num_cpus": 0.1}}
	return map[string]any{
		"name": name, "route_prefix": "/" + name, "import_path": "contract_serve:" + attribute, "runtime_env": environment(environmentName),
		"deployments": []any{deployment},
	}
}

// config is a whole form of Serve's.
func config(t testing.TB, applications ...map[string]any) json.RawMessage {
	t.Helper()
	return encoded(t, map[string]any{"applications": append([]map[string]any{}, applications...)})
}

func encoded(t testing.TB, form any) json.RawMessage {
	t.Helper()
	body, err := json.Marshal(form)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func deploy(t testing.TB, head Head, form json.RawMessage) {
	t.Helper()
	if err := serving(t, head).Deploy(t.Context(), form); err != nil {
		t.Fatal(err)
	}
}

// serves waits until what Serve says is as it should be.
func serves(t testing.TB, head Head, what string, wanted func(headclient.Serving) error) headclient.Serving {
	t.Helper()
	conversation := serving(t, head)
	var said headclient.Serving
	eventually(t, head, what, func(ctx context.Context) (err error) {
		if said, err = conversation.Serving(ctx); err == nil {
			return wanted(said)
		}
		conversation = serving(t, head) // one whose answer came too late has ended
		return err
	})
	return said
}

// runs waits until an application runs as it was asked for last, and gives it.
func runs(t testing.TB, head Head, name string) headclient.Application {
	t.Helper()
	return inState(t, head, name, headclient.ApplicationRunning)
}

func inState(t testing.TB, head Head, name string, state headclient.ApplicationState) headclient.Application {
	t.Helper()
	said := serves(t, head, name+" in state "+string(state), func(said headclient.Serving) error {
		if one := said.Applications[name]; one.State != state {
			return fmt.Errorf("it is %+v", one)
		}
		return nil
	})
	return said.Applications[name]
}

// replicas are the IDs of the replicas of an application that run.
func replicas(of headclient.Application) []string {
	var ids []string
	for _, deployment := range of.Deployments {
		for _, one := range deployment.Replicas {
			if one.State == "RUNNING" {
				ids = append(ids, one.ID)
			}
		}
	}
	return ids
}

func idleServe(t testing.TB, head Head) {
	if said, err := serving(t, head).Serving(t.Context()); err != nil || said.Running || len(said.Applications) > 0 || len(said.Targets) > 0 {
		t.Errorf("it says %+v, %v", said, err)
	}
	if said, err := serving(t, head).Session(t.Context()); err != nil || said.Version != head.Version {
		t.Errorf("its session is %+v, %v", said, err)
	}
}

func refusedConfig(t testing.TB, head Head) {
	with := func(field string, value any) map[string]any {
		changed := application("refused", "echo", "")
		changed[field] = value
		return changed
	}
	for want, form := range map[string]json.RawMessage{
		`Found multiple configs for application "refused"`:         config(t, application("refused", "echo", ""), with("route_prefix", "/other")),
		`Found duplicate applications for route prefix "/refused"`: config(t, application("refused", "echo", ""), with("name", "other")),
		`applications.0.import_path: Got invalid import path "x"`:  config(t, with("import_path", "x")),
		`applications.0.import_path: Field required`:               encoded(t, map[string]any{"applications": []any{map[string]string{"name": "refused", "args": "secret"}}}),
	} {
		err := serving(t, head).Deploy(t.Context(), form)
		if headclient.KindOf(err) != headclient.Refused || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "pydantic") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if said, err := serving(t, head).Serving(t.Context()); err != nil || len(said.Applications) > 0 {
		t.Errorf("after that it says %+v, %v", said, err)
	}
}

func deployed(t testing.TB, head Head) {
	deploy(t, head, config(t, application("first", "echo", "a")))
	one := runs(t, head, "first")
	if !one.Declarative || one.RoutePrefix != "/first" || one.DeployedAt.IsZero() || !strings.Contains(string(one.Deployed), `"contract_serve:echo"`) {
		t.Errorf("it is %+v", one)
	}
	replica := sole(t, one)
	reached(t, head, replica.Instance)
	conversation := serving(t, head)
	eventually(t, head, "the first line of its log", func(ctx context.Context) error {
		line, err := conversation.LastLine(ctx, replica.Log)
		switch {
		case err != nil:
			conversation = serving(t, head)
		case line == "":
			err = errors.New("there is none")
		}
		return err
	})
	wholeLog(t, conversation, replica.Log)
}

// wholeLog reads a log of Serve from its beginning, behind that, and behind its end.
func wholeLog(t testing.TB, conversation *headclient.Serve, log headclient.Log) {
	t.Helper()
	var whole bytes.Buffer
	count, err := conversation.ReplicaLog(t.Context(), log, 0, &whole)
	if err != nil || count == 0 || count != int64(whole.Len()) {
		t.Errorf("of its log it gives %d bytes, %q, %v", count, whole.String(), err)
	}
	var part bytes.Buffer
	if _, err := conversation.ReplicaLog(t.Context(), log, 5, &part); err != nil || !strings.HasPrefix(part.String(), whole.String()[5:]) {
		t.Errorf("from the fifth byte on it gives %q, %v", part.String(), err)
	}
	if _, err := conversation.ReplicaLog(t.Context(), log, count+1<<20, io.Discard); headclient.KindOf(err) != headclient.Gone {
		t.Errorf("behind its end: %v", err)
	}
}

// sole is the one replica of the one deployment of an application that echoes.
func sole(t testing.TB, of headclient.Application) headclient.Replica {
	t.Helper()
	if len(of.Deployments) != 1 || len(of.Deployments[0].Replicas) != 1 {
		t.Fatalf("it is %+v", of)
	}
	echo := of.Deployments[0]
	if echo.Name != "Echo" || echo.State != "HEALTHY" || echo.Wanted != 1 || echo.Running != 1 || echo.Failed != (headclient.Log{}) {
		t.Errorf("its deployment is %+v", echo)
	}
	return echo.Replicas[0]
}

// reached waits until the proxy of an instance takes requests.
func reached(t testing.TB, head Head, instance string) {
	t.Helper()
	serves(t, head, "the proxy of "+instance, func(said headclient.Serving) error {
		if !slices.ContainsFunc(said.Targets, func(target headclient.Target) bool {
			return target.Protocol == "HTTP" && target.Instance == instance && target.Port == 8000
		}) {
			return fmt.Errorf("it is not among %+v", said.Targets)
		}
		return nil
	})
}

func keepsReplicas(t testing.TB, head Head) {
	before := replicas(runs(t, head, "first"))
	deploy(t, head, config(t, application("first", "echo", "a"), application("second", "echo", "a")))
	runs(t, head, "second")
	if after := replicas(runs(t, head, "first")); !slices.Equal(before, after) {
		t.Errorf("its replicas were %v and are %v", before, after)
	}
}

func replaced(t testing.TB, head Head) {
	first, second := replicas(runs(t, head, "first")), replicas(runs(t, head, "second"))
	deploy(t, head, config(t, application("first", "echo", "b"), application("second", "echo", "a")))
	serves(t, head, "other replicas", func(said headclient.Serving) error {
		one := said.Applications["first"]
		if ids := replicas(one); one.State != headclient.ApplicationRunning || len(ids) != 1 || slices.Equal(ids, first) {
			return fmt.Errorf("it is %+v", one)
		}
		return nil
	})
	if after := replicas(runs(t, head, "second")); !slices.Equal(second, after) {
		t.Errorf("the replicas of another were %v and are %v", second, after)
	}
}

func notImported(t testing.TB, head Head) {
	before := replicas(runs(t, head, "first"))
	missing := application("second", "echo", "a")
	missing["import_path"] = "nowhere.at.all:app"
	deploy(t, head, config(t, application("first", "echo", "b"), missing))
	one := inState(t, head, "second", headclient.ApplicationDeployFailed)
	if !strings.Contains(one.Message, "No module named 'nowhere'") || !one.Declarative {
		t.Errorf("it is %+v", one)
	}
	if after := replicas(runs(t, head, "first")); !slices.Equal(before, after) {
		t.Errorf("the replicas of another were %v and are %v", before, after)
	}
}

func dying(t testing.TB, head Head) {
	deploy(t, head, config(t, application("first", "echo", "b"), application("dying", "dying", "a")))
	one := inState(t, head, "dying", headclient.ApplicationDeployFailed)
	if len(one.Deployments) != 1 || one.Deployments[0].State != "DEPLOY_FAILED" || one.Deployments[0].Running != 0 ||
		!strings.Contains(one.Deployments[0].Message, "it dies of this") {
		t.Fatalf("it is %+v", one)
	}
	// A Ray that remembers no dead replicas tells of no log.
	if log := one.Deployments[0].Failed; log != (headclient.Log{}) {
		if line, err := serving(t, head).LastLine(t.Context(), log); err != nil || line == "" {
			t.Errorf("the last line of %+v is %q, %v", log, line, err)
		}
	}
	runs(t, head, "first")
}

func capacity(t testing.TB, head Head) {
	none := 0
	deploy(t, head, encoded(t, map[string]any{"applications": []any{application("first", "echo", "b")}, "target_capacity": none}))
	serves(t, head, "no replicas", func(said headclient.Serving) error {
		one := said.Applications["first"]
		if said.Capacity == nil || *said.Capacity != 0 || len(one.Deployments) != 1 || one.Deployments[0].Wanted != 0 || one.Deployments[0].Running != 0 ||
			one.State != headclient.ApplicationRunning {
			return fmt.Errorf("it is %+v", said)
		}
		return nil
	})
}

func undeployed(t testing.TB, head Head) {
	deploy(t, head, config(t))
	said := serves(t, head, "no applications", func(said headclient.Serving) error {
		if len(said.Applications) > 0 {
			return fmt.Errorf("there are %v", slices.Collect(maps.Keys(said.Applications)))
		}
		return nil
	})
	if !said.Running || said.Capacity != nil {
		t.Errorf("it says %+v", said)
	}
}

func serveToken(t testing.TB, head Head) {
	log := headclient.Log{Node: find(t, with(t, head), head.First).ID.String(), File: "raylet.out"}
	for name, token := range map[string]headclient.Token{
		"none":       nil,
		"another":    func(context.Context) (string, error) { return "another", nil },
		"unreadable": func(context.Context) (string, error) { return "", errors.New("the Secret is gone") },
	} {
		conversation := servingWith(t, head, token)
		_, ask := conversation.Serving(t.Context())
		_, read := conversation.LastLine(t.Context(), log)
		for call, err := range map[string]error{"Serving": ask, "LastLine": read, "Deploy": conversation.Deploy(t.Context(), config(t))} {
			if headclient.KindOf(err) != headclient.Unauthenticated || strings.Contains(err.Error(), head.Token) {
				t.Errorf("%s with token %s: %v", call, name, err)
			}
		}
	}
}

func noLog(t testing.TB, head Head) {
	node := find(t, with(t, head), head.First).ID.String()
	for _, log := range []headclient.Log{{Node: node, File: "serve/replica_nowhere.log"}, {Node: strings.Repeat("ab", 28), File: "raylet.out"}} {
		// Ray on a busy machine was seen to answer once with an empty log in place of a refusal.
		eventually(t, head, "a refusal", func(ctx context.Context) error {
			if line, err := serving(t, head).LastLine(ctx, log); headclient.KindOf(err) != headclient.NotFound {
				return fmt.Errorf("%+v ends with %q, %w", log, line, err)
			}
			return nil
		})
	}
}
