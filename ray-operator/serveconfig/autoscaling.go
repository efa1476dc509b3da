package serveconfig

import (
	"encoding/json"
	"slices"
)

// How many replicas Serve gives a deployment that it scales, where autoscaling_config does not say.
const (
	defaultLeast = 1
	defaultMost  = 1
	// defaultMostAuto is where num_replicas is "auto".
	defaultMostAuto = 100
)

// Keys of a deployment that scales.
const (
	keyDeployments = "deployments"
	keyAutoscaling = "autoscaling_config"
	keyLeast       = "min_replicas"
	keyMost        = "max_replicas"
	keyInitial     = "initial_replicas"
)

// Scaled is a deployment that Serve scales by load, as its configuration says. What only its code says is not here.
type Scaled struct {
	Deployment string
	Bounds
	// Gang is how many replicas come and go together, 1 where they do so one by one.
	Gang int
}

// Bounds are between how many replicas Serve scales a deployment.
type Bounds struct{ Least, Most int }

// Holding returns bounds between which a number of replicas lies, as near as these bounds allow: so many at least, and
// no more where capped is true.
func (s Scaled) Holding(replicas int, capped bool) Bounds {
	gang := max(s.Gang, 1)
	replicas = (replicas + gang - 1) / gang * gang
	held := Bounds{Least: min(max(replicas, s.Least), s.Most), Most: s.Most}
	if capped {
		held.Most = max(held.Least, gang)
	}
	return held
}

// Scaled returns the deployments that the configuration has Serve scale. One that has not the form that Serve takes is
// left out.
func (a Application) Scaled() []Scaled {
	var all []Scaled
	for _, raw := range a.deployments() {
		if scaled, ok := scaledOf(raw); ok {
			all = append(all, scaled)
		}
	}
	return all
}

// Bounded returns the application as it was written, but for the bounds of the deployments that are named.
func (a Application) Bounded(bounds map[string]Bounds) json.RawMessage {
	whole, err := object(a.Raw)
	if err != nil || len(bounds) == 0 {
		return a.Raw
	}
	deployments := a.deployments()
	for i, raw := range deployments {
		scaled, ok := scaledOf(raw)
		if given, named := bounds[scaled.Deployment]; ok && named {
			deployments[i] = bounded(raw, given)
		}
	}
	whole[keyDeployments] = printed(deployments)
	return printed(whole)
}

// deployments are those of an application, as they were written.
func (a Application) deployments() []json.RawMessage {
	whole, err := object(a.Raw)
	if err != nil {
		return nil
	}
	var list []json.RawMessage
	if whole.into(keyDeployments, &list) != nil {
		return nil
	}
	return list
}

// scaledOf reads a deployment. It is false for one that has a fixed number of replicas, or cannot be read.
func scaledOf(raw json.RawMessage) (Scaled, bool) {
	all, err := object(raw)
	if err != nil {
		return Scaled{}, false
	}
	scaling, err := object(all[keyAutoscaling])
	if err != nil {
		return Scaled{}, false
	}
	read := Scaled{Bounds: Bounds{Least: defaultLeast, Most: defaultMost}, Gang: 1}
	if string(all["num_replicas"]) == `"auto"` {
		read.Most = defaultMostAuto
	}
	gang, err := object(all["gang_scheduling_config"])
	if err == nil && gang.into("gang_size", &read.Gang) != nil {
		return Scaled{}, false
	}
	if all.into("name", &read.Deployment) != nil || scaling.into(keyLeast, &read.Least) != nil || scaling.into(keyMost, &read.Most) != nil {
		return Scaled{}, false
	}
	return read, read.Deployment != "" && read.Least >= 0 && read.Most >= max(read.Least, 1)
}

// bounded is a deployment with other bounds. Serve refuses initial_replicas that lie outside of them.
func bounded(raw json.RawMessage, bounds Bounds) json.RawMessage {
	all, _ := object(raw) // scaledOf has read both
	scaling, _ := object(all[keyAutoscaling])
	scaling[keyLeast], scaling[keyMost] = printed(bounds.Least), printed(bounds.Most)
	var initial int
	if given, there := scaling[keyInitial]; there && !isNull(given) && scaling.into(keyInitial, &initial) == nil {
		scaling[keyInitial] = printed(min(max(initial, bounds.Least), bounds.Most))
	}
	all[keyAutoscaling] = printed(scaling)
	return printed(all)
}

// canSleep reports whether Serve may take the last replica of a deployment away.
func canSleep(applications []Application) bool {
	return slices.ContainsFunc(applications, func(a Application) bool {
		return slices.ContainsFunc(a.Scaled(), func(s Scaled) bool { return s.Least == 0 })
	})
}
