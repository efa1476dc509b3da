package chart

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

func render(t *testing.T, options ...string) string {
	t.Helper()
	text, err := Render(options...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Options that leave out what is nearly all of the text, and takes most of the time: the CRDs, and the admission policies.
var (
	withoutCRDs     = []string{"--set", "crds.install=false"}
	withoutPolicies = []string{"--set", "admission.enabled=false"}
)

// of returns the objects of one type among those that are rendered.
func of[T any](t *testing.T, options ...string) []T {
	t.Helper()
	objects, err := Decode(render(t, append(besides[T](), options...)...))
	if err != nil {
		t.Fatal(err)
	}
	var found []T
	for _, object := range objects {
		if one, ok := object.(T); ok {
			found = append(found, one)
		}
	}
	return found
}

// besides returns options that leave out what is not of a type.
func besides[T any]() []string {
	switch any(*new(T)).(type) {
	case nil: // any type
		return nil
	case *apiextensionsv1.CustomResourceDefinition:
		return withoutPolicies
	case *admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding:
		return withoutCRDs
	default:
		return slices.Concat(withoutCRDs, withoutPolicies)
	}
}

// hasUsers reports whether a pod names users or groups, as OpenShift gives pods their own and refuses others.
func hasUsers(pod *corev1.PodSpec) bool {
	security := pod.SecurityContext
	return security.RunAsUser != nil || security.RunAsGroup != nil || security.FSGroup != nil || len(security.SupplementalGroups) > 0 ||
		slices.ContainsFunc(slices.Concat(pod.InitContainers, pod.Containers), func(c corev1.Container) bool {
			return c.SecurityContext.RunAsUser != nil || c.SecurityContext.RunAsGroup != nil
		})
}

func TestPodIsRestricted(t *testing.T) {
	deployments := of[*appsv1.Deployment](t)
	if len(deployments) != 1 {
		t.Fatalf("%d Deployments, want 1", len(deployments))
	}
	pod := deployments[0].Spec.Template.Spec
	container := pod.Containers[0]
	security := container.SecurityContext
	if !*pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.SeccompProfile.Type != "RuntimeDefault" ||
		*security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem || security.Capabilities.Drop[0] != "ALL" {
		t.Errorf("the pod is not restricted: %v, %v", pod.SecurityContext, security)
	}
	if hasUsers(&pod) {
		t.Errorf("the pod has users that OpenShift would refuse: %v, %v", pod.SecurityContext, security)
	}
	if container.Resources.Requests.Cpu().IsZero() || container.Resources.Requests.Memory().IsZero() {
		t.Error("the operator asks for no CPU or no memory")
	}
}

// TestMemoryLimit_LeavesAFifth: Go collects its garbage before the kernel kills it.
func TestMemoryLimit_LeavesAFifth(t *testing.T) {
	for options, want := range map[string]string{
		"":                               "419430KiB",
		"resources.limits.memory=1.5Gi":  "1258291KiB",
		"resources.limits.memory=1000Ki": "800KiB",
		"resources.limits.memory=1G":     "",
		"resources.limits=null":          "",
	} {
		var flags []string
		if options != "" {
			flags = []string{"--set", options}
		}
		have := ""
		for _, variable := range of[*appsv1.Deployment](t, flags...)[0].Spec.Template.Spec.Containers[0].Env {
			if variable.Name == "GOMEMLIMIT" {
				have = variable.Value
			}
		}
		if have != want {
			t.Errorf("%s: GOMEMLIMIT is %q, want %q", options, have, want)
		}
	}
}

// TestPodDefaults_ReachTheOperatorAsTheyAre: the kubelet expands variables of arguments, and turns $$ into $.
func TestPodDefaults_ReachTheOperatorAsTheyAre(t *testing.T) {
	args := of[*appsv1.Deployment](t, "--set-json", `podDefaults={"env":[{"name":"A","value":"\"$(POD_NAME)\""}]}`)[0].Spec.Template.Spec.Containers[0].Args
	if want := `--pod-defaults={"env":[{"name":"A","value":"\"$$(POD_NAME)\""}]}`; !slices.Contains(args, want) {
		t.Errorf("the operator is told %q, want %s", args, want)
	}
}

func TestDeploymentPassesFlagsThatExist(t *testing.T) {
	source, err := os.ReadFile("../../../ray-operator/cmd/operator/flags.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, arg := range of[*appsv1.Deployment](t, "--set", "watchNamespaces={a,b}")[0].Spec.Template.Spec.Containers[0].Args {
		name := regexp.MustCompile(`^--([a-z-]+)=`).FindStringSubmatch(arg)
		if name == nil || !strings.Contains(string(source), fmt.Sprintf("%q", name[1])) {
			t.Errorf("the operator has no flag for %s", arg)
		}
	}
}

// TestTheAutoscalerIsOfTheOperatorsImage: what runs beside heads is pulled as the operator is.
func TestTheAutoscalerIsOfTheOperatorsImage(t *testing.T) {
	container := of[*appsv1.Deployment](t, "--set", "image.repository=example.com/o", "--set", "image.pullPolicy=Always")[0].Spec.Template.Spec.Containers[0]
	for _, want := range []string{"--autoscaler-image=" + container.Image, "--autoscaler-pull-policy=" + string(container.ImagePullPolicy)} {
		if !slices.Contains(container.Args, want) {
			t.Errorf("the operator is told %v, want %s", container.Args, want)
		}
	}
}

func TestDefinitionsAreTheGenerated(t *testing.T) {
	for _, installed := range of[*apiextensionsv1.CustomResourceDefinition](t) {
		text, err := os.ReadFile("../../../ray-operator/config/crd/heliostat.dev_" + installed.Spec.Names.Plural + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		want, err := Decode(string(text))
		if err != nil || len(want) != 1 {
			t.Fatalf("decode the CRD of %s: %d objects, %v", installed.Name, len(want), err)
		}
		if !reflect.DeepEqual(runtime.Object(installed), want[0]) {
			t.Errorf("the chart does not install the generated CRD of %s as it is", installed.Name)
		}
	}
	if found := of[*apiextensionsv1.CustomResourceDefinition](t, "--set", "crds.install=false"); len(found) > 0 {
		t.Errorf("crds.install=false installs %s", found[0].Name)
	}
}

// TestRelease_FitsIntoItsSecret: Helm keeps the chart and all that it installs in one Secret, compressed and in base64, and
// Kubernetes takes 1 MiB. A fifth of that is left for what users set and for versions to come.
func TestRelease_FitsIntoItsSecret(t *testing.T) {
	release := runHelm(t, "install", releaseName, dir, "--namespace", releaseNamespace, "--dry-run=client", "-o", "json",
		"--set", "server.enabled=true,metrics.serviceMonitor.enabled=true,metrics.prometheusRule.enabled=true,metrics.dashboards.enabled=true")
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	if _, err := writer.Write([]byte(release)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	const most = 1 << 20 * 4 / 5
	if size := base64.StdEncoding.EncodedLen(compressed.Len()); size > most {
		t.Errorf("a release takes %d bytes, of at most %d", size, most)
	}
}

// changes give every value another one that must show in what is rendered.
var changes = map[string]string{
	"image.repository": "example.com/operator", "image.tag": "v9", "image.pullPolicy": "Always",
	"image.digest":     "sha256:" + strings.Repeat("0", 64),
	"imagePullSecrets": `[{"name":"pull"}]`, "nameOverride": "other", "fullnameOverride": "whole",
	"crds.install": "false", "admission.enabled": "false", "serviceAccount.create": "false", "serviceAccount.name": "someone",
	"serviceAccount.annotations": `{"a":"b"}`, "operator.workers": "3", "operator.resync": "1h30m", "operator.verbosity": "1", "operator.logFormat": "text",
	"resources": `{"requests":{"cpu":"1"}}`, "podAnnotations": `{"a":"b"}`, "podLabels": `{"a":"b"}`, "nodeSelector": `{"a":"b"}`,
	"replicas": "3", "watchNamespaces": `["a"]`, "watchNodes": "false", "schedulers": `["Volcano"]`, "rbac.aggregate": "false", "kueue.enabled": "true",
	"metrics.clusters": "50", "metrics.enabled": "false", "metrics.serviceMonitor.enabled": "true", "metrics.serviceMonitor.labels": `{"a":"b"}`,
	"metrics.prometheusRule.enabled": "true", "metrics.prometheusRule.labels": `{"a":"b"}`, "metrics.dashboards.enabled": "true",
	"metrics.dashboards.labels": `{"a":"b"}`, "metrics.dashboards.annotations": `{"a":"b"}`,
	"metrics.serviceMonitor.interval": "15s", "networkPolicy.enabled": "false", "networkPolicy.metricsFrom": `[{"podSelector":{}}]`,
	"tenancy.podAnnotations": `["a"]`, "tenancy.podLabels": `["a"]`, "tenancy.tolerations": `["a"]`,
	"controlStore.allow": `["10.0.0.0/8"]`,
	"podDefaults":        `{"env":[{"name":"A","value":"b"}]}`,
	"sizes":              `{"autoscaling":{"limits.cpu":"500m"}}`,
	"mesh.tunnelPort":    "15008", "mesh.probesFrom": `["169.254.7.127/32"]`,
	"networkPolicy.egress": `[{"to":[{"ipBlock":{"cidr":"10.0.0.1/32"}}]}]`,
	"server.enabled":       "true", "server.replicas": "3", "server.tls.secretName": "theirs", "server.tls.hosts": `["a.example.com"]`,
	"server.service.type": "LoadBalancer", "server.service.annotations": `{"a":"b"}`, "server.allowFrom": `[{"podSelector":{}}]`,
	"server.identity.mode": "Impersonate", "server.identity.audience": "heliostat", "server.identity.impersonation": "Constrained",
	"server.identity.issuers":    `[{"url":"https://sso.example.com","audience":"a","prefix":"sso:"}]`,
	"server.identity.frontProxy": `{"certificateAuthority":"PEM","names":["a"]}`, "server.grpc.enabled": "false",
	"server.verbosity": "1", "server.resources": `{"requests":{"cpu":"1"}}`,
	"server.url": "https://b.example.com", "server.dashboards.enabled": "true", "server.dashboards.host": "d.example.com",
	"server.dashboards.wildcard": "ray.example.com", "server.dashboards.maxUpload": "2Gi", "server.dashboards.drainSeconds": "30",
	"server.signIn.oidc":        `{"issuer":"https://sso.example.com","clientID":"a","secretName":"s"}`,
	"server.session.secretName": "sealing", "server.session.rotation": "2", "server.links": `[{"name":"a","urlTemplate":"https://a/${name}"}]`,
	"server.frameAncestors": `["https://k.example.com"]`, "server.ingress.enabled": "true", "server.ingress.className": "nginx",
	"server.ingress.annotations": `{"a":"b"}`, "server.ingress.tlsSecretName": "outer", "server.httpRoute.enabled": "true",
	"server.httpRoute.parentRefs": `[{"name":"public"}]`, "server.httpRoute.annotations": `{"a":"b"}`, "server.httpRoute.certificateAuthority": "ca",
	"history.enabled": "true", "history.store": `{"claimName":"", "url":"gs://b","secretName":"gcp"}`, "history.serviceAccount": `{"annotations":{"a":"b"}}`,
	"history.keep": "Records", "history.keepFor": "24h", "history.maxKeepFor": "1000h", "history.afterNamespace": "24h", "history.limits": `{"cluster":"1Gi"}`,
	"history.collector": `{"size":{"memory":"64Mi"}}`, "history.redact": `["key=[a-z]+"]`, "history.replicas": "1", "history.spool": `{"size":"1Gi"}`,
	"tolerations": `[{"key":"a"}]`, "affinity": `{"nodeAffinity":{}}`, "priorityClassName": "high",
}

func TestEveryValueHasAnEffect(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(dir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.UnmarshalStrict(text, &values); err != nil {
		t.Fatal(err)
	}
	if want, got := slices.Sorted(maps.Keys(changes)), slices.Sorted(slices.Values(leaves("", values))); !slices.Equal(got, want) {
		t.Fatalf("values.yaml has %v,\nthis test knows %v", got, want)
	}
	unchanged := map[string]string{} // most have the same
	for name, value := range changes {
		with := needs[name]
		if strings.HasPrefix(name, "server.") && name != "server.enabled" {
			with = append(slices.Clone(serving), with...)
		}
		if strings.HasPrefix(name, "history.") {
			with = keeping
			if name == "history.enabled" {
				with = append(slices.Clone(serving), "--set", "history.store.url=s3://b")
			}
		}
		with = append(slices.Clone(lightest(name)), with...)
		key := strings.Join(with, " ")
		if unchanged[key] == "" {
			unchanged[key] = render(t, with...)
		}
		before, after := unchanged[key], render(t, append(append(set(name, value), with...), beside[name]...)...)
		if made.ReplaceAllString(after, "") == made.ReplaceAllString(before, "") {
			t.Errorf("%s=%s has no effect", name, value)
		}
		if _, err := Decode(after); err != nil {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
}

// lightest returns options that leave out what the effect of a value is not looked for in.
func lightest(name string) []string {
	switch {
	case strings.HasPrefix(name, "crds."):
		return withoutPolicies
	case strings.HasPrefix(name, "admission."), strings.HasPrefix(name, "tenancy."):
		return withoutCRDs
	default:
		return slices.Concat(withoutCRDs, withoutPolicies)
	}
}

// made are keys that the chart makes, which are others each time.
var made = regexp.MustCompile(`keys: \S+`)

// needs are other values without which one has no effect.
var needs = map[string][]string{
	"serviceAccount.create":           {"--set", "serviceAccount.name=theirs"},
	"metrics.serviceMonitor.labels":   {"--set", "metrics.serviceMonitor.enabled=true"},
	"metrics.serviceMonitor.interval": {"--set", "metrics.serviceMonitor.enabled=true"},
	"metrics.prometheusRule.labels":   {"--set", "metrics.prometheusRule.enabled=true"},
	"metrics.dashboards.labels":       {"--set", "metrics.dashboards.enabled=true"},
	"metrics.dashboards.annotations":  {"--set", "metrics.dashboards.enabled=true"},
	"server.identity.issuers":         {"--set", "server.identity.mode=Impersonate,server.identity.audience=a"},
	"server.identity.frontProxy":      {"--set", "server.identity.mode=Impersonate,server.identity.audience=a"},
	"server.identity.audience":        {"--set", "server.identity.mode=Impersonate,server.identity.audience=a"},
	"server.identity.impersonation":   {"--set", "server.identity.mode=Impersonate,server.identity.audience=a", "--kube-version", "1.35.0"},

	"server.url": withPage, "server.dashboards.host": withPage, "server.dashboards.wildcard": withPage, "server.dashboards.maxUpload": withPage, "server.dashboards.drainSeconds": withPage,
	"server.signIn.oidc": withPage, "server.session.secretName": withPage, "server.session.rotation": withPage, "server.links": withPage,
	"server.frameAncestors": withPage, "server.ingress.enabled": withHosts, "server.httpRoute.enabled": withHosts,
	"server.ingress.className": withIngress, "server.ingress.annotations": withIngress, "server.ingress.tlsSecretName": withIngress,
	"server.httpRoute.parentRefs": withRoute, "server.httpRoute.annotations": withRoute, "server.httpRoute.certificateAuthority": withRoute,
}

// Values with which the page and the dashboards are served, on one host or on two, and led to.
var (
	withPage    = []string{"--set", "server.dashboards.enabled=true"}
	withHosts   = append(slices.Clone(withPage), "--set", "server.url=https://a.example.com,server.dashboards.host=c.example.com")
	withIngress = append(slices.Clone(withHosts), "--set", "server.ingress.enabled=true")
	withRoute   = append(slices.Clone(withHosts), "--set", "server.httpRoute.enabled=true")
)

// beside are values that must be changed with another one.
var beside = map[string][]string{"server.identity.mode": {"--set", "server.identity.audience=a"}}

// set gives the option that sets a value: as text, unless it is something else in JSON.
func set(name, value string) []string {
	if strings.ContainsAny(value, "[{") || value == "true" || value == "false" || regexp.MustCompile(`^[0-9]+$`).MatchString(value) {
		return []string{"--set-json", name + "=" + value}
	}
	return []string{"--set-string", name + "=" + value}
}

// leaves are the paths of values; a group of settings has more than one of them.
func leaves(prefix string, values map[string]any) []string {
	groups := []string{"image", "crds", "admission", "tenancy", "serviceAccount", "rbac", "operator", "kueue", "mesh", "controlStore", "metrics", "metrics.serviceMonitor",
		"metrics.prometheusRule", "metrics.dashboards", "networkPolicy", "history", "server", "server.tls", "server.service",
		"server.identity", "server.grpc", "server.dashboards", "server.signIn", "server.session", "server.ingress", "server.httpRoute"}
	var paths []string
	for name, value := range values {
		if below, ok := value.(map[string]any); ok && slices.Contains(groups, prefix+name) {
			paths = append(paths, leaves(prefix+name+".", below)...)
			continue
		}
		paths = append(paths, prefix+name)
	}
	return paths
}

func TestReadmeTellsOfEveryValue(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range changes {
		if !strings.Contains(string(readme), "`"+name+"`") {
			t.Errorf("README.md has no row for %s", name)
		}
	}
}

func TestBadValuesAreRefused(t *testing.T) {
	for _, bad := range []string{
		"imagge.tag=x", "image.tagg=x", "image.digest=latest", "operator.workers=0", "operator.logFormat=xml", "metrics.clusters=-1", "operator.resync=often", "image.pullPolicy=Sometimes",
		"crds.install=maybe", "serviceAccount.create=false", "replicas=0", "watchNodes=often", "podDefaults.enw=a", "sizes.ray.cpu=1", "sizes.encryption.gpu=1", "watchNamespaces={A}",
		"metrics.serviceMonitor.interval=soon", "metrics.prometheusRule.enabled=often", "metrics.dashboards.folder=a", "networkPolicy.egress=all", "mesh.tunnelPort=65536", "mesh.tunnelPort=many", "mesh.probesFrom={169.254.7.127}", "mesh.port=1", "kueue.enabled=often",
		"server.enable=true", "server.replicas=0", "server.tls.secretName=A", "server.tls.hosts={a b}", "server.service.type=ExternalName",
		"server.identity.mode=Nobody", "server.identity.impersonation=Some", "server.grpc.enabled=often",
		"server.url=http://a", "server.url=https://a/b", "server.dashboards.host=https://a", "server.dashboards.wildcard=*.a",
		"server.dashboards.maxUpload=much", "server.dashboards.drainSeconds=-1", "server.signIn.oidc.issuer=http://a", "server.session.secretName=A", "server.frameAncestors={*}",
		"server.links[0].name=a", "server.ingress.enabled=often",
		"tenancy.podLabels={a b}", "tenancy.podAnnotations={/a}", "tenancy.tolerations={'}", "tenancy.labels={a}",
	} {
		if text, err := Render("--set", bad); err == nil {
			t.Errorf("%s is accepted and gives %d bytes", bad, len(text))
		}
	}
}

func TestDecodeIsStrict(t *testing.T) {
	for _, text := range []string{
		"apiVersion: v1\nkind: Pod\nspek: {}\n", "apiVersion: v1\nkind: Nothing\n", "apiVersion: v1\nkind: Pod\nkind: Pod\n",
	} {
		if objects, err := Decode(text); err == nil {
			t.Errorf("%q is accepted as %v", text, objects)
		}
	}
}
