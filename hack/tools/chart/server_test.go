package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

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

// serverOf returns the server's object of a type, but for what is of its metrics.
func serverOf[T metav1.Object](t *testing.T, options ...string) T {
	t.Helper()
	var found []T
	for _, one := range of[T](t, append(options, serving...)...) {
		if one.GetLabels()["app.kubernetes.io/component"] == "server" && !strings.HasSuffix(one.GetName(), "-metrics") {
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

func TestServer_PodIsRestricted(t *testing.T) {
	pod := serverOf[*appsv1.Deployment](t).Spec.Template.Spec
	container := pod.Containers[0]
	security := container.SecurityContext
	if !*pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.SeccompProfile.Type != "RuntimeDefault" ||
		*security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem || security.Capabilities.Drop[0] != "ALL" {
		t.Errorf("the pod is not restricted: %v, %v", pod.SecurityContext, security)
	}
	if hasUsers(&pod) {
		t.Errorf("the pod has users that OpenShift would refuse: %v, %v", pod.SecurityContext, security)
	}
	if container.Resources.Requests.Cpu().IsZero() || container.Resources.Limits.Memory().IsZero() || container.Env[0].Name != "GOMEMLIMIT" || container.Env[0].Value != "314572KiB" {
		t.Errorf("its resources are %v, its environment %v", container.Resources, container.Env)
	}
	for _, mount := range container.VolumeMounts { // it writes to what goes with its pod, and is bounded
		at := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if own := pod.Volumes[at].EmptyDir; !mount.ReadOnly && (own == nil || own.SizeLimit.IsZero()) {
			t.Errorf("it may write to %s", mount.MountPath)
		}
	}
}

func TestServer_IsFoundByItsSelectors(t *testing.T) {
	options := []string{"--set", "nameOverride=other"}
	deployment := serverOf[*appsv1.Deployment](t, options...)
	pod := deployment.Spec.Template
	operator := of[*appsv1.Deployment](t, append(options, serving...)...)
	for who, selector := range map[string]labels.Set{
		"Deployment": deployment.Spec.Selector.MatchLabels, "Service": serverOf[*corev1.Service](t, options...).Spec.Selector,
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
}

// TestServer_IsKnownToTheOperator by the labels of its pods, which open the dashboards of heads.
func TestServer_IsKnownToTheOperator(t *testing.T) {
	options := []string{"--set", "nameOverride=other"}
	deployment := serverOf[*appsv1.Deployment](t, options...)
	told := ""
	for _, arg := range of[*appsv1.Deployment](t, append(options, serving...)...)[0].Spec.Template.Spec.Containers[0].Args {
		if text, is := strings.CutPrefix(arg, "--server-labels="); is {
			told = text
		}
	}
	if set, err := labels.ConvertSelectorToLabelsMap(told); err != nil || !labels.Equals(set, deployment.Spec.Selector.MatchLabels) {
		t.Errorf("the operator is told of pods with %q, %v, want %v", told, err, deployment.Spec.Selector.MatchLabels)
	}
}

func TestServer_IsServedOnItsPorts(t *testing.T) {
	service, open := serverOf[*corev1.Service](t), serverOf[*appsv1.Deployment](t).Spec.Template.Spec.Containers[0].Ports
	for at, number := range []int32{443, 9443} {
		if port := service.Spec.Ports[at]; port.Port != number || port.TargetPort.StrVal != open[at].Name {
			t.Errorf("the Service leads to %v of %v", port, open)
		}
	}
	if open[0].ContainerPort != 8443 || open[1].ContainerPort != 9443 {
		t.Errorf("the open ports are %v", open)
	}
}

func TestServer_PassesFlagsThatExist(t *testing.T) {
	source := flagsOfServer(t)
	options := slices.Concat(impersonating, withPage, []string{"--set", "watchNamespaces={a,b},server.dashboards.wildcard=ray.example.com,server.frameAncestors={https://a}"})
	container := serverOf[*appsv1.Deployment](t, options...).Spec.Template.Spec.Containers[0]
	if !slices.Equal(container.Command, []string{"/server"}) {
		t.Errorf("it starts %v", container.Command)
	}
	for _, want := range []string{"--watch-namespaces=a,b", "--namespace=there", "--identity-file=/etc/heliostat/identity/identity.yaml", "--grpc-address=:9443"} {
		if !slices.Contains(container.Args, want) {
			t.Errorf("it is not told %s: %v", want, container.Args)
		}
	}
	for _, arg := range container.Args {
		name := regexp.MustCompile(`^--([a-z0-9-]+)=`).FindStringSubmatch(arg)
		if name == nil || !strings.Contains(source, fmt.Sprintf("%q", name[1])) {
			t.Errorf("the server has no flag for %s", arg)
		}
		if _, file, is := strings.Cut(arg, "=/"); is && !slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return strings.HasPrefix("/"+file+"/", m.MountPath+"/") }) {
			t.Errorf("%s is in no volume", arg)
		}
	}
}

// flagsOfServer returns the source of the command, which defines them.
func flagsOfServer(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../../../apiserver/cmd/server/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, "_test.go") {
			all.Write(text)
		}
	}
	return all.String()
}

