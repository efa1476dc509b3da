package chart

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// serving installs the server.
var serving = []string{"--set", "server.enabled=true"}

// serverOf returns the server's object of a type.
func serverOf[T metav1.Object](t *testing.T, options ...string) T {
	t.Helper()
	var found []T
	for _, one := range of[T](t, append(options, serving...)...) {
		if one.GetLabels()["app.kubernetes.io/component"] == "server" {
			found = append(found, one)
		}
	}
	if len(found) != 1 {
		t.Fatalf("the server has %d objects %T, want 1", len(found), *new(T))
	}
	return found[0]
}

func TestServer_IsThereWhereItIsEnabled(t *testing.T) {
	if text := render(t); strings.Contains(text, "component: server") || strings.Contains(text, "--server-labels") {
		t.Error("there is something of the server though nobody asked for it")
	}
}

// TestServer_HasNoRightAndNoToken: what its pods hold opens nothing.
func TestServer_HasNoRightAndNoToken(t *testing.T) {
	account, pod := serverOf[*corev1.ServiceAccount](t), serverOf[*appsv1.Deployment](t).Spec.Template.Spec
	if pod.ServiceAccountName != account.Name || *pod.AutomountServiceAccountToken || *account.AutomountServiceAccountToken {
		t.Errorf("the pod runs as %s with a token: %v, %v", pod.ServiceAccountName, *pod.AutomountServiceAccountToken, *account.AutomountServiceAccountToken)
	}
	for _, volume := range pod.Volumes {
		if volume.Projected != nil || volume.HostPath != nil {
			t.Errorf("the pod mounts %v", volume)
		}
	}
	var subjects []rbacv1.Subject
	for _, binding := range of[*rbacv1.RoleBinding](t, serving...) {
		subjects = append(subjects, binding.Subjects...)
	}
	for _, binding := range of[*rbacv1.ClusterRoleBinding](t, serving...) {
		subjects = append(subjects, binding.Subjects...)
	}
	if len(subjects) == 0 {
		t.Fatal("no role is bound at all")
	}
	for _, subject := range subjects {
		if subject.Name != "test-heliostat" {
			t.Errorf("a role is bound to %v", subject)
		}
	}
}

func TestServer_PodIsRestricted(t *testing.T) {
	pod := serverOf[*appsv1.Deployment](t).Spec.Template.Spec
	container := pod.Containers[0]
	security := container.SecurityContext
	if !*pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.SeccompProfile.Type != "RuntimeDefault" ||
		*security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem || security.Capabilities.Drop[0] != "ALL" {
		t.Errorf("the pod is not restricted: %v, %v", pod.SecurityContext, security)
	}
	if container.Resources.Requests.Cpu().IsZero() || container.Resources.Limits.Memory().IsZero() || container.Env[0].Name != "GOMEMLIMIT" || container.Env[0].Value != "314572KiB" {
		t.Errorf("its resources are %v, its environment %v", container.Resources, container.Env)
	}
	for _, mount := range container.VolumeMounts {
		if !mount.ReadOnly {
			t.Errorf("it may write to %s", mount.MountPath)
		}
	}
}

func TestServer_IsFoundByItsSelectors(t *testing.T) {
	options := []string{"--set", "nameOverride=other"}
	deployment, service := serverOf[*appsv1.Deployment](t, options...), serverOf[*corev1.Service](t, options...)
	pod := deployment.Spec.Template
	operator := of[*appsv1.Deployment](t, append(options, serving...)...)
	for who, selector := range map[string]labels.Set{
		"Deployment": deployment.Spec.Selector.MatchLabels, "Service": service.Spec.Selector,
		"NetworkPolicy":       serverOf[*networkingv1.NetworkPolicy](t, options...).Spec.PodSelector.MatchLabels,
		"PodDisruptionBudget": serverOf[*policyv1.PodDisruptionBudget](t, options...).Spec.Selector.MatchLabels,
		"affinity":            pod.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm.LabelSelector.MatchLabels,
	} {
		if len(selector) < 3 || !selector.AsSelector().Matches(labels.Set(pod.Labels)) {
			t.Errorf("%s selects %v, the server's pods have %v", who, selector, pod.Labels)
		}
		for _, one := range operator {
			if one.Name != deployment.Name && selector.AsSelector().Matches(labels.Set(one.Spec.Template.Labels)) {
				t.Errorf("%s selects pods of %s", who, one.Name)
			}
		}
	}
	for _, one := range operator {
		if one.Name != deployment.Name && labels.SelectorFromSet(one.Spec.Selector.MatchLabels).Matches(labels.Set(pod.Labels)) {
			t.Errorf("%s selects the server's pods", one.Name)
		}
	}
	told := ""
	for _, arg := range operator[0].Spec.Template.Spec.Containers[0].Args {
		if text, is := strings.CutPrefix(arg, "--server-labels="); is {
			told = text
		}
	}
	if set, err := labels.ConvertSelectorToLabelsMap(told); err != nil || !labels.Equals(set, deployment.Spec.Selector.MatchLabels) {
		t.Errorf("the operator is told of pods with %q, %v, want %v", told, err, deployment.Spec.Selector.MatchLabels)
	}
	if port := service.Spec.Ports[0]; port.Port != 443 || port.TargetPort.StrVal != pod.Spec.Containers[0].Ports[0].Name {
		t.Errorf("the Service leads to %v of %v", port, pod.Spec.Containers[0].Ports)
	}
}

