package headclient

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// details60 is what Ray 2.60 says of Serve: an application that is in trouble, and one of a
// driver's that has not begun.
const details60 = `{"controller_info": {"node_id": "b8e2ad48d7f453fac3166b107a42c6e7b044b9d103f05ccb05e0f907", "node_ip": "10.0.0.1",
	"node_instance_id": "head-uid", "actor_id": "c0", "actor_name": "SERVE_CONTROLLER_ACTOR", "worker_id": "d0", "log_file_path": "/serve/controller_349.log"},
	"proxy_location": "EveryNode", "http_options": {"host": "0.0.0.0", "port": 8000}, "grpc_options": {"port": 9000, "grpc_servicer_functions": []},
	"proxies": {"b8e2ad48d7f453fac3166b107a42c6e7b044b9d103f05ccb05e0f907": {"node_id": "b8e2", "status": "HEALTHY"}},
	"applications": {
		"text": {"name": "text", "route_prefix": "/text", "docs_path": null, "status": "UNHEALTHY", "message": "The deployments ['Model'] are UNHEALTHY.",
			"last_deployed_time_s": 1795286134.5, "source": "declarative", "external_scaler_enabled": false,
			"deployed_app_config": {"name": "text", "route_prefix": "/text", "import_path": "text:app", "args": {"n": 12345678901234567890}},
			"deployments": {
				"Tokens": {"name": "Tokens", "status": "HEALTHY", "status_trigger": "CONFIG_UPDATE_COMPLETED", "message": "", "deployment_config": {"name": "Tokens"},
					"target_num_replicas": 0, "required_resources": {"CPU": 1}, "replicas": [], "recent_dead_replicas": []},
				"Model": {"name": "Model", "status": "UNHEALTHY", "status_trigger": "HEALTH_CHECK_FAILED", "message": "A replica's\nhealth check failed.",
					"deployment_config": {"name": "Model", "num_replicas": 3}, "target_num_replicas": 3, "required_resources": {"CPU": 1}, "replicas": [
						{"replica_id": "r2", "state": "STARTING", "start_time_s": 1795286136.1},
						{"replica_id": "r1", "state": "RUNNING", "pid": 7, "start_time_s": 1795286135.2, "actor_name": "SERVE_REPLICA::text#Model#r1",
							"node_id": "b8e2ad48d7f453fac3166b107a42c6e7b044b9d103f05ccb05e0f907", "node_ip": "10.0.0.1", "node_instance_id": "head-uid",
							"actor_id": "a0", "worker_id": "b0", "log_file_path": "/serve/replica_text_Model_r1.log"},
						{"replica_id": "r3", "state": "PENDING_MIGRATION", "start_time_s": 1795286135.2, "node_instance_id": null, "log_file_path": null},
						{"replica_id": "r4", "state": "RECOVERING", "start_time_s": 1795286135.2, "node_instance_id": null, "log_file_path": null}],
					"recent_dead_replicas": [
						{"replica_id": "r8", "state": "STOPPED", "start_time_s": 1.0, "node_id": "b8e2ad48d7f453fac3166b107a42c6e7b044b9d103f05ccb05e0f907", "log_file_path": "/serve/replica_text_Model_r8.log"},
						{"replica_id": "r9", "state": "STOPPED", "start_time_s": 1.0, "node_id": "b8e2ad48d7f453fac3166b107a42c6e7b044b9d103f05ccb05e0f907", "log_file_path": "/serve/replica_text_Model_r9.log"}]}}},
		"driver": {"name": "driver", "route_prefix": null, "docs_path": null, "status": "DEPLOYING", "message": "", "last_deployed_time_s": 0,
			"source": "imperative", "deployments": {}, "external_scaler_enabled": false}},
	"target_capacity": 50.0,
	"target_groups": [
		{"targets": [{"ip": "10.0.0.2", "port": 9000, "instance_id": "worker-uid", "name": "P"}], "route_prefix": "/", "protocol": "gRPC", "app_name": "", "ingress_request_router_targets": [], "ingress_deployment_name": ""},
		{"targets": [{"ip": "10.0.0.2", "port": 8000, "instance_id": "worker-uid", "name": "P"}, {"ip": "10.0.0.1", "port": 8000, "instance_id": "head-uid", "name": "P"},
			{"ip": "10.0.0.2", "port": 8000, "instance_id": "worker-uid", "name": "P"}], "route_prefix": "/", "protocol": "HTTP"}],
	"controller_health_metrics": {"num_control_loops": 7, "loop_duration_s": {"mean": 0.1}}, "restores_unset_config_options": true}`