func TestServer_IsReachedByWhomTheValuesName(t *testing.T) {
	policy := serverOf[*networkingv1.NetworkPolicy](t).Spec
	var open []int
	for _, rule := range policy.Ingress {
		for _, port := range rule.Ports {
			open = append(open, port.Port.IntValue())
		}
	}
	if !slices.Equal(open, []int{8443, 9443, 8081, 8080}) || len(policy.PolicyTypes) != 1 {
		t.Errorf("the open ports are %v, the policy is about %v", open, policy.PolicyTypes)
	}
	if plain := serverOf[*networkingv1.NetworkPolicy](t, "--set", "server.grpc.enabled=false").Spec.Ingress[0].Ports; len(plain) != 1 {
		t.Errorf("without gRPC the open ports are %v", plain)
	}
	if found := of[*policyv1.PodDisruptionBudget](t, append(slices.Clone(serving), "--set", "server.replicas=1")...); len(found) != 1 {
		t.Errorf("with one server there are %d budgets, want the operator's", len(found))
	}
}

// TestServer_ReachesWhatTheValuesName, and the dashboards of heads.
func TestServer_ReachesWhatTheValuesName(t *testing.T) {
	limited := serverOf[*networkingv1.NetworkPolicy](t, "--set-json", `server.allowFrom=[{"podSelector":{}}]`,
		"--set-json", `networkPolicy.egress=[{"to":[{"ipBlock":{"cidr":"10.0.0.1/32"}}]}]`).Spec
	if len(limited.Ingress[0].From) != 1 || len(limited.Egress) != 2 || len(limited.PolicyTypes) != 2 {
		t.Fatalf("limited it is %+v", limited)
	}
	heads := limited.Egress[0]
	if heads.To[0].PodSelector.MatchLabels["heliostat.dev/role"] != "head" || heads.To[0].NamespaceSelector == nil || len(heads.Ports) != 2 ||
		heads.Ports[0].Port.IntValue() != 8265 || heads.Ports[1].Port.IntValue() != 8266 {
		t.Errorf("it reaches heads by %+v", heads)
	}
	if named := serverOf[*networkingv1.NetworkPolicy](t, append(slices.Clone(impersonating), "--set-json", `networkPolicy.egress=[{}]`)...).Spec.Egress; len(named) != 3 || len(named[0].Ports) != 4 ||
		named[0].Ports[0].Port.IntValue() != 53 || named[0].Ports[3].Port.IntValue() != 5353 {
		t.Errorf("with issuers it reaches %+v, and DNS must be among it", named)
	}
}

