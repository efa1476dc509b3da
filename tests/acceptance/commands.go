package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// Full counts of the command line and the converter.
const (
	leastManifests     = 30
	leastOfKubeflow    = 26
	convertedObjects   = 100_000
	admittedConversion = 10_000
	fuzzedFor          = "10m"
)

// kuberayManifests runs what was converted of KubeRay.
var kuberayManifests = scenario{
	name: live.KubeRayLabel,
	promise: fmt.Sprintf("at least %d manifests that use what KubeRay's users use are converted, applied, and run to the end that is promised; a client that knows "+
		"NAME-head-svc alone submits a job", leastManifests),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.KubeRayLabel, 1, judgeManifests(leastManifests))
	},
}

// kubeflowManifests runs what was converted of Kubeflow, in pods whose images hold the frameworks.
var kubeflowManifests = scenario{
	name:    live.KubeflowLabel,
	promise: fmt.Sprintf("at least %d manifests of the shapes that samples of Kubeflow, Spark's operator and Katib have are converted, applied, and run to the end that is promised", leastOfKubeflow),
	play: func(ctx context.Context, state string) (Outcome, error) {
		images := []string{"operator", "frameworks", "frameworks-tensorflow", "frameworks-spark", "frameworks-bookworm"}
		return onNodesWith(ctx, images, nil, showSpecs(ctx, state, live.KubeflowLabel, 1, judgeManifests(leastOfKubeflow)))
	},
}

// judgeManifests returns what judges that all manifests ended as promised, and that they are at least so many.
func judgeManifests(least int) func(ran []types.SpecReport) (Outcome, error) {
	return func(ran []types.SpecReport) (Outcome, error) {
		told, err := entries[live.Migrated](ran, live.MigratedEntry)
		if err != nil {
			return Outcome{}, err
		}
		samples, err := json.Marshal(told)
		return Outcome{Measured: fmt.Sprintf("%d of %d ended so", len(told), len(ran)), Kept: len(told) == len(ran) && len(ran) >= least, Samples: samples}, err
	}
}

// manifestTable lists what was run.
func manifestTable(samples json.RawMessage) string {
	told, err := parse[live.Migrated](samples)
	if err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	b.WriteString("| manifest | ends |\n|---|---|\n")
	for _, one := range told {
		fmt.Fprintf(&b, "| %s | %s |\n", one.File, strings.Join(one.Ends, "; "))
	}
	return b.String()
}

var (
	rayAddress = passing(live.RayAddressLabel, "Ray's own client of 2.60 and 2.52 finds a cluster as heliostat://NAMESPACE/NAME, wakes it, follows, lists and stops "+
		"jobs; the token is in no argument list, no text and no file of its")
	pagesRun = passing(live.PagesLabel, "each block of README and docs that is marked to run does so on real Ray, page after page, and prints what the page shows; the "+
		"lines of status.summary.connect work in another pod")
	queuedUpload = passing(live.QueuedUploadLabel, "a job with a directory of the user's machine that waits 12 min in a cluster's queue runs with its files")
)

// generatedConversions converts many objects, and sends some to an API server.
var generatedConversions = scenario{
	name: "convert-generated",
	promise: fmt.Sprintf("%d generated objects of ray.io: no panic, nothing is lost without a row, the result passes the rules; what comes of %d is taken by a real "+
		"API server's dry run", convertedObjects, admittedConversion),
	play: func(ctx context.Context, _ string) (Outcome, error) {
		c := exec.CommandContext(ctx, "go", "test", "-v", "-count=1", "-timeout", "30m", "-run", "^TestObject_HoldsForGenerated$", "./ray-operator/convert")
		c.Env = append(os.Environ(), fmt.Sprintf("HELIOSTAT_CONVERSIONS=%d", convertedObjects))
		c.Stderr = os.Stderr
		output, failed := c.Output()
		outcome, err := saidBy(string(output), objectsConverted, 1, failed)
		if err != nil {
			return Outcome{}, err
		}
		sent, failed := integration(ctx, "TestConvertedObjectsAreAdmitted", fmt.Sprintf("HELIOSTAT_CONVERSIONS=%d", admittedConversion))
		admitted, err := saidBy(sent, objectsAdmitted, 1, failed)
		return Outcome{Measured: outcome.Measured + "; " + admitted.Measured, Kept: outcome.Kept && admitted.Kept}, err
	},
}

