package corpus

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

func store(bytes string) edit {
	return inGroup(func(g *group) { g.ObjectStoreMemory = ptr(resource.MustParse(bytes)) })
}

func headStore(bytes string) edit {
	return func(c *cluster) { c.Spec.Head.ObjectStoreMemory = ptr(resource.MustParse(bytes)) }
}

// limited gives the Ray container of the first group a limit.
func limited(name corev1.ResourceName, quantity string) edit {
	return inGroup(func(g *group) {
		_, ray := ensured(&g.Template)
		ray.Resources.Limits = corev1.ResourceList{name: resource.MustParse(quantity)}
	})
}

func scalerEnv(env ...corev1.EnvVar) edit {
	return scaled(func(a *v1beta1.Autoscaling) { a.Env = env })
}

func scalerSecurity(change func(s *corev1.SecurityContext)) edit {
	return scaled(func(a *v1beta1.Autoscaling) {
		a.SecurityContext = &corev1.SecurityContext{}
		change(a.SecurityContext)
	})
}

func dropped(drop ...corev1.Capability) edit {
	return scalerSecurity(func(s *corev1.SecurityContext) { s.Capabilities = &corev1.Capabilities{Drop: drop} })
}

// objectStoreRows and scalerRows have what users of other operators say of object stores and of the autoscaler.
var objectStoreRows = []row{
	{Name: "an object store", Edit: both(size("memory", "4Gi"), store("3Gi"))},
	{Name: "an object store of the default memory", Edit: both(store("1G"), headStore("3Gi"))},
	{Name: "an object store of a template's memory", Edit: both(limited(corev1.ResourceMemory, "10Gi"), store("8Gi"))},
	{Name: "a small object store", Rule: "object-store-least", Edit: store("74Mi")},
	{Name: "a split byte of an object store", Rule: "object-store-least", Edit: store("100000000001m")},
	{Name: "an object store too large", Rule: "object-store-most", Edit: both(size("memory", "4Gi"), store("3300Mi"))},
	{Name: "an object store too large by default", Rule: "object-store-most", Edit: store("1700Mi")},
	{Name: "a head's object store too large by default", Rule: "object-store-most", Edit: headStore("3300Mi")},
	{Name: "an object store too large for a template", Rule: "object-store-most", Edit: both(limited(corev1.ResourceMemory, "1Gi"), store("1Gi"))},
	{Name: "an object store without memory", Rule: "object-store-most", Edit: both(limited(corev1.ResourceCPU, "1"), store("1Gi"))},
}

var scalerRows = []row{
	{Name: "an autoscaler's image", Edit: scaled(func(a *v1beta1.Autoscaling) { a.Image = "registry.example.com/operator:1" })},
	{Name: "an autoscaler's image too long", Rule: "long-text", Edit: scaled(func(a *v1beta1.Autoscaling) { a.Image = strings.Repeat("a", 1025) })},
	{Name: "variables of the autoscaler", Edit: scalerEnv(corev1.EnvVar{Name: "GODEBUG", Value: "a"}, corev1.EnvVar{Name: "GOGC", Value: "50"})},
	{Name: "an autoscaler's variable twice", Rule: "duplicate", Edit: scalerEnv(corev1.EnvVar{Name: "A"}, corev1.EnvVar{Name: "A"})},
	{Name: "an autoscaler's variable of ours", Rule: "autoscaling-env", Edit: scalerEnv(corev1.EnvVar{Name: "POD_UID"})},
	{Name: "an autoscaler's variable from a Secret", Rule: "autoscaling-env", Edit: scalerEnv(corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k"},
	}})},
	{Name: "an autoscaler under pod security", Edit: both(dropped("ALL"), scaled(func(a *v1beta1.Autoscaling) {
		a.SecurityContext.RunAsUser, a.SecurityContext.RunAsNonRoot = ptr(int64(1000)), ptr(true)
		a.SecurityContext.AllowPrivilegeEscalation = ptr(false)
		a.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}))},
	{Name: "an autoscaler as root", Rule: "autoscaling-root", Edit: scalerSecurity(func(s *corev1.SecurityContext) { s.RunAsUser = ptr(int64(0)) })},
	{Name: "an autoscaler maybe as root", Rule: "autoscaling-root", Edit: scalerSecurity(func(s *corev1.SecurityContext) { s.RunAsNonRoot = ptr(false) })},
	{Name: "a privileged autoscaler", Rule: "autoscaling-root", Edit: scalerSecurity(func(s *corev1.SecurityContext) { s.Privileged = ptr(true) })},
	{Name: "an autoscaler that may gain", Rule: "autoscaling-root", Edit: scalerSecurity(func(s *corev1.SecurityContext) { s.AllowPrivilegeEscalation = ptr(true) })},
	{Name: "an unconfined autoscaler", Rule: "autoscaling-profile", Edit: scalerSecurity(func(s *corev1.SecurityContext) {
		s.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
	})},
	{Name: "an autoscaler under no profile", Rule: "autoscaling-profile", Edit: scalerSecurity(func(s *corev1.SecurityContext) {
		s.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	})},
	{Name: "an autoscaler of another type", Rule: "autoscaling-profile", Edit: scalerSecurity(func(s *corev1.SecurityContext) { s.SELinuxOptions = &corev1.SELinuxOptions{Type: "a"} })},
	{Name: "an autoscaler's whole processes", Rule: "autoscaling-profile", Edit: scalerSecurity(func(s *corev1.SecurityContext) { s.ProcMount = ptr(corev1.UnmaskedProcMount) })},
	{Name: "an autoscaler on Windows", Rule: "autoscaling-profile", Edit: scalerSecurity(func(s *corev1.SecurityContext) { s.WindowsOptions = &corev1.WindowsSecurityContextOptions{} })},
	{Name: "an autoscaler with a capability", Rule: "autoscaling-capabilities", Edit: scalerSecurity(func(s *corev1.SecurityContext) {
		s.Capabilities = &corev1.Capabilities{Add: []corev1.Capability{"NET_BIND_SERVICE"}, Drop: []corev1.Capability{"ALL"}}
	})},
	{Name: "an autoscaler that keeps capabilities", Rule: "autoscaling-capabilities", Edit: dropped("NET_RAW")},
}
