package live

import "fmt"

const (
	// KubeRayLabel and KubeflowLabel are of specs of manifests of KubeRay and of Kubeflow, and MigratedEntry is what each of them reports.
	KubeRayLabel, KubeflowLabel, MigratedEntry = "kuberay-manifests", "kubeflow-manifests", "manifest that was converted"
	// RayAddressLabel is of specs of heliostat:// by releases of Ray's client.
	RayAddressLabel = "ray-address"
	// QueuedUploadLabel is of the spec of a directory whose job waits for a long time.
	QueuedUploadLabel = "queued-upload"
	// PagesLabel is of specs that run what stands on pages.
	PagesLabel = "pages-run"
)

// Migrated is a file of objects of KubeRay or Kubeflow that was converted, applied, and ended as it should.
type Migrated struct {
	File string
	Ends []string
}

// String says it in a line.
func (m Migrated) String() string { return fmt.Sprintf("%s: %v", m.File, m.Ends) }

// Ran is what a run of a program took: milliseconds, and memory at most.
type Ran struct{ Ms, MiB float64 }

// CommandCosts are what the command line and kubectl took for the same, and the converter and a parser.
type CommandCosts struct {
	Clusters                int
	Top, Get                []Ran
	SizeMiB, KubectlSizeMiB float64
	ConvertMs, ParseMs      float64
}

// What is promised of the command line.
const (
	PromisedTop, PromisedTopMemory, PromisedSize, PromisedConvert = 1.3, 1.5, 1.0, 5.0
	PromisedFirstLine, PromisedFollowCPU                          = 1.0, 0.5
)

// Ratios are those of times and memory at the median, of sizes, and of converting to parsing.
func (c CommandCosts) Ratios() (time, memory, size, convert float64) {
	var top, get, held, heldThere []float64
	for _, one := range c.Top {
		top, held = append(top, one.Ms), append(held, one.MiB)
	}
	for _, one := range c.Get {
		get, heldThere = append(get, one.Ms), append(heldThere, one.MiB)
	}
	return middle(top) / middle(get), middle(held) / middle(heldThere), c.SizeMiB / c.KubectlSizeMiB, c.ConvertMs / c.ParseMs
}

// IsKept reports whether all is as promised.
func (c CommandCosts) IsKept() bool {
	time, memory, size, convert := c.Ratios()
	return time <= PromisedTop && memory <= PromisedTopMemory && size <= PromisedSize && convert <= PromisedConvert
}

// String says it in a line.
func (c CommandCosts) String() string {
	time, memory, size, convert := c.Ratios()
	return fmt.Sprintf("top of %d clusters takes %.2f times as long as kubectl get and %.2f times its memory; the program has %.1f MiB, %.2f times kubectl's size; "+
		"converting takes %.2f times as long as parsing", c.Clusters, time, memory, c.SizeMiB, size, convert)
}

// CommandsBesideLabel is of the spec that measures the command line beside Ray's, and CommandsBesideEntry what it reports.
const CommandsBesideLabel, CommandsBesideEntry = "commands-beside-ray", "command line beside Ray's"

// CommandsBeside are what the command line took beside kubectl port-forward and Ray's client: seconds to the first line of a job,
// and processor time while an output was followed.
type CommandsBeside struct {
	FirstLine, FirstLineThere []float64
	FollowCPU, FollowCPUThere []float64
	Bytes                     int
}

// Ratios are those of the medians.
func (c CommandsBeside) Ratios() (line, cpu float64) {
	return middle(c.FirstLine) / middle(c.FirstLineThere), middle(c.FollowCPU) / middle(c.FollowCPUThere)
}

// String says it in a line.
func (c CommandsBeside) String() string {
	line, cpu := c.Ratios()
	return fmt.Sprintf("the first line of a job comes after %.2f s, %.2f times as long as with kubectl port-forward and ray job submit; following %.0f MB takes %.2f s "+
		"of CPU, %.2f times as much as ray job logs -f", middle(c.FirstLine), line, float64(c.Bytes)/1e6, middle(c.FollowCPU), cpu)
}
