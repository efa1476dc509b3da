package byhand

import (
	"context"
	_ "embed" // the job's manifest
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/tests/live"
)

//go:embed job.yaml
var jobManifest []byte

// What is promised of a trivial job on a cluster of its own, a head and a worker: how many
// times as long as by hand it takes at most, and how many seconds on two cores with nothing
// else to do.
const (
	PromisedJobRatio   = 1.3
	PromisedJobSeconds = 19.0
)

// hello is what both sides run: job.yaml says it too.
const hello = `python -c "print('hello')"`

// extra is the pod of manifests.yaml that a cluster of one worker does not have.
const extra = "demo-cpu-1"

// JobRound is the seconds from apply until a trivial job has succeeded, by hand and by a
// ClusterJob after it.
type JobRound struct {
	ByHand   float64 `json:"byHand"`
	Operator float64 `json:"operator"`
}

// JobMedians are those of several rounds, in seconds.
type JobMedians struct{ ByHand, Operator float64 }

// Ratio is how many times as long as by hand the ClusterJob took.
func (m JobMedians) Ratio() float64 { return m.Operator / m.ByHand }

// Kept reports whether the promises were.
func (m JobMedians) Kept() bool {
	return m.Ratio() <= PromisedJobRatio && m.Operator <= PromisedJobSeconds
}

// SummariseJobs takes the medians of at least one round.
func SummariseJobs(rounds []JobRound) JobMedians {
	var byHand, operator []float64
	for _, round := range rounds {
		byHand, operator = append(byHand, round.ByHand), append(operator, round.Operator)
	}
	slices.Sort(byHand)
	slices.Sort(operator)
	return JobMedians{byHand[len(byHand)/2], operator[len(operator)/2]}
}

// jobRound runs the job by hand and then by the operator, and leaves nothing of either.
func (b *bench) jobRound(ctx context.Context) (r JobRound, err error) {
	if r.ByHand, err = b.jobByHand(ctx); err != nil {
		return r, err
	}
	if err := errors.Join(b.hand().remove(ctx), b.UntilGone(ctx, name, limit)); err != nil {
		return r, err
	}
	begin := time.Now()
	if err := b.Apply(ctx, Namespace, jobManifest); err != nil {
		return r, err
	}
	job := types.NamespacedName{Namespace: Namespace, Name: "hello"}
	if _, err := b.UntilPhase(ctx, job, v1beta1.PhaseSucceeded, limit); err != nil {
		return r, err
	}
	r.Operator = time.Since(begin).Seconds()
	if err := b.DropJobs(ctx, Namespace, limit); err != nil {
		return r, err
	}
	return r, live.Until(ctx, limit, "the job's pods to be gone", func(ctx context.Context) error {
		pods, err := b.RayPods(ctx, Namespace)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d are there", len(pods))
		}
		return err
	})
}

// jobByHand applies the pods, submits the moment that the head's job API takes it, and asks
// until the job has succeeded. It gives the seconds that took.
func (b *bench) jobByHand(ctx context.Context) (float64, error) {
	objects, err := live.Decode(manifests)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	for _, object := range objects {
		if object.GetName() == extra {
			continue
		}
		if err := b.ApplyObject(ctx, object); err != nil {
			return 0, err
		}
	}
	head, err := b.jobAPI(ctx)
	if err != nil {
		return 0, err
	}
	submission := headclient.Submission{ID: fmt.Sprintf("hello-%d", begin.UnixNano()), Entrypoint: hello}
	err = head.until(ctx, "the head to take the job", func(ctx context.Context, jobs *headclient.Jobs) error {
		err := jobs.Submit(ctx, submission)
		if headclient.KindOf(err) == headclient.Exists {
			return nil
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	err = head.until(ctx, "the job to succeed", func(ctx context.Context, jobs *headclient.Jobs) error {
		job, err := jobs.Job(ctx, submission.ID)
		if err == nil && job.Status != headclient.JobSucceeded {
			err = fmt.Errorf("it is %s: %s", job.Status, job.Message)
		}
		return err
	})
	return time.Since(begin).Seconds(), err
}

// jobAPI is where a head takes jobs.
type jobAPI struct{ address, token string }

// jobAPI waits until the head has an address. It asks the head's pod itself.
func (b *bench) jobAPI(ctx context.Context) (jobAPI, error) {
	var head corev1.Pod
	err := live.Until(ctx, limit, "the head to have an address", func(ctx context.Context) error {
		err := b.Get(ctx, types.NamespacedName{Namespace: Namespace, Name: "demo-head"}, &head)
		if err == nil && head.Status.PodIP == "" {
			err = errors.New("it has none")
		}
		return err
	})
	if err != nil {
		return jobAPI{}, err
	}
	token, err := b.token(ctx)
	return jobAPI{address: net.JoinHostPort(head.Status.PodIP, "8265"), token: token}, err
}

// until asks, in a new conversation each time, until that gives no error.
func (a jobAPI) until(ctx context.Context, what string, ask func(context.Context, *headclient.Jobs) error) error {
	token := func(context.Context) (string, error) { return a.token, nil }
	return live.Until(ctx, limit, what, func(ctx context.Context) error {
		jobs, err := headclient.DialJobs(a.address, headclient.Options{Token: token})
		if err != nil {
			return err
		}
		return errors.Join(ask(ctx, jobs), jobs.Close())
	})
}
