package cluster

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scale"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// abandonAfter is how long a replica with several hosts waits for those that are missing
// before it gives back what it holds.
const abandonAfter = time.Minute

// vacateFor is how long the successor of a worker with claims of its own waits for the
// slot, and so for the claims, of one that is on its way out.
const vacateFor = 90 * time.Second

// maxFilled is how many workers of a cluster one pass builds and sends. A pod takes some kilobytes of the operator's
// memory, or a hundred with many variables, and others wait meanwhile. The next pass follows at once.
const maxFilled = 256

// members are a group's workers of the plan's epoch, with the slots that they take.
type members struct {
	group  *v1alpha1.WorkerGroup
	hosts  int
	bySlot map[int]Pod
	slots  []scale.Slot
	// old tells of each replica whether a worker of it is out of date, and joined whether
	// all of them are ready.
	old, joined map[int]bool
	// exiting counts replicas that a rolling replacement retired and that are at work.
	exiting map[int]bool
	// vacating counts workers that leave, or are about to, and whose slots are waited for.
	vacating int
}

// workers brings each group to its size.
func (p *planner) workers() {
	var all []*members
	for i := range p.cluster.Spec.WorkerGroups {
		all = append(all, p.members(&p.cluster.Spec.WorkerGroups[i]))
	}
	rolled := p.rolled(all)
	p.beginRoll(rolled)
	for _, m := range all {
		p.resize(m, m == rolled)
	}
	for _, worker := range p.seen.Pods {
		if p.has(worker) && worker.draining() {
			p.drain(worker)
		}
	}
}

func (p *planner) members(group *v1alpha1.WorkerGroup) *members {
	m := &members{
		group: group, hosts: pod.Hosts(group), bySlot: map[int]Pod{}, old: map[int]bool{}, joined: map[int]bool{}, exiting: map[int]bool{},
	}
	for _, worker := range p.seen.Pods {
		if worker.At.Group != group.Name || !p.has(worker) {
			continue
		}
		m.add(worker, p.slot(worker), p.intents)
		if wait := m.vacates(worker, p.now); wait > 0 {
			p.wakeIn(wait)
			m.vacating++
		}
	}
	m.correct(p.intents)
	return m
}

// add takes a worker into account that sits in a slot.
func (m *members) add(worker Pod, slot scale.Slot, judged intents) {
	replica := slot.Index / m.hosts
	m.bySlot[slot.Index] = worker
	m.slots = append(m.slots, slot)
	switch slot.State {
	case scale.Starting, scale.Ready:
		m.old[replica] = m.old[replica] || judged.isOld(worker) && !judged.canGrow(worker)
		before, known := m.joined[replica]
		m.joined[replica] = slot.State == scale.Ready && (before || !known)
	case scale.Draining:
		if worker.exit().Why == exitRolling {
			m.exiting[replica] = true
		}
	case scale.Finished, scale.Leaving:
	}
}

// vacates tells for how long the slot of a worker on its way out is waited for: where the
// slot has claims.
func (m *members) vacates(worker Pod, now time.Time) time.Duration {
	if !worker.leaving() || len(m.group.VolumeClaimTemplates) == 0 {
		return 0
	}
	return worker.DeletionTimestamp.Add(vacateFor).Sub(now)
}

// progress counts replicas that are still to be replaced, and those that are as they
// must be and have joined.
func (m *members) progress() (left, complete int) {
	left = len(m.exiting)
	for replica, isOld := range m.old {
		switch {
		case isOld:
			left++
		case m.joined[replica]:
			complete++
		}
	}
	return left, complete
}

