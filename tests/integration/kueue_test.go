package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// TestKueue: with Kueue's own controllers, scheduler and webhooks, objects in a queue run when they are admitted, and not before.
func TestKueue(t *testing.T) {
	t.Parallel()
	startKueue(t)
	t.Run("clusters and jobs share a quota", func(t *testing.T) {
		t.Parallel()
		queueOfHalfTheSize(t)
	})
	t.Run("a cluster follows its admission", func(t *testing.T) {
		t.Parallel()
		followsItsAdmission(t)
	})
}

// crowd are clusters and jobs that share a quota of half their size.
type crowd struct {
	quota
	clusters, jobs int
}

func queueOfHalfTheSize(t *testing.T) {
	c := crowd{clusters: 4, jobs: 6}
	if *judging {
		c.clusters, c.jobs = 20, 50
	}
	c.namespace, c.cpus = newNamespaceOf(t, "queue"), c.clusters+c.jobs
	headsIn(t, c.namespace, willing)
	c.set(t)
	c.apply(t, localQueue)
	used := consumed(t, c.namespace)
	startOperator(t, "--kueue", "--watch-namespaces="+c.namespace)
	endJobs(t, c.namespace)

	for i := range c.clusters {
		cluster := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: fmt.Sprintf("c%d", i)}, Spec: oneEach()}
		inQueue(cluster, "")
		must(t, shared.Create(t.Context(), cluster))
	}
	for i := range c.clusters {
		ready(t, c.cluster(i))
	}
	c.submit(t, 0, c.jobs/2, "")
	eventually(t, "a job to run", c.runs)
	c.submit(t, c.jobs/2, c.jobs, c.namespace+"-high")
	for i := c.jobs / 2; i < c.jobs; i++ {
		c.succeeds(t, i)
	}
	for i := range c.clusters {
		c.letGo(t, c.cluster(i))
	}
	for i := range c.jobs / 2 {
		c.succeeds(t, i)
	}
	used.judge(t, c)
	c.judge(t)
}

func (c crowd) cluster(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: c.namespace, Name: fmt.Sprintf("c%d", i)}
}

func (c crowd) job(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: c.namespace, Name: fmt.Sprintf("j%d", i)}
}

// submit makes jobs that run for 2 s.
func (c crowd) submit(t *testing.T, from, to int, priority string) {
	t.Helper()
	for i := from; i < to; i++ {
		job := &v1beta1.ClusterJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: c.job(i).Name},
			Spec:       v1beta1.ClusterJobSpec{Entrypoint: "work 2000 0", ClusterTemplate: &v1beta1.ClusterTemplate{Spec: oneEach()}},
		}
		inQueue(job, priority)
		must(t, shared.Create(t.Context(), job))
	}
}

// phase asks whether a job is in a phase.
func (c crowd) phase(ctx context.Context, i int, want string) error {
	var job v1beta1.ClusterJob
	if err := shared.Get(ctx, c.job(i), &job); err != nil {
		return err
	}
	if job.Status.Phase != want {
		return fmt.Errorf("%s is %s: %+v", job.Name, job.Status.Phase, job.Status.Conditions)
	}
	return nil
}

