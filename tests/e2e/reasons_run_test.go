package e2e

import (
	"context"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Causes that show only when containers run. They take turns, as each runs Python.
var _ = Describe("why a pod does not go on", Label("reasons", live.AcceptLabel), func() {
	for i := range runCauses {
		c := &runCauses[i]
		It("is told where "+c.name, func(ctx SpecContext) {
			for _, inspection := range c.inspect(ctx) {
				inspection.await(ctx)
			}
		}, SpecTimeout(limit))
	}
})

// A worker beside a head that runs, on its way to be ready and back.
var _ = Describe("why a worker does not serve", Ordered, Label("reasons", live.AcceptLabel, localkubeLabel), func() {
	var staff *env

	BeforeAll(func(ctx SpecContext) {
		staff = &env{types.NamespacedName{Namespace: fresh(ctx), Name: spoiltWorkers}}
	}, NodeTimeout(limit))

	It("is told where it has another version of Ray than its head", func(ctx SpecContext) {
		otherVersion(ctx, staff)
	}, SpecTimeout(limit))

	It("is told where its readiness gate is closed", func(ctx SpecContext) {
		gate := corev1.PodReadinessGate{ConditionType: "example.com/served"}
		c := cause{
			name: "its readiness gate is closed", reason: reason.ReadinessGated, words: "waits for its readiness gate example.com/served",
			shown: hasCondition(corev1.ContainersReady, corev1.ConditionTrue),
		}
		i, stop := c.watch(staff.Namespace)
		defer stop()
		// With the head's own version the worker joins.
		Expect(kubernetes.Edit(ctx, staff.NamespacedName, func(spec *v1beta1.ComputeClusterSpec) {
			spec.WorkerGroups[0].Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{gate}}}
		})).To(Succeed())
		kill(ctx, &staff.workers(ctx, 1)[0])
		i.await(ctx)
		worker := staff.workers(ctx, 1)[0]
		worker.Status.Conditions = append(worker.Status.Conditions, corev1.PodCondition{Type: gate.ConditionType, Status: corev1.ConditionTrue})
		Expect(kubernetes.Status().Update(ctx, &worker)).To(Succeed())
		Expect(meta.FindStatusCondition(staff.ready(ctx).Status.Conditions, v1beta1.ConditionVersionMismatch)).To(BeNil())
	}, SpecTimeout(limit))

	It("is told where its probe fails that had succeeded", func(ctx SpecContext) {
		c := cause{
			name: "its probe fails that had succeeded", reason: reason.ProbeFailing, words: "container ray runs and does not answer its probe at :52365",
			shown: hasCondition(corev1.ContainersReady, corev1.ConditionFalse),
		}
		worker := staff.workers(ctx, 1)[0]
		i, stop := c.watch(staff.Namespace)
		defer stop()
		exec(ctx, &worker, "python3", "-c", silence, "STOP")
		i.await(ctx)
		exec(ctx, &worker, "python3", "-c", silence, "CONT")
		staff.ready(ctx)
	}, SpecTimeout(limit))
})

// silence sends a signal to the process of a worker that answers its probes.
const silence = `import os, signal, sys
for pid in filter(str.isdigit, os.listdir("/proc")):
    if int(pid) != os.getpid() and b"DashboardAgent" in open(f"/proc/{pid}/cmdline", "rb").read():
        os.kill(int(pid), getattr(signal, "SIG" + sys.argv[1]))`

// hasCondition reports whether a pod has a condition.
func hasCondition(kind corev1.PodConditionType, status corev1.ConditionStatus) func(client.Object) bool {
	return func(object client.Object) bool {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return false
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == kind && condition.Status == status {
				return true
			}
		}
		return false
	}
}

var runCauses = []cause{
	{
		name:   "Ray refuses an option",
		reason: reason.CrashLoop, words: "No such option '--no-such-option'. Check its log",
		shown: ended(), spoil: func(node *v1beta1.NodeSpec) { node.RayStartParams = map[string]string{"no-such-option": ""} },
	},
	{
		name:   "Ray's container needs more memory than its limit",
		reason: reason.OutOfMemory, words: "container ray ran out of memory at its limit of ",
		prepare: python("sitecustomize.py", "hog = [b'x' * (64 << 20) for _ in range(40)]"), shown: ended(),
		spoil: func(node *v1beta1.NodeSpec) {
			mountPython(node, "/hungry", "")
			_, ray := template(node)
			ray.Env = []corev1.EnvVar{{Name: "PYTHONPATH", Value: "/hungry"}}
		},
	},
	{
		name:   "an init container needs more memory than its limit",
		reason: reason.OutOfMemory, words: "container fetch ran out of memory at its limit of 32Mi",
		shown: ended(),
		spoil: func(node *v1beta1.NodeSpec) {
			initContainer("python3", "-c", "hog = [b'x' * (64 << 20) for _ in range(40)]")(node)
			node.Template.Spec.InitContainers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")}
		},
	},
	{
		name:   "a sidecar ends",
		reason: reason.SidecarFailed, words: "container logs ended with exit code 1",
		shown: ended(),
		spoil: func(node *v1beta1.NodeSpec) {
			pod, _ := template(node)
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
				Name: "logs", Image: rayImage, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sh", "-c", "echo bye; exit 1"},
			})
		},
	},
}

// python prepares a ConfigMap with a Python file.
func python(file, program string) func(context.Context, string) {
	return func(ctx context.Context, namespace string) {
		GinkgoHelper()
		Expect(kubernetes.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "python"}, Data: map[string]string{file: program},
		})).To(Succeed())
	}
}

// mountPython mounts that ConfigMap, or one file of it, into the ray container.
func mountPython(node *v1beta1.NodeSpec, path, file string) {
	volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "python"}}})(node)
	_, ray := template(node)
	ray.VolumeMounts[0].MountPath, ray.VolumeMounts[0].SubPath = path, file
}

// otherVersion runs a head, and a worker whose package of Ray says that it is an earlier
// release. It is Ray's own check that refuses it.
func otherVersion(ctx context.Context, staff *env) {
	GinkgoHelper()
	python("_version.py", "version = '2.59.0'\ncommit = '0'\n")(ctx, staff.Namespace)
	c := cause{
		name: "it has another version of Ray than its head", reason: reason.VersionMismatch, words: "the head runs Ray 2.60.0 and Python 3.",
		shown: ended(),
		spoil: func(node *v1beta1.NodeSpec) {
			mountPython(node, "/usr/local/lib/python3.11/dist-packages/ray/_version.py", "_version.py")
		},
	}
	cluster := c.cluster(staff.Namespace, v1beta1.RoleWorker)
	cluster.Spec.Head.NodeSpec = v1beta1.NodeSpec{Size: size("10m", "2560Mi")}
	cluster.Spec.WorkerGroups[0].Size = size("10m", "1Gi")
	i, stop := c.watch(staff.Namespace)
	defer stop()
	Expect(kubernetes.Create(ctx, cluster)).To(Succeed())
	i.await(ctx)
	eventually(ctx, "the condition VersionMismatch", func(ctx context.Context) error {
		found, err := kubernetes.Find(ctx, staff.NamespacedName)
		if err == nil && !meta.IsStatusConditionTrue(found.Status.Conditions, v1beta1.ConditionVersionMismatch) {
			err = errors.New("it is not there")
		}
		return err
	})
}
