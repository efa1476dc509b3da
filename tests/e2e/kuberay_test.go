package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// migrated is a file of objects of KubeRay or Kubeflow as their users write them. Its first lines have how it is converted and ends:
//
//	# flags: FLAGS of convert
//	# command: the value of --command
//	# convert: anything, where exit code 0 is expected. Without that line it is 3, as always where a cluster was open
//	# ends: [then] KIND/NAME OUTCOME; "then" is after NAME.next.yaml was applied
//	# prints: words among the last lines of the last job above
//	# trials: how many trials each job above has, all of which have succeeded
type migrated struct {
	directory, name string
	flags           []string
	code            int
	ends            []string
	prints          string
	trials          int32
}

// lastly are the exit codes of heliostat wait by outcome.
var lastly = map[string]int{"ready": outcome.Done, "succeeded": outcome.Done, "failed": outcome.Failed, "suspended": outcome.Stopped}

// migrations reads the files of a directory.
func migrations(directory string) (all []migrated) {
	files, err := filepath.Glob("testdata/" + directory + "/*.yaml")
	if err != nil {
		panic(err) // the pattern is ours
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		text, err := os.ReadFile(file)
		if err != nil {
			panic(err) // it is there
		}
		if strings.HasSuffix(name, ".next") {
			continue
		}
		one := migrated{directory: directory, name: name, code: outcome.Differs}
		for line := range strings.Lines(string(text)) {
			head, isHead := strings.CutPrefix(line, "# ")
			if !isHead {
				break
			}
			key, value, _ := strings.Cut(strings.TrimSpace(head), ": ")
			switch key {
			case "flags":
				one.flags = append(one.flags, strings.Fields(value)...)
			case "command":
				one.flags = append(one.flags, "--command", value)
			case "convert":
				one.code = outcome.Done
			case "ends":
				one.ends = append(one.ends, value)
			case "prints":
				one.prints = value
			case "trials":
				trials, err := strconv.ParseInt(value, 10, 32)
				if err != nil {
					panic(err) // the file is ours
				}
				one.trials = int32(trials)
			}
		}
		all = append(all, one)
	}
	return all
}

// apply converts a file, and applies what comes out.
func (m migrated) apply(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	code, ours := commandLine(ctx, namespace, append([]string{"convert", "-f", "testdata/" + m.directory + "/" + name + ".yaml"}, m.flags...)...)
	Expect(code).To(Equal(m.code))
	Expect(ours).NotTo(Or(ContainSubstring("ray.io/v1\n"), ContainSubstring("kubeflow.org/"), ContainSubstring("sparkoperator.k8s.io/")))
	Expect(kubernetes.Apply(ctx, namespace, []byte(ours))).To(Succeed())
}

// play converts a file, applies it to a namespace, and waits until all of it has ended as the file has it.
func (m migrated) play(ctx context.Context, namespace string) {
	GinkgoHelper()
	m.apply(ctx, namespace, m.name)
	for _, end := range m.ends {
		words := strings.Fields(end)
		if words[0] == "then" {
			m.apply(ctx, namespace, m.name+".next")
			words = words[1:]
		}
		m.end(ctx, namespace, words)
	}
}

// end waits for one object to end as it should.
func (m migrated) end(ctx context.Context, namespace string, words []string) {
	GinkgoHelper()
	_, name, _ := strings.Cut(words[0], "/")
	switch words[1] {
	case "answers":
		eventually(ctx, words[0]+" to answer "+words[2], func(ctx context.Context) error {
			code, said := commandLine(ctx, namespace, "service", "call", name, "/?q=asked")
			if code != outcome.Done || !strings.Contains(said, words[2]+" asked") {
				return fmt.Errorf("exit code %d: %q", code, said)
			}
			return nil
		})
	default:
		if words[0] == "client" {
			onlyKnows(ctx, namespace, words[1])
			return
		}
		want, is := lastly[words[1]]
		Expect(is).To(BeTrue(), "an outcome of "+m.name)
		code, _ := commandLine(ctx, namespace, "wait", words[0], "--timeout", limit.String())
		if !strings.HasPrefix(words[0], "job/") {
			Expect(code).To(Equal(want), words[0])
			return
		}
		job, err := kubernetes.FindJob(ctx, types.NamespacedName{Namespace: namespace, Name: name})
		Expect(err).NotTo(HaveOccurred())
		var lines []string
		for _, attempt := range job.Status.Attempts {
			lines = attempt.LastLines
		}
		Expect(code).To(Equal(want), "%s, whose last lines are %q", words[0], lines)
		Expect(strings.Join(lines, "\n")).To(ContainSubstring(m.prints))
		if m.trials > 0 {
			Expect(job.Status.Tune).To(HaveValue(And(HaveField("Trials", m.trials), HaveField("Succeeded", m.trials), HaveField("Best", Not(BeNil())))))
		}
	}
}

// onlyKnows has Ray's client submit a job where it knows the name of KubeRay's Service alone.
func onlyKnows(ctx context.Context, namespace, service string) {
	GinkgoHelper()
	pod := besideIn(ctx, namespace, "default")
	said := exec(ctx, pod, "sh", "-c", "exec 2>&1; ray job submit --address http://"+service+":8265 -- echo from a client")
	Expect(said).To(And(ContainSubstring("\nfrom a client\n"), ContainSubstring("succeeded")))
}

var _ = Describe("a manifest of KubeRay's, converted, runs to its end:", func() {
	for _, m := range migrations("kuberay") {
		It(m.name, func(ctx SpecContext) {
			m.play(ctx, fresh(ctx))
			m.report()
		}, Label(live.KubeRayLabel, live.AcceptLabel, localkubeLabel), SpecTimeout(3*limit))
	}
})

// Their pods mount programs of tests/frameworks, and their images are those that hold the frameworks and Ray.
var _ = Describe("a manifest of Kubeflow's, converted, runs to its end:", func() {
	for _, m := range migrations("kubeflow") {
		It(m.name, func(ctx SpecContext) {
			m.play(ctx, withPrograms(ctx).namespace)
			m.report()
		}, Label(live.KubeflowLabel, live.AcceptLabel, localkubeLabel), SpecTimeout(3*limit))
	}
})

// report reports how the objects of a file have ended.
func (m migrated) report() {
	AddReportEntry(live.MigratedEntry, live.Migrated{File: m.name, Ends: m.ends}, ReportEntryVisibilityAlways)
}