// fuzzedConversions looks for inputs that break the converter.
var fuzzedConversions = fuzzed("convert-fuzz", "the converter", "ray-operator/convert")

// fuzzed returns a scenario that looks for inputs that break the one fuzz target of a package.
func fuzzed(name, subject, directory string) scenario {
	return scenario{
		name:    name,
		promise: subject + " is fuzzed for " + fuzzedFor + ", and nothing fails",
		play: func(ctx context.Context, _ string) (Outcome, error) {
			c := exec.CommandContext(ctx, "hack/tools/fuzz.sh", directory)
			c.Env, c.Stderr = append(os.Environ(), "FUZZTIME="+fuzzedFor), os.Stderr
			output, failed := c.Output()
			return saidBy(string(output), inputsFuzzed, 1, failed)
		},
	}
}

// What the tests say when they are over.
var (
	objectsConverted = regexp.MustCompile(`\d+ objects, \d+ of them converted`)
	objectsAdmitted  = regexp.MustCompile(`\d+ objects of \d+ inputs were sent`)
	inputsFuzzed     = regexp.MustCompile(`elapsed: [^\n]*execs[^\n]*`)
)

// commandCosts compares the program with kubectl, and the converter with a parser.
var commandCosts = scenario{
	name: "command-costs",
	promise: fmt.Sprintf("top -A with 500 clusters takes at most %.1f times as long as kubectl get of the same at the median, and %.1f times its memory; the program is at most "+
		"%.1f times as large; converting 1,000 manifests takes at most %.0f times as long as parsing them", live.PromisedTop, live.PromisedTopMemory, live.PromisedSize, live.PromisedConvert),
	play: func(ctx context.Context, state string) (Outcome, error) {
		file, err := filepath.Abs(filepath.Join(state, "command-costs.json"))
		if err != nil {
			return Outcome{}, fmt.Errorf("name the file of figures: %w", err)
		}
		if err := onControlPlane(ctx, func(environment []string) error {
			return command(ctx, environment, "go", "run", "./tests/bench/commands", "-out", file)
		}); err != nil {
			return Outcome{}, err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return Outcome{}, fmt.Errorf("read the figures: %w", err)
		}
		found, err := parse[live.CommandCosts](text)
		if err != nil {
			return Outcome{}, err
		}
		return Outcome{Measured: found[0].String(), Kept: found[0].IsKept(), Samples: text}, nil
	},
}

// besideRounds is how often the command line and Ray's are measured in turn.
const besideRounds = 5

// followCosts compares the program with kubectl port-forward and Ray's client, on real Ray.
var followCosts = scenario{
	name: live.CommandsBesideLabel,
	promise: fmt.Sprintf("job submit --cluster prints a job's first line after at most %.1f times what kubectl port-forward and ray job submit take; following 100 MB takes at most %.1f times "+
		"the CPU of ray job logs -f; medians of %d", live.PromisedFirstLine, live.PromisedFollowCPU, besideRounds),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.CommandsBesideLabel, besideRounds, func(ran []types.SpecReport) (Outcome, error) {
			told, err := entries[live.CommandsBeside](ran, live.CommandsBesideEntry)
			if err != nil {
				return Outcome{}, err
			}
			if len(told) != 1 || len(told[0].FirstLine) < besideRounds {
				return Outcome{}, fmt.Errorf("one spec should have measured %d rounds, there is %+v", besideRounds, told)
			}
			line, cpu := told[0].Ratios()
			return Outcome{Measured: told[0].String(), Kept: told[0].Bytes >= 100e6 && line <= live.PromisedFirstLine && cpu <= live.PromisedFollowCPU}, nil
		})
	},
}
