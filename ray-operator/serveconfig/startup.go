package serveconfig

import (
	"bytes"
	"encoding/json"
	"slices"
)

// defaults are what Serve takes where nothing is said, of the options that it reads when it
// starts. Only what is the same in every release of Ray that is supported stands here.
var defaults = map[string]map[string]string{
	"http_options": {
		"host": `"0.0.0.0"`, "port": "8000", "root_path": `""`, "request_timeout_s": "null",
		"ssl_keyfile": "null", "ssl_certfile": "null", "ssl_keyfile_password": "null", "ssl_ca_certs": "null",
	},
	"grpc_options":       {"port": "9000", "grpc_servicer_functions": "[]", "request_timeout_s": "null"},
	"controller_options": {"runtime_env": "null"},
}

// Startup gives those options that Serve reads at its first start only, and ignores after
// that: http_options, grpc_options, controller_options and proxy_location. The form is
// canonical, a JSON object with its keys in order and without what is Serve's default anyway:
// two configurations with the same one need no new pods. It is empty for what is no object.
func Startup(raw []byte) string {
	whole, err := object(raw)
	if err != nil {
		return ""
	}
	kept := map[string]any{}
	if place, there := whole[keyLocation]; there && string(place) != `"`+EveryNode+`"` {
		kept[keyLocation] = canonical(place)
	}
	for name, usual := range defaults {
		options, there := whole[name]
		if !there || isNull(options) {
			continue
		}
		all, err := object(options)
		if err != nil {
			kept[name] = canonical(options) // no options, which only a bad configuration has
			continue
		}
		said := map[string]any{}
		for key := range all {
			if value := canonical(all[key]); string(value) != usual[key] {
				said[key] = value
			}
		}
		if len(said) > 0 {
			kept[name] = said
		}
	}
	return string(printed(kept))
}

// Common gives those options that Serve has once for all applications and takes at any time, as logging_config: all that
// are not in Startup, but the applications and target_capacity. The form is canonical. It is empty for what is no object.
func Common(raw []byte) string {
	whole, err := object(raw)
	if err != nil {
		return ""
	}
	kept := map[string]any{}
	for name, value := range whole {
		_, starts := defaults[name]
		if !starts && !isNull(value) && !slices.Contains([]string{keyApplications, keyCapacity, keyLocation}, name) {
			kept[name] = canonical(value)
		}
	}
	return string(printed(kept))
}

// ListenOnIPv6 returns the options of a Config with proxies that listen on all addresses of IPv6, and so of IPv4 too, where
// they would listen on all of IPv4. A host that stands for less stays.
func ListenOnIPv6(options json.RawMessage) json.RawMessage {
	whole, err := object(options)
	if err != nil {
		return options
	}
	const key, host = "http_options", "host"
	proxies := fields{}
	if given, there := whole[key]; there && !isNull(given) {
		if proxies, err = object(given); err != nil {
			return options
		}
	}
	if given := string(proxies[host]); given != "" && given != `""` && given != defaults[key][host] {
		return options
	}
	proxies[host] = json.RawMessage(`"::"`)
	whole[key] = printed(proxies)
	return printed(whole)
}

// canonical writes a value with the keys of objects in order, and numbers as they are.
func canonical(raw json.RawMessage) json.RawMessage {
	reader := json.NewDecoder(bytes.NewReader(raw))
	reader.UseNumber()
	var value any
	if err := reader.Decode(&value); err != nil {
		return raw // it is part of a text that was read already
	}
	return printed(value)
}
