package headclient

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Limits on how much a head may say of Serve.
const (
	maxApplications = 1_000
	maxDeployments  = 2_000
	maxReplicas     = 10_000
	maxTargets      = 10_000
	// maxRoute is of a route prefix, in bytes.
	maxRoute = 1 << 10
	// maxWanted is of the replicas of a deployment.
	maxWanted = 1_000_000
)

// saidServing is what Ray says of Serve. Fields that are not here, and those of which a
// version says nothing, do not matter.
type saidServing struct {
	Controller   map[string]json.RawMessage `json:"controller_info"`
	Applications map[string]saidApplication `json:"applications"`
	Capacity     *float64                   `json:"target_capacity"`
	Groups       []saidGroup                `json:"target_groups"`
}

type saidApplication struct {
	Name        string                    `json:"name"`
	State       string                    `json:"status"`
	Message     string                    `json:"message"`
	Route       *string                   `json:"route_prefix"`
	Source      *string                   `json:"source"`
	Deployed    json.RawMessage           `json:"deployed_app_config"`
	DeployedAt  float64                   `json:"last_deployed_time_s"`
	Deployments map[string]saidDeployment `json:"deployments"`
}

type saidDeployment struct {
	State    string        `json:"status"`
	Trigger  string        `json:"status_trigger"`
	Message  string        `json:"message"`
	Wanted   int64         `json:"target_num_replicas"`
	Replicas []saidReplica `json:"replicas"`
	Dead     []saidReplica `json:"recent_dead_replicas"`
}

type saidReplica struct {
	ID       string  `json:"replica_id"`
	State    string  `json:"state"`
	Node     string  `json:"node_id"`
	Instance *string `json:"node_instance_id"`
	File     *string `json:"log_file_path"`
}

type saidGroup struct {
	Protocol string `json:"protocol"`
	Targets  []struct {
		Instance *string `json:"instance_id"`
		IP       string  `json:"ip"`
		Port     int64   `json:"port"`
	} `json:"targets"`
}

// readServing reads what a head says of Serve. What is compared must be as it should, or the
// whole is taken for nothing: an application that was left out would be one that is gone.
func readServing(body []byte, token string) (Serving, error) {
	if jsonParts(body) > maxParts {
		return Serving{}, errTooMany
	}
	var said saidServing
	if err := decode(body, &said); err != nil {
		return Serving{}, err
	}
	switch {
	case said.Applications == nil || said.Controller == nil:
		return Serving{}, errors.New("the answer is not of Serve")
	case len(said.Controller) == 0:
		return Serving{}, nil
	case said.Capacity != nil && (*said.Capacity < 0 || *said.Capacity > 100):
		return Serving{}, fmt.Errorf("invalid capacity of %g percent", *said.Capacity)
	}
	if err := said.check(); err != nil {
		return Serving{}, err
	}
	serving := Serving{
		Running: true, Applications: make(map[string]Application, len(said.Applications)), Targets: readTargets(said.Groups), Capacity: said.Capacity,
	}
	for name, one := range said.Applications {
		application, err := one.read(name, token)
		if err != nil {
			return Serving{}, fmt.Errorf("application %s: %w", text([]byte(hide(name, token))), err)
		}
		serving.Applications[name] = application
	}
	return serving, nil
}

// jsonParts counts what reading JSON would make: objects, lists and what is in them.
func jsonParts(body []byte) int {
	count, quoted, escaped := 0, false, false
	for _, b := range body {
		switch {
		case escaped:
			escaped = false
		case quoted && b == '\\':
			escaped = true
		case b == '"':
			quoted = !quoted
		case !quoted && (b == '{' || b == '[' || b == ','):
			count++
		}
	}
	return count
}

// check counts what there is.
func (s *saidServing) check() error {
	deployments, replicas, targets := 0, 0, 0
	for _, application := range s.Applications {
		deployments += len(application.Deployments)
		for _, deployment := range application.Deployments {
			replicas += len(deployment.Replicas) + len(deployment.Dead)
		}
	}
	for _, group := range s.Groups {
		targets += len(group.Targets)
	}
	if len(s.Applications) > maxApplications || deployments > maxDeployments || replicas > maxReplicas || targets > maxTargets {
		return fmt.Errorf("%d applications with %d deployments, %d replicas and %d targets are too many",
			len(s.Applications), deployments, replicas, targets)
	}
	return nil
}

// declarative is the source of an application that came over the REST API.
const declarative = "declarative"

// check finds what cannot be in what is compared.
func (s *saidApplication) check(name string) error {
	switch {
	case !named(name) || s.Name != "" && s.Name != name:
		return errors.New("missing name")
	case !named(s.State):
		return errors.New("missing or unknown status")
	case s.Route != nil && (len(*s.Route) > maxRoute || *s.Route != clean(*s.Route)):
		return errors.New("invalid route prefix")
	}
	return nil
}

