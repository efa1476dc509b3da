package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

const (
	defaultRedis = "redis:7"
	// redisUser is the user and group in the official images.
	redisUser  = 999
	redisData  = "/data"
	redisGrace = 30
	// variableOperatorDigest is the kubelet's to put into the start command, which every process of the node can read.
	variableOperatorDigest = "OPERATOR_DIGEST"
)

// redisSize is the default size of a managed Redis. What Ray remembers of a small cluster is a few MiB.
var redisSize = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("256Mi")}

// StoreSecret holds the passwords of a managed Redis: the operator's, and that of the heads,
// whose user changes with each epoch.
func StoreSecret(cluster *v1beta1.ComputeCluster, operatorPassword, headPassword string) *corev1.Secret {
	digest := sha256.Sum256([]byte(operatorPassword))
	return &corev1.Secret{
		ObjectMeta: ofStore(cluster, naming.Store(cluster.Name)),
		Type:       corev1.SecretTypeOpaque,
		StringData: map[string]string{
			v1beta1.StoreOperatorKey: operatorPassword, v1beta1.StoreHeadKey: headPassword,
			v1beta1.StoreDigestKey: hex.EncodeToString(digest[:]),
		},
	}
}

// StoreService is where a managed Redis is found. It has an address of its own, as a name
// without one is remembered as missing for up to 30 s by the DNS of a Kubernetes cluster;
// and it leads to a Redis that still reads its data, which can say so. It is nil without a
// managed store.
func StoreService(cluster *v1beta1.ComputeCluster) *corev1.Service {
	if managed(cluster) == nil {
		return nil
	}
	return &corev1.Service{
		ObjectMeta: ofStore(cluster, naming.Store(cluster.Name)),
		Spec: corev1.ServiceSpec{
			Type:                     corev1.ServiceTypeClusterIP,
			Selector:                 storeSelector(cluster),
			PublishNotReadyAddresses: true,
			Ports:                    []corev1.ServicePort{servicePort("redis", naming.PortStore, naming.PortStore)},
		},
	}
}

// StoreSet runs a managed Redis: one pod, which a StatefulSet never makes again before the
// former is gone, so that no two write to the volume. Pods are managed in parallel because a
// set that waits for its pods to be ready never replaces one that cannot become so. It is
// nil without a managed store.
func StoreSet(cluster *v1beta1.ComputeCluster) *appsv1.StatefulSet {
	redis := managed(cluster)
	if redis == nil {
		return nil
	}
	set := &appsv1.StatefulSet{
		ObjectMeta: ofStore(cluster, naming.Store(cluster.Name)),
		Spec: appsv1.StatefulSetSpec{
			Replicas:            new(int32(1)),
			ServiceName:         naming.Store(cluster.Name),
			PodManagementPolicy: appsv1.ParallelPodManagement,
			UpdateStrategy:      appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType},
			Selector:            &metav1.LabelSelector{MatchLabels: storeSelector(cluster)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: naming.StoreLabels(cluster.Name)},
				Spec:       redisPod(cluster, redis),
			},
		},
	}
	set.Annotations = map[string]string{v1beta1.AnnotationIntent: redisIntent(cluster, redis)}
	return set
}

// StoreBudget keeps evictions from taking a managed Redis. One that is not ready may always be evicted.
func StoreBudget(cluster *v1beta1.ComputeCluster) *policyv1.PodDisruptionBudget {
	return budgetOf(ofStore(cluster, naming.Store(cluster.Name)), storeSelector(cluster))
}

// redisPod is the pod of a managed Redis. It prefers the node of the head: two nodes could each end the cluster. It meets the pod security level "restricted".
func redisPod(cluster *v1beta1.ComputeCluster, redis *v1beta1.ManagedRedis) corev1.PodSpec {
	where := placement(cluster)
	return corev1.PodSpec{
		Containers: []corev1.Container{redisContainer(cluster, redis)},
		Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: naming.StoreClaim(cluster.Name)},
		}}},
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(redisUser)), RunAsGroup: new(int64(redisUser)),
			FSGroup: new(int64(redisUser)), FSGroupChangePolicy: new(corev1.FSGroupChangeOnRootMismatch),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		TerminationGracePeriodSeconds: new(int64(redisGrace)),
		NodeSelector:                  where.NodeSelector,
		Tolerations:                   pod.Staying(where.Tolerations),
		ImagePullSecrets:              where.ImagePullSecrets,
		PriorityClassName:             where.PriorityClassName,
		Affinity:                      pod.Beside(nil, naming.RoleSelector(cluster.Name, v1beta1.RoleHead)),
	}
}

// optionTLS is by which a Redis with TLS is known.
const optionTLS = "--tls-port"

// EncryptsStore reports whether the Redis of a set listens with TLS.
func EncryptsStore(set *appsv1.StatefulSet) bool {
	return slices.ContainsFunc(set.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return slices.Contains(c.Args, optionTLS) })
}

