package fakehead

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Controller is how the dashboard finds Serve's controller.
type Controller int

// The ways in which a dashboard finds a controller that is there.
const (
	// ControllerFound answers.
	ControllerFound Controller = iota
	// ControllerLost is not found, because GCS is away: the dashboard says that Serve does
	// nothing.
	ControllerLost
	// ControllerFails is found and fails what it is asked.
	ControllerFails
)

// serving is what a head knows of Serve.
type serving struct {
	*shared
	cluster    *cluster
	controller Controller
	// began is when the controller was started, zero if there is none.
	began    time.Time
	delay    time.Duration
	capacity *float64
	apps     map[string]*application
	plans    map[string]plan
	proxies  proxies
	logs     map[logKey][]string
	// puts is how many configurations were taken, last the last, and changes how often
	// something else was asked for of an application.
	puts    int
	last    json.RawMessage
	changes map[string]int
}

// newServing is a Serve that was never started.
func newServing(all *shared, nodes *cluster) serving {
	return serving{
		shared: all, cluster: nodes, delay: DeployDelay, apps: map[string]*application{}, plans: map[string]plan{},
		proxies: proxies{on: map[*node]*proxy{}, sick: map[string]bool{}}, logs: map[logKey][]string{}, changes: map[string]int{},
	}
}

// restart keeps what a test wants to be so, and how often it was asked for what.
func (s *serving) restart() serving {
	again := newServing(s.shared, s.cluster)
	again.delay, again.plans, again.proxies.sick, again.puts, again.last, again.changes = s.delay, s.plans, s.proxies.sick, s.puts, s.last, s.changes
	return again
}

// SetDeployDelay sets how long it takes from a deployment to replicas that run.
func (s *serving) SetDeployDelay(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = by
}

// SetController sets how the dashboard finds the controller. Applications run on.
func (s *serving) SetController(how Controller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.controller = how
}

// Fail makes an application one that cannot be built, such as one whose import path does not
// exist: now if that is under way, and whenever other code is asked for of it.
func (s *serving) Fail(app, message string) { s.plan(app, func(p *plan) { p.failure = message }) }

// Crash makes new replicas of an application die when they start; a line is the last of
// their log.
func (s *serving) Crash(app, line string) { s.plan(app, func(p *plan) { p.crash = line }) }

// Hold keeps new replicas of an application from running, as if there were no room.
func (s *serving) Hold(app string) { s.plan(app, func(p *plan) { p.holds = true }) }

// Sicken makes an application that runs fail its health checks.
func (s *serving) Sicken(app, message string) { s.plan(app, func(p *plan) { p.sick = message }) }

// Heal takes back all that was said of an application. What has failed to be deployed stays
// so until it is asked for again, as in Serve.
func (s *serving) Heal(app string) { s.plan(app, func(p *plan) { *p = plan{} }) }

// plan changes what becomes of an application, which until now became as was said before.
func (s *serving) plan(app string, change func(*plan)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	changed := s.plans[app]
	change(&changed)
	s.plans[app] = changed
}

// SetProxy sets whether the proxy of an instance is healthy.
func (s *serving) SetProxy(instance string, healthy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proxies.sick[instance] = !healthy
}

// KillReplica ends a replica of an application that runs, whose log has a last line. It is
// false where there is none.
func (s *serving) KillReplica(app, line string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	for _, one := range s.apps[app].inOrder() {
		at := slices.IndexFunc(one.replicas, (*replica).serves)
		if at < 0 {
			continue
		}
		s.log(one.replicas[at], line)
		one.bury(one.replicas[at])
		one.replicas = slices.Delete(one.replicas, at, at+1)
		return true
	}
	return false
}

// AddImperative deploys an application as a driver does, not over the REST API.
func (s *serving) AddImperative(app, route string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	s.start(&serveForm{})
	path := "driver:app"
	s.apps[app] = &application{
		name: app, asked: &askedApplication{Name: &app, ImportPath: &path}, route: &route, at: s.clock.Now(), deployments: map[string]*deployment{},
	}
}

