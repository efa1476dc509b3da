package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Jobs that bring a cluster of their own.
var _ = Describe("a job with a cluster of its own", Label(localkubeLabel), func() {
	It("waits suspended while a queue edits it, runs, leaves no cluster, and is gone after its time", func(ctx SpecContext) {
		o := opened(ctx)
		job := o.submit(ctx, "queued", "jobs/queued.yaml", values{"Worker": true})
		job.is(ctx, v1beta1.PhaseSuspended)
		o.cleared(ctx)
		begin := time.Now()
		job.edit(ctx, func(spec *v1beta1.ClusterJobSpec) {
			spec.ClusterTemplate.Spec.PodDefaults = &v1beta1.PodDefaults{
				Labels: map[string]string{"example.com/queue": "a"}, Env: []corev1.EnvVar{{Name: "QUEUE", Value: "a"}},
			}
			spec.Suspend = new(false)
		})
		ended := job.is(ctx, v1beta1.PhaseSucceeded)
		told("a job's own cluster, from resumed to Succeeded", begin)
		Expect(meta.IsStatusConditionTrue(ended.Status.Conditions, v1beta1.ConditionComplete)).To(BeTrue())
		Expect(last(ended).LastLines).To(ContainElement("from a task: a has a secret of ours"))
		Expect(ended.Status.Summary.Attempt).To(Equal("1"))
		o.cleared(ctx)
		now := int32(0)
		job.edit(ctx, func(spec *v1beta1.ClusterJobSpec) { spec.TTLSecondsAfterFinished = &now })
		job.gone(ctx)
	}, Label(live.IPv6Label, live.IPv6TestLabel), SpecTimeout(limit))

	It("brings the files of a directory of the user's machine", func(ctx SpecContext) {
		o := opened(ctx)
		code := filesOf(map[string]string{"lib/said.py": "print(open('lib/words').read())", "lib/words": "brought along"})
		manifest := filesOf(map[string]string{"job.yaml": rendered("jobs/unnamed.yaml", nil)})
		ended, said := commandLine(ctx, o.namespace, "job", "submit", "-f", manifest+"/job.yaml", "--name", "brings", "--working-dir", code, "--",
			"python", "-c", "import lib.said")
		Expect(ended).To(Equal(outcome.Done))
		Expect(said).To(ContainSubstring("\nbrought along\n"))
		o.job("brings").remove(ctx)
		eventually(ctx, "its files to be gone", func(ctx context.Context) error {
			files := &corev1.ConfigMapList{}
			err := kubernetes.List(ctx, files, client.InNamespace(o.namespace))
			for i := range files.Items {
				if strings.HasPrefix(files.Items[i].Name, "working-dir-") {
					err = errors.New("they are there")
				}
			}
			return err
		})
	}, Label(live.QueuedUploadLabel, live.AcceptLabel), SpecTimeout(limit))

	It("frees its cluster when it is suspended, and goes on with the next attempt", func(ctx SpecContext) {
		o := opened(ctx)
		job := o.submit(ctx, "pauses", "jobs/own.yaml", values{"Worker": true, "Entrypoint": beat})
		for round := range *rounds {
			Expect(job.is(ctx, v1beta1.PhaseRunning).Status.Attempt).To(BeEquivalentTo(round + 1))
			o.beating(ctx, "pauses")
			begin := time.Now()
			job.suspend(ctx, true)
			eventually(ctx, "its pods to be gone", func(ctx context.Context) error {
				pods, err := kubernetes.RayPods(ctx, o.namespace)
				if err == nil && len(pods) > 0 {
					err = fmt.Errorf("%d are there", len(pods))
				}
				return err
			})
			told(live.FreedEntry, begin)
			job.is(ctx, v1beta1.PhaseSuspended)
			o.silent(ctx, "pauses")
			job.suspend(ctx, false)
		}
		job.is(ctx, v1beta1.PhaseRunning)
		job.remove(ctx)
		o.cleared(ctx)
		attempts, _ := o.ran(ctx, "pauses")
		Expect(attempts).To(HaveLen(*rounds + 1))
	}, Label(live.FreedLabel, live.AcceptLabel), SpecTimeout(5*limit))
})

// What becomes of a job when its head does.
var _ = Describe("a job whose head is lost", Label(live.AcceptLabel, localkubeLabel), func() {
	It("is told so soon, and is tried again on the next head", func(ctx SpecContext) {
		o := opened(ctx)
		// On a machine that is short of time Ray may lose heads by itself, so any number is fine.
		job := o.submit(ctx, "survivor", "jobs/own.yaml", values{"Retry": "{limit: 0, infrastructureLimit: 1000, backoffSeconds: 0}", "Entrypoint": beat})
		attempt := job.runs(ctx, 1)
		for range *rounds {
			head := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: attempt.HeadName}}
			begin := time.Now()
			kill(ctx, &head)
			job.lost(ctx, attempt.Number)
			told(live.HeadLostEntry, begin)
			next := job.runs(ctx, attempt.Number+1)
			Expect(next.HeadUID).NotTo(Equal(attempt.HeadUID))
			attempt = next
		}
		// The same pod, another life of it.
		var head corev1.Pod
		Expect(kubernetes.Get(ctx, o.named(attempt.HeadName), &head)).To(Succeed())
		begin := time.Now()
		end(ctx, &head, "gcs_server")
		job.lost(ctx, attempt.Number)
		told("head's container killed under a job to HeadLost", begin)
		next := job.runs(ctx, attempt.Number+1)
		Expect(next.Session).NotTo(Equal(attempt.Session))
		attempts, _ := o.ran(ctx, "survivor")
		Expect(slices.Compact(attempts)).To(Equal(attempts), "no attempt ran twice")
		Expect(len(attempts)).To(BeNumerically(">=", *rounds+2))
	}, Label(live.HeadLostLabel), SpecTimeout(10*limit))
})

// runs waits until an attempt of the job runs, of at least a number, and gives it.
func (t task) runs(ctx context.Context, least int32) v1beta1.JobAttempt {
	GinkgoHelper()
	var attempt v1beta1.JobAttempt
	eventually(ctx, fmt.Sprintf("attempt %d of %s to run", least, t.Name), func(ctx context.Context) error {
		job, err := kubernetes.FindJob(ctx, t.NamespacedName)
		if err != nil {
			return err
		}
		if job.Status.Phase != v1beta1.PhaseRunning || job.Status.Attempt < least {
			return errors.New(live.SaysOf(job))
		}
		attempt = last(job)
		return nil
	})
	return attempt
}

// lost waits until the status says that an attempt ended with its head.
func (t task) lost(ctx context.Context, number int32) {
	GinkgoHelper()
	eventually(ctx, fmt.Sprintf("attempt %d of %s to be lost", number, t.Name), func(ctx context.Context) error {
		job, err := kubernetes.FindJob(ctx, t.NamespacedName)
		if err != nil {
			return err
		}
		for _, attempt := range job.Status.Attempts {
			if attempt.Number == number && attempt.EndTime != nil && attempt.Reason == reason.HeadLost.Code {
				return nil
			}
		}
		return errors.New(live.SaysOf(job))
	})
}
