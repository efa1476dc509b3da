package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Many jobs on one cluster while the operator is killed at random moments, counted by what
// each of them wrote down.
var _ = Describe("submissions", func() {
	It("each run once, however often the operator is killed", func(ctx SpecContext) {
		o := opened(ctx)
		shared := &env{o.named("shared")}
		shared.apply(ctx, "clusters/ledger.yaml", values{"MaxConcurrentJobs": 3})
		shared.ready(ctx)
		random := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 0))
		begin := time.Now()
		result := live.Submissions{}
		for wave := range *rounds {
			var names []string
			for i := range live.SubmissionsWave {
				names = append(names, fmt.Sprintf("wave-%d-%d", wave, i))
			}
			result.Kills += o.wave(ctx, names, random)
			for _, name := range names {
				attempts, _ := o.ran(ctx, name)
				result.Jobs++
				switch {
				case len(attempts) == 0:
					result.Lost++
				case len(attempts) > 1:
					result.Doubled++
				}
			}
		}
		result.Seconds = time.Since(begin).Seconds()
		AddReportEntry(live.SubmissionsEntry, result, ReportEntryVisibilityAlways)
		Expect(result.Doubled).To(BeZero(), result.String())
		Expect(result.Lost).To(BeZero(), result.String())
		Expect(result.Kills).To(BeNumerically(">=", *rounds), "each wave begins with the end of an operator that leads")
	}, Label(live.SubmissionsLabel, live.AcceptLabel, localkubeLabel), SpecTimeout(60*time.Minute))
})

// wave runs jobs at once, and kills the operator whenever a random number of them have
// written down that they ran. It returns how often the one that it killed led.
func (o *office) wave(ctx context.Context, names []string, random *rand.Rand) (kills int) {
	GinkgoHelper()
	Expect(leads(ctx)).To(Succeed())
	var jobs []task
	for _, name := range names {
		jobs = append(jobs, o.shares(ctx, name, note))
	}
	prefix := names[0][:strings.LastIndex(names[0], "-")]
	for at := 0; at < len(names); at += 1 + random.IntN(len(names)) {
		exec(ctx, &o.clerk, "sh", "-c", fmt.Sprintf(`until [ "$(grep -c '^%s-' /ledger/runs)" -ge %d ]; do sleep 0.05; done`, prefix, at))
		kills += killOperator(ctx)
	}
	for _, job := range jobs {
		job.is(ctx, v1beta1.PhaseSucceeded)
	}
	return kills
}
