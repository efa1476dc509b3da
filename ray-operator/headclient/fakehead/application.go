package fakehead

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// How long things take in Serve 2.60, where a test does not say otherwise.
const (
	// DeployDelay is from a deployment to replicas that run; for half of it the application is
	// built, and nobody knows its deployments.
	DeployDelay = time.Second
	// controlLoop is how long an application is DEPLOYING of which nothing new was asked.
	controlLoop = 100 * time.Millisecond
	// maxDead is how many replicas of a deployment are remembered that are gone.
	maxDead = 10
)

// States of replicas.
const (
	replicaStarting  = "STARTING"
	replicaRunning   = "RUNNING"
	replicaMigrating = "PENDING_MIGRATION"
	replicaStopped   = "STOPPED"
)

// application is one that Serve knows. What becomes of it is worked out whenever it is
// looked at.
type application struct {
	name string
	// asked is what was asked for last; it has no config where that was not over the REST API.
	asked *askedApplication
	route *string
	code  string
	at    time.Time // when it was asked for last
	// built tells that its deployments are known, failure why that cannot be.
	built       bool
	failure     string
	deleted     time.Time // zero if it is not to go
	deployments map[string]*deployment
}

type deployment struct {
	name string
	// version changes with what replicas cannot take over while they run.
	version  string
	wanted   int
	replicas []*replica
	dead     []*replica
	failure  string
	// settled tells that it had all that it must have since it was asked for last.
	settled bool
}

type replica struct {
	id, version, state string
	// ready is when it runs, if there is room.
	ready time.Time
	node  *node // nil before it runs
	file  string
	// config is that of its application when it was begun.
	config map[string]json.RawMessage
}

// plan is what a test wants to become of an application.
type plan struct {
	failure, crash, sick string
	holds                bool
}

func (r *replica) serves() bool { return r.state == replicaRunning || r.state == replicaMigrating }

func (d *deployment) serving() int {
	count := 0
	for _, one := range d.replicas {
		if one.serves() {
			count++
		}
	}
	return count
}

// settle brings Serve to the present. The caller holds the lock.
func (s *serving) settle() {
	now := s.clock.Now()
	for _, name := range slices.Sorted(maps.Keys(s.apps)) {
		one := s.apps[name]
		switch {
		case one.deleted.IsZero():
			s.settleApplication(one, now)
		case !now.Before(one.deleted.Add(s.delay / 2)):
			delete(s.apps, name)
		}
	}
	s.proxies.settle(s.cluster.hosts(), s.needProxies(), now)
}

// needProxies are the nodes that need a proxy, and since when: the head's, and those with replicas.
func (s *serving) needProxies() map[*node]time.Time {
	needed := map[*node]time.Time{}
	if s.began.IsZero() || s.proxies.location == "Disabled" {
		return needed
	}
	for _, a := range s.apps {
		for _, d := range a.deployments {
			for _, one := range d.replicas {
				if since, known := needed[one.node]; one.node != nil && (!known || one.ready.Before(since)) {
					needed[one.node] = one.ready
				}
			}
		}
	}
	if s.proxies.location == "HeadOnly" {
		clear(needed)
	}
	for _, one := range s.cluster.hosts() {
		if one.Head {
			needed[one] = s.began
		}
	}
	maps.DeleteFunc(needed, func(one *node, _ time.Time) bool { return one.draining != 0 })
	return needed
}

func (s *serving) settleApplication(one *application, now time.Time) {
	plan := s.plans[one.name]
	if !one.built {
		if one.failure != "" || now.Before(one.at.Add(s.delay/2)) {
			return
		}
		if one.failure = cmp.Or(plan.failure, one.notImported(), one.badRoute()); one.failure != "" {
			return
		}
		one.build(s.capacity)
	}
	for _, name := range slices.Sorted(maps.Keys(one.deployments)) {
		s.staff(one, one.deployments[name], now)
	}
}

// notImported is what Python says of a module that nobody has: nowhere, and all below it.
func (a *application) notImported() string {
	module, _, _ := strings.Cut(strings.ReplaceAll(*a.asked.ImportPath, ":", "."), ".")
	if module != "nowhere" {
		return ""
	}
	return "ModuleNotFoundError: No module named 'nowhere'"
}

// badRoute is what Serve finds wrong with a route only when it deploys.
func (a *application) badRoute() string {
	if a.route == nil || (*a.route)[:min(1, len(*a.route))] == "/" {
		return ""
	}
	return fmt.Sprintf("ray.serve.exceptions.RayServeException: Invalid route prefix %q, it must start with \"/\"", *a.route)
}

// inOrder are its deployments in the order of their names; none where it is nil.
func (a *application) inOrder() []*deployment {
	if a == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(a.deployments), func(a, b *deployment) int { return strings.Compare(a.name, b.name) })
}

