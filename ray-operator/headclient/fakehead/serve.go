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

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
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

// proxyDrain is how long a proxy stays that is not needed any more: 30 s without a request,
// which is looked at every 5 s.
const proxyDrain = 35 * time.Second

// serving is what a head knows of Serve.
type serving struct {
	controller Controller
	// began is when the controller was started, zero if there is none.
	began    time.Time
	delay    time.Duration
	capacity *float64
	apps     map[string]*application
	plans    map[string]plan
	proxies  map[*node]*proxy
	sick     map[string]bool // proxies that fail, by instance
	logs     map[logKey][]string
	own      *node
	location string
	// http and grpc are ports, grpc 0 where nothing is served over it.
	http, grpc int32
	// puts is how many configurations were taken, last the last, and changes how often
	// something else was asked for of an application.
	puts    int
	last    json.RawMessage
	changes map[string]int
}

type proxy struct {
	since time.Time
	left  time.Time // when it began to drain, zero if it does not
}

// newServing is a Serve that was never started.
func newServing() serving {
	return serving{
		delay: DeployDelay, apps: map[string]*application{}, plans: map[string]plan{}, proxies: map[*node]*proxy{}, sick: map[string]bool{},
		logs: map[logKey][]string{}, changes: map[string]int{}, own: &node{Member: Member{Instance: "head", Head: true}, id: headclient.NodeID{1}},
	}
}

// restart keeps what a test wants to be so, and how often it was asked for what.
func (s *serving) restart() serving {
	again := newServing()
	again.delay, again.plans, again.sick, again.puts, again.last, again.changes = s.delay, s.plans, s.sick, s.puts, s.last, s.changes
	return again
}

// SetDeployDelay sets how long it takes from a deployment to replicas that run.
func (h *Head) SetDeployDelay(by time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.serve.delay = by
}

// SetController sets how the dashboard finds the controller. Applications run on.
func (h *Head) SetController(how Controller) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.serve.controller = how
}

// Fail makes an application one that cannot be built, such as one whose import path does not
// exist: now if that is under way, and whenever other code is asked for of it.
func (h *Head) Fail(app, message string) { h.plan(app, func(p *plan) { p.failure = message }) }

// Crash makes new replicas of an application die when they start; a line is the last of
// their log.
func (h *Head) Crash(app, line string) { h.plan(app, func(p *plan) { p.crash = line }) }

// Hold keeps new replicas of an application from running, as if there were no room.
func (h *Head) Hold(app string) { h.plan(app, func(p *plan) { p.holds = true }) }

// Sicken makes an application that runs fail its health checks.
func (h *Head) Sicken(app, message string) { h.plan(app, func(p *plan) { p.sick = message }) }

// Heal takes back all that was said of an application. What has failed to be deployed stays
// so until it is asked for again, as in Serve.
func (h *Head) Heal(app string) { h.plan(app, func(p *plan) { *p = plan{} }) }

// plan changes what becomes of an application, which until now became as was said before.
func (h *Head) plan(app string, change func(*plan)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settleServe()
	changed := h.serve.plans[app]
	change(&changed)
	h.serve.plans[app] = changed
}

// SetProxy sets whether the proxy of an instance is healthy.
func (h *Head) SetProxy(instance string, healthy bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.serve.sick[instance] = !healthy
}

// KillReplica ends a replica of an application that runs, whose log has a last line. It is
// false where there is none.
func (h *Head) KillReplica(app, line string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settleServe()
	for _, one := range h.deploymentsOf(app) {
		at := slices.IndexFunc(one.replicas, (*replica).serves)
		if at < 0 {
			continue
		}
		h.log(one.replicas[at], line)
		one.bury(one.replicas[at])
		one.replicas = slices.Delete(one.replicas, at, at+1)
		return true
	}
	return false
}

// AddImperative deploys an application as a driver does, not over the REST API.
func (h *Head) AddImperative(app, route string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settleServe()
	h.startServe(&serveForm{})
	path := "driver:app"
	h.serve.apps[app] = &application{
		name: app, asked: &askedApplication{Name: &app, ImportPath: &path}, route: &route, at: h.clock.Now(), deployments: map[string]*deployment{},
	}
}

