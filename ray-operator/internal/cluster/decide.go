package cluster

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pass"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

const (
	// goingRetry is how soon to look again at what is on its way out.
	goingRetry = time.Second
	// fillAgain is how soon the next workers are built where one pass did not build all. What was made wakes sooner.
	fillAgain = time.Second
	// lostGrace in seconds is for workers whose session has ended: there is nothing
	// left that they could hand over.
	lostGrace = int64(5)
)

// planner is a plan in the making, with what it is made from.
type planner struct {
	Plan
	cluster *v1alpha1.ComputeCluster
	seen    Seen
	site    desired.Site
	now     time.Time
	intents intents
	// head is the pod that is, or was, the head of the plan's epoch.
	head *Pod
	// keepsSession reports that the session goes on with a new head.
	keepsSession bool
}

// Decide chooses what to do about a cluster. It is pure and total: the same arguments
// give the same plan, and every input gives one.
func Decide(cluster *v1alpha1.ComputeCluster, seen Seen, site desired.Site, now time.Time) Plan {
	p := &planner{cluster: cluster, seen: seen, site: site, now: now, intents: intentsOf(cluster)}
	if p.Stalled = p.stall(); p.Stalled != nil {
		p.Wake = pass.Recheck
		p.yield()
		return p.Plan
	}
	p.choose()
	p.note()
	p.keep()
	if p.Store == nil {
		p.Store = p.standpoint()
	}
	p.EncryptsStore = p.encryptsStore()
	return p.Plan
}

// choose makes the plan of a cluster that can be worked on.
func (p *planner) choose() {
	seen := p.seen
	p.Turn, p.Failures = seen.Record.turn(), seen.Record.Failures
	p.reclaim()
	p.head = headOf(seen.Pods, p.Epoch)
	p.measure()
	switch {
	case p.suspend(), p.end():
		return
	case seen.Record.Suspended.Cause != "":
		p.resume()
	case p.recreate(), p.correctHead():
	default:
		wait, lost := p.loss()
		if wait > 0 {
			p.wakeIn(wait)
			return
		}
		switch {
		case p.startOver():
		case lost:
			p.replaceHead()
		}
	}
	p.withdraw()
	p.build()
	if p.head != nil && (seen.RecordMissing || seen.Record.HeadUID == "" || p.Record != nil) {
		p.NoteHead = !p.sparesRecord()
	}
	p.leftovers()
	p.resizes()
	p.lookAgain()
	p.order()
}

// reclaim takes pods back that have lost their owner reference.
func (p *planner) reclaim() {
	for _, pod := range p.seen.Pods {
		if pod.stray && !pod.leaving() {
			p.Reclaim = append(p.Reclaim, pod)
		}
	}
}

// What a pod waits for may become visible without a change of the pod: in events, or
// because a state that is normal at first lasts. So those that start are looked at again.
const (
	waitingLook = 5 * time.Second
	stuckLook   = 30 * time.Second
	// stuckAfter is when a pod is no longer expected to become ready within seconds.
	stuckAfter = 2 * time.Minute
)

func (p *planner) lookAgain() {
	for _, pod := range p.seen.Pods {
		due, eventful := diagnose.EventsDue(pod.Pod)
		if eventful {
			p.wakeIn(due.Sub(p.now))
		}
		switch {
		case !pod.counts() && !pod.leaving() || pod.ready():
		case p.now.Sub(pod.CreationTimestamp.Time) < stuckAfter:
			p.wakeIn(waitingLook)
		default:
			p.wakeIn(stuckLook)
		}
	}
}

// build makes what is missing.
func (p *planner) build() {
	if p.seen.going() {
		p.wakeIn(goingRetry) // the garbage collector is at it, and no watch tells of a Secret
		return
	}
	p.fix()
	p.keepGang()
	p.token()
	p.authority()
	p.keepStore()
	p.makeHead()
	p.workers()
}

