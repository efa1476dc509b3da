package serveconfig_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/heliostat-dev/heliostat/ray-operator/serveconfig"
)

const full = `{
  "applications": [
    {"name": "text", "import_path": "app:text", "Name": "not ours", "deployments": [{"name": "Model", "num_replicas": 2}]},
    {"name": "inner", "route_prefix": null, "import_path": "app.inner", "args": {"big": 12345678901234567890}}
  ],
  "http_options": {"port": 8100, "root_path": "/serve", "ssl_certfile": "/tls/crt", "ssl_keyfile": "/tls/key"},
  "grpc_options": {"port": 9100, "grpc_servicer_functions": ["app:add"]},
  "controller_options": {"runtime_env": {"env_vars": {"RAY_SERVE_ENABLE_HA_PROXY": "1"}}},
  "proxy_location": "HeadOnly",
  "logging_config": {"encoding": "JSON"},
  "target_capacity": 50
}`

func parsed(t *testing.T, text string) serveconfig.Config {
	t.Helper()
	config, err := serveconfig.Parse([]byte(text))
	if err != nil {
		t.Fatalf("Parse(%s): %v", text, err)
	}
	return config
}

func TestAllIsRead(t *testing.T) {
	want := serveconfig.Config{
		Applications: []serveconfig.Application{
			{
				Name: "text", RoutePrefix: "/", HasRoute: true, ImportPath: "app:text",
				Raw: json.RawMessage(`{"name": "text", "import_path": "app:text", "Name": "not ours", "deployments": [{"name": "Model", "num_replicas": 2}]}`),
			},
			{
				Name: "inner", ImportPath: "app.inner",
				Raw: json.RawMessage(`{"name": "inner", "route_prefix": null, "import_path": "app.inner", "args": {"big": 12345678901234567890}}`),
			},
		},
		HTTPPort: 8100, GRPCPort: 9100, GRPC: true, RootPath: "/serve", HTTPS: true, ProxyLocation: "HeadOnly", HAProxy: true,
		Options: json.RawMessage(`{"controller_options":{"runtime_env":{"env_vars":{"RAY_SERVE_ENABLE_HA_PROXY":"1"}}},` +
			`"grpc_options":{"port":9100,"grpc_servicer_functions":["app:add"]},` +
			`"http_options":{"port":8100,"root_path":"/serve","ssl_certfile":"/tls/crt","ssl_keyfile":"/tls/key"},` +
			`"logging_config":{"encoding":"JSON"},"proxy_location":"HeadOnly"}`),
	}
	if diff := cmp.Diff(want, parsed(t, full)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNotSaidHasServesDefault(t *testing.T) {
	want := serveconfig.Config{HTTPPort: 8000, GRPCPort: 9000, ProxyLocation: "EveryNode", Options: json.RawMessage(`{}`)}
	for _, text := range []string{
		`{}`, `{"applications":[]}`, `{"target_capacity":null}`, ` { "applications" : [ ] } `,
	} {
		if diff := cmp.Diff(want, parsed(t, text)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	for _, text := range []string{
		`{"http_options":{"ssl_certfile":null}}`, `{"http_options":{"ssl_certfile":""}}`, `{"grpc_options":{"grpc_servicer_functions":[]}}`,
		`{"controller_options":null}`, `{"controller_options":{"runtime_env":null}}`, `{"controller_options":{"runtime_env":{"env_vars":null}}}`,
		`{"controller_options":{"runtime_env":{"env_vars":{"RAY_SERVE_ENABLE_HA_PROXY":"0"}}}}`,
	} {
		have := parsed(t, text)
		have.Options = want.Options
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

// TestWhatHasNotTheFormIsAnError: each is told with the place that is wrong.
func TestWhatHasNotTheFormIsAnError(t *testing.T) {
	for text, place := range map[string]string{
		``: "no object", `[]`: "no object", `null`: "no object", `{`: "no object", `"{}"`: "no object",
		`{"applications":{}}`:                                    "applications",
		`{"applications":null}`:                                  "applications",
		`{"applications":[{},"a"]}`:                              "applications[1]",
		`{"applications":[null]}`:                                "applications[0]",
		`{"applications":[{"name":1}]}`:                          "applications[0]: name",
		`{"applications":[{"name":null}]}`:                       "applications[0]: name",
		`{"applications":[{"route_prefix":[]}]}`:                 "route_prefix",
		`{"applications":[{"import_path":true}]}`:                "import_path",
		`{"http_options":[]}`:                                    "http_options",
		`{"http_options":null}`:                                  "http_options",
		`{"http_options":{"port":"8000"}}`:                       "port",
		`{"http_options":{"port":0}}`:                            "port",
		`{"http_options":{"port":65536}}`:                        "port",
		`{"http_options":{"port":80.5}}`:                         "port",
		`{"http_options":{"root_path":1}}`:                       "root_path",
		`{"http_options":{"ssl_certfile":1}}`:                    "ssl_certfile",
		`{"grpc_options":"a"}`:                                   "grpc_options",
		`{"grpc_options":{"port":-1}}`:                           "port",
		`{"grpc_options":{"grpc_servicer_functions":"a:b"}}`:     "grpc_servicer_functions",
		`{"controller_options":[]}`:                              "controller_options",
		`{"controller_options":{"runtime_env":1}}`:               "runtime_env",
		`{"controller_options":{"runtime_env":{"env_vars":[]}}}`: "env_vars",
		`{"controller_options":{"runtime_env":{"env_vars":{"RAY_SERVE_ENABLE_HA_PROXY":true}}}}`: "RAY_SERVE_ENABLE_HA_PROXY",
		`{"proxy_location":1}`: "proxy_location",
	} {
		config, err := serveconfig.Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), place) || !strings.Contains(err.Error(), "not of the form") {
			t.Errorf("Parse(%s) = %v, %v, want an error about %s", text, config, err, place)
		}
		if errors.Unwrap(err) == nil || strings.Contains(err.Error(), "%!") {
			t.Errorf("Parse(%s) fails with %v, which wraps nothing or is ill-printed", text, err)
		}
	}
}

func TestParse_TakesFirstAndLastPort(t *testing.T) {
	config := parsed(t, `{"http_options":{"port":1},"grpc_options":{"port":65535}}`)
	if config.HTTPPort != 1 || config.GRPCPort != 65535 {
		t.Errorf("the ports are %d and %d, want 1 and 65535", config.HTTPPort, config.GRPCPort)
	}
}

func TestStartup(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: `{}`, `[]`: ``, `null`: ``, ``: ``,
		`{"applications":[{"name":"a"}],"target_capacity":5,"logging_config":{"encoding":"JSON"},"tracing_config":{}}`:             `{}`,
		`{"proxy_location":"EveryNode","http_options":{"port":8000,"host":"0.0.0.0"},"grpc_options":{},"controller_options":null}`: `{}`,
		`{"http_options":{"request_timeout_s":null,"root_path":""},"grpc_options":{"port":9000,"grpc_servicer_functions":[ ]}}`:    `{}`,
		`{"http_options":{"ssl_keyfile":null,"ssl_certfile":null,"ssl_keyfile_password":null,"ssl_ca_certs":null}}`:                `{}`,
		`{"grpc_options":{"request_timeout_s":null},"controller_options":{"runtime_env":null}}`:                                    `{}`,
		`{"proxy_location":"HeadOnly"}`:                                                  `{"proxy_location":"HeadOnly"}`,
		`{"http_options":{"port": 8001, "keep_alive_timeout_s": 5}}`:                     `{"http_options":{"keep_alive_timeout_s":5,"port":8001}}`,
		`{"http_options":{"root_path":null,"unheard":{"b":1,"a":12345678901234567890}}}`: `{"http_options":{"root_path":null,"unheard":{"a":12345678901234567890,"b":1}}}`,
		`{"grpc_options":{"grpc_servicer_functions":["b","a"]}}`:                         `{"grpc_options":{"grpc_servicer_functions":["b","a"]}}`,
		`{"controller_options":{"runtime_env":{"env_vars":{"B":"2","A":"1"}}}}`:          `{"controller_options":{"runtime_env":{"env_vars":{"A":"1","B":"2"}}}}`,
		`{"http_options":[1]}`: `{"http_options":[1]}`,
	} {
		if have := serveconfig.Startup([]byte(text)); have != want {
			t.Errorf("Startup(%s) = %s, want %s", text, have, want)
		}
	}
}

// TestStartupDoesNotHangOnOrder: the order of keys is no difference, and another value is one.
func TestCommon_IsWhatServeHasOnce(t *testing.T) {
	for name, c := range map[string]struct{ config, want string }{
		"nothing":                {`{"applications": []}`, `{}`},
		"no object":              {`[]`, ``},
		"what Serve starts with": {`{"http_options": {"port": 1}, "grpc_options": {}, "controller_options": {}, "proxy_location": "HeadOnly", "target_capacity": 5}`, `{}`},
		"what is null":           {`{"logging_config": null}`, `{}`},
		"the rest, in order":     {`{"tracing_config": {"b": 1, "a": 2.0}, "logging_config": {}}`, `{"logging_config":{},"tracing_config":{"a":2.0,"b":1}}`},
	} {
		if have := serveconfig.Common([]byte(c.config)); have != c.want {
			t.Errorf("%s: %s, want %s", name, have, c.want)
		}
	}
}

func TestStartupDoesNotHangOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		options := rapid.MapOfN(rapid.StringMatching(`[a-z]{1,4}`), rapid.StringMatching(`[a-z<&]{0,3}`), 1, 8).Draw(t, "options")
		keys := rapid.Permutation(sortedKeys(options)).Draw(t, "order")
		in := []byte(`{"http_options":` + ordered(options, sortedKeys(options)) + `}`)
		shuffled := []byte(`{"http_options": ` + ordered(options, keys) + `}`)
		if a, b := serveconfig.Startup(in), serveconfig.Startup(shuffled); a != b {
			t.Fatalf("%s gives %s, %s gives %s", in, a, shuffled, b)
		}
		options[keys[0]] += "x"
		if changed := []byte(`{"http_options":` + ordered(options, keys) + `}`); serveconfig.Startup(in) == serveconfig.Startup(changed) {
			t.Fatalf("%s and %s give the same", in, changed)
		}
	})
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// ordered writes an object with its keys in an order.
func ordered(object map[string]string, keys []string) string {
	entries := make([]string, len(keys))
	for i, key := range keys {
		value, _ := json.Marshal(object[key])
		entries[i] = `"` + key + `":` + string(value)
	}
	return "{" + strings.Join(entries, ",") + "}"
}

// FuzzParse: whatever is read, what comes out is consistent, and nothing of the input is changed.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{full, `{}`, `{"applications":[{"route_prefix":null}]}`, `{"http_options":{"port":1e4}}`, `{"a":"\u0000"}`, "[", "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		given := slices.Clone(raw)
		config, err := serveconfig.Parse(raw)
		startup := serveconfig.Startup(raw)
		if !slices.Equal(given, raw) {
			t.Fatalf("%q became %q", given, raw)
		}
		if err != nil {
			return
		}
		consistent(t, config)
		if again := serveconfig.Startup([]byte(startup)); again != startup {
			t.Errorf("Startup of %s is %s", startup, again)
		}
		if ofOptions := serveconfig.Startup(config.Options); ofOptions != startup {
			t.Errorf("Startup of the options is %s, of all of it %s", ofOptions, startup)
		}
	})
}