// Replicas are the IDs of the replicas of an application that get requests.
func (s *serving) Replicas(app string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	var ids []string
	for _, one := range s.apps[app].inOrder() {
		for _, replica := range one.replicas {
			if replica.serves() {
				ids = append(ids, replica.id)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// Puts is how many configurations were taken, and the last of them.
func (s *serving) Puts() (taken int, last json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.puts, slices.Clone(s.last)
}

// Changes is how often something else was asked for of an application, its first time too.
func (s *serving) Changes(app string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes[app]
}

// applications is all that Serve tells.
func (w *web) applications(*http.Request) reply {
	s := &w.head.serving
	if s.began.IsZero() || s.controller == ControllerLost {
		return reply{http.StatusOK, map[string]any{"controller_info": map[string]any{}, "proxies": map[string]any{}, "applications": map[string]any{}, "target_capacity": nil}}
	}
	if s.controller == ControllerFails {
		return reply{http.StatusServiceUnavailable, "Failed to get a response from the controller. The GCS may be down, please retry later: ray.exceptions.RayTaskError"}
	}
	listed, proxies := map[string]any{}, map[string]any{}
	for name, one := range s.apps {
		listed[name] = one.details(s.plans[name].sick)
	}
	var healthy []*node
	for _, one := range w.head.hosts() {
		state := s.proxies.state(one, s.clock.Now(), s.delay/2)
		if state == "" {
			continue
		}
		said := one.actor("SERVE_PROXY_ACTOR-"+one.id.String(), "serve/proxy_127.0.0.1.log")
		said["status"] = state
		proxies[one.id.String()] = said
		if state == "HEALTHY" {
			healthy = append(healthy, one)
		}
	}
	return reply{http.StatusOK, map[string]any{
		"controller_info": w.head.hosts()[0].actor("SERVE_CONTROLLER_ACTOR", "serve/controller_100.log"), "proxy_location": cmp.Or(s.proxies.location, "EveryNode"),
		"http_options": map[string]any{"host": "0.0.0.0", "port": s.proxies.http}, "grpc_options": map[string]any{"grpc_servicer_functions": []string{}},
		"proxies": proxies, "applications": listed, "target_capacity": s.capacity, "target_groups": s.proxies.groups(len(proxies) > 0, healthy),
		"controller_health_metrics": map[string]any{"num_control_loops": 1, "event_loop_delay_s": 0.0}, "restores_unset_config_options": true,
	}}
}

// deploy takes a whole configuration.
func (w *web) deploy(request *http.Request) reply {
	body, _ := io.ReadAll(request.Body) // it was read before
	if !json.Valid(body) {
		return traceback(http.StatusInternalServerError, "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)")
	}
	var form serveForm
	if err := json.Unmarshal(body, &form); err != nil {
		return reply{http.StatusBadRequest, invalid([]fault{{"applications", "Input should be a valid type", "type"}}, body)}
	}
	if wrong := form.faults(); len(wrong) > 0 {
		return reply{http.StatusBadRequest, invalid(wrong, body)}
	}
	s := &w.head.serving
	switch s.controller {
	case ControllerLost:
		return traceback(http.StatusInternalServerError, "ray.exceptions.RpcError: Timed out while looking for the controller")
	case ControllerFails:
		return traceback(http.StatusInternalServerError, "ray.exceptions.ActorUnavailableError: The actor is temporarily unavailable")
	}
	s.start(&form)
	s.puts, s.last = s.puts+1, body
	s.take(&form)
	s.settle()
	return reply{http.StatusOK, ""}
}

// start starts the controller, if there is none: what it is told of proxies counts only then. The caller holds the lock.
func (s *serving) start(form *serveForm) {
	if s.began.IsZero() {
		s.began = s.clock.Now()
		s.proxies.open(form)
	}
}

// take asks for all applications of a form, and for the end of others that came that way.
func (s *serving) take(form *serveForm) {
	s.capacity = form.Capacity
	named := map[string]bool{}
	for i := range *form.Applications {
		one := &(*form.Applications)[i]
		if _, own := one.config["logging_config"]; !own && form.Logging != nil {
			one.config["logging_config"] = form.Logging
		}
		named[one.name()] = true
		s.apply(one)
	}
	for name, one := range s.apps {
		if !named[name] && one.asked.config != nil && one.deleted.IsZero() {
			one.deleted, one.deployments = s.clock.Now(), map[string]*deployment{}
		}
	}
}

// apply asks for an application. Its code is built where it is another, or was not built.
func (s *serving) apply(asked *askedApplication) {
	name := asked.name()
	known := s.apps[name]
	if known == nil || !known.deleted.IsZero() {
		known = &application{name: name, asked: &askedApplication{}, deployments: map[string]*deployment{}}
		s.apps[name] = known
	}
	if s.changes[name] == 0 || !maps.EqualFunc(known.asked.config, asked.config, func(a, b json.RawMessage) bool { return canonical(a) == canonical(b) }) {
		s.changes[name]++
	}
	same := known.built && known.code == asked.code()
	known.asked, known.route, known.code, known.at, known.failure = asked, asked.route(), asked.code(), s.clock.Now(), ""
	known.built = false
	if same && known.badRoute() == "" {
		known.build(s.capacity)
	}
}

// shutDown ends Serve with all that it runs.
func (w *web) shutDown(*http.Request) reply {
	s := &w.head.serving
	s.began, s.apps, s.proxies.on, s.capacity = time.Time{}, map[string]*application{}, map[*node]*proxy{}, nil
	return reply{http.StatusOK, ""}
}

// replicaLog is the end of a log of Serve, if there is one of that name.
func (w *web) replicaLog(request *http.Request) (said string, found bool) {
	lines, found := w.head.logs[logKey{request.FormValue("node_id"), request.FormValue("filename")}]
	if count, err := strconv.Atoi(request.FormValue("lines")); err == nil && count >= 0 {
		lines = lines[max(0, len(lines)-count):]
	}
	return strings.Join(lines, "\n") + "\n", found
}

// agentOf reports whether a node has an agent that could read a file. It is so with all that
// live, and where a test has made none.
func (w *web) agentOf(id string) (missing string) {
	for _, one := range w.head.hosts() {
		if one.id.String() == id && !one.dead {
			return ""
		}
	}
	return fmt.Sprintf("Agent for node id: %s doesn't exist.", id)
}