// stall finds what keeps the whole cluster from being worked on.
func (p *planner) stall() *reason.Finding {
	if invalid := p.judge(); invalid != nil {
		return invalid
	}
	var finding reason.Finding
	switch {
	case pod.EncryptionRequired(p.cluster) && p.site.Image.Image == "":
		finding = reason.InvalidSpec.Of("network.encryption needs programs of the operator's image, and the operator was started without --autoscaler-image")
	case p.encryptsStore() && p.site.Image.Image == "":
		finding = reason.InvalidSpec.Of("the managed Redis speaks TLS, for which it needs a program of the operator's image, and the operator was started without --autoscaler-image")
	case p.seen.RecordError != nil:
		finding = reason.RecordDamaged.Of(p.seen.RecordError.Error())
	case p.seen.Token.Presence == Foreign:
		finding = reason.NameConflict.Of("Secret " + naming.TokenSecret(p.cluster.Name))
	case p.seen.Authority == Foreign:
		finding = reason.NameConflict.Of("Secret " + naming.AuthoritySecret(p.cluster.Name))
	default:
		return p.blocked()
	}
	return &finding
}

// blocked finds others' object under the name of one that the cluster cannot do without.
func (p *planner) blocked() *reason.Finding {
	for i := range fixtures {
		f := &fixtures[i]
		if p.seen.Fixtures[f.kind].Presence == Foreign && !f.optional && f.wanted(p) != nil {
			finding := reason.NameConflict.Of(f.kind + " " + f.name(p.cluster.Name))
			return &finding
		}
	}
	return nil
}

// loss judges whether the epoch's head is lost, or for how long to leave a head that
// failed soon after it was made.
func (p *planner) loss() (wait time.Duration, lost bool) {
	head, recorded := p.head, p.seen.Record.HeadUID
	switch {
	case head == nil && p.Session < p.Epoch:
		return 0, recorded != "" // the workers are of earlier heads, and wait for this one
	case head == nil: // a head is made before its workers, so where there are workers there was one
		return 0, recorded != "" || slices.ContainsFunc(p.seen.Pods, func(worker Pod) bool {
			return worker.At.Group != "" && p.has(worker)
		})
	case head.leaving():
		return 0, true
	case head.finished():
		wait = p.replaceable(*head, p.Failures)
		return wait, wait == 0
	case recorded != "" && recorded != head.UID:
		return 0, true
	default:
		return 0, !p.stored() && p.sessionOver()
	}
}

// sessionOver reports whether the head's Ray container ended after a worker had joined it.
// What the kubelet starts in its place is another session, of which that worker knows
// nothing, though its own raylet still says that it is healthy. A head that nobody had
// joined is left to the kubelet, whose back-off slows a head that cannot start.
func (p *planner) sessionOver() bool {
	ended := p.head.endedAt()
	if ended.IsZero() {
		return false
	}
	return slices.ContainsFunc(p.seen.Pods, func(worker Pod) bool {
		since := worker.readySince()
		return worker.At.Group != "" && p.has(worker) && !since.IsZero() && since.Before(ended)
	})
}

// beginEpoch lets a new head take over, with the memory of the one before it where a
// control store has kept it. The number is in the record before anything is made or deleted
// for it.
func (p *planner) beginEpoch(event telemetry.Event) {
	p.Epoch++
	if !p.keepsSession && !p.stored() || p.stored() && p.forgotten() != nil {
		p.Session = p.Epoch
	}
	p.Failures = 0
	record := Record{Version: recordVersion}.taking(p.Turn)
	if p.Session < p.Epoch {
		record.Volume = p.seen.Record.Volume
	}
	p.Record = &record
	p.Began = &event
	p.head = headOf(p.seen.Pods, p.Epoch)
	p.measure() // of what belongs to the new epoch
}