func consistent(t *testing.T, config serveconfig.Config) {
	t.Helper()
	var options map[string]any
	if err := json.Unmarshal(config.Options, &options); err != nil || options == nil {
		t.Fatalf("the options are %s: %v", config.Options, err)
	}
	for _, key := range []string{"applications", "target_capacity"} {
		if _, there := options[key]; there {
			t.Errorf("the options have %s: %s", key, config.Options)
		}
	}
	for _, port := range []int32{config.HTTPPort, config.GRPCPort} {
		if port < 1 || port > 65535 {
			t.Errorf("a port is %d", port)
		}
	}
	for _, application := range config.Applications {
		if !json.Valid(application.Raw) || !application.HasRoute && application.RoutePrefix != "" {
			t.Errorf("an application is %+v", application)
		}
	}
}

// TestListenOnIPv6: all addresses are those of both families then. A host that stands for less stays.
func TestListenOnIPv6(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                  `{"http_options":{"host":"::"}}`,
		`{"http_options":null}`:               `{"http_options":{"host":"::"}}`,
		`{"http_options":{"port":8100}}`:      `{"http_options":{"host":"::","port":8100}}`,
		`{"http_options":{"host":""}}`:        `{"http_options":{"host":"::"}}`,
		`{"http_options":{"host":"0.0.0.0"}}`: `{"http_options":{"host":"::"}}`,
		`{"http_options":{"host":"::"}}`:      `{"http_options":{"host":"::"}}`,
		`{"http_options":{"host":"fd00::7"}}`: `{"http_options":{"host":"fd00::7"}}`,
		`{"logging_config":{"a":1}}`:          `{"http_options":{"host":"::"},"logging_config":{"a":1}}`,
		`{"http_options":7}`:                  `{"http_options":7}`,
		`[]`:                                  `[]`,
	} {
		if have := string(serveconfig.ListenOnIPv6([]byte(text))); have != want {
			t.Errorf("%s becomes %s, want %s", text, have, want)
		}
	}
}
