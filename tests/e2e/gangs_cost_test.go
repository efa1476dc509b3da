package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

const (
	// calm is how many processes of a place sleep while what the launcher takes is measured, and calmFor for how long.
	calm    = 16
	calmFor = time.Minute
	// printed is how many lines of 100 bytes a program prints: 100 MB.
	printed = 1_000_000
)

// What gangs take beside a driver made by hand, and how fast output arrives beside a file. make accept alone plays it.
var _ = Describe("gangs", Label(live.AcceptLabel, live.GangCostLabel, localkubeLabel), func() {
	It("cost little more than a driver made by hand, and pass on all that programs print", func(ctx SpecContext) {
		g := withGangs(ctx, nil)
		var measured live.GangCosts
		gang := g.submit(ctx, "calm", "jobs/gang.yaml", values{"Command": `[sleep, "100000"]`,
			"Roles": fmt.Sprintf(`[{name: worker, replicas: 1, processesPerReplica: %d, resources: {CPU: "1"}}]`, calm)})
		gang.reported(ctx)
		hand := g.submit(ctx, "hand", "jobs/shared.yaml", values{"Cluster": "gangs", "Entrypoint": "python /programs/handmade.py sleep 100000"})
		places := g.found(ctx, timed, "ray::Place.run")
		driverByHand := g.found(ctx, 1, "/programs/handmade.py")
		driver, agent := g.found(ctx, 1, "heliostat_gang"), g.found(ctx, 1, "ray::Agent")
		guards, keeper := g.found(ctx, calm, "gang-guard"), g.found(ctx, 1, "gang-keeper")
		all := [][]live.GangProcess{slices.Concat(agent, keeper, guards), places, driver, driverByHand}
		var cores []float64
		for _, some := range all {
			cores = append(cores, -cpuOf(some))
		}
		select {
		case <-time.After(calmFor):
		case <-ctx.Done():
		}
		for i, some := range all {
			cores[i] = (cores[i] + cpuOf(some)) / calmFor.Seconds()
		}
		measured.CPU, measured.CPUByHand, measured.DriverCPU, measured.DriverCPUByHand = cores[0], cores[1]/timed, cores[2], cores[3]
		measured.Driver, measured.DriverByHand = memoryOfEach(driver), memoryOfEach(driverByHand)
		measured.Agent, measured.AgentByHand, measured.Guard = memoryOfEach(agent), memoryOfEach(places), memoryOfEach(guards)
		for _, job := range []task{gang, hand} {
			job.stop(ctx)
			job.is(ctx, v1beta1.PhaseStopped)
		}
		for range live.GangStartsMeasured {
			measured.Flushed = append(measured.Flushed, g.prints(ctx, "flushed"))
			measured.Buffered = append(measured.Buffered, g.prints(ctx, "buffered"))
		}
		AddReportEntry(live.GangCostEntry, measured, ReportEntryVisibilityAlways)
	}, SpecTimeout(6*limit))
})

// cpuOf returns how many seconds of CPU processes have taken together.
func cpuOf(processes []live.GangProcess) float64 {
	GinkgoHelper()
	total := 0.0
	for _, process := range processes {
		used, err := live.CPUTime(process.ID)
		Expect(err).NotTo(HaveOccurred())
		total += used.Seconds()
	}
	return total
}

// memoryOfEach returns how many MiB one of some processes holds, on average.
func memoryOfEach(processes []live.GangProcess) float64 {
	GinkgoHelper()
	total := 0.0
	for _, process := range processes {
		held, err := live.ProportionalMemory(process.ID)
		Expect(err).NotTo(HaveOccurred())
		total += held
	}
	return total / float64(len(processes))
}

// found waits until as many processes of a name or with a word are in the pods of the cluster. Shells that begin them do not count.
func (g *gangs) found(ctx context.Context, many int, word string) []live.GangProcess {
	GinkgoHelper()
	pods := append(g.cluster.pods(ctx, v1beta1.RoleWorker), g.cluster.head(ctx))
	var all []live.GangProcess
	eventually(ctx, fmt.Sprintf("%d processes of %s", many, word), func(context.Context) error {
		all = nil
		for i := range pods {
			some, err := live.CommandsIn(pods[i].UID, word)
			if err != nil {
				return err
			}
			all = append(all, slices.DeleteFunc(some, func(p live.GangProcess) bool { return p.Name == "sh" || p.Name == "bash" })...)
		}
		if len(all) != many {
			return fmt.Errorf("there are %v", all)
		}
		return nil
	})
	return all
}

// prints has a process of a gang print lines, which must all arrive in the job's own output, and returns how fast they do beside the
// same program whose output goes to a file.
func (g *gangs) prints(ctx context.Context, how string) float64 {
	GinkgoHelper()
	count := strconv.Itoa(printed)
	head, worker := g.cluster.head(ctx), g.cluster.pods(ctx, v1beta1.RoleWorker)[0]
	took := func(text string) float64 {
		GinkgoHelper()
		words := strings.Fields(text)
		Expect(words).To(HaveLen(2), text)
		begin, beginErr := strconv.ParseFloat(words[0], 64)
		end, endErr := strconv.ParseFloat(words[1], 64)
		Expect(errors.Join(beginErr, endErr)).To(Succeed())
		return end - begin
	}
	program := []string{"python3", "/programs/lines.py", how, count}
	toFile := took(exec(ctx, &worker, "sh", "-c", strings.Join(program, " ")+" /tmp/began >/tmp/lines; echo $(cat /tmp/began) $(date +%s.%N); rm /tmp/lines"))

	job := g.submit(ctx, "prints-"+how, "jobs/gang.yaml", values{"Command": commandOf(append(program, "/ledger/began")), "Roles": `[{name: worker, resources: {CPU: "1"}}]`})
	log := "/tmp/ray/session_latest/logs/job-driver-" + last(job.reported(ctx)).SubmissionID + ".log"
	arrived := took(exec(ctx, &head, "sh", "-c", fmt.Sprintf("until tail -c 200 %s | grep -q 'line %d '; do sleep 0.02; done; echo $(cat /ledger/began) $(date +%%s.%%N)", log, printed-1)))
	job.is(ctx, v1beta1.PhaseSucceeded)
	const check = `$1 == "[worker/0]" && $2 == "line" { if ($3 != n++ || length($0) != 110) bad++ } END { print n + 0, bad + 0 }`
	Expect(strings.Fields(exec(ctx, &head, "awk", check, log))).To(Equal([]string{count, "0"}), "lines that arrived, and those that are not what was printed")
	job.remove(ctx)
	return toFile / arrived
}
