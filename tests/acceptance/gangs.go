package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// Full counts of gangs: make test does five of each.
const (
	gangFaultsPlayed = 50
	gangEndsPlayed   = 100
	gangsPlaced      = 30
	gangsOfARound    = 5
)

// gangFrameworks shows programs of each framework on real Ray.
var gangFrameworks = gangsPlayed(live.GangFrameworksLabel, "frameworks", "programs that know neither Ray nor the operator run as gangs: DistributedDataParallel with four ranks on two nodes, one of which is killed, "+
	"the same by torchrun, mpi4py with eight ranks on Open MPI 5, XGBoost, and a scheduler, servers and workers; "+
	"PyTorch and XGBoost read the golden environments as they are meant")

// gangsOfIPv6 and mpiOfIPv6 show programs where pods have no other address. No MPI runs there: mpirun of Open MPI 5.0.7 ends by SIGSEGV
// with any hostfile, and that of 4.1, which mpiOfIPv6 plays, refuses addresses as names of hosts.
var (
	gangsOfIPv6 = onIPv6(live.GangIPv6Label, live.GangIPv6Label, "frameworks", "DistributedDataParallel, torchrun, XGBoost, and a scheduler, servers and workers find each other by IPv6 alone")
	mpiOfIPv6   = onIPv6(live.GangIPv6Label+"-mpi", live.GangMPILabel, "frameworks-bookworm", "eight ranks on Open MPI 4.1 find each other by IPv6 alone")
)

// onIPv6 is a scenario whose specs with a label pass on nodes that hold an image and have IPv6 alone.
func onIPv6(name, label, image, promise string) scenario {
	return scenario{name: name, promise: promise, play: func(ctx context.Context, state string) (Outcome, error) {
		return onNodesWith(ctx, []string{"operator", image}, []string{"--ip-families", "ipv6"}, showSpecs(ctx, state, label, 1, countPlayed))
	}}
}

// gangsOfDebian12 shows them with former generations of two frameworks.
var gangsOfDebian12 = gangsPlayed(live.GangMPILabel, "frameworks-bookworm", "mpi4py with eight ranks on Open MPI 4.1 without an sshd, the benchmark that mpi4py ships, and PyTorch 1.13, which reads the golden environments too")

// gangsOfTensorFlow shows programs of TensorFlow and JAX.
var gangsOfTensorFlow = gangsPlayed(live.GangTensorFlowLabel, "frameworks-tensorflow", "MultiWorkerMirroredStrategy, one of whose workers is killed, ParameterServerStrategy with a chief and an evaluator that reads checkpoints, "+
	"and jax.distributed with a sum over four processes; TensorFlow and JAX read the golden environments as they are meant")

// gangOfSpark shows applications of Spark on executors that come and go.
var gangOfSpark = gangsPlayed(live.GangSparkLabel, "frameworks-spark", "a word count and a shuffle join of Spark give the right result in one run of the driver, though an executor's pod is deleted in mid-stage; "+
	"one executor becomes three as places appear; one on a draining node moves its blocks, so that no task runs twice; "+
	"the Master refuses an application without the secret; no page ends anything")

// gangTuning shows trials with values that Optuna draws.
var gangTuning = scenario{
	name: live.GangTuningLabel,
	promise: "a driver that is killed has each trial in the table once, and a later job continues with them; one that reaches the goal ends the others; " +
		"one that early stopping ends is gone within its grace and 5 s; a trial costs at most 1 s beside its command by hand",
	play: func(ctx context.Context, state string) (Outcome, error) {
		return onFrameworks(ctx, "frameworks-bookworm", showSpecs(ctx, state, live.GangTuningLabel, 1, func(ran []types.SpecReport) (Outcome, error) {
			all, err := entries[live.GangTrials](ran, live.GangTrialsEntry)
			if err != nil || len(all) == 0 {
				return Outcome{}, errors.Join(err, errors.New("no spec reported what a trial costs"))
			}
			return Outcome{
				Measured: fmt.Sprintf("%d specs played; a trial each %.2f s, its command by hand each %.2f s", len(ran), all[0].Trial, all[0].ByHand),
				Kept:     all[0].Trial-all[0].ByHand <= 1,
			}, nil
		}))
	},
}

// gangFaults shows what gangs do when processes, places and nodes fail.
var gangFaults = scenario{
	name: live.GangFaultsLabel,
	promise: fmt.Sprintf("%d faults drawn by seed, of processes, agents, drivers, pods and nodes: each time the one that was hit is named, "+
		"all go on from their checkpoints, and no process begins beside one of another round", gangFaultsPlayed),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return onFrameworks(ctx, "frameworks", showSpecs(ctx, state, live.GangFaultsLabel, gangFaultsPlayed/gangsOfARound, func(ran []types.SpecReport) (Outcome, error) {
			done, err := entries[live.GangFault](ran, live.GangFaultsEntry)
			if err != nil {
				return Outcome{}, err
			}
			return counted(done, gangFaultsPlayed, "faults, the next round after at most", func(f live.GangFault) float64 { return f.Seconds })
		}))
	},
}

