package records

import (
	"sync"
)

// maxPending bounds the events that wait for the table. Those beyond it are lost: a record has the newest of many anyway.
const maxPending = 10_000

// changes are what was seen of objects. Of each object the newest row is enough.
type changes struct {
	rows   map[string]*row
	pods   map[string]*podRow
	spaces map[string]space
	// events are those about an object, by its UID.
	events map[string][]event
	// links are clusters, by the UID of the service that they were made for.
	links map[string]map[string]bool
}

// space is a namespace.
type space struct {
	Name string `json:"name"`
	// Gone is when the namespace was deleted, and 0 while it is there.
	Gone int64 `json:"gone,omitempty"`
	At   int64 `json:"at"`
}

func newChanges() *changes {
	return &changes{
		rows: map[string]*row{}, pods: map[string]*podRow{}, spaces: map[string]space{}, events: map[string][]event{},
		links: map[string]map[string]bool{},
	}
}

func (c *changes) isEmpty() bool {
	return len(c.rows)+len(c.pods)+len(c.spaces)+len(c.events)+len(c.links) == 0
}

// pending holds changes until they are in the table.
type pending struct {
	mutex   sync.Mutex
	changes *changes
	count   int // events
}

func newPending() *pending { return &pending{changes: newChanges()} }

func (p *pending) addRow(one *row) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.changes.rows[one.UID] = one.after(p.changes.rows[one.UID])
}

func (p *pending) addPod(one *podRow) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.changes.pods[one.UID] = one.after(p.changes.pods[one.UID])
}

func (p *pending) addSpace(uid string, one space) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.changes.spaces[uid] = one
}

// addEvent adds an event about an object, whose record is made by others.
func (p *pending) addEvent(object string, one event) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.count < maxPending {
		p.count++
		p.changes.events[object] = append(p.changes.events[object], one)
	}
}

// addLink notes that a cluster was made for a service.
func (p *pending) addLink(service, cluster string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.changes.links[service] == nil {
		p.changes.links[service] = map[string]bool{}
	}
	p.changes.links[service][cluster] = true
}

// take returns what waits, which the caller then has.
func (p *pending) take() *changes {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	taken := p.changes
	p.changes, p.count = newChanges(), 0
	return taken
}

// giveBack has changes wait again that did not reach the table.
func (p *pending) giveBack(taken *changes) {
	for _, one := range taken.rows {
		p.addRow(one)
	}
	for _, one := range taken.pods {
		p.addPod(one)
	}
	for object, all := range taken.events {
		for _, one := range all {
			p.addEvent(object, one)
		}
	}
	for service, clusters := range taken.links {
		for cluster := range clusters {
			p.addLink(service, cluster)
		}
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for uid, one := range taken.spaces {
		if _, is := p.changes.spaces[uid]; !is {
			p.changes.spaces[uid] = one
		}
	}
}