// nothing60 is what it says where there is no controller.
const nothing60 = `{"controller_info": {}, "proxies": {}, "applications": {}, "target_capacity": null}`

func TestServingIsRead(t *testing.T) {
	const node = "b8e2ad48d7f453fac3166b107a42c6e7b044b9d103f05ccb05e0f907"
	serving, err := readServing([]byte(details60), "")
	if err != nil {
		t.Fatal(err)
	}
	half := 50.0
	want := Serving{
		Running: true, Capacity: &half,
		Applications: map[string]Application{
			"driver": {Name: "driver", State: ApplicationDeploying},
			"text": {
				Name: "text", State: ApplicationUnhealthy, Message: "The deployments ['Model'] are UNHEALTHY.", RoutePrefix: "/text", Declarative: true,
				Deployed:   json.RawMessage(`{"name": "text", "route_prefix": "/text", "import_path": "text:app", "args": {"n": 12345678901234567890}}`),
				DeployedAt: time.UnixMilli(1795286134500),
				Deployments: []Deployment{
					{
						Name: "Model", State: "UNHEALTHY", Trigger: "HEALTH_CHECK_FAILED", Message: "A replica's\nhealth check failed.", Wanted: 3, Running: 3,
						Replicas: []Replica{
							{ID: "r1", State: "RUNNING", Instance: "head-uid", Log: Log{Node: node, File: "serve/replica_text_Model_r1.log"}},
							{ID: "r2", State: "STARTING"}, {ID: "r3", State: "PENDING_MIGRATION"}, {ID: "r4", State: "RECOVERING"},
						},
						Failed: Log{Node: node, File: "serve/replica_text_Model_r9.log"},
					},
					{Name: "Tokens", State: "HEALTHY", Trigger: "CONFIG_UPDATE_COMPLETED"},
				},
			},
		},
		Targets: []Target{
			{Protocol: "HTTP", Instance: "head-uid", IP: "10.0.0.1", Port: 8000}, {Protocol: "HTTP", Instance: "worker-uid", IP: "10.0.0.2", Port: 8000},
			{Protocol: "gRPC", Instance: "worker-uid", IP: "10.0.0.2", Port: 9000},
		},
	}
	if diff := cmp.Diff(want, serving); diff != "" {
		t.Error(diff)
	}
	for name, said := range map[string]string{
		"no controller":    nothing60,
		"of an older Ray":  strings.TrimSuffix(nothing60, "}") + `, "proxy_location": null}`,
		"with leftovers":   strings.Replace(nothing60, `"applications": {}`, `"applications": {"a": {"status": "RUNNING"}}`, 1),
		"with a new field": strings.TrimSuffix(nothing60, "}") + `, "new": [{"a": null}]}`,
	} {
		if serving, err := readServing([]byte(said), ""); err != nil || !cmp.Equal(serving, Serving{}) {
			t.Errorf("%s: %+v, %v", name, serving, err)
		}
	}
}

// changed is details60 with something replaced that must be there.
func changed(t *testing.T, was, becomes string) []byte {
	t.Helper()
	if !strings.Contains(details60, was) {
		t.Fatalf("%s is not there to be replaced", was)
	}
	return []byte(strings.Replace(details60, was, becomes, 1))
}

