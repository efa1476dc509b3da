package service

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pass"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/serveconfig"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// planner is a plan under construction.
type planner struct {
	Plan
	service *v1alpha1.ClusterService
	seen    Seen
	site    desired.Site
	now     time.Time
	record  Record
	// target is what the spec asks for.
	target Revision
	// active and candidate are how the two versions are.
	active, candidate Health
	// reverted: the last good configuration was asked for again in this pass.
	reverted bool
	// held: the spec cannot be followed, so clusters stay as they are.
	held bool
	// closing names, by cluster, the jobs that close the connections that clients keep.
	closing map[string]string
}

// Decide chooses what to do about a service: a pure, total function of what was seen.
func Decide(service *v1alpha1.ClusterService, seen Seen, site desired.Site, now time.Time) Plan {
	p := &planner{service: service, seen: seen, site: site, now: now}
	had := slices.Contains(service.Finalizers, v1alpha1.FinalizerServe)
	p.Finalizer = had
	if seen.RecordError != nil {
		p.unreadable()
	} else {
		p.record = seen.Record.clone()
		p.adopt()
		for _, guard := range []func() bool{p.going, p.invalid, p.suspended, p.serve} {
			if guard() {
				break
			}
		}
		p.retire()
		p.tidy()
	}
	if p.record.String() != recorded(service, &seen) && seen.RecordError == nil || p.Finalizer != had {
		p.Record = &p.record
	}
	return p.Plan
}

// recorded is what stands written.
func recorded(service *v1alpha1.ClusterService, seen *Seen) string {
	if there, _ := written(service); there == nil && seen.RecordError == nil {
		return Record{Version: recordVersion}.String() // what was restored is written again
	}
	return seen.Record.String()
}

// unreadable leaves all as it is.
func (p *planner) unreadable() {
	p.say(p.service.Status.Phase, reason.RecordDamaged.Of(p.seen.RecordError))
	p.Stalled = true
	p.Active, p.Candidate = p.service.Status.Active, p.service.Status.Candidate
	if p.service.DeletionTimestamp != nil {
		p.Finalizer = false // a deletion is never kept from its end
	}
}

// invalid looks at the spec. The version that serves is reconciled in any case.
func (p *planner) invalid() bool {
	errs := validate.Service(p.service).ErrorList()
	if len(errs) == 0 {
		var err error
		if p.target, err = revisionOf(p.service); err == nil {
			p.number()
			return false
		}
		p.obstacle(reason.InvalidSpec.Of(err))
		return true
	}
	p.obstacle(reason.InvalidSpec.Of(errs.ToAggregate()))
	return true
}

// obstacle keeps what serves as it is and says why the spec cannot be followed.
func (p *planner) obstacle(finding reason.Finding) {
	if p.record.Active.Revision != "" && !p.record.Suspended {
		p.target, p.held = p.revision(p.record.Active.Revision), true
		p.carry()
		p.report()
	} else {
		p.say(v1alpha1.PhasePending, finding)
	}
	p.Finding, p.Stalled = finding, true
}

// number finds the revision's number, or gives it the next one.
func (p *planner) number() {
	if kept, ok := p.seen.Revisions[p.target.ID]; ok {
		p.target = kept
		return
	}
	for _, revision := range p.seen.Revisions {
		p.target.Number = max(p.target.Number, revision.Number)
	}
	p.target.Number++
}

// keep ensures that the target is kept before anything is asked for in its name.
func (p *planner) keep() {
	if _, ok := p.seen.Revisions[p.target.ID]; !ok {
		p.Keep = p.target.kept(p.service, p.target.Number)
	}
}

// revision is one of those that are kept, or the target.
func (p *planner) revision(id string) Revision {
	if id == p.target.ID {
		return p.target
	}
	return p.seen.Revisions[id]
}

// serve is the service's own way: which version is where, how it is, and who gets the requests.
func (p *planner) serve() bool {
	if p.collides() || p.splits() {
		return true
	}
	p.Finalizer = true
	p.resume()
	p.revise()
	p.carry()
	p.report()
	return true
}

// collides reports whether an older service on the cluster has what this one asks for.
func (p *planner) collides() bool {
	for _, elder := range p.seen.Elders {
		theirs, err := revisionOf(elder)
		if err != nil || elder.Spec.Suspend || elder.DeletionTimestamp != nil {
			continue
		}
		if what := clash(p.target, theirs); what != "" {
			p.obstacle(reason.ServeCollision.Of(what, elder.Name, elder.Spec.ClusterRef.Name))
			return true
		}
		if theirs.Startup != p.target.Startup || serveconfig.Common(theirs.Raw) != serveconfig.Common(p.target.Raw) {
			p.obstacle(reason.ServeOptionsDiffer.Of(elder.Name, elder.Spec.ClusterRef.Name))
			return true
		}
	}
	return false
}

// splits reports whether the spec asks for proxies that cannot stand behind one Service with those that there are.
// While the service is suspended nothing is there.
func (p *planner) splits() bool {
	good, known := p.seen.Revisions[p.record.Active.Good]
	if !known || p.record.Suspended {
		return false
	}
	why := parts(good, p.target)
	if why != "" {
		p.obstacle(reason.InvalidSpec.Of(why))
	}
	return why != ""
}

