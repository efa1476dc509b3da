package fakehead

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// serveForm is what Serve is asked for, as far as this one minds.
type serveForm struct {
	Location string `json:"proxy_location"`
	HTTP     struct {
		Port *int32 `json:"port"`
	} `json:"http_options"`
	GRPC struct {
		Port      *int32   `json:"port"`
		Functions []string `json:"grpc_servicer_functions"`
	} `json:"grpc_options"`
	Logging      json.RawMessage     `json:"logging_config"`
	Capacity     *float64            `json:"target_capacity"`
	Applications *[]askedApplication `json:"applications"`
}

// askedApplication is one application of a form.
type askedApplication struct {
	Name        *string           `json:"name"`
	Route       json.RawMessage   `json:"route_prefix"`
	ImportPath  *string           `json:"import_path"`
	RuntimeEnv  json.RawMessage   `json:"runtime_env"`
	Args        json.RawMessage   `json:"args"`
	Deployments []askedDeployment `json:"deployments"`
	Host        json.RawMessage   `json:"host"`
	Port        json.RawMessage   `json:"port"`

	// config is what of it Serve keeps and gives back, nil where it was not asked for this way.
	config map[string]json.RawMessage
}

// askedDeployment is what is asked for of one deployment.
type askedDeployment struct {
	Name        string          `json:"name"`
	Replicas    json.RawMessage `json:"num_replicas"`
	Autoscaling struct {
		Min *int `json:"min_replicas"`
	} `json:"autoscaling_config"`
	Actor     json.RawMessage `json:"ray_actor_options"`
	Bundles   json.RawMessage `json:"placement_group_bundles"`
	Strategy  json.RawMessage `json:"placement_group_strategy"`
	PerNode   json.RawMessage `json:"max_replicas_per_node"`
	Selectors json.RawMessage `json:"placement_group_bundle_label_selector"`
}

// keptFields are the fields of an application that Serve knows; others it forgets.
func keptFields() []string {
	return []string{
		"name", "route_prefix", "import_path", "runtime_env", "deployments", "autoscaling_policy", "args", "logging_config", "external_scaler_enabled",
	}
}

