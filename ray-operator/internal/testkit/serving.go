package testkit

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/services"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Application is an application that a head was asked to run.
type Application struct {
	// Cluster is the name of the ComputeCluster, Name the application's.
	Cluster, Name string
	// Text is what was asked for, in Serve's form.
	Text string
}

// Deployed is what becomes of an application.
type Deployed struct {
	// Takes is how long it deploys.
	Takes time.Duration
	// Fails: it cannot be deployed. Sickens is how long after it ran first it is unhealthy for
	// good; 0 is never.
	Fails   bool
	Sickens time.Duration
	// Mute: its proxies answer with errors though Serve says that it runs.
	Mute bool
	// Message is Serve's.
	Message string
}

// Serving stands in for Serve on all heads and, as a service.Heads, for what asks heads and
// proxies. A head answers while its pod is ready; what it runs goes with it.
type Serving struct {
	// Program says what becomes of an application; nil is one that runs after 3 s.
	Program func(Application) Deployed
	// Silent tells of heads that do not answer; nil is none.
	Silent func(*corev1.Pod) bool
	// Refuse gives why a head does not take a service's part; nil and "" are that it does.
	Refuse func(cluster string, config *services.Config) string
	world  *World
	// running is what heads run, by the UIDs of their pods.
	running map[types.UID]map[string]*deployed
	// capacity is the target_capacity of each head, nil for the whole.
	capacity map[types.UID]*float64
	// foreign are applications that somebody else deployed, by cluster.
	foreign map[string]map[string]string
	// starts counts, by cluster and name, how often an application was started again.
	starts map[string]int
	// demanded is the service that is asked at each moment, asked how often any was, and excused
	// how often a request was lost though that had to be expected.
	demanded string
	// load is how many replicas the requests to a service need, where Serve scales them, loaded since when.
	load    int
	onto    string
	loaded  time.Time
	excuse  func(*v1beta1.ClusterService) bool
	asked   int
	excused int
	// wanted and told are what the operator wants of clusters, by service, and knows; they go with its process.
	wanted map[types.NamespacedName]map[types.NamespacedName]services.Want
	told   map[types.NamespacedName]map[types.NamespacedName]saidBy
}

// deployed is an application as a head runs it.
type deployed struct {
	Deployed
	text string
	at   time.Time
	// former: one that ran before keeps answering until this one does.
	former bool
	// resized is when it was last told to have another share of its replicas.
	resized time.Time
	// scaled is what Serve scales of it, nil where it has a fixed number of replicas.
	scaled *scaled
}

// saidBy is an answer with the head that gave it.
type saidBy struct {
	head   types.UID
	answer services.Answer
}

func newServing(w *World) *Serving {
	s := &Serving{world: w, running: map[types.UID]map[string]*deployed{}, capacity: map[types.UID]*float64{}, foreign: map[string]map[string]string{}, starts: map[string]int{}}
	s.restart()
	return s
}

// restart forgets what the operator's process knew.
func (s *Serving) restart() {
	s.wanted, s.told = map[types.NamespacedName]map[types.NamespacedName]services.Want{}, map[types.NamespacedName]map[types.NamespacedName]saidBy{}
}

// Starts is how often an application was started on a cluster, with the same or with another
// configuration.
func (s *Serving) Starts(cluster, name string) int { return s.starts[cluster+"/"+name] }

// Plant has somebody else deploy an application on a cluster.
func (s *Serving) Plant(cluster, name, text string) {
	if s.foreign[cluster] == nil {
		s.foreign[cluster] = map[string]string{}
	}
	s.foreign[cluster][name] = text
}

