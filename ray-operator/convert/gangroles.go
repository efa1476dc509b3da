package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// roleKind is a role that one of Kubeflow's kinds has, and its name in a gang.
type roleKind struct{ key, name string }

// findRole returns the role of a key, which Kubeflow takes in upper and lower case.
func findRole(roles []roleKind, key string) (roleKind, bool) {
	at := slices.IndexFunc(roles, func(r roleKind) bool { return strings.EqualFold(r.key, key) })
	if at < 0 {
		return roleKind{}, false
	}
	return roles[at], true
}

// keysOf names the roles of a kind.
func keysOf(roles []roleKind) string {
	var keys []string
	for _, role := range roles {
		keys = append(keys, role.key)
	}
	return strings.Join(keys, ", ")
}

// gather returns what the roles of a job are made of, in the order of the kind's roles.
func gather(c *conversion, kind *trainingKind, container string, specs replicaSpecs) []roleSource {
	field, roles := kind.field, kind.roles
	found := map[string]roleSource{}
	for _, key := range slices.Sorted(maps.Keys(specs)) {
		at, spec := join("spec."+field, key), specs[key]
		role, isKnown := findRole(roles, key)
		switch _, isTwice := found[role.name]; {
		case !isKnown:
			c.refuse(at, fmt.Sprintf("a %s has no role %s; use %s", c.kind, key, keysOf(roles)))
			continue
		case isTwice:
			c.refuse(at, "the role is there twice; keep one")
			continue
		case spec == nil:
			c.refuse(at, "the role has nothing below it; give replicas and template")
			continue
		}
		replicas := int32(1)
		if spec.Replicas != nil {
			replicas = *spec.Replicas
		}
		found[role.name] = roleSource{
			name: role.name, alias: role.name, at: at, templateAt: at + ".template", template: spec.Template.PodTemplateSpec, container: container,
			replicas: replicas, restart: spec.RestartPolicy, restartAt: at,
		}
		if spec.Template.Kind != nil || spec.Template.APIVersion != nil {
			c.drop(at+".template.kind", "a pod template has no kind and no apiVersion, and Kubernetes leaves them out")
		}
		if spec.RestartPolicy != "" {
			source := found[role.name]
			source.restartAt += ".restartPolicy"
			found[role.name] = source
		}
	}
	var all []roleSource
	for _, role := range roles {
		if source, is := found[role.name]; is {
			all = append(all, source)
		}
	}
	if len(all) == 0 && len(specs) == 0 {
		c.refuse("spec."+field, "a job needs roles; give "+keysOf(roles))
	}
	return all
}

// has returns the position of a role, or a negative number.
func has(sources []roleSource, name string) int {
	return slices.IndexFunc(sources, func(s roleSource) bool { return s.name == name })
}

// total returns how many replicas roles have.
func total(sources []roleSource) int32 {
	sum := int32(0)
	for i := range sources {
		sum += sources[i].replicas
	}
	return sum
}

// decide has the success of a gang depend on one role alone, and says so where the gang's own rule is another.
func decide(c *conversion, sources []roleSource, by string) {
	for i := range sources {
		if sources[i].name == by {
			continue
		}
		sources[i].success = v1beta1.SuccessIgnore
		c.adjust(sources[i].at, "gang.roles[].successPolicy", fmt.Sprintf("the job succeeds with its %s, as before, and processes of this "+
			"role are "+
			"stopped then; take successPolicy out to wait for them", by))
	}
}
