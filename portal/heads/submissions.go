package heads

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

const (
	// metadataPayload is the key in a submission's metadata whose value tells what was asked.
	metadataPayload = "heliostat.dev/payload"
	// reserved begins the keys that are ours.
	reserved = "heliostat.dev/"
	// idPrefix begins the IDs that are made here, and idBytes is how much chance is in one.
	idPrefix = "submission-"
	idBytes  = 10
)

// Sort is a sort of Refusal.
type Sort string

// The sorts of a Refusal.
const (
	// NotFound: there is no such submission.
	NotFound Sort = "NotFound"
	// Conflict: another job has the ID.
	Conflict Sort = "Conflict"
	// Invalid: it cannot be submitted as it is.
	Invalid Sort = "Invalid"
)

// Refusal is that a cluster has a head, and what was asked of it cannot be done. It is found with errors.As.
type Refusal struct {
	Sort Sort
	// Code is one of the catalogue.
	Code            string
	Message, Remedy string
}

// Error returns the message and the remedy.
func (r *Refusal) Error() string { return r.Message + ". " + r.Remedy }

// ListSubmissions returns all of Ray's own jobs on a cluster, the oldest first.
func (h *Heads) ListSubmissions(ctx context.Context, on Reference) (jobs []headclient.Job, err error) {
	err = h.ask(ctx, on, func(c *Conversation) error {
		jobs, err = c.List(ctx)
		return err
	})
	return jobs, err
}

// FindSubmission returns one of Ray's own jobs on a cluster. One that is not there is a Refusal.
func (h *Heads) FindSubmission(ctx context.Context, on Reference, id string) (job headclient.Job, err error) {
	err = h.ask(ctx, on, func(c *Conversation) error {
		job, err = c.Job(ctx, id)
		return Refused(err, on.Name, id)
	})
	return job, err
}

// Submit submits a job to a cluster, and returns it as Ray has it. Without an ID it gets one. The same job under the same
// ID is found and not submitted again, which isNew tells; another one under that ID is a Refusal.
//
// After an Unavailable that came late the job may run. The ID is in the message: the same call with it finds the job.
func (h *Heads) Submit(ctx context.Context, on Reference, s headclient.Submission) (job headclient.Job, isNew bool, err error) {
	if s, err = h.prepare(s); err != nil {
		return headclient.Job{}, false, err
	}
	err = h.ask(ctx, on, func(c *Conversation) error {
		err := c.Submit(ctx, s)
		kind := headclient.KindOf(err)
		isNew = err == nil
		if err != nil && kind != headclient.Exists {
			return mayRun(c.Explain(Refused(err, on.Name, s.ID)), s.ID)
		}
		if job, err = c.Job(ctx, s.ID); err != nil {
			return mayRun(c.Explain(Refused(err, on.Name, s.ID)), s.ID)
		}
		if !isNew && job.Metadata[metadataPayload] != s.Metadata[metadataPayload] {
			return &Refusal{
				Sort: Conflict, Code: reason.SubmissionForeign.Code,
				Message: fmt.Sprintf("Ray on ComputeCluster %s has another job under the ID %s", on.Name, s.ID),
				Remedy:  "Give the job another ID, or none to have one made",
			}
		}
		return nil
	})
	return job, isNew, err
}

// Stopped is a submission that was asked to stop.
type Stopped struct {
	Job headclient.Job
	// Note says what will happen; it is empty for a job that is over.
	Note string
}

// StopSubmission asks one of Ray's own jobs to end. For a job that is over it does nothing.
//
// The dashboard cannot end a job that is PENDING: Ray keeps the wish until it has a place for the driver. GCS could, and
// the server has no way to it.
func (h *Heads) StopSubmission(ctx context.Context, on Reference, id string) (stopped Stopped, err error) {
	err = h.ask(ctx, on, func(c *Conversation) error {
		if stopped.Job, err = c.Job(ctx, id); err != nil || stopped.Job.Status.Over() {
			return Refused(err, on.Name, id)
		}
		if _, err = c.Stop(ctx, id); err != nil {
			return Refused(err, on.Name, id)
		}
		if stopped.Job, err = c.Job(ctx, id); err != nil {
			return Refused(err, on.Name, id)
		}
		stopped.Note = note(stopped.Job.Status)
		return nil
	})
	return stopped, err
}

