package services

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// What Serve takes an application for that does not say.
const (
	unnamed  = "default"
	unrouted = "/"
)

// applicationsKey is where Serve's form has the applications.
const applicationsKey = "applications"

// union is the whole configuration that Serve must be asked for: ours as they are asked for,
// those of other services as the head took them, and whatever else came the same way and would
// go if it were not named again, as Serve gives it back; by name. An application that goes
// already is not called back. The second result says why it must not be sent, empty if it may.
func union(config *Config, beside neighbours, there map[string]headclient.Application) (json.RawMessage, string) {
	document, why := options(beside.options)
	if why != "" {
		return nil, why
	}
	all := maps.Clone(config.Applications)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	theirs, why := foreign(config, beside, there, all)
	if why != "" {
		return nil, why
	}
	for _, name := range slices.Sorted(maps.Keys(config.Applications)) {
		if why := admit(name, config.Applications[name], beside, there, theirs); why != "" {
			return nil, why
		}
	}
	inOrder := make([]json.RawMessage, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		inOrder = append(inOrder, all[name])
	}
	document[applicationsKey] = inOrder
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return nil, fmt.Sprintf("the configuration cannot be written: %s", err)
	}
	return bytes.TrimSpace(text.Bytes()), ""
}

// admit says why an application of ours must not be sent, empty if it may: it is not what it says
// it is, or another has its name or its route.
func admit(name string, application json.RawMessage, beside neighbours, there map[string]headclient.Application, routes map[string]string) string {
	ours, err := parse(application)
	other, taken := beside.applications[name]
	switch {
	case err != nil:
		return fmt.Sprintf("application %q cannot be read: %s", name, err)
	case ours.name != name:
		return fmt.Sprintf("application %q calls itself %q", name, ours.name)
	case taken:
		return fmt.Sprintf("application %q of ClusterService %s has this name", name, other.service)
	case stays(there[name]) && !there[name].Declarative:
		return fmt.Sprintf("application %q of somebody else has this name, and was not deployed by a configuration", name)
	}
	if owner, taken := routes[ours.route]; taken {
		whose := "somebody else"
		if other, known := beside.applications[owner]; known {
			whose = "ClusterService " + other.service
		}
		return fmt.Sprintf("application %q of %s has the route %s", owner, whose, ours.route)
	}
	return ""
}

// options are the parts of a configuration that are no applications, by their keys.
func options(of json.RawMessage) (map[string]any, string) {
	document := map[string]any{}
	if of == nil {
		return document, ""
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(of, &given); err != nil || given == nil {
		return nil, "the options of Serve are no JSON object"
	}
	for key, value := range given {
		document[key] = value
	}
	if _, twice := document[applicationsKey]; twice {
		return nil, "the options of Serve have applications of their own"
	}
	return document, ""
}

// foreign adds to a configuration the applications of others, of other services as well as those
// that came by a configuration otherwise, and gives the routes that others have, of whatever way
// they came.
func foreign(config *Config, beside neighbours, there map[string]headclient.Application, all map[string]json.RawMessage) (map[string]string, string) {
	routes := beside.join(all)
	for _, name := range slices.Sorted(maps.Keys(there)) {
		application := there[name]
		_, known := all[name]
		dropped := slices.Contains(config.Drop, name) || slices.Contains(beside.dropped, name)
		if !stays(application) || application.Declarative && (known || dropped) {
			continue
		}
		if application.RoutePrefix != "" {
			routes[application.RoutePrefix] = name
		}
		if !application.Declarative {
			continue
		}
		form, err := parse(application.Deployed)
		if err == nil {
			err = faithful(application, form)
		}
		if err != nil {
			return nil, fmt.Sprintf("application %q of somebody else would be lost: %s", name, err)
		}
		if form.route != "" {
			routes[form.route] = name
		}
		all[name] = application.Deployed
	}
	return routes, ""
}

// join adds the applications of other services to a configuration, and gives their routes.
func (n neighbours) join(all map[string]json.RawMessage) map[string]string {
	routes := map[string]string{}
	for name, held := range n.applications {
		if _, ours := all[name]; ours {
			continue
		}
		all[name] = held.form
		if form, err := parse(held.form); err == nil && form.route != "" { // the head took it
			routes[form.route] = name
		}
	}
	return routes
}

// faithful tells what would be lost of an application that was deployed again as it came back.
func faithful(application headclient.Application, form form) error {
	if form.name != application.Name {
		return fmt.Errorf("its configuration calls it %q", form.name)
	}
	if redacted(application.Deployed) {
		return errors.New("its configuration has secrets that Serve does not give back")
	}
	return nil
}

// form is what an application says of itself; its route is empty where it has none.
type form struct{ name, route string }

// parse reads the form of an application.
func parse(application json.RawMessage) (form, error) {
	if application == nil {
		return form{}, errors.New("it has no configuration")
	}
	var fields map[string]json.RawMessage // whose keys, unlike a struct's, are what Serve reads
	if err := json.Unmarshal(application, &fields); err != nil || fields == nil {
		return form{}, errors.New("its configuration is no JSON object")
	}
	read := form{name: unnamed, route: unrouted}
	if name, said := fields["name"]; said {
		if err := json.Unmarshal(name, &read.name); err != nil || bytes.Equal(name, []byte("null")) {
			return form{}, errors.New("its name is no text")
		}
	}
	if route, said := fields["route_prefix"]; said {
		read.route = "" // which null leaves
		if err := json.Unmarshal(route, &read.route); err != nil {
			return form{}, errors.New("its route_prefix is no text")
		}
	}
	return read, nil
}

// hidden is what Ray puts in the place of the value of an environment variable, for a client
// that looks like a browser or went through one.
const hidden = "<redacted>"

// redacted reports whether a configuration came back without its secrets. Wherever in it that
// is, it must not be deployed so.
func redacted(config json.RawMessage) bool {
	var content any
	if err := json.Unmarshal(config, &content); err != nil {
		return true
	}
	return hides(content)
}

// hides reports whether something was hidden in what JSON holds. A runtime_env may also be
// JSON in a text of its own.
func hides(content any) bool {
	switch content := content.(type) {
	case map[string]any:
		if inner, ok := content["serialized_runtime_env"].(string); ok && strings.Contains(inner, hidden) {
			return true
		}
		for _, value := range content {
			if hides(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(content, hides)
	case string:
		return content == hidden
	}
	return false
}
