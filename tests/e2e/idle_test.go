package e2e

import (
	"context"
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// keptFor is how long the cluster is kept, which is longer than its policy would leave it alone.
const keptFor = 3 * idleSeconds * time.Second

// idleSeconds is as short as lets a specification of this length see a driver in between.
const idleSeconds = 15

var _ = Describe("an idle cluster", Ordered, func() {
	var notebook *env

	BeforeAll(func(ctx SpecContext) {
		notebook = made(ctx, "notebook", smallHead+fmt.Sprintf("idlePolicy: {afterSeconds: %d, action: None}\n", idleSeconds)+
			"workerGroups: [{name: cpu, replicas: 1, "+smallWorker+"}]\n")
	}, NodeTimeout(limit))

	It("is told of where the policy is only to tell, and stays as it is", func(ctx SpecContext) {
		head := notebook.head(ctx)
		since := notebook.suspendedFor(ctx, metav1.ConditionFalse, "IdleLimitReached").LastTransitionTime.Sub(readySince(&head))
		Expect(since).To(BeNumerically(">=", (idleSeconds-1)*time.Second), "times are whole seconds")
		driver := notebook.begin(ctx, "import os, time\n"+
			"while not os.path.exists('/tmp/noticed'): time.sleep(0.1)\nresult = 1")
		notebook.noticed(ctx)
		exec(ctx, &head, "touch", "/tmp/noticed")
		var one int
		driver.end(ctx, &one)
		notebook.suspendedFor(ctx, metav1.ConditionFalse, "IdleLimitReached")
		Expect(notebook.head(ctx).UID).To(Equal(head.UID))
		Expect(notebook.ready(ctx).Status.Epoch).To(BeEquivalentTo(1))
	}, SpecTimeout(limit))

	It("is not suspended while a driver is connected", func(ctx SpecContext) {
		driver := notebook.begin(ctx, fmt.Sprintf("import time; time.sleep(%d); result = 1", idleSeconds+10))
		notebook.noticed(ctx)
		notebook.edit(ctx, func(spec *v1alpha1.ComputeClusterSpec) {
			spec.IdlePolicy = &v1alpha1.IdlePolicy{AfterSeconds: idleSeconds, Action: v1alpha1.IdleSuspend}
		})
		var one int
		driver.end(ctx, &one)
		Expect(notebook.ready(ctx).Status.Epoch).To(BeEquivalentTo(1))
	}, SpecTimeout(limit))

	It("says when, and is suspended then", func(ctx SpecContext) {
		begin := time.Now()
		notebook.suspendedFor(ctx, metav1.ConditionFalse, "IdleSoon")
		told("driver gone to said in advance", begin)
		notebook.is(ctx, v1alpha1.ConditionSuspended)
		told("driver gone to suspended", begin)
		Expect(time.Since(begin)).To(BeNumerically(">", (idleSeconds-2)*time.Second))
		Expect(notebook.pods(ctx, "")).To(BeEmpty())
		notebook.suspendedFor(ctx, metav1.ConditionTrue, "SuspendedIdle")
	}, SpecTimeout(limit))

	It("wakes for the annotation, and is deleted where the policy says so, once nobody keeps it any more", func(ctx SpecContext) {
		found, err := kubernetes.Find(ctx, notebook.NamespacedName)
		Expect(err).NotTo(HaveOccurred())
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"heliostat.dev/resume":"now"}}}`))
		Expect(kubernetes.Patch(ctx, found, patch)).To(Succeed())
		Expect(notebook.ready(ctx).Status.Epoch).To(BeEquivalentTo(2))
		begin := time.Now()
		code, _ := commandLine(ctx, notebook.Namespace, "keep", "notebook", "--for", keptFor.String())
		Expect(code).To(Equal(outcome.Done))
		notebook.edit(ctx, func(spec *v1alpha1.ComputeClusterSpec) { spec.IdlePolicy.Action = v1alpha1.IdleDelete })
		notebook.suspendedFor(ctx, metav1.ConditionFalse, "IdleKept")
		code, why := commandLine(ctx, notebook.Namespace, "why", "cluster/notebook")
		Expect(code).To(Equal(outcome.Done))
		Expect(why).To(ContainSubstring("IdleKept"))
		Expect(kubernetes.UntilGone(ctx, notebook.NamespacedName, limit)).To(Succeed())
		told("kept to gone", begin)
		Expect(time.Since(begin)).To(BeNumerically(">", keptFor-time.Second), "times are whole seconds")
		takes(begin, keptFor+limit/8, "kept to gone")
	}, SpecTimeout(limit))
})

// noticed waits until the status does not say any more that the cluster is idle, as a driver is connected.
func (e *env) noticed(ctx context.Context) {
	GinkgoHelper()
	eventually(ctx, "the driver to be noticed", func(ctx context.Context) error {
		cluster, err := kubernetes.Find(ctx, e.NamespacedName)
		if err == nil && meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionSuspended) != nil {
			err = errors.New("the cluster still says that it is idle")
		}
		return err
	})
}

// suspendedFor waits until the condition Suspended has a status for a reason, and returns it.
func (e *env) suspendedFor(ctx context.Context, status metav1.ConditionStatus, why string) (found *metav1.Condition) {
	GinkgoHelper()
	eventually(ctx, fmt.Sprintf("Suspended=%s of %s for %s", status, e.Name, why), func(ctx context.Context) error {
		cluster, err := kubernetes.Find(ctx, e.NamespacedName)
		if err != nil {
			return err
		}
		found = meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionSuspended)
		if found == nil || found.Status != status || found.Reason != why {
			return fmt.Errorf("it is %+v", found)
		}
		return nil
	})
	return found
}