func TestServingOfOtherVersions(t *testing.T) {
	for was, becomes := range map[string]string{
		`"source": "declarative", `:                          ``,
		`"status": "UNHEALTHY", "message": "The`:             `"status": "PAUSED", "message": "The`, // a status that this program has never heard of
		`"recent_dead_replicas": []}`:                        `"autoscaling_detail": {"a": [1]}}`,
		`, "restores_unset_config_options": true`:            ``,
		`"target_capacity": 50.0`:                            `"target_capacity": null`,
		`"route_prefix": "/text", "docs`:                     `"new": null, "route_prefix": "/text", "docs`,
		`"status_trigger": "HEALTH_CHECK_FAILED", "message"`: `"message"`,
	} {
		serving, err := readServing(changed(t, was, becomes), "")
		if err != nil || !serving.Applications["text"].Declarative || serving.Applications["driver"].Declarative {
			t.Errorf("%s: %+v, %v", becomes, serving, err)
		}
	}
}

func TestServingThatCannotBe(t *testing.T) {
	for was, becomes := range map[string]string{
		`"applications": {`:          `"apps": {`,
		`"controller_info": {`:       `"controller": {`,
		`"text": {"name": "text"`:    `"text": {"name": "other"`,
		`"driver": {"name": "dr`:     `"text": {"name": "text", "status": "RUNNING", "name": "dr`,
		`"text": {"name": "text", `:  `"text": {}, "text": {"name": "text", `,
		`"text": {"name": "te`:       `"te\u0007xt": {"was": "te`,
		`"driver": {"name"`:          `"": {"was"`,
		`"driver": {"name": "driver`: `"` + strings.Repeat("x", 254) + `": {"was": "driver`,
		`"status": "DEPLOYING"`:      `"Status": "DEPLOYING"`,
		`"DEPLOYING"`:                `"DE\u001b[31mPLOYING"`,
		`"/text", "docs`:             `"/te\u202ext", "docs`,
		`"/text", "docs_path": null`: `"/` + strings.Repeat("x", 1024) + `", "docs_path": null`,
		`1795286134.5`:               `-1`,
		`1795286134.5,`:              `1e11,`,
		`"Tokens": {`:                `"To\nkens": {`,
		`"HEALTHY", "status_tr`:      `"", "status_tr`,
		`"CONFIG_UPDATE_COMPLETED"`:  `"CONFIG\u0000"`,
		`"target_num_replicas": 0`:   `"target_num_replicas": -1`,
		`"target_num_replicas": 3`:   `"target_num_replicas": 1000001`,
		`"replica_id": "r1"`:         `"replica_id": ""`,
		`"state": "RUNNING"`:         `"state": 7`,
		`50.0`:                       `100.5`,
		`"target_capacity": 50`:      `"target_capacity": -50`,
		`"target_capacity": 50.0`:    `"target_capacity": NaN`,
		`{"name": "text", "route_prefix": "/text", "import_path": "text:app", "args": {"n": 12345678901234567890}}`: `["text"]`,
		`"replicas": []`: `"replicas": [` + strings.Repeat("{},", 120_000) + `{}]`,
		`"proxies": {`:   `"proxies": ` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `, "x": {`,
	} {
		if serving, err := readServing(changed(t, was, becomes), ""); err == nil {
			t.Errorf("%.100s: %+v", becomes, serving)
		}
	}
}