// runs asks whether any job runs: of many, the first may have ended before the last is submitted.
func (c crowd) runs(ctx context.Context) error {
	var errs []error
	for i := range c.jobs / 2 {
		err := c.phase(ctx, i, v1beta1.PhaseRunning)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (c crowd) succeeds(t *testing.T, i int) {
	t.Helper()
	must(t, live.Until(t.Context(), queueLimit, fmt.Sprintf("job %d to succeed", i), func(ctx context.Context) error {
		return c.phase(ctx, i, v1beta1.PhaseSucceeded)
	}))
}

// letGo waits until a cluster runs, and then takes it out of the queue: a suspended one gives its quota back when its pods
// are gone.
func (c crowd) letGo(t *testing.T, name types.NamespacedName) {
	t.Helper()
	_, err := shared.UntilReady(t.Context(), name, queueLimit)
	must(t, err)
	edit(t, name, func(spec *v1beta1.ComputeClusterSpec) { spec.Suspend = new(true) })
	eventually(t, "its quota to be given back", func(ctx context.Context) error { return c.none(ctx, name) })
}

// none asks whether a cluster has no Workload, and no pods.
func (q quota) none(ctx context.Context, name types.NamespacedName) error {
	_, err := q.workload(ctx, name)
	pods, failed := shared.PodsOf(ctx, name, "")
	switch {
	case failed != nil:
		return failed
	case err == nil:
		return fmt.Errorf("its Workload is there, and %d pods", len(pods))
	case len(pods) > 0:
		return fmt.Errorf("its Workload is gone before its %d pods", len(pods))
	}
	return nil
}

// workload is that of a cluster or a job.
func (q quota) workload(ctx context.Context, of types.NamespacedName) (*unstructured.Unstructured, error) {
	all, err := workloads(ctx, of.Namespace)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if owner := metav1.GetControllerOf(&all[i]); owner != nil && owner.Name == of.Name {
			return &all[i], nil
		}
	}
	return nil, errors.New("there is no Workload of " + of.Name)
}

// judge looks at what ran: each attempt once, and each job to its end once.
func (c crowd) judge(t *testing.T) {
	t.Helper()
	runs := map[string]int{}
	for _, run := range runsIn(c.namespace) {
		runs[run.Metadata["heliostat.dev/job-uid"]+"/"+run.Metadata["heliostat.dev/attempt"]]++
	}
	var jobs v1beta1.ClusterJobList
	must(t, shared.List(t.Context(), &jobs, client.InNamespace(c.namespace)))
	for i := range jobs.Items {
		job := &jobs.Items[i]
		for number, attempt := range job.Status.Attempts {
			want := "JobPreempted"
			if number == len(job.Status.Attempts)-1 {
				want = "JobSucceeded"
			}
			if attempt.Reason != want {
				t.Errorf("attempt %d of %s ended with %s, want %s", attempt.Number, job.Name, attempt.Reason, want)
			}
			if many := runs[fmt.Sprintf("%s/%d", job.UID, attempt.Number)]; many > 1 {
				t.Errorf("attempt %d of %s ran %d times", attempt.Number, job.Name, many)
			}
		}
		eventually(t, "the Workload of "+job.Name+" to be finished", func(ctx context.Context) error {
			workload, err := c.workload(ctx, client.ObjectKeyFromObject(job))
			if err == nil && !holds(workload, "Finished") {
				err = errors.New("it is not")
			}
			return err
		})
	}
	if len(jobs.Items) != c.jobs {
		t.Errorf("there are %d jobs, want %d", len(jobs.Items), c.jobs)
	}
}

func followsItsAdmission(t *testing.T) {
	q := quota{namespace: newNamespaceOf(t, "queued"), cpus: 4}
	name := types.NamespacedName{Namespace: q.namespace, Name: "demo"}
	q.set(t)
	startOperator(t, "--kueue", "--watch-namespaces="+q.namespace)
	cluster := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: q.namespace, Name: name.Name}, Spec: oneEach()}
	inQueue(cluster, q.namespace+"-none")
	must(t, shared.Create(t.Context(), cluster))
	eventually(t, "a class that does not exist to be told of", says(name, "QueueBlocked"))
	q.label(t, name, priorityLabel, q.namespace+"-low")
	eventually(t, "the cluster to wait for its queue", says(name, "Queued"))
	if pods := podsOf(t, name, ""); len(pods) > 0 {
		t.Fatalf("%d pods were made without admission", len(pods))
	}

	q.apply(t, localQueue)
	ready(t, name)
	for _, pod := range podsOf(t, name, "") {
		if pod.Spec.NodeSelector["kueue-flavor"] != "tests" {
			t.Errorf("pod %s is not held on the nodes of its flavor: %v", pod.Name, pod.Spec.NodeSelector)
		}
	}
	eventually(t, "Kueue to know that it is ready", q.says(name, func(workload *unstructured.Unstructured) bool { return holds(workload, "PodsReady") }))
	q.refuseCopies(t, name)

	q.label(t, name, priorityLabel, q.namespace+"-high")
	eventually(t, "it to have its priority", q.says(name, func(workload *unstructured.Unstructured) bool {
		priority, _, err := unstructured.NestedInt64(workload.Object, "spec", "priority")
		return err == nil && priority == 1000
	}))
	ready(t, name)

	scaleTo(t, name, 3)
	eventually(t, "it to be admitted with its new size", q.says(name, func(workload *unstructured.Unstructured) bool {
		sets, _, err := unstructured.NestedSlice(workload.Object, "spec", "podSets")
		return err == nil && len(sets) == 2 && holds(workload, "Admitted") && sets[1].(map[string]any)["count"] == int64(3)
	}))
	ready(t, name)
	scaleTo(t, name, 4)
	eventually(t, "one that is larger than the quota to wait", func(ctx context.Context) error {
		if err := says(name, "Queued")(ctx); err != nil {
			return err
		}
		pods, err := shared.PodsOf(ctx, name, "")
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d pods are there", len(pods))
		}
		return err
	})
	q.label(t, name, queueLabel, "")
	ready(t, name)
	eventually(t, "one that left the queue to hold none of its quota", func(ctx context.Context) error {
		if _, err := q.workload(ctx, name); err != nil {
			return nil
		}
		return errors.New("its Workload is there")
	})
}

// refuseCopies tries copies of a cluster's Workload.
func (q quota) refuseCopies(t *testing.T, of types.NamespacedName) {
	t.Helper()
	policyInForce(t, q.namespace)
	workload, err := q.workload(t.Context(), of)
	must(t, err)
	refuseCopies(t, tenant(t, q.namespace), workload, "workloads")
}

// says asks whether something holds of a cluster's Workload.
func (q quota) says(of types.NamespacedName, holds func(*unstructured.Unstructured) bool) func(context.Context) error {
	return func(ctx context.Context) error {
		workload, err := q.workload(ctx, of)
		if err == nil && !holds(workload) {
			err = fmt.Errorf("it is %v, %v", workload.Object["spec"], workload.Object["status"])
		}
		return err
	}
}

// label sets a label of a cluster, or takes it away.
func (q quota) label(t *testing.T, of types.NamespacedName, key, value string) {
	t.Helper()
	text := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value)
	if value == "" {
		text = fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, key)
	}
	cluster := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}}
	must(t, shared.Patch(t.Context(), cluster, client.RawPatch(types.MergePatchType, []byte(text))))
}
