package services

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// life is what was done in one session of a head.
type life struct {
	// reborn: another session answered before. What the record says of it counts no more.
	reborn bool
	// silent is in how many turns in a row the head said that it has no Serve.
	silent int
	// parts are what was done about the part of each service.
	parts map[types.NamespacedName]*part
}

// part is what was done about one service's part in one session of a head.
type part struct {
	// sent is the digest that was sent last, empty if none was. Once one was, the record counts
	// no more.
	sent string
	// accepted is what the head took last, nil where that is not known: before anything was
	// sent, and while it is not known what became of what was.
	accepted *Config
	// taken is the digest that this process saw to be taken last.
	taken   string
	refusal refusal
	// again is how often what was taken was deployed again in a row because something of it
	// was missing, due when it is next.
	again int
	due   time.Time
	// form is how Serve gave the applications back when the part was seen there first, at a time; nil before that.
	form   []byte
	formAt time.Time
	retries
}

// refusal is why a digest was not taken.
type refusal struct {
	digest, why string
	// final: the head said so. Else nothing was sent, and the reason may pass: since is when
	// it was seen first.
	final bool
	since time.Time
}

// passes is how long a reason that may pass is not told: of two services that exchange a name
// or a route, each reaches the operator at its own time.
const passes = 5 * time.Second

// mayPass reports whether a reason is too young to be told.
func (r refusal) mayPass(now time.Time) bool {
	return !r.final && r.why != "" && now.Sub(r.since) < passes
}

// update brings what is known to what is wanted now: of a service that wants nothing any more
// nothing stays, and what was refused counts for the same digest alone.
func (l *life) update(wanted map[types.NamespacedName]*Config) {
	if l.parts == nil {
		l.parts = map[types.NamespacedName]*part{}
	}
	maps.DeleteFunc(l.parts, func(service types.NamespacedName, _ *part) bool { return wanted[service] == nil })
	for service, config := range wanted {
		known := l.parts[service]
		if known == nil {
			known = &part{}
			l.parts[service] = known
		}
		if known.refusal.digest != config.Digest {
			known.refusal = refusal{}
		}
		if config.Taken && known.sent == "" && !l.reborn {
			known.accepted = config
		}
	}
}

// judge returns what came of each part so far.
func (l *life) judge(now time.Time) map[types.NamespacedName]Outcome {
	all := make(map[types.NamespacedName]Outcome, len(l.parts))
	for service, known := range l.parts {
		outcome := Outcome{Taken: known.taken, RetryAt: known.retries.at}
		if refusal := known.refusal; refusal.why != "" && !refusal.mayPass(now) {
			outcome.Refused, outcome.RefusedDigest = refusal.why, refusal.digest
		}
		all[service] = outcome
	}
	return all
}

// waits reports whether a part is not sent for a reason that is too young to be told.
func (l *life) waits(now time.Time) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(l.parts)), func(p *part) bool { return p.refusal.mayPass(now) })
}

// owes reports whether the head has yet to take a part, as far as is known.
func (l *life) owes(wanted map[types.NamespacedName]*Config) bool {
	for service, config := range wanted {
		if known := l.parts[service]; known == nil || !known.took(config) {
			return true
		}
	}
	return false
}

// took reports whether a head has taken a configuration in this session, as far as is known.
func (p *part) took(config *Config) bool {
	return p.accepted != nil && p.accepted.Digest == config.Digest
}

// wants reports whether a configuration must be deployed where Serve says this, whose word is
// all that there is where it is sure.
func (p *part) wants(config *Config, sure bool, applications map[string]headclient.Application, now time.Time) bool {
	switch {
	case p.refusal.final:
		return false
	case !p.took(config):
		return sure || config.Alone
	case !sure:
		return false
	case lacks(config, applications):
		return !now.Before(p.due)
	case p.isReplaced(config, applications, now):
		return true
	default:
		p.again, p.due, p.refusal = 0, time.Time{}, refusal{}
		return p.retries.isDue(config, applications, now)
	}
}

// isReplaced reports whether somebody deployed something else under the names of the part: Serve gives back other
// configurations than those that it gave back when the part was seen there first. Where that goes on, it is so once in a
// while.
func (p *part) isReplaced(config *Config, applications map[string]headclient.Application, now time.Time) bool {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(config.Applications)) {
		fmt.Fprintf(sum, "%d %s", len(applications[name].Deployed), applications[name].Deployed)
	}
	form := sum.Sum(nil)
	if p.form == nil {
		p.form, p.formAt = form, now
	}
	return !bytes.Equal(p.form, form) && now.Sub(p.formAt) >= mostAgain
}

// postpone puts off the next time that the same is deployed.
func (p *part) postpone(now time.Time) {
	p.retries.note()
	p.again++
	p.due = now.Add(min(shortest<<min(p.again, 10), mostAgain))
}

// refuse keeps a reason that may pass, with when it was seen first.
func (p *part) refuse(digest, why string, now time.Time) {
	if p.refusal.digest != digest || p.refusal.why != why {
		p.refusal = refusal{digest: digest, why: why, since: now}
	}
}

// accept notes that the head took a service's part. Applications that others gave up to it are
// theirs no more.
func (l *life) accept(service types.NamespacedName, config *Config) {
	for other, known := range l.parts {
		if other != service && known.accepted != nil {
			known.accepted = known.accepted.without(config.Applications)
		}
	}
	known := l.parts[service]
	known.accepted, known.taken, known.refusal = config, config.Digest, refusal{}
	l.silent = 0
}

// without is a configuration without some applications.
func (c *Config) without(applications map[string]json.RawMessage) *Config {
	left := *c
	left.Applications = maps.Clone(c.Applications)
	maps.DeleteFunc(left.Applications, func(name string, _ json.RawMessage) bool { return applications[name] != nil })
	return &left
}

// neighbours are what the other services of a cluster have on its head.
type neighbours struct {
	// applications are theirs by name, in the form that the head took.
	applications map[string]held
	// dropped are the names that they gave up.
	dropped []string
	// options are those that the whole configuration has: of the first service by name, because
	// only one can have its way. What Serve reads at its start is the same for all.
	options json.RawMessage
}

// held is an application of another service.
type held struct {
	service string
	form    json.RawMessage
}

// beside returns what the other services have while a service's part is sent: what each had
// accepted last, whatever it wants now. What one gives up that this service asks for is handed
// over.
func (l *life) beside(service types.NamespacedName, wanted map[types.NamespacedName]*Config) neighbours {
	beside, first := neighbours{applications: map[string]held{}}, true
	ours := wanted[service]
	for _, other := range inOrder(l.parts) {
		has := l.parts[other].accepted
		if other == service {
			has = ours
		}
		if has == nil {
			continue
		}
		if first {
			beside.options, first = has.Options, false
		}
		if other == service {
			continue
		}
		beside.dropped = append(beside.dropped, has.Drop...)
		for name, form := range has.Applications {
			_, asked := ours.Applications[name]
			if _, still := wanted[other].Applications[name]; still || !asked {
				beside.applications[name] = held{service: other.Name, form: form}
			}
		}
	}
	return beside
}