// slot sorts a worker. One that failed soon after it was made counts as starting for a
// while, so that its successor does not fail at the same pace.
func (p *planner) slot(worker Pod) scale.Slot {
	slot := scale.Slot{Index: worker.At.Slot, State: scale.Starting}
	wait := p.replaceable(worker, worker.failures())
	switch {
	case worker.leaving():
		slot.State = scale.Leaving
	case worker.draining():
		slot.State = scale.Draining
	case worker.finished() && wait > 0:
		p.wakeIn(wait)
	case worker.finished():
		slot.State = scale.Finished
	case worker.ready():
		slot.State = scale.Ready
	}
	slot.Retire = p.retire(worker) != ""
	slot.Busy = p.busy(worker)
	slot.Given = p.given(worker)
	if slot.State == scale.Starting {
		late := worker.CreationTimestamp.Add(abandonAfter).Sub(p.now)
		slot.Abandoned = late <= 0
	}
	return slot
}

// retire is why a worker must leave though its group has room for it, empty if it may stay.
func (p *planner) retire(worker Pod) string {
	_, asked := worker.Annotations[v1alpha1.AnnotationRetire]
	switch {
	case asked:
		return exitRetired
	case p.seen.Nodes[worker.Spec.NodeName].Going != "":
		return exitNode
	default:
		return ""
	}
}

func (p *planner) busy(worker Pod) bool {
	node, known := p.seen.Ray.Nodes[worker.UID]
	return known && !node.Idle && !node.Dead
}

// rolled is the group that a rolling replacement is at, nil if there is none: the first
// that has old workers or misses some, while the head itself is up to date.
func (p *planner) rolled(all []*members) *members {
	if !p.isRolling() || p.head == nil || !p.canKeepRoll() {
		return nil
	}
	old := p.intents.old(p.seen.Pods, p.Turn)
	if len(old) > 0 && p.intents.isOld(*p.head) {
		blocked := reason.HeadOutdated.Of(len(old), alive(p.seen.Pods), listed(old))
		p.Rolling = &blocked
		return nil
	}
	for _, m := range all {
		left, complete := m.progress()
		if p.Roll.Group != "" && p.Roll.Group != m.group.Name {
			continue // a group that has begun to be rolled is rolled to the end
		}
		if left > 0 {
			under := reason.RollingOut.Of(p.wanted(m.group)-left+len(m.exiting), p.wanted(m.group), m.group.Name)
			p.Rolling = &under
			return m
		}
		if complete < p.wanted(m.group) && len(old) > 0 {
			waits := reason.RollWaiting.Of(len(old), alive(p.seen.Pods), m.group.Name, complete, p.wanted(m.group))
			p.Rolling = &waits
			return nil // those that came last have to join before the next group is touched
		}
	}
	return nil
}

// roll marks the replicas of a group that a rolling replacement retires now, and gives
// the size that the group is to have meanwhile.
func (p *planner) roll(m *members) int {
	pace := p.pace(m.group)
	var replicas []scale.RollReplica
	for index, old := range m.old {
		replicas = append(replicas, scale.RollReplica{Index: index, Old: old, Ready: m.joined[index]})
	}
	step := scale.PlanRoll(pace, len(m.exiting), replicas)
	for _, index := range step.Retire {
		for i := range m.slots {
			m.slots[i].Retire = m.slots[i].Retire || m.slots[i].Index/m.hosts == index
		}
	}
	return step.Size
}

// resize fills and empties slots of a group.
func (p *planner) resize(m *members, rolling bool) {
	size, why := p.wanted(m.group), exitSurplus
	switch {
	case m.group.Suspend:
		why = exitSuspended
	case rolling:
		size = p.roll(m)
	}
	change := scale.Target(size, m.hosts, m.slots)
	if p.mustAskFirst(m, change) {
		p.Ask.often(askDrain)
		return
	}
	p.fill(m, change.Create, change.Broken)
	for _, slot := range change.Broken {
		p.discard(m.bySlot[slot.Index])
	}
	p.retireAll(m, change.Retire)
	p.takeBack(m, change.Given)
	for _, slot := range change.Surplus {
		p.exit(m.bySlot[slot.Index], why)
	}
	p.release(m, change.Create)
}

