package live

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Labels of the specs of gangs that make accept plays in full, and the names of the entries that it reads.
const (
	GangFaultsLabel, GangFaultsEntry = "gang-faults", "faults of gangs"
	GangEndsLabel, GangEndsEntry     = "gang-ends", "ways in which gangs end"
	GangPlacesLabel                  = "gang-places"
	GangFrameworksLabel              = "gang-frameworks"
	GangIPv6Label                    = "gang-ipv6"
	GangMPILabel                     = "gang-mpi"
	GangTensorFlowLabel              = "gang-tensorflow"
	GangTimesLabel, GangTimesEntry   = "gang-times", "times of gangs"
	GangPodsLabel, GangPodsEntry     = "gang-pods", "times of gangs beside pods"
	GangCostLabel, GangCostEntry     = "gang-cost", "what gangs take"
	GangSparkLabel                   = "gang-spark"
	GangTuningLabel, GangTrialsEntry = "gang-tuning", "times of trials"
	SparkTimesLabel, SparkTimesEntry = "gang-spark-times", "times of Spark"
	GangClustersLabel                = "gang-clusters"
)

// GangFault is a fault that was done to a gang, and what came of it.
type GangFault struct {
	Fault string `json:"fault"`
	// Named is the process or replica that the status names.
	Named string `json:"named"`
	// Seconds is from the fault until all processes of the next round have begun.
	Seconds float64 `json:"seconds"`
}

// GangEnd is a way in which a gang was ended, and how long after that its last process was gone.
type GangEnd struct {
	Way     string  `json:"way"`
	Seconds float64 `json:"seconds"`
}

// How often gangs start and start again where that is measured.
const (
	GangRestartsMeasured = 20
	GangStartsMeasured   = 5
	SparkRunsMeasured    = 3
)

// GangTimes are seconds until all processes of gangs have begun.
type GangTimes struct {
	// Restarts are from when a process failed.
	Restarts []float64 `json:"restarts"`
	// Starts are from when a gang was applied, and ByHand from when a job was whose program places the same processes itself.
	Starts []float64 `json:"starts"`
	ByHand []float64 `json:"byHand"`
}

// GangCosts are what the launcher takes for 16 processes that sleep in one place, beside a driver made by hand and one of its places.
type GangCosts struct {
	// Driver, Agent and Guard are the memory of one in MiB, where each page that processes share counts in parts.
	Driver       float64 `json:"driver"`
	DriverByHand float64 `json:"driverByHand"`
	Agent        float64 `json:"agent"`
	AgentByHand  float64 `json:"agentByHand"`
	Guard        float64 `json:"guard"`
	// CPU is that of the place in cores: of its agent, keeper and guards.
	CPU             float64 `json:"cpu"`
	CPUByHand       float64 `json:"cpuByHand"`
	DriverCPU       float64 `json:"driverCPU"`
	DriverCPUByHand float64 `json:"driverCPUByHand"`
	// Flushed and Buffered are how fast 100 MB arrive in the job's output, as a part of how fast they go to a file: lines that are written
	// one by one, and as Python divides them.
	Flushed  []float64 `json:"flushed"`
	Buffered []float64 `json:"buffered"`
}

// SparkTimes are seconds of applications of Spark with two executors on one node: as gangs, by a Master and Workers in Ray's actors, and
// in local-cluster mode.
type SparkTimes struct {
	// Firsts are from when a gang was applied until its first task began, and FirstsByHand from when a job was.
	Firsts       []float64 `json:"firsts"`
	FirstsByHand []float64 `json:"firstsByHand"`
	// Works are for what an application computes once its executors are there, and WorksOfLocal the same in local-cluster mode.
	Works        []float64 `json:"works"`
	WorksOfLocal []float64 `json:"worksOfLocal"`
}

// GangStart is a start of processes, from when they were applied, and the next one, from when one of them failed. In seconds.
type GangStart struct {
	Start   float64 `json:"start"`
	Restart float64 `json:"restart"`
}

// GangPods are starts of gangs beside those of the same processes in pods of their own.
type GangPods struct {
	// Of is what made the pods.
	Of    string      `json:"of"`
	Gangs []GangStart `json:"gangs"`
	Pods  []GangStart `json:"pods"`
}

// GangTrials are seconds from the beginning of a program to the next one: of trials one after another, and by hand in a shell.
type GangTrials struct {
	Trial  float64 `json:"trial"`
	ByHand float64 `json:"byHand"`
}

// GangProcess is a process on this machine that belongs to a gang: of a program, or what started it.
type GangProcess struct {
	ID      int
	Name    string
	Command string
}

func (p GangProcess) String() string { return fmt.Sprintf("%d %s", p.ID, p.Command) }

// Variables by which processes of a gang are found: those of its programs, and of what starts and ends these.
const (
	OfPrograms = "HELIOSTAT_GANG"
	OfKeepers  = "HELIOSTAT_KEEPER"
)

// GangProcesses lists the processes of a job's gang on all nodes of a local Kubernetes on this machine that have a variable. It
// works as root.
func GangProcesses(job types.UID, variable string) ([]GangProcess, error) {
	return processesWith("environ", func(environment string) bool {
		return strings.Contains("\x00"+environment, "\x00"+variable+"="+string(job)+"/")
	})
}

// CommandsIn lists the processes in a pod of a local Kubernetes on this machine that have a word as their name or as an
// argument, or whose command line begins with it. It works as root.
func CommandsIn(pod types.UID, word string) ([]GangProcess, error) {
	all, err := processesWith("cgroup", func(groups string) bool { return strings.Contains(groups, string(pod)) })
	return slices.DeleteFunc(all, func(process GangProcess) bool {
		return process.Name != word && !strings.HasPrefix(process.Command, word) && !strings.Contains(process.Command+" ", " "+word+" ")
	}), err
}

// processesWith lists the processes one of whose files in /proc matches. One that ends meanwhile is left out.
func processesWith(file string, matches func(string) bool) ([]GangProcess, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/" + file)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []GangProcess
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil || !matches(string(text)) {
			continue
		}
		directory := filepath.Dir(path)
		id, err := strconv.Atoi(filepath.Base(directory))
		if err != nil {
			return nil, fmt.Errorf("list processes: %w", err)
		}
		name, err := os.ReadFile(filepath.Join(directory, "comm"))
		command, commandErr := os.ReadFile(filepath.Join(directory, "cmdline"))
		if err == nil && commandErr == nil && len(command) > 0 {
			line := bytes.ReplaceAll(bytes.TrimRight(command, "\x00"), []byte{0}, []byte{' '})
			found = append(found, GangProcess{id, strings.TrimSpace(string(name)), string(line)})
		}
	}
	return found, nil
}