// Replicas are the IDs of the replicas of an application that get requests.
func (h *Head) Replicas(app string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settleServe()
	var ids []string
	for _, one := range h.deploymentsOf(app) {
		for _, replica := range one.replicas {
			if replica.serves() {
				ids = append(ids, replica.id)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// deploymentsOf are the deployments of an application in the order of their names.
func (h *Head) deploymentsOf(app string) []*deployment {
	found := h.serve.apps[app]
	if found == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(found.deployments), func(a, b *deployment) int { return strings.Compare(a.name, b.name) })
}

// Puts is how many configurations were taken, and the last of them.
func (h *Head) Puts() (taken int, last json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.serve.puts, slices.Clone(h.serve.last)
}

// Changes is how often something else was asked for of an application, its first time too.
func (h *Head) Changes(app string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.serve.changes[app]
}

// startServe starts the controller, if there is none: what it is told of proxies counts
// only then. The caller holds the lock.
func (h *Head) startServe(form *serveForm) {
	s := &h.serve
	if !s.began.IsZero() {
		return
	}
	s.began, s.location, s.http, s.grpc = h.clock.Now(), form.Location, 8000, 0
	if form.HTTP.Port != nil {
		s.http = *form.HTTP.Port
	}
	if len(form.GRPC.Functions) > 0 {
		s.grpc = 9000
		if form.GRPC.Port != nil {
			s.grpc = *form.GRPC.Port
		}
	}
}

// settleProxies gives each node that needs one a proxy, and lets others drain. The caller
// holds the lock.
func (h *Head) settleProxies(now time.Time) {
	needed := h.serve.staffed()
	for _, one := range h.serveNodes() {
		if one.Head {
			needed[one] = h.serve.began
		}
		since, need := needed[one]
		need = need && !h.serve.began.IsZero() && h.serve.location != "Disabled" && one.draining == 0
		known := h.serve.proxies[one]
		switch {
		case known == nil && need && !one.dead:
			h.serve.proxies[one] = &proxy{since: since}
		case known != nil && (one.dead || known.gone(need, now)):
			delete(h.serve.proxies, one)
		}
	}
}

// staffed are the nodes with replicas, and since when, if they get proxies for them.
func (s *serving) staffed() map[*node]time.Time {
	nodes := map[*node]time.Time{}
	if s.location == "HeadOnly" {
		return nodes
	}
	for _, a := range s.apps {
		for _, d := range a.deployments {
			for _, one := range d.replicas {
				if since, known := nodes[one.node]; one.node != nil && (!known || one.ready.Before(since)) {
					nodes[one.node] = one.ready
				}
			}
		}
	}
	return nodes
}

// gone reports whether a proxy is over, and when it is not needed lets it drain.
func (p *proxy) gone(needed bool, now time.Time) bool {
	switch {
	case needed:
		p.left = time.Time{}
	case p.left.IsZero():
		p.left = now
	}
	return !needed && !now.Before(p.left.Add(proxyDrain))
}

// proxyState is what Serve says of a proxy.
func (h *Head) proxyState(on *node, p *proxy) string {
	switch {
	case !p.left.IsZero():
		return "DRAINING"
	case h.serve.sick[on.Instance]:
		return "UNHEALTHY"
	case h.clock.Now().Before(p.since.Add(h.serve.delay / 2)):
		return "STARTING"
	default:
		return "HEALTHY"
	}
}

// applications is all that Serve tells.
func (w *web) applications(*http.Request) reply {
	s := &w.head.serve
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
	for _, one := range w.head.serveNodes() {
		known := s.proxies[one]
		if known == nil {
			continue
		}
		said := one.actor("SERVE_PROXY_ACTOR-"+one.id.String(), "serve/proxy_127.0.0.1.log")
		state := w.head.proxyState(one, known)
		said["status"] = state
		proxies[one.id.String()] = said
		if state == "HEALTHY" {
			healthy = append(healthy, one)
		}
	}
	location := s.location
	if location == "" {
		location = "EveryNode"
	}
	return reply{http.StatusOK, map[string]any{
		"controller_info": w.head.serveNodes()[0].actor("SERVE_CONTROLLER_ACTOR", "serve/controller_100.log"), "proxy_location": location,
		"http_options": map[string]any{"host": "0.0.0.0", "port": s.http}, "grpc_options": map[string]any{"grpc_servicer_functions": []string{}},
		"proxies": proxies, "applications": listed, "target_capacity": s.capacity, "target_groups": s.groups(len(proxies) > 0, healthy),
		"controller_health_metrics": map[string]any{"num_control_loops": 1, "event_loop_delay_s": 0.0}, "restores_unset_config_options": true,
	}}
}

// groups are where requests can go: one group for each protocol, as soon as there is a proxy.
func (s *serving) groups(begun bool, healthy []*node) []map[string]any {
	groups := []map[string]any{}
	for protocol, port := range map[string]int32{"HTTP": s.http, "gRPC": s.grpc} {
		if !begun || port == 0 {
			continue
		}
		targets := []map[string]any{}
		for _, one := range healthy {
			targets = append(targets, map[string]any{"ip": cmp.Or(one.IP, "127.0.0.1"), "port": port, "instance_id": one.Instance, "name": "SERVE_PROXY_ACTOR-" + one.id.String()})
		}
		groups = append(groups, map[string]any{
			"targets": targets, "route_prefix": "/", "protocol": protocol, "app_name": "", "ingress_request_router_targets": []any{}, "ingress_deployment_name": "",
		})
	}
	return groups
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
	switch w.head.serve.controller {
	case ControllerLost:
		return traceback(http.StatusInternalServerError, "ray.exceptions.RpcError: Timed out while looking for the controller")
	case ControllerFails:
		return traceback(http.StatusInternalServerError, "ray.exceptions.ActorUnavailableError: The actor is temporarily unavailable")
	}
	w.head.startServe(&form)
	w.head.serve.puts, w.head.serve.last = w.head.serve.puts+1, body
	w.head.take(&form)
	w.head.settleServe()
	return reply{http.StatusOK, ""}
}

// take asks for all applications of a form, and for the end of others that came that way.
func (h *Head) take(form *serveForm) {
	h.serve.capacity = form.Capacity
	named := map[string]bool{}
	for i := range *form.Applications {
		one := &(*form.Applications)[i]
		if _, own := one.config["logging_config"]; !own && form.Logging != nil {
			one.config["logging_config"] = form.Logging
		}
		named[one.name()] = true
		h.apply(one)
	}
	for name, one := range h.serve.apps {
		if !named[name] && one.asked.config != nil && one.deleted.IsZero() {
			one.deleted, one.deployments = h.clock.Now(), map[string]*deployment{}
		}
	}
}

// apply asks for an application. Its code is built where it is another, or was not built.
func (h *Head) apply(asked *askedApplication) {
	name := asked.name()
	known := h.serve.apps[name]
	if known == nil || !known.deleted.IsZero() {
		known = &application{name: name, asked: &askedApplication{}, deployments: map[string]*deployment{}}
		h.serve.apps[name] = known
	}
	if h.serve.changes[name] == 0 || !maps.EqualFunc(known.asked.config, asked.config, func(a, b json.RawMessage) bool { return canonical(a) == canonical(b) }) {
		h.serve.changes[name]++
	}
	same := known.built && known.code == asked.code()
	known.asked, known.route, known.code, known.at, known.failure = asked, asked.route(), asked.code(), h.clock.Now(), ""
	known.built = false
	if same && known.badRoute() == "" {
		known.build(h.serve.capacity)
	}
}

// shutDown ends Serve with all that it runs.
func (w *web) shutDown(*http.Request) reply {
	s := &w.head.serve
	s.began, s.apps, s.proxies, s.capacity = time.Time{}, map[string]*application{}, map[*node]*proxy{}, nil
	return reply{http.StatusOK, ""}
}

// replicaLog is the end of a log of Serve, if there is one of that name.
func (w *web) replicaLog(request *http.Request) (said string, found bool) {
	lines, found := w.head.serve.logs[logKey{request.FormValue("node_id"), request.FormValue("filename")}]
	if count, err := strconv.Atoi(request.FormValue("lines")); err == nil && count >= 0 {
		lines = lines[max(0, len(lines)-count):]
	}
	return strings.Join(lines, "\n") + "\n", found
}

// agentOf reports whether a node has an agent that could read a file. It is so with all that
// live, and where a test has made none.
func (w *web) agentOf(id string) (missing string) {
	for _, one := range w.head.serveNodes() {
		if one.id.String() == id && !one.dead {
			return ""
		}
	}
	return fmt.Sprintf("Agent for node id: %s doesn't exist.", id)
}
