// Package serveconfig reads what a service asks Ray Serve to run.
//
// In: a serveConfig as the user wrote it, in Serve's own form. Out: its applications one by
// one, what the operator has to know of the proxies, and the rest as it is. What is not known
// here is passed on.
//
// It is pure. It says nothing of whether Serve would take the configuration, which package
// validate does, and it never changes the meaning of what it passes on.
package serveconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// What Serve does where nothing is said.
const (
	DefaultHTTPPort = 8000
	DefaultGRPCPort = 9000
	DefaultRoute    = "/"
)

// Places of proxies, in Serve's own words.
const (
	EveryNode = "EveryNode"
	HeadOnly  = "HeadOnly"
)

// Keys of the configuration.
const (
	keyApplications = "applications"
	keyCapacity     = "target_capacity"
	keyLocation     = "proxy_location"
)

// HAProxyVariable is the environment variable that, as 1, has Serve's proxies be HAProxy.
const HAProxyVariable = "RAY_SERVE_ENABLE_HA_PROXY"

// Config is a configuration, read.
type Config struct {
	// Applications in the order of the configuration.
	Applications []Application
	// HTTPPort and GRPCPort are those of the proxies in their pods.
	HTTPPort, GRPCPort int32
	// GRPC reports whether the proxies speak gRPC at all.
	GRPC bool
	// RootPath is the ASGI root path; requests reach the proxies without it.
	RootPath string
	// HTTPS: the proxies speak HTTPS on HTTPPort, and no HTTP.
	HTTPS bool
	// ProxyLocation is EveryNode or HeadOnly, or what else was written there.
	ProxyLocation string
	// HAProxy reports whether controller_options have the proxies be HAProxy, which drains longer.
	HAProxy bool
	// CanSleep reports whether a deployment's configuration lets Serve take its last replica away.
	CanSleep bool
	// Options is all but the applications and target_capacity, a JSON object.
	Options json.RawMessage
}

// Application is one application.
type Application struct {
	Name string
	// RoutePrefix is where it answers, "/" where nothing is said. HasRoute is false for one
	// that is called by other applications only.
	RoutePrefix string
	HasRoute    bool
	ImportPath  string
	// Raw is the application as it was written.
	Raw json.RawMessage
}

// errForm is something that has not the form of a serveConfig.
var errForm = errors.New("not of the form that Ray Serve takes")

// Parse reads a configuration. It fails where that is no JSON object, or where something that
// Config holds is there and not of its type; what is missing has Serve's default.
func Parse(raw []byte) (Config, error) {
	whole, err := object(raw)
	if err != nil {
		return Config{}, fmt.Errorf("read the serveConfig: %w", err)
	}
	config := Config{HTTPPort: DefaultHTTPPort, GRPCPort: DefaultGRPCPort, ProxyLocation: EveryNode}
	for _, read := range []func(object fields) error{config.applications, config.http, config.grpc, config.controller} {
		if err := read(whole); err != nil {
			return Config{}, fmt.Errorf("read the serveConfig: %w", err)
		}
	}
	if err := whole.into(keyLocation, &config.ProxyLocation); err != nil {
		return Config{}, fmt.Errorf("read the serveConfig: %w", err)
	}
	config.CanSleep = canSleep(config.Applications)
	options := maps.Clone(whole)
	delete(options, keyApplications)
	delete(options, keyCapacity)
	config.Options = printed(options)
	return config, nil
}

func (c *Config) applications(whole fields) error {
	var list []json.RawMessage
	if err := whole.into(keyApplications, &list); err != nil {
		return err
	}
	for i := range list {
		application, err := applicationOf(list[i])
		if err != nil {
			return fmt.Errorf("%s[%d]: %w", keyApplications, i, err)
		}
		c.Applications = append(c.Applications, application)
	}
	return nil
}

func applicationOf(raw json.RawMessage) (Application, error) {
	all, err := object(raw)
	if err != nil {
		return Application{}, err
	}
	application := Application{RoutePrefix: DefaultRoute, HasRoute: true, Raw: slices.Clone(raw)}
	if isNull(all["route_prefix"]) {
		application.RoutePrefix, application.HasRoute = "", false
		delete(all, "route_prefix")
	}
	err = errors.Join(
		all.into("name", &application.Name), all.into("route_prefix", &application.RoutePrefix), all.into("import_path", &application.ImportPath))
	return application, err
}

func (c *Config) http(whole fields) error {
	options, err := whole.object("http_options")
	if err != nil {
		return err
	}
	certificate := ""
	if !isNull(options["ssl_certfile"]) {
		err = options.into("ssl_certfile", &certificate)
	}
	c.HTTPS = certificate != ""
	return errors.Join(err, options.port(&c.HTTPPort), options.into("root_path", &c.RootPath))
}

func (c *Config) grpc(whole fields) error {
	options, err := whole.object("grpc_options")
	if err != nil {
		return err
	}
	var functions []json.RawMessage
	err = options.into("grpc_servicer_functions", &functions)
	c.GRPC = len(functions) > 0
	return errors.Join(err, options.port(&c.GRPCPort))
}

func (c *Config) controller(whole fields) error {
	inner := whole
	for _, name := range []string{"controller_options", "runtime_env", "env_vars"} {
		if isNull(inner[name]) {
			return nil
		}
		var err error
		if inner, err = inner.object(name); err != nil {
			return err
		}
	}
	var value string
	err := inner.into(HAProxyVariable, &value)
	c.HAProxy = value == "1"
	return err
}

// fields are those of a JSON object. Keys are told apart as Python does, by upper and lower case.
type fields map[string]json.RawMessage

func object(raw []byte) (fields, error) {
	var all fields
	if err := json.Unmarshal(raw, &all); err != nil || all == nil {
		return nil, fmt.Errorf("%w: it is no object", errForm)
	}
	return all, nil
}

// object is a field that is an object, empty where there is none.
func (f fields) object(name string) (fields, error) {
	raw, there := f[name]
	if !there {
		return fields{}, nil
	}
	all, err := object(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return all, nil
}

// into reads a field, if it is there.
func (f fields) into(name string, value any) error {
	raw, there := f[name]
	if !there {
		return nil
	}
	if isNull(raw) || json.Unmarshal(raw, value) != nil {
		return fmt.Errorf("%s: %w", name, errForm)
	}
	return nil
}

func (f fields) port(into *int32) error {
	number := float64(*into)
	if err := f.into("port", &number); err != nil {
		return err
	}
	if number < 1 || number > math.MaxUint16 || number != math.Trunc(number) {
		return fmt.Errorf("port: %w: a port is a whole number from 1 to 65535", errForm)
	}
	*into = int32(number)
	return nil
}

// isNull tells a field that is null from one that is not there.
func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// printed writes fields in the order of their keys.
func printed(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("print a serveConfig: %v", err)) // it was read as JSON
	}
	return text
}
