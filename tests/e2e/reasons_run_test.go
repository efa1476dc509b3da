package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Causes that show only when containers run. They take turns, as each runs Python.
var _ = Describe("why a pod does not go on", Label("reasons"), func() {
	for i := range runCauses {
		c := &runCauses[i]
		It("is told where "+c.name, func(ctx SpecContext) {
			for _, inspection := range c.inspect(ctx) {
				inspection.await(ctx)
			}
		}, SpecTimeout(limit))
	}

	It("is told where a worker has another version of Ray than its head", func(ctx SpecContext) {
		otherVersion(ctx)
	}, SpecTimeout(limit))
})

var runCauses = []cause{
	{
		name:   "Ray refuses an option",
		reason: reason.CrashLoop, words: "No such option '--no-such-option'. See its log",
		shown: ended(), spoil: func(node *v1alpha1.NodeSpec) { node.RayStartParams = map[string]string{"no-such-option": ""} },
	},
	{
		name:   "Ray's container needs more memory than its limit",
		reason: reason.OutOfMemory, words: "container ray ran out of memory at its limit of ",
		prepare: python("sitecustomize.py", "hog = [b'x' * (64 << 20) for _ in range(40)]"), shown: ended(),
		spoil: func(node *v1alpha1.NodeSpec) {
			mountPython(node, "/hungry", "")
			_, ray := template(node)
			ray.Env = []corev1.EnvVar{{Name: "PYTHONPATH", Value: "/hungry"}}
		},
	},
	{
		name:   "an init container needs more memory than its limit",
		reason: reason.OutOfMemory, words: "container fetch ran out of memory at its limit of 32Mi",
		shown: ended(),
		spoil: func(node *v1alpha1.NodeSpec) {
			initContainer("python3", "-c", "hog = [b'x' * (64 << 20) for _ in range(40)]")(node)
			node.Template.Spec.InitContainers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")}
		},
	},
	{
		name:   "a sidecar ends",
		reason: reason.SidecarFailed, words: "container logs ended with exit code 1",
		shown: ended(),
		spoil: func(node *v1alpha1.NodeSpec) {
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
func mountPython(node *v1alpha1.NodeSpec, path, file string) {
	volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "python"}}})(node)
	_, ray := template(node)
	ray.VolumeMounts[0].MountPath, ray.VolumeMounts[0].SubPath = path, file
}

// otherVersion runs a head, and workers whose package of Ray says that it is an earlier
// release. It is Ray's own check that refuses them.
func otherVersion(ctx context.Context) {
	GinkgoHelper()
	namespace := fresh(ctx)
	python("_version.py", "version = '2.59.0'\ncommit = '0'\n")(ctx, namespace)
	c := cause{
		name: "a worker has another version of Ray than its head", reason: reason.VersionMismatch, words: "the head runs Ray 2.60.0 and Python 3.",
		shown: ended(),
		spoil: func(node *v1alpha1.NodeSpec) {
			mountPython(node, "/usr/local/lib/python3.11/dist-packages/ray/_version.py", "_version.py")
		},
	}
	cluster := c.cluster(namespace, v1alpha1.RoleWorker)
	cluster.Spec.Head.NodeSpec = v1alpha1.NodeSpec{Size: size("10m", "2560Mi")}
	cluster.Spec.WorkerGroups[0].Size = size("10m", "1Gi")
	watching, stop := context.WithCancel(ctx)
	defer stop()
	i := inspection{
		cause: &c, of: v1alpha1.RoleWorker, visible: c.visible(watching, namespace, podPrefix(v1alpha1.RoleWorker)),
		told: watch(watching, namespace, &v1alpha1.ComputeClusterList{}, func(object client.Object) bool {
			conditions := object.(*v1alpha1.ComputeCluster).Status.Conditions
			return c.names(v1alpha1.RoleWorker)(object) && meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionVersionMismatch)
		}),
	}
	Expect(kubernetes.Create(ctx, cluster)).To(Succeed())
	i.await(ctx)
	// With the head's own version the worker joins, and the condition is gone.
	mended := &env{client.ObjectKeyFromObject(cluster)}
	Expect(kubernetes.Edit(ctx, mended.NamespacedName, func(spec *v1alpha1.ComputeClusterSpec) { spec.WorkerGroups[0].Template = nil })).To(Succeed())
	kill(ctx, &mended.workers(ctx, 1)[0])
	Expect(meta.FindStatusCondition(mended.ready(ctx).Status.Conditions, v1alpha1.ConditionVersionMismatch)).To(BeNil())
}
