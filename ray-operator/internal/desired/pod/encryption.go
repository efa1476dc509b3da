package pod

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// pathAuthority is where the container that makes a pod's certificate sees the authority.
const pathAuthority = "/var/run/secrets/heliostat.dev/ca"

// variablePodIPs is the variable that gives the addresses which a pod's certificate is for.
const variablePodIPs = "POD_IPS"

// Sizes of the containers that encryption adds. Making a certificate takes a moment; each connection to the dashboard
// takes some 50 KiB.
var (
	certificatesSize = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")}
	encryptionSize   = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
)

// IsEncrypted reports whether a pod was made with encryption.
func IsEncrypted(made *corev1.Pod) bool {
	return made.Annotations[v1beta1.AnnotationEncryption] == string(v1beta1.Enabled)
}

// DashboardPort returns the port on which others reach the dashboard of a head.
func DashboardPort(head *corev1.Pod) int32 {
	if IsEncrypted(head) {
		return naming.PortDashboardTLS
	}
	return naming.PortDashboard
}

// DashboardURL returns where a cluster's dashboard answers, inside the Kubernetes cluster.
func DashboardURL(cluster *v1beta1.ComputeCluster) string {
	scheme := "http"
	if naming.EncryptionRequired(cluster) {
		scheme = "https"
	}
	return fmt.Sprintf("%s://%s:%d", scheme, headHost(cluster), naming.PortDashboard)
}

// encryption has Ray speak TLS and nothing else. OperatorImage.Complete adds the container that makes the certificate.
func encryption(d *draft) {
	if !naming.EncryptionRequired(d.cluster) {
		return
	}
	d.pod.Annotations[v1beta1.AnnotationEncryption] = string(v1beta1.Enabled)
	d.set("RAY_USE_TLS", "1")
	d.set("RAY_TLS_SERVER_CERT", naming.PathCertificates+"/tls.crt")
	d.set("RAY_TLS_SERVER_KEY", naming.PathCertificates+"/tls.key")
	d.set("RAY_TLS_CA_CERT", naming.PathCertificates+"/ca.crt")
	if !d.isHead() { // in clear text the dashboard is on the head alone
		d.offer("RAY_API_SERVER_ADDRESS", DashboardURL(d.cluster))
	}
	d.pod.Spec.Volumes = append(d.pod.Spec.Volumes, CertificateVolumes(d.cluster)...)
	d.ray.VolumeMounts = append(d.ray.VolumeMounts, CertificatesMount())
}

// CertificateVolumes returns the volumes that a pod with a certificate of its own needs.
func CertificateVolumes(cluster *v1beta1.ComputeCluster) []corev1.Volume {
	readable, most := int32(0o444), resource.MustParse("1Mi") // only the init container mounts the authority
	return []corev1.Volume{
		{Name: naming.VolumeAuthority, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: naming.AuthoritySecret(cluster.Name), DefaultMode: &readable},
		}},
		{Name: naming.VolumeCertificates, VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: &most},
		}},
	}
}

// CertificatesMount returns where a container sees its pod's certificate.
func CertificatesMount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: naming.VolumeCertificates, MountPath: naming.PathCertificates, ReadOnly: true}
}

// Certificates returns the init container that makes a certificate for a pod's addresses and for names. A size lies over
// its own.
func (o OperatorImage) Certificates(size corev1.ResourceList, security *corev1.SecurityContext, names ...string) corev1.Container {
	container := o.container(v1beta1.ContainerCertificates, Over(certificatesSize, size), security)
	container.Command = []string{"/encryption", "certify"}
	container.Args = []string{"--authority=" + pathAuthority, "--out=" + naming.PathCertificates}
	if len(names) > 0 {
		container.Args = append(container.Args, "--names="+strings.Join(names, ","))
	}
	container.Env = []corev1.EnvVar{fromPod(variablePodIPs, "status.podIPs")}
	container.VolumeMounts = []corev1.VolumeMount{
		{Name: naming.VolumeAuthority, MountPath: pathAuthority, ReadOnly: true},
		{Name: naming.VolumeCertificates, MountPath: naming.PathCertificates},
	}
	return container
}

// front returns the container that takes HTTPS for the dashboard, which has no TLS of its own. Where a pod has IPv6 alone,
// the dashboard is at ::1, and elsewhere at 127.0.0.1. Both are localhost.
func (o OperatorImage) front(size corev1.ResourceList, security *corev1.SecurityContext) corev1.Container {
	container := o.container(v1beta1.ContainerEncryption, Over(encryptionSize, size), security)
	container.Command = []string{"/encryption", "front"}
	container.Args = []string{
		fmt.Sprintf("--listen=:%d", naming.PortDashboardTLS), fmt.Sprintf("--to=localhost:%d", naming.PortDashboard), "--certificates=" + naming.PathCertificates,
	}
	container.Ports = []corev1.ContainerPort{{Name: "dashboard-tls", ContainerPort: naming.PortDashboardTLS, Protocol: corev1.ProtocolTCP}}
	container.VolumeMounts = []corev1.VolumeMount{CertificatesMount()}
	container.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	return container
}

// namesOfHead returns the names under which a head is found: those of its cluster's Service, and those of the Service in front
// of the active head where a ClusterService owns the cluster.
func namesOfHead(cluster *v1beta1.ComputeCluster) []string {
	of := []string{cluster.Name}
	if owner := naming.Controller(cluster); owner != nil && owner.Kind == "ClusterService" {
		of = append(of, owner.Name)
	}
	var names []string
	for _, name := range of {
		service := naming.HeadService(name)
		names = append(names, service, service+"."+cluster.Namespace, service+"."+cluster.Namespace+".svc")
	}
	return names
}

// EncryptStore has a head that Head built speak TLS with its managed Redis, also where Ray's processes speak none with each
// other, and returns the head. Of the cluster's authority it sees the certificate alone.
func EncryptStore(head *corev1.Pod, cluster *v1beta1.ComputeCluster) *corev1.Pod {
	if naming.EncryptionRequired(cluster) {
		return head
	}
	ray, readable := rayContainer(&head.Spec), int32(0o444) // the image's user is not known
	for i := range ray.Env {
		if ray.Env[i].Name == variableStoreAddress {
			ray.Env[i].Value = ManagedStoreAddress(cluster, true)
		}
	}
	ray.Env = append(ray.Env,
		corev1.EnvVar{Name: "RAY_REDIS_CA_CERT", Value: naming.PathStoreTLS + "/ca.crt"}, corev1.EnvVar{Name: "RAY_REDIS_SERVER_NAME", Value: StoreHost(cluster)})
	ray.VolumeMounts = append(ray.VolumeMounts, corev1.VolumeMount{Name: naming.VolumeStoreTLS, MountPath: naming.PathStoreTLS, ReadOnly: true})
	head.Spec.Volumes = append(head.Spec.Volumes, corev1.Volume{Name: naming.VolumeStoreTLS, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: naming.AuthoritySecret(cluster.Name), DefaultMode: &readable,
		Items: []corev1.KeyToPath{{Key: v1beta1.AuthorityCertificateKey, Path: "ca.crt"}},
	}}})
	return head
}

// EncryptsStore reports whether a head speaks TLS with its Redis.
func EncryptsStore(head *corev1.Pod) bool {
	ray := Ray(head)
	return ray != nil && slices.ContainsFunc(ray.Env, func(variable corev1.EnvVar) bool {
		return variable.Name == variableStoreAddress && strings.HasPrefix(variable.Value, "rediss:")
	})
}
