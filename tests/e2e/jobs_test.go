package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Entrypoints that leave traces in a volume outside of every cluster's life, so that runs
// are counted by what they did and not by what anybody says of them.
const (
	// note writes down that an attempt ran, and in which pod.
	note = `echo "$HELIOSTAT_JOB_NAME $HELIOSTAT_JOB_ATTEMPT $(hostname)" >>/ledger/runs; `
	// beat goes on for ever, and can be seen to.
	beat = note + `while :; do echo >>/ledger/beat-$HELIOSTAT_JOB_NAME; sleep 0.1; done`
	// forks leaves a process that beats behind, whose parent is gone.
	forks = `(nohup sh -c 'while :; do echo >>/ledger/beat-$HELIOSTAT_JOB_NAME; sleep 0.1; done' >/dev/null 2>&1 &); `
)

// assigned is a security context as OpenShift gives it to pods: a user whom no image knows, with group 0.
const assigned = "{runAsUser: 1000680000, runAsGroup: 0, fsGroup: 1000680000}"

// office is a namespace with jobs in it, and a volume that what they run writes to.
type office struct {
	namespace string
	clerk     corev1.Pod
}

// opened makes a fresh namespace with a ledger.
func opened(ctx context.Context) *office {
	GinkgoHelper()
	o := &office{namespace: fresh(ctx)}
	Expect(kubernetes.Apply(ctx, o.namespace, []byte(rendered("clusters/ledger-volume.yaml", nil)))).To(Succeed())
	eventually(ctx, "the ledger", func(ctx context.Context) error {
		if err := kubernetes.Get(ctx, o.named("clerk"), &o.clerk); err != nil {
			return err
		}
		if !isReady(&o.clerk) {
			return fmt.Errorf("its pod is %s", o.clerk.Status.Phase)
		}
		return nil
	})
	return o
}

// notes are the lines of runs that were written down, "job attempt pod", in their order.
func (o *office) notes(ctx context.Context) []string {
	GinkgoHelper()
	return slices.Collect(strings.Lines(exec(ctx, &o.clerk, "cat", "/ledger/runs")))
}

// ran are the attempts of a job that were written down, each with its pod.
func (o *office) ran(ctx context.Context, job string) (attempts, pods []string) {
	GinkgoHelper()
	for _, line := range o.notes(ctx) {
		words := strings.Fields(line)
		Expect(words).To(HaveLen(3), "a line of the ledger")
		if words[0] == job {
			attempts, pods = append(attempts, words[1]), append(pods, words[2])
		}
	}
	return attempts, pods
}

// silent checks that what a job began does not go on: its file stays as long as it is.
func (o *office) silent(ctx context.Context, job string) {
	GinkgoHelper()
	size := func() string {
		return exec(ctx, &o.clerk, "sh", "-c", "cat /ledger/beat-"+job+" 2>/dev/null | wc -c")
	}
	now := size()
	Consistently(ctx, size, time.Second, "200ms").Should(Equal(now), "the process of %s runs on", job)
}

// falls waits until what a job left behind is silent.
func (o *office) falls(ctx context.Context, job string) {
	GinkgoHelper()
	o.beating(ctx, job)
	exec(ctx, &o.clerk, "sh", "-c", "f=/ledger/beat-"+job+"; until a=$(wc -c <$f); sleep 2; [ $(wc -c <$f) = $a ]; do :; done")
}

// beating waits until what a job began is seen to go on.
func (o *office) beating(ctx context.Context, job string) {
	GinkgoHelper()
	exec(ctx, &o.clerk, "sh", "-c", "until [ -s /ledger/beat-"+job+" ]; do sleep 0.1; done")
}

// task is a ClusterJob.
type task struct{ types.NamespacedName }

// submit applies the job of a file of testdata.
func (o *office) submit(ctx context.Context, name, file string, v values) task {
	GinkgoHelper()
	Expect(kubernetes.Apply(ctx, o.namespace, []byte(rendered(file, v.and(values{"Name": name}))))).To(Succeed())
	return o.job(name)
}

// shares submits a job with a command of the shell on the shared cluster.
func (o *office) shares(ctx context.Context, name, shell string) task {
	GinkgoHelper()
	return o.submit(ctx, name, "jobs/shared.yaml", values{"Entrypoint": shell})
}

func (o *office) named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: o.namespace, Name: name}
}

func (o *office) job(name string) task { return task{o.named(name)} }

func (t task) now(ctx context.Context) *v1beta1.ClusterJob {
	GinkgoHelper()
	job, err := kubernetes.FindJob(ctx, t.NamespacedName)
	Expect(err).NotTo(HaveOccurred())
	return job
}

// is waits until the job is in a phase.
func (t task) is(ctx context.Context, phase string) *v1beta1.ClusterJob {
	GinkgoHelper()
	job, err := kubernetes.UntilPhase(ctx, t.NamespacedName, phase, limit)
	Expect(err).NotTo(HaveOccurred())
	// An operator that was replaced between both writes of an end says it, and reads the lines again.
	eventually(ctx, "the last lines of "+t.Name, func(ctx context.Context) error {
		if job.Status.EndTime == nil || len(job.Status.Attempts) == 0 || last(job).LogState != "" {
			return nil
		}
		if job, err = kubernetes.FindJob(ctx, t.NamespacedName); err != nil {
			return err
		}
		return errors.New(live.SaysOf(job))
	})
	return job
}

