package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// migrated is a file of KubeRay's objects as its users write them. Its first lines say what becomes of it:
//
//	# flags: FLAGS of convert
//	# convert: exit code of convert, 3 without that line: as always where a cluster was open
//	# ends: [then] KIND/NAME OUTCOME; "then" is after NAME.next.yaml was applied
type migrated struct {
	name, flags string
	code        int
	ends        []string
}

// lastly are the exit codes of heliostat wait by outcome.
var lastly = map[string]int{"ready": outcome.Done, "succeeded": outcome.Done, "failed": outcome.Failed, "suspended": outcome.Stopped}

// migrations reads the files of a pattern.
func migrations(pattern string) (all []migrated) {
	files, err := filepath.Glob("testdata/kuberay/" + pattern + ".yaml")
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
		one := migrated{name: name, code: outcome.Differs}
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "# ")), ": ")
			switch key {
			case "flags":
				one.flags = value
			case "convert":
				one.code = outcome.Done
			case "ends":
				one.ends = append(one.ends, value)
			}
		}
		all = append(all, one)
	}
	return all
}

// apply converts a file, and applies what comes out.
func (m migrated) apply(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	code, ours := commandLine(ctx, namespace, append([]string{"convert", "-f", "testdata/kuberay/" + name + ".yaml"}, strings.Fields(m.flags)...)...)
	Expect(code).To(Equal(m.code))
	Expect(ours).NotTo(ContainSubstring("ray.io/v1\n"))
	Expect(kubernetes.Apply(ctx, namespace, []byte(ours))).To(Succeed())
}

// play converts a file, applies it, and waits until all of it has ended as the file says.
func (m migrated) play(ctx context.Context) {
	GinkgoHelper()
	namespace := fresh(ctx)
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
		Expect(code).To(Equal(want), words[0])
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
	for _, m := range migrations("*") {
		It(m.name, func(ctx SpecContext) {
			m.play(ctx)
			AddReportEntry(live.MigratedEntry, live.Migrated{File: m.name, Ends: m.ends}, ReportEntryVisibilityAlways)
		}, Label(live.MigratedLabel, live.AcceptLabel, localkubeLabel), SpecTimeout(3*limit))
	}
})