func (p *planner) replaceHead() {
	name, why := "of the former epoch", "it is not there any more"
	if p.head != nil {
		name, why = p.head.Name, p.fate(*p.head)
	}
	with := "fresh workers"
	switch {
	case p.stored():
		with = "what the control store kept; workers stay"
	case p.unjoined():
		with, p.keepsSession = "the workers that wait for one", true
	}
	failures := 0
	if p.head != nil {
		failures = p.failures(*p.head, p.Failures)
	}
	p.beginEpoch(telemetry.Event{Finding: reason.HeadLost.Of(name, fmt.Sprintf("epoch %d begins with a new head and %s: %s", p.Epoch+1, with, why)), Action: "Recover", Warning: true})
	p.Failures, p.Record.Failures = failures, failures
}

// fate is why a pod came to its end, in words: once it is replaced, the status speaks of
// its successor.
func (p *planner) fate(of Pod) string {
	finding, found := diagnose.Pod(of.Pod, p.seen.Events[of.UID], p.now)
	switch {
	case found && finding.Severity() == reason.Warning:
		return finding.Text
	case of.leaving():
		return "it was deleted"
	case !of.endedAt().IsZero():
		return "its Ray container ended"
	default:
		return "another pod has taken its place"
	}
}

// recreate begins a new epoch where a pod is out of date and the spec wants all pods made
// again then. A head that is lost anyway is told of as lost.
func (p *planner) recreate() bool {
	strategy := p.cluster.Spec.UpgradeStrategy
	if strategy == nil || strategy.Type != v1alpha1.UpgradeRecreate || p.head == nil || p.head.leaving() {
		return false
	}
	old := slices.DeleteFunc(p.intents.old(p.seen.Pods, p.Turn), Pod.isUnstarted) // which are replaced by themselves
	if len(old) == 0 {
		return false
	}
	for _, worker := range old {
		if p.stored() && worker.At.Group != "" {
			p.Delete = append(p.Delete, Removal{Pod: worker, GraceSeconds: grace(lostGrace), Why: "all pods are recreated"})
		}
	}
	p.beginEpoch(telemetry.Event{Finding: reason.Recreating.Of(p.Epoch + 1), Action: "Recreate"})
	return true
}

// token sees to the token's Secret. A living head has read its token, so a new one would
// only keep new pods out: none is made then.
func (p *planner) token() {
	own := ownSecret(p.cluster)
	if own != "" {
		p.wakeIn(tokenLook)
	}
	var missing reason.Finding
	switch {
	case !pod.TokenRequired(p.cluster), p.seen.Token.Presence == Ours:
		return
	case own != "":
		missing = reason.TokenSecretInvalid.Of(own, p.seen.Token.Lacking)
	case p.head != nil:
		missing = reason.TokenMissing.Of(naming.TokenSecret(p.cluster.Name))
	default:
		p.Token = p.Held == nil && p.storeHolds() == nil // it goes with the first pod
		return
	}
	p.Held = &missing
	p.wakeIn(pass.Recheck)
}

// leftovers deletes what belongs to a former epoch, and lets those go whose group is gone
// from the spec, and then their claims.
func (p *planner) leftovers() {
	for _, left := range p.seen.Pods {
		switch {
		case left.leaving():
		case !p.has(left):
			p.Delete = append(p.Delete, Removal{Pod: left, GraceSeconds: grace(lostGrace), Why: "its epoch is over"})
		case left.At.Group != "" && pod.FindGroup(p.cluster, left.At.Group) == nil && !left.draining():
			p.exit(left, exitRemoved)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.seen.Claims)) {
		if claim := p.seen.Claims[name]; p.orphaned(claim) {
			p.Release = append(p.Release, claim)
		}
	}
}

// orphaned reports whether a claim is of a group that is gone from the spec, and so are its pods.
func (p *planner) orphaned(claim *corev1.PersistentVolumeClaim) bool {
	group := claim.Labels[v1alpha1.LabelGroup]
	return claim.DeletionTimestamp == nil && pod.FindGroup(p.cluster, group) == nil &&
		!slices.ContainsFunc(p.seen.Pods, func(worker Pod) bool { return worker.At.Group == group })
}

func grace(seconds int64) *int64 { return &seconds }
