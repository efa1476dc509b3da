package headclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

const (
	// maxList is how many bytes a list of jobs may have. A job takes about 1 KiB.
	maxList = 16 << 20
	// listPatience is how many timeouts a list may take: Ray reads the jobs from GCS, all of them.
	listPatience = 3
)

// List asks for all jobs that the head knows by a submission, the oldest first. Drivers that
// came by themselves are not among them, nor are submissions whose ID no call here would take.
func (j *Jobs) List(ctx context.Context) ([]Job, error) {
	const act = "list the jobs"
	answer, err := j.ask(ctx, question{act: act, method: http.MethodGet, path: "/api/jobs/", limit: maxList, patience: listPatience})
	if err != nil {
		return nil, err
	}
	limited, stop := context.WithTimeout(ctx, j.options.Timeout)
	defer stop()
	giveBack, err := j.options.Memory.take(limited, int64(jsonParts(answer.body))*partMemory+int64(len(answer.body)))
	if err != nil {
		return nil, j.fail(Timeout, act, err)
	}
	defer giveBack()
	jobs, err := readJobs(answer.body, answer.token)
	if err != nil {
		return nil, j.fail(Protocol, act, err)
	}
	return jobs, nil
}

// readJobs reads a list of jobs. One that cannot be spoils it: a job that was left out would
// be one that is gone.
func readJobs(body []byte, token string) ([]Job, error) {
	if jsonParts(body) > maxParts {
		return nil, errTooMany
	}
	var said []saidJob
	if err := decode(body, &said); err != nil {
		return nil, err
	}
	if said == nil {
		return nil, errors.New("the answer is no list")
	}
	jobs := make([]Job, 0, len(said))
	for i := range said {
		if !jobID.MatchString(said[i].ID) {
			continue
		}
		job, _, err := said[i].read(token)
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", said[i].ID, err)
		}
		jobs = append(jobs, job)
	}
	slices.SortFunc(jobs, func(a, b Job) int { return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.ID, b.ID)) })
	ids := map[string]bool{}
	for _, job := range jobs {
		if ids[job.ID] {
			return nil, fmt.Errorf("job %s is listed twice", job.ID)
		}
		ids[job.ID] = true
	}
	return jobs, nil
}