// UnmarshalJSON keeps what Serve gives back of an application beside what it means.
func (a *askedApplication) UnmarshalJSON(said []byte) error {
	type plain askedApplication
	if err := json.Unmarshal(said, (*plain)(a)); err != nil {
		return fmt.Errorf("read an application: %w", err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(said, &all); err != nil {
		return fmt.Errorf("read an application: %w", err)
	}
	a.config = map[string]json.RawMessage{}
	for _, field := range keptFields() {
		if value, given := all[field]; given {
			a.config[field] = value
		}
	}
	return nil
}

// name and route are those that an application has where it asks for none.
func (a *askedApplication) name() string {
	if a.Name == nil {
		return "default"
	}
	return *a.Name
}

func (a *askedApplication) route() *string {
	route := "/"
	if a.Route == nil {
		return &route
	}
	var given *string
	if json.Unmarshal(a.Route, &given) != nil {
		return nil
	}
	return given
}

// code changes with what makes Serve build an application again.
func (a *askedApplication) code() string {
	return *a.ImportPath + "\n" + canonical(a.RuntimeEnv) + "\n" + canonical(a.Args) + "\n"
}

// deployments are those that the form names, for nobody else can know them; or one.
func (a *askedApplication) deployments() []askedDeployment {
	if len(a.Deployments) > 0 {
		return a.Deployments
	}
	return []askedDeployment{{Name: "Ingress"}}
}

// version changes with what replicas cannot take over while they run.
func (d *askedDeployment) version() string {
	var all []string
	for _, one := range []json.RawMessage{d.Actor, d.Bundles, d.Strategy, d.PerNode, d.Selectors} {
		all = append(all, canonical(one))
	}
	return strings.Join(all, "\n")
}

// replicas are as many as are asked for, of a share of the capacity rounded half up.
func (d *askedDeployment) replicas(capacity *float64) int {
	wanted := 1
	if json.Unmarshal(d.Replicas, &wanted) != nil { // "auto", or none
		wanted = 1
		if d.Autoscaling.Min != nil {
			wanted = *d.Autoscaling.Min
		}
	}
	if capacity == nil || wanted == 0 {
		return wanted
	}
	if *capacity == 0 {
		return 0
	}
	return max(1, int(math.Floor(float64(wanted)**capacity/100+0.5)))
}

// fault is what pydantic says is wrong.
type fault struct{ where, words, sort string }

// faults are what Serve would not take, without looking at what it looks at only when it
// deploys.
func (f *serveForm) faults() []fault {
	if f.Applications == nil {
		return []fault{{"applications", "Field required", "missing"}}
	}
	var all []fault
	for i, one := range *f.Applications {
		where := fmt.Sprintf("applications.%d", i)
		if one.ImportPath == nil {
			all = append(all, fault{where + ".import_path", "Field required", "missing"})
		} else if words := badImport(*one.ImportPath); words != "" {
			all = append(all, fault{where + ".import_path", "Value error, " + words, "value_error"})
		}
		for j, deployment := range one.Deployments {
			if deployment.Name == "" {
				all = append(all, fault{fmt.Sprintf("%s.deployments.%d.name", where, j), "Field required", "missing"})
			}
		}
	}
	if f.Capacity != nil && (*f.Capacity < 0 || *f.Capacity > 100) {
		all = append(all, fault{"target_capacity", "Input should be less than or equal to 100", "less_than_equal"})
	}
	if len(all) > 0 {
		return all
	}
	if words := f.conflict(); words != "" {
		all = append(all, fault{"applications", "Value error, " + words, "value_error"})
	}
	return all
}

// conflict is what is wrong with applications among each other.
func (f *serveForm) conflict() string {
	var names, routes []string
	for _, one := range *f.Applications {
		switch route := one.route(); {
		case one.name() == "":
			return "Application names must be nonempty."
		case one.Host != nil || one.Port != nil:
			return fmt.Sprintf("Host or port is set in the config for application `%s`. Please remove it and set it in the top level deploy config only.", one.name())
		case slices.Contains(names, one.name()):
			return fmt.Sprintf("Found multiple configs for application %q. Please remove all duplicates.", one.name())
		case route != nil && slices.Contains(routes, *route):
			return fmt.Sprintf("Found duplicate applications for route prefix %q. Please ensure each application's route_prefix is unique.", *route)
		case route != nil:
			routes = append(routes, *route)
		}
		names = append(names, one.name())
	}
	return ""
}

// badImport is what is wrong with an import path.
func badImport(path string) string {
	wrong := fmt.Sprintf("Got invalid import path %q. An import path ", path)
	if colons := strings.Count(path, ":"); colons > 0 {
		switch {
		case colons > 1:
			return wrong + "may have at most one colon."
		case strings.HasPrefix(path, ":") || strings.HasSuffix(path, ":"):
			return wrong + "may not start or end with a colon."
		}
		return ""
	}
	switch last := strings.LastIndexByte(path, '.'); {
	case last < 0:
		return wrong + "must contain at least on dot or colon separating the module (and potentially submodules) from the deployment graph. E.g.: \"module.deployment_graph\"."
	case last == 0 || last == len(path)-1:
		return wrong + "may not start or end with a dot."
	}
	return ""
}

// invalid is how pydantic says what is wrong: with a piece of what it was given.
func invalid(all []fault, given []byte) string {
	var said strings.Builder
	plural := ""
	if len(all) > 1 {
		plural = "s"
	}
	_, _ = fmt.Fprintf(&said, "%d validation error%s for ServeDeploySchema\n", len(all), plural)
	for _, one := range all {
		_, _ = fmt.Fprintf(&said, "%s\n  %s [type=%s, input_value=%.60s, input_type=dict]\n    For further information visit https://errors.pydantic.dev/2.13/v/%s\n",
			one.where, one.words, one.sort, given, one.sort)
	}
	return strings.TrimSuffix(said.String(), "\n")
}