// takeBack deletes workers that the autoscaler gives back: they were drained already.
func (p *planner) takeBack(m *members, given []scale.Slot) {
	event := p.scaled(m)
	for _, slot := range given {
		worker := m.bySlot[slot.Index]
		if p.seen.Scaler.late(worker) {
			p.Delete = append(p.Delete, Removal{Pod: worker, Why: "it is late to join", Event: p.lateEvent(worker)})
			continue
		}
		p.Delete = append(p.Delete, Removal{Pod: worker, Why: "the autoscaler gives it back", Event: event})
		event = nil // once for all of them
	}
}

// lateEvent tells of a worker that is replaced because it does not join.
func (p *planner) lateEvent(worker Pod) *telemetry.Event {
	why := "it has not joined Ray for 15 minutes"
	if finding, found := diagnose.Pod(worker.Pod, p.seen.Events[worker.UID], p.now); found && finding.Severity() == reason.Warning {
		why += ": " + finding.Text
	}
	return &telemetry.Event{Finding: reason.WorkerFailed.Of(worker.Name, why), Related: worker.Pod, Action: "Replace", Warning: true}
}

// mustAskFirst reports whether Ray has yet to say which workers are idle before some are
// chosen to leave that might be at work. A head that does not answer is not waited for.
func (p *planner) mustAskFirst(m *members, change scale.Change) bool {
	if p.head == nil || !p.head.ready() || p.seen.Ray.Failed || p.seen.Ray.fresh(p.now) {
		return false
	}
	joined := func(slots []scale.Slot) int {
		count := 0
		for _, slot := range slots {
			if slot.State == scale.Ready && !slot.Retire {
				count++
			}
		}
		return count
	}
	leaving := joined(change.Surplus)
	return leaving > 0 && leaving < joined(m.slots)
}

// fill creates workers in slots, some in place of those that broke. Where their slots' claims are waited for, fewer.
func (p *planner) fill(m *members, slots []int, broken []scale.Slot) {
	slots = slots[:max(0, len(slots)-m.vacating)]
	if p.Held != nil || len(slots) == 0 {
		return
	}
	if room := p.room(); len(slots) > room {
		slots = slots[:room]
		p.wakeIn(fillAgain)
	}
	filling := Filling{Group: m.group.Name, Event: p.scaled(m)}
	for _, slot := range slots {
		claims, going := p.claims(m.group, slot)
		if going {
			p.wakeIn(goingRetry)
			continue
		}
		filling.Claims = append(filling.Claims, claims...)
		filling.Pods = append(filling.Pods, p.joined(p.site.WorkerPod(p.cluster, m.group, slot, p.Session)))
	}
	if len(filling.Pods) > 0 {
		p.count(m, broken, filling.Pods)
		p.Create = append(p.Create, filling)
	}
}

// room is how many more workers this pass builds.
func (p *planner) room() int {
	room := maxFilled
	for _, filling := range p.Create {
		room -= len(filling.Pods)
	}
	return room
}

// claims are those that a slot still needs; going tells that one is on its way out.
func (p *planner) claims(group *v1alpha1.WorkerGroup, slot int) (missing []*corev1.PersistentVolumeClaim, going bool) {
	for i := range group.VolumeClaimTemplates {
		claim := desired.Claim(p.cluster, group, slot, i)
		there, ok := p.seen.Claims[claim.Name]
		switch {
		case !ok:
			missing = append(missing, claim)
		case there.DeletionTimestamp != nil:
			going = true
		}
	}
	return missing, going
}