func (s *saidApplication) read(name, token string) (Application, error) {
	if err := s.check(name); err != nil {
		return Application{}, err
	}
	at, err := sinceEpoch(s.DeployedAt)
	if err != nil {
		return Application{}, fmt.Errorf("when it was deployed: %w", err)
	}
	application := Application{
		Name: name, State: ApplicationState(s.State), Message: ending(withoutFrames(s.Message), token), DeployedAt: at, RoutePrefix: given(s.Route),
	}
	if application.Deployed, err = readDeployed(s.Deployed); err != nil {
		return Application{}, err
	}
	// A Ray that does not tell where it came from keeps the configurations of those alone.
	application.Declarative = s.Source == nil && application.Deployed != nil || given(s.Source) == declarative
	for _, key := range slices.Sorted(maps.Keys(s.Deployments)) {
		one := s.Deployments[key]
		deployment, err := one.read(key, token)
		if err != nil {
			return Application{}, fmt.Errorf("deployment %s: %w", text([]byte(hide(key, token))), err)
		}
		application.Deployments = append(application.Deployments, deployment)
	}
	return application, nil
}

// given is a text that may be missing.
func given(said *string) string {
	if said == nil {
		return ""
	}
	return *said
}

// readDeployed is a configuration as it was deployed. It is sent back, and so left as it is.
func readDeployed(said json.RawMessage) (json.RawMessage, error) {
	if len(said) == 0 || string(said) == "null" {
		return nil, nil
	}
	var object map[string]json.RawMessage
	if err := decode(said, &object); err != nil {
		return nil, errors.New("its configuration is no object")
	}
	return said, nil
}

func (s *saidDeployment) read(name, token string) (Deployment, error) {
	switch {
	case !named(name):
		return Deployment{}, errors.New("missing name")
	case !named(s.State) || s.Trigger != "" && !named(s.Trigger):
		return Deployment{}, errors.New("missing or unknown status")
	case s.Wanted < 0 || s.Wanted > maxWanted:
		return Deployment{}, fmt.Errorf("%d replicas are not possible", s.Wanted)
	}
	deployment := Deployment{Name: name, State: s.State, Trigger: s.Trigger, Message: ending(withoutFrames(s.Message), token), Wanted: int(s.Wanted)}
	for _, one := range s.Replicas {
		if !named(one.ID) || !named(one.State) {
			return Deployment{}, errors.New("a replica has no ID or state")
		}
		if slices.Contains(serving, one.State) {
			deployment.Running++
		}
		deployment.Replicas = append(deployment.Replicas, Replica{ID: one.ID, State: one.State, Instance: instance(one.Instance), Log: one.log()})
	}
	slices.SortStableFunc(deployment.Replicas, func(a, b Replica) int { return cmp.Compare(a.ID, b.ID) })
	if n := len(s.Dead); n > 0 {
		deployment.Failed = s.Dead[n-1].log()
	}
	return deployment, nil
}

// instance is a RAY_CLOUD_INSTANCE_ID; what cannot be one is none.
func instance(said *string) string {
	if name := given(said); named(name) {
		return name
	}
	return ""
}

// serving are the states of replicas that get requests. One that has to leave its node does until another is there. One
// that a controller finds when it comes back, or whose health it doubts, does until the controller knows better.
var serving = []string{"RUNNING", "PENDING_MIGRATION", "RECOVERING"}

// log is where a replica writes. Ray gives the path below the log directory with a '/'
// before it, and would take it back for that of a file elsewhere.
func (s *saidReplica) log() Log {
	node, err := ParseNodeID(s.Node)
	if err != nil {
		return Log{}
	}
	file := strings.TrimPrefix(given(s.File), "/")
	if !sendableFile(file) {
		return Log{}
	}
	return Log{Node: node.String(), File: file}
}

// readTargets gives the proxies that requests can be sent to, each once and in an order that
// does not change by itself.
func readTargets(groups []saidGroup) []Target {
	var targets []Target
	for _, group := range groups {
		if group.Protocol != "HTTP" && group.Protocol != "gRPC" {
			continue
		}
		for _, one := range group.Targets {
			ip, err := netip.ParseAddr(one.IP)
			if err != nil || ip.IsUnspecified() || ip.Zone() != "" || one.Port < 1 || one.Port > math.MaxUint16 {
				continue
			}
			targets = append(targets, Target{Protocol: group.Protocol, Instance: instance(one.Instance), IP: ip.String(), Port: int32(one.Port)})
		}
	}
	slices.SortFunc(targets, func(a, b Target) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.IP, b.IP), cmp.Compare(a.Port, b.Port))
	})
	return slices.Compact(targets)
}

// named reports whether a text may be a name: something, not too long, and as it looks.
func named(name string) bool {
	return name != "" && len(name) <= maxName && name == clean(name)
}

// sinceEpoch reads a time in seconds since the epoch; zero is none.
func sinceEpoch(seconds float64) (time.Time, error) {
	const last = 1e11 // it is the year 5138
	if !(seconds >= 0 && seconds < last) {
		return time.Time{}, fmt.Errorf("%g is no time", seconds)
	}
	if seconds == 0 {
		return time.Time{}, nil
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9)), nil
}
