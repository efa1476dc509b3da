package fakehead

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// How long things take in Ray 2.60, where a test does not say otherwise.
const (
	// StartDelay is from a job's submission to its run.
	StartDelay = time.Second
	// stopDelay is from a SIGTERM to the end of a process that obeys.
	stopDelay = 500 * time.Millisecond
	// startTimeout is how long a job may wait for room.
	startTimeout = 900 * time.Second
)

// Run is the start of a job's process: an effect that nothing undoes.
type Run struct {
	// ID is the submission's.
	ID string
	// Session is that of the head that ran it.
	Session string
	// Metadata, RuntimeEnv and Entrypoint are as they were submitted.
	Metadata   map[string]string
	RuntimeEnv json.RawMessage
	Entrypoint string
	// At is the head's time.
	At time.Time
}

// jobs is what a head knows of its job API.
type jobs struct {
	*shared
	cluster *cluster
	// known are all by their IDs, live those that are not over, in the order of submission.
	known      map[string]*job
	live       []*job
	runs       []Run
	program    func(Run) (Process, bool)
	startDelay time.Duration
	agentAfter time.Duration
	packages   packages
}

// submitted is a job as it was asked for, in Ray's words.
type submitted struct {
	Entrypoint    string             `json:"entrypoint"`
	ID            string             `json:"submission_id"`
	RuntimeEnv    json.RawMessage    `json:"runtime_env"`
	Metadata      map[string]string  `json:"metadata"`
	CPUs          float64            `json:"entrypoint_num_cpus"`
	GPUs          float64            `json:"entrypoint_num_gpus"`
	Memory        int64              `json:"entrypoint_memory"`
	Resources     map[string]float64 `json:"entrypoint_resources"`
	LabelSelector map[string]string  `json:"entrypoint_label_selector"`
}

// job is one that was taken. What becomes of it is worked out whenever it is looked at.
type job struct {
	submitted
	at      time.Time
	node    *headclient.NodeID
	process Process
	began   time.Time
	stopped time.Time // when it was asked to stop, zero if it was not
	ended   time.Time
	status  headclient.JobStatus
	message string
	failure string
	code    *int32
	// uris are those of the packages that it runs in.
	uris []string
	// Somebody has emptied its output, or removed it.
	emptied, removed bool
}

// Runs are all starts of jobs, also those of former sessions.
func (j *jobs) Runs() []Run {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.settle()
	return slices.Clone(j.runs)
}

// Processes is how many jobs run whose entrypoint contains a text.
func (j *jobs) Processes(text string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.settle()
	count := 0
	for _, one := range j.live {
		if one.status == headclient.JobRunning && strings.Contains(one.Entrypoint, text) {
			count++
		}
	}
	return count
}

// SetStartDelay sets how long a job is PENDING that has room.
func (j *jobs) SetStartDelay(by time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.startDelay = by
}

// SetAgentAfter sets for how long after the begin of each session jobs cannot be
// submitted, stopped and deleted, because Ray has found no agent yet.
func (j *jobs) SetAgentAfter(begin time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.agentAfter = begin
}

// SetProgram lets a test say what becomes of a run; where it gives false the entrypoint says.
func (j *jobs) SetProgram(program func(Run) (Process, bool)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.program = program
}

// settle brings all jobs to the present. The caller holds the lock.
func (j *jobs) settle() {
	now, over := j.clock.Now(), []*job(nil)
	j.live = slices.DeleteFunc(j.live, func(one *job) bool {
		if one.status == headclient.JobPending {
			j.start(one, now)
		}
		if one.status == headclient.JobRunning {
			one.finish(now)
		}
		if one.status.Over() {
			over = append(over, one)
		}
		return one.status.Over()
	})
	j.release(over)
}

