package convert

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// trainingKind is what distinguishes a kind of training-operator's jobs from the others.
type trainingKind struct {
	// field has the roles, and container is the name of the one that runs the program.
	field, container string
	roles            []roleKind
	framework        v1beta1.GangFramework
	// restart is the restart policy of a role that has none.
	restart string
}

// jobParts are what the spec of each of training-operator's jobs has: the policy of its run, and its roles.
type jobParts interface {
	parts() (policy *jobPolicy, roles replicaSpecs)
}

// readTrainingJob reads the spec of a job into the type of its kind, and reports whether it could be read.
func readTrainingJob(c *conversion, kind *trainingKind, spec jobParts) bool {
	return !refuseMisplaced(c, kind.field, kind.roles) && c.read(spec)
}

// trainingJob converts a job of training-operator's, where own does with the sources of roles what the kind has of its own.
func trainingJob(c *conversion, kind *trainingKind, spec jobParts, own func(g *gangJob, sources []roleSource)) runtime.Object {
	if !readTrainingJob(c, kind, spec) {
		return nil
	}
	policy, roles := spec.parts()
	g := c.newGangJob(kind.framework)
	sources := gather(c, kind, kind.container, roles)
	if own != nil {
		own(g, sources)
	}
	g.takeRoles(sources)
	limit, path := g.takePolicy(policy, managerTraining)
	g.takeRestarts(limit, path, kind.restart, restartsUnsaid)
	return g.finished()
}
