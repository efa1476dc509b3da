package convert

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Variables of Ray that fields of ours are about.
const (
	variableTLS   = "RAY_USE_TLS"
	variableMode  = "RAY_AUTH_MODE"
	variableToken = "RAY_AUTH_TOKEN" //nolint:gosec // a name
	variablePath  = "RAY_AUTH_TOKEN_PATH"
	variableK8s   = "RAY_ENABLE_K8S_TOKEN_AUTH"
)

// certificateVariables name the files of TLS: the certificate and its key, and the authority.
var certificateVariables = []string{"RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT"}

// ownValues are variables that the operator sets, each with why none is taken from a template.
var ownValues = map[string]string{
	"RAY_enable_autoscaler_v2":               "the autoscaler is the operator's own, of one version",
	"RAY_gcs_rpc_server_reconnect_timeout_s": "the operator says how long workers wait for a head",
	"RAY_ADDRESS":                            "the operator says where the head is",
}

// variablesPart is the environment of a Ray container on its way.
type variablesPart struct{ *nodePart }

// takeVariables takes out what the operator says itself.
func (n variablesPart) takeVariables(path string, ray *corev1.Container) {
	var kept []corev1.EnvVar
	for i, e := range ray.Env {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch why, own := ownValues[e.Name]; {
		case n.isStoreVariable(e):
			n.adjust(at, "controlStore.redis", e.Name+" is told by controlStore.redis")
		case own:
			n.drop(at, why)
		case !n.takeTLSVariable(at, e) && !n.takeTokenVariable(at, e):
			kept = append(kept, e)
		}
	}
	ray.Env = kept
}

// takeTLSVariable takes a variable about TLS, and reports whether it is one. One row is about all of a node.
func (n variablesPart) takeTLSVariable(at string, e corev1.EnvVar) bool {
	switch {
	case e.Name == variableTLS && isOn(e.Value):
		n.network().Encryption = v1beta1.Enabled
		n.change(at, "network.encryption", "the operator makes certificates for the cluster, so that "+variableTLS+" and "+
			strings.Join(certificateVariables, ", ")+" are left out, with mounts and init containers for their files; give clients the "+
			"authority of the Secret NAME-ca")
	case e.Name == variableTLS && e.ValueFrom == nil:
		n.drop(at, "it is off, as it is by default; set network.encryption to encrypt")
	case slices.Contains(certificateVariables, e.Name) && !n.usesTLS():
		n.drop(at, "without "+variableTLS+" it has no effect; set network.encryption to encrypt")
	case !slices.Contains(certificateVariables, e.Name):
		return false
	}
	return true
}

// isOn reports whether Ray reads a value as true.
func isOn(value string) bool {
	return slices.Contains([]string{"1", "true"}, strings.ToLower(strings.TrimSpace(value)))
}

// value is that of a variable of the node's first container as it went in, empty where there is none.
func (n variablesPart) value(name string) string {
	if containers := n.from.Template.Spec.Containers; len(containers) > 0 {
		for _, e := range containers[0].Env {
			if e.Name == name {
				return e.Value
			}
		}
	}
	return ""
}

func (n variablesPart) usesTLS() bool { return isOn(n.value(variableTLS)) }

// takeCertificates takes out what only brings the files of TLS: mounts of the Ray container, and init containers that write
// certificate and key, which would fail without KubeRay's variables.
func (n variablesPart) takeCertificates(at string, pod *corev1.PodSpec) {
	if !n.usesTLS() {
		return
	}
	ray := &pod.Containers[0]
	var volumes []string
	ray.VolumeMounts = slices.DeleteFunc(ray.VolumeMounts, func(m corev1.VolumeMount) bool {
		brings := slices.ContainsFunc(certificateVariables, func(name string) bool { return isWithin(n.value(name), m.MountPath) })
		if brings {
			volumes = append(volumes, m.Name)
		}
		return brings
	})
	writes := func(c corev1.Container) bool {
		return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			return !m.ReadOnly && slices.Contains(volumes, m.Name) && isDirectory(pod, m.Name)
		})
	}
	for i := range pod.InitContainers {
		if c := &pod.InitContainers[i]; writes(*c) {
			n.drop(fmt.Sprintf("%s.initContainers[%d]", at, n.indexOfInit(c.Name)), "the operator makes certificates and keys")
			for _, mount := range c.VolumeMounts {
				volumes = append(volumes, mount.Name)
			}
		}
	}
	pod.InitContainers = slices.DeleteFunc(pod.InitContainers, writes)
	dropUnmounted(pod, volumes...)
}

// indexOfInit is the place of an init container in the object that went in.
func (n *nodePart) indexOfInit(name string) int {
	return slices.IndexFunc(n.from.Template.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == name })
}

// isWithin reports whether a file lies below a directory.
func isWithin(file, directory string) bool {
	return strings.HasPrefix(file, strings.TrimRight(directory, "/")+"/")
}

// isDirectory reports whether a volume begins empty with each pod.
func isDirectory(pod *corev1.PodSpec, name string) bool {
	return slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == name && v.EmptyDir != nil })
}

// takeTokenVariable takes a variable about Ray's token, and reports whether it is one.
func (n variablesPart) takeTokenVariable(at string, e corev1.EnvVar) bool {
	switch e.Name {
	case variableMode:
		n.adjust(at, "authentication.mode", "authentication says whether Ray asks for a token")
		if n.isHead && n.spec.AuthOptions == nil {
			n.auth = cmp.Or(n.auth, &rayAuth{})
			n.auth.Mode = e.Value
		}
	case variableK8s:
		rule := books[kindCluster].rules["spec.authOptions.enableK8sTokenAuth"]
		n.note(Row{Path: at, Verdict: rule.Verdict, Differs: rule.Differs, Text: rule.Text})
	case variableToken, variablePath:
		n.takeToken(at, e)
	default:
		return false
	}
	return true
}

// takeToken keeps the Secret that has Ray's token, if the operator can use it.
func (n variablesPart) takeToken(at string, e corev1.EnvVar) {
	if from := e.ValueFrom; e.Name == variableToken && from != nil && from.SecretKeyRef != nil && from.SecretKeyRef.Key == v1beta1.TokenKey {
		n.adjust(at, "authentication.secretName", "authentication names the Secret with the token")
		if n.isHead && n.spec.AuthOptions == nil {
			n.auth = cmp.Or(n.auth, &rayAuth{})
			n.auth.SecretName = from.SecretKeyRef.Name
		}
		return
	}
	n.change(at, "authentication.secretName", "the operator makes a token in the Secret NAME-token; to keep yours, put it under the key "+
		v1beta1.TokenKey+" of a Secret, and name that in authentication.secretName")
}
