package e2e

import (
	"os"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// cpuEntry is the name under which specs report how many CPU-seconds the Kubernetes took since the spec
// before. A spec's share includes what its container sets up before it and cleans up after it; that of
// BeforeSuite includes all since the Kubernetes was brought up. So the sum is the whole.
const cpuEntry = "cpu"

// cpu reads the file cpu.stat that LOCALKUBE_CPU_STAT names: that of the control group of a local Kubernetes.
var cpu = &meter{file: os.Getenv("LOCALKUBE_CPU_STAT")}

var _ = ReportAfterEach(func(report SpecReport) {
	if !report.State.Is(types.SpecStateSkipped | types.SpecStatePending) {
		cpu.report()
	}
})

// meter counts CPU time.
type meter struct {
	file string
	// last is what the file said before, in seconds.
	last float64
}

// report adds what was used since the last time to the report of what runs now. Without a file it adds nothing.
func (m *meter) report() {
	GinkgoHelper()
	if m.file == "" {
		return
	}
	now, err := live.CPUSeconds(m.file)
	Expect(err).NotTo(HaveOccurred())
	AddReportEntry(cpuEntry, now-m.last, ReportEntryVisibilityNever)
	m.last = now
}
