package testkit

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/serveconfig"
)

// perReplica is how long it takes until one replica more or less runs.
const perReplica = 2 * time.Second

// growth is for how long Serve may have fewer replicas than a changed load needs.
const growth = 30 * time.Second

// What made Serve want another number of replicas, in its words.
const (
	byConfig = "CONFIG_UPDATE_STARTED"
	byLoad   = "AUTOSCALING"
)

// scaled is the one deployment of an application that Serve scales.
type scaled struct {
	serveconfig.Scaled
	wanted, running int
	trigger         string
	// next is when the next replica is there or gone, emptied when the last one went, called when a request came last.
	next, emptied, called time.Time
}

const (
	// idle is how long Serve keeps a replica that a request called.
	idle = time.Minute
	// stays is how long the proxy of a worker answers that has no replica any more.
	stays = 30 * time.Second
)

// scaledOf reads what an application has Serve scale, nil where it has a fixed number of replicas.
func scaledOf(text string) *scaled {
	all := serveconfig.Application{Raw: json.RawMessage(text)}.Scaled()
	if len(all) == 0 {
		return nil
	}
	return &scaled{Scaled: all[0], wanted: all[0].Least, trigger: byConfig}
}

// sameBut reports whether two configurations of an application differ in the bounds of its replicas alone, for which
// Serve restarts none.
func sameBut(a, b string) bool {
	neutral := func(text string) string {
		application, bounds := serveconfig.Application{Raw: json.RawMessage(text)}, map[string]serveconfig.Bounds{}
		for _, one := range application.Scaled() {
			bounds[one.Deployment] = serveconfig.Bounds{Least: 1, Most: 1}
		}
		return string(application.Bounded(bounds))
	}
	return neutral(a) == neutral(b)
}

// state is what Serve says of the deployment.
func (s *scaled) state() (state, trigger string) {
	switch {
	case s.running < s.wanted:
		return "UPSCALING", s.trigger
	case s.running > s.wanted:
		return "DOWNSCALING", s.trigger
	default:
		return "HEALTHY", "UPSCALE_COMPLETED"
	}
}

// within clips a number of replicas, with a target_capacity in percent as Serve has it.
func (s *scaled) within(replicas int, capacity *float64) int {
	share := func(n int) int {
		if capacity == nil || n == 0 {
			return n
		}
		return max(1, int(float64(n)**capacity/100+0.5))
	}
	return min(max(replicas, share(s.Least)), share(s.Most))
}

// want has Serve want another number of replicas, if it is another one.
func (s *scaled) want(replicas int, trigger string, now time.Time) bool {
	if replicas == s.wanted {
		return false
	}
	s.wanted, s.trigger, s.next = replicas, trigger, now.Add(perReplica)
	return true
}

// move has the next replica start or end, if it is time. It reports whether one did.
func (s *scaled) move(now time.Time) bool {
	if s.running == s.wanted || now.Before(s.next) {
		return false
	}
	if s.running < s.wanted {
		s.running++
	} else if s.running--; s.running == 0 {
		s.emptied = now
	}
	s.next = now.Add(perReplica)
	return true
}

// calls is how many replicas the last request calls, however few come.
func (s *scaled) calls(now time.Time) int {
	if !s.called.IsZero() && now.Sub(s.called) < idle {
		return 1
	}
	return 0
}

// sleeps reports whether a head runs nothing but what has no replica, and wants none.
func (s *Serving) sleeps(head *corev1.Pod) bool {
	for _, app := range s.running[head.UID] {
		if app.scaled == nil || app.scaled.running > 0 || app.scaled.wanted > 0 {
			return false
		}
	}
	return len(s.running[head.UID]) > 0
}