// build makes its deployments what was asked for. Replicas that are as they should stay.
func (a *application) build(capacity *float64) {
	a.built = true
	wanted := map[string]bool{}
	for _, form := range a.asked.deployments() {
		wanted[form.Name] = true
		known := a.deployments[form.Name]
		if known == nil {
			known = &deployment{name: form.Name}
			a.deployments[form.Name] = known
		}
		known.version, known.wanted = a.code+form.version(), form.replicas(capacity)
		known.failure, known.settled = "", false
	}
	maps.DeleteFunc(a.deployments, func(name string, _ *deployment) bool { return !wanted[name] })
}

// staff gives a deployment the replicas that it must have.
func (s *serving) staff(a *application, d *deployment, now time.Time) {
	d.lose()
	for fresh := d.fresh(); d.failure == "" && fresh < d.wanted; fresh++ {
		ready := now.Add(s.delay / 2)
		if !d.settled {
			ready = a.at.Add(s.delay)
		}
		s.made++
		id := fmt.Sprintf("r%07d", s.made)
		d.replicas = append(d.replicas, &replica{
			id: id, version: d.version, state: replicaStarting, ready: ready,
			file: fmt.Sprintf("serve/replica_%s_%s_%s.log", a.name, d.name, id), config: a.asked.config,
		})
	}
	s.begins(a, d, now)
	if d.retire() && d.failure == "" && !now.Before(a.at.Add(min(s.delay, controlLoop))) {
		d.settled = true
	}
}

// retire ends the replicas that are too many, once enough run that are as they should. It
// reports whether they do.
func (d *deployment) retire() (enough bool) {
	running := 0
	for _, one := range d.replicas {
		if d.good(one) {
			running++
		}
	}
	if running < d.wanted {
		return false
	}
	d.replicas = slices.DeleteFunc(d.replicas, func(one *replica) bool {
		if d.good(one) {
			if running == d.wanted {
				return false
			}
			running--
		}
		d.bury(one)
		return true
	})
	return true
}

// good reports whether a replica runs, as it should and where it can stay.
func (d *deployment) good(one *replica) bool {
	return one.version == d.version && one.state == replicaRunning
}

// fresh is how many replicas are as they should, or will be.
func (d *deployment) fresh() int {
	count := 0
	for _, one := range d.replicas {
		if one.version == d.version && one.state != replicaMigrating {
			count++
		}
	}
	return count
}

// lose takes the replicas of nodes that died, and lets those of nodes that drain look for
// another place.
func (d *deployment) lose() {
	d.replicas = slices.DeleteFunc(d.replicas, func(one *replica) bool {
		if one.node == nil || !one.node.dead {
			return false
		}
		d.bury(one)
		return true
	})
	for _, one := range d.replicas {
		if one.state == replicaRunning && one.node.draining != 0 {
			one.state = replicaMigrating
		}
	}
}

// begins runs replicas whose time has come, where there is room.
func (s *serving) begins(a *application, d *deployment, now time.Time) {
	plan := s.plans[a.name]
	for _, one := range d.replicas {
		if one.state != replicaStarting || now.Before(one.ready) || plan.holds {
			continue
		}
		if one.node = emptiest(s.cluster.hosts(), s.apps); one.node == nil {
			continue
		}
		s.log(one, "INFO replica.py -- Started initializing replica.")
		one.state = replicaRunning
		if plan.crash != "" {
			s.log(one, plan.crash)
			d.failure = plan.crash
			d.bury(one)
		}
	}
	d.replicas = slices.DeleteFunc(d.replicas, func(one *replica) bool { return one.state == replicaStopped })
}

// bury remembers a replica that is gone, if it had a log.
func (d *deployment) bury(one *replica) {
	if one.node == nil {
		return
	}
	one.state = replicaStopped
	d.dead = append(d.dead, one)
	d.dead = d.dead[max(0, len(d.dead)-maxDead):]
}

// emptiest finds the node for a replica: the worker with the fewest, or the head where there
// are no workers; nil if there is none.
func emptiest(nodes []*node, apps map[string]*application) *node {
	count := map[*node]int{}
	for _, a := range apps {
		for _, d := range a.deployments {
			for _, one := range d.replicas {
				count[one.node]++
			}
		}
	}
	var best *node
	alone := !slices.ContainsFunc(nodes, func(one *node) bool { return !one.Head })
	for _, one := range nodes {
		if one.dead || one.draining != 0 || one.Head != alone {
			continue
		}
		if best == nil || count[one] < count[best] {
			best = one
		}
	}
	return best
}

func (s *serving) log(r *replica, line string) {
	at := s.clock.Now().UTC().Format("2006-01-02 15:04:05,000 ")
	key := logKey{r.node.id.String(), r.file}
	s.logs[key] = append(s.logs[key], at+line)
}

// logKey is a file of a node.
type logKey struct{ node, file string }