// start runs a job that waits, once there is room for it.
func (j *jobs) start(one *job, now time.Time) {
	due := one.at.Add(j.startDelay)
	if now.Before(due) {
		return
	}
	if why, failure := j.packages.unfit(one); failure != "" {
		one.end(headclient.JobFailed, due, why, failure)
		return
	}
	node, placed := j.cluster.place(one)
	switch {
	case !placed && now.Sub(one.at) >= startTimeout:
		one.end(headclient.JobFailed, one.at.Add(startTimeout), "Job supervisor actor failed to start within 900.0 seconds.",
			"JOB_SUPERVISOR_ACTOR_START_TIMEOUT")
	case placed:
		one.node, one.began, one.status, one.message = &node.id, due, headclient.JobRunning, "Job is currently running."
		if one.waits() && len(j.cluster.nodes) > 0 { // the room may have come later than it was due
			one.began = now
		}
		run := Run{
			ID: one.ID, Session: j.session.name, Metadata: one.Metadata, RuntimeEnv: one.RuntimeEnv,
			Entrypoint: one.Entrypoint, At: one.began,
		}
		j.runs = append(j.runs, run)
		one.process = j.run(run, node.Instance)
	}
}

// waits reports whether a job asks for room at all; else it runs on the head.
func (j *job) waits() bool {
	return j.CPUs > 0 || j.GPUs > 0 || j.Memory > 0 || len(j.Resources) > 0 || len(j.LabelSelector) > 0
}

// place finds the node of a job: the head's, or one that has all that it asks for.
func (c *cluster) place(one *job) (*node, bool) {
	for _, node := range c.nodes {
		if !node.dead && (one.waits() && node.fits(one) || !one.waits() && node.Head) {
			return node, true
		}
	}
	// A test that has made no nodes has a head all the same.
	return &node{id: headclient.NodeID{1}}, !one.waits()
}

func (n *node) fits(one *job) bool {
	for name, amount := range map[string]float64{"CPU": one.CPUs, "GPU": one.GPUs, "memory": float64(one.Memory)} {
		if n.Total[name] < amount {
			return false
		}
	}
	for name, amount := range one.Resources {
		if n.Total[name] < amount {
			return false
		}
	}
	for name, value := range one.LabelSelector {
		if n.Labels[name] != value {
			return false
		}
	}
	return true
}

// finish ends a run whose time has come, by itself or by a stop.
func (j *job) finish(now time.Time) {
	natural := j.began.Add(j.process.Takes)
	if !j.stopped.IsZero() {
		if stop := latest(j.stopped, j.began).Add(stopDelay); (j.process.Hangs || stop.Before(natural)) && !now.Before(stop) {
			j.end(headclient.JobStopped, stop, "Job was intentionally stopped.", "")
			return
		}
	}
	if j.process.Hangs || now.Before(natural) {
		return
	}
	j.code = &j.process.ExitCode
	if j.process.ExitCode == 0 {
		j.end(headclient.JobSucceeded, natural, "Job finished successfully.", "")
		return
	}
	j.end(headclient.JobFailed, natural, fmt.Sprintf(
		"Job entrypoint command failed with exit code %d, last available logs (truncated to 20,000 chars):\n%s",
		j.process.ExitCode, lastLines(j.output(natural), 10)), "JOB_ENTRYPOINT_COMMAND_ERROR")
}

func (j *job) end(status headclient.JobStatus, at time.Time, message, failure string) {
	j.status, j.ended, j.message, j.failure = status, at, message, failure
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// supervisor names the actor that runs a job.
func supervisor(id string) string { return "_ray_internal_job_actor_" + id }

// actor is the actor that runs a job.
func (j *job) actor() *rpc.ActorTableData {
	id := sha256.Sum256([]byte(j.ID + j.at.String()))
	state := rpc.ActorTableData_ALIVE
	if j.status == headclient.JobPending {
		state = rpc.ActorTableData_PENDING_CREATION
	}
	return &rpc.ActorTableData{
		ActorId: id[:16], State: state, IsDetached: true,
		Name: []byte(supervisor(j.ID)), RayNamespace: []byte("SUPERVISOR_ACTOR_RAY_NAMESPACE"),
	}
}

// supervised gives the actors of jobs that are not over. The caller holds the lock.
func (j *jobs) supervised() []*rpc.ActorTableData {
	j.settle()
	var listed []*rpc.ActorTableData
	for _, one := range j.live {
		listed = append(listed, one.actor())
	}
	return listed
}