// reaches reports whether the proxy of a pod passes something on. Where there is no replica a request waits for one, at
// the head's proxy, or at that of a worker which has just lost its last; the others tell what is no request.
func (s *Serving) reaches(head *corev1.Pod, pod types.UID, request bool) bool {
	now := s.world.Clock.Now()
	for _, app := range s.running[head.UID] {
		if app.scaled != nil && request {
			app.scaled.called = now
		}
		if app.scaled == nil || app.scaled.running > 0 {
			continue
		}
		return pod == head.UID || request && now.Sub(app.scaled.emptied) < stays
	}
	return true
}

// scale has the Serve of each head scale what it runs by the load that there is.
func (s *Serving) scale() {
	now := s.world.Clock.Now()
	for _, head := range s.heads() {
		cluster, capacity := head.Labels[v1beta1.LabelCluster], s.capacity[head.UID]
		for _, app := range s.running[head.UID] {
			if app.scaled == nil || now.Before(app.at.Add(app.Takes)) {
				continue
			}
			if app.scaled.trigger == byConfig && app.scaled.running == 0 { // it is deployed as a whole
				app.scaled.wanted = app.scaled.within(app.scaled.wanted, capacity)
				app.scaled.running, app.scaled.trigger = app.scaled.wanted, byLoad
				continue
			}
			moved := app.scaled.move(now)
			if !moved && app.scaled.running == app.scaled.wanted {
				moved = app.scaled.want(app.scaled.within(max(s.needs(cluster), app.scaled.calls(now)), capacity), byLoad, now)
			}
			if moved {
				s.world.lastChange = now
			}
		}
	}
}

// needs is how many replicas the requests need that a cluster gets.
func (s *Serving) needs(cluster string) int {
	mine, all := s.led(cluster)
	if all == 0 {
		return 0
	}
	return (s.load*mine + all - 1) / all
}

// Loads has the requests to a service need so many replicas from now on.
func (s *Serving) Loads(service string, replicas int) {
	s.onto, s.load, s.loaded = service, replicas, s.world.Clock.Now()
	s.world.lastChange = s.loaded
}

// led is how many pods of a cluster requests are led to, and how many there are of all clusters.
func (s *Serving) led(cluster string) (mine, all int) {
	for _, obj := range s.world.server.latest.held() {
		pod, ok := obj.(*corev1.Pod)
		if s.onto == "" || !ok || pod.Labels[naming.ServeLabel(s.onto)] != v1beta1.ServeOn || pod.DeletionTimestamp != nil || !isReady(pod) {
			continue
		}
		if all++; pod.Labels[v1beta1.LabelCluster] == cluster {
			mine++
		}
	}
	return mine, all
}

// cold reports a cluster with fewer replicas than its share of the requests needs, empty if there is none. Serve
// would start more, but later than they come; so it has time for what the load itself does.
func (s *Serving) cold() string {
	if s.world.Clock.Now().Sub(s.loaded) < growth {
		return ""
	}
	for _, head := range s.heads() {
		cluster := head.Labels[v1beta1.LabelCluster]
		mine, all := s.led(cluster)
		for _, app := range s.running[head.UID] {
			if app.scaled != nil && mine > 0 && app.scaled.running < s.load*mine/all {
				return cluster
			}
		}
	}
	return ""
}

// rebound takes over other bounds of an application that runs.
func (s *Serving) rebound(app *deployed, head *corev1.Pod, text string) {
	app.text = text
	if after := scaledOf(text); after != nil {
		app.scaled.Scaled = after.Scaled
		app.scaled.want(app.scaled.within(app.scaled.wanted, s.capacity[head.UID]), byConfig, s.world.Clock.Now())
	}
}

// deployments are what Serve says of the parts of an application of which so many replicas run, if it does not scale them.
func (d *deployed) deployments(name string, up int) []headclient.Deployment {
	if d.scaled == nil {
		return []headclient.Deployment{{Name: name, Wanted: 1, Running: up}}
	}
	state, trigger := d.scaled.state()
	return []headclient.Deployment{{Name: d.scaled.Deployment, State: state, Trigger: trigger, Wanted: d.scaled.wanted, Running: d.scaled.running}}
}