// clash names what two versions both ask for, empty if nothing.
func clash(a, b Revision) string {
	for _, mine := range a.Config.Applications {
		for _, other := range b.Config.Applications {
			switch {
			case mine.Name == other.Name:
				return "application " + mine.Name
			case mine.HasRoute && other.HasRoute && mine.RoutePrefix == other.RoutePrefix:
				return "route_prefix " + mine.RoutePrefix
			}
		}
	}
	return ""
}

// own reports whether the service has clusters of its own.
func (p *planner) own() bool { return p.service.Spec.ClusterTemplate != nil }

// cluster is that of a side, nil if it is not there.
func (p *planner) cluster(side *Side) *Cluster {
	if side == nil {
		return nil
	}
	found := p.seen.Clusters[side.Cluster]
	if found == nil || found.DeletionTimestamp != nil {
		return nil
	}
	return found
}

// clusterName names a cluster, also one that is not there.
func (p *planner) clusterName(cluster *Cluster) string {
	switch {
	case cluster != nil:
		return cluster.Name
	case p.service.Spec.ClusterRef != nil:
		return p.service.Spec.ClusterRef.Name
	default:
		return p.nameOf(&p.record.Active)
	}
}

// nameOf is the name of a side's cluster.
func (p *planner) nameOf(side *Side) string {
	if ref := p.service.Spec.ClusterRef; ref != nil {
		return ref.Name
	}
	return naming.ServiceCluster(p.service.Name, p.service.UID, side.Cluster)
}

// ports are those of the version that has the requests.
func (p *planner) ports() desired.Ports {
	if id := p.record.Active.Revision; id != "" {
		if revision := p.revision(id); revision.ID != "" {
			return revision.ports()
		}
	}
	if p.target.ID != "" {
		return p.target.ports()
	}
	return desired.Ports{HTTP: 8000}
}

// opened reports whether a pod gets requests.
func (p *planner) opened(pod *corev1.Pod) bool {
	return pod.Labels[naming.ServeLabel(p.service.Name)] == v1alpha1.ServeOn
}

// led reports whether a gateway may lead requests to a pod, serves whether a pod may get requests
// by any way.
func (p *planner) led(pod *corev1.Pod) bool {
	return pod.Labels[naming.RouteLabel(p.service.Name)] == v1alpha1.ServeOn
}

func (p *planner) serves(pod *corev1.Pod) bool { return p.opened(pod) || p.led(pod) }

// tidy sees to the objects of fixed names and to revisions that nobody needs.
func (p *planner) tidy() {
	p.tellGateway()
	if p.service.DeletionTimestamp != nil {
		return
	}
	p.fix(kindService, desired.ServeService(p.service, p.ports()))
	if clusters := p.isolated(); len(clusters) > 0 {
		p.fix(kindPolicy, desired.ServePolicy(p.service, p.site, clusters, p.ports()))
	} else if len(p.seen.Clusters) > 0 {
		p.fix(kindPolicy, nil)
	}
	p.budget()
	p.routes()
	p.drop()
}

// isolated returns the names of the clusters that a policy keeps to themselves. A policy about another one would close
// what its spec leaves open.
func (p *planner) isolated() []string {
	var names []string
	add := func(cluster *v1alpha1.ComputeCluster) {
		if network := cluster.Spec.Network; network == nil || network.Isolation != v1alpha1.IsolationDisabled {
			names = append(names, cluster.Name)
		}
	}
	for _, cluster := range p.seen.Clusters {
		add(cluster.ComputeCluster)
	}
	if p.Make != nil {
		add(p.Make)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// revisions is how many revisions are kept that nothing runs of.
const revisions = 3

// drop takes revisions away that are neither asked for nor among the last.
func (p *planner) drop() {
	needed := map[string]bool{p.target.ID: true, p.record.Active.Revision: true, p.record.Active.Good: true, p.record.Failed: true}
	if candidate := p.record.Candidate; candidate != nil {
		needed[candidate.Revision], needed[candidate.Good] = true, true
	}
	var spare []Revision
	for id, revision := range p.seen.Revisions {
		if !needed[id] {
			spare = append(spare, revision)
		}
	}
	slices.SortFunc(spare, func(a, b Revision) int { return int(b.Number - a.Number) })
	for _, revision := range spare[min(len(spare), revisions):] {
		p.Drop = append(p.Drop, revision.Object)
	}
}

func byName(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) }

func address(pod *corev1.Pod, port int32) string {
	return net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port)))
}

// longest is how many bytes of others' words a text of ours takes.
const longest = 400

// cut keeps the end of a text, which says most.
func cut(value any) string {
	text := strings.ToValidUTF8(strings.Join(strings.Fields(words(value)), " "), "")
	if runes := []rune(text); len(runes) > longest {
		return "… " + string(runes[len(runes)-longest:])
	}
	return text
}

func words(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case error:
		return value.Error()
	default:
		return ""
	}
}

// lookAgain asks for another pass though nobody tells of anything.
func (p *planner) lookAgain() { p.wakeIn(pass.Recheck) }
