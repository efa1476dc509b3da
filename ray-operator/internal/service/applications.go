package service

import (
	"slices"

	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// hashOf is how a record names an application.
func hashOf(application string) string {
	hash, _ := naming.ObjectHash(application) // a string always marshals
	return hash
}

// note adds an application to those that were asked for, if there is room.
func (r *Record) note(application string) {
	hash := hashOf(application)
	if !slices.Contains(r.Applications, hash) && len(r.Applications) < mostAsked {
		r.Applications = append(r.Applications, hash)
		slices.Sort(r.Applications)
	}
}

// askedNames are the names of the applications that were asked for last, as far as they are known: from what the head shows,
// and from the versions that are kept.
func (p *planner) askedNames() []string {
	var names []string
	add := func(name string) {
		if slices.Contains(p.record.Applications, hashOf(name)) {
			names = append(names, name)
		}
	}
	if cluster := p.cluster(&p.record.Active); cluster != nil {
		for name := range cluster.Answer.Serving.Applications {
			add(name)
		}
	}
	for _, revision := range p.seen.Revisions {
		for _, name := range revision.names() {
			add(name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