// says waits until the job's condition Ready has a reason.
func (t task) says(ctx context.Context, why string) *v1beta1.ClusterJob {
	GinkgoHelper()
	var job *v1beta1.ClusterJob
	eventually(ctx, t.Name+" to say "+why, func(ctx context.Context) (err error) {
		if job, err = kubernetes.FindJob(ctx, t.NamespacedName); err == nil && reasonOf(job) != why {
			err = errors.New(live.SaysOf(job))
		}
		return err
	})
	return job
}

func reasonOf(job *v1beta1.ClusterJob) string {
	ready := meta.FindStatusCondition(job.Status.Conditions, v1beta1.ConditionReady)
	if ready == nil {
		return ""
	}
	return ready.Reason
}

func (t task) edit(ctx context.Context, change func(*v1beta1.ClusterJobSpec)) {
	GinkgoHelper()
	Expect(kubernetes.EditJob(ctx, t.NamespacedName, change)).To(Succeed())
}

func (t task) suspend(ctx context.Context, on bool) {
	GinkgoHelper()
	t.edit(ctx, func(spec *v1beta1.ClusterJobSpec) { spec.Suspend = new(on) })
}

// stop annotates the job, as a user does who has no access to its head.
func (t task) stop(ctx context.Context) {
	GinkgoHelper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1beta1.AnnotationStop, v1beta1.StopOn))
	Expect(kubernetes.Patch(ctx, t.now(ctx), patch)).To(Succeed())
}

// remove deletes the job and waits until it is gone.
func (t task) remove(ctx context.Context) {
	GinkgoHelper()
	job := t.now(ctx)
	Expect(kubernetes.Delete(ctx, job)).To(Succeed())
	t.gone(ctx)
}

func (t task) gone(ctx context.Context) {
	GinkgoHelper()
	eventually(ctx, t.Name+" to be gone", func(ctx context.Context) error {
		job, err := kubernetes.FindJob(ctx, t.NamespacedName)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err == nil:
			err = fmt.Errorf("it is %s", live.SaysOf(job))
		}
		return err
	})
}

// cleared waits until the namespace has no Ray pods, and no cluster either.
func (o *office) cleared(ctx context.Context) {
	GinkgoHelper()
	eventually(ctx, "no cluster to be left", func(ctx context.Context) error {
		pods, err := kubernetes.RayPods(ctx, o.namespace)
		var clusters v1beta1.ComputeClusterList
		if err := errors.Join(err, kubernetes.List(ctx, &clusters, client.InNamespace(o.namespace))); err != nil {
			return err
		}
		if len(pods)+len(clusters.Items) > 0 {
			return fmt.Errorf("there are %d clusters and %d pods", len(clusters.Items), len(pods))
		}
		return nil
	})
}

// last is the job's last attempt as its status has it.
func last(job *v1beta1.ClusterJob) v1beta1.JobAttempt {
	GinkgoHelper()
	Expect(job.Status.Attempts).NotTo(BeEmpty(), live.SaysOf(job))
	return job.Status.Attempts[len(job.Status.Attempts)-1]
}

// inRay is what Ray says of the last attempt of a job.
func (e *env) inRay(ctx context.Context, job *v1beta1.ClusterJob) headclient.Job {
	GinkgoHelper()
	head, token := e.head(ctx), e.token(ctx)
	jobs, err := headclient.DialJobs(forward(ctx, &head, dashboard),
		headclient.Options{Token: func(context.Context) (string, error) { return token, nil }})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(jobs.Close)
	found, err := jobs.Job(ctx, job.Status.SubmissionID)
	Expect(err).NotTo(HaveOccurred())
	return found
}

// said is all that jobs, events and the operator say, those of a namespace and its log.
func said(ctx context.Context, namespace string) string {
	GinkgoHelper()
	var jobs v1beta1.ClusterJobList
	var events corev1.EventList
	Expect(kubernetes.List(ctx, &jobs, client.InNamespace(namespace))).To(Succeed())
	Expect(kubernetes.List(ctx, &events, client.InNamespace(namespace))).To(Succeed())
	Expect(jobs.Items).NotTo(BeEmpty())
	Expect(events.Items).NotTo(BeEmpty())
	all, err := json.Marshal([]any{jobs.Items, events.Items})
	Expect(err).NotTo(HaveOccurred())
	text := string(all)
	pods, err := operatorPods(ctx)
	Expect(err).NotTo(HaveOccurred())
	for i := range pods {
		log, err := kubernetes.Kubernetes.CoreV1().Pods(pods[i].Namespace).GetLogs(pods[i].Name, &corev1.PodLogOptions{}).DoRaw(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(log).NotTo(BeEmpty())
		text += string(log)
	}
	return text
}
