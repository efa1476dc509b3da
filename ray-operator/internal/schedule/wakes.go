package schedule

import (
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/wake"
)

// kindName is the kind that owner references name.
const kindName = "ClusterJobSchedule"

// WakeRules say what wakes schedules, beside changes of their own.
func WakeRules() []wake.Rule {
	return []wake.Rule{
		{Name: "a job wakes its schedule", Kind: &v1beta1.ClusterJob{}, Matters: changesEnd, Find: wake.Controllers(kindName)},
	}
}

// changesEnd reports whether a job came or went, ended, or got another owner.
func changesEnd(c wake.Change) bool {
	before, was := c.Old.(*v1beta1.ClusterJob)
	now, is := c.New.(*v1beta1.ClusterJob)
	return !was || !is || before.UID != now.UID || !before.Status.EndTime.Equal(now.Status.EndTime)
}
