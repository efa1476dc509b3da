package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// The phases of a job in which make test stops none: it stops one that Ray has no room for, and one that runs.
var _ = Describe("a job that is stopped by its annotation", Label(live.AcceptLabel, live.StopLabel, localkubeLabel), func() {
	for phase, of := range map[string]struct {
		file string
		spec values
		ran  []string
	}{
		v1beta1.PhasePending:      {"jobs/shared.yaml", values{"Cluster": "missing", "Entrypoint": beat}, nil},
		v1beta1.PhaseProvisioning: {"jobs/own.yaml", values{"Entrypoint": beat}, nil},
		v1beta1.PhaseRunning:      {"jobs/own.yaml", values{"Retry": fewRetries, "Entrypoint": beat}, []string{"1"}},
		v1beta1.PhaseRetrying:     {"jobs/own.yaml", values{"Retry": "{limit: 3, backoffSeconds: 300}", "Entrypoint": note + "exit 1"}, []string{"1"}},
		v1beta1.PhaseSuspended:    {"jobs/own.yaml", values{"Suspend": true, "Entrypoint": beat}, nil},
	} {
		It("ends as Stopped, with its cluster, and does not come back: "+phase, func(ctx SpecContext) {
			o := opened(ctx)
			job := o.submit(ctx, "stops", of.file, of.spec)
			job.is(ctx, phase)
			if phase == v1beta1.PhaseRunning {
				o.beating(ctx, "stops")
			}
			job.stop(ctx)
			Expect(reasonOf(job.is(ctx, v1beta1.PhaseStopped))).To(Equal(reason.Stopped.Code))
			job.suspend(ctx, false)
			o.cleared(ctx)
			o.silent(ctx, "stops")
			Expect(job.now(ctx).Status.Phase).To(Equal(v1beta1.PhaseStopped))
			attempts, _ := o.ran(ctx, "stops")
			Expect(attempts).To(Equal(of.ran))
		}, SpecTimeout(limit))
	}
})