// TestWhatDoesNotMatterIsDropped: it is not compared, and nobody is sent there.
func TestWhatDoesNotMatterIsDropped(t *testing.T) {
	for was, becomes := range map[string]string{
		`"ip": "10.0.0.1", "port": 8000`:            `"ip": "", "port": 8000`,
		`"10.0.0.1", "port"`:                        `"0.0.0.0", "port"`,
		`"10.0.0.1", "port":`:                       `"fe80::1%eth0", "port":`,
		`"10.0.0.1", "port": `:                      `"head.example.com", "port": `,
		`"port": 8000, "instance_id": "head-uid"`:   `"port": 0, "instance_id": "head-uid"`,
		`"port": 8000, "instance_id": "head-uid",`:  `"port": 65536, "instance_id": "head-uid",`,
		`"port": 8000, "instance_id": "head-uid", `: `"port": -1, "instance_id": "head-uid", `,
	} {
		serving, err := readServing(changed(t, was, becomes), "")
		if err != nil || len(serving.Targets) != 2 || serving.Targets[0].Instance != "worker-uid" {
			t.Errorf("%s: %+v, %v", becomes, serving.Targets, err)
		}
	}
	for becomes, want := range map[string]int{`"protocol": "HTTP"}`: 3, `"protocol": "TCP"}`: 1} {
		if serving, err := readServing(changed(t, `"protocol": "HTTP"}`, becomes), ""); err != nil || len(serving.Targets) != want {
			t.Errorf("%s: %+v, %v", becomes, serving.Targets, err)
		}
	}
	serving, err := readServing(changed(t, `"node_instance_id": "head-uid",
							"actor_id"`, `"node_instance_id": "\u0000", "actor_id"`), "")
	if err != nil || serving.Applications["text"].Deployments[0].Replicas[0].Instance != "" {
		t.Errorf("%+v, %v", serving.Applications["text"].Deployments[0].Replicas, err)
	}
}

func TestLogsElsewhereAreDropped(t *testing.T) {
	for was, becomes := range map[string]string{
		`/serve/replica_text_Model_r9.log`: `/serve/../../../etc/passwd`,
		`serve/replica_text_Model_r9.log`:  `/etc/passwd`,
		`/serve/replica_text_Model_r9.lo`:  `/serve/a\u001b[31m.lo`,
		`/serve/replica_text_Model_r9.l`:   strings.Repeat("x", 2000),
	} {
		serving, err := readServing(changed(t, was, becomes), "")
		if err != nil || serving.Applications["text"].Deployments[0].Failed != (Log{}) {
			t.Errorf("%s: %+v, %v", becomes, serving.Applications["text"].Deployments[0].Failed, err)
		}
	}
}