// state is what Serve says of an application.
func (a *application) state(sick string) (headclient.ApplicationState, string) {
	switch {
	case !a.deleted.IsZero():
		return headclient.ApplicationDeleting, ""
	case a.failure != "":
		return headclient.ApplicationDeployFailed, fmt.Sprintf("Deploying app '%s' failed with exception:\nTraceback (most recent call last):\n%s\n", a.name, a.failure)
	case !a.built:
		return headclient.ApplicationDeploying, ""
	}
	for _, bad := range []struct {
		state, words string
		is           headclient.ApplicationState
	}{
		{"DEPLOY_FAILED", "Failed to update the deployments ['%s'].", headclient.ApplicationDeployFailed},
		{"UNHEALTHY", "The deployments ['%s'] are UNHEALTHY.", headclient.ApplicationUnhealthy},
		{"UPDATING", "", headclient.ApplicationDeploying},
	} {
		for _, name := range slices.Sorted(maps.Keys(a.deployments)) {
			if state, _, _ := a.deployments[name].state(sick); state == bad.state {
				if bad.words == "" {
					return bad.is, ""
				}
				return bad.is, fmt.Sprintf(bad.words, name)
			}
		}
	}
	return headclient.ApplicationRunning, ""
}

// state is what Serve says of a deployment.
func (d *deployment) state(sick string) (state, trigger, message string) {
	switch {
	case d.failure != "":
		return "DEPLOY_FAILED", "REPLICA_STARTUP_FAILED", "The deployment failed to start 3 times in a row. This may be due to a problem with its " +
			"constructor or initial health check failing. See controller logs for details. Error:\n" + d.failure
	case !d.settled:
		return "UPDATING", "CONFIG_UPDATE_STARTED", ""
	case sick != "":
		return "UNHEALTHY", "HEALTH_CHECK_FAILED", sick
	case d.serving() < d.wanted:
		return "UNHEALTHY", "HEALTH_CHECK_FAILED", "A replica's health check failed. This deployment will be UNHEALTHY until the replica recovers or a new deploy happens."
	default:
		return "HEALTHY", "CONFIG_UPDATE_COMPLETED", ""
	}
}

// details are what Ray tells of an application.
func (a *application) details(sick string) map[string]any {
	state, message := a.state(sick)
	said := map[string]any{
		"name": a.name, "route_prefix": nil, "docs_path": nil, "status": state, "message": message, "source": "imperative",
		"last_deployed_time_s": float64(a.at.UnixMicro()) / 1e6, "deployments": map[string]any{}, "external_scaler_enabled": false,
	}
	if a.built {
		said["route_prefix"] = a.route
	}
	if a.asked.config != nil {
		said["source"] = "declarative"
		if a.deleted.IsZero() {
			said["deployed_app_config"] = a.asked.config
		}
	}
	if !a.built || !a.deleted.IsZero() {
		return said // its deployments are not known, whatever runs of former ones
	}
	listed := map[string]any{}
	for name, one := range a.deployments {
		listed[name] = one.details(sick)
	}
	said["deployments"] = listed
	return said
}

func (d *deployment) details(sick string) map[string]any {
	state, trigger, message := d.state(sick)
	return map[string]any{
		"name": d.name, "status": state, "status_trigger": trigger, "message": message,
		"deployment_config": map[string]any{"name": d.name, "num_replicas": d.wanted}, "target_num_replicas": d.wanted,
		"required_resources": map[string]any{"CPU": 1}, "replicas": listReplicas(d.replicas), "recent_dead_replicas": listReplicas(d.dead),
	}
}

// listReplicas leaves out what is not known yet, as Ray does.
func listReplicas(replicas []*replica) []map[string]any {
	listed := make([]map[string]any, 0, len(replicas))
	for _, one := range replicas {
		said := map[string]any{"replica_id": one.id, "state": one.state, "start_time_s": float64(one.ready.UnixMicro()) / 1e6}
		if one.node != nil {
			maps.Copy(said, one.node.actor(one.id, one.file))
			said["pid"] = 1000
		}
		listed = append(listed, said)
	}
	return listed
}

// actor is what Ray tells of an actor of Serve that runs on a node. The path of its log
// begins with a '/', which is not to be sent back.
func (n *node) actor(name, file string) map[string]any {
	return map[string]any{
		"node_id": n.id.String(), "node_ip": "127.0.0.1", "node_instance_id": n.Instance, "actor_id": "a0",
		"actor_name": "SERVE_REPLICA::" + name, "worker_id": "b0", "log_file_path": "/" + file,
	}
}

// canonical is a piece of JSON in the one form that equal ones share; empty for none.
func canonical(said json.RawMessage) string {
	var value any
	if json.Unmarshal(said, &value) != nil {
		return ""
	}
	again, err := json.Marshal(value)
	if err != nil {
		panic(err) // it was JSON
	}
	return string(again)
}
