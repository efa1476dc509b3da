package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Causes that scheduler and kubelets show, one of each way in which they show one. TestRecordedPods and
// TestSchedulersWords in ray-operator/diagnose have what they say of the others, and make accept plays those.
var _ = Describe("why a pod does not start", Ordered, ContinueOnFailure, Label("reasons", localkubeLabel), func() {
	inspected(startCauses)
})

var _ = Describe("why a pod does not start, further causes", Ordered, ContinueOnFailure, Label("reasons", live.AcceptLabel, localkubeLabel), func() {
	inspected(furtherCauses)
})

// inspected are the specs of causes. All are set to work at once, as a start is mostly waiting, and then looked at
// one after another.
func inspected(causes []cause) {
	at := map[string][]inspection{}

	BeforeAll(func(ctx SpecContext) {
		for i := range causes {
			at[causes[i].name] = causes[i].inspect(ctx)
		}
	}, NodeTimeout(limit))

	for i := range causes {
		c := &causes[i]
		It("is told where "+c.name, func(ctx SpecContext) {
			for _, inspection := range at[c.name] {
				inspection.await(ctx)
			}
		}, SpecTimeout(limit))
	}
}

var startCauses = []cause{
	{
		name:   "the image's registry has no address",
		reason: reason.ImagePullFailed, words: "image registry.invalid/ray:1 cannot be pulled: the name of the registry cannot be resolved",
		shown: waits("ErrImagePull", "ImagePullBackOff"), spoil: image("registry.invalid/ray:1"),
	},
	{
		name:   "there is too little CPU",
		reason: reason.Unschedulable, words: "0/2 nodes fit: 2 too little cpu (it asks for 64). Request less",
		shown: placeless, spoil: func(node *v1beta1.NodeSpec) { node.Size[corev1.ResourceCPU] = resource.MustParse("64") },
	},
	{
		name:   "the Secret of a volume is missing",
		reason: reason.VolumeNotReady, words: "Secret gone of a volume does not exist. Create Secret gone",
		shown: eventOf("FailedMount"),
		spoil: volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "gone"}}),
	},
	{
		name:   "an init container fails",
		reason: reason.InitFailed, words: "init container fetch ended with exit code 7",
		shown: ended(), spoil: initContainer("sh", "-c", "echo no route to bucket; exit 7"),
	},
}

var furtherCauses = []cause{
	{
		name:   "the image's registry does not answer",
		reason: reason.ImagePullFailed, words: "cannot be pulled: the registry does not answer. Check that the nodes reach",
		shown: waits("ErrImagePull", "ImagePullBackOff"), spoil: image("127.0.0.1:5999/ray:404"),
	},
	{
		name:   "the image may not be pulled",
		reason: reason.ImagePullFailed, words: "it is not on the node, and imagePullPolicy is Never. Load it",
		shown: waits("ErrImageNeverPull"),
		spoil: func(node *v1beta1.NodeSpec) {
			image("example.com/ray:1")(node)
			node.Template.Spec.Containers[0].ImagePullPolicy = corev1.PullNever
		},
	},
	{
		name:   "the image's name is none",
		reason: reason.ImagePullFailed, words: "image UPPER/ray:1 cannot be pulled: this is not a valid name of an image",
		shown: waits("InvalidImageName", "ErrImagePull"), spoil: image("UPPER/ray:1"),
	},
	{
		name:   "no node has the selected label",
		reason: reason.Unschedulable, words: "2 do not match its nodeSelector or node affinity. Correct nodeSelector",
		shown: placeless, spoil: keepOff,
	},
	{
		name:   "the ConfigMap of a volume is missing",
		reason: reason.VolumeNotReady, words: "ConfigMap gone of a volume does not exist. Create ConfigMap gone",
		shown: eventOf("FailedMount"),
		spoil: volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "gone"}}}),
	},
	{
		name:   "the claim of a volume is missing",
		reason: reason.VolumeNotReady, words: "PersistentVolumeClaim data does not exist. Create PersistentVolumeClaim data",
		shown: placeless, spoil: volume(claimOf("data")),
	},
	{
		name:   "the storage class of a claim is missing",
		reason: reason.VolumeNotReady, words: "its PersistentVolumeClaims are not bound. Check why",
		prepare: claimWithoutClass, shown: placeless, spoil: volume(claimOf("data")),
	},
	{
		name:   "the Secret of a variable has no such key",
		reason: reason.ConfigError, words: "container ray cannot be created: Secret half has no key token. Add the key to Secret half",
		prepare: func(ctx context.Context, namespace string) {
			Expect(kubernetes.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "half"}})).To(Succeed())
		},
		shown: waits("CreateContainerConfigError"), spoil: variable("half"),
	},
	{
		name:   "the Secret of a variable is missing",
		reason: reason.ConfigError, words: "container ray cannot be created: Secret gone does not exist. Create Secret gone",
		shown: waits("CreateContainerConfigError"), spoil: variable("gone"),
	},
	{
		name:   "it must not run as root and does",
		reason: reason.ConfigError, words: "Set runAsUser in the securityContext of the template to a user other than 0",
		shown: waits("CreateContainerConfigError"),
		spoil: func(node *v1beta1.NodeSpec) {
			root, no := int64(0), true
			_, ray := template(node)
			ray.SecurityContext = &corev1.SecurityContext{RunAsUser: &root, RunAsNonRoot: &no}
		},
	},
	{
		name:   "a queue holds it back",
		reason: reason.SchedulingGated, words: "held back by scheduling gate example.com/queue",
		shown: placeless,
		spoil: func(node *v1beta1.NodeSpec) {
			pod, _ := template(node)
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/queue"}}
		},
	},
	{
		name:   "an init container takes its time",
		reason: reason.InitRunning, words: "init container fetch is running",
		shown: ofContainers(func(status corev1.ContainerStatus) bool { return status.Name == "fetch" && status.State.Running != nil }),
		spoil: func(node *v1beta1.NodeSpec) {
			initContainer("sleep", "600")(node)
			node.Template.Spec.TerminationGracePeriodSeconds = new(int64) // sleep heeds no signal
		},
	},
	{
		name:   "a container's command is not in its image",
		reason: reason.StartFailed, words: "container fetch cannot be started: exec: \"/no/such\"",
		shown: ended(), spoil: initContainer("/no/such"),
	},
}

func image(ref string) func(*v1beta1.NodeSpec) {
	return func(node *v1beta1.NodeSpec) {
		_, ray := template(node)
		ray.Image = ref
	}
}

func volume(source corev1.VolumeSource) func(*v1beta1.NodeSpec) {
	return func(node *v1beta1.NodeSpec) {
		pod, ray := template(node)
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: source}}
		ray.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	}
}

func claimOf(name string) corev1.VolumeSource {
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
}

func claimWithoutClass(ctx context.Context, namespace string) {
	GinkgoHelper()
	Expect(kubernetes.Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new("nowhere"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	})).To(Succeed())
}

// variable gives the ray container a variable from the key token of a Secret.
func variable(secret string) func(*v1beta1.NodeSpec) {
	return func(node *v1beta1.NodeSpec) {
		_, ray := template(node)
		ray.Env = []corev1.EnvVar{{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: "token",
		}}}}
	}
}

func initContainer(command ...string) func(*v1beta1.NodeSpec) {
	return func(node *v1beta1.NodeSpec) {
		pod, _ := template(node)
		pod.Spec.InitContainers = []corev1.Container{{
			Name: "fetch", Image: rayImage, ImagePullPolicy: corev1.PullIfNotPresent, Command: command,
		}}
	}
}
