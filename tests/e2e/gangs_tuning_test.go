package e2e

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

const (
	// trialGrace is what a trial has from SIGTERM to SIGKILL, in seconds, and prunedWithin how long after that and its last step it may be there.
	trialGrace   = 3
	prunedWithin = 5 * time.Second
)

// Trials on a cluster of two workers whose image has Optuna.
var _ = Describe("gangs with trials", Ordered, ContinueOnFailure, Label(live.AcceptLabel, live.GangTuningLabel, localkubeLabel), func() {
	var g *gangs

	BeforeAll(func(ctx SpecContext) {
		g = withGangs(ctx, values{"Image": "frameworks-bookworm", "HeadOn": nodes(ctx)[0].Name})
	}, NodeTimeout(limit))

	It("are in the table once each, though the driver is killed, and a later job continues with them", func(ctx SpecContext) {
		v := values{"Retry": "{limit: 1, infrastructureLimit: 1, backoffSeconds: 1}", "Storage": "/ledger/kept/study", "Directory": "kept",
			"MaxTrials": 8, "ParallelTrials": 2, "Seed": 7, "Command": parabola("--seconds", "0.5")}
		job := g.submit(ctx, "kept", "jobs/tune.yaml", v)
		g.untilRuns(ctx, "kept", "ended", 3)
		head := g.cluster.head(ctx)
		g.component(ctx, &head, driverProcess, syscall.SIGKILL)
		ended := job.is(ctx, v1beta1.PhaseSucceeded)
		Expect(ended.Status.Attempt).To(BeEquivalentTo(2))
		table := g.table(ctx, "kept/study")
		Expect(numbersOf(table)).To(Equal([]string{"0", "1", "2", "3", "4", "5", "6", "7"}))
		g.sameValues(ctx, "kept", table)
		g.best(ended, table, 8)
		Expect(g.printedTrials(ctx, "kept")).To(Equal(table))
		g.leavesNothing(ctx, ended, time.Second)

		later := g.submit(ctx, "later", "jobs/tune.yaml", v.and(values{"MaxTrials": 10})).is(ctx, v1beta1.PhaseSucceeded)
		more := g.table(ctx, "kept/study")
		Expect(more[:8]).To(Equal(table), "trials of the job before")
		g.best(later, more, 10)
	}, SpecTimeout(3*limit))

	It("end when another one has reached the goal, and tell what they wait for where fewer fit", func(ctx SpecContext) {
		job := g.submit(ctx, "goal", "jobs/tune.yaml", values{"Goal": "1", "MaxTrials": 50, "ParallelTrials": 3, "CPU": "4", "Seed": 1,
			"Parameters": `[{name: x, type: Float, values: ["9", "1"]}]`, "Algorithm": "Grid",
			"Command": `[sh, -c, 'if [ $HELIOSTAT_TRIAL = 1 ]; then until [ -e /ledger/reach ]; do sleep 0.1; done; echo loss=1; else echo loss=5; exec sleep 1000; fi']`})
		eventually(ctx, "two trials", func(ctx context.Context) error {
			now := job.now(ctx)
			if now.Status.Tune == nil || now.Status.Tune.Running != 2 || now.Status.Phase != v1beta1.PhaseRunning {
				return errors.New(live.SaysOf(now))
			}
			return nil
		})
		Expect(live.SaysOf(job.now(ctx))).To(ContainSubstring("2 of 3 trials at a time"))
		begin := time.Now()
		exec(ctx, &g.clerk, "touch", "/ledger/reach")
		ended := job.is(ctx, v1beta1.PhaseSucceeded)
		takes(begin, trialGrace*time.Second+10*time.Second, "the end of a job that has reached its goal")
		Expect(ended.Status.Tune).To(HaveValue(And(HaveField("Trials", BeEquivalentTo(2)), HaveField("Succeeded", BeEquivalentTo(1)), HaveField("Pruned", BeEquivalentTo(1)))))
		g.leavesNothing(ctx, ended, time.Second)
	}, SpecTimeout(2*limit))

	It("are gone soon after early stopping ends them", func(ctx SpecContext) {
		job := g.submit(ctx, "early", "jobs/tune.yaml", values{"EarlyStopping": "Median", "Algorithm": "Random", "MaxTrials": 8, "ParallelTrials": 1, "Seed": 3,
			"Command": parabola("--stubborn", "6")})
		g.untilRuns(ctx, "early", "diverged", 1)
		uid, begin := job.now(ctx).UID, time.Now()
		Expect(live.Until(ctx, trialGrace*time.Second+prunedWithin, "the processes of trial 6 to be gone", func(context.Context) error {
			all, err := live.GangProcesses(uid, live.OfPrograms)
			left := slices.DeleteFunc(all, func(p live.GangProcess) bool { return !strings.Contains(p.Command, "--number 6") })
			if err == nil && len(left) > 0 {
				err = fmt.Errorf("there are %v", left)
			}
			return err
		})).To(Succeed())
		took := time.Since(begin)
		ended := job.is(ctx, v1beta1.PhaseSucceeded)
		Expect(ended.Status.Tune).To(HaveValue(And(HaveField("Pruned", BeNumerically(">=", 1)), HaveField("Trials", BeEquivalentTo(8)))))
		for _, trial := range g.printedTrials(ctx, "early") {
			if trial.Number == 6 {
				Expect(trial.State).To(Equal("Pruned"))
				Expect(trial.Message).To(ContainSubstring("ended early, at step 1"))
			}
		}
		GinkgoWriter.Printf("the processes of a trial that was pruned were gone after %.1f s, with a grace of %d s\n", took.Seconds(), trialGrace)
	}, SpecTimeout(2*limit))

	It("cost at most a second beside their command by hand", func(ctx SpecContext) {
		job := g.submit(ctx, "cost", "jobs/tune.yaml", values{"MaxTrials": 12, "ParallelTrials": 1, "Seed": 3, "Storage": "/ledger/cost/study", "Command": parabola()})
		job.is(ctx, v1beta1.PhaseSucceeded)
		exec(ctx, &g.clerk, "mkdir", "-p", "/ledger/hand")
		exec(ctx, &g.clerk, "chmod", "777", "/ledger/hand")
		exec(ctx, &g.cluster.staying(ctx, 2)[0], "sh", "-c",
			"for i in 0 1 2 3 4 5 6 7 8 9 10 11; do CHECKPOINT_DIR=/ledger/hand python /programs/parabola.py --number $i --x 0.5; done")
		measured := live.GangTrials{Trial: g.period(ctx, "cost"), ByHand: g.period(ctx, "hand")}
		AddReportEntry(live.GangTrialsEntry, measured, ReportEntryVisibilityAlways)
		Expect(measured.Trial-measured.ByHand).To(BeNumerically("<=", 1), "%+v", measured)
	}, SpecTimeout(2*limit))

	It("name what they lack: a metric, and a module", func(ctx SpecContext) {
		missing := g.submit(ctx, "missing", "jobs/tune.yaml", values{"MaxTrials": 4, "MaxFailedTrials": "0", "Seed": 1, "Command": `[echo, accuracy=1]`})
		gaussian := g.submit(ctx, "gaussian", "jobs/tune.yaml", values{"MaxTrials": 4, "Seed": 1, "Algorithm": "GaussianProcess", "Command": `[echo, loss=1]`})
		failed := missing.is(ctx, v1beta1.PhaseFailed)
		Expect(reasonOf(failed)).To(Equal(reason.MetricMissing.Code), live.SaysOf(failed))
		Expect(live.SaysOf(failed)).To(And(ContainSubstring("trial 0"), ContainSubstring("loss=NUMBER")))
		Expect(last(failed).LastLines).To(ContainElement("accuracy=1"))
		failed = gaussian.is(ctx, v1beta1.PhaseFailed)
		Expect(reasonOf(failed)).To(Equal(reason.TuningFailed.Code), live.SaysOf(failed))
		Expect(live.SaysOf(failed)).To(ContainSubstring("needs the Python module scipy"))
		Expect(last(failed).EndTime.Sub(last(failed).StartTime.Time)).To(BeNumerically("<", 10*time.Second))
	}, SpecTimeout(2*limit))
})

