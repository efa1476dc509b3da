package headclient

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"
)

// Session tells one life of a head from another: what a head of another session knows is
// not what the former one was told.
type Session struct {
	// Name is Ray's name of the session. It stays where the head's memory does.
	Name string
	// Version is the Ray that runs, such as "2.60.0".
	Version string
}

// Submission is a job to be run.
type Submission struct {
	// ID names it for ever: a second one of the same ID is not taken.
	ID string
	// Entrypoint is a shell line.
	Entrypoint string
	// RuntimeEnv is a JSON object in Ray's form; nil is none.
	RuntimeEnv json.RawMessage
	// Metadata is kept with the job, and comes back with it.
	Metadata map[string]string
	// CPUs, GPUs, Memory in bytes, and Resources are what the driver takes; zero is none.
	CPUs, GPUs float64
	Memory     int64
	Resources  map[string]float64
	// LabelSelector says on which nodes the driver may run; empty is any. Ray 2.54 and later.
	LabelSelector map[string]string
}

// JobStatus is what Ray says of a job. Ray may say others than are listed here.
type JobStatus string

// The statuses of a job. The last three are final.
const (
	JobPending   JobStatus = "PENDING"
	JobRunning   JobStatus = "RUNNING"
	JobStopped   JobStatus = "STOPPED"
	JobSucceeded JobStatus = "SUCCEEDED"
	JobFailed    JobStatus = "FAILED"
)

// Over reports whether a job has come to its end.
func (s JobStatus) Over() bool { return s == JobStopped || s == JobSucceeded || s == JobFailed }

// Job is what a head knows of a submission.
type Job struct {
	// ID is the submission's.
	ID     string
	Status JobStatus
	// Entrypoint and Metadata are as they were submitted, and not fit to be shown.
	Entrypoint string
	Metadata   map[string]string
	// Message is for people: at most 4 KiB, the end of what Ray said.
	Message string
	// ErrorType is Ray's word for why it failed, such as JOB_ENTRYPOINT_COMMAND_ERROR.
	ErrorType string
	// Start and End by the head's clock, zero before. Ray's start is when it took the job,
	// which may wait long before it runs.
	Start, End time.Time
	// ExitCode of the driver's process, nil where it did not end by itself.
	ExitCode *int32
}

// exception matches the line of a traceback that names the exception.
var exception = regexp.MustCompile(`(?m)^[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)(?::|$)`)

// Exception returns the end of the message from the last exception on that a traceback names, "" where there is none.
// What stands before, frames and carets, helps nobody who did not write that code.
func (j Job) Exception() string {
	found := exception.FindAllStringIndex(j.Message, -1)
	if len(found) == 0 {
		return ""
	}
	return strings.TrimSpace(j.Message[found[len(found)-1][0]:])
}

// Tail is the end of a job's output.
type Tail struct {
	// Lines are the last lines, the oldest first.
	Lines []string
	// Truncated: a line was cut, or lines are missing to stay within the limits.
	Truncated bool
}
