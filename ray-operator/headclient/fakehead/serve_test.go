package fakehead_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
)

// app is an application in Serve's form; more is put into its only deployment.
func app(name, code, more string) string {
	return fmt.Sprintf(`{"name": %q, "route_prefix": "/%s", "import_path": "module:app", "runtime_env": {"env_vars": {"CODE": %q}}, "deployments": [{"name": "Model"%s}]}`,
		name, name, code, more)
}

func serve(t *testing.T, head *fakehead.Head) *headclient.Serve {
	t.Helper()
	conversation, err := headclient.DialServe(head.JobsAddress(), headclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conversation.Close() })
	return conversation
}

func put(t *testing.T, head *fakehead.Head, apps ...string) {
	t.Helper()
	if err := serve(t, head).Deploy(t.Context(), json.RawMessage(`{"applications": [`+strings.Join(apps, ",")+`]}`)); err != nil {
		t.Fatal(err)
	}
}

func serving(t *testing.T, head *fakehead.Head) headclient.Serving {
	t.Helper()
	said, err := serve(t, head).Serving(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return said
}

// is fails unless an application is in a state.
func is(t *testing.T, head *fakehead.Head, name string, want headclient.ApplicationState) headclient.Application {
	t.Helper()
	one := serving(t, head).Applications[name]
	if one.State != want {
		t.Fatalf("%s is %+v, want %s", name, one, want)
	}
	return one
}

// drawn is a deployment in one line: its state, how many replicas it has of those that it
// wants, and each with its state and its instance.
func drawn(of headclient.Deployment) string {
	line := fmt.Sprintf("%s %d/%d", of.State, of.Running, of.Wanted)
	for _, one := range of.Replicas {
		line += " " + one.State + "@" + one.Instance
	}
	return line
}

// draws fails unless an application is in a state, and its deployment as it is drawn; empty
// where none is told of.
func draws(t *testing.T, head *fakehead.Head, name string, state headclient.ApplicationState, want string) headclient.Deployment {
	t.Helper()
	one := is(t, head, name, state)
	if len(one.Deployments) == 0 {
		one.Deployments = append(one.Deployments, headclient.Deployment{})
		want += " 0/0"
	}
	if got := drawn(one.Deployments[0]); got != want {
		t.Errorf("%s is %q, want %q", name, got, want)
	}
	return one.Deployments[0]
}

// leads fails unless requests go to these instances.
func leads(t *testing.T, head *fakehead.Head, want ...string) {
	t.Helper()
	var all []string
	for _, one := range serving(t, head).Targets {
		all = append(all, one.Instance)
	}
	if !slices.Equal(all, want) {
		t.Errorf("requests go to %v, want %v", all, want)
	}
}

// ends fails unless the last line of a log ends with some words.
func ends(t *testing.T, head *fakehead.Head, log headclient.Log, want string) {
	t.Helper()
	if line, err := serve(t, head).LastLine(t.Context(), log); err != nil || !strings.HasSuffix(line, want) {
		t.Errorf("its last line is %q, %v, want %s", line, err, want)
	}
}

// has fails unless an application has these replicas that get requests.
func has(t *testing.T, head *fakehead.Head, name string, want []string) {
	t.Helper()
	if now := head.Replicas(name); !slices.Equal(now, want) {
		t.Errorf("%s has %v, want %v", name, now, want)
	}
}

// staffed is a head with two workers.
func staffed(t *testing.T) (*fakehead.Head, *clocktesting.FakeClock, [2]headclient.NodeID) {
	t.Helper()
	head, clock := fake(t)
	head.Join(fakehead.Member{Instance: "head", Head: true})
	return head, clock, [2]headclient.NodeID{head.Join(fakehead.Member{Instance: "one"}), head.Join(fakehead.Member{Instance: "two"})}
}

func TestApplicationsComeAsInServe(t *testing.T) {
	head, clock, nodes := staffed(t)
	if said := serving(t, head); said.Running {
		t.Fatalf("before it was asked for anything it says %+v", said)
	}
	put(t, head, app("a", "1", `, "num_replicas": 2`))
	draws(t, head, "a", headclient.ApplicationDeploying, "")
	if one := is(t, head, "a", headclient.ApplicationDeploying); one.RoutePrefix != "" || !one.Declarative {
		t.Errorf("while it is built it is %+v", one)
	}
	leads(t, head)
	clock.Step(fakehead.DeployDelay / 2)
	if model := draws(t, head, "a", headclient.ApplicationDeploying, "UPDATING 0/2 STARTING@ STARTING@"); model.Replicas[0].Log != (headclient.Log{}) {
		t.Errorf("while they start it is %+v", model)
	}
	leads(t, head, "head")
	clock.Step(fakehead.DeployDelay / 2)
	model := draws(t, head, "a", headclient.ApplicationRunning, "HEALTHY 2/2 RUNNING@one RUNNING@two")
	if model.Replicas[0].Log.Node != nodes[0].String() {
		t.Errorf("at its end it is %+v", model)
	}
	ends(t, head, model.Replicas[0].Log, "initializing replica.")
	clock.Step(fakehead.DeployDelay / 2)
	leads(t, head, "head", "one", "two")
	put(t, head)
	draws(t, head, "a", headclient.ApplicationDeleting, "")
	clock.Step(fakehead.DeployDelay / 2)
	if said := serving(t, head); !said.Running || len(said.Applications) != 0 {
		t.Errorf("after it was taken away it says %+v", said)
	}
	leads(t, head, "head")
}

func TestWhatIsAskedForAgainIsKept(t *testing.T) {
	head, clock, _ := staffed(t)
	put(t, head, app("a", "1", ""), app("b", "1", ""))
	clock.Step(fakehead.DeployDelay)
	before := head.Replicas("a")
	for _, c := range []struct {
		code, more string
		kept, all  int
	}{
		{"1", "", 1, 1},
		{"1", `, "num_replicas": 3`, 1, 3},
		{"1", `, "num_replicas": 2, "user_config": {"a": 1}`, 2, 2},
		{"1", `, "num_replicas": "auto", "autoscaling_config": {"min_replicas": 2}`, 2, 2},
		{"1", `, "num_replicas": 2, "ray_actor_options": {"num_cpus": 2}`, 0, 2},
		{"2", `, "num_replicas": 2, "ray_actor_options": {"num_cpus": 2}`, 0, 2},
		{"2", `, "num_replicas": 0`, 0, 0},
	} {
		put(t, head, app("a", c.code, c.more), app("b", "1", ""))
		is(t, head, "a", headclient.ApplicationDeploying) // for a moment, whatever was asked for
		is(t, head, "b", headclient.ApplicationDeploying)
		if c.kept == 0 && c.all > 0 {
			has(t, head, "a", before) // until others run
		}
		clock.Step(100 * time.Millisecond)
		is(t, head, "b", headclient.ApplicationRunning)
		clock.Step(fakehead.DeployDelay)
		is(t, head, "a", headclient.ApplicationRunning)
		after := head.Replicas("a")
		kept := slices.DeleteFunc(slices.Clone(after), func(id string) bool { return !slices.Contains(before, id) })
		if len(kept) != c.kept || len(after) != c.all {
			t.Errorf("%+v: it had %v and has %v", c, before, after)
		}
		before = after
	}
	if got, want := [3]int{head.Changes("a"), head.Changes("b"), head.Changes("c")}, [3]int{7, 1, 0}; got != want {
		t.Errorf("something else was asked for %v times, want %v", got, want)
	}
	if n, last := head.Puts(); n != 8 || !json.Valid(last) {
		t.Errorf("%d configurations were taken, the last %s", n, last)
	}
}

// TestFailuresLeaveTheFormerReplicas: they get requests, though nothing tells of them.
func TestFailuresLeaveTheFormerReplicas(t *testing.T) {
	head, clock, _ := staffed(t)
	put(t, head, app("a", "1", ""))
	clock.Step(fakehead.DeployDelay)
	head.Fail("a", "RuntimeError: it cannot be built")
	clock.Step(time.Minute)
	before := head.Replicas("a")
	draws(t, head, "a", headclient.ApplicationRunning, "HEALTHY 1/1 RUNNING@one") // nothing was asked for since
	put(t, head, app("a", "2", ""))
	clock.Step(fakehead.DeployDelay)
	draws(t, head, "a", headclient.ApplicationDeployFailed, "")
	if one := is(t, head, "a", headclient.ApplicationDeployFailed); !strings.Contains(one.Message, "it cannot be built") {
		t.Errorf("it is %+v", one)
	}
	has(t, head, "a", before)
	head.Heal("a")
	clock.Step(time.Minute)
	is(t, head, "a", headclient.ApplicationDeployFailed)
	put(t, head, app("a", "1", ""))
	clock.Step(fakehead.DeployDelay)
	draws(t, head, "a", headclient.ApplicationRunning, "HEALTHY 1/1 RUNNING@one")
	has(t, head, "a", before)
	head.Crash("a", "RuntimeError: it dies of this")
	put(t, head, app("a", "3", ""))
	clock.Step(fakehead.DeployDelay)
	model := draws(t, head, "a", headclient.ApplicationDeployFailed, "DEPLOY_FAILED 1/1 RUNNING@one")
	if model.Trigger != "REPLICA_STARTUP_FAILED" || !strings.Contains(model.Message, "it dies of this") {
		t.Errorf("it is %+v", model)
	}
	ends(t, head, model.Failed, "RuntimeError: it dies of this")
	has(t, head, "a", before)
}

func TestWhatIsWrongShowsWhenItIsBuilt(t *testing.T) {
	head, clock, _ := staffed(t)
	for want, form := range map[string]string{
		"No module named 'nowhere'":  strings.Replace(app("b", "1", ""), "module:app", "nowhere.at.all:app", 1),
		`Invalid route prefix "b"`:   strings.Replace(app("b", "1", ""), `"/b"`, `"b"`, 1),
		`Invalid route prefix "", i`: strings.Replace(app("b", "1", ""), `"/b"`, `""`, 1),
	} {
		put(t, head, form)
		is(t, head, "b", headclient.ApplicationDeploying)
		clock.Step(fakehead.DeployDelay)
		if one := is(t, head, "b", headclient.ApplicationDeployFailed); !strings.Contains(one.Message, want) {
			t.Errorf("%+v, want %s", one, want)
		}
	}
}

func TestApplicationsThatWaitAndSicken(t *testing.T) {
	head, clock, nodes := staffed(t)
	head.Hold("a")
	put(t, head, app("a", "1", ""))
	clock.Step(time.Hour)
	draws(t, head, "a", headclient.ApplicationDeploying, "UPDATING 0/1 STARTING@")
	head.Heal("a")
	draws(t, head, "a", headclient.ApplicationRunning, "HEALTHY 1/1 RUNNING@one")
	head.Sicken("a", "it is ill")
	if model := draws(t, head, "a", headclient.ApplicationUnhealthy, "UNHEALTHY 1/1 RUNNING@one"); model.Message != "it is ill" {
		t.Errorf("%+v", model)
	}
	head.Heal("a")
	first := draws(t, head, "a", headclient.ApplicationRunning, "HEALTHY 1/1 RUNNING@one").Replicas[0]
	if got, want := [3]bool{head.KillReplica("a", "Killed"), head.KillReplica("a", ""), head.KillReplica("b", "")}, [3]bool{true, false, false}; got != want {
		t.Errorf("the one replica that there is is killed: %v, want %v", got, want)
	}
	model := draws(t, head, "a", headclient.ApplicationUnhealthy, "UNHEALTHY 0/1 STARTING@")
	if model.Failed != first.Log {
		t.Errorf("the log of %+v is that of the last", model.Failed)
	}
	ends(t, head, model.Failed, "Killed")
	clock.Step(fakehead.DeployDelay)
	if model := draws(t, head, "a", headclient.ApplicationRunning, "HEALTHY 1/1 RUNNING@one"); model.Replicas[0].ID == first.ID {
		t.Errorf("%+v", model)
	}
	clock.Step(fakehead.DeployDelay)
	leads(t, head, "head", "one")
	head.Kill(nodes[0])
	draws(t, head, "a", headclient.ApplicationUnhealthy, "UNHEALTHY 0/1 STARTING@")
	leads(t, head, "head")
	clock.Step(fakehead.DeployDelay)
	draws(t, head, "a", headclient.ApplicationRunning, "HEALTHY 1/1 RUNNING@two")
}

// TestNodesThatDrainAreLeft: the proxy goes at once, the replica when another runs.
func TestNodesThatDrainAreLeft(t *testing.T) {
	head, clock, nodes := staffed(t)
	put(t, head, app("a", "1", ""))
	clock.Step(2 * fakehead.DeployDelay)
	leads(t, head, "head", "one")
	head.Occupy(nodes[0]) // else it would be gone at once
	client, err := headclient.Dial(head.Address(), headclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	wish := headclient.Drain{Node: nodes[0], Reason: headclient.Preemption, Message: "it goes", Deadline: clock.Now().Add(time.Minute)}
	if verdict, err := client.Drain(t.Context(), wish); err != nil || !verdict.Accepted {
		t.Fatalf("%+v, %v", verdict, err)
	}
	draws(t, head, "a", headclient.ApplicationRunning, "HEALTHY 1/1 PENDING_MIGRATION@one STARTING@")
	leads(t, head, "head")
	clock.Step(fakehead.DeployDelay / 2)
	draws(t, head, "a", headclient.ApplicationRunning, "HEALTHY 1/1 RUNNING@two")
	clock.Step(fakehead.DeployDelay)
	leads(t, head, "head", "two")
	head.SetProxy("head", false)
	leads(t, head, "two")
}

func TestImperativeApplicationsStay(t *testing.T) {
	head, clock, _ := staffed(t)
	head.AddImperative("own", "/own")
	put(t, head, app("a", "1", ""))
	put(t, head)
	clock.Step(fakehead.DeployDelay)
	if one := is(t, head, "own", headclient.ApplicationRunning); one.Declarative || one.Deployed != nil || len(serving(t, head).Applications) != 1 {
		t.Errorf("%+v", one)
	}
	put(t, head, app("own", "1", ""))
	if one := is(t, head, "own", headclient.ApplicationDeploying); !one.Declarative || one.Deployed == nil {
		t.Errorf("one that is asked for this way too is %+v", one)
	}
}

func TestControllersThatAreNotThere(t *testing.T) {
	head, clock, _ := staffed(t)
	put(t, head, app("a", "1", ""))
	clock.Step(fakehead.DeployDelay)
	before := head.Replicas("a")
	head.SetController(fakehead.ControllerLost)
	if said := serving(t, head); said.Running || len(said.Applications) != 0 {
		t.Errorf("it says %+v", said)
	}
	again := json.RawMessage(`{"applications": []}`)
	if err := serve(t, head).Deploy(t.Context(), again); headclient.KindOf(err) != headclient.Unavailable {
		t.Errorf("%v", err)
	}
	head.SetController(fakehead.ControllerFails)
	if said, err := serve(t, head).Serving(t.Context()); headclient.KindOf(err) != headclient.Unavailable {
		t.Errorf("it says %+v, %v", said, err)
	}
	if err := serve(t, head).Deploy(t.Context(), again); headclient.KindOf(err) != headclient.Unavailable {
		t.Errorf("%v", err)
	}
	head.SetController(fakehead.ControllerFound)
	head.Recover()
	if is(t, head, "a", headclient.ApplicationRunning); !slices.Equal(before, head.Replicas("a")) {
		t.Errorf("it has %v and had %v", head.Replicas("a"), before)
	}
	head.Restart()
	if said := serving(t, head); said.Running || len(head.Replicas("a")) != 0 {
		t.Errorf("a new head says %+v", said)
	}
}

func TestServeIsShutDown(t *testing.T) {
	head, clock := fake(t) // without any nodes
	put(t, head, app("a", "1", ""))
	clock.Step(2 * fakehead.DeployDelay)
	is(t, head, "a", headclient.ApplicationRunning)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://"+head.JobsAddress()+"/api/serve/applications/", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", response, err)
	}
	_ = response.Body.Close()
	if said := serving(t, head); said.Running || len(head.Replicas("a")) != 0 {
		t.Errorf("%+v", said)
	}
}

// TestOptionsCountAtTheFirstStart: what is said of proxies later is not heard.
func TestOptionsCountAtTheFirstStart(t *testing.T) {
	head, clock, _ := staffed(t)
	for _, form := range []string{
		`{"proxy_location": "HeadOnly", "http_options": {"port": 8100}, "grpc_options": {"port": 9100, "grpc_servicer_functions": ["a.b"]}, "target_capacity": 50, "applications": [` + app("a", "1", `, "num_replicas": 3`) + `]}`,
		`{"proxy_location": "EveryNode", "http_options": {"port": 8200}, "target_capacity": 50, "applications": [` + app("a", "1", `, "num_replicas": 3`) + `]}`,
	} {
		if err := serve(t, head).Deploy(t.Context(), json.RawMessage(form)); err != nil {
			t.Fatal(err)
		}
		clock.Step(2 * fakehead.DeployDelay)
		want := []headclient.Target{{Protocol: "HTTP", Instance: "head", IP: "127.0.0.1", Port: 8100}, {Protocol: "gRPC", Instance: "head", IP: "127.0.0.1", Port: 9100}}
		said := serving(t, head)
		if !slices.Equal(said.Targets, want) || said.Capacity == nil || *said.Capacity != 50 || said.Applications["a"].Deployments[0].Wanted != 2 {
			t.Errorf("%+v", said)
		}
	}
}

func TestFormsThatServeRefuses(t *testing.T) {
	head, _ := fake(t)
	for want, form := range map[string]string{
		`applications.1.import_path: Field required`:                                                app("a", "1", "") + `, {}`,
		`applications.0.import_path: Got invalid import path "a:b:c". An import path may have at`:   `{"import_path": "a:b:c"}`,
		`applications.0.import_path: Got invalid import path ":b". An import path may not start`:    `{"import_path": ":b"}`,
		`applications.0.import_path: Got invalid import path "b.". An import path may not start or`: `{"import_path": "b."}`,
		`applications.0.deployments.0.name: Field required`:                                         `{"import_path": "a.b", "deployments": [{}]}`,
		`applications: Application names must be nonempty.`:                                         `{"import_path": "a.b", "name": ""}`,
		`applications: Host or port is set in the config for application`:                           `{"import_path": "a.b", "port": 8000}`,
		`applications: Found multiple configs for application "default"`:                            `{"import_path": "a.b"}, {"import_path": "a.c", "route_prefix": null}`,
		`applications: Found duplicate applications for route prefix "/"`:                           `{"import_path": "a.b"}, {"import_path": "a.c", "name": "b"}`,
		`Input should be a valid type`:                                                              `{"import_path": 7}`,
	} {
		err := serve(t, head).Deploy(t.Context(), json.RawMessage(`{"applications": [`+form+`]}`))
		if headclient.KindOf(err) != headclient.Refused || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if n, _ := head.Puts(); n != 0 || serving(t, head).Running {
		t.Errorf("%d were taken", n)
	}
}