func TestTooMuchServing(t *testing.T) {
	many := func(n int, format string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(format, i))
		}
		return strings.Join(all, ",")
	}
	apps := func(inside string) string {
		return `{"controller_info": {"node_ip": "10.0.0.1"}, "applications": {` + inside + `}}`
	}
	replicas := `{"replica_id": "r", "state": "RUNNING"}`
	for name, c := range map[string]struct {
		said string
		fits bool
	}{
		"as many applications as may be": {apps(many(1000, `"%d": {"status": "RUNNING"}`)), true},
		"one more":                       {apps(many(1001, `"%d": {"status": "RUNNING"}`)), false},
		"as many deployments":            {apps(`"a": {"status": "RUNNING", "deployments": {` + many(2000, `"%d": {"status": "HEALTHY"}`) + `}}`), true},
		"one deployment more":            {apps(`"a": {"status": "RUNNING", "deployments": {` + many(2001, `"%d": {"status": "HEALTHY"}`) + `}}`), false},
		"as many replicas": {apps(`"a": {"status": "RUNNING", "deployments": {"d": {"status": "HEALTHY", "replicas": [` +
			strings.Repeat(replicas+",", 9999) + replicas + `]}}}`), true},
		"one replica more": {apps(`"a": {"status": "RUNNING", "deployments": {"d": {"status": "HEALTHY", "recent_dead_replicas": [{}], "replicas": [` +
			strings.Repeat(replicas+",", 9999) + replicas + `]}}}`), false},
		"too many targets": {strings.TrimSuffix(apps(""), "}") + `, "target_groups": [{"protocol": "HTTP", "targets": [` +
			strings.Repeat(`{"port": 1},`, 10_000) + `{}]}]}`, false},
		"too many parts":  {strings.TrimSuffix(apps(""), "}") + `, "new": [` + strings.Repeat(`[],`, 100_000) + `[]]}`, false},
		"a text of parts": {strings.TrimSuffix(apps(""), "}") + `, "new": "` + strings.Repeat(`\"[{,`, 100_000) + `"}`, true},
	} {
		if _, err := readServing([]byte(c.said), ""); (err == nil) != c.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMessagesOfServingAreFitToBeShown(t *testing.T) {
	said := changed(t, `The deployments ['Model'] are UNHEALTHY.`, strings.Repeat("x\\n", 3000)+`\u001b[31mRAY_AUTH_TOKEN=secret-token\u0007\ncause`)
	serving, err := readServing(said, "secret-token")
	if err != nil {
		t.Fatal(err)
	}
	message := serving.Applications["text"].Message
	if !strings.HasSuffix(message, "\nRAY_AUTH_TOKEN=[token]\ncause") || len(message) > maxMessage {
		t.Errorf("%d bytes that end as %q", len(message), message[max(0, len(message)-50):])
	}
}

func TestWithoutFrames(t *testing.T) {
	const head = "Deploying app 'echo' failed with exception:\n"
	const frames = "Traceback (most recent call last):\n" +
		"  File \"/opt/ray/serve/application_state.py\", line 1411, in build\n    app = build(\n          ^^^^^^\n" +
		"  File \"/opt/ray/_common/utils.py\", line 45, in import_attr\n    return getattr(module, name)\n           ^^^^^^^^\n"
	for name, c := range map[string]struct{ said, want string }{
		"keeps a text without a traceback":  {head + "no", head + "no"},
		"keeps the exception alone":         {head + frames + "AttributeError: no 'nope'\n", head + "AttributeError: no 'nope'\n"},
		"keeps all lines of the exception":  {frames + "ValueError: one\n  two\nthree", "ValueError: one\n  two\nthree"},
		"keeps the last of a chain":         {frames + "KeyError: 1\n\nDuring handling:\n\n" + frames + "ValueError: 2", "ValueError: 2"},
		"keeps frames without an exception": {frames, frames},
		"keeps a traceback without frames":  {"Traceback (most recent call last):\nx", "Traceback (most recent call last):\nx"},
	} {
		if got := withoutFrames(c.said); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestRefusalsOfConfigurations(t *testing.T) {
	const more = "\n    For further information visit https://errors.pydantic.dev/2.13/v/value_error"
	for said, want := range map[string]string{
		"1 validation error for ServeDeploySchema\napplications\n  Value error, Found multiple configs for application \"a\". Please remove all duplicates. " +
			"[type=value_error, input_value=[{'import_path': 'a.b', '...ars': {'S': 'secret'}}}], input_type=list]" + more: `applications: Found multiple configs for application "a". Please remove all duplicates.`,
		"2 validation errors for ServeDeploySchema\napplications.0.import_path\n  Value error, Got invalid import path \"x\". [type=value_error, input_value='x', input_type=str]" + more +
			"\napplications.1.import_path\n  Field required [type=missing, input_value={'args': {'password': 'secret'}}, input_type=dict]" + more: `applications.0.import_path: Got invalid import path "x".; applications.1.import_path: Field required`,
		"1 validation error for ServeDeploySchema\n  Input should be a valid dictionary [type=model_type, input_value=['secret'], input_type=list]" + more:       "serveConfig: Input should be a valid dictionary",
		"1 validation error for ServeDeploySchema\napplications\n  Value error, first\n  second [type=value_error, input_value='secret', input_type=str]" + more: "applications: first second",
		"1 validation error for ServeDeploySchema":                                                               "1 validation error for ServeDeploySchema",
		"1 validation error for ServeDeploySchema\n":                                                             "",
		"Invalid 'api_type' value: 'x'. Must be one of: a":                                                       "Invalid 'api_type' value: 'x'. Must be one of: a",
		"ray::ServeController.apply_config()\n  File \"controller.py\", line 1300\nValueError: that cannot be\n": "ValueError: that cannot be",
		"1 validation error for S\na\n  " + strings.Repeat("é", 500):                                             "a: " + strings.Repeat("é", 190),
	} {
		if got := refusal(said); got != want {
			t.Errorf("%q becomes %q, want %q", said, got, want)
		}
	}
}

func TestLastLines(t *testing.T) {
	for said, want := range map[string]string{
		"":                               "",
		"\n \r\n\t\n":                    "",
		"one":                            "one",
		"one\ntwo\n\n  \n":               "two",
		"one\r\n \r\n":                   "one",
		"one\n\x1b[31m\x1b[0m\n\x00\n":   "one",
		"one\n 10%\r 20%\n":              "20%",
		"a\n\x1b[31mred\x1b[0m token=x":  "red [token]=x",
		"a\n" + strings.Repeat("é", 300): strings.Repeat("é", 250),
	} {
		if got := lastLine([]byte(said), "token"); got != want {
			t.Errorf("%q ends with %q, want %q", said, got, want)
		}
	}
}

func FuzzServing(f *testing.F) {
	f.Add([]byte(details60))
	f.Add([]byte(nothing60))
	f.Add([]byte(strings.ReplaceAll(details60, "UNHEALTHY", "\x1b[31mNEW")))
	f.Add([]byte(`{"controller_info": {"a": {}}, "applications": {"a": {"status": "RUNNING", "message": "\ud800"}, "a": {}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		serving, err := readServing(body, "")
		if err != nil {
			return
		}
		if !serving.Running && (len(serving.Applications) > 0 || len(serving.Targets) > 0) {
			t.Errorf("%q is read as %+v", body, serving)
		}
		for name, one := range serving.Applications {
			checkApplication(t, name, one)
		}
		for _, target := range serving.Targets {
			checkText(t, target.IP, maxName)
			checkText(t, target.Instance, maxName)
			if target.IP == "" || target.Port < 1 || target.Port > 65535 {
				t.Errorf("%q leads to %+v", body, target)
			}
		}
	})
}

func checkApplication(t *testing.T, name string, one Application) {
	t.Helper()
	checkText(t, name, maxName)
	checkText(t, string(one.State), maxName)
	checkText(t, one.RoutePrefix, maxRoute)
	checkText(t, strings.ReplaceAll(one.Message, "\n", ""), maxMessage)
	if name == "" || one.Name != name || one.State == "" || one.DeployedAt.Year() > 5139 || one.Deployed != nil && !json.Valid(one.Deployed) {
		t.Errorf("%+v cannot be", one)
	}
	for _, deployment := range one.Deployments {
		checkDeployment(t, deployment)
	}
}

func checkDeployment(t *testing.T, deployment Deployment) {
	t.Helper()
	checkText(t, deployment.Name, maxName)
	checkText(t, deployment.State, maxName)
	checkText(t, strings.ReplaceAll(deployment.Message, "\n", ""), maxMessage)
	if deployment.Name == "" || deployment.Wanted < 0 || deployment.Running > len(deployment.Replicas) {
		t.Errorf("%+v cannot be", deployment)
	}
	if log := deployment.Failed; log != (Log{}) && (!sendableFile(log.File) || strings.Contains("/"+log.File, "/..")) {
		t.Errorf("the log %+v is elsewhere", log)
	}
}

func FuzzConfigRefusal(f *testing.F) {
	f.Add("2 validation errors for S\na\n  Value error, x [type=value_error, input_value='y']\nb\n  Field required")
	f.Add("Traceback (most recent call last):\nValueError: x\n")
	f.Fuzz(func(t *testing.T, said string) {
		kind, words := judgeServe(400, said)
		checkText(t, words, maxRefusal)
		if kind != Refused && !(kind == Unavailable && isTransient(said)) {
			t.Errorf("%q is %q", said, kind)
		}
		checkText(t, lastLine([]byte(said), ""), maxLastLine)
	})
}
