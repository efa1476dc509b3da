package headclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"time"
	"unicode/utf8"
)

// jobID is what an ID of a submission may be: nothing that means something in a path.
var jobID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$`)

// Jobs is one conversation with the job API of one head: the HTTP of its dashboard, over
// one TCP connection. When that breaks every further call fails with Unavailable and the
// caller dials again; so two calls that both succeeded were answered by the same process.
// Nothing is ever repeated by itself. It may be used by many goroutines, which take turns.
type Jobs struct{ conversation }

// DialJobs prepares to speak to the dashboard at host:port. It sends nothing: the first
// call connects.
func DialJobs(address string, options Options) (*Jobs, error) {
	conversation, err := begin("prepare to ask the head for jobs", address, options)
	if err != nil {
		return nil, err
	}
	return &Jobs{conversation}, nil
}

// agentPatience is how many timeouts a submission may take: a head that has just come up
// holds it for up to 10 s, until its agent is there.
const agentPatience = 3

// Submit asks for a job to be run, once. Exists tells that the ID is used, maybe by the
// same submission before: the caller compares. After Refused or Invalid nothing runs by it;
// after any other failure it may run, now or later.
func (j *Jobs) Submit(ctx context.Context, s Submission) error {
	act := "submit job " + text([]byte(s.ID))
	body, err := s.marshal()
	if err != nil {
		return j.fail(Invalid, act, err)
	}
	answer, err := j.ask(ctx, question{act: act, method: http.MethodPost, path: "/api/jobs/", body: body, patience: agentPatience})
	if err != nil {
		return err
	}
	var accepted struct {
		ID string `json:"submission_id"`
	}
	if err := decode(answer.body, &accepted); err != nil {
		return j.fail(Protocol, act, err)
	}
	if accepted.ID != s.ID {
		return j.fail(Protocol, act, errors.New("it took a job of another ID"))
	}
	return nil
}

// Job asks for what the head knows of a submission. NotFound tells that it knows none.
func (j *Jobs) Job(ctx context.Context, id string) (Job, error) {
	job, _, err := j.job(ctx, id)
	return job, err
}

// Stop asks a job's process to end: Ray sends SIGTERM, and SIGKILL 3 s later. True tells
// that there is one to be told, and not that it has ended; false that the job is over. A
// job that is PENDING is not stopped by it: see Client.KillSubmission.
func (j *Jobs) Stop(ctx context.Context, id string) (bool, error) {
	var reply struct {
		Stopped *bool `json:"stopped"`
	}
	err := j.command(ctx, "stop", question{method: http.MethodPost, path: "/stop"}, id, &reply)
	if err == nil && reply.Stopped == nil {
		err = j.fail(Protocol, "stop job "+id, errors.New("the answer does not tell"))
	}
	return err == nil && *reply.Stopped, err
}

// Forget makes a head forget a job that is over, after which its ID is free; another one
// is Refused.
func (j *Jobs) Forget(ctx context.Context, id string) error {
	var reply struct {
		Deleted bool `json:"deleted"`
	}
	err := j.command(ctx, "forget", question{method: http.MethodDelete}, id, &reply)
	if err == nil && !reply.Deleted {
		err = j.fail(Refused, "forget job "+id, errors.New("the answer says that it was not"))
	}
	return err
}

// command is a question about a job whose answer is read into a struct.
func (j *Jobs) command(ctx context.Context, verb string, q question, id string, into any) error {
	q.act = verb + " job " + text([]byte(id))
	if !jobID.MatchString(id) {
		return j.fail(Invalid, q.act, errJobID)
	}
	q.path = "/api/jobs/" + id + q.path
	answer, err := j.ask(ctx, q)
	if err != nil {
		return err
	}
	if err := decode(answer.body, into); err != nil {
		return j.fail(Protocol, q.act, err)
	}
	return nil
}

var errJobID = errors.New("the ID of a job has up to 253 letters, digits, '.', '_' and '-', and begins with a letter or a digit")

// job is a job, and the node that its driver ran on; zero before.
func (j *Jobs) job(ctx context.Context, id string) (Job, NodeID, error) {
	act := "ask for job " + text([]byte(id))
	if !jobID.MatchString(id) {
		return Job{}, NodeID{}, j.fail(Invalid, act, errJobID)
	}
	answer, err := j.ask(ctx, question{act: act, method: http.MethodGet, path: "/api/jobs/" + id})
	if err != nil {
		return Job{}, NodeID{}, err
	}
	job, node, err := readJob(answer.body, id, answer.token)
	if err != nil {
		return Job{}, NodeID{}, j.fail(Protocol, act, err)
	}
	return job, node, nil
}

// marshal is a submission as Ray takes it. Ray refuses fields that it does not know, so
// those that are empty are left out.
func (s Submission) marshal() ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		ID            string             `json:"submission_id"`
		Entrypoint    string             `json:"entrypoint"`
		RuntimeEnv    json.RawMessage    `json:"runtime_env,omitempty"`
		Metadata      map[string]string  `json:"metadata,omitempty"`
		CPUs          float64            `json:"entrypoint_num_cpus,omitempty"`
		GPUs          float64            `json:"entrypoint_num_gpus,omitempty"`
		Memory        int64              `json:"entrypoint_memory,omitempty"`
		Resources     map[string]float64 `json:"entrypoint_resources,omitempty"`
		LabelSelector map[string]string  `json:"entrypoint_label_selector,omitempty"`
	}(s))
}

// check finds what would reach Ray as something else than it is.
func (s Submission) check() error {
	if !jobID.MatchString(s.ID) {
		return errJobID
	}
	for _, texts := range []map[string]string{{"": s.Entrypoint, "env": string(s.RuntimeEnv)}, s.Metadata, s.LabelSelector} {
		for key, value := range texts {
			if !utf8.ValidString(key) || !utf8.ValidString(value) {
				return errors.New("a text of it is not valid UTF-8")
			}
		}
	}
	if s.Entrypoint == "" {
		return errors.New("it has no entrypoint")
	}
	if s.RuntimeEnv != nil {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(s.RuntimeEnv, &object); err != nil || object == nil {
			return errors.New("its runtime environment is no JSON object")
		}
	}
	for name, amount := range map[string]float64{"CPU": s.CPUs, "GPU": s.GPUs, "memory": float64(s.Memory)} {
		if err := checkResource(name, amount); err != nil {
			return err
		}
	}
	_, err := readResources(s.Resources)
	return err
}

// pythonVersion is what a version of Python may be.
var pythonVersion = regexp.MustCompile(`^[0-9]{1,3}(\.[0-9a-z+]{1,16}){1,2}$`)

// Python asks which Python Ray runs in there, such as 3.11.9.
func (j *Jobs) Python(ctx context.Context) (string, error) {
	const act = "ask for the Python of the head"
	answer, err := j.ask(ctx, question{act: act, method: http.MethodGet, path: "/api/v0/cluster_metadata"})
	if err != nil {
		return "", err
	}
	var said struct {
		Data struct {
			Python string `json:"pythonVersion"`
		} `json:"data"`
	}
	if err := decode(answer.body, &said); err != nil {
		return "", j.fail(Protocol, act, err)
	}
	if !pythonVersion.MatchString(said.Data.Python) {
		return "", j.fail(Protocol, act, errors.New("missing version"))
	}
	return said.Data.Python, nil
}

func readSession(body []byte) (Session, error) {
	var said struct {
		Name    string `json:"session_name"`
		Version string `json:"ray_version"`
	}
	if err := decode(body, &said); err != nil {
		return Session{}, err
	}
	for what, value := range map[string]string{"session": said.Name, "version": said.Version} {
		if value == "" || value != clean(value) || len(value) > maxName {
			return Session{}, fmt.Errorf("missing %s", what)
		}
	}
	return Session{Name: said.Name, Version: said.Version}, nil
}

// saidJob is what a head says of a job. What Ray says in words of its own stays so.
type saidJob struct {
	ID         string            `json:"submission_id"`
	Status     string            `json:"status"`
	Entrypoint string            `json:"entrypoint"`
	Message    string            `json:"message"`
	ErrorType  string            `json:"error_type"`
	Start      int64             `json:"start_time"`
	End        int64             `json:"end_time"`
	Metadata   map[string]string `json:"metadata"`
	ExitCode   *int32            `json:"driver_exit_code"`
	Node       string            `json:"driver_node_id"`
}

// readJob reads what a head says of the one job that it was asked for.
func readJob(body []byte, id, token string) (Job, NodeID, error) {
	var said saidJob
	if err := decode(body, &said); err != nil {
		return Job{}, NodeID{}, err
	}
	if said.ID != id {
		return Job{}, NodeID{}, errors.New("it tells of another job")
	}
	return said.read(token)
}

// read gives the job, and the node of its driver.
func (s *saidJob) read(token string) (Job, NodeID, error) {
	if s.Status == "" || len(s.Status) > maxName || s.Status != clean(s.Status) {
		return Job{}, NodeID{}, errors.New("missing or unknown status")
	}
	job := Job{
		ID: s.ID, Status: JobStatus(s.Status), Entrypoint: s.Entrypoint, Metadata: s.Metadata,
		Message: ending(s.Message, token), ErrorType: text([]byte(hide(s.ErrorType, token))), ExitCode: s.ExitCode,
	}
	var err error
	if job.Start, err = moment(s.Start); err != nil {
		return Job{}, NodeID{}, fmt.Errorf("when it began: %w", err)
	}
	if job.End, err = moment(s.End); err != nil {
		return Job{}, NodeID{}, fmt.Errorf("when it ended: %w", err)
	}
	var node NodeID
	if s.Node != "" {
		if node, err = ParseNodeID(s.Node); err != nil {
			return Job{}, NodeID{}, errors.New("invalid node of its driver")
		}
	}
	return job, node, nil
}

// moment reads a time in milliseconds since the epoch; zero is none.
func moment(n int64) (time.Time, error) {
	if n < 0 || n > math.MaxInt64/2 {
		return time.Time{}, fmt.Errorf("%d is no time", n)
	}
	return instant(uint64(n))
}