// trialRow is a trial, as the table has it.
type trialRow struct {
	Number int               `json:"trial"`
	State  string            `json:"state"`
	Value  string            `json:"value"`
	Values map[string]string `json:"parameters"`
	// Message is why a trial failed or ended early.
	Message string `json:"message"`
}

// parabola is the command of a program whose loss is the least at x = 1.
func parabola(options ...string) string {
	GinkgoHelper()
	return commandOf(append([]string{"python", "/programs/parabola.py", "--number", "$(tune.trial)", "--x", "$(tune.x)"}, options...))
}

// untilRuns waits until as many trials have noted that they began, diverged or ended.
func (g *gangs) untilRuns(ctx context.Context, directory, what string, runs int) {
	GinkgoHelper()
	exec(ctx, &g.clerk, "sh", "-c", fmt.Sprintf("until [ $(grep -c '^%s ' /ledger/%s/runs 2>/dev/null || true) -ge %d ] 2>/dev/null; do sleep 0.1; done", what, directory, runs))
}

// runs are what trials have noted: what, number, x and time.
func (g *gangs) runs(ctx context.Context, directory string) [][]string {
	GinkgoHelper()
	var all [][]string
	for _, line := range g.log(ctx, directory+"/runs") {
		words := strings.Fields(line)
		Expect(words).To(HaveLen(4), line)
		all = append(all, words)
	}
	return all
}