// release gives back the claims of slots that a group has no use for: more than it wants,
// and no pod is in them or about to be.
func (p *planner) release(m *members, created []int) {
	if m.group.Suspend || len(m.group.VolumeClaimTemplates) == 0 {
		return
	}
	needed := map[int]bool{}
	for slot := range m.bySlot {
		needed[slot] = true
	}
	for _, slot := range created {
		needed[slot] = true
	}
	for slot := 0; len(needed) < p.wanted(m.group)*m.hosts; slot++ {
		needed[slot] = true
	}
	for _, claim := range p.seen.claimsOf(m.group.Name) {
		if slot, err := strconv.Atoi(claim.Labels[v1alpha1.LabelSlot]); err != nil || !needed[slot] {
			p.Release = append(p.Release, claim)
		}
	}
}

// discard deletes a worker that ended, or one of a replica that can never be whole again.
func (p *planner) discard(worker Pod) {
	if !worker.finished() {
		p.Delete = append(p.Delete, Removal{Pod: worker, Why: "its replica is broken"})
		return
	}
	event := telemetry.Event{Finding: reason.WorkerFailed.Of(worker.Name, p.fate(worker)), Related: worker.Pod, Action: "Replace", Warning: true}
	p.Delete = append(p.Delete, Removal{Pod: worker, Why: "it has finished", Event: &event})
}

// companion is why a worker leaves that was not asked to itself: with another host of its
// replica, or for a rolling replacement.
func (p *planner) companion(m *members, slot int) string {
	for _, taken := range m.slots {
		other := m.bySlot[taken.Index]
		if taken.Index/m.hosts != slot/m.hosts || taken.Index == slot {
			continue
		}
		if other.draining() {
			return other.exit().Why
		}
		if why := p.retire(other); why != "" {
			return why
		}
	}
	return exitRolling
}

// exit begins a worker's planned exit, or ends it where there is nothing to wait for.
func (p *planner) exit(worker Pod, why string) {
	seconds := pod.DrainSeconds(pod.FindGroup(p.cluster, worker.At.Group))
	if p.stored() && !p.headServes() && worker.ready() && seconds > 0 {
		return // what it does goes on, and the head that can drain it comes back
	}
	if seconds == 0 || !worker.ready() || !p.headServes() {
		p.Delete = append(p.Delete, Removal{Pod: worker, Why: why})
		return
	}
	since := p.now.UTC().Truncate(time.Second)
	exit := Exit{Version: exitVersion, Since: since, Until: since.Add(time.Duration(seconds) * time.Second), Why: why}
	p.Exits = append(p.Exits, Leave{Pod: worker, Exit: exit, Event: p.farewell(worker, why)})
	p.Ask.drain(worker.UID, exit.Until)
	p.wakeIn(exit.Until.Sub(p.now))
}

// farewell is what to tell of a worker's exit, where it is not a step towards the spec.
func (p *planner) farewell(worker Pod, why string) *telemetry.Event {
	switch why {
	case exitNode:
		node := worker.Spec.NodeName
		return &telemetry.Event{Finding: reason.NodeDraining.Of(worker.Name, node, p.seen.Nodes[node].Going), Related: worker.Pod, Action: "Drain"}
	case exitRetired:
		return &telemetry.Event{Finding: reason.Retired.Of(worker.Name, v1alpha1.AnnotationRetire), Related: worker.Pod, Action: "Drain"}
	default:
		return nil
	}
}

// drain goes on with a planned exit: it is over when nothing runs there any more, when
// there is no head to say so, or when its time is up.
func (p *planner) drain(worker Pod) {
	exit := worker.exit()
	over := ""
	switch {
	case !p.now.Before(exit.Until):
		over = "its time to drain is over"
	case worker.finished(), worker.endedAt().After(exit.Since):
		over = "it has ended"
	case p.seen.Ray.Nodes[worker.UID].Dead:
		over = "Ray has drained it"
	case p.headGone(), !worker.hasStarted():
		over = "nothing runs on it"
	}
	if over != "" {
		p.Delete = append(p.Delete, Removal{Pod: worker, Why: over})
		return
	}
	p.Ask.drain(worker.UID, exit.Until)
	p.wakeIn(exit.Until.Sub(p.now))
}