// gangEnds shows that gangs leave nothing, however they end.
var gangEnds = scenario{
	name: live.GangEndsLabel,
	promise: fmt.Sprintf("%d gangs whose programs leave daemons, ended by the SIGKILL of driver, supervisor, agent, keeper, guard or raylet, and by stop, suspension, "+
		"deletion, deadline, and the operator's SIGKILL: no process of theirs anywhere after their grace and 10 s", gangEndsPlayed),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return onFrameworks(ctx, "frameworks", showSpecs(ctx, state, live.GangEndsLabel, gangEndsPlayed/gangsOfARound, func(ran []types.SpecReport) (Outcome, error) {
			done, err := entries[live.GangEnd](ran, live.GangEndsEntry)
			if err != nil {
				return Outcome{}, err
			}
			return counted(done, gangEndsPlayed, "gangs, the last process gone after at most", func(e live.GangEnd) float64 { return e.Seconds })
		}))
	},
}

// gangPlaces shows that gangs do not keep each other from their places.
var gangPlaces = scenario{
	name:    live.GangPlacesLabel,
	promise: fmt.Sprintf("%d gangs of two to four on eight places: none starts in part, and all end", gangsPlaced),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return onFrameworks(ctx, "frameworks", showSpecs(ctx, state, live.GangPlacesLabel, gangsPlaced/gangsOfARound, countPlayed))
	},
}

// gangClusters shows what gangs do on clusters that change.
var gangClusters = gangsPlayed(live.GangClustersLabel, "frameworks", "two gangs that each lost a place end both; a gang of eight starts among gangs of two in the order of creation; a head with a control store is replaced "+
	"and no process ends, nor by an upgrade of the operator; a gang is one demand of the autoscaler; a preempted one goes on from its checkpoint on another cluster; "+
	"one that saves for 40 s saves on each of seven ways to end")

// fuzzedReports looks for reports of gangs that break what reads them.
var fuzzedReports = fuzzed("gang-report-fuzz", "the reader of a gang's report", "ray-operator/launcher")

// gangHistories plays histories of rounds, and a gang of the largest size with agents that are no processes.
var gangHistories = scenario{
	name: "gang-histories",
	promise: "in 100,000 histories of a gang there are never two rounds at once, never fewer processes than the minimum, and always an end; " +
		"the driver of 1,024 agents takes less than half a core",
	play: func(ctx context.Context, _ string) (Outcome, error) {
		begin := time.Now()
		variables := []string{"HELIOSTAT_HISTORIES=100000", "HELIOSTAT_AGENTS=1024"}
		err := command(ctx, variables, "python3", "-B", "-m", "unittest", "discover", "-s", "ray-operator/launcher/tests", "-p", "test_[rd]*.py")
		return Outcome{Measured: fmt.Sprintf("all of it in %.0f s", time.Since(begin).Seconds()), Kept: err == nil}, err
	},
}

// gangsPlayed is a scenario whose specs with a label all pass on nodes that hold an image.
func gangsPlayed(label, image, promise string) scenario {
	return scenario{name: label, promise: promise, play: func(ctx context.Context, state string) (Outcome, error) {
		return onFrameworks(ctx, image, showSpecs(ctx, state, label, 1, countPlayed))
	}}
}

// onFrameworks shows something on a local Kubernetes whose nodes hold an image with frameworks.
func onFrameworks(ctx context.Context, image string, show func(kubeconfig string) (Outcome, error)) (Outcome, error) {
	return onNodesWith(ctx, []string{"operator", image}, nil, show)
}

// counted is the outcome of what specs did at least so often, with the longest that it took.
func counted[T any](done []T, least int, what string, seconds func(T) float64) (Outcome, error) {
	if len(done) == 0 {
		return Outcome{}, errors.New("no spec reported what it did to gangs")
	}
	samples, err := json.Marshal(done)
	longest := seconds(slices.MaxFunc(done, func(a, b T) int { return int(seconds(a) - seconds(b)) }))
	return Outcome{Measured: fmt.Sprintf("%d %s %.1f s", len(done), what, longest), Kept: len(done) >= least, Samples: samples}, err
}

func gangFaultsTable(samples json.RawMessage) string {
	done, err := parse[live.GangFault](samples)
	if err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	b.WriteString("Seconds until all processes of the next round have begun.\n\n| fault | named | seconds |\n|---|---|---|\n")
	for _, f := range done {
		fmt.Fprintf(&b, "| %s | %s | %.1f |\n", f.Fault, f.Named, f.Seconds)
	}
	return b.String()
}

func gangEndsTable(samples json.RawMessage) string {
	done, err := parse[live.GangEnd](samples)
	if err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	b.WriteString("Seconds until no process of the gang is left.\n\n| way | seconds |\n|---|---|\n")
	for _, e := range done {
		fmt.Fprintf(&b, "| %s | %.1f |\n", e.Way, e.Seconds)
	}
	return b.String()
}