// note says what becomes of a job that was asked to stop.
func note(status headclient.JobStatus) string {
	switch {
	case status.Over():
		return ""
	case status == headclient.JobPending:
		return "Ray has not started the driver, and stops it only when it has a place to run; until then the job stays PENDING. " +
			"Ray gives it up after 15 minutes without a place"
	default:
		return "Ray has asked the driver to end, and kills it after 3 s"
	}
}

// ask asks the head of a cluster something, in a conversation of its own.
func (h *Heads) ask(ctx context.Context, on Reference, what func(*Conversation) error) error {
	head, err := h.FindHead(on)
	if err != nil {
		return err
	}
	return h.askHead(ctx, head, what)
}

// askHead asks a head something, in a conversation of its own.
func (h *Heads) askHead(ctx context.Context, head Head, what func(*Conversation) error) error {
	c, err := h.Converse(ctx, head)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // the answer is there
	return c.Explain(what(c))
}

// Refused returns what Ray says no to as a Refusal, and any other error as it is.
func Refused(err error, cluster, id string) error {
	switch headclient.KindOf(err) {
	case headclient.NotFound:
		message, remedy := reason.Split(reason.SubmissionMissing.Code, reason.SubmissionMissing.Of(cluster, id).Text)
		return &Refusal{Sort: NotFound, Code: reason.SubmissionMissing.Code, Message: message, Remedy: remedy}
	case headclient.Refused, headclient.Invalid:
		return invalid(headclient.CauseOf(err))
	default:
		return err
	}
}

func invalid(why string) *Refusal {
	return &Refusal{Sort: Invalid, Code: reason.SubmissionRefused.Code, Message: "the submission cannot be taken: " + why, Remedy: "Correct it and call again"}
}

// mayRun adds to a failure that the job may run all the same.
func mayRun(err error, id string) error {
	var u *Unavailable
	if errors.As(err, &u) {
		u.Message += fmt.Sprintf("; the job %s may have been taken all the same", id)
		u.Remedy = "Call again with that ID, which finds the job if it was taken"
	}
	return err
}

// prepare gives a submission an ID where it has none, and writes into its metadata what was asked.
func (h *Heads) prepare(s headclient.Submission) (headclient.Submission, error) {
	for key := range s.Metadata {
		if strings.HasPrefix(key, reserved) {
			return s, invalid(fmt.Sprintf("its metadata has the key %s, and the prefix %s is Heliostat's own", key, reserved))
		}
	}
	payload, err := payloadOf(s)
	if err != nil {
		return s, invalid("its runtime environment is no JSON object")
	}
	s.Metadata = maps.Clone(s.Metadata)
	if s.Metadata == nil {
		s.Metadata = map[string]string{}
	}
	s.Metadata[metadataPayload] = payload
	if s.ID != "" {
		return s, nil
	}
	chance := make([]byte, idBytes)
	if _, err := io.ReadFull(h.settings.Random, chance); err != nil {
		return s, fmt.Errorf("make an ID for a submission: %w", err)
	}
	s.ID = idPrefix + strings.ToLower(base32.StdEncoding.EncodeToString(chance))
	return s, nil
}

// payloadOf is a hash of all that a submission asks for but its ID, however its JSON is written.
func payloadOf(s headclient.Submission) (string, error) {
	s.ID = ""
	if len(s.Metadata) == 0 {
		s.Metadata = nil // which is written in another way than one without keys
	}
	if len(s.Resources) == 0 {
		s.Resources = nil
	}
	if s.RuntimeEnv != nil {
		var env map[string]any
		decoder := json.NewDecoder(bytes.NewReader(s.RuntimeEnv))
		decoder.UseNumber()
		if err := decoder.Decode(&env); err != nil {
			return "", err
		}
		var err error
		if s.RuntimeEnv, err = json.Marshal(env); err != nil {
			return "", err
		}
	}
	asked, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(asked)
	return hex.EncodeToString(sum[:16]), nil
}