// On are the names of the applications that run on a cluster, in order.
func (s *Serving) On(cluster string) []string {
	all := map[string]bool{}
	for name := range s.foreign[cluster] {
		all[name] = true
	}
	for _, pod := range s.heads() {
		if pod.Labels[v1beta1.LabelCluster] == cluster {
			for name := range s.running[pod.UID] {
				all[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// heads are the head pods that run.
func (s *Serving) heads() []*corev1.Pod {
	var heads []*corev1.Pod
	for _, obj := range s.world.server.latest.held() {
		if pod, ok := obj.(*corev1.Pod); ok && pod.Labels[v1beta1.LabelRole] == v1beta1.RoleHead && pod.Status.Phase == corev1.PodRunning && isReady(pod) {
			heads = append(heads, pod)
		}
	}
	return heads
}

// step lets every head answer that has something new to say, and wakes the operator. It gives
// whether any did, and how long it is until one may.
func (s *Serving) step() (changed bool, next time.Duration) {
	s.ask()
	s.scale()
	heads := map[types.UID]*corev1.Pod{}
	for _, pod := range s.heads() {
		heads[pod.UID] = pod
	}
	maps.DeleteFunc(s.running, func(uid types.UID, _ map[string]*deployed) bool { return heads[uid] == nil })
	for _, cluster := range slices.SortedFunc(maps.Keys(s.wanted), byName) {
		byHead := s.byHead(cluster)
		for _, uid := range slices.Sorted(maps.Keys(byHead)) {
			if head := heads[uid]; head != nil && (s.Silent == nil || !s.Silent(head)) {
				changed = s.tell(cluster, head, byHead[uid]) || changed
			}
		}
	}
	return changed, s.due()
}

// byHead is what services want of a cluster, by the head of which each wants it.
func (s *Serving) byHead(cluster types.NamespacedName) map[types.UID]map[types.NamespacedName]services.Want {
	heads := map[types.UID]map[types.NamespacedName]services.Want{}
	for service, want := range s.wanted[cluster] {
		if heads[want.At.Head] == nil {
			heads[want.At.Head] = map[types.NamespacedName]services.Want{}
		}
		heads[want.At.Head][service] = want
	}
	return heads
}

// tell has a head take what services want, and answer each that it has something new for, which wakes the operator. It
// reports whether there was one.
func (s *Serving) tell(cluster types.NamespacedName, head *corev1.Pod, wants map[types.NamespacedName]services.Want) (changed bool) {
	answer, outcomes := s.answer(head, services.Together(wants))
	for service := range wants {
		answer.Outcome = outcomes[service]
		if former, ok := s.told[cluster][service]; !ok || former.head != head.UID || services.HasNews(former.answer, answer) {
			s.told[cluster][service] = saidBy{head.UID, answer}
			s.world.due[request{serviceKind, service}] = s.world.Clock.Now()
			changed = true
		}
	}
	return changed
}

// due is how long it is until an application changes by itself.
func (s *Serving) due() (next time.Duration) {
	now := s.world.Clock.Now()
	for _, apps := range s.running {
		for _, app := range apps {
			times := []time.Time{app.at.Add(app.Takes), app.at.Add(app.Takes + app.Sickens), app.resized.Add(resizes)}
			if app.scaled != nil {
				times = append(times, app.scaled.next)
				if s.demanded == "" {
					times = append(times, app.scaled.called.Add(idle))
				}
			}
			for _, at := range times {
				if wait := at.Sub(now); wait > 0 && (next == 0 || wait < next) {
					next = wait
				}
			}
		}
	}
	return next
}

// answer is what a head says, after it took what is wanted, and what came of each part.
func (s *Serving) answer(head *corev1.Pod, want services.Wants) (services.Answer, map[types.NamespacedName]services.Outcome) {
	now := s.world.Clock.Now()
	answer, outcomes := services.Answer{At: now, Probes: map[services.Probe]services.Reply{}}, map[types.NamespacedName]services.Outcome{}
	cluster := head.Labels[v1beta1.LabelCluster]
	for _, service := range slices.SortedFunc(maps.Keys(want.Parts), byName) {
		config, why := want.Parts[service], ""
		if s.Refuse != nil {
			why = s.Refuse(cluster, config)
		}
		if why != "" {
			outcomes[service] = services.Outcome{Refused: why, RefusedDigest: config.Digest}
			continue
		}
		s.take(head, cluster, config)
		outcomes[service] = services.Outcome{Taken: config.Digest}
	}
	answer.Serving, answer.Closed = s.serves(head, cluster), want.Close.ID
	for _, probe := range want.Probes {
		reply, request := services.Reply{Times: 3}, probe.Path != "/-/healthz"
		if probe.Pod == "" { // through a Service, which leads to no pod before there is an endpoint
			reply.OK = s.through(probe.Address, request)
		} else {
			reply.OK = s.answers(head, cluster) && s.reaches(head, probe.Pod, request)
		}
		if !reply.OK {
			reply.Why = "status 500"
		}
		answer.Probes[probe] = reply
	}
	return answer, outcomes
}

// take has a head run what it was asked for, and no longer what was asked for before.
func (s *Serving) take(head *corev1.Pod, cluster string, config *services.Config) {
	running := s.running[head.UID]
	if running == nil {
		running = map[string]*deployed{}
		s.running[head.UID] = running
	}
	s.resize(head, config)
	for name, text := range config.Applications {
		if app := running[name]; app != nil && app.text == string(text) {
			continue
		}
		before := running[name]
		if before != nil && before.scaled != nil && sameBut(before.text, string(text)) {
			s.rebound(before, head, string(text))
			continue
		}
		app := &deployed{Deployed: Deployed{Takes: 3 * time.Second}, text: string(text), at: s.world.Clock.Now(), scaled: scaledOf(string(text))}
		app.former = before != nil && (before.former || s.state(before) == headclient.ApplicationRunning && !before.Mute)
		if s.Program != nil {
			app.Deployed = s.Program(Application{Cluster: cluster, Name: name, Text: app.text})
		}
		running[name] = app
		s.starts[cluster+"/"+name]++
		s.world.lastChange = s.world.Clock.Now()
	}
	for _, name := range config.Drop {
		if _, still := config.Applications[name]; !still {
			delete(running, name)
		}
	}
}

// state is how an application is now.
func (s *Serving) state(app *deployed) headclient.ApplicationState {
	age := s.world.Clock.Now().Sub(app.at)
	switch {
	case age < app.Takes:
		return headclient.ApplicationDeploying
	case app.Fails:
		return headclient.ApplicationDeployFailed
	case app.Sickens > 0 && age >= app.Takes+app.Sickens:
		return headclient.ApplicationUnhealthy
	case s.world.Clock.Now().Sub(app.resized) < resizes, app.scaled != nil && app.scaled.running != app.scaled.wanted && app.scaled.trigger == byConfig:
		return headclient.ApplicationDeploying
	default:
		return headclient.ApplicationRunning
	}
}

// resize has a head give its applications the share of their replicas that is asked for.
func (s *Serving) resize(head *corev1.Pod, config *services.Config) {
	var options struct {
		Capacity *float64 `json:"target_capacity"`
	}
	s.world.Must(json.Unmarshal(config.Options, &options))
	before := s.capacity[head.UID]
	if (before == nil) != (options.Capacity == nil) || before != nil && *before != *options.Capacity {
		for _, app := range s.running[head.UID] {
			app.resized = s.world.Clock.Now()
			if app.scaled != nil {
				app.scaled.want(app.scaled.within(app.scaled.wanted, options.Capacity), byConfig, app.resized)
			}
		}
	}
	s.capacity[head.UID] = options.Capacity
}

// resizes is how long an application takes to have another share of its replicas.
const resizes = 2 * time.Second

// serves is what Serve says.
func (s *Serving) serves(head *corev1.Pod, cluster string) headclient.Serving {
	serves := headclient.Serving{Capacity: s.capacity[head.UID], Running: len(s.running[head.UID]) > 0 || len(s.foreign[cluster]) > 0, Applications: map[string]headclient.Application{}}
	for name := range s.foreign[cluster] {
		serves.Applications[name] = headclient.Application{Name: name, State: headclient.ApplicationRunning, Declarative: true}
	}
	for name, app := range s.running[head.UID] {
		state := s.state(app)
		up := 0
		if state == headclient.ApplicationRunning || s.world.Clock.Now().Sub(app.at) >= app.Takes && state == headclient.ApplicationDeploying {
			up = 1
		}
		application := headclient.Application{Name: name, State: state, Message: app.Message, Declarative: true}
		if !app.former || state != headclient.ApplicationDeployFailed { // of one that cannot be built Serve names no deployment
			application.Deployments = app.deployments(name, up)
		}
		serves.Applications[name] = application
	}
	if serves.Running {
		serves.Targets = slices.DeleteFunc(s.targets(cluster), func(t headclient.Target) bool {
			return s.sleeps(head) && t.Instance != string(head.UID)
		})
	}
	return serves
}

// targets are the proxies of a cluster: one in each worker that is ready, and one in the head.
func (s *Serving) targets(cluster string) []headclient.Target {
	var targets []headclient.Target
	for _, obj := range s.world.server.latest.held() {
		pod, ok := obj.(*corev1.Pod)
		if ok && pod.Labels[v1beta1.LabelCluster] == cluster && pod.DeletionTimestamp == nil && isReady(pod) {
			targets = append(targets, headclient.Target{Protocol: "HTTP", Instance: string(pod.UID), IP: pod.Status.PodIP, Port: 8000})
		}
	}
	slices.SortFunc(targets, func(a, b headclient.Target) int { return strings.Compare(a.Instance, b.Instance) })
	return targets
}

// answers reports whether the proxies of a cluster answer: there is an application that runs.
func (s *Serving) answers(head *corev1.Pod, _ string) bool {
	for _, app := range s.running[head.UID] {
		state := s.state(app)
		old := s.world.Clock.Now().Sub(app.at) >= app.Takes
		if (state == headclient.ApplicationRunning || old && state == headclient.ApplicationDeploying) && !app.Mute || app.former && state != headclient.ApplicationRunning {
			return true
		}
	}
	return false
}

// answersAt reports whether a request through the proxy of a pod is answered now.
func (s *Serving) answersAt(pod *corev1.Pod) bool { return s.answersTo(pod, true) }

// answersTo is answersAt, also of what is no request.
func (s *Serving) answersTo(pod *corev1.Pod, request bool) bool {
	for _, head := range s.heads() {
		if ownerOf(head) == ownerOf(pod) {
			return s.answers(head, pod.Labels[v1beta1.LabelCluster]) && s.reaches(head, pod.UID, request)
		}
	}
	return false
}

// Request sends a request to a service now, through each pod that its Service leads to, as
// kube-proxy has it. It gives why one is lost, empty if none is.
func (s *Serving) Request(service string) string {
	reached := 0
	for _, obj := range s.world.server.latest.held() {
		pod, ok := obj.(*corev1.Pod)
		if !ok || pod.Labels[naming.ServeLabel(service)] != v1beta1.ServeOn || pod.DeletionTimestamp != nil || !isReady(pod) {
			continue
		}
		s.asked++
		if reached++; !s.answersAt(pod) {
			return "pod " + pod.Name + " does not answer"
		}
	}
	if reached == 0 {
		return "there is no endpoint"
	}
	return ""
}

// Demand has a service asked at each moment from now on; each request that is lost breaks a
// rule. An empty name ends that.
func (s *Serving) Demand(service string) { s.demanded, s.excuse = service, nil }

// DemandUnless is Demand, but that a request may be lost while the service itself says so: while
// excuse holds of it as it stands in the API server.
func (s *Serving) DemandUnless(service string, excuse func(*v1beta1.ClusterService) bool) {
	s.demanded, s.excuse, s.excused = service, excuse, 0
}

// Excused is how often a request was lost since DemandUnless, and was excused.
func (s *Serving) Excused() int { return s.excused }

// Asked is how many requests were sent so far.
func (s *Serving) Asked() int { return s.asked }

// ask sends the requests that are due, one through each pod.
func (s *Serving) ask() {
	if s.demanded == "" {
		return
	}
	lost := s.Request(s.demanded)
	if cluster := s.cold(); lost == "" && cluster != "" {
		lost = "ComputeCluster " + cluster + " has too few replicas"
	}
	switch service := s.world.Service(s.demanded); {
	case lost == "":
	case s.excuse != nil && s.excuse(service):
		s.excused++
	default:
		s.world.History.mu.Lock()
		defer s.world.History.mu.Unlock()
		s.world.History.fault("a request to %s is lost at %s: %s", s.demanded, s.world.Clock.Now().Format(time.TimeOnly), lost)
		s.demanded = ""
	}
}

// board is the service.Heads of one life of the operator.
type board struct{ *Serving }

// Want implements service.Heads.
func (b board) Want(cluster, service types.NamespacedName, want services.Want) {
	if b.wanted[cluster] == nil {
		b.wanted[cluster], b.told[cluster] = map[types.NamespacedName]services.Want{}, map[types.NamespacedName]saidBy{}
	}
	b.wanted[cluster][service] = want
}

// Forget implements service.Heads.
func (b board) Forget(service types.NamespacedName, keep ...types.NamespacedName) {
	for cluster := range b.wanted {
		if !slices.Contains(keep, cluster) {
			delete(b.wanted[cluster], service)
			delete(b.told[cluster], service)
		}
	}
}

// Last implements service.Heads.
func (b board) Last(cluster, service types.NamespacedName, head types.UID) (services.Answer, bool) {
	last, ok := b.told[cluster][service]
	if want := b.wanted[cluster][service]; want.Config == nil || want.Config.Digest != last.answer.RefusedDigest {
		last.answer.Refused, last.answer.RefusedDigest = "", ""
	}
	return last.answer, ok && last.head == head
}
