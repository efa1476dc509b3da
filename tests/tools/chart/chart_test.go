package chart

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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

// of gives the objects of one type among those that are rendered.
func of[T any](t *testing.T, options ...string) []T {
	t.Helper()
	objects, err := Decode(render(t, options...))
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

func TestRightsAreLeast(t *testing.T) {
	roles := of[*rbacv1.ClusterRole](t)
	if len(roles) != 1 {
		t.Fatalf("%d ClusterRoles, want 1", len(roles))
	}
	for _, rule := range roles[0].Rules {
		for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs) {
			if strings.Contains(word, "*") {
				t.Errorf("a wildcard in %v", rule)
			}
		}
		if slices.Contains(rule.Resources, "secrets") && (slices.Contains(rule.Verbs, "list") || slices.Contains(rule.Verbs, "watch")) {
			t.Errorf("the operator can browse Secrets: %v", rule)
		}
		if slices.Contains(rule.Resources, "computeclusters") && slices.Contains(rule.Verbs, "update") {
			t.Errorf("the operator can replace a user's object: %v", rule)
		}
	}
}

func TestPodIsRestricted(t *testing.T) {
	deployments := of[*appsv1.Deployment](t)
	if len(deployments) != 1 {
		t.Fatalf("%d Deployments, want 1", len(deployments))
	}
	if got := deployments[0].Spec.Strategy.Type; got != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("strategy = %s: two operators at a time", got)
	}
	pod := deployments[0].Spec.Template.Spec
	container := pod.Containers[0]
	security := container.SecurityContext
	if !*pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.SeccompProfile.Type != "RuntimeDefault" ||
		*security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem || security.Capabilities.Drop[0] != "ALL" {
		t.Errorf("the pod is not restricted: %v, %v", pod.SecurityContext, security)
	}
	if container.Resources.Requests.Cpu().IsZero() || container.Resources.Requests.Memory().IsZero() {
		t.Error("the operator asks for no CPU or no memory")
	}
}

func TestDeploymentPassesFlagsThatExist(t *testing.T) {
	source, err := os.ReadFile("../../../ray-operator/cmd/operator/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, arg := range of[*appsv1.Deployment](t)[0].Spec.Template.Spec.Containers[0].Args {
		name := regexp.MustCompile(`^--([a-z-]+)=`).FindStringSubmatch(arg)
		if name == nil || !strings.Contains(string(source), fmt.Sprintf("%q", name[1])) {
			t.Errorf("the operator has no flag for %s", arg)
		}
	}
}

func TestDefinitionsAreTheGenerated(t *testing.T) {
	want, err := os.ReadFile("../../../ray-operator/config/crd/heliostat.dev_computeclusters.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := render(t); !strings.Contains(got, strings.TrimSpace(string(want))) {
		t.Error("the chart does not install the generated CRD as it is")
	}
	if found := of[*apiextensionsv1.CustomResourceDefinition](t, "--set", "crds.install=false"); len(found) > 0 {
		t.Errorf("crds.install=false installs %s", found[0].Name)
	}
}

// changes give every value another one that must show in what is rendered.
var changes = map[string]string{
	"image.repository": "example.com/operator", "image.tag": "v9", "image.pullPolicy": "Always",
	"imagePullSecrets": `[{"name":"pull"}]`, "nameOverride": "other", "fullnameOverride": "whole",
	"crds.install": "false", "serviceAccount.create": "false", "serviceAccount.name": "someone",
	"serviceAccount.annotations": `{"a":"b"}`, "operator.workers": "3", "operator.resync": "1h30m", "operator.verbosity": "1",
	"resources": `{"requests":{"cpu":"1"}}`, "podAnnotations": `{"a":"b"}`, "podLabels": `{"a":"b"}`, "nodeSelector": `{"a":"b"}`,
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
	before := render(t)
	for name, value := range changes {
		options := []string{"--set-json", name + "=" + value}
		if !strings.ContainsAny(value, "[{") && !slices.Contains([]string{"crds.install", "serviceAccount.create", "operator.workers", "operator.verbosity"}, name) {
			options = []string{"--set-string", name + "=" + value}
		}
		if name == "serviceAccount.create" {
			options = append(options, "--set", "serviceAccount.name=theirs")
		}
		after := render(t, options...)
		if after == before {
			t.Errorf("%s has no effect", options)
		}
		if _, err := Decode(after); err != nil {
			t.Errorf("%s: %v", options, err)
		}
	}
}

// leaves are the paths of values; a group of settings has more than one of them.
func leaves(prefix string, values map[string]any) []string {
	groups := []string{"image", "crds", "serviceAccount", "operator"}
	var paths []string
	for name, value := range values {
		if below, ok := value.(map[string]any); ok && prefix == "" && slices.Contains(groups, name) {
			paths = append(paths, leaves(name+".", below)...)
			continue
		}
		paths = append(paths, prefix+name)
	}
	return paths
}

func TestBadValuesAreRefused(t *testing.T) {
	for _, bad := range []string{
		"imagge.tag=x", "image.tagg=x", "operator.workers=0", "operator.resync=often", "image.pullPolicy=Sometimes",
		"crds.install=maybe", "serviceAccount.create=false",
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