func TestServer_PassesFlagsThatExist(t *testing.T) {
	source, err := os.ReadFile("../../../apiserver/cmd/server/flags.go")
	if err != nil {
		t.Fatal(err)
	}
	container := serverOf[*appsv1.Deployment](t).Spec.Template.Spec.Containers[0]
	if !slices.Equal(container.Command, []string{"/server"}) {
		t.Errorf("it starts %v", container.Command)
	}
	for _, arg := range container.Args {
		name := regexp.MustCompile(`^--([a-z0-9-]+)=`).FindStringSubmatch(arg)
		if name == nil || !strings.Contains(string(source), fmt.Sprintf("%q", name[1])) {
			t.Errorf("the server has no flag for %s", arg)
		}
		if _, file, is := strings.Cut(arg, "=/"); is && !slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return strings.HasPrefix("/"+file, m.MountPath+"/") }) {
			t.Errorf("%s is in no volume", arg)
		}
	}
}

func TestServer_IsReachedByWhomTheValuesName(t *testing.T) {
	policy := serverOf[*networkingv1.NetworkPolicy](t).Spec
	var open []int
	for _, rule := range policy.Ingress {
		open = append(open, rule.Ports[0].Port.IntValue())
	}
	if !slices.Equal(open, []int{8443, 8081, 8080}) || len(policy.PolicyTypes) != 1 {
		t.Errorf("the open ports are %v, the policy is about %v", open, policy.PolicyTypes)
	}
	limited := serverOf[*networkingv1.NetworkPolicy](t, "--set-json", `server.allowFrom=[{"podSelector":{}}]`,
		"--set-json", `networkPolicy.egress=[{"to":[{"ipBlock":{"cidr":"10.0.0.1/32"}}]}]`).Spec
	if len(limited.Ingress[0].From) != 1 || len(limited.Egress) != 1 || len(limited.PolicyTypes) != 2 {
		t.Errorf("limited it is %+v", limited)
	}
	if found := of[*policyv1.PodDisruptionBudget](t, append(slices.Clone(serving), "--set", "server.replicas=1")...); len(found) != 1 {
		t.Errorf("with one server there are %d budgets, want the operator's", len(found))
	}
}

// TestServer_HasACertificateForItsNames: callers that trust ca.crt trust the server, by each name that it has.
func TestServer_HasACertificateForItsNames(t *testing.T) {
	secret := serverOf[*corev1.Secret](t, "--set", "server.tls.hosts={ray.example.com,10.1.2.3,fd00::5}")
	if volume := serverOf[*appsv1.Deployment](t).Spec.Template.Spec.Volumes[0]; volume.Secret.SecretName != secret.Name {
		t.Errorf("the pod mounts %v, the certificate is in %s", volume.Secret, secret.Name)
	}
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(secret.Data["ca.crt"])
	service := serverOf[*corev1.Service](t)
	for _, name := range []string{
		service.Name, service.Name + "." + service.Namespace, service.Name + "." + service.Namespace + ".svc", service.Name + "." + service.Namespace + ".svc.cluster.local",
		"localhost", "127.0.0.1", "::1", "ray.example.com", "10.1.2.3", "fd00::5",
	} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: trusted, DNSName: name, CurrentTime: time.Now().AddDate(9, 11, 0)}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	given := append(slices.Clone(serving), "--set", "server.tls.secretName=theirs")
	if made := of[*corev1.Secret](t, given...); len(made) > 0 {
		t.Errorf("beside a given Secret there is %s", made[0].Name)
	}
	if volume := serverOf[*appsv1.Deployment](t, given...).Spec.Template.Spec.Volumes[0]; volume.Secret.SecretName != "theirs" {
		t.Errorf("the pod mounts %v", volume.Secret)
	}
}