// EncryptStore has the Redis of a set that StoreSet built listen with TLS alone. A client has to know a password, and
// needs no certificate. The container that makes the certificate ends before Redis begins, so that it may be as large.
func EncryptStore(set *appsv1.StatefulSet, cluster *v1beta1.ComputeCluster, site Site) {
	spec := &set.Spec.Template.Spec
	spec.Volumes = append(spec.Volumes, pod.CertificateVolumes(cluster)...)
	redis := &spec.Containers[0]
	spec.InitContainers = []corev1.Container{site.Image.Certificates(managed(cluster).Size, redis.SecurityContext, pod.StoreHost(cluster))}
	redis.VolumeMounts = append(redis.VolumeMounts, pod.CertificatesMount())
	redis.Args = append([]string{
		"--port", "0", optionTLS, strconv.Itoa(naming.PortStore), "--tls-auth-clients", "no",
		"--tls-cert-file", naming.PathCertificates + "/tls.crt", "--tls-key-file", naming.PathCertificates + "/tls.key",
		"--tls-ca-cert-file", naming.PathCertificates + "/ca.crt",
	}, redis.Args...)
}

// placement is what of podDefaults is about where pods run and how they get there. Labels,
// annotations, variables and the service account are for pods of Ray: a label may put them
// into a queue, an account may give them rights.
func placement(cluster *v1beta1.ComputeCluster) v1beta1.PodDefaults {
	if cluster.Spec.PodDefaults == nil {
		return v1beta1.PodDefaults{}
	}
	from := cluster.Spec.PodDefaults.DeepCopy()
	return v1beta1.PodDefaults{
		NodeSelector: from.NodeSelector, Tolerations: from.Tolerations,
		ImagePullSecrets: from.ImagePullSecrets, PriorityClassName: from.PriorityClassName,
	}
}

func redisContainer(cluster *v1beta1.ComputeCluster, redis *v1beta1.ManagedRedis) corev1.Container {
	size := pod.Over(redisSize, redis.Size)
	container := corev1.Container{
		Name: "redis", Image: redis.Image,
		Command: []string{"redis-server"}, // itself: an image's entrypoint may do more, and as root
		Args:    redisArguments(size.Memory().Value()),
		Env: []corev1.EnvVar{{Name: variableOperatorDigest, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: naming.Store(cluster.Name)}, Key: v1beta1.StoreDigestKey,
		}}}},
		Ports:                    []corev1.ContainerPort{{Name: "redis", ContainerPort: naming.PortStore, Protocol: corev1.ProtocolTCP}},
		Resources:                pod.Sized(size),
		VolumeMounts:             []corev1.VolumeMount{{Name: "data", MountPath: redisData}},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		// They see that somebody listens, and need no password. Whether Redis can serve is asked
		// by the operator, all the time.
		StartupProbe:   listens(1, 60),
		ReadinessProbe: listens(5, 3),
		LivenessProbe:  listens(10, 6),
	}
	if container.Image == "" {
		container.Image = defaultRedis
	}
	return container
}

// redisArguments of a Redis that may use so many bytes of memory. A quarter is left for what
// it copies while it writes its file again; when the rest is used up, it says so and forgets
// nothing.
//
// The file is synced each second. What Redis has answered it has handed to the kernel, so it
// loses that only with its node: the last second or two. To sync before each answer would
// cost Ray ten times the time (0.3 ms in place of 0.03 on a local disk), and such a Redis
// ends itself when its volume is full, with the kubelet's back-off after there is room again;
// this one says so, and goes on by itself.
//
// Users of heads are made by the operator while Redis runs, and are gone when it ends.
func redisArguments(memory int64) []string {
	return []string{
		"--dir", redisData, "--appendonly", "yes", "--appendfsync", "everysec", "--save", "",
		"--maxmemory", strconv.FormatInt(memory/4*3, 10), "--maxmemory-policy", "noeviction",
		"--user", "default", "off",
		"--user", v1beta1.StoreOperatorUser, "on", "#$(" + variableOperatorDigest + ")", "~*", "&*", "+@all",
	}
}

func listens(periodSeconds, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(naming.PortStore)}},
		PeriodSeconds: periodSeconds, TimeoutSeconds: 5, FailureThreshold: failures,
	}
}

// redisIntent is the versioned hash of what the user wants of a managed Redis' pod, and holds
// none of our defaults, as that of Ray's pods: by it a new operator knows that one that runs
// need not be replaced.
func redisIntent(cluster *v1beta1.ComputeCluster, redis *v1beta1.ManagedRedis) string {
	form := struct {
		Image string               `json:",omitempty"`
		Size  corev1.ResourceList  `json:",omitempty"`
		Where *v1beta1.PodDefaults `json:",omitempty"`
	}{Image: redis.Image, Size: redis.Size}
	if where := placement(cluster); !equality.Semantic.DeepEqual(where, v1beta1.PodDefaults{}) {
		form.Where = &where
	}
	hash, _ := naming.IntentHash("v1", form) // API types always marshal: they came from JSON
	return hash
}