// table reads trials.csv of a storage.
func (g *gangs) table(ctx context.Context, storage string) []trialRow {
	GinkgoHelper()
	lines, err := csv.NewReader(strings.NewReader(exec(ctx, &g.clerk, "cat", "/ledger/"+storage+"/trials.csv"))).ReadAll()
	Expect(err).NotTo(HaveOccurred())
	Expect(lines[0]).To(Equal([]string{"trial", "state", "loss", "x", "started", "seconds", "attempt", "message"}))
	var rows []trialRow
	for _, cells := range lines[1:] {
		number, err := strconv.Atoi(cells[0])
		Expect(err).NotTo(HaveOccurred())
		rows = append(rows, trialRow{number, cells[1], cells[2], map[string]string{"x": cells[3]}, cells[7]})
	}
	return rows
}

// printedTrials are those that the command line prints.
func (g *gangs) printedTrials(ctx context.Context, job string) []trialRow {
	GinkgoHelper()
	code, text := commandLine(ctx, g.namespace, "tune", job, "-o", "json")
	Expect(code).To(BeZero())
	var answer struct{ Trials []trialRow }
	Expect(json.Unmarshal([]byte(text), &answer)).To(Succeed(), text)
	_, shown := commandLine(ctx, g.namespace, "tune", job)
	Expect(strings.Split(strings.TrimSpace(shown), "\n")).To(HaveLen(len(answer.Trials)+1), shown)
	return answer.Trials
}

func numbersOf(rows []trialRow) []string {
	var all []string
	for _, row := range rows {
		all = append(all, strconv.Itoa(row.Number))
	}
	return all
}

// sameValues checks that each run of a trial had the values that the table has.
func (g *gangs) sameValues(ctx context.Context, directory string, table []trialRow) {
	GinkgoHelper()
	for _, words := range g.runs(ctx, directory) {
		at, err := strconv.Atoi(words[1])
		Expect(err).NotTo(HaveOccurred())
		x, err := strconv.ParseFloat(table[at].Values["x"], 64)
		Expect(err).NotTo(HaveOccurred())
		Expect(strconv.ParseFloat(words[2], 64)).To(Equal(x), "x of trial %d", at)
	}
}

// best checks that the status counts as many trials as have succeeded, and has the best of the table.
func (g *gangs) best(job *v1beta1.ClusterJob, table []trialRow, trials int32) {
	GinkgoHelper()
	value := func(row trialRow) float64 {
		found, err := strconv.ParseFloat(row.Value, 64)
		Expect(err).NotTo(HaveOccurred())
		return found
	}
	best := slices.MinFunc(table, func(a, b trialRow) int {
		if value(a) < value(b) {
			return -1
		}
		return 1
	})
	Expect(job.Status.Tune).To(Equal(&v1beta1.TuneStatus{
		Trials: trials, Succeeded: trials, Best: &v1beta1.BestTrial{Trial: int32(best.Number), Value: best.Value, Parameters: best.Values},
	}))
}

// period is the median of the seconds from one beginning to the next one.
func (g *gangs) period(ctx context.Context, directory string) float64 {
	GinkgoHelper()
	var begun, periods []float64
	for _, words := range g.runs(ctx, directory) {
		if words[0] == "began" {
			at, err := strconv.ParseFloat(words[3], 64)
			Expect(err).NotTo(HaveOccurred())
			begun = append(begun, at)
		}
	}
	Expect(len(begun)).To(BeNumerically(">", 2))
	for i := range begun[1:] {
		periods = append(periods, begun[i+1]-begun[i])
	}
	slices.Sort(periods)
	return periods[len(periods)/2]
}
