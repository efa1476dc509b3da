package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// mistake is one that beginners make, of testdata/mistakes.yaml.
type mistake struct {
	Name, Wrong, Says, Right string
}

// mistakes are refused at once, or show in the column REASON.
var mistakes = readMistakes()

func readMistakes() (all struct {
	GoodCluster string
	Mistakes    []mistake
}) {
	if err := yaml.Unmarshal([]byte(rendered("mistakes.yaml", nil)), &all); err != nil {
		panic(err)
	}
	return all
}

// beginner types kubectl in a namespace.
type beginner struct{ namespace string }

func (n beginner) kubectl(ctx context.Context, input string, args ...string) (string, error) {
	command := kubectl(ctx, append(args, "--namespace", n.namespace)...)
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (n beginner) applies(ctx context.Context, manifest, name string) (string, error) {
	return n.kubectl(ctx, strings.ReplaceAll(manifest, "NAME", name), "apply", "-f", "-")
}

// sees waits until the status of an object says what is wrong.
func (n beginner) sees(ctx context.Context, object, says string) (line string) {
	GinkgoHelper()
	eventually(ctx, object+" to say "+says, func(ctx context.Context) (err error) {
		line, err = n.kubectl(ctx, "", "get", object, "-o", `jsonpath={range .status.conditions[?(@.type=="Ready")]}{.reason}: {.message}{end}`)
		if err == nil && !strings.Contains(line, says) {
			err = errors.New(line)
		}
		return err
	})
	return line
}

// makes makes a mistake, follows its remedy, and waits until all is well.
func (n beginner) makes(ctx context.Context, m mistake, name string) live.Mistake {
	GinkgoHelper()
	object, end := "computecluster/"+name, "condition=Ready"
	if strings.Contains(m.Wrong, "kind: ClusterJob\n") {
		object, end = "clusterjob/"+name, "condition=Complete"
	}
	begin, seen := time.Now(), live.Mistake{Name: m.Name, Where: "kubectl apply"}
	said, err := n.applies(ctx, m.Wrong, name)
	if err == nil {
		seen.Where, said = "REASON of kubectl get, and its message", n.sees(ctx, object, m.Says)
	}
	Expect(said).To(ContainSubstring(m.Says))
	lines := strings.Split(said, "\n")
	seen.Line, seen.Shown = lines[len(lines)-1], time.Since(begin).Seconds()
	begin = time.Now()
	said, err = n.applies(ctx, m.Right, name)
	Expect(err).NotTo(HaveOccurred(), said)
	said, err = n.kubectl(ctx, "", "wait", "--for="+end, object, "--timeout=3m")
	Expect(err).NotTo(HaveOccurred(), said)
	seen.Mended = time.Since(begin).Seconds()
	_, err = n.kubectl(ctx, "", "delete", "clusterjob,computecluster", name, "--ignore-not-found")
	Expect(err).NotTo(HaveOccurred())
	return seen
}

var _ = Describe("a first mistake", Ordered, ContinueOnFailure, Label(live.MistakesLabel, live.AcceptLabel, localkubeLabel), func() {
	var n beginner

	BeforeAll(func(ctx SpecContext) {
		n = beginner{fresh(ctx)}
		said, err := n.applies(ctx, mistakes.GoodCluster, "shared")
		Expect(err).NotTo(HaveOccurred(), said)
		said, err = n.kubectl(ctx, "", "wait", "--for=condition=Ready", "cc/shared", "--timeout=3m")
		Expect(err).NotTo(HaveOccurred(), said)
	}, NodeTimeout(limit))

	for i, m := range mistakes.Mistakes {
		It("is shown in one line, whose remedy is enough: "+m.Name, func(ctx SpecContext) {
			AddReportEntry(live.MistakesEntry, n.makes(ctx, m, fmt.Sprintf("first-%d", i)), ReportEntryVisibilityAlways)
		}, SpecTimeout(2*limit))
	}
})