// TestServer_HasACertificateOfTheOperators: the operator keeps one in the Secret that the servers mount, for each name that
// the server has. The operator's account may do that, and manifests have no key.
func TestServer_HasACertificateOfTheOperators(t *testing.T) {
	options := append(slices.Clone(serving), "--set", "server.tls.hosts={ray.example.com,10.1.2.3,fd00::5}")
	secret, service := serverOf[*corev1.Secret](t), serverOf[*corev1.Service](t)
	if volume := serverOf[*appsv1.Deployment](t).Spec.Template.Spec.Volumes[0]; volume.Secret.SecretName != secret.Name || len(secret.Data) > 0 {
		t.Errorf("the pod mounts %v, the certificate is in %s with %d keys", volume.Secret, secret.Name, len(secret.Data))
	}
	name := service.Name + "." + service.Namespace
	flags := operatorFlags(t, options...)
	for _, want := range []string{
		"--server-certificate=" + secret.Name,
		"--server-hosts=" + strings.Join([]string{name + ".svc", service.Name, name, name + ".svc.cluster.local", "localhost", "127.0.0.1", "::1", "ray.example.com", "10.1.2.3", "fd00::5"}, ","),
	} {
		if !slices.Contains(flags, want) {
			t.Errorf("the operator has no flag %s: %q", want, flags)
		}
	}
	for _, binding := range of[*rbacv1.RoleBinding](t, options...) {
		if binding.RoleRef.Name == "test-heliostat-server-certificate" && binding.Subjects[0].Name != "test-heliostat" {
			t.Errorf("the right to the Secret is that of %v", binding.Subjects)
		}
	}
	given := append(slices.Clone(serving), "--set", "server.tls.secretName=theirs")
	if made := of[*corev1.Secret](t, given...); len(made) > 0 || strings.Contains(strings.Join(operatorFlags(t, given...), " "), "--server-certificate") {
		t.Errorf("beside a given Secret there is %v, or the operator keeps one", made)
	}
	if volume := serverOf[*appsv1.Deployment](t, given...).Spec.Template.Spec.Volumes[0]; volume.Secret.SecretName != "theirs" {
		t.Errorf("the pod mounts %v", volume.Secret)
	}
}

// operatorFlags returns those of the operator's container.
func operatorFlags(t *testing.T, options ...string) []string {
	t.Helper()
	for _, one := range of[*appsv1.Deployment](t, options...) {
		if one.Labels["app.kubernetes.io/component"] != "server" {
			return one.Spec.Template.Spec.Containers[0].Args
		}
	}
	t.Fatal("there is no operator")
	return nil
}

// TestServer_IsMeasured: a Service and a ServiceMonitor find the servers and not the operators.
func TestServer_IsMeasured(t *testing.T) {
	options := append(slices.Clone(serving), "--set", "metrics.serviceMonitor.enabled=true")
	pod := serverOf[*appsv1.Deployment](t).Spec.Template
	found := 0
	for _, service := range of[*corev1.Service](t, options...) {
		if service.Name != "test-heliostat-server-metrics" {
			continue
		}
		found++
		port := service.Spec.Ports[0]
		if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)) || port.Port != 8080 || port.TargetPort.StrVal != "metrics" {
			t.Errorf("the Service is %+v", service.Spec)
		}
		for _, monitor := range of[*ServiceMonitor](t, options...) {
			if labels.SelectorFromSet(monitor.Spec.Selector.MatchLabels).Matches(labels.Set(service.Labels)) != (monitor.Name == "test-heliostat-server") {
				t.Errorf("%s selects %v, the Service has %v", monitor.Name, monitor.Spec.Selector, service.Labels)
			}
		}
	}
	if found != 1 || len(of[*ServiceMonitor](t, options...)) != 2 {
		t.Errorf("%d Services and %d ServiceMonitors", found, len(of[*ServiceMonitor](t, options...)))
	}
}
